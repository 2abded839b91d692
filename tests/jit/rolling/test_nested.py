"""Loops within loops of a function become such loops, and so do both halves of their gradients."""

from __future__ import annotations

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
from numgrad.jit.rolling.repetition import runs
from numgrad.jit.rolling.rolling import rolled
from tests.jit.interpreter import by_numpy, fold_by_numpy, interpret

Program = Callable[[Any, Any, Any], Any]


def _sampler(turns: int, parts: int) -> Program:
    def energy(y: Any, w: Any) -> Any:
        return (y * y * w[0]).sum() * 0.5 + (y[1:] * y[:-1]).sin().sum()

    slope = ng.func.grad(energy)

    def function(y: Any, w: Any, xs: Any) -> Any:
        total = y.sum() * 0
        for k in range(turns):
            p = xs[k] - 0.05 * slope(y, w)
            for _ in range(parts):
                y = y + 0.1 * p
                p = p - 0.1 * slope(y, w)
            total = total + (y * y).sum()
        return total

    return function


def _runge_kutta(turns: int, parts: int) -> Program:
    def function(y: Any, w: Any, xs: Any) -> Any:
        def rate(y: Any) -> Any:
            return ng.tanh(w @ y) - y

        total = y.sum() * 0
        for k in range(turns):
            for _ in range(parts):
                first = rate(y)
                second = rate(y + 0.05 * first)
                y = y + 0.05 * (first + second)
            total = total + ((y - xs[k]) ** 2).sum()
        return total

    return function


def _filter(turns: int, parts: int) -> Program:
    def function(y: Any, w: Any, xs: Any) -> Any:
        spread, total = w @ w.T, y.sum() * 0
        for k in range(turns):
            for _ in range(parts):
                y = y + 0.1 * (w @ y)
                spread = spread + 0.1 * (w @ spread + spread @ w.T)
            wrong, variance = xs[k][0] - y[0], spread[0, 0] + 1.0
            gain = spread[:, 0] / variance
            y, spread = y + gain * wrong, spread - ng.outer(gain, spread[0])
            total = total + wrong * wrong / variance + variance.log()
        return total

    return function


def _stencil(turns: int, parts: int) -> Program:
    def function(y: Any, w: Any, xs: Any) -> Any:
        total = y.sum() * 0
        for k in range(turns):
            u = ng.cat((y, y, y))
            for _ in range(parts):
                inner = u[1:-1] + w[0, 0] * (u[2:] - 2 * u[1:-1] + u[:-2])
                u = ng.cat((u[:1], inner, u[-1:]))
            y, total = u[:4] + xs[k], total + (u * u).sum()
        return total

    return function


def _arguments(turns: int) -> list[Any]:
    rng = np.random.default_rng(5)
    return [ng.tensor(rng.uniform(-0.5, 0.5, shape)) for shape in ((4,), (4, 4), (turns, 4))]


def _traced(program: Callable[[int, int], Program], turns: int, parts: int) -> Graph:
    function = ng.func.value_and_grad(program(turns, parts), argnums=(0, 1))
    leaves, spec = flatten((tuple(_arguments(turns)), {}))
    return trace_function(function, spec, leaves).graph


def _size(graph: Graph) -> int:
    """Return how many values a graph has, bodies of loops included."""
    primitives = [value.attributes.get("primitive") for value in graph.values()]
    bodies = [each.graph for each in primitives if isinstance(each, Loop)]
    return len(primitives) + sum(map(_size, bodies))


@pytest.mark.sampled(0.3)
@pytest.mark.parametrize(
    ("program", "parts"), [(_sampler, 30), (_runge_kutta, 30), (_filter, 30), (_stencil, 42)]
)
def test_both_halves_of_a_gradient_are_loops_within_loops(
    program: Callable[[int, int], Program], parts: int
) -> None:
    graph = _traced(program, 6, parts)
    found = rolled(graph)
    validate(found)
    arrays = [each.numpy() for each in _arguments(6)]
    expected = interpret(graph, arrays, by_numpy, fold_by_numpy)
    got = interpret(prepared(graph), arrays, by_numpy, fold_by_numpy)
    for one, other in zip(expected, got, strict=True):
        np.testing.assert_array_equal(one, other)
    calls = [value.attributes.get("primitive") for value in found.values()]
    outer = [each for each in calls if isinstance(each, Loop)]
    assert [loop.length for loop in outer] == [6, 6]
    for loop in outer:
        inner = [v.attributes["primitive"] for v in loop.graph.values() if v.operation == "call"]
        assert any(isinstance(each, Loop) and (each.length or 0) >= 28 for each in inner)
    longer = _traced(program, 7, parts + 3)
    assert abs(_size(prepared(longer)) - _size(prepared(graph))) < 10


def test_what_repeats_itself_within_turns_comes_behind_these() -> None:
    turn = [0, *[1, 2, 3] * 80, 4]
    tokens = turn * 8
    last_used = [*range(1, len(tokens) + 1)]
    found = runs(tokens, last_used, [1] * len(tokens))
    assert found[0].period == len(turn)
    assert sum(run.period == 3 for run in found) == 8
