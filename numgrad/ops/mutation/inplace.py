"""In-place operations: any function of the catalogue, with its result written into its input.

The function runs out of place on a stand-in for the tensor; then its result is copied into the
tensor's memory and the history is rewritten: the tensor's own, or, if the tensor is a view, that
of the base it is a view of (`CopySlices`), from which all views take theirs again.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.backward.accumulate import AccumulateGrad, gradient_edge
from numgrad.graph.inplace import (
    check_captured,
    check_counted,
    check_inplace,
)
from numgrad.graph.modes.overwritten import copy_saved, saved_entries, with_saved
from numgrad.graph.modes.state import interceptors, modes
from numgrad.graph.node import Node, next_sequence, node_type
from numgrad.graph.overlap import check_overlap, warn_of_repeats
from numgrad.graph.recorder import address_of
from numgrad.graph.saved_tensors import pack_saved
from numgrad.graph.tensor import (
    NO_EDGE,
    Tensor,
    fresh,
    refresh_view,
    wrap,
)
from numgrad.graph.upward import upward
from numgrad.kernels.move.strides import layout_of
from numgrad.ops.calls.steps import forget_steps, note_steps
from numgrad.ops.mutation.history import enter_view, rewrite_history
from numgrad.ops.mutation.windows import is_window, naming_step, write_where_named

# Functions that write one number everywhere: elements that share a place do no harm.
_WRITE_ONE_NUMBER = {"fill", "zero"}
_WITH_A_NUMBER = {"index_fill", "masked_fill"}  # which is the last operand, and read before
# Functions that PyTorch lets write to leaves that require grad.
_NEVER_RECORDED = {"logical_not", "logical_and", "logical_or", "logical_xor"}
# Functions that write where an index says: what they read may be no part of what they write to.
_SCATTERS = {"index_add", "index_copy", "index_fill", "index_put", "put", "scatter", "scatter_add"}
# Functions that PyTorch lets write to elements that are shown several times, and those it warns of.
_REPEAT_WITH_WARNING = {"index_fill", "index_put", "masked_fill"}
_REPEAT = {"fill_diagonal", "tril", "triu", *_REPEAT_WITH_WARNING}
# Functions whose result has another shape in PyTorch's words than those that broadcast.
_PRODUCTS = {"addmm", "addmv", "baddbmm"}
# What writes 0 and 1 over the tensor: the history of it and of the operand ends in zeros.
_COMPARISONS = {"eq", "ne", "lt", "le", "gt", "ge"}
# PyTorch's nodes of these in-place forms have the next free number of the function's nodes.
_NAMES = {
    "AcoshBackward0": "AcoshBackward1",
    "AsinhBackward0": "AsinhBackward1",
    "AtanhBackward0": "AtanhBackward1",
    "CeluBackward0": "CeluBackward1",
    "EluBackward0": "EluBackward1",
    "LeakyReluBackward0": "LeakyReluBackward1",
    "ThresholdBackward0": "ThresholdBackward1",
    "NotImplemented": "NotImplemented",  # the operation it names has a `_` more
    "TBackward0": "TBackward1",
    "TransposeBackward0": "TransposeBackward1",
    "UnsqueezeBackward0": "UnsqueezeBackward1",
    "SqueezeBackward0": "SqueezeBackward3",
    "SqueezeBackward1": "SqueezeBackward4",
    "SqueezeBackward2": "SqueezeBackward5",
    "AsStridedBackward0": "AsStridedBackward1",
}

__all__ = ["in_place_class", "perform", "snapshot"]


class _ZeroNode(Node):
    """The node of an operation whose result no operand has a gradient of but zeros."""

    __slots__ = ("layouts",)

    layouts: list[tuple[tuple[int, ...], Any]]  # shape and dtype of each operand

    def run_arrays(self, gradients: Sequence[Any]) -> tuple[Sequence[Any], Sequence[bool | None]]:
        """Return zeros."""
        return self._zeros(gradients[0]), [True] * len(self.targets)

    def run_tensors(self, gradients: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """Return zeros."""
        return [None if each is None else fresh(each) for each in self._zeros(gradients[0])]

    def _zeros(self, gradient: Any) -> list[Any]:
        return [
            None if gradient is None or target is None else np.zeros(*layout)
            for target, layout in zip(self.targets, self.layouts, strict=True)
        ]


def _zero_node(function: str, tensors: Sequence[Tensor]) -> Node:
    """Return the node of a comparison of a tensor with another one, if there is one."""
    name = f"{function.title()}Backward{len(tensors) - 1}"
    node = node_type(name, _ZeroNode)([gradient_edge(tensor) for tensor in tensors])
    node.layouts = [(tensor._array.shape, tensor._array.dtype) for tensor in tensors]
    return node


def perform(function: Callable[..., Tensor], name: str, tensor: Tensor, *arguments: Any) -> Tensor:
    """Run a function whose first argument is `tensor`, and put its result in the tensor's place.

    Parameters
    ----------
    function : callable
        What is called with a stand-in for the tensor, and with the arguments.
    name : str
        What it is called, without underscore.
    tensor : Tensor
        What is written to.
    *arguments
        What else the function takes.

    Returns
    -------
    Tensor
        `tensor` itself.
    """
    recorded = (
        modes.grad
        and name not in _NEVER_RECORDED
        and any(isinstance(each, Tensor) and each.requires_grad for each in (tensor, *arguments))
    )
    if interceptors and modes.level is not None:
        check_captured(tensor, name, _given(arguments))
    if recorded:
        check_inplace(tensor, recorded, name)
    if type(tensor._counter) is not list:
        check_counted(tensor)
    is_harmless = name == "copy" and _is_itself(tensor, arguments[:1])
    read = arguments[:-1] if name in _WITH_A_NUMBER else arguments
    if name == "fill" and isinstance(arguments[0], Tensor):
        check_overlap(tensor, ())
    if name not in _WRITE_ONE_NUMBER and name not in _SCATTERS and not is_harmless:
        check_overlap(tensor, read, repeats=name in _REPEAT)
    dual = modes.dual if interceptors else None
    stand_in = wrap(tensor._array)
    if dual is not None:
        stand_in = dual.before_write(tensor)
    if recorded:
        stand_in._edge = gradient_edge(tensor)
    for operand in arguments:
        if isinstance(operand, Tensor):
            refresh_view(operand)  # its node is none of the operation's
    start = next_sequence()
    if interceptors and modes.saved_hooks:
        function = partial(_without_hooks, function)
    step = None
    if is_window(tensor._array):
        result, steps = note_steps(function, stand_in, *arguments)
        step = naming_step(steps, stand_in, result)
        forget_steps()
    else:
        result = function(stand_in, *arguments)
    if name in _SCATTERS:  # only now is it known that these are such operands as there may be
        check_overlap(tensor, read, apart=True, repeats=name in _REPEAT)
    if name in _REPEAT_WITH_WARNING:
        warn_of_repeats(tensor, name)
    _check_fits(name, tensor, result)
    if interceptors and modes.steps is not None:
        modes.steps.note_write(stand_in, result, enter_view)
    edge = result._edge
    if edge is NO_EDGE or edge is None:
        written = None
        if recorded and name in _COMPARISONS and tensor._array.dtype.kind in "fc":
            tensors = [each for each in (tensor, *arguments) if isinstance(each, Tensor)]
            written = _zero_node(name, tensors)
            forget_steps()  # none of them makes that node
        write_where_named(tensor, result, step)
        if written is not None:
            rewrite_history(tensor, written.edge(0), (written, 0), True)
        if dual is not None:
            dual.write(tensor, result)
        return tensor
    created = _nodes_since(edge[0], start)
    snapshot(created, stand_in)
    before = gradient_edge(tensor)
    write_where_named(tensor, result, step)
    for node in created:  # what was saved of the result is saved of the tensor from now on
        _replace_saved(node, result._counter, (tensor._array, tensor._counter, tensor._counter[0]))
    if len(created) == 1 and type(created[0]).__name__ in _NAMES:
        created[0].__class__ = in_place_class(type(created[0]))
    rewrite_history(tensor, before, edge, len(created) == 1)
    if interceptors and modes.overwritten is not None:
        modes.overwritten.savers.extend([weakref.ref(node) for node in created])
    if interceptors and modes.saved_hooks:  # only now do they hold what they will need
        given = [each for each in arguments if isinstance(each, Tensor) and each is not tensor]
        for node in created:
            kept = saved_entries(node)
            places = zip(kept[::3], kept[1::3], strict=True)
            pack_saved(node, [_among(given, array, counter) for array, counter in places])
    if dual is not None:
        dual.write(tensor, result)
    return tensor


def _given(arguments: Sequence[Any]) -> Sequence[Any]:
    """Return arguments without those behind that say nothing: None, and no decimals."""
    count = len(arguments)
    while count and (
        arguments[count - 1] is None
        or (type(arguments[count - 1]) is int and not arguments[count - 1])
    ):
        count -= 1
    return arguments[:count]


def _without_hooks(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """Run a function while hooks on saved tensors are not called."""
    hooks = modes.saved_hooks
    modes.saved_hooks = ()
    try:
        return function(*arguments, **keywords)
    finally:
        modes.saved_hooks = hooks


def _is_itself(tensor: Tensor, operands: Sequence[Any]) -> bool:
    """Whether elements would be written over themselves."""
    (source,) = operands or (None,)
    return (
        isinstance(source, Tensor)
        and source._counter is tensor._counter
        and source._array.dtype == tensor._array.dtype
        and layout_of(source._array) == layout_of(tensor._array)
        and address_of(source._array) == address_of(tensor._array)
    )


def _check_fits(name: str, tensor: Tensor, result: Tensor) -> None:
    """Raise unless the result has the tensor's shape and a dtype that casts to the tensor's."""
    if not dtypes.can_cast(result.dtype, tensor.dtype):
        raise RuntimeError(
            f"result type {result.dtype.scalar_name} can't be cast to the desired output type "
            f"{tensor.dtype.scalar_name}"
        )
    if result._array.shape != tensor._array.shape:
        if name in _PRODUCTS:
            raise RuntimeError(
                f"Bad in-place call: input tensor size {list(tensor.shape)} and output tensor size "
                f"{list(result.shape)} should match"
            )
        raise RuntimeError(
            f"output with shape {list(tensor.shape)} doesn't match the broadcast shape "
            f"{list(result.shape)}"
        )


def _nodes_since(node: Node | None, start: int) -> list[Node]:
    """Return the nodes reachable from `node` that were made after `start`."""
    found: list[Node] = []
    stack = [node]
    while stack:
        candidate = stack.pop()
        if candidate is None or candidate in found or candidate.sequence <= start:
            continue
        if isinstance(candidate, AccumulateGrad):
            continue
        found.append(candidate)
        stack.extend(candidate.targets)
    return found


def _among(tensors: Sequence[Tensor], array: Any, counter: Any) -> Tensor | None:
    """Return which of some tensors was saved, if one of them was."""
    found = (each for each in tensors if each._array is array and each._counter is counter)
    return next(found, None)


def snapshot(nodes: list[Node], stand_in: Tensor) -> None:
    """Copy what nodes saved of the stand-in, whose memory is about to be overwritten."""
    copies: dict[int, Any] = {}
    for node in nodes:
        entries = saved_entries(node)
        if copy_saved(entries, stand_in._counter, copies):
            with_saved(node, entries)


def _replace_saved(node: Node, counter: list[int], replacement: Any) -> None:
    """Put `replacement` where a node saved the tensor with that version counter."""
    entries = saved_entries(node)
    if any(each is counter for each in entries[1::3]):
        for at in range(0, len(entries), 3):
            if entries[at + 1] is counter:
                entries[at : at + 3] = replacement
        with_saved(node, entries)


def in_place_class(cls: type[Node]) -> type[Node]:
    """Return the class of the nodes of an operation's in-place form."""
    name = _NAMES.get(cls.__name__, cls.__name__)
    found: type[Node] = node_type(name, cls, cls.__module__, in_place=True)
    return found


upward.perform = perform
