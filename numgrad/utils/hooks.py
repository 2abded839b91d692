"""What registering a hook returns, under PyTorch's name."""

from numgrad.graph.handles import RemovableHandle

__all__ = ["RemovableHandle"]
