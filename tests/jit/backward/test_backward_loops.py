"""The backward pass of a Python loop is recorded as a loop, of the bits that its nodes have."""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.base.pytree import flatten
from numgrad.jit.front.trace_function import trace_function
from numgrad.jit.ir.graph import Graph
from numgrad.jit.ir.validate import validate
from numgrad.jit.lowering.loops import Loop
from numgrad.jit.rolling.prepare import prepared
from tests.cases import examples
from tests.jit.interpreter import by_numpy, fold_by_numpy, interpret

MODULE = importlib.import_module("numgrad.jit.backward.loops")
TURNS = 12

# Lines of a body each: what is in `s` is handed on; `row` is another one in each turn.
LINES: list[Callable[[dict[str, Any], Any, Any, int], None]] = [
    lambda s, a, row, k: s.update(y=(s["y"] * a["w"] + row).tanh()),
    lambda s, a, row, k: s.update(y=s["y"] + 0.1 * s["v"], v=s["v"] * 0.9 - s["y"].sin()),
    lambda s, a, row, k: s.update(y=a["m"] @ s["y"]),
    lambda s, a, row, k: s.update(m=s["m"] @ a["m"].T, y=s["m"] @ s["y"] * 0.1),
    lambda s, a, row, k: s.update(y=ng.stack((s["y"][1], s["y"][2] * s["y"][0], s["y"][0]))),
    lambda s, a, row, k: s.update(y=ng.cat((s["y"][1:], s["y"][:1] * a["w"][2]))),
    lambda s, a, row, k: s.update(y=ng.where(s["y"] > 0.1, s["y"] * 0.5, s["v"])),
    lambda s, a, row, k: s.update(t=s["t"] * 0.5 + (s["y"] * row).sum()),
    lambda s, a, row, k: s.update(y=s["y"] / (1 + s["t"] * s["t"]) - s["y"].mean()),
    lambda s, a, row, k: s.update(m=s["m"] - s["y"].unsqueeze(1) * a["w"] * 0.1),
    lambda s, a, row, k: s["seen"].append(s["y"] * 2),
    lambda s, a, row, k: s["seen"].append(s["v"].flip(0)),
    lambda s, a, row, k: s["told"].append((s["y"] - row).sum() ** 2),
    lambda s, a, row, k: s.update(y=s["y"] - (s["m"] * s["v"]).sum(0) * 0.1),
    lambda s, a, row, k: s.update(v=s["y"] + (a["m"].T @ s["v"]) * 0.2),
    lambda s, a, row, k: s.update(v=s["v"] * a["layers"][k], y=s["y"] + s["v"]),
]


def _program(seed: int) -> Callable[..., Any]:
    drawn = random.Random(seed)
    lines = [LINES[drawn.randrange(len(LINES))] for _ in range(drawn.randint(2, 6))]
    lines += [LINES[0], LINES[1]]
    starts = drawn.randrange(3)  # with arguments, with numbers, or with what is computed
    ends = drawn.randrange(4)  # what the result depends on, of what the last turn hands on

    def loss(w: Any, m: Any, xs: Any, y: Any) -> Any:
        given = {"w": w, "m": m, "layers": [w * (0.1 * k) for k in range(TURNS)]}
        start = (y, ng.zeros(3, dtype=ng.float64), y * w)[starts]
        s: dict[str, Any] = {"y": start, "v": start * 0.5, "t": start.sum(), "seen": []}
        s |= {"told": [], "m": (m, ng.eye(3, dtype=ng.float64), m * m)[starts]}
        for k, row in enumerate(xs.unbind(0)):
            for line in lines:
                line(s, given, row, k)
        total = (s["y"].sum(), s["t"] * 1.5, (s["v"] * s["y"]).sum(), s["m"].sum())[ends]
        if s["seen"]:
            total = total + (ng.stack(s["seen"]) * w).sum()
        return sum(s["told"], total)

    return loss


def _arguments() -> list[Any]:
    rng = np.random.default_rng(5)
    shapes = (3,), (3, 3), (TURNS, 3), (3,)
    return [ng.tensor(rng.uniform(-0.7, 0.7, shape)) for shape in shapes]


def _traced(function: Callable[..., Any], arguments: list[Any]) -> Graph:
    leaves, spec = flatten((tuple(arguments), {}))
    return trace_function(function, spec, leaves).graph


def _loops(graph: Graph) -> list[Loop]:
    calls = [value.attributes.get("primitive") for value in graph.values()]
    return [each for each in calls if isinstance(each, Loop)]


def _numbers(graph: Graph, arguments: list[Any]) -> list[bytes]:
    arrays = [each.numpy() for each in arguments]
    with np.errstate(all="ignore"):
        found = interpret(graph, arrays, by_numpy, fold_by_numpy)
    return [np.asarray(each).tobytes() for each in found]


@pytest.mark.parametrize("seed", range(examples(60)))
def test_a_backward_pass_as_a_loop_has_the_bits_of_its_nodes(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = _arguments()
    chosen = random.Random(-seed).choice([0, (1, 2), (0, 1, 2, 3)])
    gradient = ng.func.value_and_grad(_program(seed), argnums=chosen)
    found = _traced(gradient, arguments)
    validate(found)
    monkeypatch.setattr(MODULE, "find_turns", lambda *nodes: [])
    expected = _numbers(_traced(gradient, arguments), arguments)
    assert _numbers(found, arguments) == expected
    assert _numbers(prepared(found), arguments) == expected


def test_its_trace_has_one_turn_of_it_however_many_there_are() -> None:
    def gradient(w: Any, y: Any) -> Any:
        def loss(w: Any) -> Any:
            state = y
            for _ in range(turns):
                state = (state * w + state.sin()).tanh()
            return (state**2).sum()

        return ng.func.grad(loss)(w)

    arguments = _arguments()[:1] + _arguments()[3:]
    sizes = []
    for turns in (60, 120):
        graph = _traced(gradient, arguments)
        assert [loop.length for loop in _loops(graph)] == [turns]
        sizes.append(len(graph.values()))
        rolled = prepared(graph)
        assert [loop.length for loop in _loops(rolled)] == [turns, turns]
    assert sizes[1] - sizes[0] < 60 * 15  # four operations of a turn, and what is stacked of it


def test_hooks_see_every_turn() -> None:
    seen = []

    def loss(w: Any, *, hooked: bool) -> Any:
        state = w
        for k in range(40):
            state = (state * w + state.sin()).tanh()
            if hooked and k == 20:
                state.register_hook(lambda g: seen.append(1) or g * 2)
        return state.sum()

    (w,) = _arguments()[:1]
    graphs = [
        _traced(ng.func.grad(lambda w, hooked=hooked: loss(w, hooked=hooked)), [w])
        for hooked in (True, False)
    ]
    assert seen
    assert _numbers(graphs[0], [w]) != _numbers(graphs[1], [w])


def test_what_is_kept_can_run_again() -> None:
    def twice(w: Any) -> Any:
        w = w.detach().requires_grad_()
        state = w
        for _ in range(40):
            state = (state * w + state.sin()).tanh()
        total = state.sum()
        (first,) = ng.autograd.grad(total, [w], retain_graph=True)
        (second,) = ng.autograd.grad(total, [w])
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            ng.autograd.grad(total, [w])
        return first, second

    (w,) = _arguments()[:1]
    graph = _traced(twice, [w])
    assert len(_loops(graph)) == 2
    first, second = _numbers(graph, [w])
    assert first == second
