"""Gathering: contiguous copies of every layout, whole and in blocks, and what reads them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numgrad.kernels import moments, packing, positions, reductions
from numgrad.kernels.fold_loops import PART, TILE
from numgrad.kernels.packing import Strided, contiguous


@st.composite
def views(draw: st.DrawFn) -> np.ndarray:
    """Draw permuted views with gaps, reversed dims and repeated ones; some have dims of size 1."""
    sides = draw(st.lists(st.sampled_from([1, 2, 5, 17, 40]), min_size=1, max_size=4))
    steps = [draw(st.sampled_from([1, -1, 2, -3])) for _ in sides]
    base = np.arange(np.prod([n * abs(s) for n, s in zip(sides, steps, strict=True)]))
    array = base.reshape([n * abs(s) for n, s in zip(sides, steps, strict=True)])
    array = array[tuple(slice(None, None, step) for step in steps)]
    if draw(st.booleans()):
        array = np.broadcast_to(array[..., None], (*array.shape, 3))
    return array.transpose(draw(st.permutations(range(array.ndim))))


@given(views())
def test_all_elements_are_copied_in_c_order(array: np.ndarray) -> None:
    np.testing.assert_array_equal(Strided(array).all(), array.reshape(-1))


@given(views(), st.data())
def test_a_block_is_a_part_of_some_rows(array: np.ndarray, data: st.DataObject) -> None:
    width = data.draw(st.integers(1, array.size))
    rows = data.draw(st.integers(1, array.size // width))
    columns = data.draw(st.integers(1, width))
    first = data.draw(st.integers(0, array.size - (rows - 1) * width - columns))
    flat = array.reshape(-1)
    expected = [flat[first + row * width :][:columns] for row in range(rows)]
    found = Strided(array).block(first, rows, columns, width)
    np.testing.assert_array_equal(found, np.concatenate(expected))


def test_contiguous_elements_are_not_copied() -> None:
    array = np.zeros((3, 4))
    assert np.shares_memory(contiguous(array), array)
    assert not np.shares_memory(contiguous(array.T), array)


def test_strides_that_split_an_element_are_left_to_numpy() -> None:
    fields = np.zeros(packing.SMALL + 1, [("a", np.float64), ("b", np.int32)])
    fields["a"] = np.arange(fields.size)
    np.testing.assert_array_equal(contiguous(fields["a"]), np.arange(fields.size))


SHAPES = {"rows": (300, 700), "long": (3, PART + 900), "wide": (40, 2 * TILE + 300)}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("step", [2, -3])
def test_reductions_of_gaps_have_the_values_of_a_copy(shape: tuple[int, int], step: int) -> None:
    stored = np.random.default_rng(0).integers(-99, 99, (shape[0], shape[1] * abs(step)))
    view = stored.astype(np.float64)[:, ::step]
    for array, dim in itertools.product((view, view.T), (0, 1)):
        copy = np.ascontiguousarray(array)
        np.testing.assert_array_equal(reductions.sum(array, (dim,)), copy.sum(dim))
        values, indices = positions.max_with_index(array, dim)
        np.testing.assert_array_equal(values, copy.max(dim))
        np.testing.assert_array_equal(indices, copy.argmax(dim))
        np.testing.assert_allclose(moments.var(array, (dim,)), copy.var(dim, ddof=1), rtol=1e-12)
        np.testing.assert_array_equal(positions.argmin(array, (0, 1)), copy.argmin())
