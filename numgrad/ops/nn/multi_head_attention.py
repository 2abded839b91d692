"""Attention with several heads, its maps in and out: multi_head_attention_forward."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from numgrad.graph.tensor import Tensor
from numgrad.graph.warned import warn
from numgrad.ops.creation.creation import zeros
from numgrad.ops.linalg.addmm import baddbmm
from numgrad.ops.linalg.products import bmm
from numgrad.ops.movement.joining import cat
from numgrad.ops.movement.padding import constant_pad_nd
from numgrad.ops.movement.shape import reshape
from numgrad.ops.nn.attention import scaled_dot_product_attention
from numgrad.ops.nn.dropping import dropout
from numgrad.ops.nn.layers import linear
from numgrad.ops.pointwise.selection import where
from numgrad.ops.reduction.softmax import softmax
from numgrad.ops.signatures.declared import declare

__all__ = ["multi_head_attention_forward"]


class Masks(NamedTuple):
    """What is added to scores: for each query and key, and for each key of a batch."""

    attn: Tensor | None
    padding: Tensor | None

    def wider(self) -> Masks:
        """Return masks with a key more, which counts for every query."""
        return Masks(*(m if m is None else constant_pad_nd(m, (0, 1), 0) for m in self))


def _check_dims(three: tuple[Tensor, ...], masks: Masks, num_heads: int) -> bool:
    """Return whether there is a batch; raise, in PyTorch's words, unless dims fit each other."""
    query, key, value = (each._array for each in three)
    if query.ndim not in (2, 3):
        raise AssertionError(
            "query should be unbatched 2D or batched 3D tensor but received "
            f"{query.ndim}-D query tensor"
        )
    batched = query.ndim == 3
    kind = f"For {'batched (3-D)' if batched else 'unbatched (2-D)'} `query`, expected"
    if key.ndim != query.ndim or value.ndim != query.ndim:
        raise AssertionError(
            f"{kind} `key` and `value` to be {query.ndim}-D but found {key.ndim}-D and "
            f"{value.ndim}-D tensors respectively"
        )
    if masks.padding is not None and masks.padding._array.ndim != query.ndim - 1:
        raise AssertionError(
            f"{kind} `key_padding_mask` to be `None` or {query.ndim - 1}-D but found "
            f"{masks.padding._array.ndim}-D tensor instead"
        )
    if masks.attn is None:
        return batched
    if masks.attn._array.ndim not in (2, 3):
        raise AssertionError(
            f"{kind} `attn_mask` to be `None`, 2-D or 3-D but found "
            f"{masks.attn._array.ndim}-D tensor instead"
        )
    expected = (num_heads, query.shape[0], key.shape[0])
    if not batched and masks.attn._array.ndim == 3 and masks.attn._array.shape != expected:
        raise AssertionError(
            f"Expected `attn_mask` shape to be {expected} but got {masks.attn.shape}"
        )
    return batched


def _added(mask: Tensor | None, name: str, dtype: Any) -> Tensor | None:
    """Return a mask as numbers to add to scores: -inf where a bool is True."""
    if mask is None or mask._array.dtype.kind == "f":
        return mask
    if mask._array.dtype.kind != "b":
        raise AssertionError(f"only bool and floating types of {name} are supported")
    lost: Tensor = where(mask, -math.inf, 0.0).to(dtype)
    return lost


def _masks(masks: Masks, dtype: Any, is_causal: bool, needed: bool) -> Masks:
    """Return the masks as numbers to add."""
    attn, padding = masks
    if attn is not None and padding is not None and attn.dtype != padding.dtype:
        warn(
            "Support for mismatched key_padding_mask and attn_mask is deprecated. Use same type "
            "for both instead."
        )
    padding = _added(padding, "key_padding_mask", dtype)
    if is_causal and attn is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
            "method `generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and padding is None and not needed:
        return Masks(None, None)
    return Masks(_added(attn, "attn_mask", dtype), padding)


def _check_sizes(three: tuple[Tensor, ...], expected: int, heads: int, separate: bool) -> None:
    """Raise, in PyTorch's words, unless sizes fit each other."""
    query, key, value = three
    features = query.shape[2]
    if features != expected:
        raise AssertionError(f"was expecting embedding dimension of {expected}, but got {features}")
    if features // heads * heads != features:
        raise AssertionError(f"embed_dim {features} not divisible by num_heads {heads}")
    if separate and key.shape[:2] != value.shape[:2]:
        raise AssertionError(
            f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
        )
    if not separate and key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")


def _projected(
    three: tuple[Tensor, ...], packed: Tensor | None, bias: Tensor | None
) -> tuple[Tensor, ...]:
    """Return queries, keys and values by a map whose weights lie one below the other."""
    if packed is None:
        raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
    query, key, value = three
    if query is key is value:
        return tuple(linear(query, packed, bias).chunk(3, -1))
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return tuple(map(linear, three, packed.chunk(3), biases))


def _projected_each(
    three: tuple[Tensor, ...], weights: tuple[Tensor | None, ...], bias: Tensor | None
) -> tuple[Tensor, ...]:
    """Return queries, keys and values by a map for each."""
    for letter, weight in zip("qkv", weights, strict=True):
        if weight is None:
            raise AssertionError(
                f"use_separate_proj_weight is True but {letter}_proj_weight is None"
            )
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    features = three[0].shape[-1]
    names = ("query", "key", "value")
    for name, each, weight in zip(names, three, weights, strict=True):
        wanted = (features, each.shape[-1])
        if weight is not None and weight._array.shape != wanted:
            raise AssertionError(
                f"expecting {name} weights shape of {wanted}, but got {weight.shape}"
            )
    for name, part in zip(names, biases, strict=True):
        if part is not None and part._array.shape != (features,):
            raise AssertionError(
                f"expecting {name} bias shape of {(features,)}, but got {part.shape}"
            )
    return tuple(map(linear, three, weights, biases))


def _with_mask_dims(mask: Tensor | None, batch: int, heads: int, sizes: Any) -> Tensor | None:
    """Return what is added to scores with a dim for heads; raise unless it is of their sizes."""
    if mask is None:
        return None
    ndim = mask._array.ndim
    wanted = tuple(sizes) if ndim == 2 else (batch * heads, *sizes)
    if mask._array.shape != wanted:
        raise RuntimeError(
            f"The shape of the {ndim}D attn_mask is {mask.shape}, but should be {wanted}."
        )
    return mask.unsqueeze(0) if ndim == 2 else mask


def _with_a_learned_key(
    k: Tensor, v: Tensor, masks: Masks, bias: tuple[Tensor | None, ...], static: tuple[Any, ...]
) -> tuple[Tensor, Tensor, Masks]:
    """Return keys and values with one more of each, which is the same for all of a batch."""
    if all(each is None for each in bias):
        return k, v, masks
    for each, letter, other in zip(bias, "kv", "vk", strict=True):
        if each is None:
            raise AssertionError(f"bias_{other} is set but bias_{letter} is None")
    for each, name in zip(static, ("key", "value"), strict=True):
        if each is not None:
            raise AssertionError(f"bias cannot be added to static {name}.")
    more = [each.repeat(1, k.shape[1], 1) for each in bias if each is not None]
    return cat((k, more[0])), cat((v, more[1])), masks.wider()


def _by_heads(each: Tensor, static: Tensor | None, name: str, sizes: tuple[int, int]) -> Tensor:
    """Return keys or values of shape (batch * heads, keys, features), or those that are given."""
    if static is None:
        return reshape(each, (each.shape[0], *sizes)).transpose(0, 1)
    for dim, wanted in zip((0, 2), sizes, strict=True):
        if static.shape[dim] != wanted:
            raise AssertionError(
                f"expecting {name}.size({dim}) of {wanted}, but got {static.shape[dim]}"
            )
    return static


def _merged(masks: Masks, batch: int, heads: int, keys: int) -> Tensor | None:
    """Return one mask of two: of shape (1 or batch * heads, queries or 1, keys)."""
    if masks.padding is None:
        return masks.attn
    if masks.padding._array.shape != (batch, keys):
        for at, wanted in enumerate((batch, keys)):
            got = masks.padding.shape[at]
            if got != wanted:
                raise AssertionError(
                    f"Expected key_padded_mask.shape[{at}] to be {wanted}, but got {got}"
                )
    padding = masks.padding.reshape(batch, 1, 1, keys).expand(-1, heads, -1, -1)
    padding = reshape(padding, (batch * heads, 1, keys))
    result: Tensor = padding if masks.attn is None else masks.attn + padding
    return result


def _weighted(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, p: float) -> tuple[Any, Any]:
    """Return means of values, and the weights that made them."""
    q = q * math.sqrt(1.0 / q.shape[-1])
    keys = k.transpose(-2, -1)
    weights = softmax(bmm(q, keys) if mask is None else baddbmm(mask, q, keys), -1)
    if p > 0.0:
        weights = dropout(weights, p)
    return bmm(weights, v), weights


@declare(
    "multi_head_attention_forward(Tensor query, Tensor key, Tensor value, int embed_dim_to_check, "
    "int num_heads, Tensor? in_proj_weight, Tensor? in_proj_bias, Tensor? bias_k, Tensor? bias_v, "
    "bool add_zero_attn, float dropout_p, Tensor out_proj_weight, Tensor? out_proj_bias, "
    "bool training=True, Tensor? key_padding_mask=None, bool need_weights=True, "
    "Tensor? attn_mask=None, bool use_separate_proj_weight=False, Tensor? q_proj_weight=None, "
    "Tensor? k_proj_weight=None, Tensor? v_proj_weight=None, Tensor? static_k=None, "
    "Tensor? static_v=None, bool average_attn_weights=True, bool is_causal=False)",
    function=False,
    method=False,
)
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool,
    key_padding_mask: Tensor | None,
    need_weights: bool,
    attn_mask: Tensor | None,
    use_separate_proj_weight: bool,
    q_proj_weight: Tensor | None,
    k_proj_weight: Tensor | None,
    v_proj_weight: Tensor | None,
    static_k: Tensor | None,
    static_v: Tensor | None,
    average_attn_weights: bool,
    is_causal: bool,
) -> tuple[Tensor, Tensor | None]:
    """Return attention of several heads at once, and its weights: a layer of a transformer.

    Linear maps of queries, keys and values are cut into heads, which attend each by itself
    (`scaled_dot_product_attention`); what they give is joined, and mapped by ``out_proj_weight``:
    A. Vaswani et al., "Attention is all you need" (2017). The gradient follows from these.

    Parameters
    ----------
    query : tensor of shape (L, E) or (L, N, E)
    key, value : tensors of shape (S, E) or (S, N, E)
    embed_dim_to_check
        E, once more.
    num_heads
        A divisor of E.
    in_proj_weight, in_proj_bias : tensors of shape (3 E, E) and (3 E,), optional
        The maps of queries, keys and values, one below the other.
    bias_k, bias_v : tensors of shape (1, 1, E), optional
        A key more, and its value.
    add_zero_attn
        Whether there is another key, and its value, that are 0.
    dropout_p
        The probability with which a weight is set to 0, while `training`.
    out_proj_weight, out_proj_bias : tensors of shape (E, E) and (E,)
    key_padding_mask : tensor of shape (S,) or (N, S), optional
        True where a key does not count; or numbers that are added to scores.
    need_weights
        Whether the weights are returned, too; None otherwise.
    attn_mask : tensor of shape (L, S) or (N * num_heads, L, S), optional
        True where a key does not count for a query; or numbers that are added to scores.
    use_separate_proj_weight
        Whether `q_proj_weight`, `k_proj_weight`, `v_proj_weight`, of shapes (E, E), (E, Ek) and
        (E, Ev), take the place of `in_proj_weight`.
    static_k, static_v : tensors of shape (N * num_heads, S, E / num_heads), optional
        What takes the place of the mapped keys and values.
    average_attn_weights
        Whether the weights are averaged over heads, so that their shape is (N, L, S), or (L, S);
        otherwise the heads are a dim before L.
    is_causal
        Says that `attn_mask` hides what comes later, so that it need not be read.

    Raises
    ------
    AssertionError, RuntimeError
        If sizes do not fit each other.

    >>> import numgrad as ng
    >>> x, eye = ng.eye(2), ng.eye(2)
    >>> F = ng.nn.functional
    >>> y, weights = F.multi_head_attention_forward(
    ...     x, x, x, 2, 1, ng.cat([eye, eye, eye]), None, None, None, False, 0.0, eye, None
    ... )
    >>> weights
    tensor([[0.6698, 0.3302],
            [0.3302, 0.6698]])
    """
    three: tuple[Tensor, ...] = (query, key, value)
    masks = Masks(attn_mask, key_padding_mask)
    batched = _check_dims(three, masks, num_heads)
    if not batched:
        made = {id(each): each.unsqueeze(1) for each in three}
        three = tuple([made[id(each)] for each in three])
        if key_padding_mask is not None:
            masks = masks._replace(padding=key_padding_mask.unsqueeze(0))
    length, batch, features = three[0].shape
    masks = _masks(masks, query.dtype, is_causal, need_weights)
    is_causal = is_causal and masks.padding is None
    _check_sizes(three, embed_dim_to_check, num_heads, use_separate_proj_weight)
    if use_separate_proj_weight:
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        q, k, v = _projected_each(three, weights, in_proj_bias)
    else:
        q, k, v = _projected(three, in_proj_weight, in_proj_bias)
    sizes = (length, three[1].shape[0])
    masks = masks._replace(attn=_with_mask_dims(masks.attn, batch, num_heads, sizes))
    k, v, masks = _with_a_learned_key(k, v, masks, (bias_k, bias_v), (static_k, static_v))
    parts = (batch * num_heads, features // num_heads)
    q = reshape(q, (length, *parts)).transpose(0, 1)
    k, v = _by_heads(k, static_k, "static_k", parts), _by_heads(v, static_v, "static_v", parts)
    if add_zero_attn:
        nothing = zeros((parts[0], 1, parts[1]), dtype=k.dtype)
        k, v, masks = cat((k, nothing), 1), cat((v, nothing), 1), masks.wider()
    keys = k.shape[1]
    mask = _merged(masks, batch, num_heads, keys)
    p = dropout_p if training else 0.0
    shares: Tensor | None = None
    if need_weights:
        found, shares = _weighted(q, k, v, mask, p)
        shares = reshape(shares, (batch, num_heads, length, keys))
        shares = shares.mean(1) if average_attn_weights else shares
        shares = shares if batched else shares.squeeze(0)
        found = found.transpose(0, 1)
    else:
        heads = [reshape(each, (batch, num_heads, *each.shape[1:])) for each in (q, k, v)]
        if mask is not None:
            mask = mask.unsqueeze(0) if len(mask) == 1 else mask.reshape(batch, num_heads, -1, keys)
        found = scaled_dot_product_attention(*heads, mask, p, is_causal).permute(2, 0, 1, 3)
    found = linear(reshape(found, (length * batch, features)), out_proj_weight, out_proj_bias)
    found = reshape(found, (length, batch, found.shape[1]))
    return (found if batched else found.squeeze(1)), shares
