"""The compiled loop over unit vectors, for Jacobians and Hessians."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numba import from_dtype, types

from numgrad.base.tuning import THREAD_ELEMENTS_UNIT_VECTORS
from numgrad.jit.lowering.unit_vectors import Rows
from numgrad.runtime.forks import lazy
from numgrad.runtime.threads import parallel_for

__all__ = ["RowLoop", "grain_of"]

Array = np.ndarray[Any, Any]


def grain_of(rows: Rows) -> int:
    """Return how many of the vectors a thread takes at least."""
    each = sum(prod(output.shape) for output in rows.graph.outputs) + rows.count
    return max(1, THREAD_ELEMENTS_UNIT_VECTORS // max(1, each))


class RowLoop:
    """Runs a graph for each unit vector.

    Parameters
    ----------
    rows : Rows
    program : Program
        That of the graph of `rows`.
    """

    def __init__(self, rows: Rows, program: Any) -> None:
        self.rows, self.graph = rows, rows.graph
        self.program = program

    @lazy
    def entry(self) -> Any:
        """The compiled loop over some vectors: `numgrad.jit.emit.standalone.literal_loop`."""
        loop = self.program.loop
        inputs, outputs = self.graph.inputs[1:], self.graph.outputs
        dims = [(value, len(value.shape)) for value in inputs]
        dims += [(value, len(value.shape) + 1) for value in outputs]
        arrays = [types.Array(from_dtype(value.dtype), ndim, "C") for value, ndim in dims]
        signature = (types.intp, types.intp, *arrays)
        loop.compile(signature)
        self._held = loop  # while it is, programs with the same source share it
        return loop.overloads[signature].entry_point

    def forward(self, *captured: Array) -> tuple[Array, ...]:
        """Return the results of all vectors, stacked along a first dim."""
        count = self.rows.count
        outputs = self.graph.outputs
        results = tuple([np.empty((count, *output.shape), output.dtype) for output in outputs])
        given = [np.ascontiguousarray(array).reshape(array.shape) for array in captured]
        loop = self.entry

        def task(first: int, last: int) -> None:
            loop(first, last, *given, *results)

        parallel_for(task, count, grain_of(self.rows))
        return results
