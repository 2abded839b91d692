"""Grad modes (no_grad, enable_grad, inference_mode) under the name ``torch.autograd.grad_mode``."""

from numgrad.graph.modes.grad_modes import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)

__all__ = [
    "enable_grad",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]
