"""The source of a compiled function: its nests one after the other, and what they are given.

The function is called as ``run(first_nest, last_nest, begin, end, *arrays, sizes, constants)``. It
runs the nests from `first_nest` to `last_nest`; of one nest, threads may ask for the items from
`begin` to `end`. Sizes and constants are arguments, so that one compiled function serves all
graphs of a structure; `literal_source` has them written into it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from numgrad.jit.elements import LEAVES
from numgrad.jit.graph import Graph, Value
from numgrad.jit.nest_source import Line, NestSource, indent
from numgrad.jit.scalars import is_plain, plain_code, type_code
from numgrad.jit.schedule import Nest, Schedule, schedule

__all__ = ["Array", "Emitted", "emit"]

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
    arrays : list of Array
        In the order of the function's arguments.
    buffers : dict
        The name of the array that each kept value is in.
    sizes, constants : list
        The numbers that the function gets.
    """

    plan: Schedule
    nests: dict[int, NestSource]
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

    def body(self, *, literal: bool) -> list[Line]:
        """Return the lines of the function."""
        lines = [Line("distinct()")]
        if any(nest.is_dear for nest in self.nests.values()):
            lines.append(Line("use_wide_vectors()"))
        if literal:
            lines += [Line(f"{name} = {self.values[name]}") for name in self.size_names]
            lines += self.literal_lines
        else:
            lines += [Line(f"{name} = sizes[{k}]") for k, name in enumerate(self.size_names)]
            lines += self.constant_lines
        for nest in self.nests.values():
            lines.append(Line(""))
            lines += nest.lines()
        return lines

    def imports(self) -> list[str]:
        """Return the lines in front of the function."""
        functions = {"distinct", "finishes", "span", "stack", "BLOCK", "LEVELS"}
        for nest in self.nests.values():
            functions |= nest.functions
        lines = ["import numpy as np", "", "from numgrad.kernels import scalar"]
        lines.append("from numgrad.kernels.nests import (")
        lines += [f"    {name}," for name in sorted(functions)]
        lines += [")", "from numgrad.kernels.pointers import element, store"]
        lines.append("from numgrad.kernels.vector.width import use_wide_vectors")
        return [*lines, ""]

    def source(self, *, origins: bool = False) -> str:
        """Return the module with the function ``run``."""
        arguments = [*(array.name for array in self.arrays), "sizes", "constants"]
        head = f"def run(first_nest, last_nest, begin, end, {', '.join(arguments)}):"
        lines = [Line(text) for text in self.imports()]
        lines += [Line(""), Line(head), *indent(self.body(literal=False))]
        return spell(lines, origins=origins)


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
    found = Emitted(plan, {})
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
    for nest in found.nests.values():
        for name, dtype, size in nest.partials:
            shape = (size.evaluate(values),)
            found.arrays.append(Array(name, shape, dtype, "room"))
    found.values.update(values)
    used: dict[str, None] = {}
    for nest in found.nests.values():
        for line in nest.lines():
            used.update(dict.fromkeys(_NAME.findall(line.code)))
    found.size_names += [name for name in used if name in values]
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
