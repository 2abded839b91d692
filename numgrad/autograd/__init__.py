"""The public autograd API, under PyTorch's names."""

from numgrad.autograd import (
    anomaly_mode,
    forward_ad,
    function,
    functional,
    grad_mode,
    graph,
    variable,
)
from numgrad.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from numgrad.autograd.function.function import Function
from numgrad.autograd.gradcheck.gradcheck import GradcheckError, gradcheck, gradgradcheck
from numgrad.autograd.variable import Variable
from numgrad.graph.backward.backward import backward, grad
from numgrad.graph.modes.grad_modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_multithreading_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)

__all__ = [
    "Function",
    "GradcheckError",
    "Variable",
    "anomaly_mode",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_grad_enabled",
    "is_multithreading_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "variable",
]
