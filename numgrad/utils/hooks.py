"""RemovableHandle, under the name ``torch.utils.hooks``."""

from numgrad.graph.handles import RemovableHandle

__all__ = ["RemovableHandle"]
