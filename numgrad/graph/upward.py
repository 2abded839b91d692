"""What this floor and the core of operations call that stands on a floor above: one table.

================  ==========================================  =====================  ==============
name              what it does                                called from            defined in
================  ==========================================  =====================  ==============
`tensor_class`    the class of a tensor on an array           graph/tensor           graph/recorder
`view_history`    a view's edge, after a write to its base    graph/tensor           ops/movement
`batched...`      `autograd.grad` of a batch of cotangents    graph/backward         batching
`as_tensor`       a tensor of what is none                    operators, NumPy's     ops/creation
`zeros_like`      zeros that lie as a tensor does             graph/backward         ops/creation
`cast`            a tensor in another dtype, recorded         gradients, tangents    ops/movement
`sum_to_size`     the gradient of what was broadcast          gradients              ops/movement
`perform`         a function's result put into its input      methods in place       ops/mutation
`push_forward`    tangents through what was recorded          loops that are traced  autograd
`matrix_norm`     norms by singular values                    `norm`                 ops/matrices
================  ==========================================  =====================  ==============

Each is assigned once, when the module that defines it is imported, before any tensor is made; but
for those of packages that are loaded later: until then ops/later has a function that loads them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["upward"]


class _Upward:
    """The functions by name."""

    __slots__ = (
        "as_tensor",
        "batched_gradients",
        "cast",
        "listed",
        "matrix_norm",
        "perform",
        "push_forward",
        "sum_to_size",
        "tensor_class",
        "view_history",
        "zeros_like",
    )

    as_tensor: Callable[..., Any]
    batched_gradients: Callable[..., Any]
    cast: Callable[..., Any]
    listed: Callable[..., Any]
    matrix_norm: Callable[..., Any]
    perform: Callable[..., Any]
    push_forward: Callable[..., Any]
    sum_to_size: Callable[..., Any]
    tensor_class: Callable[..., Any]
    view_history: Callable[..., Any]
    zeros_like: Callable[..., Any]


upward = _Upward()
