"""Piecewise polynomials with coefficients from a table, without branches.

A piece lies about each multiple of a power of two; the argument chooses one, and its distance from
the middle of that piece, which is exact, is what the polynomial is of. So the error is little more
than that of the last addition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.codegen.llvm.scalar_ir import cast, pick, where
from numgrad.math.real.bits import fma
from numgrad.math.real.formats import Format
from numgrad.math.real.polynomials import make_polynomial
from numgrad.math.real.special_tables import TABLES

__all__ = ["limited", "make_locate", "make_pieces", "make_series"]

Array = np.ndarray[Any, Any]


def _table(format: Format, name: str) -> Array:
    """Return the coefficients of a function: a row for each power, the highest first."""
    rows = format.choose(*TABLES[name]).split(";")[:-1]
    return np.array([np.array(row.split(), format.number) for row in rows])


def make_series(format: Format, name: str, chains: int = 1) -> Callable[[Any], Any]:
    """Return the polynomial of a table that has but one piece."""
    return make_polynomial(format.number, _table(format, name)[:, 0].tolist(), chains=chains)


def make_locate(format: Format, width: float, first: int = 0) -> Callable[[Any], tuple[Any, Any]]:
    """Return a function that gives the number of the piece an argument is in, and its distance.

    That is the distance from the middle of the piece. The argument, never nan, must be in the
    table.
    """
    nearest, step, scale = format.nearest(), format.number(width), format.number(1 / width)
    start = format.integer(first)

    def locate(u):  # type: ignore[no-untyped-def]
        whole, k = nearest(u, scale)
        return k - start, fma(-whole, step, u)

    return locate


def make_pieces(format: Format, *names: str) -> Callable[[Any, Any], Any]:
    """Return the function of a piece's number and a distance from its middle.

    The pieces of several tables are numbered through.
    """
    tables = [_table(format, name) for name in names]
    size = max(len(table) for table in tables)
    filled = [np.pad(table, ((size - len(table), 0), (0, 0))) for table in tables]
    rows = [np.ascontiguousarray(row) for row in np.concatenate(filled, axis=1)]

    def pieces(index, distance):  # type: ignore[no-untyped-def]
        place = cast(np.int64, index)
        value = pick(rows[0], place)
        for row in rows[1:]:
            value = fma(value, distance, pick(row, place))
        return value

    return pieces


def limited(x: Any, low: Any, high: Any) -> Any:
    """Return a number limited to a range; the upper end for nan."""
    return where(x < high, where(x > low, x, low), high)
