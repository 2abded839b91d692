"""Attention: scaled_dot_product_attention, made of products, a softmax and masks."""

from __future__ import annotations

import math

import numpy as np

from numgrad.graph.tensor import Tensor, fresh
from numgrad.ops.creation.random import bernoulli
from numgrad.ops.indexing.repeating import repeat_interleave
from numgrad.ops.linalg.linalg import matmul
from numgrad.ops.movement.casts import cast
from numgrad.ops.pointwise.selection import where
from numgrad.ops.reduction.extrema import amax
from numgrad.ops.reduction.softmax import softmax
from numgrad.ops.signatures.declared import declare

__all__ = ["scaled_dot_product_attention"]


def _check(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    p: float,
    is_causal: bool,
) -> None:
    """Raise, in PyTorch's words, unless dtypes and dims fit each other, and there is one mask."""
    three = (query, key, value)
    expected = "Expected query, key, and value to"
    if len({each._array.dtype for each in three}) > 1:
        names = [each.dtype.cpp_name for each in three]
        raise RuntimeError(
            f"{expected} have the same dtype, but got query.dtype: {names[0]} key.dtype: "
            f"{names[1]} and value.dtype: {names[2]} instead."
        )
    if min(each._array.ndim for each in three) < 2:
        dims = [each._array.ndim for each in three]
        raise RuntimeError(
            f"{expected} all be  at least 2 dimensional, but got query.dim: {dims[0]} key.dim: "
            f"{dims[1]} and value.dim: {dims[2]} instead."
        )
    if query._array.dtype.kind != "f":
        raise RuntimeError(f"expected scalar type Float but found {query.dtype.scalar_name}")
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
    if attn_mask is not None and attn_mask._array.dtype.kind not in "bf":
        name = {"int64": "long int"}.get(attn_mask.dtype.name, attn_mask.dtype.cpp_name)
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
            f"attn_mask.dtype: {name} and  query.dtype: {query.dtype.cpp_name} instead."
        )
    # PyTorch's kernel for batches of heads takes both; what is left does not.
    heads = all(each._array.ndim == 4 for each in three) and not p
    if is_causal and attn_mask is not None and not (heads and _features(key) == _features(value)):
        raise RuntimeError(
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when "
            "is_causal=True"
        )


def _features(tensor: Tensor) -> int:
    return int(tensor._array.shape[-1])


def _masked(scores: Tensor, attn_mask: Tensor | None, is_causal: bool) -> Tensor:
    """Return scores, those of -inf that do not count."""
    if is_causal:
        rows, columns = scores._array.shape[-2:]
        before = fresh(np.tri(rows, columns, dtype=bool))
        scores = where(before, scores, -math.inf)
    if attn_mask is None:
        return scores
    if attn_mask._array.dtype.kind == "b":
        attn_mask = where(attn_mask, 0.0, -math.inf)
    result: Tensor = scores + cast(attn_mask, scores._array.dtype)
    return result


def _shares(scores: Tensor, is_masked: bool) -> Tensor:
    """Return the softmax along the last dim; zeros where nothing counts."""
    if not is_masked or not scores._array.shape[-1]:
        return softmax(scores, -1)
    is_empty = amax(scores.detach(), -1, keepdim=True) == -math.inf
    shares = softmax(where(is_empty, 0.0, scores), -1)
    result: Tensor = where(is_empty, 0.0, shares)
    return result


@declare(
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
    "float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False)",
    function=False,
    method=False,
    dispatched=True,
)
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> Tensor:
    """Return means of values, weighted by the softmax of how well their keys fit the queries.

    ``softmax(query @ key.mT * scale + attn_mask) @ value``: A. Vaswani et al., "Attention is all
    you need" (2017). The gradient follows from the products and the softmax. Where nothing counts,
    the result is 0.

    Parameters
    ----------
    query : tensor of shape (..., queries, features)
    key : tensor of shape (..., keys, features)
    value : tensor of shape (..., keys, value_features)
    attn_mask : tensor that broadcasts to (..., queries, keys), optional
        False where a key does not count; or numbers that are added to scores.
    dropout_p
        The probability with which a weight is set to 0; the others grow accordingly.
    is_causal
        Whether no query sees a key that comes later.
    scale
        By what scores are multiplied; 1 over the root of the number of features if not given.
    enable_gqa
        Whether there may be fewer heads (the third dim from the end) of keys and values, each for
        several of the queries.

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not fit.

    >>> import numgrad as ng
    >>> q = ng.zeros(1, 2)
    >>> ng.nn.functional.scaled_dot_product_attention(q, ng.ones(2, 2), ng.tensor([[1.0], [3.0]]))
    tensor([[2.]])
    """
    _check(query, key, value, attn_mask, dropout_p, is_causal)
    if enable_gqa:
        heads = query._array.shape[-3]
        for each in (key, value):
            if not each._array.shape[-3] or heads % each._array.shape[-3]:
                raise RuntimeError(
                    "Number of heads in key and value must divide the number of heads in query"
                )
        key = repeat_interleave(key, heads // key._array.shape[-3], -3)
        value = repeat_interleave(value, heads // value._array.shape[-3], -3)
    features = query._array.shape[-1]
    # Both factors get the root: so no product is greater than it has to be.
    factor = 1 / math.sqrt(features) if scale is None else scale
    root = math.sqrt(abs(factor))
    sign = -1.0 if factor < 0 else 1.0
    scores = matmul(query * (root * sign), key.transpose(-2, -1) * root)
    weights = _shares(_masked(scores, attn_mask, is_causal), is_causal or attn_mask is not None)
    if dropout_p:
        kept = bernoulli(fresh(np.full(weights._array.shape, 1 - dropout_p)))
        kept = cast(kept, weights._array.dtype)
        weights = weights * kept / (1 - dropout_p) if dropout_p < 1 else weights * kept
    found: Tensor = matmul(weights, value)
    return found
