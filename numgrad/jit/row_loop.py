"""The compiled loop over unit vectors that `numgrad.jit.rows` puts into graphs."""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numba import njit

from numgrad.jit.rows import Rows
from numgrad.kernels.threads import parallel_for

__all__ = ["RowLoop"]

Array = np.ndarray[Any, Any]

GRAIN = 1 << 15  # elements of the results that are worth a thread of their own


class RowLoop:
    """Runs a graph for each unit vector.

    Parameters
    ----------
    rows : Rows
    program : Program
        That of the graph of `rows`.
    """

    def __init__(self, rows: Rows, program: Any) -> None:
        self.graph = rows.graph
        self.program = program

    @cached_property
    def _loop(self) -> Any:
        """The compiled loop over some of the vectors."""
        count = len(self.graph.outputs)
        results = [f"out{k}" for k in range(count)]
        captured = [f"x{k}" for k in range(1, len(self.graph.inputs))]
        lines = [
            f"def loop({', '.join(['first', 'last', 'vector', *captured, *results])}):",
            "    flat = vector.reshape(-1)",
            "    for k in range(first, last):",
            "        flat[k] = 1",
            f"        found = row({', '.join(['vector', *captured])})",
            *(f"        out{k}[k] = found[{k}]" for k in range(count)),
            "        flat[k] = 0",
        ]
        namespace: dict[str, Any] = {"row": self.program.dispatcher}
        exec("\n".join(lines), namespace)
        return njit(nogil=True, error_model="numpy")(namespace["loop"])

    def forward(self, *captured: Array) -> tuple[Array, ...]:
        """Return the results of all vectors, stacked along a first dim."""
        vector = self.graph.inputs[0]
        count = prod(vector.shape)
        outputs = self.graph.outputs
        results = tuple([np.empty((count, *output.shape), output.dtype) for output in outputs])
        given = [np.ascontiguousarray(array).reshape(array.shape) for array in captured]

        def task(first: int, last: int) -> None:
            work = np.zeros(vector.shape, vector.dtype)
            self._loop(first, last, work, *given, *results)

        each = sum(prod(output.shape) for output in outputs) + prod(vector.shape)
        parallel_for(task, count, max(1, GRAIN // max(1, each)))
        return results
