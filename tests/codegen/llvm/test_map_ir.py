"""Maps: branch-free functions of all elements, whole vectors and what is left of one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from numgrad.codegen.compile.compile import kernel
from numgrad.codegen.compile.pipelines import AS_WRITTEN
from numgrad.codegen.llvm.map_ir import Map, make_any, make_blockwise
from numgrad.codegen.llvm.pointers import release, scratch
from numgrad.codegen.llvm.scalar_ir import where

DTYPES = [np.float32, np.float64, np.int32, np.int64, np.uint8]
COUNTS = [0, 1, 7, 8, 15, 16, 17, 31, 64, 65, 130]

total_and_greater = Map(lambda x, y, number: (x + y * number, where(x > y, x, y)), 2)
above = make_any(lambda x, number: x > number)
weighted = make_blockwise(lambda a, b, p, q: (a - p) * q + b)


@kernel
def fill(count, totals, greater, x, y, number):  # type: ignore[no-untyped-def]
    total_and_greater(count, totals, 1, greater, 0, x, 2, y, 0, number)


@kernel
def is_any_above(x, start, count, number):  # type: ignore[no-untyped-def]
    return above(x, start, count, number)


weighted_rows, weighted_columns = weighted


def _fill_rows(a, b, out, p, q, n, first, last):  # type: ignore[no-untyped-def]
    weighted_rows(a, b, out, p, q, n, 1, 1, first, last)


def _fill_columns(a, b, out, p, q, n, inner, width, first, last):  # type: ignore[no-untyped-def]
    weighted_columns(a, b, out, p, q, n, inner, width, first, last)


fill_rows, fill_columns = kernel(_fill_rows, AS_WRITTEN), kernel(_fill_columns, AS_WRITTEN)


def random(dtype: Any, *shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 100, shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", COUNTS)
def test_every_element_is_stored_and_nothing_behind_it(count: int, dtype: Any) -> None:
    x, y = random(dtype, 140), random(dtype, 140)[::-1].copy()
    totals, greater = np.full(140, 3, dtype), np.full(140, 3, dtype)
    number = dtype(3)
    fill(count, totals, greater, x, y, number)
    own = x[2 : 2 + count]
    np.testing.assert_array_equal(totals[1 : 1 + count], own + y[:count] * number)
    np.testing.assert_array_equal(greater[:count], np.maximum(own, y[:count]))
    assert (totals[1 + count :] == 3).all()
    assert (greater[count:] == 3).all()
    assert totals[0] == 3


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", COUNTS)
def test_any_looks_at_these_elements_and_no_others(count: int, dtype: Any) -> None:
    x = np.zeros(140, dtype)
    x[2], x[3 + count] = 9, 9
    assert not is_any_above(x, 3, count, dtype(5))
    for place in range(count):
        x[3 + place] = 6
        assert is_any_above(x, 3, count, dtype(5))
        x[3 + place] = 5


@pytest.mark.parametrize("n", [1, 5, 16, 37])
def test_rows_have_numbers_of_their_own(n: int) -> None:
    a, b = random(float, 4, n), random(float, 4, n)[::-1].copy()
    p, q = random(float, 4), random(float, 4) + 1
    out = np.zeros((4, n))
    fill_rows(a.ravel(), b.ravel(), out.ravel(), p, q, n, 1, 3)
    expected = (a - p[:, None]) * q[:, None] + b
    expected[[0, 3]] = 0
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("width", [1, 5, 16, 37])
def test_columns_have_numbers_of_their_own(width: int) -> None:
    a, b = random(float, 4, 3, 37), random(float, 4, 3, 37)[::-1].copy()
    p, q = random(float, 4, 37), random(float, 4, 37) + 1
    out = np.zeros((4, 3, 37))
    fill_columns(a.ravel(), b.ravel(), out.ravel(), p.ravel(), q.ravel(), 3, 37, width, 1, 3)
    expected = (a - p[:, None]) * q[:, None] + b
    expected[[0, 3]] = 0
    expected[:, :, width:] = 0
    np.testing.assert_array_equal(out, expected)


def test_scratch_is_room_for_so_many_elements() -> None:
    @kernel
    def reversed_sums(x):  # type: ignore[no-untyped-def]
        room = scratch(x, x.size)
        total = x.dtype.type(0)
        for i in range(x.size):
            total += x[i]
            room[x.size - 1 - i] = total
        first = room[0]
        release(room)
        return first

    assert reversed_sums(np.arange(1000.0)) == 499500


def test_python_cannot_call_a_map() -> None:
    with pytest.raises(TypeError, match="part of kernels"):
        total_and_greater(1, np.zeros(1))
