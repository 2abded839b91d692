"""Steps of a program that are calls and no loops: matrix products, primitives as they stand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.jit.emit.unit_vector_loop import RowLoop
from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.lowering.unit_vectors import Rows
from numgrad.jit.schedule.index_maps import Elements

__all__ = ["Memory", "as_compact", "opaque_step", "operand_reader"]

NDArray = np.ndarray[Any, Any]
Memory = dict[str, NDArray]

_COMPACT = 0x101  # NumPy's flags for C-contiguous and aligned memory


def as_compact(array: NDArray) -> NDArray:
    """Return an array that is C-contiguous and aligned: itself if it is, else a copy."""
    if array.flags.num & _COMPACT == _COMPACT:
        return array
    return array.copy("C")


def operand_reader(
    value: Value,
    elements: Elements,
    kept: set[Value],
    buffers: Mapping[Value, str],
    numbers: Mapping[str, int],
) -> Callable[[Memory], NDArray]:
    """Return what finds an operand of a step in memory, as a view where it is one.

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
    if value in kept:
        name = buffers[value]
        shape = value.shape
        return lambda memory: memory[name].reshape(shape)
    strided = elements.strided(value, kept)
    assert strided is not None
    name, itemsize = buffers[strided.base], value.dtype.itemsize
    if 0 in value.shape:
        nothing = np.empty(value.shape, value.dtype)
        return lambda memory: nothing
    start = strided.start.evaluate(numbers) * itemsize
    strides = tuple(stride.evaluate(numbers) * itemsize for stride in strided.strides)
    shape, dtype = value.shape, value.dtype
    return lambda memory: np.ndarray(shape, dtype, memory[name], start, strides)


def opaque_step(
    value: Value,
    readers: list[Callable[[Memory], NDArray]],
    items: Mapping[int, str],
    target: str,
    build: Callable[[Graph], Any],
) -> Callable[[Memory], None]:
    """Return what does a step.

    Parameters
    ----------
    value : Value
        The matrix product or call.
    readers : list of callable
        For each operand what finds it.
    items : mapping
        For a call, the name of the array for the result at each position.
    target : str
        For a matrix product, the name of the array for it.
    build : callable
        Makes the program of a graph within this one.
    """
    if value.operation == "matmul":
        left, right = readers

        @silent
        def multiply(memory: Memory) -> None:
            np.dot(left(memory), right(memory), memory[target])

        return multiply

    primitive, parameters = value.attributes["primitive"], value.attributes["parameters"]
    if isinstance(primitive, Rows):
        primitive = RowLoop(primitive, build(primitive.graph))

    def call(memory: Memory) -> None:
        arrays = [read(memory) for read in readers]
        results = primitive.forward(*arrays, **parameters)
        if not isinstance(results, tuple | list):
            results = (results,)
        for position, name in items.items():
            result = np.asarray(results[position])
            fresh = as_compact(result)
            if fresh is result and any(np.may_share_memory(result, array) for array in arrays):
                fresh = result.copy()
            memory[name] = fresh

    return call
