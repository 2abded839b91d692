"""What may be written to in place, and how a write enters the graph's history."""

from __future__ import annotations

import re
import weakref

from numgrad.graph.core import NO_EDGE, Edge, Tensor, refresh_view
from numgrad.graph.modes import modes

__all__ = ["check_inplace", "move_retained"]


def check_inplace(tensor: Tensor) -> None:
    """Raise, in PyTorch's words, if an operation that is recorded may not write to `tensor`."""
    if not modes.grad:
        return
    base = tensor._base
    if base is None:
        if tensor._edge is None:
            raise RuntimeError(
                "a leaf Variable that requires grad is being used in an in-place operation."
            )
        return
    refresh_view(tensor)
    if tensor._view_origin and (tensor._edge is not NO_EDGE or base._edge is not NO_EDGE):
        raise RuntimeError(_forbidden_view(tensor))
    if base._edge is None and (tensor._edge is not NO_EDGE or tensor._edge is None):
        raise RuntimeError(
            "a view of a leaf Variable that requires grad is being used in an in-place operation."
        )


def _forbidden_view(view: Tensor) -> str:
    """Return PyTorch's words for a view that may not be written to."""
    if view._view_origin == "multiple":
        node, output_nr = view._edge or NO_EDGE
        name = "" if node is None else re.sub(r"Backward\d*$", "", node.name())
        return (
            f"Output {output_nr} of {name} is a view and is being modified inplace. This view is "
            "the output of a function that returns multiple views. Such functions do not allow the "
            "output views to be modified inplace. You should replace the inplace operation by an "
            "out-of-place one."
        )
    mode = {"no_grad": "no_grad", "inference": "inference_mode"}[view._view_origin]
    if mode == "no_grad":
        place = "no_grad block"
    else:
        place = "inference_mode block"
    return (
        f"A view was created in {mode} mode and is being modified inplace with grad mode enabled. "
        "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify "
        f"your code by moving both the view and the inplace either both inside the {place} (if you "
        "don't want the inplace to be tracked) or both outside (if you want the inplace to be "
        "tracked)."
    )


def move_retained(tensor: Tensor, old: Edge | None, new: Edge) -> None:
    """Let a tensor that retains its gradient retain that of its new node, not of its old one."""
    if not tensor._retains_grad:
        return
    if old is not None and old[0] is not None and old[0]._retained:
        old[0]._retained.pop(old[1], None)
    node, output_nr = new
    if node is not None:
        if node._retained is None:
            node._retained = {}
        node._retained[output_nr] = weakref.ref(tensor)
