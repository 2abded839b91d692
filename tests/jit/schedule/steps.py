"""The steps of a schedule in words, and tables of graphs with the steps that they become.

A nest is told by its domain, by what it reduces within rows (`inner`) or across them (`blocked`),
by its outputs, and by what it reads. Behind the steps stands what is kept that nobody asked for,
and which steps run together, if any do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from numgrad.codegen.scalar_ops import SCALAR_OPS
from numgrad.jit.ir.graph import Affine, Graph, Value
from numgrad.jit.schedule.index_maps import Index
from numgrad.jit.schedule.loop_fusion import find_bands
from numgrad.jit.schedule.nests import LoopOutput, Nest
from numgrad.jit.schedule.schedule import Schedule, schedule
from tests.jit import graphs as g
from tests.jit.interpreter import interpret
from tests.jit.run_source import run_source

__all__ = ["Outputs", "Table", "check_steps", "described"]

Outputs = Sequence[Value]
LARGEST = 1000  # elements of a value that are computed one by one
OTHERS = 257  # numbers up to 256 are one object each


class Table(dict[str, tuple[Callable[[], Outputs], list[str]]]):
    """Functions that make the outputs of a graph, by name, and the steps that it becomes."""

    def becomes(self, *steps: str) -> Callable[[Callable[[], Outputs]], None]:
        """Enter a function."""

        def enter(make: Callable[[], Outputs]) -> None:
            self[make.__name__] = (make, list(steps))

        return enter


def check_steps(make: Callable[[], Outputs], steps: list[str]) -> None:
    """Check what a graph becomes, and that this computes what the graph means.

    Inputs that are `own` may be written over.
    """
    outputs = list(make())
    inputs = [value for value in Graph([], outputs).values() if value.operation == "input"]
    graph = Graph(inputs, outputs)
    own = [value for value in inputs if value.attributes.get("own")]
    assert described(schedule(graph, own)) == steps
    values = graph.values()
    _tell_sizes_apart(values)
    assert described(schedule(graph, own)) == steps
    for choose in (min, max):
        assert described(_of_other_names(graph, own, choose)) == steps
    if len(steps) > 1:  # else no positions are compared
        _check_behind_others(graph, own, steps)
    if any(value.operation == "call" or np.prod(value.shape) > LARGEST for value in values):
        return
    rng = np.random.default_rng(0)
    arrays = [
        rng.integers(0, 3, value.shape)  # positions
        if value.dtype.kind == "i"
        else np.asarray(rng.normal(size=value.shape)).astype(value.dtype)
        for value in inputs
    ]
    for found, wanted in zip(run_source(graph, arrays), interpret(graph, arrays), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


class _Length(int):
    """A size that is equal to others and none of them, as Python's are from 257 on."""


def _tell_sizes_apart(values: Sequence[Value]) -> None:
    """Let no two sizes, offsets and steps of a graph be one object: what is equal is compared."""
    for value in values:
        value.shape = tuple(_Length(length) for length in value.shape)
        found = dict(value.attributes)
        if value.operation == "update":
            found["offset"] = _Length(found["offset"])
            found["strides"] = tuple(_Length(stride) for stride in found["strides"])
        if "maps" in found:
            found["maps"] = tuple(
                Affine(_Length(offset), tuple((dim, _Length(step)) for dim, step in terms))
                for offset, terms in found["maps"]
            )
        value.attributes = found


def _of_other_names(
    graph: Graph, own: Sequence[Value], choose: Callable[[Sequence[str]], str]
) -> Schedule:
    """Return the schedule of a graph with other elementwise operations, which cost the same.

    Their names stand before or behind those of all operations that a schedule knows.
    """
    elementwise = {value: value.operation for value in graph.values() if value.is_elementwise}
    by_flops: dict[int, list[str]] = {}
    for name, each in SCALAR_OPS.items():
        by_flops.setdefault(each.flops, []).append(name)
    for value, name in elementwise.items():
        value.operation = choose(by_flops[SCALAR_OPS[name].flops])
    try:
        return schedule(graph, own)
    finally:
        for value, name in elementwise.items():
            value.operation = name


def _check_behind_others(graph: Graph, own: Sequence[Value], steps: list[str]) -> None:
    """Check a graph's steps behind so many others that no two equal positions are one object.

    What runs together tells positions, and is left out.
    """
    other = first = g.given(2, 2)
    for _ in range(OTHERS):
        other = product(other, first)
    plan = schedule(Graph([first, *graph.inputs], [other, *graph.outputs]), own)
    (one,) = described(schedule(Graph([first], [product(first, first)])))
    names = one, one.replace("input", "matmul", 1)
    lines = [line for line in described(plan) if line not in names]
    kept = f"kept: {', '.join(['matmul'] * (OTHERS - 1))}"
    found = [line.replace(f"{kept}, ", "kept: ") for line in lines if line != kept]
    assert [line for line in found if not line.startswith("together")] == [
        line for line in steps if not line.startswith("together")
    ]


def described(plan: Schedule) -> list[str]:
    """Return a line for each step, then what is kept in between, then what runs together."""
    lines = []
    for position, step in enumerate(plan.steps):
        if not isinstance(step, Nest):
            operands = [_strided(plan, operand) for operand in step.value.operands]
            lines.append(f"{step.value.operation} of {', '.join(operands)}")
            continue
        axes = {"inner": step.inner, "blocked": step.blocked}
        head = ["x".join(str(plan.elements.dims.values[name]) for name in step.domain) or "one"]
        head += [f"{name} {sorted(found)}" for name, found in axes.items() if found]
        outputs = [_output(plan, output) for output in step.outputs]
        outputs += [f"check {check.operands[0].operation}" for check in step.checks]
        elements = plan.walk(plan.roots(step), position)
        read = [value.operation for value, at in elements if _is_read(plan, value, at, position)]
        lines.append(f"{' '.join(head)}: {', '.join(outputs)} <- {' '.join(read)}")
    bands = find_bands(plan)
    asked_for = {*plan.graph.outputs, *plan.graph.inputs}
    kept = [value.operation for value in plan.graph.values() if value in plan.kept - asked_for]
    if kept:
        lines.append(f"kept: {', '.join(kept)}")
    if any(len(band) > 1 for band in bands):
        lines.append("together: " + " | ".join(" ".join(map(str, band)) for band in bands))
    return lines


def _is_read(plan: Schedule, value: Value, index: Index, position: int) -> bool:
    return value.operation != "constant" and not plan.inputs((value, index), position)


def _strided(plan: Schedule, value: Value) -> str:
    """Return of what an operand is a view: its start and strides, in elements."""
    found = plan.elements.strided(value, plan.kept)
    assert found is not None
    names = {**plan.elements.dims.values, **plan.elements.numbers}
    start, *strides = [size.evaluate(names) for size in (found.start, *found.strides)]
    return f"{found.base.operation}[{start}; {' '.join(map(str, strides))}]"


def _output(plan: Schedule, output: LoopOutput) -> str:
    reduced = "".join(map(str, sorted(output.reduced)))
    kind = f"{output.value.attributes['kind']}{reduced}" if output.kind == "reduce" else output.kind
    over = " over " + plan.in_place[output.value].operation if output.value in plan.in_place else ""
    return f"{kind} {output.source.operation}{over}"


# --- what the tables are made of ------------------------------------------------------------------


def chain(value: Value, count: int) -> Value:
    """Return a value that takes so many additions' time."""
    for _ in range(count):
        value = g.op("neg", value)
    return value


def turned(value: Value) -> Value:
    """Return a value backwards along its last dim."""
    *leading, length = value.shape
    maps = [(0, ((dim, 1),)) for dim in range(len(leading))]
    return g.view(value, value.shape, *maps, (length - 1, ((len(leading), -1),)))


def product(a: Value, b: Value) -> Value:
    """Return the product of two matrices."""
    return Value("matmul", (a, b), (a.shape[0], b.shape[1]), a.dtype)


def positions(*shape: int) -> Value:
    """Return an input of positions."""
    return g.given(*shape, dtype="int64")


def taken(value: Value, at: Value) -> Value:
    """Return the elements of a vector at positions."""
    return g.gather(value, at.shape, [(0, ((len(at.shape), 1),))], at)


def put(base: Value, part: Value, at: Value | None = None) -> Value:
    """Return a value with parts added at positions of its first dim."""
    maps = [(0, ((len(part.shape), 1),))]
    maps += [(0, ((dim, 1),)) for dim in range(1, len(base.shape))]
    return g.scatter(base, part, maps, at or positions(*part.shape), adds=True)


def zeros(*shape: int) -> Value:
    """Return a number, repeated."""
    return g.view(g.number(0.0), shape)


def call(*operands: Value) -> Value:
    """Return a call of a primitive."""
    return Value("call", operands, (), g.F64, primitive=None)


def item(of: Value, *shape: int) -> Value:
    """Return a result of a call."""
    return Value("item", (of,), shape, g.F64, position=0)
