"""The public autograd API, under PyTorch's names."""

from numgrad.autograd import function, graph
from numgrad.autograd.function import Function
from numgrad.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from numgrad.graph.differentiate import backward, grad
from numgrad.graph.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)

__all__ = [
    "Function",
    "GradcheckError",
    "backward",
    "enable_grad",
    "function",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "set_grad_enabled",
]
