"""Rows of neural networks in the tables that walk the catalogue."""

from __future__ import annotations

from typing import Any

import numgrad as ng
from numgrad.nn import functional as _F
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
    "torch.ctc_loss(m[:, None], torch.tensor([[1]]), (3,), (1,), reduction=0)": (
        "CtcLossBackward0",
        "blank input_lengths log_probs result0 result1 target_lengths targets zero_infinity",
    ),
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
    "cosine_embedding_loss": "@(m, m, m[:, 0], 0.5, 2)",
    "hinge_embedding_loss": "y",
    "margin_ranking_loss": "y, x | y, x, 0.5, 1",
    "poisson_nll_loss": "y, True, False, 1e-8, 0",
    "triplet_margin_loss": "y, x * y",
    "hardshrink": " | 0.1",
    "prelu": "@(x, z) | @(x, x[0, :, 0]) | @(v, z)",
    "rrelu": " | 0.2, 0.4",
    "selu": "",
    "threshold": "0.1, 0.2 | @(k, 1, 2)",
}
# Of tables of fixed layout, of numbers that are drawn, or compositions whose results lie row by row
# here, whichever way the input does.
NOT_KEPT = {"CtcLossBackward0": "blank result0 result1 zero_infinity"}
# Lists there, tensors here.
OTHER_VALUES = {("CtcLossBackward0", f"{name}_lengths") for name in ("input", "target")}
PARTS_FOR_REAL = {"ctc_loss"}
COMPLEX = {"ctc_loss": []}
# Of other dims, of integers and of nothing PyTorch says other words, or computes in other dtypes;
# what they compute is compared in the tests of this folder.
NOT_COMPARED = {
    *("batch_norm", "bilinear", "ctc_loss", "embedding_bag", "embedding_renorm", "group_norm"),
    *("hinge_embedding_loss", "instance_norm", "kl_div", "native_batch_norm", "native_dropout"),
    *("native_group_norm", "native_layer_norm", "norm_except_dim", "rms_norm"),
    *("gru", "lstm", "rnn_relu", "rnn_relu_cell", "rnn_tanh", "rnn_tanh_cell"),
    *("dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout"),
}
LEFT_OUT = {
    *("binary_cross_entropy_with_logits", "kl_div"),
    *("batch_norm", "bilinear", "ctc_loss", "embedding", "embedding_bag", "embedding_renorm_"),
    *("group_norm", "gru_cell", "instance_norm", "layer_norm", "lstm_cell", "native_batch_norm"),
    *("native_dropout", "native_group_norm", "native_layer_norm", "norm_except_dim", "rms_norm"),
    *("gru", "lstm", "rnn_relu", "rnn_relu_cell", "rnn_tanh", "rnn_tanh_cell"),
    *(f"{kind}dropout{form}" for kind in ("", "alpha_", "feature_") for form in ("", "_")),
    *("feature_alpha_dropout", "feature_alpha_dropout_"),
}


def _classes(y: Any) -> Any:
    """Return numbers from 0 to 2 that are others in every call."""
    return y.detach().real[:, :3].argmax(1)


_OF_PAIRS = "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy_with_logits"
_ACTIVATIONS = """
celu elu gelu hardsigmoid hardswish hardtanh leaky_relu mish relu6 selu silu softsign tanhshrink
"""
DISPATCH = {
    **{f"F.{name}": lambda x, y, name=name: getattr(_F, name)(x) for name in _ACTIVATIONS.split()},
    "F.glu": lambda x, y: _F.glu(x),
    "F.hardshrink": lambda x, y: ng.hardshrink(x, 0.25) + _F.softshrink(y, 0.25),
    "F.threshold": lambda x, y: _F.threshold(x, 1.0, 0.5),
    "F.prelu": lambda x, y: ng.prelu(x, y[0, 0]),
    "F.scaled_dot_product_attention": lambda x, y: _F.scaled_dot_product_attention(x, y, y),
    "F.attention with a mask": lambda x, y: _F.scaled_dot_product_attention(x, y, y, x @ y.T > 4),
    **{f"F.{name}": lambda x, y, name=name: getattr(_F, name)(x, y) for name in _OF_PAIRS.split()},
    "F.poisson_nll_loss": lambda x, y: _F.poisson_nll_loss(x, y, full=True),
    "F.hinge_embedding_loss": lambda x, y: _F.hinge_embedding_loss(x, y.sign()),
    "F.margin_ranking_loss": lambda x, y: _F.margin_ranking_loss(x, y, x, 0.5),
    "F.soft_margin_loss": lambda x, y: _F.soft_margin_loss(x, y.sign()),
    "F.cosine_embedding_loss": lambda x, y: _F.cosine_embedding_loss(x, y, ng.ones(3)),
    "F.triplet_margin_loss": lambda x, y: _F.triplet_margin_loss(x, y, x * y),
    "F.multilabel_soft_margin_loss": lambda x, y: _F.multilabel_soft_margin_loss(x, y.sign()),
    "F.binary_cross_entropy": lambda x, y: _F.binary_cross_entropy(x.sigmoid(), y.sigmoid()),
    "F.kl_div": lambda x, y: _F.kl_div(x, y.sigmoid(), reduction="sum"),
    "F.linear": lambda x, y: _F.linear(x, y),
    "F.bilinear": lambda x, y: _F.bilinear(x, y, ng.ones(2, 4, 4).to(x.dtype)),
    "F.layer_norm": lambda x, y: _F.layer_norm(x, (4,)),
    "F.rms_norm": lambda x, y: _F.rms_norm(x, (4,)),
    "F.group_norm": lambda x, y: _F.group_norm(x, 2),
    "F.group_norm with weights": lambda x, y: _F.group_norm(x, 2, y[0], y[1]),
    "F.layer_norm with weights": lambda x, y: _F.layer_norm(x, (4,), y[0], y[0]),
    "F.layer_norm with a weight": lambda x, y: _F.layer_norm(x, (4,), bias=y[0]),
    "F.batch_norm": lambda x, y: _F.batch_norm(x, y[0].detach(), y[1].detach() ** 2),
    "F.batch_norm of a batch": lambda x, y: _F.batch_norm(x, None, None, y[0], training=True),
    "F.batch_norm that learns": lambda x, y: _F.batch_norm(
        x, y[0].detach(), y[1].detach() ** 2, y[2], None, True
    ),
    "F.instance_norm": lambda x, y: _F.instance_norm(x[None], weight=y[:, 0]),
    "F.nll_loss": lambda x, y: _F.nll_loss(x, _classes(y)),
    "F.nll_loss of a part": lambda x, y: _F.nll_loss(x, _classes(y), ignore_index=1),
    "F.cross_entropy": lambda x, y: _F.cross_entropy(x, _classes(y), y[0].detach().abs()),
    "F.cross_entropy, smooth": lambda x, y: _F.cross_entropy(
        x, _classes(y), reduction="sum", label_smoothing=0.25
    ),
    "F.cross_entropy, probable": lambda x, y: _F.cross_entropy(x, y.sigmoid()),
    "F.embedding": lambda x, y: _F.embedding(_classes(y), x),
    "F.embedding by frequency": lambda x, y: _F.embedding(
        _classes(y) % 3, x, padding_idx=0, scale_grad_by_freq=True
    ),
    "F.normalize": lambda x, y: _F.normalize(x) + _F.normalize(y, 1.0, 0),
    "F.cosine_similarity": lambda x, y: _F.cosine_similarity(x, y),
    "F.one_hot": lambda x, y: _F.one_hot(_classes(y), 4),
    "F.one_hot of all": lambda x, y: _F.one_hot(_classes(y)),
    "pairwise_distance": lambda x, y: ng.pairwise_distance(x, y),
    "bilinear": lambda x, y: ng.bilinear(x, y, ng.ones(2, 4, 4)),
    "binary_cross_entropy_with_logits": lambda x, y: ng.binary_cross_entropy_with_logits(x, y),
    "cosine_embedding_loss": lambda x, y: ng.cosine_embedding_loss(x, y, ng.ones(3)),
    "group_norm": lambda x, y: ng.group_norm(x, 2),
    "gru_cell": lambda x, y: ng.gru_cell(x, y[:, :1], x, y[:, :1]),
    "hinge_embedding_loss": lambda x, y: ng.hinge_embedding_loss(x, y.sign()),
    "kl_div": lambda x, y: ng.kl_div(x, y * y, 1),
    "layer_norm": lambda x, y: ng.layer_norm(x, (4,)),
    "margin_ranking_loss": lambda x, y: ng.margin_ranking_loss(x, y, x),
    "native_group_norm": lambda x, y: ng.native_group_norm(x, None, None, 3, 4, 1, 2, 0.1)[0],
    "native_layer_norm": lambda x, y: ng.native_layer_norm(x, (4,), None, None, 0.1)[0],
    "norm_except_dim": lambda x, y: ng.norm_except_dim(x, 2, 1),
    "poisson_nll_loss": lambda x, y: ng.poisson_nll_loss(x, y, True, False, 0.1, 1),
    "rms_norm": lambda x, y: ng.rms_norm(x, (4,)),
    "rnn_relu_cell": lambda x, y: ng.rnn_relu_cell(x, y[:, :3], x, y[:, :3]),
    "rnn_tanh_cell": lambda x, y: ng.rnn_tanh_cell(x, y[:, :3], x, y[:, :3]),
    "triplet_margin_loss": lambda x, y: ng.triplet_margin_loss(x, y, x * y),
}
_RRELU = {f"torch.rrelu({each})": "row by row in PyTorch" for each in ("x", "x, 0.2, 0.4")}
DIFFERENT = _RRELU
