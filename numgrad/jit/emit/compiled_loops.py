"""The compiled loops of a graph, as what is called on arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from numba import from_dtype, types

from numgrad.base.tuning import THREAD_ELEMENTS_UNIT_VECTORS
from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.lowering.loops import Loop
from numgrad.jit.lowering.unit_vectors import Rows
from numgrad.runtime.forks import lazy
from numgrad.runtime.threads import parallel_for

__all__ = ["CarriedLoop", "RowLoop", "compiled_loop", "grain_of"]

Array = np.ndarray[Any, Any]


def compiled_loop(primitive: Any, build: Callable[[Graph], Any]) -> Any:
    """Return what runs a primitive of a graph: for a loop, the compiled one; else itself."""
    if isinstance(primitive, Rows):
        return RowLoop(primitive, build(primitive.graph))
    if isinstance(primitive, Loop):
        return CarriedLoop(primitive, build(primitive.graph))
    return primitive


def grain_of(rows: Rows) -> int:
    """Return how many of the vectors a thread takes at least."""
    each = sum(prod(output.shape) for output in rows.graph.outputs) + rows.count
    return max(1, THREAD_ELEMENTS_UNIT_VECTORS // max(1, each))


class _CompiledLoop:
    """Runs the body of a loop, which `program` is, again and again.

    Parameters
    ----------
    loop : Rows or Loop
    program : Program
    """

    def __init__(self, loop: Any, program: Any) -> None:
        self.loop, self.graph = loop, loop.graph
        self.program = program

    def _dims(self) -> list[tuple[Value, int]]:
        """Return of each argument that is an array a value of its dtype, and how many dims."""
        raise NotImplementedError

    @lazy
    def entry(self) -> Any:
        """The compiled loop: see `numgrad.jit.emit.standalone.standalone_loop`."""
        loop = self.program.loop(self.loop)
        arrays = [types.Array(from_dtype(value.dtype), ndim, "C") for value, ndim in self._dims()]
        numbers = (types.intp,) * (2 * isinstance(self.loop, Rows))
        signature = (*numbers, *arrays)
        loop.compile(signature)
        self._held = loop  # while it is, programs with the same source share it
        return loop.overloads[signature].entry_point


class RowLoop(_CompiledLoop):
    """Runs a graph for each unit vector; with the first and the last one, threads share them."""

    def _dims(self) -> list[tuple[Value, int]]:
        dims = [(value, len(value.shape)) for value in self.graph.inputs[1:]]
        return dims + [(value, len(value.shape) + 1) for value in self.graph.outputs]

    def forward(self, *captured: Array) -> tuple[Array, ...]:
        """Return the results of all vectors, stacked along a first dim."""
        given = _compact(captured)
        results = tuple([np.empty(shape, dtype) for shape, dtype in self.loop.metas()])
        loop = self.entry

        def task(first: int, last: int) -> None:
            loop(first, last, *given, *results)

        parallel_for(task, self.loop.count, grain_of(self.loop))
        return results


class CarriedLoop(_CompiledLoop):
    """Runs a graph in turns, each of which takes what the one before gave."""

    def _dims(self) -> list[tuple[Value, int]]:
        loop, graph = self.loop, self.graph
        dims = []
        for position, value in enumerate(graph.inputs):
            is_row = loop.carries <= position < loop.fixed - loop.counted
            dims.append((value, len(value.shape) + is_row))
        for position, value in enumerate(graph.outputs):
            dims.append((value, len(value.shape) + (position >= loop.carries)))
        return dims

    def forward(self, *operands: Array) -> tuple[Array, ...]:
        """Return the results of the loop."""
        loop = self.loop
        count = (int(operands[loop.fixed - 1]),) if loop.counted else ()
        results = tuple(
            [
                np.empty((*count, *shape[1:]) if loop.grows(position) else shape, dtype)
                for position, (shape, dtype) in enumerate(loop.metas())
            ]
        )
        self.entry(*_compact(operands), *results)
        return results


def _compact(arrays: Sequence[Array]) -> list[Array]:
    return [np.ascontiguousarray(array).reshape(array.shape) for array in arrays]
