"""Distances between points, and lengths that are bounded: cdist, pdist, dist, renorm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.graph.tensor import Tensor, fresh, wrap
from numgrad.kernels.reduce import reductions
from numgrad.kernels.spatial.distances import pair_distances, row_distances
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.promotion import broadcast_shapes, result_dtype
from numgrad.ops.core.samples import sample
from numgrad.ops.indexing.index_along import index_add, index_select
from numgrad.ops.movement.casts import cast
from numgrad.ops.movement.unit_dims import expand, unsqueeze
from numgrad.ops.pointwise.complex import absolute, conj, sgn
from numgrad.ops.pointwise.selection import where
from numgrad.ops.reduction.norms import norm_rule, vector_norm
from numgrad.ops.reduction.reductions import sum
from numgrad.ops.signatures.declared import declare

__all__ = ["cdist", "dist", "pdist", "renorm"]

Array = np.ndarray[Any, Any]


# --- between rows --------------------------------------------------------------------------------


def _share(g: Tensor, y: Tensor, vectors: Tensor, p: float) -> Tensor:
    """Return g times the derivatives of norms y along the last dim; 0 where PyTorch takes that.

    Infinite norms give g to each of several greatest elements.
    """
    g, y = unsqueeze(g, -1), unsqueeze(y, -1)
    if p == 1:
        return g * sgn(vectors)
    if math.isinf(p):
        return g * sgn(vectors) * (absolute(vectors) == y)
    nowhere = y == 0
    if p == 2:
        return where(nowhere, 0, g / where(nowhere, 1, y)) * vectors
    # What is 0 is no base: the derivatives of this are numbers, too.
    nothing = (vectors == 0) | nowhere
    ratio = where(nothing, 1, absolute(vectors)) / where(nowhere, 1, y)
    result: Tensor = g * where(nothing, 0, sgn(vectors) * ratio ** (p - 1))
    return result


def _nothing(input: Tensor) -> Tensor:
    """Return the gradient of what counts."""
    return fresh(np.zeros(input._array.shape, input._array.dtype))


def _cdist_rule(g: Tensor, y: Tensor, x1: Tensor, x2: Tensor, p: float, which: int) -> Tensor:
    if not p:
        return _nothing((x1, x2)[which])
    shared = _share(g, y, unsqueeze(x1, -2) - unsqueeze(x2, -3), p)
    result: Tensor = sum(shared, (-2,)) if which == 0 else -sum(shared, (-3,))
    return result


_CDIST = Primitive(
    "cdist",
    "CdistBackward0",
    row_distances,
    ["x1", "x2"],
    [
        lambda g, y, x1, x2, p: _cdist_rule(g, y, x1, x2, p, 0),
        lambda g, y, x1, x2, p: _cdist_rule(g, y, x1, x2, p, 1),
    ],
    samples=[
        lambda make, p=p: (cdist, [make(2, 3, distinct=True), make(4, 3, distinct=True)], {"p": p})
        for p in (1.0, 2.0, 2.5, 1.5, 0.5, math.inf)
    ]
    + [lambda make: (cdist, [make(2, 3, 2), make(2, 1, 2)], {})],
)


def _pairs(count: int) -> tuple[Array, Array]:
    return np.triu_indices(count, 1)


def _pdist_rule(g: Tensor, y: Tensor, input: Tensor, p: float) -> Tensor:
    if not p:
        return _nothing(input)
    count = input._array.shape[0]
    first, second = (wrap(each) for each in _pairs(count))
    vectors = index_select(input, 0, first) - index_select(input, 0, second)
    shared = _share(g, y, vectors, p)
    result: Tensor = index_add(_nothing(input), 0, first, shared)
    return index_add(result, 0, second, -shared)


_PDIST = Primitive(
    "pdist",
    "PdistBackward0",
    pair_distances,
    ["input"],
    [_pdist_rule],
    samples=[sample("pdist", (4, 3), distinct=True, p=p) for p in (1.0, 2.0, 3.0)],
)

_MODES = (
    "use_mm_for_euclid_dist_if_necessary",
    "use_mm_for_euclid_dist",
    "donot_use_mm_for_euclid_dist",
)


def _check_rows(x1: Tensor, x2: Tensor, p: float) -> None:
    named = (("X1", x1), ("X2", x2))
    for name, each in named:
        if each._array.ndim < 2:
            raise RuntimeError(
                f"cdist only supports at least 2D tensors, {name} got: {each._array.ndim}D"
            )
    widths = [each._array.shape[-1] for _, each in named]
    if widths[0] != widths[1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {widths[0]} X2: {widths[1]}"
        )
    for name, each in named:
        if each._array.dtype.kind != "f":
            raise RuntimeError(
                f"cdist only supports floating-point dtypes, {name} got: {each.dtype.scalar_name}"
            )
    if not p >= 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if x1._array.dtype != x2._array.dtype:
        raise RuntimeError(
            f"expected scalar type {x1.dtype.scalar_name} but found {x2.dtype.scalar_name}"
        )
    if x1._array.dtype == np.float16 and x1._array.size and x2._array.size:
        raise NotImplementedError("\"cdist\" not implemented for 'Half'")


@declare(
    "cdist(Tensor x1, Tensor x2, float p=2.0, "
    "object compute_mode='use_mm_for_euclid_dist_if_necessary')",
    method=False,
)
def cdist(x1: Tensor, x2: Tensor, p: float, compute_mode: Any) -> Tensor:
    """Return the distances of each row of one matrix from each row of another, by the p-norm.

    The gradient of a row is g times sgn(d) (abs(d) / y) ** (p - 1), summed over the others, where d
    is its difference from one; 0 where two rows are equal. Infinite norms give g to each of several
    greatest elements.

    Parameters
    ----------
    x1 : tensor of shape (..., n, k)
    x2 : tensor of shape (..., m, k)
        Of the same dtype, float32 or float64. Leading dims broadcast.
    p
        The order: 0 counts what differs, inf takes the greatest.
    compute_mode
        Changes nothing but what PyTorch's words refuse: differences are taken always, so that no
        digits get lost between rows that are close.

    Returns
    -------
    tensor of shape (..., n, m)

    Raises
    ------
    RuntimeError
        If there are fewer than two dims, the rows differ in length, or the order is negative.
    ValueError
        If there is no such mode.

    >>> import numgrad as ng
    >>> ng.cdist(ng.tensor([[0.0, 0.0]]), ng.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]])
    """
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    _check_rows(x1, x2, p)
    shapes = [each._array.shape for each in (x1, x2)]
    if len(shapes[0]) > 2 or len(shapes[1]) > 2:
        batch = broadcast_shapes([shape[:-2] for shape in shapes])
        x1, x2 = (
            each if shape[:-2] == batch else expand(each, (*batch, *shape[-2:]))
            for each, shape in zip((x1, x2), shapes, strict=True)
        )
    result: Tensor = _CDIST.apply(x1, x2, p=float(p))
    return result


@declare("pdist(Tensor input, float p=2)", method=False, dispatched=True)
def pdist(input: Tensor, p: float) -> Tensor:
    """Return the distances of each row of a matrix from those behind it, by the p-norm.

    The gradient is that of `cdist`.

    Parameters
    ----------
    input : tensor of shape (n, k)
        float32 or float64.

    Returns
    -------
    tensor of shape (n (n - 1) / 2,)

    Raises
    ------
    RuntimeError
        If there are not two dims, or the order is negative.

    >>> import numgrad as ng
    >>> ng.pdist(ng.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
    tensor([5.0000, 1.0000, 4.2426])
    """
    if input._array.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input._array.ndim}D")
    if input._array.dtype.kind != "f":
        raise RuntimeError("pdist only supports floating-point dtypes")
    if not p >= 0:
        raise RuntimeError("pdist only supports non-negative p values")
    if input._array.dtype == np.float16 and input._array.size:
        raise NotImplementedError("\"pdist\" not implemented for 'Half'")
    result: Tensor = _PDIST.apply(input, p=float(p))
    return result


# --- of whole tensors ----------------------------------------------------------------------------


def _all_dims(array: Array) -> tuple[int, ...]:
    return tuple(range(array.ndim))


@silent
def _dist(input: Array, other: Array, p: float) -> Array:
    difference = np.asarray(input - other)
    if difference.dtype == np.float16:  # a difference that the rule takes, too
        wide = reductions.norm(difference.astype(np.float32), _all_dims(difference), False, p)
        return np.asarray(wide, np.float16)
    return reductions.norm(difference, _all_dims(difference), False, p)


def _dist_rule(g: Tensor, y: Tensor, input: Tensor, other: Tensor, p: float) -> Tensor | None:
    difference = input - other
    dims = _all_dims(difference._array)
    return norm_rule(g, y, difference, dims, False, p, None)


def _dist_rule_of_other(
    g: Tensor, y: Tensor, input: Tensor, other: Tensor, p: float
) -> Tensor | None:
    found = _dist_rule(g, y, input, other, p)
    return None if found is None else -found.sum_to_size(other._array.shape)


def _dist_rule_of_input(
    g: Tensor, y: Tensor, input: Tensor, other: Tensor, p: float
) -> Tensor | None:
    found = _dist_rule(g, y, input, other, p)
    return None if found is None else found.sum_to_size(input._array.shape)


_DIST = Primitive(
    "dist",
    "DistBackward0",
    _dist,
    ["input", "other"],
    [_dist_rule_of_input, _dist_rule_of_other],
    takes_half=True,
    samples=[
        lambda make, p=p: (dist, [make(2, 3, distinct=True), make(3, distinct=True)], {"p": p})
        for p in (1, 2, 3.5, 1.5)
    ],
)


@declare("dist(Tensor input, Tensor other, number p=2)", dispatched=True)
def dist(input: Tensor, other: Tensor, p: float) -> Tensor:
    """Return the p-norm of the difference of two tensors; the gradient is that of `norm`.

    Parameters
    ----------
    input, other
        Floating point or complex; they broadcast and promote.
    p
        The order, as of `norm`.

    Raises
    ------
    RuntimeError
        If both are integers or bools.

    >>> import numgrad as ng
    >>> ng.dist(ng.tensor([1.0, 2.0]), ng.tensor([4.0, 6.0]))
    tensor(5.)
    """
    dtype = result_dtype([input, other])
    if isinstance(p, complex):
        raise RuntimeError(
            "linalg.vector_norm: Expected a non-complex scalar as the order of norm."
        )
    if not dtype.is_floating_point and not dtype.is_complex:
        raise RuntimeError(
            "norm(): input dtype should be either floating point or complex. Got "
            f"{dtype.scalar_name} instead."
        )
    shape = broadcast_shapes([input._array.shape, other._array.shape])
    reductions.require_norm_elements(np.empty(shape, dtype.numpy), p, (), all_dims=True)
    operands = [cast(each, dtype.numpy) for each in (input, other)]
    result: Tensor = _DIST.apply(*operands, p=float(p))
    return result


# --- bounded lengths -----------------------------------------------------------------------------


# Beside the norm, so that parts which are 0 can be divided by it.
_LITTLE = 1e-7


@silent
def _renorm(input: Array, p: float, dim: int, maxnorm: float) -> Array:
    others = tuple([each for each in range(input.ndim) if each != dim])
    norms = reductions.norm(input, others, True, p)
    factors = np.where(norms > maxnorm, maxnorm / (norms + _LITTLE), 1).astype(norms.dtype)
    return np.ascontiguousarray(input * factors)


def _renorm_rule(g: Tensor, input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    others = tuple([each for each in range(input._array.ndim) if each != dim])
    norms = vector_norm(input, p, others, True, None)
    along: Any = sum(conj(input) * g, others, True)
    if along.dtype.is_complex:
        along = along.real
    inverse = 1 / (norms + _LITTLE)
    share: Any = norm_rule(along, norms, input, others, True, p, None)
    scaled = maxnorm * inverse * (g - inverse * share)
    result: Tensor = where(norms > maxnorm, scaled, g)
    return result


_RENORM = Primitive(
    "renorm",
    "RenormBackward0",
    _renorm,
    ["input"],
    [_renorm_rule],
    samples=[
        sample("renorm", (3, 4), p=2, dim=0, maxnorm=1.0),
        sample("renorm", (3, 4), p=1, dim=1, maxnorm=3.0),
        sample("renorm", (2, 3, 2), p=2.5, dim=-2, maxnorm=100.0),
    ],
)


@declare(
    "renorm(Tensor input, number p, int dim, number maxnorm, *, Tensor? out=None)",
    inplace=True,
    dispatched=True,
    in_step=("input",),
)
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Return a tensor whose parts along a dim have p-norms of `maxnorm` at most: longer are scaled.

    The gradient of a part that is scaled is that of ``maxnorm * x / (norm(x) + 1e-7)``.

    Parameters
    ----------
    input : tensor of two dims or more
        Floating point or complex.
    p
        The order, greater than 0.
    dim
        Whose positions are the parts.

    Raises
    ------
    RuntimeError
        If the order is not positive, `maxnorm` is negative, or there are fewer dims.
    IndexError
        If there is no such dim.

    >>> import numgrad as ng
    >>> ng.renorm(ng.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    if isinstance(p, complex):
        raise RuntimeError("renorm: p must be real-valued")
    if not p > 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if isinstance(maxnorm, complex):
        raise RuntimeError("renorm: maxnorm must be real-valued")
    if not maxnorm >= 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    ndim = input._array.ndim
    if ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {ndim} dimensions")
    at = wrap_dim(dim, ndim)
    if input._array.dtype.kind not in "fc":
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            f"{input.dtype.scalar_name}"
        )
    result: Tensor = _RENORM.apply(input, p=float(p), dim=at, maxnorm=float(maxnorm))
    return result
