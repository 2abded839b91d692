"""Outputs of a custom Function: views, in-place results and non-differentiable ones, wrapped."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

from numgrad.autograd.function.context import FunctionCtx
from numgrad.autograd.function.node import NO_TENSOR, FunctionNode
from numgrad.graph.inplace import bump_version, check_inplace
from numgrad.graph.modes.state import modes
from numgrad.graph.tensor import NO_EDGE, Edge, Tensor, view_of
from numgrad.ops.mutation.history import rewrite_history

__all__ = ["Call", "describe_outputs", "wrap_outputs"]


class Call(NamedTuple):
    """One call of a Function."""

    args: tuple[Any, ...]
    edges: list[Edge]  # of the tensors among them, as they were before the forward pass
    ctx: FunctionCtx
    node: FunctionNode | None  # None if it is not recorded


def wrap_outputs(call: Call, outputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what the caller gets, with its history.

    Raises
    ------
    RuntimeError
        In PyTorch's words, for marks that don't fit, and writes that are not allowed.
    """
    ctx, node = call.ctx, call.node
    inputs = [argument for argument in call.args if isinstance(argument, Tensor)]
    fixed = _marked(ctx.non_differentiable, "non_differentiable", _NON_DIFFERENTIABLE)
    dirty = _marked(ctx.dirty_tensors, "dirty_tensors", "mark_dirty can only accept variables")
    ctx.non_differentiable = ctx.dirty_tensors = None
    for tensor in dirty:
        bump_version(tensor)
        if not _contains(outputs, tensor):
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as "
                "output. The inputs that are modified inplace must all be outputs of the Function."
            )
    if node is not None:
        describe_outputs(node, outputs)
    results: list[Any] = []
    differentiable = 0
    for number, output in enumerate(outputs):
        if not isinstance(output, Tensor):
            results.append(output)
            continue
        is_input, is_dirty = _contains(inputs, output), _contains(dirty, output)
        if node is None or output._array.dtype.kind not in "fc" or _contains(fixed, output):
            result = _without_history(output, is_input, is_dirty)
        else:
            differentiable += 1
            if is_dirty:
                result = _written(call, inputs, output, number)
            else:
                result = _alias(output) if is_input else output
                result._edge = (node, number)
                result._view_version = result._counter[0]
        if result._base is not None and not (is_input and is_dirty):
            result._view_origin = "function"
        results.append(result)
    if differentiable > 1:
        for result in results:
            if isinstance(result, Tensor) and result._base is not None:
                result._view_origin = "multiple"
    return tuple(results)


def describe_outputs(node: FunctionNode, outputs: tuple[Any, ...]) -> None:
    """Tell a node what its outputs are."""
    node.num_outputs = len(outputs)
    node.output_metas = tuple(
        [
            (each._array.shape, each._array.dtype) if isinstance(each, Tensor) else NO_TENSOR
            for each in outputs
        ]
    )


_NON_DIFFERENTIABLE = "mark_non_differentiable only accepts variable arguments"


def _marked(tensors: Any, attribute: str, words: str) -> tuple[Tensor, ...]:
    """Return what the user marked, or raise for anything but tensors."""
    if tensors is None:
        return ()
    if not isinstance(tensors, tuple):
        raise RuntimeError(
            f"autograd internal error: {attribute} attribute is expected to be a tuple but is "
            f"{type(tensors).__name__}"
        )
    for position, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            what = f"got {type(tensor).__name__}"
            if attribute == "dirty_tensors":
                what = f"argument {position} is of type {type(tensor).__name__}"
            raise RuntimeError(f"{words}, but {what}")
    return tensors


def _contains(tensors: Sequence[Any], tensor: Tensor) -> bool:
    return any(tensor is each for each in tensors)


def _alias(tensor: Tensor) -> Tensor:
    """Return a view of all of a tensor, made while nothing is recorded."""
    recording = modes.grad
    modes.grad = False
    try:
        return view_of(tensor, tensor._array)
    finally:
        modes.grad = recording


def _without_history(output: Tensor, is_input: bool, is_dirty: bool) -> Tensor:
    """Return an output that no gradient flows from."""
    if not output.requires_grad:
        return _alias(output) if is_input and not is_dirty else output
    if is_input:
        detached: Tensor = output.detach()
        return detached
    if output._base is None:
        output._edge = NO_EDGE
    return output


def _written(call: Call, inputs: list[Tensor], output: Tensor, number: int) -> Tensor:
    """Return an argument that the forward pass wrote to, as an output."""
    node = call.node
    if node is None:
        raise RuntimeError("what is not recorded has no history")
    # A view that `forward` made of an argument has no history, and its base may require grad.
    base = output._base
    is_own_view = output._view_origin == "no_grad" and not _contains(inputs, output)
    if base is not None and is_own_view:
        is_leaf = base.requires_grad
    else:
        is_leaf = output.is_leaf and output.requires_grad
    if is_leaf:
        raise RuntimeError(
            "a leaf Variable that requires grad has been used in an in-place operation."
        )
    if not _contains(inputs, output):
        warnings.warn(
            "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that "
            "have been mutated should be passed to ctx.mark_dirty().",
            UserWarning,
            stacklevel=4,
        )
        output._edge = (node, number)
        return output
    if output._base is not None and node.num_outputs > 1:
        raise RuntimeError(
            "If your Function modifies inplace an input that is a view of another Tensor, your "
            "Function cannot return more than one Tensor. This is not supported by the current "
            "autograd engine. You should either make sure the input is not a view (using .clone() "
            "for example) or make your Function only return one Tensor (potentially splitting it "
            "into two Functions: one doing the inplace that returns a single Tensor and a second "
            "one that does the other operations). You can ask on the forum "
            "https://discuss.pytorch.org/ if you need help to do this change."
        )
    check_inplace(output, recorded=True)
    position = next(index for index, tensor in enumerate(inputs) if tensor is output)
    # The node may stand for the write to a view if the view is the first of its inputs.
    rewrite_history(output, call.edges[position], (node, number), direct=position == 0)
    return output
