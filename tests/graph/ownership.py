"""Runs a graph and passes over it in two forms: by a library, and as a model in NumPy.

The model knows no memory that is shared. What a user may hold on to stands in a cell, and what is
said to write to a cell is all that does: a pass without ``create_graph`` adds to the ``.grad`` of a
leaf in place; every other gradient, whoever got it and whoever gave it, stays as it was.

A graph is made again and again, each time with other numbers, hooks and passes, because calls and
rules that repeat are remembered: what was remembered of one run must not be what another one got.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

import numgrad as ng
from numgrad.ops.core.catalogue import replaced
from tests.graph.ownership_programs import (
    LEAVES,
    PLAIN,
    VIEWS,
    Array,
    Pass,
    Program,
    Round,
    operations,
)

__all__ = ["run"]


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
    for forget in replaced if lib is ng else ():
        forget()  # else most calls are remembered from an earlier program
    watch = Watch()
    for number, each in enumerate(program.rounds):
        _run_round(lib, program.nodes, each, number, apart, watch)


def _run_round(
    lib: Any,
    nodes: tuple[tuple[str, int, int], ...],
    each: Round,
    number: int,
    apart: bool,
    watch: Watch,
) -> None:
    """Make the graph, hang hooks, and run its passes."""
    kept: dict[tuple[str, int], list[Any]] = {}
    tensors, parents, rules = _record(lib, nodes, float(number), apart, kept)
    factors = [1] * len(tensors)
    retained: set[int] = set()
    asked = {i for step in each.passes for i in _asked(step, parents)[1]}
    for kind, pick in sorted(each.hooks, key=lambda hook: hook[0] != "double"):  # those first
        at = pick % len(tensors)
        if kind == "double" and (at in asked or factors[at] == 2):
            continue  # what is asked for may be taken before hooks, and one hook is enough
        plain = at >= LEAVES and rules[at][0] in PLAIN
        _hang(kind, at, tensors[at], kept, factors, retained, len(parents[at]) * plain)
    grads: list[Any] = [None] * len(tensors)
    for step in each.passes:
        if not apart and step.write == "capture":
            step = step._replace(write="")
        step = step._replace(batch=step.batch + 10 * number)
        if each.inference:
            step = step._replace(create_graph=False)
        with lib.inference_mode(each.inference):
            _take(lib, step, tensors, parents, rules, factors, retained, grads, kept, watch)
        watch.look()


def _record(
    lib: Any,
    nodes: tuple[tuple[str, int, int], ...],
    start: float,
    apart: bool,
    kept: dict[tuple[str, int], list[Any]],
) -> tuple[list[Any], list[tuple[int, ...]], list[Any]]:
    """Return the tensors of a graph, which tensors each was computed of, and by what."""
    table = operations(lib)
    tensors = [lib.full((2, 2), start + i, dtype=lib.float64) for i in range(LEAVES)]
    tensors[-1] = tensors[-1].t()  # gradients get the layout of their leaf
    tensors = [tensor.requires_grad_() for tensor in tensors]
    parents: list[tuple[int, ...]] = [()] * LEAVES
    rules: list[Any] = [None] * LEAVES
    for number, (name, *picks) in enumerate(nodes, LEAVES):
        if not apart and name in VIEWS:
            name = "copy"
        operation = table[name]
        chosen = tuple([pick % number for pick in picks[: operation.count]])
        own = kept.setdefault(("keeps", number), [])
        tensors.append(operation.forward(lib, own, *[tensors[i] for i in chosen]))
        parents.append(chosen)
        rules.append((name, operation.backward))
    return tensors, parents, rules


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
