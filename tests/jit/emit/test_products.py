"""Products of small matrices in compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from numgrad.codegen.compile.compile import compile_functions
from numgrad.jit.emit.products import product

LAYOUTS = ["rows", "columns", "sparse", "repeated"]
SIZES = [(3, 5, 4), (1, 9, 1), (17, 8, 1), (1, 11, 13), (4, 0, 3), (2, 1, 19)]


def multiply(
    a: Any, at_a: int, strides_a: Any, b: Any, at_b: int, strides_b: Any, out: Any, size: Any
) -> None:
    """Write the product of matrices in the memory of two arrays to a third."""
    function = product("product", (strides_a, strides_b), size, out.dtype)
    compile_functions([function])(a, at_a, b, at_b, out, 0)


def laid_out(shape: tuple[int, int], layout: str, dtype: Any, random: Any) -> tuple[Any, Any, int]:
    """Return a matrix, the array in whose memory it lies, and where in that it begins."""
    rows, columns = shape
    room = random.standard_normal(4 * (rows + 1) * (columns + 1)) + 0j
    room = room.astype(dtype) if np.dtype(dtype).kind == "c" else room.real.astype(dtype)
    if layout == "rows":
        found = room[: rows * columns].reshape(shape)
    elif layout == "columns":
        found = room[: rows * columns].reshape(columns, rows).T
    elif layout == "sparse":
        found = room[: 4 * rows * columns].reshape(2 * rows, 2 * columns)[1::2, ::2]
    else:  # repeated rows
        found = np.broadcast_to(room[3 : 3 + columns], shape)
    at = found.__array_interface__["data"][0] - room.__array_interface__["data"][0]
    return found, room, at // room.itemsize


@pytest.mark.sampled(0.3)
@pytest.mark.parametrize("right", LAYOUTS)
@pytest.mark.parametrize("left", LAYOUTS)
def test_products_of_matrices_of_any_layout(left: str, right: str) -> None:
    number = 4 * LAYOUTS.index(left) + LAYOUTS.index(right)
    dtype = [np.float32, np.float64, np.complex128][number % 3]
    random = np.random.default_rng(number)
    for size in (SIZES[number % 2], SIZES[2 + number % 2], SIZES[4 + number % 2]):
        rows, inner, columns = size
        a, room_a, at_a = laid_out((rows, inner), left, dtype, random)
        b, room_b, at_b = laid_out((inner, columns), right, dtype, random)
        out = np.full((rows, columns), np.nan, dtype)
        strides_a = [step // a.itemsize for step in a.strides]
        strides_b = [step // b.itemsize for step in b.strides]
        multiply(room_a, at_a, strides_a, room_b, at_b, strides_b, out, size)
        tolerance = 1e-4 if dtype is np.float32 else 1e-13
        np.testing.assert_allclose(out, a @ b, rtol=tolerance, atol=tolerance)


def test_not_a_number_is_not_hidden_by_zeros() -> None:
    a, b = np.zeros((1, 3)), np.array([[1.0], [np.nan], [np.inf]])
    out = np.zeros((1, 1))
    multiply(a, 0, (3, 1), b, 0, (1, 1), out, (1, 3, 1))
    assert np.isnan(out[0, 0])
