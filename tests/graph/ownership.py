"""Random graphs, with passes over them, in two forms: run by a library, and as a model in NumPy.

The model knows no memory that is shared. What a user may hold on to stands in a cell, and what is
said to write to a cell is all that does: a pass without ``create_graph`` adds to the ``.grad`` of a
leaf in place; every other gradient, whoever got it and whoever gave it, stays as it was.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import numgrad as ng

__all__ = ["HOOKS", "Program", "diamonds", "operations", "programs", "run"]

Array = np.ndarray[Any, Any]
LEAVES = 2  # the first tensors of a graph


class Operation(NamedTuple):
    """What computes a tensor of others: all are of 2 by 2 elements, and it is linear in each.

    Attributes
    ----------
    count : int
        Of how many tensors.
    forward : callable
        ``forward(lib, kept, *tensors)``; a Function of its own appends to `kept` what it gave.
    backward : callable
        Of the gradient, an array: those of the tensors.
    """

    count: int
    forward: Callable[..., Any]
    backward: Callable[[Array], tuple[Array, ...]]


@functools.cache
def operations(lib: Any) -> dict[str, Operation]:
    """Return the operations by their names, with Functions of the library."""

    class Shares(lib.autograd.Function):  # type: ignore[misc]
        """A sum that gives one tensor for two."""

        @staticmethod
        def forward(ctx: Any, a: Any, b: Any, kept: list[Any]) -> Any:
            return a + b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            double = g * 2
            return double, double, None

    class Passes(Shares):
        """A sum that gives what it got."""

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, g, None

    class Keeps(Shares):
        """A sum that keeps what it gives."""

        @staticmethod
        def forward(ctx: Any, a: Any, b: Any, kept: list[Any]) -> Any:
            ctx.kept = kept
            return a + b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            double = g * 2
            ctx.kept.append(double)
            return double, g, None

    def written(lib: Any, kept: Any, a: Any, b: Any) -> Any:
        result = a.clone()
        result.add_(b)
        return result

    def written_row(lib: Any, kept: Any, a: Any, b: Any) -> Any:
        result = a.clone()
        result[0].add_(b[1])
        return result

    zero = np.zeros((1, 2))
    return {
        "sum": Operation(2, lambda m, k, a, b: a + b, lambda g: (g, g)),
        "difference": Operation(2, lambda m, k, a, b: a - b, lambda g: (g, -g)),
        "multiple": Operation(1, lambda m, k, a: a * 3, lambda g: (3 * g,)),
        "negative": Operation(1, lambda m, k, a: -a, lambda g: (-g,)),
        "copy": Operation(1, lambda m, k, a: a.clone(), lambda g: (g,)),
        "shift": Operation(1, lambda m, k, a: a + 1, lambda g: (g,)),
        "view": Operation(1, lambda m, k, a: a.unsqueeze(0).squeeze(0), lambda g: (g,)),
        "alias": Operation(1, lambda m, k, a: a[...], lambda g: (g,)),
        "transpose": Operation(1, lambda m, k, a: a.t(), lambda g: (g.T,)),
        "row": Operation(
            1, lambda m, k, a: a[:1].expand(2, 2), lambda g: (np.vstack([g.sum(0), zero]),)
        ),
        "total": Operation(
            2, lambda m, k, a, b: a.sum() + b, lambda g: (np.full((2, 2), g.sum()), g)
        ),
        "join": Operation(
            2,
            lambda m, k, a, b: m.cat([a[:1], b[1:]]),
            lambda g: (np.vstack([g[:1], zero]), np.vstack([zero, g[1:]])),
        ),
        "swap": Operation(1, lambda m, k, a: m.stack(a.unbind()[::-1]), lambda g: (g[::-1],)),
        "written": Operation(2, written, lambda g: (g, g)),
        "written row": Operation(2, written_row, lambda g: (g, np.vstack([zero, g[:1]]))),
        "shares": Operation(2, lambda m, k, a, b: Shares.apply(a, b, k), lambda g: (2 * g, 2 * g)),
        "passes": Operation(2, lambda m, k, a, b: Passes.apply(a, b, k), lambda g: (g, g)),
        "keeps": Operation(2, lambda m, k, a, b: Keeps.apply(a, b, k), lambda g: (2 * g, g)),
    }


# Most often those that hand a gradient on as it is, or make one that they do not keep.
NAMES = sorted(operations(ng)) + ["shift"] * 8 + ["multiple", "sum"] * 4
HOOKS = ["keep", "double", "before", "after", "after", "retain", "retain", "added"]
# Operations of one node, whose hooks see the gradient of each tensor.
PLAIN = {"sum", "difference", "multiple", "negative", "copy", "shift", "shares", "passes", "keeps"}
# Those whose gradients are views of what they are given.
VIEWS = {"alias", "transpose", "view"}


class Pass(NamedTuple):
    """One run of the engine, from one root or two."""

    accumulate: bool  # backward, not grad
    roots: tuple[int, ...]
    inputs: tuple[int, ...]  # none: everything
    create_graph: bool
    batch: int  # of the gradients that are given, the first element
    write: str  # what the user does then to the .grad of the leaves, or to what was captured


class Program(NamedTuple):
    """A graph, hooks, and passes; numbers are taken modulo how many there are to choose from."""

    nodes: tuple[tuple[str, int, int], ...]
    hooks: tuple[tuple[str, int], ...]
    passes: tuple[Pass, ...]


_number = st.integers(0, 11)
_all = tuple(range(12))  # every tensor, some of them twice
_one = st.sampled_from(["shift"] * 4 + ["multiple"] * 4 + ["alias", "transpose"])
_two = st.sampled_from(["sum", "passes", "shares", "keeps", "written"])


def _diamond(a: str, b: str, c: str, d: str, e: str) -> tuple[tuple[str, int, int], ...]:
    """Return a graph in which a leaf's gradient comes in two parts, one over a longer way."""
    return ((a, 0, 0), (b, 0, 0), (c, 3, 0), (d, 4, 2), (e, 5, 0))


_diamonds = st.builds(_diamond, _one, _one, _one, _two, _one)
_chains = st.lists(st.tuples(_one, st.just(1), st.just(0)), min_size=1, max_size=3).map(
    lambda steps: tuple([(name, 1 if i == 0 else i + 1, 0) for i, (name, _, _) in enumerate(steps)])
)
_graphs = st.lists(st.tuples(st.sampled_from(NAMES), _number, _number), min_size=1, max_size=6)
programs = st.builds(
    Program,
    st.one_of(_diamonds, _graphs.map(tuple), _chains, _diamonds),
    st.one_of(
        st.sampled_from(HOOKS).map(lambda kind: tuple([(kind, at) for at in _all])),
        st.lists(st.tuples(st.sampled_from(HOOKS), _number), max_size=4).map(tuple),
    ),
    st.lists(
        st.builds(
            Pass,
            st.booleans(),
            st.lists(_number, min_size=1, max_size=2).map(tuple),
            st.one_of(st.just(()), st.just(_all), st.lists(_number, max_size=4).map(tuple)),
            st.sampled_from([False, False, False, True]),
            st.integers(1, 9),
            st.sampled_from(["", "", "", "fill", "forget", "assign", "capture"]),
        ),
        min_size=2,
        max_size=3,
    ).map(tuple),
)


def diamonds(hook: str) -> Iterable[Program]:
    """Return a program for each small graph of two ways, all tensors of which have a hook."""
    hooks = tuple([(hook, at) for at in range(6)]) if hook else ()
    backward = Pass(True, (0,), (), False, 1, "")
    towards, grad = backward._replace(inputs=_all), Pass(False, (0,), _all, False, 2, "capture")
    recorded = backward._replace(create_graph=True)
    for ones in itertools.product(("shift", "multiple"), repeat=4):
        for two in ("sum", "passes", "shares", "keeps", "written"):
            nodes = _diamond(*ones[:3], two, ones[3])
            for passes in (
                (backward, backward),
                (grad, towards),
                (towards, grad._replace(write="")),
                (recorded, recorded),
            ):
                yield Program(nodes, hooks, passes)


class Watch:
    """What a user holds: pairs of a tensor and the cell that says what should be in it."""

    def __init__(self) -> None:
        self.held: list[tuple[str, Any, Array]] = []

    def hold(self, label: str, tensors: Any, cells: Iterable[Array]) -> None:
        for tensor, cell in zip(tensors, cells, strict=True):
            self.held.append((label, tensor, cell))

    def look(self) -> None:
        for label, tensor, cell in self.held:
            assert tensor.detach().tolist() == cell.tolist(), label


def run(lib: Any, program: Program, apart: bool = True) -> None:
    """Run a program, and compare all that a user holds with the model after every pass.

    `apart` is whether a gradient that comes through a view shares no memory with what it is a view
    of, and a captured one none with what was given.
    """
    table = operations(lib)
    kept: dict[tuple[str, int], list[Any]] = {}
    tensors = [lib.ones(2, 2, dtype=lib.float64) for _ in range(LEAVES)]
    tensors[-1] = tensors[-1].t()  # gradients get the layout of their leaf
    tensors = [tensor.requires_grad_() for tensor in tensors]
    parents: list[tuple[int, ...]] = [()] * LEAVES
    rules: list[Any] = [None] * LEAVES
    for number, (name, *picks) in enumerate(program.nodes, LEAVES):
        if not apart and name in VIEWS:
            name = "copy"
        operation = table[name]
        chosen = tuple([pick % number for pick in picks[: operation.count]])
        own = kept.setdefault(("keeps", number), [])
        tensors.append(operation.forward(lib, own, *[tensors[i] for i in chosen]))
        parents.append(chosen)
        rules.append((name, operation.backward))
    factors = [1] * len(tensors)
    retained: set[int] = set()
    asked = {i for each in program.passes for i in _asked(each, parents)[1]}
    for kind, pick in sorted(program.hooks, key=lambda hook: hook[0] != "double"):  # those first
        at = pick % len(tensors)
        if kind == "double" and (at in asked or factors[at] == 2):
            continue  # what is asked for may be taken before hooks, and one hook is enough
        plain = at >= LEAVES and rules[at][0] in PLAIN
        _hang(kind, at, tensors[at], kept, factors, retained, len(parents[at]) * plain)
    watch, grads = Watch(), [None] * len(tensors)
    for step in program.passes:
        if not apart and step.write == "capture":
            step = step._replace(write="")
        _take(lib, step, tensors, parents, rules, factors, retained, grads, kept, watch)
        watch.look()


def _hang(
    kind: str,
    at: int,
    tensor: Any,
    kept: Any,
    factors: list[int],
    retained: set[int],
    handed_on: int,
) -> None:
    own = kept.setdefault((kind, at), [])
    found = kept.setdefault(("handed on", at), [])
    if kind == "keep":
        tensor.register_hook(lambda g: own.append(g))
    elif kind == "double":
        tensor.register_hook(lambda g: g * 2)
        factors[at] = 2
    elif at < LEAVES:
        if kind == "added":
            tensor.register_post_accumulate_grad_hook(lambda leaf: own.append(leaf.grad))
    elif kind == "before":
        tensor.grad_fn.register_prehook(lambda gs: own.append(gs[tensor.output_nr]))
    elif kind == "after":

        def hook(inputs: Any, outputs: Any) -> None:
            own.append(outputs[tensor.output_nr])
            if handed_on:
                found.append(inputs[:handed_on])

        tensor.grad_fn.register_hook(hook)
    elif kind == "retain":
        tensor.retain_grad()
        retained.add(at)


def _take(
    lib: Any,
    step: Pass,
    tensors: list[Any],
    parents: list[tuple[int, ...]],
    rules: list[Any],
    factors: list[int],
    retained: set[int],
    grads: list[Any],
    kept: dict[tuple[str, int], list[Any]],
    watch: Watch,
) -> None:
    """Do one pass, in the library and in the model, and hold what came of it."""
    count = len(tensors)
    roots, inputs = _asked(step, parents)
    given_cells = [np.arange(4.0).reshape(2, 2) + step.batch + i for i in range(len(roots))]
    given = [lib.tensor(cell.tolist(), dtype=lib.float64) for cell in given_cells]
    watch.hold("given", given, given_cells)
    arguments: dict[str, Any] = {"retain_graph": True, "create_graph": step.create_graph}
    sources = [tensors[i] for i in roots]
    results: list[Any] = []
    if not step.accumulate:
        wanted = [tensors[i] for i in inputs]
        results = lib.autograd.grad(sources, wanted, given, **arguments)
    elif inputs:
        wanted = [tensors[i] for i in inputs]
        lib.autograd.backward(sources, given, inputs=wanted, **arguments)
        retained |= {i for i in inputs if i >= LEAVES}
    else:
        lib.autograd.backward(sources, given, **arguments)

    # The model: from the last tensor to the first, whether anything is asked for there.
    taken = set(inputs) if inputs else set(range(count))
    active = [i in taken or bool(taken & set(_below(i, parents))) for i in range(count)]
    runs = [any(active[j] for j in parents[i]) for i in range(count)]
    if step.accumulate:  # then the nodes of what is asked for run, too
        runs = [runs[i] or (i in inputs and i >= LEAVES) for i in range(count)]
    totals: list[Array | None] = [None] * count
    for root, cell in zip(roots, given_cells, strict=True):
        totals[root] = cell.copy()
    for i in range(count - 1, -1, -1):
        total = totals[i]
        if total is None or not active[i]:
            continue
        total = totals[i] = total * factors[i]
        for kind, happens in (("keep", True), ("before", runs[i]), ("after", runs[i])):
            if happens and kept.get((kind, i)):
                _hold_last(watch, kind, kept[(kind, i)], total)
        if i >= LEAVES and i in retained:
            present = grads[i]
            grads[i] = total.copy() if present is None else present + total
            watch.hold("retained", [tensors[i].grad], [grads[i]])
        if i < LEAVES and step.accumulate:
            present = grads[i]
            if present is None or step.create_graph:
                grads[i] = total.copy() if present is None else present + total
            else:
                present += total
            watch.hold("grad", [tensors[i].grad], [grads[i]])
            if kept.get(("added", i)):
                _hold_last(watch, "added", kept[("added", i)], grads[i])
        if not runs[i]:
            continue
        name, rule = rules[i]
        parts = rule(total)
        if name == "keeps":
            _hold_last(watch, "keeps", kept[("keeps", i)], parts[0])
        for inputs_seen in kept.get(("handed on", i), []):
            for parent, part, seen in zip(parents[i], parts, inputs_seen, strict=True):
                if active[parent]:
                    watch.hold("handed on", [seen], [part.copy()])
        kept.get(("handed on", i), []).clear()
        for parent, part in zip(parents[i], parts, strict=True):
            before = totals[parent]
            totals[parent] = part.copy() if before is None else before + part
    captured = [totals[i].copy() for i in inputs] if results else []
    watch.hold("captured", results, captured)
    assert all(not own for own in kept.values()), "a hook ran that should not"
    if step.write == "capture" and not step.create_graph:
        for i, result, cell in zip(inputs, results, captured, strict=False):
            if not any(at == i and kind in ("keep", "before", "after") for kind, at in kept):
                result.fill_(8.0)  # what hooks kept of the same tensor may be the same
                cell[...] = 8.0
    _write(lib, step.write, tensors, grads, watch)


def _asked(step: Pass, parents: list[tuple[int, ...]]) -> tuple[list[int], list[int]]:
    """Return which tensors a pass starts at, and which it is for: none means all."""
    count = len(parents)
    roots = list(dict.fromkeys([count - 1 - pick % count for pick in step.roots]))
    if step.accumulate and not step.inputs:
        return roots, []
    below = _below(roots[0], parents)
    return roots[:1], list(dict.fromkeys([below[i % len(below)] for i in step.inputs or (0,)]))


def _hold_last(watch: Watch, kind: str, own: list[Any], cell: Array) -> None:
    """Hold what hooks kept in this pass: each as many times as it is hung there."""
    watch.hold(kind, own, [cell] * len(own))
    own.clear()


def _below(root: int, parents: list[tuple[int, ...]]) -> list[int]:
    """Return a tensor and what it was computed from, in the order of numbers."""
    found, stack = {root}, [root]
    while stack:
        for parent in parents[stack.pop()]:
            if parent not in found:
                found.add(parent)
                stack.append(parent)
    return sorted(found)


def _write(lib: Any, how: str, tensors: list[Any], grads: list[Any], watch: Watch) -> None:
    """Do to the gradients of the leaves what users do."""
    for leaf in range(LEAVES):
        tensor, cell = tensors[leaf], grads[leaf]
        if how == "fill" and cell is not None:
            with lib.no_grad():
                tensor.grad.fill_(7.0)
            cell[...] = 7.0
        elif how == "forget":
            tensor.grad = grads[leaf] = None
        elif how == "assign":
            tensor.grad = lib.full((2, 2), 5.0, dtype=lib.float64)
            grads[leaf] = np.full((2, 2), 5.0)
            watch.hold("assigned", [tensor.grad], [grads[leaf]])
