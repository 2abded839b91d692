"""Run a compiled program: compile on first use, memory for temporaries, threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numba import from_dtype, types

from numgrad.base.tuning import THREAD_ADDITIONS_JIT
from numgrad.codegen.compile.compile import compile_source
from numgrad.jit.emit.opaque_steps import Memory, as_compact, opaque_step, operand_reader
from numgrad.jit.emit.program_source import WHAT, Emitted, emit
from numgrad.jit.emit.standalone import is_short, literal_dispatcher, literal_loop
from numgrad.jit.ir.graph import Graph
from numgrad.jit.run.small_call import direct_call, is_direct
from numgrad.jit.schedule.schedule import Nest
from numgrad.runtime.forks import lazy
from numgrad.runtime.memory import empty
from numgrad.runtime.threads import parallel_for

__all__ = ["Program", "build"]

NDArray = np.ndarray[Any, Any]


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
        self._function: Any = None
        self._call: Callable[[Sequence[NDArray]], list[NDArray]] = self._first_call

    @property
    def source(self) -> str:
        """The Python that is compiled; a comment says of each line what it came from."""
        return self._emitted.source(shown=True)

    @property
    def steps(self) -> int:
        """How many loops, matrix products and calls of primitives there are."""
        emitted = self._emitted
        return len(emitted.bands) + len(emitted.plan.steps) - len(emitted.nests)

    @lazy
    def dispatcher(self) -> Any:
        """A Numba dispatcher over arrays of the graph's shapes, for use in compiled code.

        It returns a tuple of the outputs, those without dims as numbers, and raises `ValueError`
        for arrays of other shapes.
        """
        return literal_dispatcher(self._emitted, self.graph, build)

    @property
    def filler(self) -> Any:
        """A dispatcher that is given arrays for the outputs, too; it returns those of no dims.

        No output may be an input, or there twice. Giving Numba an array costs less than taking one.
        """
        return literal_dispatcher(self._emitted, self.graph, build, into=True)

    @property
    def loop(self) -> Any:
        """A dispatcher that computes the outputs for all unit vectors in the first input's place.

        See `numgrad.jit.emit.standalone.literal_loop` for what it is called with.
        """
        return literal_loop(self._emitted, self.graph, build)

    @property
    def is_short(self) -> bool:
        """Whether a call takes no longer than what is around it in Python."""
        return is_short(self._emitted)

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

    def _first_call(self, arrays: Sequence[NDArray]) -> list[NDArray]:
        emitted, graph = self._emitted, self.graph
        serial = all(emitted.items(band) <= _grain(emitted, band) for band in emitted.bands)
        if serial and is_direct(emitted, graph):
            run = self._run if emitted.nests else None
            self._call = direct_call(emitted, graph, run, self._header_for, build)
        else:
            self._call = self._by_steps
        return self._call(arrays)

    @lazy
    def _header(self) -> NDArray:
        return self._emitted.header()

    @lazy
    def _run(self) -> Any:
        """The compiled function."""
        emitted = self._emitted
        function = compile_source("run", emitted.source())
        signature = (
            *(types.Array(from_dtype(a.dtype), len(a.shape), "C") for a in emitted.arguments),
            types.Array(types.int64, 1, "C"),
            types.Array(types.uint8, 1, "C"),
        )
        function.compile(signature)
        self._function = function  # while it is held, programs with the same source share it
        return function.overloads[signature].entry_point

    def _by_steps(self, arrays: Sequence[NDArray]) -> list[NDArray]:
        """Compute the outputs nest by nest, in threads where that pays."""
        emitted, graph = self._emitted, self.graph
        memory: Memory = {}
        for array in emitted.arguments:
            if array.role == "result":
                memory[array.name] = np.empty((0,) * len(array.shape), array.dtype)
            elif array.role not in ("input", "captured"):
                memory[array.name] = empty(array.shape, array.dtype)
        room = empty(emitted.room_bytes, np.uint8)
        for array in emitted.arrays:
            if array.role == "room":
                at, size = emitted.values[f"at_{array.name}"], prod(array.shape)
                here = room[at : at + size * array.dtype.itemsize]
                memory[array.name] = here.view(array.dtype).reshape(array.shape)
        for value, given in zip(graph.inputs, arrays, strict=True):
            memory[emitted.buffers[value]] = as_compact(given)
        for value, name in emitted.buffers.items():
            if value.operation == "array":
                memory[name] = as_compact(value.attributes["array"])
        for step in self._plan:
            if isinstance(step, list):
                self._run_nests(step, memory, room)
            else:
                step(memory)
        results: list[NDArray] = []
        for output in graph.outputs:
            if output.operation == "input":
                results.append(arrays[graph.inputs.index(output)])
                continue
            result = memory[emitted.buffers[output]]
            if output.operation == "array" or any(result is other for other in results):
                result = result.copy()
            results.append(result)
        return results

    def _run_nests(self, work: Sequence[_Work], memory: Memory, room: NDArray) -> None:
        """Run consecutive nests; those that are large in threads."""
        compiled = self._run
        arguments = [memory[name] for name in self._names]
        for each in work:
            if each.items:
                parallel_for(
                    partial(self._run_items, each, arguments, room), each.items, each.grain
                )
            if each.header is not None:
                compiled(*arguments, each.header, room)

    def _run_items(
        self, work: _Work, arguments: list[NDArray], room: NDArray, first: int, last: int
    ) -> None:
        header = self._header.copy()
        header[:WHAT] = (work.nest, work.nest + 1, first, last)
        self._run(*arguments, header, room)

    @lazy
    def _names(self) -> list[str]:
        return [array.name for array in self._emitted.arguments]

    @lazy
    def _plan(self) -> list[list[_Work] | Callable[[Memory], None]]:
        """The steps of a call, each nest in threads or with others."""
        return [
            self._share(step) if isinstance(step, range) else step for step in _steps(self._emitted)
        ]

    def _share(self, nests: range) -> list[_Work]:
        """Return how consecutive nests are run."""
        emitted = self._emitted
        work: list[_Work] = []
        start = nests.start
        for band in emitted.bands:
            items, grain = emitted.items(band), _grain(emitted, band)
            if band.start not in nests or items <= grain:
                continue
            k = band.start
            if start < k:
                work.append(_Work(self._header_for(start, k)))
            start = band.stop
            finishes = any(emitted.nests[member].parts.finish for member in band)
            finish = self._header_for(k, band.stop, -1) if finishes else None
            work.append(_Work(finish, k, items, grain))
        if start < nests.stop:
            work.append(_Work(self._header_for(start, nests.stop)))
        return work

    def _header_for(self, start: int, stop: int, first: int = 0) -> NDArray:
        header = self._header.copy()
        header[:WHAT] = (start, stop, first, -1)
        return header


class _Work(NamedTuple):
    """Nests that are run by one call, after one that threads share if there is one."""

    header: NDArray | None
    nest: int = 0
    items: int = 0
    grain: int = 0


def _grain(emitted: Emitted, band: range) -> int:
    """Return how many items of some nests that are done together a thread takes at least."""
    items = max(1, emitted.items(band))
    if any(emitted.nests[k].nest.is_serial for k in band):
        return items
    each = 0
    for k in band:
        nest = emitted.nests[k]
        elements = prod(emitted.values[name] for name in nest.nest.domain)
        each += elements // items * max(4, nest.facts.cost())
    return max(1, THREAD_ADDITIONS_JIT // max(1, each))


def _steps(emitted: Emitted) -> list[range | Callable[[Memory], None]]:
    """Return the steps of a program: runs of nests, and what is done in between."""
    plan = emitted.plan
    steps: list[range | Callable[[Memory], None]] = []
    for position, step in enumerate(plan.steps):
        if isinstance(step, Nest):
            last = steps[-1] if steps else None
            if isinstance(last, range):
                steps[-1] = range(last.start, position + 1)
            else:
                steps.append(range(position, position + 1))
            continue
        value = step.value
        readers = [
            operand_reader(operand, plan.elements, plan.kept, emitted.buffers, emitted.values)
            for operand in value.operands
        ]
        items = {k: emitted.buffers[item] for k, item in emitted.results_of(value).items()}
        steps.append(opaque_step(value, readers, items, emitted.buffers.get(value, ""), build))
    return steps


def build(graph: Graph) -> Program:
    """Return the program of a graph; nothing is compiled before its first call.

    Parameters
    ----------
    graph : Graph
    """
    return Program(graph)
