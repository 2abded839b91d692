"""Tools around autograd, under PyTorch's names."""

from numgrad.utils import checkpoint, hooks

__all__ = ["checkpoint", "hooks"]
