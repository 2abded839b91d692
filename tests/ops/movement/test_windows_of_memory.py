"""Gradients of views that touch or overlap in memory, against a model that adds up in NumPy.

The model knows a view as the positions of its elements in the memory; a gradient is scattered there
and added up. Views may touch without overlapping, and reach some elements more often than others.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import example, given
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


@given(windows(), windows())
@example(((3, 2), (1, 1), 0), ((4,), (1,), 0))  # elements that are shown unequally often
@example(((3, 2), (1, 1), 4), ((6,), (1,), 2))  # before and behind what is shown
@example(((2, 3), (0, 2), 3), ((4,), (1,), 5))
def test_gradients_of_windows_of_windows_go_in_equal_shares(
    outer: tuple[Any, Any, int], inner: tuple[Any, Any, int]
) -> None:
    """Elements that the outer window shows often get as many shares; what it hides gets nothing."""
    x = ng.arange(float(LENGTH), dtype=ng.float64).requires_grad_()
    middle = x.as_strided(*outer)
    middle.retain_grad()
    there, at = positions(outer), positions(inner)
    factor = weights(at.size, 1)
    (middle.as_strided(*inner) * ng.from_numpy(factor.reshape(inner[0]))).sum().backward()
    memory = np.zeros(LENGTH)
    np.add.at(memory, at, factor)
    shown = np.bincount(there, minlength=LENGTH)
    assert middle.grad is not None and x.grad is not None
    share = (memory / np.maximum(shown, 1))[there]
    assert ng.allclose(middle.grad.reshape(-1), ng.from_numpy(share), 1e-12)
    assert ng.allclose(x.grad, ng.from_numpy(np.where(shown > 0, memory, 0.0)), 1e-12)


@given(windows(), st.sampled_from([(4, 6), (6, 4), (2, 3, 4), (3, 2, 4)]), st.integers(2, 5))
@example(((2,), (1,), 5), (4, 6), 3)
@example(((2, 2), (12, 1), 3), (2, 3, 4), 2)
@example(((2,), (6,), 12), (4, 6), 2)  # up to the end
def test_windows_of_a_matrix_may_begin_in_one_row_and_end_in_another(
    window: tuple[Any, Any, int], shape: tuple[int, ...], factor: int
) -> None:
    at = positions(window)
    if len(set(at.tolist())) < at.size:
        return  # it can't be written to
    x = ng.arange(float(LENGTH), dtype=ng.float64).reshape(shape).requires_grad_()
    base = x * 1
    base.as_strided(*window).mul_(factor)
    expected, scale = np.arange(float(LENGTH)), np.ones(LENGTH)
    scale[at] = factor
    assert base.detach().reshape(-1).tolist() == (expected * scale).tolist()
    for _ in range(2):  # the second is of calls that are remembered
        x.grad = None
        (base.reshape(-1) * ng.from_numpy(weights(LENGTH, 1))).sum().backward(retain_graph=True)
        assert x.grad is not None
        assert x.grad.reshape(-1).tolist() == (weights(LENGTH, 1) * scale).tolist()
