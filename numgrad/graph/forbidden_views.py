"""PyTorch's words for views that may not be written to, in place, or whose base was."""

from __future__ import annotations

from typing import Any

__all__ = ["forbidden_view"]

_FUNCTION_VIEWS = (
    " This view was created inside a custom Function (or because an input was returned as-is) and "
    "the autograd logic to handle view+inplace would override the custom backward associated with "
    "the custom Function, leading to incorrect gradients. This behavior is forbidden. You can fix "
    "this by cloning the output of the custom Function."
)
_MULTIPLE_VIEWS = (
    " This view is the output of a function that returns multiple views. Such functions do not "
    "allow the output views to be modified inplace. You should replace the inplace operation by an "
    "out-of-place one."
)


def forbidden_view(view: Any, modified: str) -> str:
    """Return PyTorch's words for a view that may not be written to, or whose base was.

    Parameters
    ----------
    view : Tensor
    modified : str
        The subject of the sentence: "is being", or what else "has been" modified in place.
    """
    origin = view._view_origin
    node, output_nr = view._edge or (None, 0)
    why = {"multiple": _MULTIPLE_VIEWS, "function": _FUNCTION_VIEWS}.get(origin)
    if why is not None and node is not None:
        return (
            f"Output {output_nr} of {node.operation_name()} is a view and {modified} modified "
            f"inplace.{why}"
        )
    if node is not None:
        output = f"Output {output_nr} of {node.operation_name()}"
        start = f"{output} is a view of a view which was created in"
    else:
        start = "A view was created in"
    if origin == "inference":
        start += f" inference mode and {modified} modified inplace in normal mode."
        block = "inference_mode"
    else:
        start += f" no_grad mode and {modified} modified inplace with grad mode enabled."
        block = "no_grad"
    if why is not None:
        return start + why
    return (
        f"{start} Given that this use case is ambiguous and error-prone, it is forbidden. You can "
        "clarify your code by moving both the view and the inplace either both inside the "
        f"{block} block (if you don't want the inplace to be tracked) or both outside (if you want "
        "the inplace to be tracked)."
    )
