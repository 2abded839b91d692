"""Steps of a program that are calls and no loops: matrix products, primitives as they stand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from numgrad.base.float_errors import restore, silence
from numgrad.jit.emit.compiled_loops import compiled_loop
from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.schedule.index_maps import Elements

__all__ = ["as_compact", "as_own", "opaque_call", "operand_reader"]

NDArray = np.ndarray[Any, Any]

_COMPACT = 0x101  # NumPy's flags for C-contiguous and aligned memory


def as_compact(array: NDArray) -> NDArray:
    """Return an array that is C-contiguous and aligned: itself if it is, else a copy."""
    if array.flags.num & _COMPACT == _COMPACT:
        return array
    return array.copy("C")


def as_own(result: NDArray, *arrays: NDArray) -> NDArray:
    """Return a result, or a copy that is C-contiguous, aligned, and no view of `arrays`."""
    fresh = as_compact(result)
    if fresh is result and any(np.may_share_memory(result, array) for array in arrays):
        return result.copy()
    return fresh


def operand_reader(
    value: Value,
    elements: Elements,
    kept: set[Value],
    buffers: Mapping[Value, str],
    numbers: Mapping[str, int],
) -> tuple[str, Callable[[NDArray], NDArray]]:
    """Return the array that an operand of a step is in, and what finds it there, as a view.

    Parameters
    ----------
    value : Value
    elements : Elements
    kept : set of Value
        What is in memory.
    buffers : mapping
        Under which name.
    numbers : mapping
        The numbers that the names of sizes stand for.
    """
    shape, dtype = value.shape, value.dtype
    if value in kept:
        if value.operation == "item" and 0 in shape:  # how many turns there were is not known here
            return buffers[value], lambda array: array
        return buffers[value], lambda array: array.reshape(shape)
    strided = elements.strided(value, kept)
    assert strided is not None
    name = buffers[strided.base]
    if 0 in shape:
        nothing = np.empty(shape, dtype)
        return name, lambda array: nothing
    start = strided.start.evaluate(numbers) * dtype.itemsize
    strides = tuple(stride.evaluate(numbers) * dtype.itemsize for stride in strided.strides)
    return name, lambda array: np.ndarray(shape, dtype, array, start, strides)


def opaque_call(
    value: Value, positions: Sequence[int], build: Callable[[Graph], Any]
) -> Callable[..., list[NDArray]]:
    """Return what calls the primitive of a step on arrays.

    Parameters
    ----------
    value : Value
        The call.
    positions : sequence of int
        Which of its results are wanted: new C-contiguous arrays.
    build : callable
        Makes the program of a graph within this one.
    """
    primitive = compiled_loop(value.attributes["primitive"], build)
    prepare = getattr(primitive, "prepared", lambda arrays: primitive.forward)
    is_fixed = all(0 not in operand.shape for operand in value.operands)  # else loops grew them
    known: tuple[Any, Callable[..., Any] | None] = None, None

    def run(*arrays: NDArray) -> list[NDArray]:
        nonlocal known
        places, forward = known
        lie = None if is_fixed else [(array.shape, array.strides) for array in arrays]
        if forward is None or lie != places:
            forward = prepare(arrays)
            known = lie, forward
        before = silence()
        try:
            results = forward(*arrays)
        finally:
            restore(before)
        if not isinstance(results, tuple | list):
            results = (results,)
        return [as_own(np.asarray(results[position]), *arrays) for position in positions]

    return run
