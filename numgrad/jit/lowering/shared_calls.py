"""Calls of a graph that compute the same, as one: opaque ones, draws, and loops of the same turns.

The body of a gradient's loop computes anew what the forward half did, loops in it included. Such a
loop stacks more than the first one did, but goes through the same turns: both are one loop that has
the results of both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.lowering.bodies import fresh_input, rebuilt
from numgrad.jit.lowering.draws import Drawing
from numgrad.jit.lowering.loops import Loop
from numgrad.jit.lowering.opaque_calls import Whole
from numgrad.jit.passes.simplify import simplify
from numgrad.jit.passes.unit_dims import without_unit_dims

__all__ = ["with_calls_once"]


def with_calls_once(graph: Graph) -> Graph:
    """Return the graph simplified, in which no two calls compute the same."""
    graph = without_unit_dims(graph)
    while True:
        graph = simplify(graph)
        new = _same_calls(graph) or _joined_loops(graph)
        if not new:
            return graph
        graph = Graph(graph.inputs, rebuilt(graph.values(), new, graph.outputs))


def _same_calls(graph: Graph) -> dict[Value, Value]:
    """Return for calls that give what others give these."""
    known: dict[object, Value] = {}
    new: dict[Value, Value] = {}
    for value in graph.values():
        primitive = value.attributes.get("primitive")
        if isinstance(primitive, Whole):
            own = repr((primitive.name, primitive.template, primitive.order, primitive.count))
        elif isinstance(primitive, Drawing):
            own = repr(primitive.template)
        else:
            continue
        key = (primitive.name, own, value.operands)
        found = known.setdefault(key, value)
        if found is not value:
            new[value] = found
    return new


# --- loops --------------------------------------------------------------------------------------


def _joined_loops(graph: Graph) -> dict[Value, Value]:
    """Return what becomes of the results of two loops that can be one, if there are such."""
    values = graph.values()
    calls = [value for value in values if isinstance(value.attributes.get("primitive"), Loop)]
    for one, other in combinations(calls, 2):
        if not _may_be_one(one, other):
            continue
        results = _joined(one, other)
        if results:
            return {
                value: results[value.operands[0], value.attributes["position"]]
                for value in values
                if value.operation == "item" and value.operands[0] in (one, other)
            }
    return {}


def _may_be_one(one: Value, other: Value) -> bool:
    """Whether one loop takes what the other does, for as many turns, and neither the other's."""
    a: Loop = one.attributes["primitive"]
    b: Loop = other.attributes["primitive"]
    if (a.length, a.reverse, a.stops, a.counted, a.divided) != (
        b.length,
        b.reverse,
        b.stops,
        b.counted,
        b.divided,
    ):
        return False
    if a.counted and one.operands[a.fixed - 1] is not other.operands[b.fixed - 1]:
        return False
    mine, others = set(one.operands[: a.carries]), set(other.operands[: b.carries])
    rows = set(one.operands[a.carries : a.carries + a.rows])
    more = set(other.operands[b.carries : b.carries + b.rows])
    if not ((mine <= others and rows <= more) or (mine >= others and rows >= more)):
        return False
    return one not in Graph([], other.operands).values() and (
        other not in Graph([], one.operands).values()
    )


def _joined(one: Value, other: Value) -> dict[tuple[Value, int], Value]:
    """Return what becomes of the results of two loops, by call and position, if they can be one.

    They can if the carries of one are among those of the other.

    Carries are the same if they begin with the same, and if from all that are the same in one turn
    the same follows for the next. So those that begin with the same are taken for the same at
    first, and are parted where what follows differs, until nothing does.
    """
    calls = one, other
    places = [(n, k) for n in (0, 1) for k in range(calls[n].attributes["primitive"].carries)]
    kinds: dict[tuple[int, int], object] = {(n, k): calls[n].operands[k] for n, k in places}
    while True:
        body = _Bodies(calls, kinds)
        parted = {place: (kinds[place], body.after[place]) for place in places}
        numbers = {kind: k for k, kind in enumerate(dict.fromkeys(parted.values()))}
        if len(numbers) == len(set(kinds.values())):
            break
        kinds = {place: numbers[kind] for place, kind in parted.items()}
    owned = [{kinds[place] for place in places if place[0] == n} for n in (0, 1)]
    loop: Loop = one.attributes["primitive"]
    if not (owned[0] <= owned[1] or owned[0] >= owned[1]):
        return {}
    if loop.stops and kinds[0, 0] != kinds[1, 0]:
        return {}
    return body.results()


class _Bodies:
    """The bodies of two loops in one graph, whose carries of the same kind are one.

    Attributes
    ----------
    after : dict of Value
        What each carry is in the next turn, by call and position.
    """

    def __init__(self, calls: Sequence[Value], kinds: Mapping[tuple[int, int], object]) -> None:
        self.calls, self.kinds = calls, kinds
        self.carries: dict[object, tuple[Value, Value]] = {}  # of each kind: operand and input
        self.rows: dict[Value, Value] = {}  # the input for an operand
        self.fixed: dict[Value, Value] = {}
        outputs: list[Value] = []
        for n, call in enumerate(calls):
            outputs += self._entered(n, call)
        inputs = [each for _, each in self.carries.values()]
        self.inputs = [*inputs, *self.rows.values(), *self.fixed.values()]
        self.graph = with_calls_once(Graph(self.inputs, outputs))
        self.first = len(calls[0].attributes["primitive"].graph.outputs)
        self.after = {(n, k): self.graph.outputs[n * self.first + k] for n, k in kinds}

    def _entered(self, n: int, call: Value) -> list[Value]:
        """Return the outputs of a loop's body, on the inputs of both."""
        loop: Loop = call.attributes["primitive"]
        new: dict[Value, Value] = {}
        for k, (inner, operand) in enumerate(zip(loop.graph.inputs, call.operands, strict=True)):
            fresh = fresh_input(inner, 0)
            if k < loop.carries:
                new[inner] = self.carries.setdefault(self.kinds[n, k], (operand, fresh))[1]
            elif k < loop.carries + loop.rows:
                new[inner] = self.rows.setdefault(operand, fresh)
            else:  # of which the number of turns comes first
                new[inner] = self.fixed.setdefault(operand, fresh)
        return rebuilt(loop.graph.values(), new, loop.graph.outputs)

    def results(self) -> dict[tuple[Value, int], Value]:
        """Return the results of the loop of both, by call and position."""
        loop: Loop = self.calls[0].attributes["primitive"]
        outputs = {self.kinds[place]: value for place, value in self.after.items()}
        handed_on = [outputs[kind] for kind in self.carries]
        order = {kind: k for k, kind in enumerate(self.carries)}
        stacked: dict[Value, int] = {}
        positions: dict[tuple[Value, int], int] = {}
        for n, call in enumerate(self.calls):
            own: Loop = call.attributes["primitive"]
            for k in range(len(own.graph.outputs)):
                if k < own.carries:
                    positions[call, k] = order[self.kinds[n, k]]
                    continue
                value = self.graph.outputs[n * self.first + k]
                positions[call, k] = stacked.setdefault(value, len(handed_on) + len(stacked))
        body = Graph(self.inputs, [*handed_on, *stacked])
        both = loop.with_body(body, len(handed_on), len(self.rows))
        operands = [operand for operand, _ in self.carries.values()]
        operands += [*self.rows, *self.fixed]
        like = self.calls[0]
        attributes = {**like.attributes, "primitive": both}
        call = Value("call", operands, like.shape, like.dtype, like.origin, **attributes)
        metas = both.metas()
        return {
            place: Value("item", (call,), *metas[k], like.origin, position=k)
            for place, k in positions.items()
        }
