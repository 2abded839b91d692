"""Elementwise kernels for float16 as well: in float32, with the results rounded.

The kernels themselves know float32. That an operand is float16 is found out where a call is
prepared, once for operands of given dtypes, so that other calls take no longer for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.base.halves import HALF, has_half, narrowed, wide_dtype, widened
from numgrad.base.tuning import REMEMBERED_CALLS
from numgrad.kernels.pointwise.elementwise import Elementwise

__all__ = ["ElementwiseKernel"]

Array = np.ndarray[Any, Any]


class ElementwiseKernel(Elementwise):
    """An `Elementwise` that takes and gives float16, too."""

    def short(
        self,
        shape: tuple[int, ...],
        operands: Sequence[Any],
        dtypes: Sequence[np.dtype[Any]],
        result: np.dtype[Any],
    ) -> Callable[..., Array] | None:
        """Return the quickest function for such operands; see `Elementwise.short`."""
        if result != HALF and HALF not in dtypes:
            return super().short(shape, operands, dtypes, result)
        fits = tuple([dtype == HALF for dtype in dtypes])

        def fitted(values: Sequence[Any]) -> list[Any]:
            return [
                widened(narrowed(value)) if fit and type(value) is np.ndarray else value
                for value, fit in zip(values, fits, strict=True)
            ]

        wide = [wide_dtype(dtype) for dtype in dtypes]
        call = super().short(shape, fitted(operands), wide, wide_dtype(result))
        if call is None:
            return None
        known = call

        def compute(*values: Any) -> Array:
            array = known(*fitted(values))
            return narrowed(array) if result == HALF else array

        return compute

    def _prepare(
        self, key: Any, operands: Sequence[Any], dtypes: Sequence[np.dtype[Any]]
    ) -> tuple[Any, Any]:
        """Find out what a call takes, and remember it."""
        if HALF not in dtypes and not has_half(operands):
            return super()._prepare(key, operands, dtypes)
        shape, _, shapes, *_ = key
        results = list(dtypes)
        wide = [wide_dtype(dtype) for dtype in results]

        def call(operands: Sequence[Any], outputs: Sequence[Array] | None) -> list[Array]:
            values = [widened(operand) for operand in operands]
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

        if len(self.calls) >= REMEMBERED_CALLS:
            self.calls.clear()
        self.calls[key] = call, None
        return call, None
