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
from numgrad.ops.nn.gumbel import gumbel_softmax
from numgrad.ops.nn.rectified import celu_, hardshrink, prelu, rrelu_, selu_, threshold_
from numgrad.ops.nn.softmax import log_softmax, softmax, softmin
from numgrad.ops.pointwise.activation import logsigmoid, sigmoid, softplus
from numgrad.ops.pointwise.trigonometric import tanh

__all__ = [
    "celu",
    "celu_",
    "elu",
    "elu_",
    "gelu",
    "glu",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "leaky_relu",
    "leaky_relu_",
    "log_softmax",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rrelu",
    "rrelu_",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
]

# What slides over the last dims stands apart: a package of operations of its own.
from numgrad.ops.spatial.adaptive_pooling import ADAPTIVE_POOLS
from numgrad.ops.spatial.attention import scaled_dot_product_attention
from numgrad.ops.spatial.convolution import CONVOLUTIONS
from numgrad.ops.spatial.grids import affine_grid, grid_sample
from numgrad.ops.spatial.interpolation import (
    interpolate,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)
from numgrad.ops.spatial.norm_pooling import NORM_POOLS
from numgrad.ops.spatial.padding import pad
from numgrad.ops.spatial.pooling import POOLS
from numgrad.ops.spatial.response_norm import local_response_norm
from numgrad.ops.spatial.shuffling import channel_shuffle, pixel_shuffle, pixel_unshuffle
from numgrad.ops.spatial.sliding_blocks import fold, unfold
from numgrad.ops.spatial.unpooling import UNPOOLS

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

__all__ += [
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
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "channel_shuffle",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "fold",
    "grid_sample",
    "interpolate",
    "local_response_norm",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "pad",
    "pixel_shuffle",
    "pixel_unshuffle",
    "scaled_dot_product_attention",
    "unfold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]
