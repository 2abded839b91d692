"""The functions of neural networks, as ``torch.nn.functional``; there are no modules.

>>> import numgrad as ng
>>> import numgrad.nn.functional as F
>>> F.relu(ng.tensor([-1.0, 2.0]))
tensor([0., 2.])
"""

from numgrad.nn import functional

__all__ = ["functional"]
