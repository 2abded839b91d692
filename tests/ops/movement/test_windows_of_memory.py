"""Gradients of views that touch or overlap in memory, against a model that adds up in NumPy.

The model knows a view as the positions of its elements in the memory; a gradient is scattered there
and added up. Views may touch without overlapping, and reach some elements more often than others.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng

LENGTH = 24


@st.composite
def windows(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Return sizes, strides and an offset that stay in the memory."""
    sizes, strides, room = [], [], LENGTH - 1
    for _ in range(draw(st.integers(0, 3))):
        size = draw(st.integers(0, 4))
        stride = draw(st.integers(0, 7 if size < 2 else min(7, room // (size - 1))))
        room -= max(size - 1, 0) * stride
        sizes.append(size)
        strides.append(stride)
    return tuple(sizes), tuple(strides), draw(st.integers(0, room))


def positions(window: tuple[tuple[int, ...], tuple[int, ...], int]) -> Any:
    """Return where in the memory the elements of a window lie."""
    sizes, strides, offset = window
    grid = np.indices(sizes).reshape(len(sizes), math.prod(sizes))
    return (np.array(strides, int) @ grid + offset if sizes else np.array([offset])).astype(int)


def weights(count: int, start: int) -> Any:
    return np.arange(start, start + count, dtype=float)


@given(st.lists(windows(), min_size=1, max_size=3))
def test_gradients_of_windows_are_what_is_added_up_in_memory(chosen: list[Any]) -> None:
    x = ng.arange(float(LENGTH), dtype=ng.float64).requires_grad_()
    expected, total = np.zeros(LENGTH), ng.zeros((), dtype=ng.float64)
    memory = np.arange(float(LENGTH))
    for number, window in enumerate(chosen):
        view = x.as_strided(*window)
        at = positions(window)
        assert view.detach().numpy().ravel().tolist() == memory[at].tolist()
        factor = weights(at.size, number + 1)
        total = total + (view * ng.from_numpy(factor.reshape(window[0]))).sum()
        np.add.at(expected, at, factor)
    total.backward()
    assert x.grad is not None and x.grad.tolist() == expected.tolist()


@given(st.integers(0, 3), st.integers(1, 4), st.integers(0, 3), st.integers(1, 4), st.data())
def test_a_write_to_a_window_changes_another_where_they_overlap_only(
    first: int, length: int, gap: int, other: int, data: st.DataObject
) -> None:
    """Two windows of a computed base; the second begins at, before or behind the first's end."""
    second = max(0, first + length - 2 + gap)
    x = ng.arange(12.0, dtype=ng.float64).requires_grad_()
    base = x * 1
    left = base[first : first + length]
    right = base.as_strided((other,), (1,), second)
    factor = data.draw(st.integers(2, 5))
    left.mul_(factor)
    ways = weights(12, 1)
    (right * ng.from_numpy(ways[:other])).sum().backward(retain_graph=True)
    scale = np.ones(12)
    scale[first : first + length] = factor
    expected = np.zeros(12)
    expected[second : second + other] = ways[:other]
    assert right.detach().tolist() == (np.arange(12.0) * scale)[second : second + other].tolist()
    assert x.grad is not None and x.grad.tolist() == (expected * scale).tolist()
    x.grad = None
    (base * ng.from_numpy(ways)).sum().backward()
    assert x.grad.tolist() == (ways * scale).tolist()


@given(st.integers(1, 12), st.integers(1, 5), st.integers(1, 6))
def test_gradients_of_unfold_count_the_windows_an_element_is_in(
    length: int, size: int, step: int
) -> None:
    size = min(size, length)
    x = ng.arange(float(length), dtype=ng.float64).requires_grad_()
    unfolded = x.unfold(0, size, step)
    factor = weights(unfolded.numel(), 1).reshape(unfolded.shape)
    (unfolded * ng.from_numpy(factor)).sum().backward()
    expected = np.zeros(length)
    for row in range(unfolded.shape[0]):
        expected[row * step : row * step + size] += factor[row]
    assert x.grad is not None and x.grad.tolist() == expected.tolist()


@given(st.integers(0, LENGTH - 1), windows())
def test_what_is_scattered_to_a_window_of_a_part_is_seen_where_they_overlap(
    first: int, window: tuple[Any, Any, int]
) -> None:
    """Offsets count from where the memory begins, not the part."""
    at = positions(window)
    if len(set(at.tolist())) < at.size:
        return
    memory = ng.arange(float(LENGTH), dtype=ng.float64)
    part = memory[first:].requires_grad_()
    source = ng.from_numpy(weights(at.size, 100).reshape(window[0])).requires_grad_()
    found = part.as_strided_scatter(source, *window)
    expected, own, given = np.arange(float(LENGTH)), weights(LENGTH, 1), np.zeros(LENGTH)
    given[first:] = own[first:]
    expected[at], own[at] = source.numpy(force=True).ravel(), 0
    assert found.tolist() == expected[first:].tolist()
    (found * ng.from_numpy(weights(LENGTH, 1)[first:])).sum().backward()
    assert part.grad is not None and part.grad.tolist() == own[first:].tolist()
    assert source.grad is not None
    assert source.grad.tolist() == given[at].reshape(window[0]).tolist()
