"""In-place writes: which are allowed, version counters, and how a write enters the history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.graph.counters import NoCounter
from numgrad.graph.forbidden_views import forbidden_view
from numgrad.graph.modes.anomaly import note_write
from numgrad.graph.modes.state import interceptors, modes
from numgrad.graph.tensor import NO_EDGE, Tensor

__all__ = [
    "before_write",
    "bump_version",
    "check_captured",
    "check_counted",
    "check_inplace",
    "write_elements",
]


def check_inplace(
    tensor: Tensor,
    recorded: bool = False,
    operation: str = "copy",
    operands: Sequence[Any] = (),
) -> None:
    """Raise, in PyTorch's words, if an operation may not write to `tensor`.

    Parameters
    ----------
    tensor : Tensor
        What is written to.
    recorded : bool
        Whether the operation is recorded, even if this tensor does not require grad.
    operation : str
        The name of the function, without underscore.
    operands : sequence
        What else it was given.
    """
    if interceptors and modes.level is not None:
        check_captured(tensor, operation, operands)
    if not modes.grad:
        return
    base = tensor._base
    if base is None:
        if tensor._edge is None or tensor._level is not None:
            raise RuntimeError(
                "a leaf Variable that requires grad is being used in an in-place operation."
            )
        return
    requires_grad = tensor.requires_grad
    if not requires_grad and not recorded:
        return
    if tensor._view_origin:
        check_counted(tensor)
        raise RuntimeError(forbidden_view(tensor, "is being"))
    if requires_grad and (base.grad_fn is None or base._level is not None):
        raise RuntimeError(
            "a view of a leaf Variable that requires grad is being used in an in-place operation."
        )


def before_write(tensor: Tensor) -> None:
    """Let who keeps what tensors hold know of a write. Without `interceptors` nobody does."""
    if modes.keeper is not None:
        modes.keeper.before_write(tensor)
    if modes.overwritten is not None:
        modes.overwritten.before_write(tensor)


def write_elements(tensor: Tensor, key: Any, values: Any) -> None:
    """Write into the memory of a tensor; nothing is checked but that a trace has it as its own."""
    array = tensor._array
    if type(tensor._counter) is not list:
        check_counted(tensor)
    if interceptors:
        before_write(tensor)
        if modes.trace is not None and type(array) is np.ndarray:
            array = modes.trace.writable(tensor)
    if type(values) is np.ndarray and values.dtype is not array.dtype:
        _assign_cast(array, key, values)
    else:
        array[key] = values
    tensor._counter[0] += 1
    if interceptors:
        note_write(tensor._counter)


@silent
def _assign_cast(array: Any, key: Any, values: Any) -> None:
    """Write values of another dtype; what the array can't hold is infinite there."""
    array[key] = values


def bump_version(tensor: Tensor) -> None:
    """Count a write."""
    try:
        tensor._counter[0] += 1
    except RuntimeError:  # an inference tensor has no version
        check_counted(tensor)
    if interceptors:
        note_write(tensor._counter)


def check_counted(tensor: Tensor) -> None:
    """Raise outside of inference mode if the writes to a tensor can't be counted.

    Raises
    ------
    RuntimeError
    """
    if type(tensor._counter) is NoCounter and not modes.inference:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make "
            "a clone to get a normal tensor before doing inplace update.See "
            "https://github.com/pytorch/rfcs/pull/17 for more details."
        )


# What PyTorch's messages call the overload of an operation: if the last operand is a tensor, and if
# it is not.
_ENDINGS = {
    **dict.fromkeys(
        ("add", "sub", "mul", "div", "floor_divide", "true_divide"), (".Tensor", ".Tensor")
    ),
    **dict.fromkeys(("eq", "ge", "gt", "le", "lt", "ne"), (".Tensor", ".Scalar")),
    **dict.fromkeys(
        ("copysign", "float_power", "fmod", "pow", "remainder"), (".Tensor", ".Scalar")
    ),
    **dict.fromkeys(("fill", "lerp", "masked_fill"), (".Tensor", ".Scalar")),
    **dict.fromkeys(("clamp", "clamp_max", "clamp_min"), (".Tensor", "")),
    "bernoulli": (".Tensor", ".float"),
    "index_fill": (".int_Tensor", ".int_Scalar"),
    "scatter": (".src", ".value"),
    "set": (".source_Tensor", ".source_Tensor"),
    "xlogy": (".Tensor", ".Scalar_Other"),
}
# Of those with and without further operands: if there are none, and one.
_BY_COUNT = {"round": ("", ".decimals"), "set": ("",), "squeeze": ("", ".dim")}


def _overload(operation: str, operands: Sequence[Any]) -> str:
    """Return what PyTorch's messages call the in-place form of an operation, given operands."""
    endings = _BY_COUNT.get(operation, ())
    if len(operands) < len(endings):
        return f"aten::{operation}_{endings[len(operands)]}"
    by_tensor, by_number = _ENDINGS.get(operation, ("", ""))
    is_tensor = bool(operands) and isinstance(operands[-1], Tensor)
    return f"aten::{operation}_{by_tensor if is_tensor else by_number}"


def check_captured(tensor: Tensor, operation: str, operands: Sequence[Any] = ()) -> None:
    """Raise if the function that `numgrad.func` is differentiating only captured a tensor.

    Its own are its arguments, what it computed, and what it (or a function that it differentiated)
    made.

    Parameters
    ----------
    tensor : Tensor
        What is to be written to.
    operation : str
        The name of the function, without underscore.
    operands : sequence
        What else it was given.
    """
    level, counter = modes.level.keeper, tensor._counter
    if level is None:
        return
    if len(counter) > 3 and list.__getitem__(counter, 3) >= level.start:
        return
    holder = tensor if tensor._base is None else tensor._base
    lent = level.arguments.get(id(counter))
    if lent:
        return
    if lent is False and holder._edge is NO_EDGE and not level.is_outer(holder):
        return
    node = None if holder._edge is None else holder._edge[0]
    if holder._level is level or (node is not None and node.sequence >= level.start):
        return
    name = _overload(operation, operands)
    raise RuntimeError(
        "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call "
        f"in-place operation ({name}) that would mutate a captured Tensor. This is not supported; "
        "please rewrite the function being transformed to explicitly accept the mutated Tensor(s) "
        "as inputs."
    )
