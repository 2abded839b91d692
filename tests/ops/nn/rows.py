"""Rows of neural networks in the tables that walk the catalogue."""

from __future__ import annotations

from numgrad.ops.nn import piecewise, smooth
from numgrad.ops.nn.activated import activated

NODES = {
    "F.threshold(m, 0.1, 0.2)": ("ThresholdBackward0", "self threshold"),
    "F.relu6(m)": ("HardtanhBackward0", "max_val min_val self"),
    "F.hardtanh(m)": ("HardtanhBackward0", "max_val min_val self"),
    "F.hardtanh_(m * 1)": ("HardtanhBackward0", "max_val min_val self"),
    "F.leaky_relu(m)": ("LeakyReluBackward0", "negative_slope self"),
    "F.hardshrink(m)": ("HardshrinkBackward0", "lambd self"),
    "F.softshrink(m)": ("SoftshrinkBackward0", "lambd self"),
    "F.hardsigmoid(m)": ("HardsigmoidBackward0", "self"),
    "F.hardswish(m)": ("HardswishBackward0", "self"),
    "F.prelu(m, w)": ("PreluKernelBackward0", "self weight"),
    "F.silu(m)": ("SiluBackward0", "self"),
    "F.mish(m)": ("MishBackward0", "self"),
    "F.gelu(m)": ("GeluBackward0", "approximate self"),
    "F.elu(m)": ("EluBackward0", "alpha input_scale scale self"),
    "F.selu(m)": ("EluBackward0", "alpha input_scale scale self"),
    "F.celu(m)": ("CeluBackward0", "alpha self"),
    "F.tanhshrink(m)": ("SubBackward0", "alpha"),
    "F.softsign(m)": ("DivBackward0", "other self"),
}
TORCH = {
    "elu": lambda m, a, *n: (
        activated(smooth.ELU, a, *n) if m.__name__ == "numgrad" else m.ops.aten.elu(a, *n)
    ),
    "prelu_kernel": lambda m, a, b: (
        piecewise.PRELU(a, b) if m.__name__ == "numgrad" else m.ops.aten._prelu_kernel(a, b)
    ),
    "threshold": lambda m, a, *n: m.nn.functional.threshold(a, *n),
    "hardtanh": lambda m, a, *n: m.nn.functional.hardtanh(a, *n),
    "leaky_relu": lambda m, a, *n: m.nn.functional.leaky_relu(a, *n),
    "hardshrink": lambda m, a, *n: m.nn.functional.hardshrink(a, *n),
    "softshrink": lambda m, a, *n: m.nn.functional.softshrink(a, *n),
    "hardsigmoid": lambda m, a: m.nn.functional.hardsigmoid(a),
    "hardswish": lambda m, a: m.nn.functional.hardswish(a),
    "gelu": lambda m, a: m.nn.functional.gelu(a),
    "gelu_tanh": lambda m, a: m.nn.functional.gelu(a, approximate="tanh"),
    "silu": lambda m, a: m.nn.functional.silu(a),
    "mish": lambda m, a: m.nn.functional.mish(a),
}
ARGUMENTS = {
    "cosine_similarity": "y",
    "pairwise_distance": "y",
    "celu": " | 2.0",
    "hardshrink": " | 0.1",
    "prelu": "@(x, z) | @(x, x[0, :, 0]) | @(v, z)",
    "rrelu": " | 0.2, 0.4",
    "selu": "",
    "threshold": "0.1, 0.2 | @(k, 1, 2)",
}
_RRELU = {f"torch.rrelu({each})": "row by row in PyTorch" for each in ("x", "x, 0.2, 0.4")}
DIFFERENT = _RRELU
DIFFERENT_GRADIENTS = _RRELU
