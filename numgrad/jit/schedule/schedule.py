"""Schedule a graph: which loop nests compute it, in which order, and what is kept in memory.

Whatever has to be in memory is an *output*: a value that is stored, a part that is written over
another value, or a reduction. Outputs over the same domain share a nest if none needs another one
complete; all else is computed where it is needed. Two kinds of nests do more than visit elements:

- in one with `inner` axes, these are reduced (and visited again, row by row) within each step of
  the others, the rows;
- in one with `blocked` axes, these are reduced across the steps, in blocks of rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.ir.symbolic_sizes import ZERO, Place
from numgrad.jit.schedule.in_place import users_of, writes_in_place
from numgrad.jit.schedule.index_maps import (
    ANYWHERE,
    LEAVES,
    Element,
    Elements,
    Flat,
    Index,
    Strided,
    weight,
)
from numgrad.jit.schedule.nests import LoopOutput, Nest, OpaqueStep, writes_over
from numgrad.jit.schedule.overwriting import in_order, overwriting

__all__ = ["Schedule", "is_loose", "schedule"]

AFFORDABLE = 8  # what computing an element again may cost, in additions, before it is kept
_STEPS = frozenset(("matmul", "call"))
_IN_MEMORY = frozenset(("reduce", "update", "join", "scatter", "check", "item", *_STEPS))


class Schedule:
    """The steps that compute a graph.

    Attributes
    ----------
    graph : Graph
    elements : Elements
    steps : list of Nest and OpaqueStep
    kept : set of Value
        What is in memory, the leaves included.
    in_place : dict
        Updates that write over their operand, which nobody else needs.
    over : mapping
        Scatters that write over an input, and who reads that before they do.
    """

    def __init__(
        self,
        graph: Graph,
        elements: Elements,
        kept: set[Value],
        over: Mapping[Value, Collection[Value]],
    ) -> None:
        self.graph = graph
        self.elements = elements
        self.kept = kept
        self.over = over
        self.steps: list[Nest | OpaqueStep] = []
        self.in_place: dict[Value, Value] = {}
        self.step_of: dict[Value, int] = {}  # where a kept value is complete
        self._sources: dict[Value, Strided] = {}
        self.users = users_of(graph)

    # --- nodes ---

    def is_local(self, value: Value, step: int | None) -> bool:
        """Whether a kept value is stored by this very step, which can compute it again."""
        return (
            step is not None
            and self.step_of.get(value) == step
            and value.operation not in _IN_MEMORY
            and isinstance(self.steps[step], Nest)
        )

    def is_read(self, element: Element, step: int | None, *, stored: bool = False) -> bool:
        """Whether an element is read from memory, and not being stored."""
        value, index = element
        is_there = value in self.kept and not stored
        return is_there and (not self.is_local(value, step) or is_loose(index))

    def inputs(
        self, element: Element, step: int | None = None, *, stored: bool = False
    ) -> list[Element]:
        """Return what an element is computed of in a step; nothing if it is read from memory.

        Where no step is named, all that is kept is read.
        """
        value, index = element
        if value.operation == "constant" or self.is_read(element, step, stored=stored):
            return []
        if value.operation == "gather":
            return [(self.source_of(value).base, ANYWHERE), *self.elements.operands(value, index)]
        return self.elements.operands(value, index)

    def source_of(self, gather: Value) -> Strided:
        """Return what a gather reads, as a view of what is in memory."""
        found = self._sources.get(gather)
        if found is None:
            source = gather.operands[0]
            strided = None if source in self.kept else self.elements.strided(source, self.kept)
            if strided is None:
                strided = Strided(source, ZERO, tuple(self.elements.dims.strides(source)))
            found = self._sources[gather] = strided
        return found

    def walk(
        self,
        roots: list[tuple[Element, bool]],
        step: int | None = None,
        seen: set[Element] | None = None,
    ) -> Iterator[Element]:
        """Yield all elements that a step computes or reads for some, operands first.

        With each root comes whether it is being stored, so computed and not read. Elements in
        `seen` are left out, and the others added to it.
        """
        seen = set() if seen is None else seen
        for root, stored in roots:
            stack = [(root, iter(self.inputs(root, step, stored=stored)))]
            if root in seen:
                continue
            seen.add(root)
            while stack:
                element, rest = stack[-1]
                following = next(rest, None)
                if following is None:
                    stack.pop()
                    yield element
                elif following not in seen:
                    seen.add(following)
                    stack.append((following, iter(self.inputs(following, step))))

    def roots(self, nest: Nest) -> list[tuple[Element, bool]]:
        """Return the elements that the outputs of a nest want."""
        return [
            ((s.source, self.elements.index(s.source, list(s.axes))), s.kind == "store")
            for s in nest.outputs
        ]

    def cost(self, element: Element) -> int:
        """Return about what computing an element takes, where an addition is 1."""
        wanted, _ = element
        return sum(
            weight(value)
            for value, _ in self.walk([(element, wanted in self.kept)])
            if value not in self.kept or value is wanted
        )

    # --- placing ---

    def place(self, output: LoopOutput) -> None:
        """Put an output into the first nest that can take it, or into a new one."""
        needed = self.needed(output)
        lower = max([0, *(self.step_of[value] for value, _ in needed)])
        if writes_over(output):  # behind what it is a part of
            before = output.value if output.value in self.step_of else self.in_place[output.value]
            readers = self.over.get(output.value, ())
            lower = max([lower, *(self.step_of[each] + 1 for each in (before, *readers))])
        for position in range(lower, len(self.steps)):
            nest = self.steps[position]
            if isinstance(nest, Nest) and self._join(nest, position, output, needed):
                break
        else:
            position = len(self.steps)
            fresh = Nest(output.domain)
            self.steps.append(fresh)
            if not self._join(fresh, position, output, needed):
                raise AssertionError("a new nest takes any output")
        self.step_of[output.value] = max(position, self.step_of.get(output.value, position))

    def needed(self, output: LoopOutput) -> list[Element]:
        """Return the kept values, other than leaves, that an output reads, with their indices."""
        root = (output.source, self.elements.index(output.source))
        return [
            (value, index)
            for value, index in self.walk([(root, output.kind == "store")])
            if value in self.kept
            and value.operation not in LEAVES
            and not (value is output.source and output.kind == "store")
        ]

    def _join(self, nest: Nest, position: int, output: LoopOutput, needed: list[Element]) -> bool:
        """Put an output into a nest if it may be there."""
        inner, blocked = nest.inner, nest.blocked
        if output.domain == nest.domain:
            axes = tuple(range(len(nest.domain)))
        elif inner and output.domain == tuple(nest.domain[a] for a in nest.rows):
            axes = nest.rows
            if output.reduced and len(output.reduced) != len(axes):
                return False
        else:
            return False
        if output.reduced and len(output.reduced) < len(axes):
            if axes[-1] in output.reduced:
                if inner not in (None, output.reduced) or (blocked and blocked & output.reduced):
                    return False
                inner = output.reduced
            else:
                if blocked not in (None, output.reduced) or (inner and inner & output.reduced):
                    return False
                is_complex = output.value.dtype.kind == "c"
                if blocked and is_complex != nest.has_complex_blocks:
                    return False  # blocks of another size
                blocked = output.reduced
        if blocked and (nest.is_serial or output.kind == "scatter"):
            return False
        one_behind = blocked == frozenset(range(len(nest.domain) - 1))
        is_total = len(output.reduced) == len(nest.domain)
        if blocked and (is_total or nest.has_totals) and not one_behind:
            return False  # rows would not be done in the order in which all is added up
        for value, index in needed:
            if self.step_of[value] == position and not self._reads(
                nest, position, inner, axes, value, index
            ):
                return False
        nest.inner, nest.blocked = inner, blocked
        output.axes = axes
        nest.outputs.append(output)
        return True

    def _reads(
        self,
        nest: Nest,
        position: int,
        inner: frozenset[int] | None,
        axes: tuple[int, ...],
        value: Value,
        index: Index,
    ) -> bool:
        """Whether a value that a nest computes can be had in that nest, at an index."""
        maker = next((output for output in nest.outputs if output.value is value), None)
        if is_loose(index) or maker is None:
            return False
        at = (
            tuple(
                tuple(place.renamed(dict(enumerate(axes))) for place in entry)
                for entry in index
                if not isinstance(entry, Place)
            )
            if not isinstance(index, Flat)
            else ()
        )
        if maker.kind == "reduce":
            if not inner or maker.reduced != inner:
                return False
            rows = [axis for axis in range(len(nest.domain)) if axis not in inner]
            return at == self.elements.index(value, rows)
        if maker.kind != "store" or value.operation in _IN_MEMORY:
            return False
        if at == self.elements.index(value, list(maker.axes)):
            return True
        # Elsewhere it is computed once more, which must be cheap and take nothing of this nest.
        if any(self.step_of[v] == position for v, _ in self.needed(maker)):
            return False
        return self.cost((value, self.elements.index(value))) <= AFFORDABLE


def is_loose(index: Index) -> bool:
    """Whether an index can be found in memory only."""
    return isinstance(index, Flat) or any(isinstance(entry, Place) for entry in index)


def schedule(graph: Graph, own: Collection[Value] = ()) -> Schedule:
    """Find the nests that compute a graph.

    Parameters
    ----------
    graph : Graph
    own : collection of Value
        Inputs that may be written over.
    """
    elements = Elements(graph)
    over = overwriting(graph, own)
    kept = _initially_kept(graph, elements)
    kept.update(each for readers in over.values() for each in readers if each.operation != "call")
    found = _arrange(graph, elements, kept, over)
    while more := _worth_keeping(found):  # each time some that were not
        kept = kept | more
        found = _arrange(graph, elements, kept, over)
    return found


def _initially_kept(graph: Graph, elements: Elements) -> set[Value]:
    """Return the values that have to be in memory."""
    kept = set(graph.outputs)
    for value in graph.values():
        if value.operation in LEAVES or value.operation in _IN_MEMORY:
            kept.add(value)
        kept.update(elements.needs_memory(value))
    kept = {value for value in kept if value.operation != "call"}
    for value in graph.values():
        if value.operation == "check":
            kept.update(value.operands)
        if value.operation in _STEPS or value.operation == "gather":
            for operand in value.operands if value.operation in _STEPS else value.operands[:1]:
                strided = elements.strided(operand, kept)
                kept.add(operand if strided is None else strided.base)
    return kept


def _arrange(
    graph: Graph,
    elements: Elements,
    kept: set[Value],
    over: Mapping[Value, Collection[Value]],
) -> Schedule:
    """Return the nests for a choice of what is kept."""
    plan = Schedule(graph, elements, kept, over)
    values = in_order(graph.values(), over) or []
    for value in values:
        if value.operation == "scatter" and _is_fill(value.operands[0]):
            output = LoopOutput("store", value, value, elements.domain(value))
            if not plan.needed(output):  # the number may be a result, or what another step takes
                plan.place(output)
    for value in values:
        operation = value.operation
        if operation in LEAVES:
            plan.step_of[value] = -1
        elif operation in _STEPS:
            plan.step_of[value] = len(plan.steps)
            plan.steps.append(OpaqueStep(value))
        elif operation == "item":
            (call,) = value.operands
            plan.step_of[value] = plan.step_of[call]
        elif operation in ("update", "scatter"):
            _arrange_update(plan, value)
        elif operation == "check":
            index, flag = value.operands
            # The positions may be written after what the flag goes by, in another shape.
            position = max(plan.step_of[flag], plan.step_of[index])
            plan.step_of[value] = position
            plan.in_place[value] = index
            nest = plan.steps[position]
            assert isinstance(nest, Nest)
            nest.checks.append(value)
        elif operation == "join":
            for number, part in enumerate(value.operands):
                domain = elements.domain(part)
                plan.place(LoopOutput("window", value, part, domain, number=number))
        elif operation == "reduce":
            plan.place(_reduction(elements, value))
        elif value in kept:
            plan.place(LoopOutput("store", value, value, elements.domain(value)))
    return plan


def _reduction(elements: Elements, value: Value) -> LoopOutput:
    (source,) = value.operands
    reduced: set[int] = set()
    axis = 0
    for dim, atoms in enumerate(elements.dims.atoms(source)):
        if dim in value.attributes["dims"]:
            reduced.update(range(axis, axis + len(atoms)))
        axis += len(atoms)
    kind = "reduce" if reduced else "copy"
    return LoopOutput(kind, value, source, elements.domain(source), frozenset(reduced))


def _arrange_update(plan: Schedule, value: Value) -> None:
    """Copy what is updated, unless nobody else needs it, then write the part."""
    base, part, *_ = value.operands
    takes = base.operation not in LEAVES and base.operation != "item"
    is_over = base in plan.kept and takes and writes_in_place(value, plan.users, plan.kept)
    if value in plan.over or is_over:
        plan.in_place[value] = base
    elif value not in plan.step_of:
        plan.place(LoopOutput("store", value, value, plan.elements.domain(value)))
    domain = plan.elements.domain(part)
    if value.operation == "update":
        plan.place(LoopOutput("window", value, part, domain))
    else:
        plan.place(LoopOutput("scatter", value, plan.elements.routed(value), domain))


def _is_fill(value: Value) -> bool:
    """Whether a value is a number, repeated."""
    return value.operation == "view" and value.operands[0].operation == "constant"


def _worth_keeping(plan: Schedule) -> set[Value]:
    """Return values that are dear, and would be computed more than once."""
    where: dict[Value, set[int]] = {}  # in which nests
    indices: dict[Element, int] = {}
    again: dict[Value, Element] = {}
    for position, nest in enumerate(plan.steps):
        if not isinstance(nest, Nest):
            continue
        seen: dict[Value, Index] = {}
        inner = nest.inner or frozenset()
        outer = [axis for axis in range(len(nest.domain)) if axis not in inner]
        for element in plan.walk(plan.roots(nest), position):
            value, index = element
            if value in plan.kept or value.operation in ("constant", "view", "reshape"):
                continue
            indices[element] = position
            before = where.setdefault(value, set())
            before.add(position)
            if len(before) > 1 or seen.setdefault(value, index) != index:
                again[value] = element
            elif not isinstance(index, Flat):
                used = {
                    axis
                    for entry in index
                    for place in (entry if isinstance(entry, tuple) else (entry,))
                    for axis in place.steps
                }
                # In loops that it does not depend on, around one on which it does.
                if used and any(axis not in used for axis in outer if axis < max(used)):
                    again[value] = element
    found: set[Value] = set()
    covered: set[Value] = set()
    for value in reversed(plan.graph.values()):
        if value not in again or value in covered:
            continue
        element = again[value]
        if plan.cost(element) > AFFORDABLE:
            found.add(value)
            inside = list(plan.walk([(element, False)]))
            covered.update(v for v, _ in inside)
            found.update(_dear_within(plan, inside))
    return found


def _dear_within(plan: Schedule, inside: list[Element]) -> set[Value]:
    """Return values of which computing one element of another takes several, and that are dear.

    What reads a value at two places, and is read at two places itself, takes three of it, and so
    on: without memory in between the work of a chain grows with the square of its length. From the
    operands on, each value is kept that has become dear since the last one that was.
    """
    places: dict[Value, set[Index]] = {}
    for value, index in inside:
        places.setdefault(value, set()).add(index)
    most: dict[Value, int] = {}  # the places at which any of those that take a value are wanted
    for value in places:
        for operand in value.operands:
            most[operand] = max(most.get(operand, 1), len(places[value]))
    plan = Schedule(plan.graph, plan.elements, set(plan.kept), plan.over)
    found: set[Value] = set()
    for value, index in inside:
        moves_nothing = value.operation in ("constant", "view", "reshape")
        if value in plan.kept or moves_nothing or len(places[value]) <= most.get(value, 1):
            continue
        if plan.cost((value, index)) > AFFORDABLE:
            plan.kept.add(value)
            found.add(value)
    return found
