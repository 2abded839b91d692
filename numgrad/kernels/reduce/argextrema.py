"""argmax, argmin, and max and min with indices: one pass that carries a value and its position.

The first of equal elements wins, and the first nan wins over everything, as in PyTorch on the CPU.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from numgrad.base.tuning import ARGEXTREMA_BLOCK, THREAD_ELEMENTS_ARGEXTREMA
from numgrad.codegen.compile.compile import kernel
from numgrad.codegen.compile.entries import entry_of
from numgrad.codegen.compile.pipelines import AS_WRITTEN, LEAN
from numgrad.codegen.llvm.map_ir import Map, make_any
from numgrad.codegen.llvm.pointers import element, lesser, store
from numgrad.codegen.llvm.scalar_ir import branch_free, where
from numgrad.kernels.move.layout import Array, arrange, restore
from numgrad.kernels.reduce.driver import parts_of, share, spans_of
from numgrad.kernels.reduce.few_elements import SpecialisedCall, few_elements
from numgrad.kernels.reduce.order import PART
from numgrad.kernels.reduce.reductions import INT64, UINT8, as_bytes
from numgrad.runtime.memory import empty

__all__ = ["argmax", "argmin", "max_with_index", "min_with_index", "specialised"]


@branch_free
def above(x: Any, best: Any) -> Any:
    """Whether x is greater than the best so far, or the first nan."""
    return (x > best) | ((x != x) & (best == best))


@branch_free
def below(x: Any, best: Any) -> Any:
    """Whether x is less than the best so far, or the first nan."""
    return (x < best) | ((x != x) & (best == best))


class _Kernels(NamedTuple):
    """Kernels of one operation. They are compiled apart, for a call needs one or two of them.

    Attributes
    ----------
    of_rows : compiled function
        Stores the best elements of rows of n, and their positions, counted from `offset`.
    of_columns : compiled function
        Stores those of the first `width` columns of blocks of ``(n, inner)`` elements.
    join : compiled function
        Joins the parts of each ``(parts, inner)`` block into its first row.
    """

    of_rows: Any
    of_columns: Any
    join: Any


def _make(name: str, better: Any) -> _Kernels:
    """Return the kernels that find the elements that are better than all others."""

    def compared(x: Any, best: Any, before: Any, position: Any) -> Any:
        return where(better(x, best), (x, position), (best, before))

    any_better = make_any(better)
    begin, go_on = Map(lambda x, position: (x, position), 2), Map(compared, 2)

    def of_rows(a, values, indices, n, offset, first, last):  # type: ignore[no-untyped-def]
        for row in range(first, last):
            start = row * n
            best, position = element(a, start), 0
            # Blocks are first asked, without branches, whether they hold anything better at all:
            # seldom, once some blocks have been seen.
            for i in range(1, n, ARGEXTREMA_BLOCK):
                size = lesser(ARGEXTREMA_BLOCK, n - i)
                if any_better(a, start + i, size, best):
                    for j in range(i, i + size):
                        x = element(a, start + j)
                        if better(x, best):
                            best, position = x, j
            store(values, row, best)
            store(indices, row, offset + position)

    def of_columns(a, values, indices, n, inner, width, offset, first, last):  # type: ignore[no-untyped-def]
        for block in range(first, last):
            t, p = block * inner, block * n * inner
            begin(width, values, t, indices, t, a, p, offset)
            for i in range(1, n):
                p += inner
                go_on(width, values, t, indices, t, a, p, values, t, indices, t, offset + i)

    def join(values, indices, parts, inner):  # type: ignore[no-untyped-def]
        for block in range(0, values.size, parts * inner):
            for part in range(1, parts):
                for j in range(inner):
                    p, q = block + j, block + part * inner + j
                    if better(values[q], values[p]):
                        values[p], indices[p] = values[q], indices[q]

    kernels = []
    for function in (of_rows, of_columns, join):
        steps = AS_WRITTEN if function is of_columns else LEAN
        function.__name__ = f"{name}_{function.__name__}"
        function.__qualname__ = f"_make.{function.__name__}"  # equal names would mean equal code
        kernels.append(kernel(function, steps))
    return _Kernels(*kernels)


LEAST_ROWS = 256  # of a part


def _find(
    kernels: _Kernels,
    array: Array,
    dims: tuple[int, ...],
    keepdim: bool,
) -> tuple[Array, Array]:
    """Return values and positions; all positions are those of the dims in C order."""
    find_in_rows, find_in_columns, join_parts = kernels
    data = as_bytes(array)
    arranged = arrange(data, dims, adjacent=True, ordered=True)
    flat, outer, n, inner, _, _ = arranged
    part_rows = max(LEAST_ROWS, PART // max(inner, 1))
    parts = parts_of(n, part_rows)
    values = empty((outer * parts * inner,), data.dtype)
    indices = empty((outer * parts * inner,), np.int64)

    def run(block: Array, target: int, rows: int, columns: int, first: int, last: int) -> None:
        # A block that was gathered is one part of many, whose rows it counts from 0.
        offset = 0 if block is flat else target // inner % parts * part_rows
        for span in spans_of(rows, columns, part_rows, first, last):
            place = target + span.target
            arrays = block[span.start :], values[place:], indices[place:]
            begin = offset + span.first_row
            if columns == 1:
                find_in_rows(*arrays, span.rows, begin, 0, span.items)
            else:
                find_in_columns(*arrays, span.rows, columns, span.columns, begin, 0, span.items)

    if values.size:
        share(run, flat, outer, n, inner, part_rows, THREAD_ELEMENTS_ARGEXTREMA)
    if parts > 1:
        join_parts(values, indices, parts, inner)
        values = np.ascontiguousarray(values.reshape(outer, parts, inner)[:, 0]).reshape(-1)
        indices = np.ascontiguousarray(indices.reshape(outer, parts, inner)[:, 0]).reshape(-1)
    shape = array.shape
    return (
        restore(values, arranged, shape, dims, keepdim).view(array.dtype),
        restore(indices, arranged, shape, dims, keepdim),
    )


_MAX, _MIN = _make("argmax", above), _make("argmin", below)


def specialised(
    name: str, shape: tuple[int, ...], dtype: np.dtype[Any], dims: tuple[int, ...], keepdim: bool
) -> SpecialisedCall | None:
    """Return what does this to a C-contiguous array of few elements; None if there is no such way.

    Parameters
    ----------
    name : str
        ``"max"`` and ``"min"`` return values and positions, ``"argmax"`` and ``"argmin"``
        positions.
    shape, dtype
        Of the arrays that the function will get.
    dims, keepdim
        The dims to reduce, one or all of them, and whether they are kept.

    Examples
    --------
    >>> array = np.array([[1.0, 2.0], [4.0, 3.0]])
    >>> specialised("argmax", array.shape, array.dtype, (1,), False)(array)
    array([1, 0])
    """
    blocks = few_elements(shape, dims, keepdim)
    with_values = name in ("max", "min")
    if blocks is None or dtype.kind == "c" or (dtype.kind == "b" and not with_values):
        return None
    outer, n, inner, result = blocks
    source, empty = UINT8 if dtype.kind == "b" else dtype, np.empty
    of_rows, of_columns, _ = _MAX if name.endswith("max") else _MIN
    is_row = inner == 1
    integers = (int,) * (4 if is_row else 6)
    entry = entry_of(of_rows if is_row else of_columns, source, source, INT64, *integers)
    numbers = (n, 0, 0, outer) if is_row else (n, inner, inner, 0, 0, outer)

    def call(array: Array) -> Any:
        values, indices = empty(result, dtype), empty(result, INT64)
        entry(array.ravel(), values.ravel(), indices.ravel(), *numbers)
        return (values, indices) if with_values else indices

    return call


def max_with_index(array: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    """Return the greatest elements along one dim and their int64 positions.

    Mirrors ``torch.max`` with a dim. Where nothing is to be found, call
    `reductions.require_elements` first.

    Raises
    ------
    RuntimeError
        If the elements are complex.

    Examples
    --------
    >>> max_with_index(np.array([[1, 3, 3], [5, 4, 0]]), 1)
    (array([3, 5]), array([1, 0]))
    """
    _require_real("max", array)
    return _find(_MAX, array, (dim,) if array.ndim else (), keepdim)


def min_with_index(array: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    """Return the least elements along one dim and their int64 positions; see `max_with_index`.

    Examples
    --------
    >>> min_with_index(np.array([2.0, np.nan, 1.0]), 0)
    (array(nan), array(1))
    """
    _require_real("min", array)
    return _find(_MIN, array, (dim,) if array.ndim else (), keepdim)


def argmax(array: Array, dims: tuple[int, ...], keepdim: bool = False) -> Array:
    """Return the int64 position of the greatest element along one dim, or among all in C order.

    Mirrors ``torch.argmax``.

    Raises
    ------
    RuntimeError
        If the elements are bools or complex.

    Examples
    --------
    >>> argmax(np.array([[1, 3, 3], [5, 4, 0]]), (0, 1))
    array(3)
    """
    _require_numbers("argmax", array)
    return _find(_MAX, array, dims, keepdim)[1]


def argmin(array: Array, dims: tuple[int, ...], keepdim: bool = False) -> Array:
    """Return the int64 position of the least element; see `argmax`. Mirrors ``torch.argmin``.

    Examples
    --------
    >>> argmin(np.array([[1, 3, 3], [5, 4, 0]]), (1,), True)
    array([[0],
           [2]])
    """
    _require_numbers("argmin", array)
    return _find(_MIN, array, dims, keepdim)[1]


def _require_real(name: str, array: Array) -> None:
    if array.dtype.kind == "c":
        raise RuntimeError(f"{name}(): does not support complex input")


def _require_numbers(name: str, array: Array) -> None:
    _require_real(name, array)
    if array.dtype.kind == "b":
        raise RuntimeError(f"{name}(): does not support bool input")
