"""Python kernels that are read as functions of the loop IR: what they compute, and hold."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from numba import types
from numba.core.runtime import _nrt_python as runtime
from numba.core.runtime import rtsys

from numgrad.codegen.compile.compile import kernel
from numgrad.codegen.compile.dispatchers import part
from numgrad.codegen.compile.translated import read_kernel
from numgrad.codegen.numba_private import HAS_PIPELINES, cpu_target
from tests.cases import thinned

Array = np.ndarray[Any, Any]


@part
def add_up(values, into):  # type: ignore[no-untyped-def]
    """Add the sum of some numbers to the first of others."""
    for k in range(values.size):
        into[0] += values[k]


@part
def largest(values):  # type: ignore[no-untyped-def]
    found = values[0]
    for k in range(1, values.size):
        found = values[k] if values[k] > found else found
    return found


@part
def fill_up(values, into):  # type: ignore[no-untyped-def]
    """Write some numbers into others, in a way that only Numba compiles."""
    into[1:] = values[1:]


def rows_handed_to_numbas(rows, out):  # type: ignore[no-untyped-def]
    for row in range(rows.shape[0]):
        fill_up(rows[row], out[row])


def rows_handed_on(rows, out):  # type: ignore[no-untyped-def]
    for row in range(rows.shape[0]):
        add_up(rows[row], out[row])


def parts_handed_on(rows, out):  # type: ignore[no-untyped-def]
    for row in range(rows.shape[0]):
        add_up(rows[row, 1:], out[rows.shape[0] - row - 1])
        out[row, 1] = largest(rows[:, row])


def subscripts_of_parts(rows, out):  # type: ignore[no-untyped-def]
    for row in range(rows.shape[0]):
        for k in range(rows[row].size):
            out[row][k] = rows.T[k][row] * rows[row].size


def parts_filled(rows, out):  # type: ignore[no-untyped-def]
    for row in range(rows.shape[0]):
        out[row][:] = rows[row, 0]
        out[row, 1:2] = rows[row, 1:2]


def loops_that_are_left(rows, out):  # type: ignore[no-untyped-def]
    for row in range(rows.shape[0]):
        k = 0
        while True:
            if k == rows.shape[1] or rows[row, k] > 1:
                break
            k += 1
        for column in range(rows.shape[1] - 1, -1, -1):
            if column < k:
                break
            out[row, column] += k


def bounds_of_numbers(rows, out):  # type: ignore[no-untyped-def]
    for row in range(rows.shape[0]):
        for k in range(max(row - 1, 0), min(row + 2, rows.shape[1])):
            out[row, k] = max(row, k) + min(k, 1)


def other_names(rows, out):  # type: ignore[no-untyped-def]
    """Arrays that are made, that are parts of others, and that get other names."""
    for row in range(rows.shape[0]):
        made, given = np.zeros(rows.shape[1], rows.dtype), rows[row]
        if given[0] > 0:
            continue
        here, there = made, given
        if row % 2:
            here, there = given, np.ones(rows.shape[1], rows.dtype)
        also = there
        there = here
        for k in range(also.size):
            out[row, k] = here[k] + 2 * there[k] + 4 * also[k]


def swapped_names(rows, out):  # type: ignore[no-untyped-def]
    here, there = rows[0], np.zeros(rows.shape[1], rows.dtype)
    for row in range(rows.shape[0]):
        here, there = there, here
        for k in range(rows.shape[1]):
            out[row, k] = here[k]


def of_several_numbers(rows, out):  # type: ignore[no-untyped-def]
    for row in range(rows.shape[0]):
        least, most = bounds(rows[row])
        out[row, 0] = most - least


@part
def bounds(values):  # type: ignore[no-untyped-def]
    least, most = values[0], values[0]
    for k in range(values.size):
        if values[k] < least:
            least = values[k]
            continue
        most = values[k] if values[k] > most else most
    return least, most


READ: list[Callable[..., None]] = [
    rows_handed_on,
    rows_handed_to_numbas,
    subscripts_of_parts,
    loops_that_are_left,
    bounds_of_numbers,
    other_names,
    of_several_numbers,
]
NUMBAS: list[Callable[..., None]] = [parts_handed_on, parts_filled, swapped_names]
KERNELS = READ + NUMBAS


def in_python(plain: Callable[..., None]) -> Callable[..., None]:
    """Return a function that calls no kernels."""
    calls = {each.__name__: each.py_func for each in (add_up, bounds, fill_up, largest)}
    return FunctionType(plain.__code__, {**globals(), **calls})


def read(plain: Callable[..., Any], *kinds: Any) -> Any:
    context = cpu_target.typing_context
    context.refresh()
    return read_kernel(context, plain, kinds)


def arguments(dtype: str) -> tuple[Array, Array]:
    rows = np.random.default_rng(3).normal(size=(4, 4)).astype(dtype)
    return rows, np.zeros_like(rows)


@pytest.mark.skipif(not HAS_PIPELINES, reason="Numba compiles everything")
def test_these_are_read_and_those_are_not() -> None:
    kinds = (types.Array(types.float64, 2, "C"),) * 2
    known = [read(plain, *kinds) for plain in KERNELS]
    assert [each is not None for each in known] == [plain in READ for plain in KERNELS]


@pytest.mark.sampled(0.3)
@pytest.mark.parametrize("plain", KERNELS)
def test_a_kernel_computes_what_its_python_does(plain: Callable[..., None]) -> None:
    made = kernel(plain)
    for dtype in thinned(("float64", "float32", "int64"), 3):
        (rows, out), (_, expected) = arguments(dtype), arguments(dtype)
        made(rows, out)
        in_python(plain)(rows, expected)
        np.testing.assert_allclose(out, expected, rtol=1e-6)


@pytest.mark.parametrize("plain", KERNELS)
def test_a_kernel_holds_nothing_of_what_it_was_given(plain: Callable[..., None]) -> None:
    made = kernel(plain)
    given = arguments("float64")
    alive = [weakref.ref(each) for each in given]
    made(*given)
    runtime.memsys_enable_stats()
    before = rtsys.get_allocation_stats()
    made(*given)
    after = rtsys.get_allocation_stats()
    assert after.alloc - before.alloc == after.free - before.free
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free
    del given
    gc.collect()
    assert [each() for each in alive] == [None, None]


def test_a_function_of_any_number_of_arguments_can_be_called() -> None:
    """Numba knows some as that; older ones, as functions of so many."""

    def middle(values):  # type: ignore[no-untyped-def]
        return max(values[0], values[1], values[2]) - max(values[0], 0.5)

    assert kernel(middle)(np.array([1.0, 3.0, 2.0])) == 2.0


def test_a_kernel_that_gives_an_array_is_numbas() -> None:
    def doubled(values):  # type: ignore[no-untyped-def]
        made = np.empty_like(values)
        made[0] = values[0] * 2
        return made

    assert read(doubled, types.float64[::1]) is None
    assert kernel(doubled)(np.ones(1)) == 2.0
