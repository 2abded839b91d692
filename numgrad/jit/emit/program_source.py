"""Generate the source of a compiled program: all loop nests, their arguments and temporaries.

The function is called as ``run(*arrays, header, room)``. The header says which nests to run (see
`numgrad.codegen.loop_runtime.span`), then come sizes and constants, so that one compiled function
serves all graphs of a structure. The room is for values in between; few arguments make a fast call.
For use in compiled code, sizes and constants are written into the function.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from itertools import count
from math import prod
from typing import Any

import numpy as np

from numgrad.base.tuning import INLINED_ELEMENTS
from numgrad.codegen.known_numbers import with_numbers
from numgrad.codegen.loop_passes import assigned, in_order, names_in, read_arrays
from numgrad.codegen.loops import (
    Assign,
    Blank,
    Do,
    Expression,
    Function,
    Load,
    Name,
    Number,
    Statement,
    call,
    names,
    type_code,
)
from numgrad.codegen.printer import print_module
from numgrad.jit.emit.loop_nest import LoopNest, band_statements
from numgrad.jit.emit.scalar_code import PART, is_plain, plain_code
from numgrad.jit.emit.unrolled import nest_statements
from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.schedule.index_maps import LEAVES
from numgrad.jit.schedule.loop_fusion import find_bands
from numgrad.jit.schedule.nests import Nest, OpaqueStep
from numgrad.jit.schedule.schedule import Schedule, schedule
from numgrad.runtime.memory import ALIGNMENT

__all__ = ["WHAT", "Array", "Emitted", "emit"]

WHAT = 4  # numbers of the header that say what to run
WIDE = 16  # elements of a short loop from which on it fills wide vectors
(_DISTINCT,) = names("numgrad.codegen.loop_runtime", "distinct")
(_USE_WIDE_VECTORS,) = names("numgrad.codegen.llvm.width", "use_wide_vectors")


@dataclass(frozen=True)
class Array:
    """An array that the function is given.

    Attributes
    ----------
    name : str
    shape : tuple of int
    dtype : numpy.dtype
    role : str
        ``"input"``, ``"captured"``, ``"output"``, ``"result"`` (of an opaque step), ``"room"``.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    role: str


@dataclass
class Emitted:
    """What is known of a graph's compiled function.

    Attributes
    ----------
    plan : Schedule
    nests : dict
        By their position among the steps of the plan.
    bands : list of range
        Which nests are done together.
    arrays : list of Array
        In the order of the function's arguments.
    buffers : dict
        The name of the array that each kept value is in.
    sizes, constants : list
        The numbers that the function gets.
    """

    plan: Schedule
    nests: dict[int, LoopNest]
    bands: list[range]
    arrays: list[Array] = field(default_factory=list)
    buffers: dict[Value, str] = field(default_factory=dict)
    size_names: list[str] = field(default_factory=list)
    values: dict[str, int] = field(default_factory=dict)
    constants: list[float] = field(default_factory=list)
    constant_lines: list[Statement] = field(default_factory=list)
    literal_lines: list[Statement] = field(default_factory=list)

    @property
    def sizes(self) -> list[int]:
        """The numbers for `size_names`."""
        return [self.values[name] for name in self.size_names]

    @property
    def arguments(self) -> list[Array]:
        """The arrays that are arguments of their own."""
        return [array for array in self.arrays if array.role != "room"]

    def results_of(self, call: Value) -> dict[int, Value]:
        """Return the results of a call that are kept, by their positions."""
        found = {
            item.attributes["position"]: item
            for item in self.plan.kept
            if item.operation == "item" and item.operands[0] is call
        }
        return dict(sorted(found.items()))  # so that each process writes the same source

    def header(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return a header that asks for all nests."""
        what = np.array([0, len(self.plan.steps), 0, -1, *self.sizes], np.int64)
        return np.concatenate([what, np.array(self.constants, np.float64).view(np.int64)])

    @property
    def room_bytes(self) -> int:
        """The size of the room."""
        return self.values["room_bytes"]

    def body(self) -> list[Statement]:
        """Return what the function does."""
        lines = self._wide(self.nests.values()) + self._from_header() + self._rooms()
        for band in self.bands:
            lines += [Blank(), *band_statements([self.nests[k] for k in band])]
        return lines

    def unrolled_body(self, step: Callable[[Value], list[Statement]]) -> list[Statement]:
        """Return the same for few elements, sizes and constants written out.

        What `step` returns does an opaque step.
        """
        dear = [each for each in self.nests.values() if each.facts.length(self.values) >= WIDE]
        lines = self._wide(dear) + self._literals() + self._rooms()
        for position, each in enumerate(self.plan.steps):
            if isinstance(each, OpaqueStep):
                lines += step(each.value)
            else:
                lines += [Blank(), *nest_statements(self.nests[position], self.values)]
        return with_numbers(lines)

    def _wide(self, nests: Iterable[LoopNest]) -> list[Statement]:
        """Return what has wide vectors used, if some nests have something dear to compute."""
        return [Do(call(_USE_WIDE_VECTORS))] if any(nest.code.is_dear for nest in nests) else []

    def _rooms(self) -> list[Statement]:
        """Return what finds the arrays that are in the room."""
        return [
            Assign(
                array.name,
                call(
                    PART,
                    "room",
                    f"at_{array.name}",
                    f"size_{array.name}",
                    type_code(array.dtype),
                ),
            )
            for array in self.arrays
            if array.role == "room"
        ]

    def part(self, name: str, steps: range) -> Function:
        """Return the function of the nests among some steps, sizes and constants written out.

        Its parameters are the arrays that these use (`arrays_of`). Names are by the order in which
        they come, so that what does the same to other arrays has the same text.
        """
        nests, arrays = self._whole_nests(steps), self.arrays_of(steps)
        known = {line.target: line for line in self._literals() if isinstance(line, Assign)}
        lines: list[Statement] = [Do(call(_DISTINCT))]
        lines += self._wide([nest for k, nest in self.nests.items() if k in steps])
        lines += [known[each] for each in names_in(nests) if each in known]
        body, new = in_order(with_numbers([*lines, *nests]), arrays)
        return Function(name, [new[array] for array in arrays], body)

    def arrays_of(self, steps: range) -> list[str]:
        """Return the names of the arrays that the nests among some steps use."""
        nests = self._whole_nests(steps)
        own = {array.name for array in self.arrays} - assigned(nests)
        return [name for name in names_in(nests) if name in own]

    def has_few(self, steps: Iterable[int]) -> bool:
        """Whether the nests among some steps are over so few elements as to be written out."""
        nests = [self.nests[k].nest for k in steps if k in self.nests]
        return all(
            prod(self.values[name] for name in nest.domain) <= INLINED_ELEMENTS for nest in nests
        )

    def _whole_nests(self, steps: range) -> list[Statement]:
        nests: list[Statement] = []
        if self.has_few(steps):
            for k in steps:
                nests += [Blank(), *nest_statements(self.nests[k], self.values)]
            return nests
        for band in self.bands:
            if band.start in steps:
                nests += [Blank(), *band_statements([self.nests[k] for k in band], self.values)]
        return nests

    def _literals(self) -> list[Statement]:
        sizes = [Assign(name, Number(self.values[name])) for name in self.size_names]
        return [*sizes, *self.literal_lines]

    def _from_header(self) -> list[Statement]:
        lines: list[Statement] = [
            Assign(name, Load(Name("header"), Number(k), True))
            for k, name in enumerate(self.size_names, WHAT)
        ]
        if self.constants:
            start = 8 * (WHAT + len(self.size_names))
            kind = type_code(np.dtype(np.float64))
            lines.append(
                Assign("constants", call(PART, "header", start, len(self.constants), kind))
            )
        return lines + self.constant_lines

    def items(self, band: range) -> int:
        """Return how many parts of some nests that are done together threads can do."""
        return max([self.values[f"items{k}"] for k in band])

    def source(self) -> str:
        """Return the module with the function ``run``, and where its lines came from."""
        return print_module([self.function()], origins=True)

    def function(self) -> Function:
        """Return the function ``run``."""
        return Function("run", self.parameters, [Do(call(_DISTINCT)), *self.body()])

    @property
    def parameters(self) -> list[str]:
        """The names of the function's arguments."""
        return [*(array.name for array in self.arguments), "header", "room"]


def emit(graph: Graph, own: Collection[Value] = ()) -> Emitted:
    """Schedule a graph and write its nests, which may write over inputs that are their `own`."""
    plan = schedule(graph, own)
    found = Emitted(plan, {}, find_bands(plan))
    _name_arrays(found, graph)
    constants = _name_constants(found, graph)
    numbers: count[int] = count()
    elements = plan.elements
    sizes = elements.dims.values
    for position, step in enumerate(plan.steps):
        if isinstance(step, Nest):
            given = plan, position, found.buffers, constants, numbers, sizes
            found.nests[position] = LoopNest(*given)
    values = {**sizes, **elements.numbers}
    for nest in found.nests.values():
        counts = nest.facts.counts(values)
        assert not counts.keys() & values.keys(), "two numbers of one name"
        values.update(counts)
    for band in found.bands:
        values[f"band{band.start}"] = max([values[f"items{k}"] for k in band])
    for nest in found.nests.values():
        for name, (dtype, size) in nest.parts.partials.items():
            shape = (size.evaluate(values),)
            found.arrays.append(Array(name, shape, dtype, "room"))
    found.values.update(values)
    _drop_unread(found)
    bands = [band_statements([found.nests[k] for k in band]) for band in found.bands]
    found.size_names += [name for name in names_in(bands) if name in values]
    at = 0
    for array in found.arrays:
        if array.role == "room":
            count_ = prod(array.shape)
            found.values[f"at_{array.name}"] = at
            found.values[f"size_{array.name}"] = count_
            found.size_names += [f"at_{array.name}", f"size_{array.name}"]
            at += -(-count_ * array.dtype.itemsize // ALIGNMENT) * ALIGNMENT
    found.values["room_bytes"] = at
    return found


def _drop_unread(found: Emitted) -> None:
    """Drop arrays that are only written to: their values are used where they are computed."""
    read = read_arrays([band_statements([nest]) for nest in found.nests.values()])
    read |= {found.buffers[value] for value in _used_by_steps(found.plan)}
    for array in list(found.arrays):
        if array.role == "room" and array.name not in read:
            found.arrays.remove(array)
            for nest in found.nests.values():
                nest.unread.add(array.name)


def _used_by_steps(plan: Schedule) -> list[Value]:
    """Return the kept values that opaque steps read or write."""
    found = []
    for step in plan.steps:
        if isinstance(step, OpaqueStep):
            for operand in step.value.operands:
                strided = None
                if operand not in plan.kept:
                    strided = plan.elements.strided(operand, plan.kept)
                found.append(operand if strided is None else strided.base)
            if step.value in plan.kept:
                found.append(step.value)
    return found


def _name_arrays(found: Emitted, graph: Graph) -> None:
    """Name the arrays of all kept values; an update in place is in its operand's."""
    plan = found.plan
    holder: dict[Value, Value] = {}

    def hold(value: Value) -> Value:
        while value in plan.in_place:
            value = plan.in_place[value]
        return value

    outputs = {hold(output): output for output in graph.outputs if output.operation not in LEAVES}
    for role, prefix in (
        ("input", "x"),
        ("captured", "a"),
        ("output", "y"),
        ("result", "m"),
        ("room", "t"),
    ):
        number = 0
        for value in [*graph.inputs, *graph.values()]:
            if value not in plan.kept or value in holder or hold(value) is not value:
                continue
            if _role(value, outputs) == role:
                holder[value] = value
                name = f"{prefix}{number}"
                number += 1
                found.buffers[value] = name
                found.arrays.append(Array(name, value.shape, value.dtype, role))
    for value in plan.kept:
        found.buffers[value] = found.buffers[hold(value)]


def _role(value: Value, outputs: dict[Value, Value]) -> str:
    if value.operation in LEAVES:
        return "input" if value.operation == "input" else "captured"
    if value.operation == "item":
        return "result"
    return "output" if value in outputs else "room"


def _name_constants(found: Emitted, graph: Graph) -> dict[Value, Expression]:
    """Name constants, or write out those that are plain."""
    named: dict[Value, Expression] = {}
    for value in graph.values():
        if value.operation != "constant":
            continue
        number, dtype = value.attributes["value"], value.dtype
        exact = plain_code(number, dtype)
        if is_plain(number, dtype):
            named[value] = exact
            continue
        if dtype.kind == "c":
            parts = _given(found, complex(number).real), _given(found, complex(number).imag)
            code: Expression = call(Name("complex"), *parts)
        elif dtype.kind == "f":
            code = _given(found, float(number))
        else:
            slot = f"k{len(found.size_names)}"
            wrapped = int(number) - (1 << 64) if int(number) >= 1 << 63 else int(number)
            found.values[slot] = wrapped
            found.size_names.append(slot)
            code = Name(slot)
        name = f"c{len(found.constant_lines)}"
        found.constant_lines.append(Assign(name, call(type_code(dtype), code)))
        found.literal_lines.append(Assign(name, exact))
        named[value] = Name(name)
    return named


def _given(found: Emitted, number: float) -> Expression:
    """Return what reads a number that the function gets."""
    found.constants.append(number)
    return Load(Name("constants"), Number(len(found.constants) - 1), True)
