"""Arguments and results of `numgrad.func`: checks, in PyTorch's words.

Where a derivative is taken with respect to a plain number, that is a tensor of no dimensions; a
list of plain numbers is the tensor that `numgrad.tensor` makes of it. Integers become floating
point, because there they have a derivative; those in other containers, where they may be settings,
do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.base import dtypes, pytree
from numgrad.graph.tensor import Tensor
from numgrad.ops.creation.from_data import as_tensor, from_numpy

__all__ = [
    "Argnums",
    "accept",
    "check_floating",
    "check_real",
    "check_tensors",
    "flatten_numbers",
    "moves",
    "positions_of",
    "read_directions",
    "read_number_argument",
    "read_plain",
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
        If one is neither a tensor, nor a NumPy array, nor a plain number.
    """
    found, spec = flatten_numbers(argument)
    for number, leaf in enumerate(found):
        if isinstance(leaf, Tensor):
            continue
        if isinstance(leaf, np.ndarray):
            found[number] = from_numpy(leaf)
        elif moves(leaf):
            found[number] = read_plain(leaf)
        else:
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(leaf)}")
    return found, spec


def is_plain(value: Any) -> bool:
    """Whether a value is a number of Python's or NumPy's that can move, as truth values can't."""
    return isinstance(value, (int, float, complex, np.number)) and not isinstance(value, bool)


def moves(leaf: Any) -> bool:
    """Whether a leaf of `flatten_numbers` is a list of numbers, or a number but no integer."""
    return type(leaf) is list or isinstance(leaf, (float, complex, np.inexact))


def read_number_argument(argument: Any) -> Any:
    """Return an argument that is a plain number, even an integer, as a tensor, others as is."""
    is_tensor = isinstance(argument, Tensor)  # as most are
    return argument if is_tensor or not is_plain(argument) else read_plain(argument)


def flatten_numbers(tree: Any) -> tuple[list[Any], pytree.TreeSpec]:
    """Return a tree's leaves and structure where lists of nothing but plain numbers are leaves."""
    found, spec = pytree.flatten(tree)
    for leaf in found:
        if not isinstance(leaf, Tensor) and is_plain(leaf):
            return _join_numbers(found, spec)
    return found, spec


def _join_numbers(leaves: list[Any], spec: pytree.TreeSpec) -> tuple[list[Any], pytree.TreeSpec]:
    if spec.type is None:
        return leaves, spec
    if leaves and _is_lists(spec) and all(is_plain(leaf) for leaf in leaves):
        return [pytree.unflatten(spec, leaves)], pytree.LEAF
    joined: list[Any] = []
    children = []
    start = 0
    for child in spec.children:
        stop = start + child.num_leaves
        own, child_spec = _join_numbers(leaves[start:stop], child)
        joined += own
        children.append(child_spec)
        start = stop
    return joined, pytree.TreeSpec(spec.type, spec.context, tuple(children))


def _is_lists(spec: pytree.TreeSpec) -> bool:
    """Whether a structure is of lists, or lists of lists, and so on."""
    return spec.type is list and all(
        child.type is None or _is_lists(child) for child in spec.children
    )


def read_plain(value: Any, dtype: dtypes.dtype | None = None) -> Tensor:
    """Return a plain number, or a list of them, as a tensor that can move."""
    made: Tensor = as_tensor(value, dtype=dtype)
    if dtype is None and made._array.dtype.kind not in "fc":
        return as_tensor(value, dtype=dtypes.default_dtype())
    return made


def read_directions(
    tree: Any, spec: pytree.TreeSpec, likes: Sequence[Tensor]
) -> tuple[list[Any], pytree.TreeSpec]:
    """Return the leaves and the structure of tangents or cotangents of some tensors.

    Arrays become tensors; so do plain numbers, and lists of them unless `spec`, the tensors'
    structure, has lists there; they take the tensors' dtypes. What does not fit is left to the
    caller's words.
    """
    found, own = pytree.flatten(tree)
    fits = own == spec
    if not fits:
        found, own = flatten_numbers(tree)
        fits = own == spec
    for number, leaf in enumerate(found):
        if isinstance(leaf, Tensor):
            continue
        if isinstance(leaf, np.ndarray):
            found[number] = from_numpy(leaf)
        elif fits and (is_plain(leaf) or type(leaf) is list):
            found[number] = read_plain(leaf, likes[number].dtype)
    return found, own


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
