"""What `numgrad.func.control` is called with and what its functions return: checks, and errors.

Carries and rows are pytrees of tensors. NumPy arrays and plain numbers among them become tensors,
None stays None. Loops work on the list of a tree's leaves. What a body returns is compared with
what it was given, and where they differ the error names the body, by the line on which it begins.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.base import dtypes, pytree
from numgrad.base.pytree import TreeSpec
from numgrad.graph.tensor import Tensor
from numgrad.ops.creation.from_data import as_tensor, from_numpy

__all__ = [
    "Leaves",
    "builder_of",
    "check_callable",
    "check_same",
    "describe",
    "name_of",
    "read_leaves",
    "read_returned",
]

Leaves = list[Any]  # tensors and Nones


def check_callable(api: str, **functions: Any) -> None:
    """Raise for what is no function."""
    for name, function in functions.items():
        if not callable(function):
            raise RuntimeError(f"{api}: {name} must be a callable, but got {function!r}")


def name_of(function: Callable[..., Any]) -> str:
    """Return what a function is called, and where it begins."""
    inner: Any = function
    while True:
        if isinstance(inner, functools.partial):
            inner = inner.func
        elif hasattr(inner, "__wrapped__"):
            inner = inner.__wrapped__
        else:
            break
    name = getattr(inner, "__name__", type(inner).__name__)
    call = inner if hasattr(inner, "__code__") else type(inner).__call__
    code = getattr(call, "__code__", None)
    return name if code is None else f"{name} ({code.co_filename}:{code.co_firstlineno})"


def read_leaves(tree: Any, what: str) -> tuple[Leaves, TreeSpec]:
    """Return the leaves of a tree, as tensors or None, and its structure.

    Raises
    ------
    RuntimeError
        If a leaf is neither a tensor, nor an array, nor a number, nor None.
    """
    found, spec = pytree.flatten(tree)
    return [_read(leaf, what) for leaf in found], spec


def _read(leaf: Any, what: str) -> Any:
    if leaf is None or isinstance(leaf, Tensor):
        return leaf
    if isinstance(leaf, np.ndarray):
        return from_numpy(leaf)
    if isinstance(leaf, (int, float, complex, np.number, np.bool_)):
        return as_tensor(leaf)
    raise RuntimeError(f"All {what} leaves must be a Tensor but got {leaf!r}")


def read_returned(tree: Any, likes: Sequence[Any], what: str) -> tuple[Leaves, TreeSpec]:
    """Return the leaves of what a body returned: numbers take the dtypes of `likes`, if they can.

    `likes` are the leaves that stood in their places; none if nothing is known of them.
    """
    found, spec = _flatten(tree)
    for number, leaf in enumerate(found):
        if leaf is None or isinstance(leaf, Tensor):
            continue
        like = likes[number] if len(likes) == len(found) else None
        if like is not None and isinstance(leaf, (int, float, complex)):
            own = dtypes.of_numpy(np.asarray(leaf).dtype)
            if dtypes.can_cast(own, like.dtype):
                found[number] = as_tensor(leaf, dtype=like.dtype)
                continue
        found[number] = _read(leaf, what)
    return found, spec


def _flatten(tree: Any) -> tuple[Leaves, TreeSpec]:
    """Return the leaves and the structure, of a tensor or a tuple of tensors without a search."""
    kind = type(tree)
    if kind is Tensor:
        return [tree], pytree.LEAF
    if kind is tuple and all(type(each) is Tensor for each in tree):
        return list(tree), _tuple_of(len(tree))
    return pytree.flatten(tree)


@functools.cache
def _tuple_of(count: int) -> TreeSpec:
    return TreeSpec(tuple, None, (pytree.LEAF,) * count)


def builder_of(spec: TreeSpec) -> Callable[[Leaves], Any]:
    """Return the function that makes a tree of a structure from its leaves."""
    if spec == pytree.LEAF:
        return operator.itemgetter(0)
    if spec == _tuple_of(len(spec.children)):
        return tuple
    return functools.partial(pytree.unflatten, spec)


def describe(leaves: Sequence[Any], spec: TreeSpec) -> str:
    """Return a structure with dtype and shape of each leaf, such as ``{'a': float32[3]}``."""
    return str(pytree.unflatten(spec, [_Meta(leaf) for leaf in leaves]))


class _Meta:
    """How a leaf is printed."""

    def __init__(self, leaf: Any) -> None:
        self.text = "None"
        if leaf is not None:
            lengths = ", ".join(map(str, leaf._array.shape))
            self.text = f"{str(leaf.dtype).removeprefix('torch.')}[{lengths}]"

    def __repr__(self) -> str:
        return self.text


def check_same(
    api: str,
    names: tuple[str, str],
    first: tuple[Sequence[Any], TreeSpec],
    second: tuple[Sequence[Any], TreeSpec],
    where: str,
) -> None:
    """Raise unless two trees have one structure, and their leaves the same dtypes and shapes.

    Parameters
    ----------
    api : str
        The function that checks.
    names : tuple of two str
        What both are, such as ``init`` and ``carry``.
    first, second : tuple of (leaves, structure)
    where : str
        The end of the message: whose results these are.
    """
    (leaves, spec), (others, other_spec) = first, second
    what = ""
    if spec is not other_spec and spec != other_spec:
        what = "the same pytree structure"
    else:
        for one, other in zip(leaves, others, strict=True):
            if one is None or other is None:
                if one is not other:
                    what = "the same pytree structure"
            elif one._array.dtype != other._array.dtype or one._array.shape != other._array.shape:
                what = "same metadata"
    if what:
        raise RuntimeError(
            f"{api}: Expected {names[0]} and {names[1]} to have {what} but found:\n"
            f"{names[0]}: {describe(leaves, spec)}\n{names[1]}: {describe(others, other_spec)}\n"
            f"{where}"
        )
