"""Generate the source of a compiled program: all loop nests, their arguments and temporaries.

The function is called as ``run(*arrays, header, room)``. The header says which nests to run (see
`numgrad.codegen.loop_runtime.span`), then come sizes and constants, so that one compiled function
serves all graphs of a structure. The room is for values in between; few arguments make a fast call.
For use in compiled code, sizes and constants are written into the function.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import count
from math import prod
from typing import Any

import numpy as np

from numgrad.codegen.fold_runtime import KINDS
from numgrad.jit.emit.loop_nest import NestSource, band_lines
from numgrad.jit.emit.scalar_code import is_plain, plain_code, type_code
from numgrad.jit.emit.statements import Line, indent
from numgrad.jit.emit.unrolled import nest_lines
from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.schedule.index_maps import LEAVES
from numgrad.jit.schedule.loop_fusion import find_bands
from numgrad.jit.schedule.schedule import Nest, OpaqueStep, Schedule, schedule

__all__ = ["WHAT", "Array", "Emitted", "emit", "spell", "used_by_steps"]

WHAT = 4  # numbers of the header that say what to run
ALIGNMENT = 64
FOLDS = (*(f"_{kind}" for kind in KINDS), "LEVELS", "shifted")
WIDE = 16  # elements of a short loop from which on it fills wide vectors
_NAME = re.compile(r"[a-z]\w*")


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
    nests: dict[int, NestSource]
    bands: list[range]
    arrays: list[Array] = field(default_factory=list)
    buffers: dict[Value, str] = field(default_factory=dict)
    size_names: list[str] = field(default_factory=list)
    values: dict[str, int] = field(default_factory=dict)
    constants: list[float] = field(default_factory=list)
    constant_lines: list[Line] = field(default_factory=list)
    literal_lines: list[Line] = field(default_factory=list)

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
        return {
            item.attributes["position"]: item
            for item in self.plan.kept
            if item.operation == "item" and item.operands[0] is call
        }

    def header(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return a header that asks for all nests."""
        what = np.array([0, len(self.plan.steps), 0, -1, *self.sizes], np.int64)
        return np.concatenate([what, np.array(self.constants, np.float64).view(np.int64)])

    @property
    def room_bytes(self) -> int:
        """The size of the room."""
        return self.values["room_bytes"]

    def body(self, *, literal: bool, short: bool = False) -> list[Line]:
        """Return the lines of the function; `literal` with sizes and constants written out.

        Of these, one that is `short` is made for few elements.
        """
        lines = [Line("distinct()")]
        widths = [nest.length(self.values) for nest in self.nests.values() if nest.is_dear]
        if any(not short or width >= WIDE for width in widths):
            lines.append(Line("use_wide_vectors()"))
        if literal:
            lines += [Line(f"{name} = {self.values[name]}") for name in self.size_names]
            lines += self.literal_lines
        else:
            names = enumerate(self.size_names, WHAT)
            lines += [Line(f"{name} = header[{k}]") for k, name in names]
            if self.constants:
                start = 8 * (WHAT + len(self.size_names))
                code = f"part(header, {start}, {len(self.constants)}, np.float64)"
                lines.append(Line(f"constants = {code}"))
            lines += self.constant_lines
        for array in self.arrays:
            if array.role == "room":
                name = array.name
                size = f"size_{name}"
                kind = type_code(array.dtype)
                lines.append(Line(f"{name} = part(room, at_{name}, {size}, {kind})"))
        values = self.values if literal else None
        if short:
            for nest in self.nests.values():
                lines += [Line(""), *nest_lines(nest, self.values)]
        else:
            for band in self.bands:
                lines += [Line(""), *band_lines([self.nests[k] for k in band], values)]
        return lines

    def items(self, band: range) -> int:
        """Return how many parts of some nests that are done together threads can do."""
        return max([self.values[f"items{k}"] for k in band])

    def imports(self, *, short: bool = False) -> list[str]:
        """Return the lines in front of the function; of one that is `short`, once it is written."""
        functions = {"distinct", "finishes", "part", "span", "stack"}
        for nest in self.nests.values():
            functions |= nest.short_functions if short else nest.functions
        lines = ["import numpy as np", "", "from numgrad.math import scalar"]
        angles = sorted(name for name in functions if name.startswith("near_"))
        lines += [f"from numgrad.math.angle_blocks import {name}" for name in angles]
        folds = sorted(name for name in functions if name.endswith(FOLDS))
        lines += [f"from numgrad.codegen.fold_runtime import {name}" for name in folds]
        lines.append("from numgrad.codegen.loop_runtime import (")
        lines += [f"    {name}," for name in sorted(functions.difference(angles, folds))]
        lines += [")", "from numgrad.codegen.llvm.pointers import element, store"]
        if any(nest.nest.checks for nest in self.nests.values()):
            lines.insert(3, "from numgrad.kernels.move.bounds import raise_outside")
        lines.append("from numgrad.codegen.llvm.width import use_wide_vectors")
        return [*lines, ""]

    def source(self, *, origins: bool = False) -> str:
        """Return the module with the function ``run``."""
        lines = [Line(text) for text in self.imports()]
        lines += [Line(""), Line(self.head), *indent(self.body(literal=False))]
        return spell(lines, origins=origins)

    @property
    def head(self) -> str:
        """The first line of the function."""
        names = [*(array.name for array in self.arguments), "header", "room"]
        return f"def run({', '.join(names)}):"


def spell(lines: list[Line], *, origins: bool) -> str:
    """Return lines as text, with comments that say where they come from or without."""
    texts = []
    for line in lines:
        text = line.code.rstrip()
        if origins and line.origin:
            text = f"{text}  # {line.origin}"
        texts.append(text)
    return "\n".join(texts) + "\n"


def emit(graph: Graph) -> Emitted:
    """Schedule a graph and write its nests."""
    plan = schedule(graph)
    found = Emitted(plan, {}, find_bands(plan))
    _name_arrays(found, graph)
    names = _name_constants(found, graph)
    numbers: count[int] = count()
    for position, step in enumerate(plan.steps):
        if isinstance(step, Nest):
            found.nests[position] = NestSource(plan, position, found.buffers, names, numbers)
    elements = plan.elements
    values = {**elements.dims.values, **elements.numbers}
    for nest in found.nests.values():
        values.update(nest.counts(values))
    for band in found.bands:
        values[f"band{band.start}"] = max([values[f"items{k}"] for k in band])
    for nest in found.nests.values():
        for name, dtype, size in nest.partials:
            shape = (size.evaluate(values),)
            found.arrays.append(Array(name, shape, dtype, "room"))
    found.values.update(values)
    _drop_unread(found)
    used: dict[str, None] = {}
    for band in found.bands:
        for line in band_lines([found.nests[k] for k in band]):
            used.update(dict.fromkeys(_NAME.findall(line.code)))
    found.size_names += [name for name in used if name in values]
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
    lines = [line.code.strip() for nest in found.nests.values() for line in nest.lines()]
    elsewhere = {found.buffers[value] for value in used_by_steps(found.plan)}
    for array in list(found.arrays):
        name = array.name
        if array.role != "room" or name in elsewhere:
            continue
        if all(
            code.startswith(f"store({name}, ") for code in lines if re.search(rf"\b{name}\b", code)
        ):
            found.arrays.remove(array)
            for nest in found.nests.values():
                nest.unread.add(name)


def used_by_steps(plan: Schedule) -> list[Value]:
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


def _name_constants(found: Emitted, graph: Graph) -> dict[Value, str]:
    """Name constants, or spell those that are written out."""
    names: dict[Value, str] = {}
    for value in graph.values():
        if value.operation != "constant":
            continue
        number, dtype = value.attributes["value"], value.dtype
        if is_plain(number, dtype):
            names[value] = plain_code(number, dtype)
            continue
        name = names[value] = f"c{len(found.constant_lines)}"
        first = len(found.constants)
        kind = type_code(dtype)
        if dtype.kind == "c":
            found.constants += [complex(number).real, complex(number).imag]
            code = f"{kind}(complex(constants[{first}], constants[{first + 1}]))"
            exact = f"{kind}(complex({_float(number.real)}, {_float(number.imag)}))"
        elif dtype.kind == "f":
            found.constants.append(float(number))
            code, exact = f"{kind}(constants[{first}])", f"{kind}({_float(number)})"
        else:
            slot = f"k{len(found.size_names)}"
            wrapped = int(number) - (1 << 64) if int(number) >= 1 << 63 else int(number)
            found.values[slot] = wrapped
            found.size_names.append(slot)
            code, exact = f"{kind}({slot})", f"{kind}({int(number)})"
        found.constant_lines.append(Line(f"{name} = {code}"))
        found.literal_lines.append(Line(f"{name} = {exact}"))
    return names


def _float(number: float) -> str:
    return repr(float(number)).replace("inf", "np.inf").replace("nan", "np.nan")
