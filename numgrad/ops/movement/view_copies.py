"""Copies of views: view_copy, expand_copy, select_copy and the like.

One runs the view, copies what that shows into
memory of its own, and hangs the copy on the view's node, which differentiates both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numgrad.graph.modes.state import interceptors, modes, recording
from numgrad.graph.node import Node, node_type
from numgrad.graph.tensor import NO_EDGE, NOWHERE, Tensor
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.core.out_argument import check_outs, write_result
from numgrad.ops.core.registry import FUNCTIONS, METHODS
from numgrad.ops.movement.copies import clone_contiguous, detach
from numgrad.ops.movement.slicing import alias, narrow, slice_view
from numgrad.ops.signatures.declared import declare, handing_on

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


def _slice(
    input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    at = wrap_dim(dim, input._array.ndim) if input._array.ndim else 0
    if step < 1:
        raise RuntimeError("slice step must be positive")
    return slice_view(input, at, slice(start, end, step))


def _narrowed(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """Return the view that is copied; what is wrong is said in other words than of a view."""
    shape = input._array.shape
    if shape and dim >= len(shape):
        raise RuntimeError(
            "Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false.  "
            "(Could this error message be improved?  If so, please report an enhancement request "
            "to PyTorch.)"
        )
    if length < 0:
        raise RuntimeError(
            f"start ({start}) + length ({length}) exceeds dimension size ({shape[dim]})."
        )
    return narrow(input, dim, start, length)


def _detached(input: Tensor) -> Tensor:
    return alias(detach(input))


def _viewed(input: Tensor, size: Any = None, dtype: Any = None) -> Tensor:
    """Return a view, or a copy where none can show that: it is copied in any case."""
    result: Tensor = METHODS["reshape"](input, size) if dtype is None else input.view(dtype)
    return result


# Behind the tensor: what the views take, and some of them nothing else.
_PARAMETERS: dict[str, tuple[str, ...]] = {
    "alias": ("",),
    "as_strided": ("int[] size, int[] stride, int? storage_offset=None",),
    "detach": ("",),
    "diagonal": ("int offset=0, int dim1=0, int dim2=1",),
    "expand": ("int[] size",),
    "narrow": ("int dim, int start, int length",),
    "permute": ("int[] dims",),
    "select": ("int dim, int index",),
    "slice": ("int dim=0, int? start=None, int? end=None, int step=1",),
    "split": ("int split_size, int dim=0",),
    "split_with_sizes": ("int[] split_sizes, int dim=0",),
    "squeeze": ("", "int dim", "int[] dim"),
    "t": ("",),
    "transpose": ("int dim0, int dim1",),
    "unbind": ("int dim=0",),
    "unfold": ("int dimension, int size, int step",),
    "unsqueeze": ("int dim",),
    "view": ("dtype dtype", "int[] size"),
    "view_as_complex": ("",),
    "view_as_real": ("",),
}
_SEVERAL = ("split", "split_with_sizes", "unbind")
_VIEWS: dict[str, Callable[..., Any]] = {
    "alias": alias,
    "detach": _detached,
    "narrow": _narrowed,
    "slice": _slice,
    "view": _viewed,
}


def _enter(plain: str, parameters: tuple[str, ...]) -> Callable[..., Any]:
    """Make the copy of a function that gives one view or several, and enter it."""
    name = f"{plain}_copy"
    view = _VIEWS.get(plain) or METHODS.find(plain) or FUNCTIONS[plain]

    def copied(input: Tensor, out: Any, **given: Any) -> Any:
        found = view(input, **{key: each for key, each in given.items() if each is not None})
        if isinstance(found, Tensor):
            copy = _copy(found, name)
            return copy if out is None else write_result(name, copy, out)
        copies = tuple([_copy(part, name) for part in found])
        if out is None:
            return copies
        check_outs(name, out, len(copies))
        return tuple([write_result(name, *pair) for pair in zip(copies, out, strict=True)])

    out = f"*, {'Tensor[]' if plain in _SEVERAL else 'Tensor'}? out=None"
    texts = [
        f"{name}({', '.join(filter(None, ('Tensor input', each, out)))})" for each in parameters
    ]
    rule = handing_on(copied, *texts)
    rule.__doc__ = (
        f"Return what `{plain}` shows, as a copy in memory of its own.\n\n"
        f"Mirrors ``torch.{name}``. The derivative is that of `{plain}`; ``out``, if given, takes "
        "the result."
    )
    rule.__annotations__["return"] = "tuple[Tensor, ...]" if plain in _SEVERAL else "Tensor"
    return declare(*texts, method=plain == "narrow")(rule)


COPIES = {f"{name}_copy": _enter(name, each) for name, each in _PARAMETERS.items()}
