"""What transformed functions are called with, and what they return: checks and PyTorch's words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad import pytree
from numgrad.graph.core import Tensor
from numgrad.ops.from_data import from_numpy

__all__ = [
    "Argnums",
    "accept",
    "check_floating",
    "check_real",
    "check_tensors",
    "positions_of",
    "split_aux",
    "tensor_leaves",
]

Argnums = int | tuple[int, ...]


def positions_of(argnums: Argnums, count: int) -> tuple[int, ...]:
    """Return which of `count` positional arguments are meant, counted from the first.

    Raises
    ------
    RuntimeError
        If there is no such argument, one is named twice, or none is named.
    """
    if isinstance(argnums, int):
        return (_position(argnums, count),)
    if not isinstance(argnums, tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    positions = tuple([_position(argnum, count) for argnum in argnums])
    if not positions:
        raise RuntimeError("argnums must be non-empty")
    if len(set(positions)) != len(positions):
        raise RuntimeError(f"argnums elements must be unique, got {positions}")
    return positions


def _position(argnum: Any, count: int) -> int:
    if not isinstance(argnum, int):
        raise RuntimeError(f"argnum must be int, got: {type(argnum)}")
    if not -count <= argnum < count:
        raise RuntimeError(f"Got argnum={argnum}, but only {count} positional inputs")
    return argnum % count


def accept(argument: Any) -> Any:
    """Return an argument with tensors for the NumPy arrays in it."""
    if isinstance(argument, (Tensor, int, float)):
        return argument
    if isinstance(argument, np.ndarray):
        return from_numpy(argument)
    found, spec = pytree.flatten(argument)
    if not any(isinstance(leaf, np.ndarray) for leaf in found):
        return argument
    return pytree.unflatten(spec, [accept(leaf) for leaf in found])


def tensor_leaves(argument: Any) -> tuple[list[Tensor], pytree.TreeSpec]:
    """Return the leaves of an argument to differentiate with respect to, and its structure.

    Raises
    ------
    ValueError
        If one is neither a tensor nor a NumPy array.
    """
    found, spec = pytree.flatten(argument)
    for number, leaf in enumerate(found):
        if isinstance(leaf, np.ndarray):
            found[number] = from_numpy(leaf)
        elif not isinstance(leaf, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(leaf)}")
    return found, spec


def split_aux(output: Any, has_aux: bool, api: str) -> tuple[Any, list[Tensor], Any]:
    """Return the output of a function, and the leaves and the structure of its auxiliary one.

    Raises
    ------
    RuntimeError
        If there should be one and is none, or if it contains anything but tensors.
    """
    if not has_aux:
        return output, [], None
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(
            f"{api}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    found, spec = pytree.flatten(output[1])
    for leaf in found:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(leaf)}")
    return output[0], found, spec


def check_tensors(outputs: Sequence[Any], api: str) -> None:
    """Raise unless there are outputs and all of them are tensors."""
    if not outputs or (len(outputs) == 1 and outputs[0] is None):
        raise RuntimeError(
            f"{api}: Expected f to be a function that has non-empty output (got output = {outputs})"
        )
    for output in outputs:
        if not isinstance(output, Tensor):
            raise RuntimeError(
                f"{api}: expected f(*primals) to return only tensors, got unsupported type "
                f"{type(output)}"
            )


def check_floating(outputs: Sequence[Tensor]) -> None:
    """Raise for an output that has no gradient."""
    for output in outputs:
        if output._array.dtype.kind not in "fc":
            raise RuntimeError(
                "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got "
                f"Tensor with dtype {output.dtype}"
            )


def check_real(tensors: Sequence[Any], api: str, what: str) -> None:
    """Raise for a complex tensor; `what` tells whether these are inputs or outputs."""
    for number, tensor in enumerate(tensors):
        if isinstance(tensor, Tensor) and tensor._array.dtype.kind == "c":
            raise RuntimeError(
                f"{api}: Expected all {what} to be real but received complex tensor at flattened "
                f"input idx: {number}"
            )
