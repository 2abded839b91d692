"""In-place forms of views: ``t_``, ``transpose_``, ``unsqueeze_`` and others.

They write no number: the tensor gets another shape and other strides on the same memory, and its
history goes on with the view's node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numgrad.graph.inplace import (
    before_write,
    bump_version,
    check_captured,
    check_counted,
    check_inplace,
)
from numgrad.graph.modes.state import interceptors, modes
from numgrad.graph.recorder import address_of
from numgrad.graph.tensor import Tensor, move_retained, set_array
from numgrad.ops.core.registry import METHODS
from numgrad.ops.mutation.inplace import in_place_class
from numgrad.ops.mutation.resizing import memory_of
from numgrad.ops.signatures.declared import declare, handing_on

__all__: list[str] = []

# Functions that give a view, and have an in-place form; what they take behind the tensor.
_RESHAPING: dict[str, tuple[str, ...]] = {
    "as_strided": ("int[] size, int[] stride, int? storage_offset=None",),
    "squeeze": ("", "int[] dim", "int dim"),  # the other way round, x.squeeze_(0, 1) would be taken
    "swapaxes": ("int axis0, int axis1",),
    "swapdims": ("int dim0, int dim1",),
    "t": ("",),
    "transpose": ("int dim0, int dim1",),
    "unsqueeze": ("int dim",),
}


def _reshaping_method(name: str) -> Callable[..., Tensor]:
    """Return the in-place form of a function that gives a view."""
    function = METHODS[name]

    def method(self: Tensor, **given: Any) -> Tensor:
        given = {key: each for key, each in given.items() if each is not None}
        if interceptors and modes.level is not None:
            check_captured(self, name, (*given.values(),))
        if modes.grad and self._edge is None and self._base is None:
            raise RuntimeError(
                "a leaf Variable that requires grad is being used in an in-place operation."
            )
        check_inplace(self, operation=name)
        check_counted(self)
        if interceptors:
            if modes.trace is not None:
                modes.trace.check_reshaping(name, self)
            before_write(self)
        view = function(self, **given)
        edge, made = self._edge, view._edge
        if name == "as_strided" and self._base is None:
            # The shape may leave out some of the memory, which stays its own.
            memory, first = memory_of(self)
            step = (address_of(view._array) - address_of(self._array)) // self._array.itemsize
            self._memory, self._offset = memory, first + step
        set_array(self, view._array)
        bump_version(self)
        if modes.grad and made is not None and made[0] is not None:
            made[0].__class__ = in_place_class(type(made[0]))
            self._edge = made
            move_retained(self, edge, made)
            if self._base is not None:  # it has its history until its base is written to
                self._view_version = self._counter[0]
        return self

    return method


for _name, _parameters in _RESHAPING.items():
    _texts = [
        f"{_name}_({', '.join(filter(None, ('Tensor input', each)))})" for each in _parameters
    ]
    _rule = handing_on(_reshaping_method(_name), *_texts)
    _rule.__doc__ = (
        f"In-place version of `{_name}`: this tensor gets the shape and strides of the view.\n\n"
        "Raises RuntimeError for a leaf that requires grad (or a view of one) in grad mode."
    )
    _rule.__annotations__["return"] = "Tensor"
    declare(*_texts, function=False)(_rule)
