"""After how many turns compiled loops ask for Ctrl-C: as many as take about the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import numgrad as ng
from numgrad.base.tuning import INTERPRETED_WORK, WORK_BETWEEN_SIGNALS
from numgrad.jit.emit.interruptions import asks_within, turns_between
from numgrad.jit.ir.graph import Graph
from numgrad.jit.lowering.loops import Loop


def loops_in(graph: Graph) -> Iterator[Loop]:
    for value in graph.values():
        primitive = value.attributes.get("primitive")
        if isinstance(primitive, Loop):
            yield primitive


def loop_of(body: Callable[[Any], Any], turns: int, size: int) -> Loop:
    """Return the loop of so many turns that `body` is compiled to."""

    def function(x: Any) -> Any:
        return ng.func.fori_loop(0, turns, lambda _, carry: body(carry), x)

    (loop,) = loops_in(ng.jit(function).lower(ng.ones(size, size, dtype=ng.float64)).graph)
    return loop


# What a turn does with a matrix of n x n, and about how many operations that is.
BODIES: dict[str, tuple[Callable[[Any], Any], Callable[[int], float]]] = {
    "a product": (lambda x: x * 1.5, lambda n: n * n),
    "several": (lambda x: x * 1.5 + x.abs() * 0.5, lambda n: 4 * n * n),
    "of matrices": (lambda x: (x @ x) * 0.25, lambda n: 2 * n**3),
    "in a library": (
        lambda x: ng.linalg.matrix_exp(x * 0.1),
        lambda n: n**3 + INTERPRETED_WORK,
    ),
}


@pytest.mark.parametrize("size", [1, 3, 30, 120])
@pytest.mark.parametrize("name", BODIES)
def test_loops_ask_after_about_as_much_work(name: str, size: int) -> None:
    body, work = BODIES[name]
    between = turns_between(loop_of(body, 20, size))
    assert between.bit_count() == 1
    assert between == 1 or between * work(size) <= 4 * WORK_BETWEEN_SIGNALS
    assert between * work(size) * 16 >= WORK_BETWEEN_SIGNALS
    if name == "a product":  # whose work is known to the number
        assert between * work(size) <= WORK_BETWEEN_SIGNALS < 2 * between * work(size)


def test_loops_within_count_with_all_their_turns() -> None:
    def inner(turns: int) -> Callable[[Any], Any]:
        return lambda x: ng.func.fori_loop(0, turns, lambda _, carry: carry * 1.5, x)

    few, many = (turns_between(loop_of(inner(turns), 20, 4)) for turns in (8, 64))
    assert few == 8 * many


def test_short_loops_do_not_ask() -> None:
    between = turns_between(loop_of(BODIES["a product"][0], 20, 3))
    assert not asks_within(loop_of(BODIES["a product"][0], between, 3))
    assert asks_within(loop_of(BODIES["a product"][0], between + 1, 3))
