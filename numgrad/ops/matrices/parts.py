"""What rules and functions of matrices are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.graph.modes.state import modes
from numgrad.graph.tensor import NO_EDGE, Tensor, fresh, wrap
from numgrad.ops.core.samples import operation
from numgrad.ops.linalg.linalg import matmul
from numgrad.ops.linalg.products import adjoint_of
from numgrad.ops.movement.unit_dims import unsqueeze
from numgrad.ops.pointwise.selection import where

__all__ = [
    "adjoint_of",
    "conjugated_by",
    "differences",
    "half_skew",
    "hermitian_half",
    "identities",
    "identity",
    "matmul",
    "may_need_gradient",
    "positive",
    "sampled",
    "scaled",
    "stand_in",
]

Array = np.ndarray[Any, Any]


def stand_in(place: Array) -> Array:
    """Return identity matrices, or the pivots of a factorisation that exchanged no rows.

    They lie as the place does, whose numbers they overwrite.
    """
    if place.dtype.kind in "iu":
        place[...] = np.arange(1, place.shape[-1] + 1)
    elif place.ndim > 1:
        place[...] = np.eye(*place.shape[-2:], dtype=place.dtype)
    return place


def identities(array: Array) -> Array:
    """Return an identity matrix for each of a batch of square ones."""
    return np.broadcast_to(np.eye(array.shape[-1], dtype=array.dtype), array.shape)


def identity(like: Tensor) -> Tensor:
    """Return the identity of the order and dtype of square matrices."""
    shape, dtype = like._array.shape, like._array.dtype
    return fresh(np.eye(shape[-1], dtype=dtype))


def scaled(matrices: Tensor, factors: Tensor) -> Tensor:
    """Return matrices, each times a number of its own."""
    result: Tensor = matrices * unsqueeze(unsqueeze(factors, -1), -1)
    return result


def may_need_gradient(input: Tensor) -> bool:
    """Return whether what rules need may be asked for; in a trace nobody knows."""
    return input._edge is not NO_EDGE or modes.trace is not None or modes.dual is not None


def differences(values: Tensor) -> Tensor:
    """Return the matrices E_ij = L_j - L_i, with ones on their diagonals."""
    on_diagonal = fresh(np.eye(values._array.shape[-1], dtype=bool))
    result: Tensor = where(on_diagonal, 1.0, unsqueeze(values, -2) - unsqueeze(values, -1))
    return result


def half_skew(matrices: Tensor) -> Tensor:
    """Return (X - X^H) / 2."""
    result: Tensor = (matrices - adjoint_of(matrices)) * 0.5
    return result


def conjugated_by(vectors: Tensor, matrices: Tensor) -> Tensor:
    """Return V X V^H."""
    return matmul(vectors, matmul(matrices, adjoint_of(vectors)))


def hermitian_half(input: Tensor) -> Tensor:
    """Return half the sum of what is below the diagonal and its adjoint; half the diagonal."""
    size = input._array.shape[-1]
    low = where(fresh(np.tri(size, dtype=bool)), input, 0.0)
    below = where(fresh(np.tri(size, k=-1, dtype=bool)), input, 0.0)
    result: Tensor = (low + adjoint_of(below)) * 0.5
    return result


def sampled(
    function: str | Callable[..., Any], *sizes: tuple[int, ...], of: Any = None, **keywords: Any
) -> Callable[..., Any]:
    """Return the sample that calls a function with tensors of some sizes.

    Square matrices get a diagonal that keeps them away from singular ones; `of` makes other
    operands of them, such as positive definite ones.
    """

    def called(*inputs: Tensor, **arguments: Any) -> Any:
        operands = [_regular(input) for input in inputs]
        if of is not None:
            operands = [of(operands[0]), *operands[1:]]
        return operation(function)(*operands, **arguments)

    return lambda make: (called, [make(*size) for size in sizes], keywords)


def _regular(input: Tensor) -> Tensor:
    shape = input._array.shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        return input
    steps = np.arange(4, 4 + 3 * shape[-1], 3).astype(input._array.dtype)
    result: Tensor = input + wrap(np.diag(steps))
    return result


def positive(input: Tensor) -> Tensor:
    """Return a positive definite matrix made of any other."""
    result: Tensor = matmul(input, adjoint_of(input)) + identity(input)
    return result
