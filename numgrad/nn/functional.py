"""Activations, losses and layers as functions, as ``torch.nn.functional``.

>>> import numgrad as ng
>>> import numgrad.nn.functional as F
>>> x = ng.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
>>> F.softmax(x, dim=1).detach()
tensor([[0.0900, 0.2447, 0.6652]])
"""

from numgrad.ops.nn.activations import (
    celu,
    elu,
    elu_,
    gelu,
    glu,
    hardsigmoid,
    hardswish,
    hardtanh,
    hardtanh_,
    leaky_relu,
    leaky_relu_,
    mish,
    relu,
    relu6,
    relu_,
    rrelu,
    selu,
    silu,
    softshrink,
    softsign,
    tanhshrink,
    threshold,
)
from numgrad.ops.nn.attention import scaled_dot_product_attention
from numgrad.ops.nn.bags import embedding_bag
from numgrad.ops.nn.distances import cosine_similarity, normalize, pairwise_distance
from numgrad.ops.nn.dropping import (
    alpha_dropout,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
)
from numgrad.ops.nn.gumbel import gumbel_softmax
from numgrad.ops.nn.layers import bilinear, embedding, linear, one_hot
from numgrad.ops.nn.losses.alignments import ctc_loss
from numgrad.ops.nn.losses.class_margins import (
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
)
from numgrad.ops.nn.losses.classes import cross_entropy, nll_loss
from numgrad.ops.nn.losses.linear_losses import linear_cross_entropy
from numgrad.ops.nn.losses.margins import (
    cosine_embedding_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from numgrad.ops.nn.losses.probabilities import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    kl_div,
)
from numgrad.ops.nn.losses.regression import (
    gaussian_nll_loss,
    huber_loss,
    l1_loss,
    mse_loss,
    poisson_nll_loss,
    smooth_l1_loss,
)
from numgrad.ops.nn.multi_head_attention import multi_head_attention_forward
from numgrad.ops.nn.normalised import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    rms_norm,
)
from numgrad.ops.nn.rectified import celu_, hardshrink, prelu, rrelu_, selu_, threshold_
from numgrad.ops.nn.softmax import log_softmax, softmax, softmin
from numgrad.ops.pointwise.activation import logsigmoid, sigmoid, softplus
from numgrad.ops.pointwise.trigonometric import tanh
from numgrad.ops.spatial.adaptive_pooling import ADAPTIVE_POOLS
from numgrad.ops.spatial.convolution import CONVOLUTIONS
from numgrad.ops.spatial.fractional_pooling import FRACTIONAL_POOLS
from numgrad.ops.spatial.grids import affine_grid, grid_sample
from numgrad.ops.spatial.interpolation import (
    interpolate,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)
from numgrad.ops.spatial.native import conv_tbc, native_channel_shuffle
from numgrad.ops.spatial.norm_pooling import NORM_POOLS
from numgrad.ops.spatial.padding import pad
from numgrad.ops.spatial.pooling import POOLS
from numgrad.ops.spatial.response_norm import local_response_norm
from numgrad.ops.spatial.shuffling import channel_shuffle, pixel_shuffle, pixel_unshuffle
from numgrad.ops.spatial.sliding_blocks import fold, unfold
from numgrad.ops.spatial.unpooling import UNPOOLS
from numgrad.ops.statistics.distances import pdist

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "affine_grid",
    "alpha_dropout",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "bilinear",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "celu_",
    "channel_shuffle",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cross_entropy",
    "ctc_loss",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "elu",
    "elu_",
    "embedding",
    "embedding_bag",
    "feature_alpha_dropout",
    "fold",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "gaussian_nll_loss",
    "gelu",
    "glu",
    "grid_sample",
    "group_norm",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "hinge_embedding_loss",
    "huber_loss",
    "instance_norm",
    "interpolate",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "leaky_relu_",
    "linear",
    "linear_cross_entropy",
    "local_response_norm",
    "log_softmax",
    "logsigmoid",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "margin_ranking_loss",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "mish",
    "mse_loss",
    "multi_head_attention_forward",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "native_channel_shuffle",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "pairwise_distance",
    "pdist",
    "pixel_shuffle",
    "pixel_unshuffle",
    "poisson_nll_loss",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rms_norm",
    "rrelu",
    "rrelu_",
    "scaled_dot_product_attention",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
    "unfold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]

conv1d, conv2d, conv3d = (CONVOLUTIONS[f"conv{_dims}d"] for _dims in (1, 2, 3))

conv_transpose1d, conv_transpose2d, conv_transpose3d = (
    CONVOLUTIONS[f"conv_transpose{_dims}d"] for _dims in (1, 2, 3)
)

avg_pool1d, avg_pool2d, avg_pool3d = (POOLS[f"avg_pool{_dims}d"] for _dims in (1, 2, 3))

max_pool1d, max_pool2d, max_pool3d = (POOLS[f"max_pool{_dims}d"] for _dims in (1, 2, 3))

max_pool1d_with_indices, max_pool2d_with_indices, max_pool3d_with_indices = (
    POOLS[f"max_pool{_dims}d_with_indices"] for _dims in (1, 2, 3)
)

adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (
    ADAPTIVE_POOLS[f"adaptive_avg_pool{_dims}d"] for _dims in (1, 2, 3)
)

adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (
    ADAPTIVE_POOLS[f"adaptive_max_pool{_dims}d"] for _dims in (1, 2, 3)
)

(
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d_with_indices,
) = (ADAPTIVE_POOLS[f"adaptive_max_pool{_dims}d_with_indices"] for _dims in (1, 2, 3))

max_unpool1d, max_unpool2d, max_unpool3d = (UNPOOLS[f"max_unpool{_dims}d"] for _dims in (1, 2, 3))

lp_pool1d, lp_pool2d, lp_pool3d = (NORM_POOLS[f"lp_pool{_dims}d"] for _dims in (1, 2, 3))

fractional_max_pool2d, fractional_max_pool3d = (
    FRACTIONAL_POOLS[f"fractional_max_pool{_dims}d"] for _dims in (2, 3)
)

fractional_max_pool2d_with_indices, fractional_max_pool3d_with_indices = (
    FRACTIONAL_POOLS[f"fractional_max_pool{_dims}d_with_indices"] for _dims in (2, 3)
)
