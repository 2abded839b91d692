"""Gathering: contiguous copies of every layout, whole and in blocks, and what reads them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numgrad.base.tuning import NUMPY_COPY_ELEMENTS
from numgrad.kernels.move.gather_blocks import Strided, contiguous
from numgrad.kernels.reduce import argextrema, moments, reductions
from numgrad.kernels.reduce.order import PART, TILE
from numgrad.runtime.threads import get_num_threads, set_num_threads


@st.composite
def views(draw: st.DrawFn) -> np.ndarray:
    """Draw permuted views with gaps, reversed dims and repeated ones; some have dims of size 1."""
    lengths = st.lists(st.sampled_from([1, 2, 5, 17, 40]), min_size=1, max_size=4)
    sides = draw(lengths.filter(lambda sides: np.prod(sides) < 20_000))
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
    fields = np.zeros(NUMPY_COPY_ELEMENTS + 1, [("a", np.float64), ("b", np.int32)])
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
        values, indices = argextrema.max_with_index(array, dim)
        np.testing.assert_array_equal(values, copy.max(dim))
        np.testing.assert_array_equal(indices, copy.argmax(dim))
        np.testing.assert_allclose(moments.var(array, (dim,)), copy.var(dim, ddof=1), rtol=1e-12)
        np.testing.assert_array_equal(argextrema.argmin(array, (0, 1)), copy.argmin())


# --- rows that lie apart --------------------------------------------------------------------------


def rows_apart() -> dict[str, np.ndarray]:
    """Return arrays whose rows are contiguous and whose memory is not, and some that look so."""
    generator = np.random.default_rng(0)
    matrix, column = generator.normal(size=(700, 3000)), generator.normal(size=(700, 1))
    cube = generator.normal(size=(60, 40, 400))
    return {
        "half a row": matrix[:, :1500],
        "a few columns": matrix[:, :200],
        "backwards": matrix[::-1, 5:2500],
        "one row": np.broadcast_to(matrix[:1], matrix.shape),
        "one column": np.broadcast_to(column, matrix.shape),
        "one number": np.broadcast_to(column[:1], matrix.shape),
        "windows": np.lib.stride_tricks.sliding_window_view(matrix[0], 1500),
        "blocks": cube[:, ::2],
        "one matrix of many": np.broadcast_to(cube[:1], cube.shape),
        "one column of many": np.broadcast_to(cube[:, :, :1], cube.shape),
    }


@pytest.mark.parametrize("name", rows_apart())
def test_rows_that_lie_apart_are_reduced_where_they_are(name: str) -> None:
    array = rows_apart()[name]
    before = get_num_threads()
    for count in range(1, array.ndim + 1):
        for dims in itertools.combinations(range(array.ndim), count):
            results = []
            for threads in (1, 2, 4, 16):
                set_num_threads(threads)
                results.append((reductions.sum(array, dims), reductions.amax(array, dims)))
            set_num_threads(before)
            for total, top in results:
                np.testing.assert_array_equal(total, results[0][0])
                np.testing.assert_array_equal(top, array.max(dims))
            np.testing.assert_allclose(results[0][0], array.sum(dims), rtol=1e-12, atol=1e-9)
