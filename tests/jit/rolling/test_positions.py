"""Loops that read and write at moving places of what they hand on become loops of the same bits."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.jit.ir.graph import Graph
from numgrad.jit.ir.validate import validate
from numgrad.jit.lowering.loops import Loop
from numgrad.jit.rolling.prepare import prepared
from numgrad.jit.rolling.repetition import OPERATIONS
from numgrad.jit.rolling.rolling import rolled
from numgrad.jit.schedule.overwriting import overwriting
from tests.cases import examples
from tests.jit.rolling.test_rolling import _loops, _operations, _same, _traced

Program = Callable[[Any, int], Any]  # of four rows of numbers, and how many there are of each


def _zeros(*shape: int) -> Any:
    return ng.zeros(*shape, dtype=ng.float64)


def tridiagonal(p: Any, n: int) -> Any:
    """Solve a tridiagonal system: forward, and back."""
    upper, right, x = _zeros(n), _zeros(n), _zeros(n)
    upper[0] = p[2, 0] / (p[1, 0] + 4.0)
    right[0] = p[3, 0] / (p[1, 0] + 4.0)
    for i in range(1, n):
        pivot = p[1, i] + 4.0 - p[0, i] * upper[i - 1].clone()
        upper[i] = p[2, i] / pivot
        right[i] = (p[3, i] - p[0, i] * right[i - 1].clone()) / pivot
    x[n - 1] = right[n - 1]
    for i in range(n - 2, -1, -1):
        x[i] = right[i] - upper[i] * x[i + 1].clone()
    return (x * x).sum()


def fibonacci(p: Any, n: int) -> Any:
    y = _zeros(n)
    y[0], y[1] = p[0, 0], p[0, 1]
    for k in range(1, n - 1):
        y[k + 1] = p[1, 0] * y[k].clone() + p[1, 1] * y[k - 1].clone()
    return (y * p[2]).sum()


def edit_distance(p: Any, n: int) -> Any:
    """Fill a table row by row, each element by the least of three before it."""
    rows = 2
    table = _zeros(rows + 1, n + 1)
    for i in range(rows):
        table[i + 1, 0] = table[i, 0] + p[1, i]
    for j in range(n):
        table[0, j + 1] = table[0, j] + p[2, j]
    for i in range(rows):
        for j in range(n):
            change = table[i, j] + (p[0, i] - p[3, j]) ** 2
            drop = ng.minimum(table[i, j + 1] + p[1, i], table[i + 1, j] + p[2, j])
            table[i + 1, j + 1] = ng.minimum(change, drop)
    return table[rows, n]


def cholesky(p: Any, n: int) -> Any:
    """Factor a matrix column by column."""
    matrix = p.T @ p + 4.0 * ng.eye(n, dtype=ng.float64)
    factor = _zeros(n, n)
    behind = ng.arange(n)
    for j in range(n):
        before = factor.clone()
        column = matrix[:, j] - before @ before[j]
        factor[:, j] = ng.where(behind >= j, column / ng.sqrt(column[j]), 0.0)
    return factor.diagonal().log().sum() + (factor * p[0]).sum()


def ghost_cells(p: Any, n: int) -> Any:
    u = p[0, :6]
    for _ in range(n):
        wide = _zeros(8)
        wide[1:-1] = u
        wide[0], wide[-1] = u[-1], u[0]
        u = u + 0.1 * (wide[2:] - 2.0 * wide[1:-1] + wide[:-2]) * p[1, :6]
    return (u * u).sum()


def trapezoid(p: Any, n: int) -> Any:
    f, out = ng.exp(-p[0] * p[1]), _zeros(n)
    for k in range(1, n):
        out[k] = out[k - 1] + 0.05 * (f[k] + f[k - 1])
    return (out * p[2]).sum()


def autoregression(p: Any, n: int) -> Any:
    y = p[0].clone()
    for k in range(2, n):
        y[k] = p[0, k] + 0.4 * p[1, 0] * y[k - 1].clone() - 0.3 * p[1, 1] * y[k - 2].clone()
    return (y * y).sum()


def horner(p: Any, n: int) -> Any:
    x = p[0, :3]
    found = x * 0.0
    for k in range(n):
        found = found * x * 0.5 + p[1, n - 1 - k]
    return found.sum()


def walk(p: Any, n: int) -> Any:
    x, hits = _zeros(n + 1), _zeros(n)
    x[0] = p[0, 0]
    for k in range(n):
        step = ng.where(p[1, k] > 0.5, p[2, 0], -p[2, 1])
        x[k + 1] = x[k] + step * p[3, k]
        hits[k] = ng.tanh(x[k + 1].clone() * x[k].clone())
    return hits.sum() + x[n]


def scattered(p: Any, n: int) -> Any:
    """Write several windows in a turn, two of them where other turns write, too."""
    out, u = _zeros(n + 2), p[0]
    for k in range(1, n - 1):
        out[k - 1] = out[k - 1] + u[k]
        out[k + 1] += u[k - 1] * u[k + 1]
    return (out * out).sum()


def red_black(p: Any, n: int) -> Any:
    u = p[0].clone()
    for first in (1, 2):
        for k in range(first, n - 1, 2):
            u[k] = 0.5 * (u[k - 1] + u[k + 1]) - p[1, k] * (u[k - 1] - u[k + 1])
    return (u * u).sum()


def ring(p: Any, n: int) -> Any:
    y = p[0, :5].clone()
    for k in range(n):
        y[k % 5] = y[(k + 1) % 5] * 0.5 + ng.sin(y[(k + 3) % 5].clone()) * p[1, k]
    return y.sum()


PROGRAMS: list[Program] = [
    tridiagonal,
    fibonacci,
    edit_distance,
    cholesky,
    ghost_cells,
    trapezoid,
    autoregression,
    horner,
    walk,
    scattered,
    red_black,
    ring,
]
LENGTHS = {cholesky: (30, 34), edit_distance: (105, 112), red_black: (150, 170)}  # others: (80, 90)


def _of_length(program: Program, n: int, *, gradient: bool) -> tuple[Callable[..., Any], Any]:
    def function(p: Any) -> Any:
        return program(p, n)

    p = ng.tensor(np.random.default_rng(n).uniform(0.1, 0.9, (4, n)))
    return (ng.func.value_and_grad(function) if gradient else function), p


@pytest.mark.sampled(0.3)
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_that_fill_tables(program: Program) -> None:
    sizes = []
    for n in LENGTHS.get(program, (80, 90)):
        function, p = _of_length(program, n, gradient=True)
        graph = _traced(function, [p])
        found = prepared(graph)
        validate(found)
        _same(graph, found, [p.numpy()])
        sizes.append(_size(found))
    assert sizes[0] == sizes[1] or max(sizes) < OPERATIONS


def _size(graph: Graph) -> int:
    return _operations(graph) + sum(_size(loop.graph) for loop in _loops(graph))


@pytest.mark.parametrize("seed", range(examples(60)))
def test_drawn_recurrences(seed: int) -> None:
    function = ng.func.value_and_grad(_recurrence(seed)) if seed % 2 else _recurrence(seed)
    p = ng.tensor(np.random.default_rng(seed).uniform(0.1, 0.9, (3, 80)))
    graph = _traced(function, [p])
    found = rolled(graph)
    validate(found)
    _same(graph, found, [p.numpy()])
    assert _loops(found)


def _recurrence(seed: int) -> Callable[[Any], Any]:
    drawn = random.Random(seed)
    lines = [
        (
            drawn.randrange(3),
            drawn.randint(-2, 2),
            drawn.choice(["set", "add", "slice"]),
            [(drawn.randrange(3), drawn.randint(-2, 2)) for _ in range(drawn.randint(1, 2))],
        )
        for _ in range(drawn.randint(1, 3))
    ]
    turns, step = drawn.randint(55, 65), drawn.choice([1, 1, -1])

    def function(p: Any) -> Any:
        arrays = [p[0].clone(), _zeros(80), p[1]]  # the last one is read only
        order = range(5, 5 + turns)
        for k in order if step > 0 else reversed(order):
            for target, place, how, reads in lines:
                found = p[2, k]
                for which, shift in reads:
                    found = found + 0.3 * ng.sin(arrays[which][k + shift].clone())
                into = arrays[target % 2]
                if how == "set":
                    into[k + place] = found
                elif how == "add":
                    into[k + place] += 0.5 * found
                else:
                    into[k + place : k + place + 2] = found * p[1, :2]
        return (arrays[0] * arrays[1]).sum() + arrays[0].sum()

    return function


@pytest.mark.parametrize("program", [fibonacci, tridiagonal, scattered, edit_distance])
def test_no_turn_copies_what_it_writes_to(program: Program) -> None:
    function, p = _of_length(program, 70, gradient=True)
    loops = _loops(prepared(_traced(function, [p])))
    scatters = 0
    for loop in loops:
        assert isinstance(loop, Loop)
        own = [value for value in loop.graph.values() if value.operation == "scatter"]
        assert set(overwriting(loop.graph, loop.own)) == set(own)
        scatters += len(own)
    assert scatters


@pytest.mark.parametrize("gradient", [False, True], ids=["value", "gradient"])
def test_compiled(gradient: bool) -> None:
    """Reads that must come before a write do so, in machine code too."""
    function, p = _of_length(_shifted, 60, gradient=gradient)
    expected, found = function(p), ng.jit(function)(p)
    for one, other in zip(
        *(each if gradient else (each,) for each in (expected, found)), strict=True
    ):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def _shifted(p: Any, n: int) -> Any:
    y = p[0].clone()
    for k in range(2, n - 2):
        before, here = y[k - 1].clone(), y[k].clone()
        y[k - 1] = here * p[1, k]
        y[k + 1] = before + 0.5 * y[k + 2]
        y[k] += before * y[k - 1].clone()
    return (y * y).sum()


def test_a_scan_writes_to_its_carry_in_place() -> None:
    def function(table: Any, places: Any, p: Any) -> Any:
        def step(table: Any, k: Any) -> Any:
            old = table[k]
            return table.index_add(0, k.reshape(1), (old * p + table[k - 1]).reshape(1)), old

        return ng.func.scan(step, table, places)

    table = ng.tensor(np.random.default_rng(0).uniform(0.1, 0.9, 100))
    given = table, ng.arange(1, 90), ng.tensor(0.5)
    (loop,) = _loops(prepared(_traced(function, list(given))))
    assert len(overwriting(loop.graph, loop.own)) == 1
    expected, found = function(*given), ng.jit(function)(*given)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
