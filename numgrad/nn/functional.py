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

__all__ = [
    "log_softmax",
    "logsigmoid",
    "relu",
    "relu_",
    "sigmoid",
    "softmax",
    "softmin",
    "softplus",
    "tanh",
]
