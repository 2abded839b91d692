"""Small matrix products as loops, for dispatchers, where a call of BLAS would take longer.

BLAS is reached through the interpreter, which costs microseconds and the GIL. These are loops that
LLVM vectorises along what is contiguous.
"""

from __future__ import annotations

import numpy as np

from numgrad.codegen.compile.compile import kernel
from numgrad.codegen.compile.dispatchers import inline
from numgrad.codegen.llvm.pointers import element, store
from numgrad.codegen.llvm.width import use_wide_vectors
from numgrad.codegen.loop_runtime import distinct

__all__ = ["multiply"]


@kernel
def multiply(  # type: ignore[no-untyped-def]
    a, at_a, a0, a1, b, at_b, b0, b1, out, rows, inner, columns, zero
):
    """Write the product of two matrices to a contiguous one.

    Parameters
    ----------
    a, at_a, a0, a1 : array and int
        The left matrix: in whose memory it lies, where, and the strides of its dims, in elements.
    b, at_b, b0, b1 : array and int
        The right one.
    out : array
    rows, inner, columns : int
        The product is of `rows` x `inner` and `inner` x `columns`.
    zero : number
        0 in the dtype of the arrays.
    """
    distinct()
    use_wide_vectors()
    if columns == 1 and a1 == 1:
        for i in range(rows):
            store(out, i, _dot(a, at_a + i * a0, b, at_b, b0, inner, zero))
    elif columns == 1:  # a combination of columns
        _combine(b, at_b, b0, a, at_a, a1, a0, out, 0, inner, rows)
    elif b1 == 1 or a1 != 1 or b0 != 1:
        for i in range(rows):
            _combine(a, at_a + i * a0, a1, b, at_b, b0, b1, out, i * columns, inner, columns)
    else:
        for i in range(rows):
            for j in range(columns):
                value = _dot(a, at_a + i * a0, b, at_b + j * b1, 1, inner, zero)
                store(out, i * columns + j, value)


@inline
def _combine(  # type: ignore[no-untyped-def]
    weights, at, step, b, at_b, b0, b1, out, start, count, columns
):
    """Write the sum of `count` rows of a matrix, each with its weight."""
    for j in range(np.uintp(columns)):
        store(out, start + j, 0)
    k = 0
    while k + 4 <= count:
        w0 = element(weights, at + k * step)
        w1 = element(weights, at + (k + 1) * step)
        w2 = element(weights, at + (k + 2) * step)
        w3 = element(weights, at + (k + 3) * step)
        first = at_b + k * b0
        if b1 == 1:
            for j in range(np.uintp(columns)):
                total = element(out, start + j) + w0 * element(b, first + j)
                total += w1 * element(b, first + b0 + j)
                total += w2 * element(b, first + 2 * b0 + j)
                total += w3 * element(b, first + 3 * b0 + j)
                store(out, start + j, total)
        else:
            for j in range(columns):
                total = element(out, start + j) + w0 * element(b, first + j * b1)
                total += w1 * element(b, first + b0 + j * b1)
                total += w2 * element(b, first + 2 * b0 + j * b1)
                total += w3 * element(b, first + 3 * b0 + j * b1)
                store(out, start + j, total)
        k += 4
    while k < count:
        weight = element(weights, at + k * step)
        first = at_b + k * b0
        for j in range(columns):
            store(out, start + j, element(out, start + j) + weight * element(b, first + j * b1))
        k += 1


@inline
def _dot(a, at_a, b, at_b, step, count, zero):  # type: ignore[no-untyped-def]
    """Return a dot product with a contiguous vector: in eight sums, which are added pairwise."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = zero
    k = 0
    if step == 1:
        while k + 8 <= count:
            s0 += element(a, at_a + k) * element(b, at_b + k)
            s1 += element(a, at_a + k + 1) * element(b, at_b + k + 1)
            s2 += element(a, at_a + k + 2) * element(b, at_b + k + 2)
            s3 += element(a, at_a + k + 3) * element(b, at_b + k + 3)
            s4 += element(a, at_a + k + 4) * element(b, at_b + k + 4)
            s5 += element(a, at_a + k + 5) * element(b, at_b + k + 5)
            s6 += element(a, at_a + k + 6) * element(b, at_b + k + 6)
            s7 += element(a, at_a + k + 7) * element(b, at_b + k + 7)
            k += 8
    rest = zero
    while k < count:
        rest += element(a, at_a + k) * element(b, at_b + k * step)
        k += 1
    return ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7)) + rest
