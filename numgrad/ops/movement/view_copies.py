"""Copies of views: view_copy, expand_copy, select_copy and the like.

They are made from the declarations of the views. One runs the view, copies what that shows into
memory of its own, and hangs the copy on the view's node, which differentiates both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numgrad.base.dtypes import dtype
from numgrad.graph.modes.state import interceptors, modes, recording
from numgrad.graph.node import Node, node_type
from numgrad.graph.tensor import NO_EDGE, NOWHERE, Tensor
from numgrad.ops.core.out_argument import check_outs, write_result
from numgrad.ops.core.primitive import CATALOGUE
from numgrad.ops.core.registry import FUNCTIONS, METHODS, public
from numgrad.ops.movement.casts import clone_contiguous, detach
from numgrad.ops.movement.slicing import alias, slice_view

__all__ = ["COPIES"]

# PyTorch's names of nodes are those of the views and "_copy", but for one that has its own rule.
_NAMES = {"narrow_copy": "NarrowCopyBackward0"}


def _class_of_copy(cls: type[Node], name: str) -> type[Node]:
    """Return the class of the nodes of a copy: as a view's, but its results share no memory."""
    title = _NAMES.get(name, f"{cls.__name__}_copy")
    found: type[Node] = node_type(title, cls, cls.__module__, gives_views=False)
    return found


def _copy(view: Tensor, name: str) -> Tensor:
    """Return a copy of a view, on the view's node."""
    if interceptors and modes.dual is not None:  # a tangent comes by the copy's own node
        return clone_contiguous(view)
    with recording(False):
        copy = clone_contiguous(view)
    edge = view._edge
    if modes.grad and edge is not NO_EDGE and edge is not NOWHERE and edge is not None:
        node: Any = edge[0]
        if type(node).gives_views:  # the node of several views is made one of copies once
            node.__class__ = _class_of_copy(type(node), name)
        copy._edge = edge
    return copy


def _enter(view: Callable[..., Any], name: str) -> None:
    """Make the copy of a function that gives one view or several, and enter it."""

    def function(input: Tensor, *arguments: Any, out: Any = None, **keywords: Any) -> Any:
        found = view(input, *arguments, **keywords)
        if isinstance(found, Tensor):
            copy = _copy(found, name)
            return copy if out is None else write_result(name, copy, out)
        copies = tuple([_copy(part, name) for part in found])
        if out is None:
            return copies
        check_outs(name, out, len(copies))
        return tuple([write_result(name, *pair) for pair in zip(copies, out, strict=True)])

    function.__name__ = function.__qualname__ = name
    function.__module__ = "numgrad"
    plain = name.removesuffix("_copy")
    function.__doc__ = (
        f"Return what `{plain}` shows, as a copy in memory of its own.\n\n"
        f"Parameters and derivative are those of `{plain}`; ``out``, if given, takes the result."
    )
    COPIES[name] = public(name, method=name == "narrow_copy")(function)


def _slice(
    input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    return slice_view(input, dim % max(input._array.ndim, 1), slice(start, end, step))


def _detached(input: Tensor) -> Tensor:
    return alias(detach(input))


def _viewed(input: Tensor, *size: Any, **keywords: Any) -> Tensor:
    """Return a view, or a copy where none can show that: it is copied in any case."""
    by_dtype = "dtype" in keywords or any(isinstance(each, dtype) for each in size)
    result: Tensor = METHODS["view" if by_dtype else "reshape"](input, *size, **keywords)
    return result


def _views() -> dict[str, Callable[..., Any]]:
    """Return the functions of the views that are declared, by name."""
    found: dict[str, Callable[..., Any]] = {"alias": alias, "slice": _slice, "detach": _detached}
    for primitive in CATALOGUE.values():
        if getattr(primitive, "view", False):
            # Squeeze has a primitive for each of its forms: squeeze_all, squeeze_dim, squeeze_dims.
            for name in (primitive.name, primitive.name.rpartition("_")[0]):
                if name in METHODS or name in FUNCTIONS:
                    found[name] = METHODS[name] if name in METHODS else FUNCTIONS[name]
                    break
    found["narrow"] = METHODS["narrow"]  # a slice, by other numbers
    found["view"] = _viewed
    return found


COPIES: dict[str, Callable[..., Any]] = {}
for _name, _view in _views().items():
    _enter(_view, f"{_name}_copy")
