"""Activations, losses and layers as functions, as ``torch.nn.functional``.

>>> import numgrad as ng
>>> import numgrad.nn.functional as F
>>> x = ng.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
>>> F.softmax(x, dim=1).detach()
tensor([[0.0900, 0.2447, 0.6652]])
"""

from numgrad.ops.nn.rectifiers import relu, relu_
from numgrad.ops.nn.softmax import log_softmax, softmax, softmin
from numgrad.ops.pointwise.activation import logsigmoid, sigmoid, softplus
from numgrad.ops.pointwise.trigonometric import tanh
from numgrad.ops.spatial.convolution import CONVOLUTIONS
from numgrad.ops.spatial.pooling import POOLS

conv1d, conv2d, conv3d = (CONVOLUTIONS[f"conv{_dims}d"] for _dims in (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = (
    CONVOLUTIONS[f"conv_transpose{_dims}d"] for _dims in (1, 2, 3)
)
avg_pool1d, avg_pool2d, avg_pool3d = (POOLS[f"avg_pool{_dims}d"] for _dims in (1, 2, 3))
max_pool1d, max_pool2d, max_pool3d = (POOLS[f"max_pool{_dims}d"] for _dims in (1, 2, 3))
max_pool1d_with_indices, max_pool2d_with_indices, max_pool3d_with_indices = (
    POOLS[f"max_pool{_dims}d_with_indices"] for _dims in (1, 2, 3)
)

__all__ = [
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "log_softmax",
    "logsigmoid",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "relu",
    "relu_",
    "sigmoid",
    "softmax",
    "softmin",
    "softplus",
    "tanh",
]
