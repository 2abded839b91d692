"""Cotangents: what a backward pass starts with, checked and in the dtypes of the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.backward.accumulate import gradient_edge
from numgrad.graph.node import Node
from numgrad.graph.size import Size
from numgrad.graph.tensor import NO_EDGE, Edge, Tensor, fresh

__all__ = ["GradientEdge", "as_tuple", "check_batches", "roots_of"]


class GradientEdge(NamedTuple):
    """Where the gradient of a tensor is computed: a node, and which of its outputs that was.

    Mirrors ``torch.autograd.graph.GradientEdge``. `numgrad.autograd.graph.get_gradient_edge` gives
    that of a tensor.
    """

    node: Node
    output_nr: int
    ownership_token: Node | None = None


def _cotangent(position: int, output: Any, gradient: Any) -> Tensor:
    """Return the cotangent of a tensor, or of an edge, checked and in its dtype."""
    if isinstance(output, GradientEdge):
        meta = output.node.output_meta(output.output_nr)
        if meta is None:  # nobody knows what would fit
            if isinstance(gradient, Tensor):
                return gradient
            meta = ((), np.dtype(np.float32))
        shape, dtype = meta
    else:
        if gradient is None and not output.requires_grad:
            _raise_no_grad(position)
        shape, dtype = output._array.shape, output._array.dtype
    if gradient is None:
        if shape and Size(shape).numel() != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if dtype.kind == "c":
            raise RuntimeError(
                "grad can be implicitly created only for real scalar outputs but got "
                f"{dtypes.of_numpy(dtype)!r}"
            )
        return fresh(np.ones(shape, dtype))
    if not isinstance(gradient, Tensor):
        raise TypeError(
            f"gradients can be either Tensors or None, but got {type(gradient).__name__}"
        )
    if gradient._array.shape != shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{position}] has a shape of {gradient.shape} and "
            f"output[{position}] has a shape of {Size(shape)}."
        )
    if gradient._array.dtype != dtype:
        kind = dtypes.of_numpy(dtype)
        if (gradient._array.dtype.kind == "c") != (dtype.kind == "c"):
            raise RuntimeError(
                "For complex Tensors, both grad_output and output are required to have the same "
                f"dtype. Mismatch in dtype: grad_output[{position}] has a dtype of "
                f"{gradient.dtype!r} and output[{position}] has a dtype of {kind!r}."
            )
        cast: Tensor = gradient.to(kind)
        return cast
    return gradient


def as_tuple(tensors: Any) -> tuple[Any, ...]:
    """Return tensors that are given as one, or as a sequence.

    An array is none, whatever its class says of iteration, which might never end.
    """
    if type(tensors) is tuple:
        return tensors
    if isinstance(tensors, (Tensor, GradientEdge)):
        return (tensors,)
    return tuple(np.asarray(tensors) if isinstance(tensors, np.ndarray) else tensors)


def roots_of(outputs: tuple[Any, ...], grad_tensors: Any) -> list[tuple[Edge, Tensor]]:
    """Return where the engine starts, each edge with its checked cotangent."""
    if type(grad_tensors) is Tensor and len(outputs) == 1 and isinstance(outputs[0], Tensor):
        (output,) = outputs  # nearly every call
        array, given_array = output._array, grad_tensors._array
        if given_array.shape == array.shape and given_array.dtype is array.dtype:
            edge = gradient_edge(output)
            if edge is not NO_EDGE:
                return [(edge, grad_tensors)]
    given = (None,) * len(outputs) if grad_tensors is None else as_tuple(grad_tensors)
    cotangents = []
    # What is no gradient at all is found before how many there are, as in PyTorch.
    for position, (output, gradient) in enumerate(zip(outputs, given)):  # noqa: B905 - see below
        array = None
        if isinstance(output, Tensor):
            array = output._array
        elif not isinstance(output, GradientEdge):
            raise AssertionError("Expected output to be a torch.Tensor")
        if not (
            array is not None
            and type(gradient) is Tensor
            and gradient._array.shape == array.shape
            and gradient._array.dtype is array.dtype
        ):
            gradient = _cotangent(position, output, gradient)
        cotangents.append(gradient)
    if len(given) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(given)} gradients")
    edges = [
        (output.node, output.output_nr)
        if isinstance(output, GradientEdge)
        else gradient_edge(output)
        for output in outputs
    ]
    for position, edge in enumerate(edges):
        if edge is NO_EDGE:
            _raise_no_grad(position)
    return list(zip(edges, cotangents, strict=True))


def _raise_no_grad(position: int) -> None:
    raise RuntimeError(
        f"element {position} of tensors does not require grad and does not have a grad_fn"
    )


def _shape_of(output: Any) -> tuple[int, ...]:
    """Return the shape of a tensor, or of what hangs at an edge."""
    if isinstance(output, Tensor):
        shape: tuple[int, ...] = output._array.shape
        return shape
    if isinstance(output, GradientEdge):
        meta = output.node.output_meta(output.output_nr)
        return () if meta is None else meta[0]
    raise AssertionError("Expected output to be a torch.Tensor")


def check_batches(outputs: Sequence[Tensor], batches: Sequence[Any]) -> int:
    """Return how many entries the batches of cotangents have.

    Raises
    ------
    RuntimeError, ValueError, IndexError
        In PyTorch's words, if an entry has not its output's shape, if there is no batch for an
        output, or if they differ in length or are empty.
    """
    lengths: list[int] = []
    for position, (output, batch) in enumerate(zip(outputs, batches)):  # noqa: B905 - see roots_of
        shape = _shape_of(output)
        if not isinstance(batch, Tensor):
            if batch is None and Size(shape).numel() != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            if batch is None:
                raise ValueError(
                    "vmap(vjp, in_dims=0, ...)(<inputs>): Got in_dim=0 for some input, but that "
                    "input is a Tensor of dimensionality 0 so expected in_dim to satisfy 0 <= "
                    "in_dim < 0."
                )
            raise TypeError(
                f"gradients can be either Tensors or None, but got {type(batch).__name__}"
            )
        if not batch._array.ndim:
            raise IndexError(
                "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number"
            )
        if batch._array.shape[1:] != shape:
            raise _mismatch(position, shape, batch.shape[1:])
        lengths.append(batch._array.shape[0])
    if len(set(lengths)) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{lengths} for the mapped dimension"
        )
    if not lengths or not lengths[0]:
        raise IndexError("index 0 is out of bounds for dimension 0 with size 0")
    return lengths[0]


def _mismatch(position: int, wanted: tuple[int, ...], shape: Any) -> RuntimeError:
    return RuntimeError(
        "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the "
        "batch dimension. The sizes of the remaining dimensions are expected to match the shape of "
        f"corresponding output, but a mismatch was detected: grad_output[{position}] has a shape "
        f"of {shape!r} and output[{position}] has a shape of {Size(wanted)}. If you only want "
        "some tensors in `grad_output` to be considered batched, consider using vmap."
    )
