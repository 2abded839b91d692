"""The public autograd API, under PyTorch's names."""

from numgrad.autograd import anomaly_mode, forward_ad, functional, grad_mode
from numgrad.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from numgrad.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from numgrad.graph.differentiate import backward, grad
from numgrad.graph.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)

__all__ = [
    "GradcheckError",
    "anomaly_mode",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]
