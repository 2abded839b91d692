"""Elementwise kernels for float16 as well: in float32, with the results rounded.

A number beside float16 stands for a tensor, and is rounded as one, unless it is a factor of a kind
that PyTorch takes as float32. The kernels themselves know float32. That an operand is float16 is
found out where a call is prepared, once for operands of given dtypes, so that other calls take no
longer for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.base.halves import HALF, WIDE, has_half, narrowed, wide_dtype
from numgrad.kernels.move.memory_order import as_dtype
from numgrad.kernels.pointwise.elementwise import Elementwise

__all__ = ["ElementwiseKernel", "rounded"]

Array = np.ndarray[Any, Any]


@silent
def rounded(value: Any) -> float:
    """Return a number as float16 holds it, which is inf for a great one.

    >>> rounded(0.1), rounded(70000)
    (0.0999755859375, inf)
    """
    return float(np.asarray(float(value)).astype(WIDE).astype(HALF))


def _wide(value: Any) -> Any:
    """Return an array of float16 in float32, in the order of memory that results have for it."""
    return as_dtype(value, WIDE) if type(value) is np.ndarray and value.dtype == HALF else value


class ElementwiseKernel(Elementwise):
    """An `Elementwise` that takes and gives float16, too.

    Numbers at the places `wide` are not rounded to it.
    """

    wide: frozenset[int] = frozenset()

    def specialised(
        self,
        shape: tuple[int, ...],
        operands: Sequence[Any],
        dtypes: Sequence[np.dtype[Any]],
        result: np.dtype[Any],
    ) -> Callable[..., Array] | None:
        """Return the quickest function for such operands; see `Elementwise.specialised`."""
        if result != HALF and HALF not in dtypes:
            return super().specialised(shape, operands, dtypes, result)
        fits = tuple([dtype == HALF for dtype in dtypes])

        rounding = [fit and at not in self.wide for at, fit in enumerate(fits)]

        def fitted(values: Sequence[Any]) -> list[Any]:
            return [
                (_wide(value if value.dtype == HALF else narrowed(value)) if fit else value)
                if type(value) is np.ndarray
                else (rounded(value) if rounds else value)
                for value, fit, rounds in zip(values, fits, rounding, strict=True)
            ]

        wide = [wide_dtype(dtype) for dtype in dtypes]
        call = super().specialised(shape, fitted(operands), wide, wide_dtype(result))
        if call is None:
            return None
        known = call

        def compute(*values: Any) -> Array:
            array = known(*fitted(values))
            return narrowed(array) if result == HALF else array

        return compute

    def _prepare(
        self,
        shape: tuple[int, ...],
        is_new: bool,
        shapes: Sequence[tuple[int, ...]] | None,
        operands: Sequence[Any],
        dtypes: Sequence[np.dtype[Any]],
    ) -> tuple[Any, Any]:
        """Find out what a call takes."""
        if HALF not in dtypes and not has_half(operands):
            return super()._prepare(shape, is_new, shapes, operands, dtypes)
        results = list(dtypes)
        wide = [wide_dtype(dtype) for dtype in results]

        def call(operands: Sequence[Any], outputs: Sequence[Array] | None) -> list[Array]:
            values = [_wide(operand) for operand in operands]
            arrays = self(shape, values, wide, None, shapes)
            found = [
                narrowed(array) if dtype == HALF else array
                for array, dtype in zip(arrays, results, strict=True)
            ]
            if outputs is None:
                return found
            for output, array in zip(outputs, found, strict=True):
                output[...] = array
            return list(outputs)

        return call, None
