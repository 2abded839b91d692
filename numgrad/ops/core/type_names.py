"""What PyTorch's messages call the type of a value."""

from __future__ import annotations

from typing import Any

from numgrad.base import dtypes
from numgrad.base.device import device as Device
from numgrad.base.layouts import layout as Layout
from numgrad.base.layouts import memory_format as MemoryFormat
from numgrad.graph.size import Size

__all__ = ["OWNERS", "type_name"]

# Classes that go by the name of their package.
OWNERS: dict[type, str] = dict.fromkeys((dtypes.dtype, Layout, MemoryFormat, Device, Size), "torch")


def type_name(value: Any) -> str:
    """Return the name of a value's type as PyTorch's messages give it."""
    kind = type(value)
    owner = "numpy" if kind.__module__ == "numpy" else OWNERS.get(kind)
    return f"{owner}.{kind.__name__}" if owner else kind.__name__
