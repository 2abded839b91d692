"""Small matrix products as loops, for dispatchers, where a call of BLAS would take longer.

BLAS is reached through the interpreter, which costs microseconds and the GIL. These are loops that
LLVM vectorises along what is contiguous, with sizes and strides written out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numgrad.codegen.loops import (
    ZERO,
    Assign,
    Do,
    Expression,
    For,
    Function,
    Load,
    Name,
    Number,
    Statement,
    Store,
    call,
    combine,
    names,
    plus,
    times,
    type_code,
)

__all__ = ["product"]

(_DISTINCT,) = names("numgrad.codegen.loop_runtime", "distinct")
_SUMS = 8  # of a dot product, side by side
_ROWS = 4  # that are added up in one go


def product(
    name: str,
    strides: tuple[Sequence[int], Sequence[int]],
    sizes: tuple[int, int, int],
    dtype: Any,
) -> Function:
    """Return the function of two matrices and their product, and where they begin in their memory.

    Parameters
    ----------
    name : str
    strides : tuple of two sequences of int
        Of the dims of each matrix, in elements; those of the product are of a contiguous one.
    sizes : tuple of int
        The product is of `sizes[0]` x `sizes[1]` and `sizes[1]` x `sizes[2]`.
    dtype : numpy.dtype
    """
    (a0, a1), (b0, b1) = strides
    rows, inner, columns = sizes
    zero = call(type_code(dtype), 0)
    row = plus("at_a", times("i", a0))
    target = Name("at_out")
    lines: list[Statement] = [Do(call(_DISTINCT))]
    if columns == 1 and a1 == 1:
        found = _dot(("a", row, 1), ("b", Name("at_b"), b0), inner, zero)
        found.append(Store(Name("out"), plus(target, "i"), Name("total")))
        lines.append(For("i", ZERO, Number(rows), found))
    elif columns == 1:  # a combination of columns
        weights, vectors = ("b", Name("at_b"), b0), ("a", Name("at_a"), a1, a0)
        lines += _combination(weights, vectors, target, (inner, rows), zero)
    elif b1 == 1 or a1 != 1 or b0 != 1:
        vectors = ("b", Name("at_b"), b0, b1)
        start = plus(target, times("i", columns))
        found = _combination(("a", row, a1), vectors, start, (inner, columns), zero)
        lines.append(For("i", ZERO, Number(rows), found))
    else:
        column = plus("at_b", times("j", b1))
        found = _dot(("a", row, 1), ("b", column, 1), inner, zero)
        found.append(Store(Name("out"), plus(target, times("i", columns), "j"), Name("total")))
        lines.append(For("i", ZERO, Number(rows), [For("j", ZERO, Number(columns), found)]))
    return Function(name, ["a", "at_a", "b", "at_b", "out", "at_out"], lines)


def _combination(
    weights: tuple[str, Expression, int],
    vectors: tuple[str, Expression, int, int],
    start: Expression,
    sizes: tuple[int, int],
    zero: Expression,
) -> list[Statement]:
    """Return what writes the sum of vectors, each with its weight, one after the other.

    Parameters
    ----------
    weights : tuple
        The array, the position of the first and the step to the next.
    vectors : tuple
        The same, and the step to the next element of a vector.
    start : Expression
        Where the sum is written.
    sizes : tuple of int
        How many vectors there are, and of how many elements.
    zero : Expression
    """
    array, at, step = weights
    source, first, stride, each = vectors
    count, length = sizes
    place = plus(start, "j")

    def added(several: int) -> list[Statement]:
        """Add some vectors, the first of which is number ``k``."""
        total: Expression = Load(Name("out"), place)
        for n in range(several):
            position = plus(first, times(plus("k", n), stride), times("j", each))
            total = combine("+", total, times(f"w{n}", Load(Name(source), position)))
        read = [
            Assign(f"w{n}", Load(Name(array), plus(at, times(plus("k", n), step))))
            for n in range(several)
        ]
        return [*read, For("j", ZERO, Number(length), [Store(Name("out"), place, total)])]

    whole = count - count % _ROWS
    lines: list[Statement] = [For("j", ZERO, Number(length), [Store(Name("out"), place, zero)])]
    if whole:
        lines.append(For("k", ZERO, Number(whole), added(_ROWS), Number(_ROWS)))
    if whole < count:
        lines.append(For("k", Number(whole), Number(count), added(1)))
    return lines


def _dot(
    one: tuple[str, Expression, int],
    other: tuple[str, Expression, int],
    count: int,
    zero: Expression,
) -> list[Statement]:
    """Return what computes ``total``, a dot product, in eight sums, which are added pairwise.

    Parameters
    ----------
    one, other : tuple
        A vector: its array, the position of the first element and the step to the next. Vectors
        of which the second is not contiguous are added up in one sum.
    count : int
        Their length.
    zero : Expression
    """

    def term(k: Expression) -> Expression:
        return combine(
            "*", *(Load(Name(array), plus(at, times(k, step))) for array, at, step in (one, other))
        )

    def added(target: str, k: Expression) -> Statement:
        return Assign(target, combine("+", target, term(k)))

    whole = count - count % _SUMS if other[2] == 1 else 0
    lines: list[Statement] = [Assign(f"s{n}", zero) for n in range(_SUMS)]
    if whole:
        eight = [added(f"s{n}", plus("k", n)) for n in range(_SUMS)]
        lines.append(For("k", ZERO, Number(whole), eight, Number(_SUMS)))
    lines.append(Assign("rest", zero))
    if whole < count:
        lines.append(For("k", Number(whole), Number(count), [added("rest", Name("k"))]))
    even, odd = (
        combine("+", combine("+", f"s{n}", f"s{n + 4}"), combine("+", f"s{n + 2}", f"s{n + 6}"))
        for n in (0, 1)
    )
    lines.append(Assign("total", combine("+", combine("+", even, odd), "rest")))
    return lines
