"""Losses of classes: cross_entropy and nll_loss."""

from __future__ import annotations

from typing import Any

from numgrad.graph.tensor import Tensor, wrap
from numgrad.kernels.move.places import are_inside, unless_inside
from numgrad.ops.core.run_time import at_run_time
from numgrad.ops.indexing.gathering import gather
from numgrad.ops.movement.unit_dims import squeeze, unsqueeze
from numgrad.ops.nn.losses.reduced import reduced, reduction_of
from numgrad.ops.pointwise.selection import where
from numgrad.ops.reduction.reductions import sum as sum_
from numgrad.ops.reduction.softmax import log_softmax
from numgrad.ops.signatures.declared import declare

__all__ = [
    "cross_entropy",
    "nll_loss",
]

_NUMBERED = (
    "(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, "
    "int ignore_index=-100, bool? reduce=None, str reduction='mean'"
)


def _quick_classes(function: Any, size: int, ignored: int) -> Any:
    """Return what gives numbers of classes back if that is what they are; None if some are not."""
    return None if 0 <= ignored < size else unless_inside(function, size, ignored=ignored)


@at_run_time(quick=_quick_classes)
def _classes_of(target: Any, size: int, ignored: int) -> Any:
    """Return numbers of classes, 0 for those to ignore; raise for what is no class."""
    if not 0 <= ignored < size and are_inside(target, size):
        return target
    outside = ((target < 0) | (target >= size)) & (target != ignored)
    if outside.any():
        raise IndexError(f"Target {target[outside].flat[0]} is out of bounds.")
    return (target * (target != ignored)).astype(target.dtype)


def _check_shapes(input: Tensor, target: Tensor, weight: Tensor | None) -> None:
    """Raise unless the target has a number for each row of classes, and the weight one for each."""
    sizes, given = list(input._array.shape), list(target._array.shape)
    ndim = len(sizes)
    if ndim == 0:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if ndim != 1 and (not given or sizes[0] != given[0]):
        raise ValueError(
            f"Expected input batch_size ({sizes[0]}) to match target batch_size "
            f"({given[0] if given else 1})."
        )
    if ndim <= 2 and len(given) > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if ndim == 1 and given and given != [1]:
        raise ValueError(
            f"For 1D input, 1D target must have size 1, but got target size: {given[0]}"
        )
    if ndim == 4 and len(given) != 3:
        raise RuntimeError(
            "only batches of spatial targets supported (3D tensors) but got targets of dimension: "
            f"{len(given)}"
        )
    if ndim == 4 and sizes[2:] != given[1:]:
        raise RuntimeError(f"size mismatch (got input: {sizes} , target: {given}")
    if ndim > 2 and sizes[2:] != given[1:]:
        raise RuntimeError(f"Expected target size {[sizes[0], *sizes[2:]]}, got {given}")
    if str(target._array.dtype) not in ("int64", "uint8"):
        raise RuntimeError(
            f"expected target dtype to be Long or Byte, but got {target.dtype.scalar_name}"
        )
    count = sizes[0] if ndim == 1 else sizes[1]
    if weight is not None:
        _check_weight(weight, count, "")
        if weight._array.dtype != input._array.dtype:
            raise RuntimeError(
                f"expected scalar type {input.dtype.scalar_name} but found "
                f"{weight.dtype.scalar_name}"
            )


def _check_weight(weight: Tensor, count: int, function: str) -> None:
    if weight._array.ndim != 1 or weight._array.size != count:
        raise RuntimeError(
            f"{function}weight tensor should be defined either for all {count} classes or no "
            f"classes but got weight tensor of shape: {list(weight._array.shape)}"
        )


class _Chosen:
    """The classes that a target names, of a table with a class in each place of one dim.

    Attributes
    ----------
    dim : int
        That dim.
    classes, counted : Tensor
        The numbers, 0 for those that are ignored; and which are not.
    weights : Tensor
        What each counts, 0 where it is ignored.
    is_weighted : bool
        Whether that is anything but 1 elsewhere.
    """

    def __init__(self, input: Tensor, target: Tensor, weight: Tensor | None, ignored: int) -> None:
        _check_shapes(input, target, weight)
        if not input.dtype.is_floating_point:
            raise NotImplementedError(
                f"\"nll_loss_out_frame\" not implemented for '{input.dtype.scalar_name}'"
            )
        shape = input._array.shape
        self.dim = 0 if len(shape) == 1 else 1
        if len(shape) == 1 and target._array.ndim == 1:
            target = squeeze(target, 0)
        if str(target._array.dtype) != "int64":
            target = target.long()
        target = target.contiguous()
        self.counted = target != ignored
        self.classes = wrap(_classes_of(target._array, size=shape[self.dim], ignored=ignored))
        self.weights = where(self.counted, 1.0, 0.0).to(input.dtype)
        self.is_weighted = weight is not None
        if weight is not None:
            self.weights = weight[self.classes] * self.weights

    def of(self, table: Tensor) -> Tensor:
        """Return the element of the class of each row."""
        return squeeze(gather(table, self.dim, unsqueeze(self.classes, self.dim)), self.dim)

    def loss(self, table: Tensor, reduction: str) -> Tensor:
        """Return the negative weighted elements, reduced."""
        # Not 0 times them: they may be infinite.
        loss = where(self.counted, -self.of(table), 0.0)
        if self.is_weighted:
            loss = loss * self.weights
        if reduction == "mean":
            return sum_(loss) / sum_(self.weights)
        return reduced(loss, reduction)


@declare(f"nll_loss{_NUMBERED})", function=False, method=False, dispatched=True)
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    size_average: bool | None,
    ignore_index: int,
    reduce: bool | None,
    reduction: str,
) -> Tensor:
    """Return the mean of the negative logarithms of probability of classes.

    The gradient is -w / sum(w) at the classes, w being their weights, else 0.

    Parameters
    ----------
    input : tensor of shape (N, C), (C,) or (N, C, d1, ...)
        Logarithms of probabilities, as of `log_softmax`.
    target : tensor of shape (N,), () or (N, d1, ...)
        Numbers of classes.
    weight : tensor of shape (C,), optional
        What each class counts; the mean is divided by the sum of these.
    ignore_index
        What stands for no class, and counts nothing.
    reduction
        ``"mean"``, ``"sum"``, or ``"none"`` for the elements.

    Raises
    ------
    IndexError
        If there is no such class.
    RuntimeError, ValueError
        If the shapes do not fit.

    >>> import numgrad as ng
    >>> logs = ng.tensor([[0.25, 0.75], [0.5, 0.5]]).log()
    >>> ng.nn.functional.nll_loss(logs, ng.tensor([1, 0]), reduction="none")
    tensor([0.2877, 0.6931])
    """
    reduction = reduction_of(reduction, size_average, reduce)
    return _Chosen(input, target, weight, ignore_index).loss(input, reduction)


@declare(
    f"cross_entropy{_NUMBERED}, float label_smoothing=0.0)",
    function=False,
    method=False,
    dispatched=True,
)
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    size_average: bool | None,
    ignore_index: int,
    reduce: bool | None,
    reduction: str,
    label_smoothing: float,
) -> Tensor:
    """Return the mean of the negative logarithms of softmax at classes.

    The gradient is (softmax(x) - t) over the number of rows, t being 1 for the class and else 0.

    Parameters
    ----------
    input : tensor of shape (N, C), (C,) or (N, C, d1, ...)
        Logarithms of probabilities up to a constant.
    target
        As of `nll_loss`; or, floating point and of the input's shape, probabilities of classes.
    weight, ignore_index, reduction
        As of `nll_loss`.
    label_smoothing
        The part of a class that is spread over all classes evenly. Szegedy and others, arXiv
        1512.00567.

    Raises
    ------
    IndexError
        If there is no such class.
    RuntimeError, ValueError
        If the shapes do not fit.

    >>> import numgrad as ng
    >>> ng.nn.functional.cross_entropy(ng.tensor([[0.0, 0.0], [1.0, 0.0]]), ng.tensor([1, 0]))
    tensor(0.5032)
    """
    reduction = reduction_of(reduction, size_average, reduce)
    shape = input._array.shape
    dim = 0 if len(shape) == 1 else 1
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    if shape and shape == target._array.shape:
        return _of_probabilities(
            input, target, weight, ignore_index, reduction, label_smoothing, dim
        )
    if not shape:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    logs = log_softmax(input, dim)
    chosen = _Chosen(logs, target, weight, ignore_index)
    loss = chosen.loss(logs, reduction)
    if not label_smoothing:
        return loss
    table = logs
    if weight is not None:
        table = logs * weight.reshape([-1 if at == dim else 1 for at in range(len(shape))])
    spread = where(chosen.counted, -sum_(table, dim), 0.0)
    if reduction == "mean":
        spread = sum_(spread) / sum_(chosen.weights)
    else:
        spread = reduced(spread, reduction)
    result: Tensor = (1 - label_smoothing) * loss + spread * (label_smoothing / shape[dim])
    return result


def _of_probabilities(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
    dim: int,
) -> Tensor:
    """Return the cross entropy of probabilities."""
    if not target.dtype.is_floating_point:
        raise RuntimeError(
            "Expected floating point type for target with class probabilities, got "
            f"{target.dtype.scalar_name}"
        )
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    shape = input._array.shape
    count = shape[dim]
    if weight is not None:
        _check_weight(weight, count, "cross_entropy: ")
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / count
    loss = log_softmax(input, dim) * target
    if weight is not None:
        loss = loss * weight.reshape([-1 if at == dim else 1 for at in range(len(shape))])
    if reduction == "none":
        return -sum_(loss, dim)
    total: Tensor = -sum_(loss)
    if reduction == "sum":
        return total
    rows = input._array.size // count if count else 0
    return total / rows
