"""Jitted functions whose graphs are run operation by operation, by the kernels of eager mode.

What a trace goes by, what it guards and how its results lie is decided before anything is compiled,
and compiling takes most of the time of a test of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.jit.ir.graph import Graph
from numgrad.jit.ir.validate import validate
from numgrad.jit.run.program import Program
from numgrad.jit.run.program_call import ProgramCall
from tests.jit.run_graph import run_graph

__all__ = ["Uncompiled"]


class Uncompiled(Program):
    """A program that does what its graph means; its source is written, but not compiled."""

    # So that no sizes are compiled in, either.
    is_small = is_native_loop = False

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        validate(graph)

    def call_lines(self, given: Sequence[str]) -> ProgramCall:
        """Return the source of a call."""
        inputs = dict(zip(self.graph.inputs, given, strict=True))
        results = [
            inputs.get(output, f"computed[{k}]") for k, output in enumerate(self.graph.outputs)
        ]
        line = f"computed = compute([{''.join([f'{each}, ' for each in given])}])"
        return ProgramCall([line], results, {"compute": self._compute})

    def _compute(self, arrays: Sequence[np.ndarray]) -> list[Any]:
        return [np.array(found, order="C") for found in run_graph(self.graph, arrays)]
