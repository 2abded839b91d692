"""What moves elements is lowered to views, joins and updates: the same numbers, and no calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from tests.cases import examples

Draw = Callable[[st.SearchStrategy[Any]], Any]
Move = Callable[[Any], Any]
small = st.integers(-2, 2)


def two_dims(draw: Draw, x: Any) -> tuple[int, int]:
    first, second = draw(st.permutations(range(x.ndim)))[:2]
    return first, second


def padded(draw: Draw, x: Any) -> Move:
    pads = [draw(st.integers(-(n // 2), 2)) for n in reversed(x.shape) for _ in range(2)]
    value = draw(st.sampled_from([0.0, 1.5, -2]))
    return lambda x: ng.constant_pad_nd(x, pads, value)


def diagonal_matrix(draw: Draw, x: Any) -> Move:
    offset = draw(small)
    return lambda x: x.flatten().diag(offset)


def diagonal_copy(draw: Draw, x: Any) -> Move:
    offset = draw(small)
    return lambda x: x.flatten(1).diag(offset)


def embedded(draw: Draw, x: Any) -> Move:
    offset, dims = draw(small), two_dims(draw, x)
    return lambda x: ng.diag_embed(x, offset, *dims)


def gradient_of_diagonal(draw: Draw, x: Any) -> Move:
    offset, dims = draw(small), two_dims(draw, x)
    return ng.func.grad(lambda x: (x.diagonal(offset, *dims) ** 2).sum())


def scattered_diagonal(draw: Draw, x: Any) -> Move:
    offset, dims = draw(small), two_dims(draw, x)
    return lambda x: ng.diagonal_scatter(x, x.diagonal(offset, *dims) * 2, offset, *dims)


def scattered_slice(draw: Draw, x: Any) -> Move:
    dim = draw(st.integers(0, x.ndim - 1))
    start, step = draw(st.integers(0, x.shape[dim])), draw(st.integers(1, 2))
    where = (slice(None),) * dim + (slice(start, None, step),)
    return lambda x: ng.slice_scatter(x, x[where] * 2, dim, start, None, step)


def scattered_row(draw: Draw, x: Any) -> Move:
    dim = draw(st.integers(0, x.ndim - 1))
    return lambda x: ng.select_scatter(x, x.select(dim, 0) * 2, dim, -1)


def masked(draw: Draw, x: Any) -> Move:
    bound = draw(st.floats(-1, 1))
    if draw(st.booleans()):
        return lambda x: x.masked_fill(x > bound, 2.0)
    return lambda x: x.masked_fill(x > bound, x.sum())


def repeated(draw: Draw, x: Any) -> Move:
    counts = draw(st.lists(st.integers(0, 2), min_size=x.ndim, max_size=x.ndim + 1))
    return lambda x: x.repeat(*counts)


def rolled(draw: Draw, x: Any) -> Move:
    if draw(st.booleans()):
        by = draw(st.integers(-5, 5))
        return lambda x: x.roll(by)
    several, dims = (draw(small), draw(small)), two_dims(draw, x)
    return lambda x: x.roll(several, dims)


def turned(draw: Draw, x: Any) -> Move:
    times, dims = draw(small), two_dims(draw, x)
    return lambda x: x.rot90(times, dims)


MOVES = [
    padded,
    diagonal_matrix,
    diagonal_copy,
    embedded,
    gradient_of_diagonal,
    scattered_diagonal,
    scattered_slice,
    scattered_row,
    masked,
    repeated,
    rolled,
    turned,
]


@pytest.mark.sampled(0.24)
@pytest.mark.parametrize("moved", MOVES)
@settings(max_examples=examples(6, in_sample=2))
@given(st.data())
def test_numbers_are_eager_ones_without_a_call(
    moved: Callable[[Draw, Any], Move], data: st.DataObject
) -> None:
    shape = data.draw(st.lists(st.integers(1, 4), min_size=2, max_size=3))
    x = np.random.default_rng(len(shape)).normal(size=shape)
    if data.draw(st.booleans()):
        x = np.asfortranarray(x)
    tensor = ng.from_numpy(x)
    move = moved(data.draw, tensor)

    def function(x: Any) -> tuple[Any, Any]:
        result = move(x * 1)
        weights = ng.arange(1.0, result.numel() + 1, dtype=x.dtype).reshape(result.shape)
        return result, ng.func.grad(lambda x: (move(x * 1) ** 2 * weights).sum())(x)

    wanted = [each.numpy() for each in function(tensor)]
    lowered = ng.jit(function).lower(tensor)
    assert " = call(" not in str(lowered.graph), lowered.graph
    for found in (ng.jit(function)(tensor), lowered.dispatcher(x)):
        for one, other in zip(found, wanted, strict=True):
            assert np.asarray(one).shape == other.shape
            assert np.asarray(one).tobytes("C") == other.tobytes("C")
