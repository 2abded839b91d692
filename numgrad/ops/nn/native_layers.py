"""Layers as functions of torch itself, which take and return more than those of nn.functional."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

from numgrad.base.dtypes import bool_
from numgrad.graph.tensor import Tensor, wrap
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.creation.creation import empty, ones, zeros
from numgrad.ops.nn.dropping import dropped
from numgrad.ops.nn.layers import (
    check_numbers_of_rows,
    embedding,
    numbers_of_rows,
    shorten_rows,
)
from numgrad.ops.nn.normalised import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    of_channels,
    of_groups,
    of_last_dims,
    of_own_channels,
    rms_norm,
)
from numgrad.ops.nn.twice import declare_again, rule_of
from numgrad.ops.reduction.norms import norm
from numgrad.ops.signatures.declared import declare

__all__: list[str] = []

# --- normalisation --------------------------------------------------------------------------------

_RUNNING = "Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var"
_OPTIONS = "bool training, float momentum, float eps"


def _first(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that returns the first of what a function does."""

    @functools.wraps(function)
    def rule(*arguments: Any) -> Any:
        return function(*arguments)[0]

    rule.__annotations__ = {**function.__annotations__, "return": "Tensor"}
    return rule


for _of, _signature, _rule, _dispatched, _example in (
    (
        layer_norm,
        "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, "
        "float eps=1e-5, bool cudnn_enable=True)",
        _first(of_last_dims),
        True,
        """
    >>> ng.layer_norm(ng.tensor([[1.0, 3.0], [0.0, 8.0]]), (2,), eps=0.0)
    tensor([[-1.,  1.],
            [-1.,  1.]])""",
    ),
    (
        rms_norm,
        "rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None)",
        rule_of(rms_norm),
        True,
        """
    >>> ng.rms_norm(ng.tensor([2.0, 2.0, -2.0]), (3,), eps=0.0)
    tensor([ 1.,  1., -1.])""",
    ),
    (
        group_norm,
        "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, "
        "float eps=1e-5, bool cudnn_enabled=True)",
        _first(of_groups),
        True,
        """
    >>> ng.group_norm(ng.tensor([[1.0, 3.0, 0.0, 8.0]]), 2, eps=0.0)
    tensor([[-1.,  1., -1.,  1.]])""",
    ),
    (
        batch_norm,
        f"batch_norm(Tensor input, {_RUNNING}, {_OPTIONS}, bool cudnn_enabled)",
        _first(of_channels),
        False,
        """
    >>> x = ng.tensor([[1.0, 0.0], [3.0, 8.0]])
    >>> ng.batch_norm(x, None, None, None, None, True, 0.1, 0.0, True)
    tensor([[-1., -1.],
            [ 1.,  1.]])""",
    ),
    (
        instance_norm,
        f"instance_norm(Tensor input, {_RUNNING}, bool use_input_stats, float momentum, float eps, "
        "bool cudnn_enabled)",
        of_own_channels,
        False,
        """
    >>> x = ng.tensor([[[1.0, 3.0], [0.0, 8.0]]])
    >>> ng.instance_norm(x, None, None, None, None, True, 0.1, 0.0, True)
    tensor([[[-1.,  1.],
             [-1.,  1.]]])""",
    ),
):
    # One number in a channel is an error of nn.functional's alone.
    _text = re.sub(r",? or (in training )?there is one number.*", ".", rule_of(_of).__doc__ or "")
    declare_again(
        _of,
        _signature,
        rule=_rule,
        example=_example,
        dispatched=_dispatched,
        docstring=_text,
    )


@declare(
    "native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, "
    "float eps)",
    method=False,
)
def _native_layer_norm(
    input: Tensor,
    normalized_shape: tuple[int, ...],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return `layer_norm`, the means, and the reciprocals of the standard deviations.

    The gradient of the first is that of `layer_norm`.

    >>> import numgrad as ng
    >>> ng.native_layer_norm(ng.tensor([[1.0, 3.0]]), (2,), None, None, 0.0)[1]
    tensor([[2.]])
    """
    result, middle, factor = of_last_dims(input, normalized_shape, weight, bias, eps)
    return result, middle.detach(), factor.detach()


@declare(
    "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, "
    "int group, float eps)",
    method=False,
    dispatched=True,
)
def _native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return `group_norm`, the means, and the reciprocals of the standard deviations.

    The gradient of the first is that of `layer_norm`.

    Parameters
    ----------
    N, C, HxW
        The lengths of the input's dims, the last ones as one.

    >>> import numgrad as ng
    >>> ng.native_group_norm(ng.tensor([[1.0, 3.0, 0.0, 8.0]]), None, None, 1, 4, 1, 2, 0.0)[1]
    tensor([[2., 4.]])
    """
    result, middle, factor = of_groups(input.reshape(N, C, HxW), group, weight, bias, eps)
    rows = (N, group)
    return result.reshape(input._array.shape), middle.reshape(rows), factor.reshape(rows)


@declare(
    f"native_batch_norm(Tensor input, {_RUNNING}, {_OPTIONS}, *, Tensor[]? out=None)",
    method=False,
)
def _native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return `batch_norm`; in training the means and reciprocal deviations of channels, too.

    The gradient of the first is that of `batch_norm`.

    >>> import numgrad as ng
    >>> x = ng.tensor([[1.0, 0.0], [3.0, 8.0]])
    >>> ng.native_batch_norm(x, None, None, None, None, True, 0.1, 0.0)[1]
    tensor([2., 4.])
    """
    result, middle, factor = of_channels(
        input, running_mean, running_var, weight, bias, training, momentum, eps
    )
    if not training:
        return result, zeros(0, dtype=input.dtype), zeros(0, dtype=input.dtype)
    return result, middle.detach().reshape(-1), factor.detach().reshape(-1)


@declare("norm_except_dim(Tensor v, int pow=2, int dim=0)", method=False, dispatched=True)
def norm_except_dim(v: Tensor, pow: int, dim: int) -> Tensor:
    """Return the norms along all dims but one, which have length 1 then; of all of them for -1.

    The gradient is that of `norm`.

    Parameters
    ----------
    pow
        The order of the norm.

    >>> import numgrad as ng
    >>> ng.norm_except_dim(ng.tensor([[3.0, 4.0], [6.0, 8.0]]))
    tensor([[ 5.],
            [10.]])
    """
    ndim = v._array.ndim
    if dim == -1:
        result: Tensor = norm(v, pow)
        return result
    at = wrap_dim(dim, ndim)
    result = norm(v, pow, [each for each in range(ndim) if each != at], True)
    return result


# --- dropout --------------------------------------------------------------------------------------

_DROPPED = """Return {what} with probability p, {others}.

    The gradient is {gradient}. See `nn.functional`.

    Parameters
    ----------
    train
        If not, the input is returned as it is.

    Raises
    ------
    RuntimeError
        If p is no probability.

    >>> import numgrad as ng
    >>> {example}
    """
_KINDS = {
    "dropout": ("the input with each element set to 0", "others over 1 - p", False, False),
    "feature_dropout": ("the input with whole channels set to 0", "others over 1 - p", True, False),
    "alpha_dropout": (
        "what `selu` gives with elements set to its least value",
        "scaled so that mean and variance stay",
        False,
        True,
    ),
    "feature_alpha_dropout": (
        "what `selu` gives with channels set to its least value",
        "scaled so that mean and variance stay",
        True,
        True,
    ),
}


def _make_dropout(name: str, what: str, others: str, channels: bool, alpha: bool) -> None:
    def check(p: float) -> None:
        if not 0 <= p <= 1:
            raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")

    def rule(input: Tensor, p: float, train: bool) -> Tensor:
        check(p)
        return dropped(input, p, train, False, channels=channels, alpha=alpha)

    def in_place(input: Tensor, p: float, train: bool) -> Tensor:
        check(p)
        return dropped(input, p, train, True, channels=channels, alpha=alpha)

    functions: tuple[tuple[str, Callable[..., Tensor]], ...] = (
        (name, rule),
        (f"{name}_", in_place),
    )
    for each, function in functions:
        function.__name__ = function.__qualname__ = f"_{each}"
        function.__doc__ = _DROPPED.format(
            what=what,
            others=others + (", written to the input" if function is in_place else ""),
            gradient="g, times a number, where it was kept",
            example=f"ng.{each}(ng.zeros(2, 2), 0.5, False)\n"
            "    tensor([[0., 0.],\n            [0., 0.]])",
        )
        declare(f"{each}(Tensor input, float p, bool train)", method=False)(function)


for _name, _kind in _KINDS.items():
    _make_dropout(_name, *_kind)


@declare("native_dropout(Tensor input, float p, bool? train)", method=False)
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Return `dropout`, and which elements were kept.

    The gradient is g over 1 - p where an element was kept, else 0.

    Parameters
    ----------
    train
        None stands for True.

    >>> import numgrad as ng
    >>> ng.native_dropout(ng.ones(2), 0.5, False)
    (tensor([1., 1.]), tensor([True, True]))
    """
    shape = input._array.shape
    if train is False or not input._array.size:
        return input * 1, ones(shape, dtype=bool_)
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={1 - p:g}")
    kept: Tensor = empty(shape, dtype=bool_).bernoulli_(1 - p)
    return input * kept * (1 / (1 - p) if p < 1 else 0.0), kept


# --- tables ---------------------------------------------------------------------------------------


@declare(
    "embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, "
    "bool sparse=False)",
    method=False,
)
def _embedding(
    weight: Tensor, indices: Tensor, padding_idx: int, scale_grad_by_freq: bool, sparse: bool
) -> Tensor:
    """Return rows of a table by their numbers; see `nn.functional`, which takes these first.

    The gradient is g, added up in the rows that it came from.

    Parameters
    ----------
    padding_idx
        A row to which no gradient flows; -1 for none.

    >>> import numgrad as ng
    >>> ng.embedding(ng.tensor([[1.0, 2.0], [3.0, 4.0]]), ng.tensor([1, 0]))
    tensor([[3., 4.],
            [1., 2.]])
    """
    inside = 0 <= padding_idx < (weight._array.shape[0] if weight._array.ndim else 0)
    result: Tensor = embedding(
        indices,
        weight,
        padding_idx if inside else None,
        scale_grad_by_freq=scale_grad_by_freq,
        sparse=sparse,
    )
    return result


@declare(
    "embedding_renorm_(Tensor input, Tensor indices, float max_norm, float norm_type)",
    method=False,
)
def _embedding_renorm_(input: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Make rows of a table shorter, in place, that are named and whose norm is greater.

    No gradient flows through what is written.

    Parameters
    ----------
    norm_type
        The order of the norm.

    Raises
    ------
    RuntimeError
        If `indices` are of neither int64 nor int32.

    >>> import numgrad as ng
    >>> ng.embedding_renorm_(ng.tensor([[3.0, 4.0], [6.0, 8.0]]), ng.tensor([1]), 5.0, 2.0).round()
    tensor([[3., 4.],
            [3., 4.]])
    """
    check_numbers_of_rows(indices, 2, "indices", "embedding_renorm_")
    numbers = numbers_of_rows(indices._array, size=input._array.shape[0])
    return shorten_rows(input, wrap(numbers).reshape(-1).long(), max_norm, norm_type)
