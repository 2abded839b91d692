"""What may be written to in place, and how a write enters the graph's history."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.graph.core import Tensor, forbidden_view
from numgrad.graph.modes import modes

__all__ = ["check_inplace", "write_elements"]


def check_inplace(tensor: Tensor, recorded: bool = False) -> None:
    """Raise, in PyTorch's words, if an operation may not write to `tensor`.

    Parameters
    ----------
    tensor : Tensor
        What is written to.
    recorded : bool
        Whether the operation is recorded, even if this tensor does not require grad.
    """
    if not modes.grad:
        return
    base = tensor._base
    if base is None:
        if tensor._edge is None:
            raise RuntimeError(
                "a leaf Variable that requires grad is being used in an in-place operation."
            )
        return
    requires_grad = tensor.requires_grad
    if not requires_grad and not recorded:
        return
    if tensor._view_origin:
        raise RuntimeError(forbidden_view(tensor, "is being"))
    if requires_grad and base.grad_fn is None:
        raise RuntimeError(
            "a view of a leaf Variable that requires grad is being used in an in-place operation."
        )


def write_elements(tensor: Tensor, key: Any, values: Any) -> None:
    """Write into the memory of a tensor; nothing is checked but that a trace has it as its own."""
    array = tensor._array
    if modes.trace is not None and type(array) is np.ndarray:
        modes.trace.refuse_write()
    array[key] = values
    tensor._counter[0] += 1
