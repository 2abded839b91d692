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
from numgrad.base.halves import HALF, WIDE, narrowed, wide_dtype
from numgrad.kernels.move.loop_order import ResultOrder
from numgrad.kernels.move.memory_order import as_dtype
from numgrad.kernels.move.strides import strided_view
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


def _wide(value: Array) -> Array:
    """Return an array of float16 in float32, in the order of memory that results have for it.

    Elements that are one stay one: how such an array lies decides about no dim.
    """
    if 0 not in value.strides or not value.size:
        return as_dtype(value, WIDE)
    once = as_dtype(value[tuple([slice(None if step else 1) for step in value.strides])], WIDE)
    steps = [
        n // WIDE.itemsize if own else 0 for n, own in zip(once.strides, value.strides, strict=True)
    ]
    return strided_view(once, (value.shape, tuple(steps), 0))


@silent
def _narrow(array: Array) -> Array:
    """Return an array of another dtype in float16, in the order of memory that results have."""
    narrow: Array = as_dtype(array, HALF)
    return narrow


class ElementwiseKernel(Elementwise):
    """An `Elementwise` that takes and gives float16, too.

    Numbers at the places `wide` are not rounded to it.
    """

    wide: frozenset[int] = frozenset()

    def function_for(
        self,
        shape: tuple[int, ...],
        operands: Sequence[Any],
        casts: Sequence[np.dtype[Any]],
        dtypes: Sequence[np.dtype[Any]],
        shapes: Sequence[tuple[int, ...]] | None = None,
        *,
        several: bool = True,
        lying: Sequence[Any] | ResultOrder | None = None,
    ) -> Callable[..., Any]:
        """Return what computes the outputs for such operands; see `Elementwise.function_for`."""
        if HALF not in dtypes and HALF not in casts:
            return super().function_for(
                shape, operands, casts, dtypes, shapes, several=several, lying=lying
            )
        fits = [dtype == HALF for dtype in casts]
        rounding = [fit and at not in self.wide for at, fit in enumerate(fits)]

        def fitted(values: Sequence[Any]) -> list[Any]:
            return [
                (_wide(value if value.dtype == HALF else _narrow(value)) if fit else value)
                if type(value) is np.ndarray
                else (rounded(value) if rounds else value)
                for value, fit, rounds in zip(values, fits, rounding, strict=True)
            ]

        inner = super().function_for(
            shape,
            fitted(operands),
            [wide_dtype(dtype) for dtype in casts],
            [wide_dtype(dtype) for dtype in dtypes],
            shapes,
            several=several,
            lying=lying
            or [
                as_dtype(value, cast) if type(value) is np.ndarray else value
                for value, cast in zip(operands, casts, strict=True)
            ],
        )
        if not several:
            (narrows,) = [dtype == HALF for dtype in dtypes]

            def compute(*values: Any) -> Array:
                array = inner(*fitted(values))
                return narrowed(array) if narrows else array

            return compute

        def compute_all(*values: Any) -> list[Array]:
            return [
                narrowed(array) if dtype == HALF else array
                for array, dtype in zip(inner(*fitted(values)), dtypes, strict=True)
            ]

        return compute_all
