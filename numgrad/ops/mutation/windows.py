"""Writes to windows, whose elements may share memory, by what leaves some elements as they are.

The result of such a function says what all elements of the window would hold. To write that would
undo, in the memory that elements share, what was written where an index or a mask said. So the
values go into the memory one after the other, each where the function names an element.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from numgrad.graph.inplace import before_write, bump_version, write_elements
from numgrad.graph.modes.state import interceptors
from numgrad.graph.recorder import place_of
from numgrad.graph.tensor import Tensor, wrap
from numgrad.kernels.move.strides import Layout, extent, layout_of, may_overlap, strided_view
from numgrad.kernels.move.windows import write_named
from numgrad.ops.calls.steps import Step, Steps
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.movement.strided import AS_STRIDED

__all__ = ["is_window", "naming_step", "write_where_named"]


def is_window(array: Any) -> bool:
    """Return whether elements of an array may share memory."""
    place = place_of(array)
    return not place.flags.c_contiguous and may_overlap(layout_of(place))


def naming_step(steps: Steps, stand_in: Tensor, result: Tensor) -> Step | None:
    """Return the step that gave a result, if it names what it writes of the tensor's elements."""
    if not steps.steps:
        return None
    step = steps.steps[-1]
    names = step.primitive.named is not None and step.operands[0] is stand_in
    return step if names and step.outputs[0] is result else None


def write_where_named(tensor: Tensor, result: Tensor, step: Step | None) -> None:
    """Write a result into a tensor; if a step is given, what that names, to the tensor's memory."""
    if step is None:
        write_elements(tensor, ..., result._array)
        return
    if interceptors:
        before_write(tensor)
    window = layout_of(place_of(tensor._array))
    low, high = extent(window)
    shape, strides, _ = window
    memory = AS_STRIDED.apply(
        wrap(tensor._array), layout=((high - low,), (1,), low), own=window, storage_offset=None
    )
    written = _in_memory(step.primitive).apply(
        memory, *step.operands[1:], window=(shape, strides, -low), **step.parameters
    )
    write_elements(memory, ..., written._array)
    bump_version(tensor)


@cache
def _in_memory(primitive: Primitive) -> Primitive:
    """Return what does in a copy of memory what a primitive writes to a window of it."""

    def forward(memory: Any, *arrays: Any, window: Layout, **parameters: Any) -> Any:
        memory = memory.copy()
        own = np.arange(math.prod(window[0])).reshape(window[0])
        named = primitive.named(own, *arrays, **parameters)  # type: ignore[misc]
        write_named(strided_view(memory, window), *named)
        return memory

    inputs = ["memory", *primitive.inputs[1:]]
    rules = [None] * len(inputs)
    name = f"{primitive.name}_in_memory"
    return Primitive(name, "NotImplemented", forward, inputs, rules, takes_half=True, listed=False)
