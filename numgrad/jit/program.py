"""Graphs as something to call: compiled code, the memory it works in, and threads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numba import types
from numba.np.numpy_support import from_dtype

from numgrad.jit.emit import Array, Emitted, emit
from numgrad.jit.graph import Graph, Value
from numgrad.jit.schedule import Nest
from numgrad.kernels.compile import compile_source
from numgrad.kernels.memory import empty
from numgrad.kernels.threads import parallel_for

__all__ = ["Program", "build"]

NDArray = np.ndarray[Any, Any]

GRAIN = 1 << 17  # additions that a thread takes at least
POOLED = 1 << 20  # bytes of room for values in between that are kept from call to call
_COMPACT = 0x101  # numpy's flags for C-contiguous and aligned memory


class Program:
    """A graph, compiled on first use.

    Parameters
    ----------
    graph : Graph

    Attributes
    ----------
    graph : Graph
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._emitted = emit(graph)
        self._room: list[list[NDArray]] = []

    @property
    def source(self) -> str:
        """The Python that is compiled, with a comment on each line that came from the user's."""
        return self._emitted.source(origins=True)

    @cached_property
    def _run(self) -> Any:
        """The compiled function."""
        emitted = self._emitted
        function = compile_source("run", emitted.source())
        if not hasattr(function, "compile"):  # the plain function under NUMBA_DISABLE_JIT
            return function
        signature = (
            *(types.int64,) * 4,
            *(types.Array(from_dtype(a.dtype), len(a.shape), "C") for a in emitted.arrays),
            types.Array(types.int64, 1, "C"),
            types.Array(types.float64, 1, "C"),
        )
        function.compile(signature)
        return function.overloads[signature].entry_point

    @cached_property
    def _numbers(self) -> tuple[NDArray, NDArray]:
        emitted = self._emitted
        return np.array(emitted.sizes, np.int64), np.array(emitted.constants, np.float64)

    def __call__(self, arrays: Sequence[NDArray]) -> list[NDArray]:
        """Compute the outputs.

        Parameters
        ----------
        arrays : sequence of numpy.ndarray
            The inputs, with the shapes and dtypes of the graph's; of any strides.

        Returns
        -------
        list of numpy.ndarray
            New C-contiguous arrays, but an input that is returned as it is.
        """
        emitted = self._emitted
        memory: dict[str, NDArray] = {}
        for array in emitted.arrays:
            if array.role not in ("input", "captured"):
                memory[array.name] = empty(array.shape, array.dtype)
        for value, given in zip(self.graph.inputs, arrays, strict=True):
            memory[emitted.buffers[value]] = _compact(given)
        for value, name in emitted.buffers.items():
            if value.operation == "array":
                memory[name] = _compact(value.attributes["array"])
        self._steps(memory)
        results = []
        for output in self.graph.outputs:
            if output.operation == "input":
                results.append(arrays[self.graph.inputs.index(output)])
            else:
                results.append(memory[emitted.buffers[output]])
        return results

    def _steps(self, memory: dict[str, NDArray]) -> None:
        emitted = self._emitted
        for position, step in enumerate(emitted.plan.steps):
            if isinstance(step, Nest):
                arrays = [memory[array.name] for array in emitted.arrays]
                self._run(position, position + 1, 0, -1, *arrays, *self._numbers)


def _compact(array: NDArray) -> NDArray:
    """Return an array in C order, itself if it is."""
    if array.flags.num & _COMPACT == _COMPACT:
        return array
    return np.ascontiguousarray(array).reshape(array.shape)


def build(graph: Graph) -> Program:
    """Return the program of a graph; nothing is compiled before its first call.

    Parameters
    ----------
    graph : Graph
    """
    return Program(graph)
