"""Functions of loops whose body is a program: for unit vectors, and with carries.

All arrays that they are given are C-contiguous, and nothing is checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Protocol

from numgrad.codegen.loop_distribution import on_stack
from numgrad.codegen.loops import (
    ONE,
    ZERO,
    Assign,
    Do,
    Expression,
    For,
    Function,
    If,
    Load,
    Name,
    Number,
    Return,
    Statement,
    Store,
    While,
    call,
    combine,
    names,
    plus,
    type_code,
)
from numgrad.jit.emit.interruptions import (
    ENDED,
    asks_within,
    cleared_stacks,
    in_stretches,
    interruption,
    none_ended,
    turns_between,
)
from numgrad.jit.emit.program_source import Emitted
from numgrad.jit.emit.scalar_code import PART, new_array
from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.lowering.loops import Loop
from numgrad.jit.lowering.unit_vectors import Rows

__all__ = ["Body", "copied", "loop_function"]

NUMBERS_OF_A_VECTOR = 4  # from which on they are worth one in a loop whose turns wait
UNROLLED_COPY = 16  # elements up to which a copy is written out
(_DISTINCT,) = names("numgrad.codegen.loop_runtime", "distinct")
(_USE_NO_VECTORS,) = names("numgrad.codegen.llvm.width", "use_no_vectors")
_ZEROS = Name("zeros", "numpy")


class Body(Protocol):
    """A program that is written into a function: see `numgrad.jit.emit.standalone`."""

    emitted: Emitted
    graph: Graph
    is_small: bool
    outside: set[str]  # results that whoever calls it has made
    can_end: bool  # whether a loop within may be ended by a signal

    def given(self, inputs: Sequence[Value], *, known: bool = False) -> list[Statement]:
        """Take arguments."""

    def steps(self) -> list[Statement]:
        """Do what the program does."""

    def room(self) -> list[Statement]:
        """Make what else the steps need, which are written before."""

    def is_registered(self, array: Any) -> bool:
        """Whether an array is held where no other array can be."""

    def array_name(self, value: Value) -> str:
        """Return the name of an argument as an array of its own."""


def loop_function(body: Body, loop: Loop | Rows, name: str) -> Function:
    """Return the function of a loop: of its operands, and of arrays for its results.

    What a body hands on to the next turn is held in registers if it is short. A loop over unit
    vectors is called with the first one and the last, excluded, in front of all others. One that a
    signal may end returns whether it did.
    """
    buffers, graph, of_vectors = body.emitted.buffers, body.graph, isinstance(loop, Rows)
    carries = graph.inputs[: loop.carries]
    rows = graph.inputs[loop.carries : loop.carries + loop.rows]
    lines: list[Statement] = [Do(call(_DISTINCT))] * (not of_vectors)
    if _is_narrow(body, carries):
        lines.append(Do(call(_USE_NO_VECTORS)))
    lines += body.given(graph.inputs[loop.fixed :], known=True)
    for k, value in enumerate(carries):
        lines += [_held(body, value), *copied(buffers[value], f"from_{k}", value)]
    begin: list[Statement] = []
    end: list[Statement] = []
    for k, value in enumerate(rows):
        source, size = f"rows_{k}", prod(value.shape)
        if body.is_registered(value):
            lines.append(on_stack(buffers[value], value.dtype, size))
            begin += copied(buffers[value], source, value, combine("*", "k", size))
        else:
            begin.append(Assign(buffers[value], _part(source, "k", value)))
    if of_vectors:
        unit = Name(buffers[graph.inputs[0]])
        lines += _cleared(body, graph.inputs[0])
        begin, end = [Store(unit, Name("k"), ONE)], [Store(unit, Name("k"), ZERO)]
    handed_on = graph.outputs[: loop.carries]
    stacked = list(enumerate(graph.outputs[loop.carries :]))
    results = _Stacked(body, stacked, "k", lines)
    for value in handed_on:
        results.hold(value, lines)
    turn = [*begin, *results.before, *body.steps(), *results.after]
    lines += body.room()
    turn += [*_moved(body, carries, handed_on, lines), *end]
    can_end = body.can_end or (isinstance(loop, Loop) and asks_within(loop))
    lines += none_ended(can_end)
    lines += _turns(loop, turn, body, [(f"all_{k}", value) for k, value in stacked])
    for k, value in enumerate(carries):
        lines += copied(f"last_{k}", buffers[value], value)
    lines += [Return(Name(ENDED))] * can_end
    parameters = ["start", "stop"] * of_vectors
    parameters += [f"from_{k}" for k in range(loop.carries)]
    parameters += [f"rows_{k}" for k in range(loop.rows)]
    parameters += ["count"] * loop.counted
    parameters += [f"{buffers[value]}_" for value in graph.inputs[loop.fixed :]]
    parameters += [f"last_{k}" for k in range(loop.carries)]
    parameters += [f"all_{k}" for k in range(len(stacked))]
    return Function(name, parameters, lines)


def _is_narrow(body: Body, carries: Sequence[Value]) -> bool:
    """Whether turns wait for each other, and do too little side by side for a vector."""
    sizes = [prod(value.shape) for value in body.graph.values()]
    return body.is_small and bool(carries) and 1 < max(sizes) < NUMBERS_OF_A_VECTOR


def _cleared(body: Body, vector: Value) -> list[Statement]:
    """Return what makes a vector of zeros."""
    name, count = body.emitted.buffers[vector], prod(vector.shape)
    if body.array_name(vector) == name:
        return [Assign(name, call(_ZEROS, vector.shape, type_code(vector.dtype)))]
    cleared = For("at", ZERO, Number(count), [Store(Name(name), Name("at"), ZERO)])
    return [on_stack(name, vector.dtype, count), cleared]


def _part(array: str, turn: str, value: Value) -> Expression:
    """Return the part of an array of all turns that is a turn's."""
    size = prod(value.shape)
    at = combine("*", combine("*", turn, size), value.dtype.itemsize)
    return call(PART, array, at, size, type_code(value.dtype))


def _turns(
    loop: Loop | Rows, turn: list[Statement], body: Body, stacks: Sequence[tuple[str, Value]]
) -> list[Statement]:
    """Return the loop over turns, of which ``k`` is the row.

    Where they may take long, some turns ask whether there was a signal.
    """
    if isinstance(loop, Rows):
        return [For("k", Name("start"), Name("stop"), turn)]
    between = turns_between(loop)
    if loop.stops:
        goes_on: Expression = Load(Name(body.emitted.buffers[body.graph.inputs[0]]), ZERO)
        if loop.length is not None:
            goes_on = combine("and", goes_on, combine("<", "k", loop.length))
        asks = interruption(_without_counts(body, loop), "k", between)
        following = Assign("k", combine("+", "k", 1))
        return [Assign("k", ZERO), While(goes_on, [*turn, asks, following])]
    count: Expression = Number(loop.length)
    if loop.counted:
        count = Load(Name("count"), ZERO)
    index, before = "k", list[Statement]()
    if loop.reverse:
        back = combine("-", combine("-", "turns", 1), "turn")
        index, turn, before = "turn", [Assign("k", back), *turn], [Assign("turns", count)]
        count = Name("turns")
    cleared = cleared_stacks(stacks, count)
    if asks_within(loop):
        return [*before, in_stretches(index, count, turn, cleared, between)]
    turns = For(index, ZERO, count, turn)
    if not body.can_end:
        return [*before, turns]
    return [*before, turns, *[If(Name(ENDED), cleared)] * bool(cleared)]


def _without_counts(body: Body, loop: Loop) -> list[Statement]:
    """Return what clears the counts among the carries: for so many turns others would go on."""
    return [
        Store(Name(body.emitted.buffers[value]), ZERO, ZERO)
        for value in body.graph.inputs[: loop.carries]
        if not value.shape and value.dtype.kind in "iu"
    ]


class _Stacked:
    """Results of turns that are stacked: `before` the steps of a turn they get a place.

    What is not written there is copied `after`.
    """

    def __init__(
        self, body: Body, outputs: Sequence[tuple[int, Value]], turn: str, lines: list[Statement]
    ) -> None:
        self.body, self.written = body, set[str]()
        self.arrays = {array.name for array in body.emitted.arrays if array.role == "output"}
        self.before: list[Statement] = []
        self.after: list[Statement] = []
        carried = {body.emitted.buffers[v] for v in body.graph.outputs} - {
            body.emitted.buffers[v] for _, v in outputs
        }
        for k, output in outputs:
            array, size = body.emitted.buffers[output], prod(output.shape)
            place = combine("*", turn, size)
            if array in self.arrays and array not in self.written and array not in carried:
                self.written.add(array)
                if output.shape and not body.is_registered(output):
                    self.before.append(Assign(array, _part(f"all_{k}", turn, output)))
                    continue
                lines.append(on_stack(array, output.dtype, max(1, size)))
            elif array not in self.written | carried and self._is_made_within(output):
                self.written.add(array)
                body.outside.add(array)
                self.before.append(Assign(array, _part(f"all_{k}", turn, output)))
                continue
            self.after += copied(f"all_{k}", array, output, ZERO, place)

    def _is_made_within(self, output: Value) -> bool:
        """Whether a loop of the body gives it, which can write it where it belongs at once."""
        if output.operation != "item" or self.body.is_registered(output):
            return False
        loop = output.operands[0].attributes["primitive"]
        if isinstance(loop, Loop):
            return not loop.grows(output.attributes["position"])
        return isinstance(loop, Rows)

    def hold(self, output: Value, lines: list[Statement]) -> None:
        """Have memory for a result of a turn that is handed on, if it has no place yet."""
        array = self.body.emitted.buffers[output]
        if array in self.arrays and array not in self.written:
            self.written.add(array)
            lines.append(_held(self.body, output))


def _held(body: Body, value: Value) -> Statement:
    """Return what makes memory for what a turn hands on."""
    name = body.emitted.buffers[value]
    if body.is_registered(value) or not value.shape:
        return on_stack(name, value.dtype, max(1, prod(value.shape)))
    return new_array(name, value.shape, value.dtype)


def _moved(
    body: Body, carries: Sequence[Value], handed_on: Sequence[Value], lines: list[Statement]
) -> list[Statement]:
    """Return what makes results of a turn the carries of the next."""
    buffers = body.emitted.buffers
    targets = [buffers[value] for value in carries]
    moves: list[Statement] = []
    late: list[Statement] = []
    for k, (target, value) in enumerate(zip(targets, handed_on, strict=True)):
        source = buffers[value]
        if source == target:
            continue
        if source not in targets:
            late += copied(target, source, value)
            continue
        kept = f"next_{k}"  # another carry, which is written to as well
        lines.append(new_array(kept, max(1, prod(value.shape)), value.dtype))
        moves += copied(kept, source, value)
        late += copied(target, kept, value)
    return [*moves, *late]


def copied(
    target: str,
    source: str,
    value: Value,
    start: Expression = ZERO,
    place: Expression = ZERO,
) -> list[Statement]:
    """Return what copies an array's elements, from `start` on, into another, from `place` on."""
    size = prod(value.shape)
    if size <= UNROLLED_COPY:
        return [
            Store(Name(target), plus(place, at), Load(Name(source), plus(start, at)))
            for at in range(size)
        ]
    element = Load(Name(source), plus(start, "at"))
    return [For("at", ZERO, Number(size), [Store(Name(target), plus(place, "at"), element)])]
