"""The program of a graph: emitted at once, compiled on first use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import from_dtype, types

from numgrad.codegen.compile.compile import compile_functions
from numgrad.jit.emit.native_steps import calls_natively, is_native_loop, is_small
from numgrad.jit.emit.program_source import emit
from numgrad.jit.emit.standalone import standalone_dispatcher, standalone_loop
from numgrad.jit.ir.graph import Graph
from numgrad.jit.run.program_call import ProgramCall, call_lines, define_call
from numgrad.jit.schedule.overwriting import overwriting
from numgrad.runtime.forks import lazy

__all__ = ["Program", "build"]

NDArray = np.ndarray[Any, Any]


class Program:
    """A graph, compiled on first use.

    Parameters
    ----------
    graph : Graph
    sources : sequence of (int, int)
        Inputs and outputs that are where a generator of random numbers is before and afterwards.

    Attributes
    ----------
    graph : Graph
    """

    def __init__(self, graph: Graph, sources: Sequence[tuple[int, int]] = ()) -> None:
        self.graph, self.sources = graph, sources
        self._emitted = emit(graph)
        self._function: Any = None

    @property
    def source(self) -> str:
        """The Python that is compiled; a comment says of each line what it came from."""
        return self._emitted.source()

    @property
    def steps(self) -> int:
        """How many loops, matrix products and calls of primitives there are."""
        emitted = self._emitted
        return len(emitted.bands) + len(emitted.plan.steps) - len(emitted.nests)

    @lazy
    def dispatcher(self) -> Any:
        """A Numba dispatcher over arrays of the graph's shapes, for use in compiled code.

        It returns a tuple of the outputs, those without dims as numbers, and raises `ValueError`
        for arrays of other shapes. Where the `sources` say so it takes generators.
        """
        return standalone_dispatcher(self._emitted, self.graph, build, sources=self.sources)

    @property
    def filler(self) -> Any:
        """A dispatcher that is given arrays for the outputs, too; it returns those of no dims.

        No output may be an input, or there twice. Giving Numba an array costs less than taking one.
        """
        return standalone_dispatcher(self._emitted, self.graph, build, into=True)

    def loop(self, loop: Any) -> Any:
        """Return a dispatcher that does a loop (`Rows` or `Loop`) whose body this is.

        See `numgrad.jit.emit.standalone.standalone_loop` for what it is called with.
        """
        writes_over = overwriting(self.graph, loop.own)
        emitted = emit(self.graph, loop.own) if writes_over else self._emitted
        return standalone_loop(emitted, build, loop)

    @property
    def is_small(self) -> bool:
        """Whether a call takes no longer than what is around it in Python."""
        return is_small(self._emitted)

    @property
    def calls_natively(self) -> bool:
        """Whether it calls primitives that have little to do, all of which compiled code can do."""
        return calls_natively(self._emitted)

    @property
    def is_native_loop(self) -> bool:
        """Whether it is loops with bodies, and all of it can be done without the interpreter."""
        return is_native_loop(self._emitted)

    def call_lines(self, given: Sequence[str]) -> ProgramCall:
        """Return the source of a call, with what gives each input; what it runs is compiled."""
        run = self._run if self._emitted.nests else None
        return call_lines(self._emitted, self.graph, run, build, given)

    @lazy
    def _call(self) -> Callable[[Sequence[NDArray]], list[NDArray]]:
        given = [f"given{k}" for k in range(len(self.graph.inputs))]
        found = self.call_lines(given)
        lines = [f"{', '.join(given)}, = arrays"] * bool(given) + found.lines
        return define_call("arrays", [*lines, f"return [{', '.join(found.results)}]"], found.names)

    def __call__(self, arrays: Sequence[NDArray]) -> list[NDArray]:
        """Compute the outputs.

        Parameters
        ----------
        arrays : sequence of numpy.ndarray
            The inputs, with the shapes and dtypes of the graph's, of any strides.

        Returns
        -------
        list of numpy.ndarray
            New C-contiguous arrays, but an input that is returned as it is.
        """
        return self._call(arrays)

    @lazy
    def _run(self) -> Any:
        """The compiled function."""
        emitted = self._emitted
        function = compile_functions([emitted.function()], alone=True)
        signature = (
            *(types.Array(from_dtype(a.dtype), len(a.shape), "C") for a in emitted.arguments),
            types.Array(types.int64, 1, "C"),
            types.Array(types.uint8, 1, "C"),
        )
        function.compile(signature)
        self._function = function  # while it is held, programs with the same source share it
        return function.overloads[signature].entry_point


def build(graph: Graph, sources: Sequence[tuple[int, int]] = ()) -> Program:
    """Return the program of a graph; nothing is compiled before its first call.

    Parameters
    ----------
    graph, sources
        As of `Program`.
    """
    return Program(graph, sources)
