"""Losses by margins between classes: multi_margin_loss, multilabel_margin_loss and its soft one."""

from __future__ import annotations

from typing import Any

from numgrad.graph.tensor import Tensor, wrap
from numgrad.ops.core.run_time import at_run_time
from numgrad.ops.creation.creation import zeros_like
from numgrad.ops.indexing.gathering import gather
from numgrad.ops.indexing.scattering import scatter
from numgrad.ops.movement.unit_dims import squeeze, unsqueeze
from numgrad.ops.nn.gradient_layouts import gradient_by_rows
from numgrad.ops.nn.losses.reduced import OLD, reduced, reduction_of
from numgrad.ops.pointwise.activation import logsigmoid, relu
from numgrad.ops.pointwise.selection import where
from numgrad.ops.reduction.reductions import mean
from numgrad.ops.reduction.reductions import sum as sum_
from numgrad.ops.reduction.scans import cumprod
from numgrad.ops.signatures.declared import declare

__all__ = [
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
]


def _require_long(target: Tensor) -> None:
    """Raise unless classes are of int64."""
    if target._array.dtype.name != "int64":
        raise RuntimeError(f"expected scalar type Long but found {target.dtype.scalar_name}")


@at_run_time
def _named_classes(target: Any, count: int, least: int, words: str) -> Any:
    """Return numbers of classes; raise if one is none."""
    if target.size and (target.min() < least or target.max() >= count):
        raise RuntimeError(words)
    return target


@declare(
    "multi_margin_loss(Tensor input, Tensor target, number p=1, number margin=1.0, "
    f"Tensor? weight=None, {OLD})",
    function=False,
    method=False,
)
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: Any,
    margin: Any,
    weight: Tensor | None,
    size_average: bool | None,
    reduce: bool | None,
    reduction: str,
) -> Tensor:
    """Return the mean of max(0, margin - x[t] + x[i])**p over all classes i but t.

    The gradient for x[i] is p max(0, ...)**(p - 1) over the number of classes and of rows, and for
    x[t] minus the sum of these.

    Parameters
    ----------
    input : tensor of shape (N, C) or (C,)
    target : tensor of shape (N,) or ()
        Numbers of classes.
    p
        1 or 2.
    weight : tensor of shape (C,), optional
        What the class of the target counts.

    Raises
    ------
    ValueError
        If p is another number.
    RuntimeError
        If there is no such class, or the shapes do not fit.

    >>> import numgrad as ng
    >>> x = ng.tensor([[0.5, 0.25, 1.0]])
    >>> ng.nn.functional.multi_margin_loss(x, ng.tensor([2]))
    tensor(0.2500)
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight._array.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    sizes = list(input._array.shape)
    if len(sizes) > 2 or (len(sizes) == 2 and not sizes[1]) or sizes == [0]:
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {sizes}"
        )
    single = len(sizes) < 2
    rows = input.reshape(1, -1) if single else gradient_by_rows(input)
    length, count = rows._array.shape
    if target._array.ndim > 1 or target._array.size != length:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input "
            f"samples (batch size). Expected target size [{length}], but got "
            f"{list(target._array.shape)}. Input has shape {sizes}."
        )
    if weight is not None and weight._array.size != count:
        raise RuntimeError(
            f"inconsistent weight size, expected {count} but got {list(weight._array.shape)}"
        )
    _require_long(target)
    classes = wrap(
        _named_classes(target._array, count=count, least=0, words="target out of range")
    ).reshape(length, 1)
    ahead = relu(margin - gather(rows, 1, classes) + rows)
    if p == 2:
        ahead = ahead * ahead
    if weight is not None:
        ahead = ahead * weight[classes]
    ahead = scatter(ahead, 1, classes, 0.0)
    loss = mean(ahead, 1)
    return reduced(squeeze(loss, 0) if single else loss, reduction)


@declare(
    f"multilabel_margin_loss(Tensor input, Tensor target, {OLD})", function=False, method=False
)
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None,
    reduce: bool | None,
    reduction: str,
) -> Tensor:
    """Return the mean of max(0, 1 - x[t] + x[i]), over all classes t of a row and all others i.

    The gradient for x[i] is the number of classes t that it is not behind by 1, over the numbers of
    classes and of rows; that for x[t] minus the number of such i.

    Parameters
    ----------
    input : tensor of shape (N, C) or (C,)
    target : tensor of that shape
        Numbers of classes, up to the first -1.

    Raises
    ------
    RuntimeError
        If there is no such class, or the shapes differ.

    >>> import numgrad as ng
    >>> x, t = ng.tensor([0.5, 0.25, 1.0]), ng.tensor([2, -1, 0])
    >>> ng.nn.functional.multilabel_margin_loss(x, t)
    tensor(0.2500)
    """
    reduction = reduction_of(reduction, size_average, reduce)
    sizes = list(input._array.shape)
    if len(sizes) > 2 or (len(sizes) == 2 and not sizes[1]) or sizes == [0]:
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {sizes}"
        )
    if sizes != list(target._array.shape):
        raise RuntimeError(
            f"inconsistent target size: {list(target._array.shape)} for input of size: {sizes}"
        )
    single = len(sizes) < 2
    rows = input.reshape(1, -1) if single else input
    count = rows._array.shape[1]
    words = "argument #2 'target' is out of range"
    _require_long(target)
    named = wrap(_named_classes(target._array, count=count, least=-1, words=words))
    named = named.reshape(rows.shape)
    valid = cumprod((named >= 0).long(), 1)  # up to the first that is none
    classes = named * valid
    # How often a class is named: not at all, if it is one of the others.
    others = zeros_like(classes).scatter_add(1, classes, valid) == 0
    right = gather(rows, 1, classes)
    ahead = relu(1 - unsqueeze(right, 2) + unsqueeze(rows, 1))
    counted = where(unsqueeze(valid == 1, 2) & unsqueeze(others, 1), ahead, 0.0)
    loss = sum_(counted, (1, 2)) / count
    return reduced(squeeze(loss, 0) if single else loss, reduction)


@declare(
    f"multilabel_soft_margin_loss(Tensor input, Tensor target, Tensor? weight=None, {OLD})",
    function=False,
    method=False,
    dispatched=True,
)
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    size_average: bool | None,
    reduce: bool | None,
    reduction: str,
) -> Tensor:
    """Return the mean of -t ln sigmoid(x) - (1 - t) ln sigmoid(-x): many questions of yes or no.

    The gradient is sigmoid(x) - t, over the number of elements.

    Parameters
    ----------
    target
        1 and 0, or probabilities, in the shape of the input.
    weight
        What each class counts.

    >>> import numgrad as ng
    >>> x, t = ng.tensor([[0.0, 800.0]]), ng.tensor([[1.0, 1.0]])
    >>> ng.nn.functional.multilabel_soft_margin_loss(x, t)
    tensor(0.3466)
    """
    if size_average is not None or reduce is not None:
        reduction = reduction_of(reduction, size_average, reduce)
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    dim = input._array.ndim - 1
    loss = sum_(loss, dim) / input._array.shape[dim]
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    return reduced(loss, reduction)
