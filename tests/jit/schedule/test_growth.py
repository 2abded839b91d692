"""What is unrolled is computed once: the work of a chain grows with its length, not faster."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.base.pytree import flatten
from numgrad.jit.front.trace_function import trace_function
from numgrad.jit.ir.graph import Graph
from numgrad.jit.passes.simplify import simplify
from numgrad.jit.schedule.nests import Nest
from numgrad.jit.schedule.schedule import Schedule, schedule
from tests.cases import examples
from tests.jit.run_source import run_source

SIZE = 14


def _graph(function: Callable[..., Any], *arguments: Any) -> Graph:
    """Return the graph of a function as it is unrolled."""
    leaves, spec = flatten((arguments, {}))
    return simplify(trace_function(function, spec, leaves).graph)


def _elements(plan: Schedule) -> int:
    """Return how many elements a schedule computes or reads for one of each of its outputs."""
    return sum(
        sum(1 for _ in plan.walk(plan.roots(nest), position))
        for position, nest in enumerate(plan.steps)
        if isinstance(nest, Nest)
    )


def _shrinking(turns: int) -> Any:
    def function(y: Any) -> Any:
        for _ in range(turns):
            y = y[:-1] * 0.5 + y[1:] * 0.6
        return y

    return function, ng.ones(turns + 8)


def _window_of_three(turns: int) -> Any:
    def function(y: Any) -> Any:
        for _ in range(turns):
            y = (y[:-2] + y[2:] * 0.25 - y[1:-1]).sin()
        return y

    return function, ng.ones(2 * turns + 8)


def _stencil(turns: int) -> Any:
    def function(u: Any) -> Any:
        for _ in range(turns):
            middle = u[1:-1, 1:-1]
            around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
            u = middle + 0.1 * (around - 4 * middle)
        return u

    return function, ng.ones(2 * turns + 4, 2 * turns + 4)


def _overlapping(turns: int) -> Any:
    def function(y: Any) -> Any:
        out = ng.zeros(turns + 3)
        for k in range(turns):
            out[k : k + 3] += y * (k + 1)
        return out

    return function, ng.ones(3)


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("chain", [_shrinking, _window_of_three, _stencil, _overlapping])
def test_the_work_of_a_chain_grows_with_its_length(chain: Any) -> None:
    found = [_elements(schedule(_graph(*chain(turns)))) for turns in (6, 18)]
    assert found[1] <= 3.6 * found[0]


def test_a_part_that_reads_only_where_it_is_written_is_written_in_place() -> None:
    function, argument = _overlapping(12)
    plan = schedule(_graph(function, argument))
    updates = [value for value in plan.graph.values() if value.operation == "update"]
    assert len(updates) == 12
    assert [value in plan.in_place for value in updates] == [False, *[True] * 11]


def _drawn(seed: int) -> Callable[[Any, Any], Any]:
    """Return a function of writes and slices that overlap, of two vectors."""
    drawn = random.Random(seed)
    lines: list[tuple[int, int, int, int]] = []
    for _ in range(drawn.randint(4, 12)):
        length = drawn.randint(1, 5)
        places = [drawn.randint(0, SIZE - length) for _ in range(2)]
        lines.append((drawn.randrange(9), length, *places))

    def function(x: Any, y: Any) -> Any:
        out, seen = x * 1.0, []
        for kind, n, a, b in lines:
            if kind == 0:
                out[a : a + n] += y[:n] * 0.5
            elif kind == 1:
                out[a : a + n] *= out[a : a + n] - y[n - 1]
            elif kind == 2:
                out[a : a + n] = out[b : b + n] * 0.5  # from elsewhere, which may overlap
            elif kind == 3:
                out[a : a + n] += out[a : a + n].flip(0)
            elif kind == 4:
                part = out[a : a + n] + 0.25
                out[a : a + n] = part
                seen.append(part)  # it is wanted afterwards
            elif kind == 5:
                out[a : a + n] += y[:n]
                seen.append(out[b : b + n] * 1.0)
            elif kind == 6:
                y = y[1:] * 0.5 + y[:-1] * 0.6 if len(y) > 8 else ng.cat((y, y[:3] * 0.3))
            elif kind == 7:
                y = ng.cat((y[1:], (y[:1] + y[1:2]) * 0.5))
            else:
                out[a : a + n] -= out[a : a + n].sum() * 0.1
        return [out * 1.0, y * 1.0, *seen]

    return function


@pytest.mark.parametrize("seed", range(examples(80)))
def test_drawn_writes_and_slices_give_the_bits_of_eager_mode(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = (ng.from_numpy(rng.standard_normal(n)) for n in (SIZE, 12))
    function = _drawn(seed)
    found = run_source(_graph(function, x, y), [x.numpy(), y.numpy()])
    for one, other in zip(found, function(x, y), strict=True):
        np.testing.assert_array_equal(one, other.numpy())
