"""Covariances and correlations of variables: cov, corrcoef."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.graph.tensor import Tensor
from numgrad.graph.warned import warn
from numgrad.ops.linalg.products import mm
from numgrad.ops.movement.complex_views import imag, real
from numgrad.ops.movement.diagonals import diag
from numgrad.ops.movement.shape import reshape
from numgrad.ops.movement.unit_dims import squeeze, unsqueeze
from numgrad.ops.pointwise.complex_parts import complex_ as complex_of
from numgrad.ops.pointwise.selection import clamp, where
from numgrad.ops.reduction.reductions import sum
from numgrad.ops.signatures.declared import declare
from numgrad.ops.statistics.checks import checked

__all__ = ["corrcoef", "cov"]

Array = np.ndarray[Any, Any]


def _check_dims(name: str, input: Tensor) -> None:
    ndim = input._array.ndim
    if ndim > 2:
        raise RuntimeError(
            f"{name}(): expected input to have two or fewer dimensions but got an input with "
            f"{ndim} dimensions"
        )


def _checked_weights(name: str, weights: Tensor, kinds: str, wanted: str, count: int) -> Tensor:
    array = weights._array
    if array.ndim > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with "
            f"{array.ndim} dimensions"
        )
    if array.dtype.kind not in kinds:
        raise RuntimeError(
            f"cov(): expected {name} to have {wanted} dtype but got {name} with "
            f"{weights.dtype.scalar_name} dtype"
        )
    if array.size != count:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the "
            f"input but got {array.size} != {count}"
        )

    def check_signs(array: Array) -> None:
        if not (array >= 0).all():
            raise RuntimeError(f"cov(): {name} cannot be negative")

    return checked(weights, check_signs)


def _check_sum(total: Array) -> None:
    if (total == 0).any():
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")


def _warn_of_freedom(freedom: Array) -> None:
    if (freedom <= 0).any():
        warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the "
            "number of observations."
        )


def _freedom(weights: Tensor, aweights: Tensor | None, total: Tensor, correction: int) -> Tensor:
    """Return what the products are divided by, where observations have weights."""
    if aweights is not None and correction:
        freedom = total - correction * sum(weights * aweights) / total
    else:
        freedom = total - correction
    freedom = checked(freedom, _warn_of_freedom)
    result: Tensor = where(freedom > 0, freedom, 0)
    return result


@declare(
    "cov(Tensor input, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None)",
    dispatched=True,
)
def cov(input: Tensor, correction: int, fweights: Tensor | None, aweights: Tensor | None) -> Tensor:
    """Return the covariances of variables: the mean products of their distances from their means.

    The gradient is that of a product of the centred variables: (g + g^H) (x - mean(x)) / (n - 1).

    Parameters
    ----------
    input : tensor of shape (variables, observations) or (observations,)
    correction
        What is taken off the number of observations that products are divided by.
    fweights : tensor of integers of shape (observations,)
        How often each of them was made.
    aweights : tensor of floating point numbers of shape (observations,)
        How much each counts.

    Raises
    ------
    RuntimeError
        If the input has more dims, or the weights do not fit, are negative or come to nothing.

    >>> import numgrad as ng
    >>> ng.cov(ng.tensor([[1.0, 2.0, 3.0], [2.0, 0.0, 4.0]]))
    tensor([[1., 1.],
            [1., 4.]])
    """
    _check_dims("cov", input)
    if input._array.dtype.kind == "b":
        raise RuntimeError("cov(): bool dtype is not supported for input")
    rows: Tensor = reshape(input, (1, input._array.size)) if input._array.ndim < 2 else input
    count = rows._array.shape[1]
    if fweights is not None:
        fweights = _checked_weights("fweights", fweights, "iu", "integral", count)
    if aweights is not None:
        aweights = _checked_weights("aweights", aweights, "f", "floating point", count)
    weights = fweights if aweights is None else aweights
    if fweights is not None and aweights is not None:
        weights = fweights * aweights
    freedom: Any
    if weights is None:
        freedom, mean = count - correction, sum(rows, (1,)) / count
        if freedom <= 0:
            _warn_of_freedom(np.asarray(freedom))
            freedom = 0
    else:
        total = checked(sum(weights), _check_sum)
        mean = sum(rows * weights, (1,)) / total
        freedom = _freedom(weights, aweights, total, correction)
    centred = rows - unsqueeze(mean, 1)
    weighted = centred if weights is None else centred * weights
    result: Tensor = squeeze(mm(centred, weighted.t().conj()) / freedom)
    return result


@declare("corrcoef(Tensor input)", dispatched=True)
def corrcoef(input: Tensor) -> Tensor:
    """Return the correlations of variables: their covariances, divided by both deviations.

    The gradient is that of `cov` and of the quotients.

    Parameters
    ----------
    input : tensor of shape (variables, observations) or (observations,)

    Raises
    ------
    RuntimeError
        If the input has more dims.

    >>> import numgrad as ng
    >>> ng.corrcoef(ng.tensor([[1.0, 2.0, 3.0], [2.0, 0.0, 4.0]]))
    tensor([[1.0000, 0.5000],
            [0.5000, 1.0000]])
    """
    _check_dims("corrcoef", input)
    covariances = cov(input)
    if not covariances._array.ndim:
        result: Tensor = covariances / covariances
        return result
    variances = diag(covariances)
    is_complex = covariances._array.dtype.kind == "c"
    deviations = (real(variances) if is_complex else variances).sqrt()
    count = deviations._array.shape[0]
    scaled = covariances / reshape(deviations, (count, 1)) / reshape(deviations, (1, count))
    if is_complex:
        return complex_of(clamp(real(scaled), -1, 1), clamp(imag(scaled), -1, 1))
    return clamp(scaled, -1, 1)
