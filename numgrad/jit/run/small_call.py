"""Run a small program: generated Python around its compiled loops, with little overhead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from types import CodeType
from typing import Any

import numpy as np

from numgrad.base.float_errors import restore, silence
from numgrad.jit.emit.opaque_steps import Memory, as_compact, operand_reader
from numgrad.jit.emit.program_source import Array, Emitted
from numgrad.jit.emit.unit_vector_loop import RowLoop, grain_of
from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.lowering.unit_vectors import Rows
from numgrad.jit.schedule.schedule import Nest, OpaqueStep

__all__ = ["direct_call", "is_direct"]

NDArray = np.ndarray[Any, Any]
Call = Callable[[Sequence[NDArray]], list[NDArray]]

POOLED = 1 << 18  # bytes of room for values in between that are kept from call to call


def is_direct(emitted: Emitted, graph: Graph) -> bool:
    """Whether a graph is loops and matrix products, with little in memory in between."""
    return (
        all(
            isinstance(step, Nest) or _is_product(step.value) or _is_small_loop(step.value)
            for step in emitted.plan.steps
        )
        and emitted.room_bytes <= POOLED
        and all(output.operation != "array" for output in graph.outputs)
        and len({id(output) for output in graph.outputs}) == len(graph.outputs)
    )


def _is_product(value: Value) -> bool:
    return value.operation == "matmul"


def _is_small_loop(value: Value) -> bool:
    """Whether a step is a loop over unit vectors that one thread does."""
    primitive = value.attributes.get("primitive")
    return isinstance(primitive, Rows) and primitive.count <= grain_of(primitive)


def direct_call(
    emitted: Emitted,
    graph: Graph,
    run: Any,
    header_for: Callable[[int, int], NDArray],
    build: Callable[[Graph], Any],
) -> Call:
    """Return a function that computes the outputs of a graph for which `is_direct` holds.

    Parameters
    ----------
    emitted : Emitted
    graph : Graph
    run : callable
        The compiled nests; None if there are none.
    header_for : callable
        Returns the header with which `run` does the steps from one to another.
    build : callable
        Makes the program of a graph within this one.
    """
    return _Direct(emitted, graph, run, header_for, build).call


class _Direct:
    """Writes the function, and knows what the names in it mean."""

    def __init__(
        self,
        emitted: Emitted,
        graph: Graph,
        run: Any,
        header_for: Callable[[int, int], NDArray],
        build: Callable[[Graph], Any],
    ) -> None:
        self.emitted, self.graph, self.build = emitted, graph, build
        self.inputs = [emitted.buffers[value] for value in graph.inputs]
        self.rooms = [array for array in emitted.arrays if array.role == "room"]
        self.views: list[Callable[[Memory], NDArray]] = []  # of the room, made with it
        self.names: dict[str, Any] = {
            "as_compact": as_compact,
            "dot": np.ndarray.dot,
            "empty": np.empty,
            "ndarray": np.ndarray,
            "new_room": self._new_room,
            "pool": [],
            "restore": restore,
            "room": np.empty(0, np.uint8),
            "run": run,
            "silence": silence,
        }
        steps = self._steps(header_for)
        if any(isinstance(step, OpaqueStep) for step in emitted.plan.steps):
            steps = [
                "    before = silence()",
                "    try:",
                *(f"    {line}" for line in steps),
                "    finally:",
                "        restore(before)",
            ]
        lines = ["def call(arrays):", *self._arrays(), *steps]
        if self.has_entry:
            lines.append(f"    pool.append(({self._entry()}))")
        lines.append(
            f"    return [{', '.join(self._returned(output) for output in graph.outputs)}]"
        )
        exec(_code("\n".join(lines)), self.names)
        self.call: Call = self.names["call"]

    def _arrays(self) -> list[str]:
        """Return the lines that find or make all arrays."""
        lines = []
        if self.inputs:
            lines.append(f"    {', '.join(self.inputs)}, = arrays")
        for name in self.inputs:
            lines.append(f"    if {name}.flags.num & 0x101 != 0x101: {name} = as_compact({name})")
        for value, name in self.emitted.buffers.items():
            if value.operation == "array":
                lines.append(f"    {name} = as_compact(captured_{name})")
                self.names[f"captured_{name}"] = value.attributes["array"]
        for array in self.emitted.arrays:
            if array.role == "output":
                self.names[f"shape_{array.name}"] = array.shape
                self.names[f"dtype_{array.name}"] = array.dtype
                lines.append(f"    {array.name} = empty(shape_{array.name}, dtype_{array.name})")
            elif array.role == "result":
                self.names[f"nothing_{array.name}"] = np.empty((0,) * len(array.shape), array.dtype)
                lines.append(f"    {array.name} = nothing_{array.name}")
        if self.has_entry:
            # A list's operations are atomic, so threads never get the same room.
            lines.append(f"    {self._entry()} = pool.pop() if pool else new_room()")
        return lines

    @property
    def has_entry(self) -> bool:
        """Whether there is something that a pool keeps."""
        return bool(self.emitted.room_bytes or self.views)

    def _entry(self) -> str:
        """Return the names of what a pool keeps together: a room, and views of it."""
        return "".join(f"{name}, " for name in ["room", *(f"w{k}" for k in range(len(self.views)))])

    def _new_room(self) -> tuple[NDArray, ...]:
        room = np.empty(self.emitted.room_bytes, np.uint8)
        memory = {array.name: _placed(room, array, self.emitted) for array in self.rooms}
        return (room, *(view(memory) for view in self.views))

    def _steps(self, header_for: Callable[[int, int], NDArray]) -> list[str]:
        lines: list[str] = []
        start: int | None = None
        steps = self.emitted.plan.steps
        arguments = [array.name for array in self.emitted.arguments]
        for position, step in enumerate([*steps, None]):
            if isinstance(step, Nest):
                start = position if start is None else start
                continue
            if start is not None:
                self.names[f"header_{start}"] = header_for(start, position)
                lines.append(f"    run({', '.join([*arguments, f'header_{start}', 'room'])})")
                start = None
            if step is None:
                break
            if not _is_product(step.value):
                lines += self._loop(step.value)
                continue
            left, right = (self._operand(operand) for operand in step.value.operands)
            lines.append(f"    dot({left}, {right}, {self._operand(step.value)})")
        return lines

    def _loop(self, value: Value) -> list[str]:
        """Return the lines of a loop over unit vectors."""
        rows = value.attributes["primitive"]
        kept, buffers = self.emitted.plan.kept, self.emitted.buffers
        number = len(self.names)
        self.names[f"loop_{number}"] = RowLoop(rows, self.build(rows.graph)).entry
        given = [
            self._operand(operand) if operand in kept else f"as_compact({self._operand(operand)})"
            for operand in value.operands
        ]
        results = self.emitted.results_of(value)
        lines = []
        for position, output in enumerate(rows.graph.outputs):
            name = buffers[results[position]] if position in results else f"unread_{position}"
            self.names[f"shape_{number}_{position}"] = (rows.count, *output.shape)
            self.names[f"type_{number}_{position}"] = output.dtype
            lines.append(f"    {name} = empty(shape_{number}_{position}, type_{number}_{position})")
            given.append(name)
        return [*lines, f"    loop_{number}(0, {rows.count}, {', '.join(given)})"]

    def _operand(self, value: Value) -> str:
        """Return the source of a matrix."""
        plan, buffers = self.emitted.plan, self.emitted.buffers
        strided = None if value in plan.kept else plan.elements.strided(value, plan.kept)
        name = buffers[value if strided is None else strided.base]
        read = operand_reader(value, plan.elements, plan.kept, buffers, self.emitted.values)
        if any(array.name == name for array in self.rooms):
            self.views.append(read)
            return f"w{len(self.views) - 1}"
        if strided is None:
            return name
        key = f"read_{len(self.names)}"
        self.names[key] = read
        return f"{key}({{{name!r}: {name}}})"

    def _returned(self, output: Value) -> str:
        if output.operation == "input":
            return f"arrays[{self.graph.inputs.index(output)}]"
        return self.emitted.buffers[output]


def _placed(room: NDArray, array: Array, emitted: Emitted) -> NDArray:
    """Return the part of a room that is an array."""
    at, size = emitted.values[f"at_{array.name}"], prod(array.shape)
    return room[at : at + size * array.dtype.itemsize].view(array.dtype).reshape(array.shape)


@lru_cache(maxsize=256)  # programs that differ in sizes only have the same text
def _code(text: str) -> CodeType:
    return compile(text, "<numgrad call>", "exec")
