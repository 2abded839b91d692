"""Products of float16 numbers, each step of them rounded, as PyTorch computes these.

Sums are added in float32 and rounded once. Products are not: an inf on the way stays, whatever is
multiplied with it next.
"""

from __future__ import annotations

import math

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.base.halves import HALF, WIDE
from numgrad.codegen.compile.compile import kernel
from numgrad.kernels.move.layout import Array

__all__ = ["prod_of_halves"]


@kernel
def _multiply(rows, products):  # type: ignore[no-untyped-def]
    """Multiply the numbers of each row from the left, and round to eleven bits after each step.

    Of float32 those are the upper bits: half a unit of the last one is added, less the least where
    that bit is 0, and the rest cut off. Below 2**-14 there are fewer, which a sum with a number is
    rounded to whose unit in float32 is the least number of float16.
    """
    least, shift = np.float32(2.0**-14), np.float32(0.75)
    for i in range(rows.shape[0]):
        total = np.float32(1.0)
        for j in range(rows.shape[1]):
            total = total * rows[i, j]
            size = abs(total)
            if size < least:
                small = (size + shift) - shift
                total = -small if np.signbit(total) else small
            elif size < np.float32(65520.0):
                bits = np.int64(np.float32(total).view(np.uint32))
                bits = (bits + 0xFFF + ((bits >> 13) & 1)) & 0xFFFFE000
                total = np.uint32(bits).view(np.float32)
            elif size == size:
                total = np.float32(-math.inf) if total < np.float32(0.0) else np.float32(math.inf)
        products[i] = total


@silent
def prod_of_halves(array: Array, dims: tuple[int, ...], keepdim: bool = False) -> Array:
    """Multiply float16 numbers in the order in which they lie in memory. Mirrors ``torch.prod``.

    Examples
    --------
    >>> prod_of_halves(np.array([300.0, 300.0, 1 / 3], np.float16), (0,))
    array(inf, dtype=float16)
    """
    others = [dim for dim in range(array.ndim) if dim not in dims]
    order = sorted(dims, key=lambda dim: -abs(array.strides[dim]))
    shape = tuple([array.shape[dim] for dim in others])
    moved = np.ascontiguousarray(array.transpose([*others, *order]), WIDE)
    rows = moved.reshape(math.prod(shape), math.prod([array.shape[dim] for dim in dims]))
    products = np.empty(len(rows), WIDE)
    _multiply(rows, products)
    if keepdim:
        shape = tuple([1 if dim in dims else n for dim, n in enumerate(array.shape)])
    return np.asarray(products.astype(HALF).reshape(shape))
