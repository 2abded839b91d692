"""In-place forms of views: t_, transpose_, swapaxes_, unsqueeze_, squeeze_ and as_strided_.

No number is written: the tensor gets another shape and other strides on the same memory, and its
history goes on with the view's node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.graph.inplace import (
    before_write,
    bump_version,
    check_captured,
    check_counted,
    check_inplace,
)
from numgrad.graph.modes import modes, traces
from numgrad.graph.node import Node
from numgrad.graph.recorder import address_of
from numgrad.graph.tensor import Tensor, move_retained
from numgrad.ops.core.registry import FUNCTIONS
from numgrad.ops.mutation.resizing import memory_of

__all__ = ["RESHAPING"]

# PyTorch's nodes of these have the next free number of the view's nodes.
_NAMES = {
    "TBackward0": "TBackward1",
    "TransposeBackward0": "TransposeBackward1",
    "UnsqueezeBackward0": "UnsqueezeBackward1",
    "SqueezeBackward0": "SqueezeBackward3",
    "SqueezeBackward1": "SqueezeBackward4",
    "SqueezeBackward2": "SqueezeBackward5",
    "AsStridedBackward0": "AsStridedBackward1",
}
_classes: dict[type[Node], type[Node]] = {}


def _in_place_class(cls: type[Node]) -> type[Node]:
    """Return the class of the nodes of an operation's in-place form."""
    found = _classes.get(cls)
    if found is None:
        name = _NAMES.get(cls.__name__, cls.__name__)
        attributes = {"__slots__": (), "__module__": cls.__module__}
        found = _classes[cls] = type(name, (cls,), attributes)
    return found


def _method(name: str) -> Callable[..., Tensor]:
    """Return the in-place form of a function that gives a view."""
    function = FUNCTIONS[name]

    def method(self: Tensor, *arguments: Any, **keywords: Any) -> Tensor:
        if traces and modes.level is not None:
            check_captured(self, name)
        if modes.grad and self._edge is None and self._base is None:
            what = "a leaf" if name == "as_strided" else "a view of a leaf"
            raise RuntimeError(
                f"{what} Variable that requires grad is being used in an in-place operation."
            )
        check_inplace(self, operation=name)
        check_counted(self)
        if traces:
            if modes.trace is not None:
                np.asarray(self._array)  # raises what there is to say of one without numbers
                modes.trace.refuse_write()
            before_write(self)
        view = function(self, *arguments, **keywords)
        edge, made = self._edge, view._edge
        if name == "as_strided" and self._base is None:
            # The shape may leave out some of the memory, which stays its own.
            memory, first = memory_of(self)
            step = (address_of(view._array) - address_of(self._array)) // self._array.itemsize
            self._memory, self._offset = memory, first + step
        self._array = view._array
        if self._base is None and modes.grad and made is not None and made[0] is not None:
            made[0].__class__ = _in_place_class(type(made[0]))
            self._edge = made
            move_retained(self, edge, made)
        bump_version(self)  # a view takes its history anew from its base, with its present shape
        return self

    method.__name__ = method.__qualname__ = f"{name}_"
    method.__module__ = "numgrad"
    method.__doc__ = (
        f"In-place version of `{name}`: this tensor gets the shape and strides of the view.\n\n"
        "Raises RuntimeError for a leaf that requires grad (or a view of one) in grad mode."
    )
    return method


RESHAPING = {
    f"{name}_": _method(name)
    for name in ("t", "transpose", "swapaxes", "swapdims", "unsqueeze", "squeeze", "as_strided")
}
