"""Tools around autograd, under PyTorch's names."""

from numgrad.utils import checkpoint

__all__ = ["checkpoint"]
