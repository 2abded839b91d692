"""Generated Python around a program's compiled loops: memory, steps in between, threads.

`call_lines` writes what a call of a program does as straight-line Python. It becomes a part of the
function that calls of a jitted function run (`numgrad.jit.front.call_source`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from numgrad.base.float_errors import restore, silence
from numgrad.base.tuning import RECYCLED_BYTES, THREAD_ADDITIONS_JIT
from numgrad.codegen.define import define
from numgrad.jit.emit.compiled_loops import compiled_loop, grain_of
from numgrad.jit.emit.opaque_steps import as_compact, as_own, opaque_call, operand_reader
from numgrad.jit.emit.program_source import WHAT, Array, Emitted
from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.lowering.loops import Loop
from numgrad.jit.lowering.opaque_calls import Whole
from numgrad.jit.lowering.unit_vectors import Rows
from numgrad.jit.schedule.nests import Nest
from numgrad.runtime.memory import empty
from numgrad.runtime.threads import parallel_for

__all__ = ["ProgramCall", "call_lines", "define_call"]

NDArray = np.ndarray[Any, Any]

POOLED = 1 << 18  # bytes of room for values in between that are kept from call to call


class ProgramCall(NamedTuple):
    """A call of a program, as source.

    Attributes
    ----------
    lines : list of str
    results : list of str
        For each output what gives its array, which nobody else has unless it is an input.
    names : dict
        What the names in the lines mean.
    """

    lines: list[str]
    results: list[str]
    names: dict[str, Any]


def call_lines(
    emitted: Emitted,
    graph: Graph,
    run: Any,
    build: Callable[[Graph], Any],
    given: Sequence[str],
) -> ProgramCall:
    """Return the call of a program.

    Parameters
    ----------
    emitted : Emitted
    graph : Graph
    run : callable
        The compiled nests; None if there are none.
    build : callable
        Makes the program of a graph within this one.
    given : sequence of str
        For each input what gives its array, of any strides.
    """
    return _Writer(emitted, graph, run, build).write(given)


class _Writer:
    """Writes the lines, and knows what the names in them mean."""

    def __init__(
        self, emitted: Emitted, graph: Graph, run: Any, build: Callable[[Graph], Any]
    ) -> None:
        self.emitted, self.graph, self.build = emitted, graph, build
        self.run = run
        self.header = emitted.header()
        self.rooms = {array.name: array for array in emitted.arrays if array.role == "room"}
        self.views: list[Callable[[NDArray], NDArray]] = []  # of the room, made with it
        self.names: dict[str, Any] = {
            "as_compact": as_compact,
            "as_own": as_own,
            "dot": np.ndarray.dot,
            "empty": np.empty,
            "new_room": self._new_room,
            "pool": [],
            "recycled": empty,
            "restore": restore,
            "room": np.empty(0, np.uint8),
            "run": run,
            "silence": silence,
        }

    def write(self, given: Sequence[str]) -> ProgramCall:
        """Return the call."""
        lines = []
        for value, source in zip(self.graph.inputs, given, strict=True):
            name = self.emitted.buffers[value]
            lines += [f"{name} = {source}", f"if {name}.flags.num & 0x101 != 0x101:"]
            lines.append(f"    {name} = as_compact({name})")
        steps = self._steps()
        lines += self._arrays()
        entry = "".join([f"{name}, " for name in ["room", *self._views()]])
        is_pooled = self.emitted.room_bytes <= POOLED
        has_room = bool(self.emitted.room_bytes or self.views)
        if has_room:
            # A list's operations are atomic, so threads never get the same room.
            lines.append(f"{entry} = {'pool.pop() if pool else ' * is_pooled}new_room()")
        lines += steps
        if has_room and is_pooled:
            lines.append(f"pool.append(({entry}))")
        inputs = dict(zip(self.graph.inputs, given, strict=True))
        results: list[str] = []
        for output in self.graph.outputs:
            found = inputs.get(output) or self.emitted.buffers[output]
            is_held = output.operation == "array" or (output not in inputs and found in results)
            results.append(f"{found}.copy()" if is_held else found)
        return ProgramCall(lines, results, self.names)

    def _arrays(self) -> list[str]:
        """Return the lines that find or make all arrays but the inputs and the room."""
        lines = []
        for value, name in self.emitted.buffers.items():
            if value.operation == "array":
                lines.append(f"{name} = as_compact(captured_{name})")
                self.names[f"captured_{name}"] = value.attributes["array"]
        for array in self.emitted.arrays:
            if array.role == "output":
                lines.append(self._new(array.name, array.name, array.shape, array.dtype))
            elif array.role == "result":
                self.names[f"nothing_{array.name}"] = np.empty((0,) * len(array.shape), array.dtype)
                lines.append(f"{array.name} = nothing_{array.name}")
        return lines

    def _new(self, name: str, key: str, shape: tuple[int, ...], dtype: Any) -> str:
        """Return the line that makes an array."""
        self.names[f"shape_{key}"], self.names[f"dtype_{key}"] = shape, dtype
        is_large = prod(shape) * dtype.itemsize >= RECYCLED_BYTES
        return f"{name} = {'recycled' if is_large else 'empty'}(shape_{key}, dtype_{key})"

    # --- the room ---------------------------------------------------------------------------------

    def _views(self) -> list[str]:
        """Return the names of the views of the room."""
        return [f"w{number}" for number in range(len(self.views))]

    def _new_room(self) -> tuple[NDArray, ...]:
        room = empty(self.emitted.room_bytes, np.uint8)
        return (room, *(view(room) for view in self.views))

    def _placed(self, array: Array, room: NDArray) -> NDArray:
        """Return the part of a room that is an array."""
        at, size = self.emitted.values[f"at_{array.name}"], prod(array.shape)
        return room[at : at + size * array.dtype.itemsize].view(array.dtype).reshape(array.shape)

    # --- steps ------------------------------------------------------------------------------------

    def _steps(self) -> list[str]:
        lines: list[str] = []
        start: int | None = None
        is_silent = False
        for position, step in enumerate([*self.emitted.plan.steps, None]):
            if isinstance(step, Nest):
                start = position if start is None else start
                continue
            if start is not None:
                lines += self._nests(range(start, position))
                start = None
            if step is None:
                break
            value = step.value
            primitive = value.attributes.get("primitive")
            if value.operation == "matmul":
                left, right = (self._operand(operand) for operand in value.operands)
                lines.append(f"dot({left}, {right}, {self._operand(value)})")
                is_silent = True
            elif isinstance(primitive, Loop) or (
                isinstance(primitive, Rows) and primitive.count <= grain_of(primitive)
            ):
                lines += self._loop(value, primitive)
            else:
                lines += self._opaque(value)
        if is_silent:
            lines = ["before = silence()", "try:", *_inside(lines), "finally: restore(before)"]
        return lines

    def _nests(self, nests: range) -> list[str]:
        """Return the lines that run consecutive nests; those that are large in threads."""
        emitted = self.emitted
        lines: list[str] = []
        arguments = ", ".join([array.name for array in emitted.arguments])

        def run(start: int, stop: int, first: int = 0) -> None:
            name = f"header_{len(self.names)}"
            self.names[name] = self._header(start, stop, first)
            lines.append(f"run({arguments + ', ' * bool(arguments)}{name}, room)")

        start = nests.start
        for band in emitted.bands:
            items, grain = emitted.items(band), _grain(emitted, band)
            if band.start not in nests or items <= grain:
                continue
            if start < band.start:
                run(start, band.start)
            start = band.stop
            name = f"share_{len(self.names)}"
            self.names[name] = partial(self._share, band.start, items, grain)
            lines.append(f"{name}({arguments + ', ' * bool(arguments)}room)")
            if any(emitted.nests[member].parts.finish for member in band):
                run(band.start, band.stop, -1)
        if start < nests.stop:
            run(start, nests.stop)
        return lines

    def _header(self, start: int, stop: int, first: int = 0, last: int = -1) -> NDArray:
        header = self.header.copy()
        header[:WHAT] = (start, stop, first, last)
        return header

    def _share(self, nest: int, items: int, grain: int, *arguments: Any) -> None:
        """Run the nests of a band in threads."""
        *arrays, room = arguments

        def task(first: int, last: int) -> None:
            self.run(*arrays, self._header(nest, nest + 1, first, last), room)

        parallel_for(task, items, grain)

    def _loop(self, value: Value, loop: Rows | Loop) -> list[str]:
        """Return the lines of a loop that one thread does."""
        kept, buffers = self.emitted.plan.kept, self.emitted.buffers
        number = len(self.names)
        self.names[f"loop_{number}"] = compiled_loop(loop, self.build).entry
        given = [
            self._operand(operand) if operand in kept else f"as_compact({self._operand(operand)})"
            for operand in value.operands
        ]
        results = self.emitted.results_of(value)
        lines = []
        for position, (shape, dtype) in enumerate(loop.metas()):
            name = buffers[results[position]] if position in results else f"unread_{position}"
            line = self._new(name, f"{number}_{position}", shape, dtype)
            if isinstance(loop, Loop) and loop.grows(position):
                rows = f"(int({given[loop.fixed - 1]}), *shape_{number}_{position}[1:])"
                line = f"{name} = empty({rows}, dtype_{number}_{position})"
            lines.append(line)
            given.append(name)
        turns = f"0, {loop.count}, " if isinstance(loop, Rows) else ""
        return [*lines, f"loop_{number}({turns}{', '.join(given)})"]

    def _opaque(self, value: Value) -> list[str]:
        """Return the lines that call a primitive."""
        items = self.emitted.results_of(value)
        name = f"call_{len(self.names)}"
        operands = ", ".join([self._operand(operand) for operand in value.operands])
        buffers = {position: self.emitted.buffers[item] for position, item in items.items()}
        plain = self._plain(value)
        if plain is None:
            self.names[name] = opaque_call(value, tuple(items), self.build)
            targets = "".join([f"{buffer}, " for buffer in buffers.values()])
            return [f"{targets}{'= ' * bool(items)}{name}({operands})"]
        self.names[name] = plain
        whole = value.attributes["primitive"]
        lines = [f"found = {name}({operands})"]
        for position, buffer in buffers.items():
            lines += [
                f"{buffer} = found{'' if whole.single else f'[{position}]'}",
                f"if {buffer}.base is not None or {buffer}.flags.num & 0x101 != 0x101:",
                f"    {buffer} = as_own({buffer}, {operands})",
            ]
        return lines

    def _plain(self, value: Value) -> Callable[..., Any] | None:
        """Return what computes in eager calls, if operands lie alike in all calls; else None."""
        whole = value.attributes["primitive"]
        if not isinstance(whole, Whole) or any(0 in each.shape for each in value.operands):
            return None
        plan, buffers = self.emitted.plan, self.emitted.buffers
        arrays = {array.name: array for array in self.emitted.arrays}
        stand_ins = []
        for operand in value.operands:
            name, read = operand_reader(
                operand, plan.elements, plan.kept, buffers, self.emitted.values
            )
            stand_ins.append(read(np.empty(arrays[name].shape, arrays[name].dtype)))
        return whole.plain(stand_ins)

    def _operand(self, value: Value) -> str:
        """Return the source of the operand of a step."""
        plan, buffers = self.emitted.plan, self.emitted.buffers
        name, read = operand_reader(value, plan.elements, plan.kept, buffers, self.emitted.values)
        room = self.rooms.get(name)
        if room is not None:
            self.views.append(lambda memory: read(self._placed(room, memory)))
            return f"w{len(self.views) - 1}"
        if value in plan.kept:
            return name
        key = f"read_{len(self.names)}"
        self.names[key] = read
        return f"{key}({name})"


def define_call(parameters: str, lines: Sequence[str], names: dict[str, Any]) -> Callable[..., Any]:
    """Return the function ``call`` of some lines; programs that differ in sizes have one text."""
    source = "\n".join([f"def call({parameters}):", *_inside(lines), ""])
    return define("call", source, f"call {crc32(source.encode()):x}", names)


def _inside(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


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
