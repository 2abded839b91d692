"""How often each integer occurs: bincount."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.graph.recorder import refuse_shape_of
from numgrad.graph.tensor import Tensor, wrap
from numgrad.kernels.search.counting import counted
from numgrad.ops.core.declare import NotDifferentiablePrimitive
from numgrad.ops.movement.casts import cast
from numgrad.ops.signatures.declared import declare

__all__ = ["bincount"]

Array = np.ndarray[Any, Any]

_BINCOUNT_OF_WEIGHTS = NotDifferentiablePrimitive(
    "bincount_of_weights",
    "bincount",
    lambda weights, values, length: counted(values, weights, length),
    ["weights"],
    [None],
)
_COUNTED = frozenset(map(np.dtype, ("uint8", "int8", "int16", "int32", "int64")))


def _check(input: Tensor, weights: Tensor | None, minlength: int) -> None:
    array = input._array
    if array.dtype not in _COUNTED:
        raise NotImplementedError(
            f"\"bincount_cpu\" not implemented for '{input.dtype.scalar_name}'"
        )
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if array.ndim == 1 and not array.size:
        return
    if array.ndim != 1 or array.min() < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and weights._array.shape != array.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")


@declare("bincount(Tensor input, Tensor? weights=None, int minlength=0)")
def bincount(input: Tensor, weights: Tensor | None, minlength: int) -> Tensor:
    """Return how often each of the numbers 0, 1, 2 ... occurs, as int64, or sums of weights.

    There is no derivative, as in PyTorch: see `scatter_add` for sums that have one.

    Parameters
    ----------
    input : tensor of shape (n,)
        Integers that are not negative.
    weights : tensor of shape (n,)
        What to add up in the place of ones: float32, or else taken as float64.
    minlength
        The least number of results; they go as far as the greatest integer.

    Raises
    ------
    RuntimeError
        If an integer is negative, or there is not one dim.
    NotImplementedError
        If the numbers are not integers.
    numgrad.TraceError
        Under `jit`: the number of results follows from numbers.

    >>> import numgrad as ng
    >>> ng.bincount(ng.tensor([1, 2, 2]), minlength=4)
    tensor([0, 1, 2, 0])
    """
    refuse_shape_of("bincount", input._array)
    _check(input, weights, minlength)
    array = input._array
    length = max(minlength, int(array.max()) + 1 if array.size else 0)
    if weights is None or not array.size:
        return wrap(counted(array, None, length))
    if weights._array.dtype != np.float32:
        weights = cast(weights, np.dtype(np.float64))
    result: Tensor = _BINCOUNT_OF_WEIGHTS.apply(weights, values=array, length=length)
    return result
