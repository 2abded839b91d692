"""Loops of few turns: what the pass makes of one computes what it did."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from numgrad.codegen.expression import scalar
from numgrad.codegen.loop_distribution import distributed
from numgrad.codegen.loop_passes import calls, walk
from numgrad.codegen.loops import (
    ZERO,
    Assign,
    For,
    Function,
    Load,
    Name,
    Number,
    Statement,
    Store,
    call,
    combine,
)
from numgrad.codegen.printer import print_module
from tests.cases import examples

SCALAR = "numgrad.math.scalar"


@st.composite
def bodies(draw: Any, index: str) -> list[Statement]:
    """Draw what is computed once in each turn, some of it dear, and what is stored."""
    lines: list[Statement] = [Assign("v0", Load(Name("x"), Name(index)))]
    for k in range(1, draw(st.integers(2, 9))):
        known = st.sampled_from([f"v{j}" for j in range(max(0, k - 4), k)])
        if draw(st.booleans()):
            value: Any = call(scalar(draw(st.sampled_from(["exp", "tanh"]))), draw(known))
        else:
            value = combine(draw(st.sampled_from("+-*")), draw(known), draw(known))
        lines.append(Assign(f"v{k}", value))
        if draw(st.integers(0, 4)) == 0:
            lines.append(Store(Name("out"), Name(index), Name(f"v{k}")))
    return [*lines, Store(Name("last"), Name(index), Name(lines_target(lines)))]


def lines_target(lines: list[Statement]) -> str:
    return next(line.target for line in reversed(lines) if isinstance(line, Assign))


def ran(lines: list[Statement], turns: int) -> tuple[list[float], list[float]]:
    """Return what statements stored, run in Python."""
    namespace: dict[str, Any] = {}
    exec(print_module([Function("f", ["x", "out", "last"], lines)]), namespace)
    namespace.update(
        scalar=SimpleNamespace(exp=lambda x: math.exp(-abs(x)), tanh=math.tanh),
        np=SimpleNamespace(float64=float),
        element=lambda array, place: array[place],
        store=lambda array, place, value: array.__setitem__(place, value),
        stack=lambda kind, count: [math.nan] * count,
        unseen=lambda count: count,
    )
    out, last = [math.nan] * turns, [math.nan] * turns
    namespace["f"].py_func(np.linspace(-2, 2, turns).tolist(), out, last)
    return out, last


@settings(max_examples=examples(60), deadline=None)
@given(bodies("i"), st.integers(1, 9))
def test_dear_functions_get_loops_of_their_own(body: list[Statement], turns: int) -> None:
    loop = For("i", ZERO, Number(turns), body)
    lines = distributed(loop, turns, lambda name: np.dtype("float64"))
    assert np.array_equal(ran(lines, turns), ran([loop], turns), equal_nan=True)
    for each in lines:
        if isinstance(each, For) and calls(each.body, SCALAR):
            dear = [line for line in each.body if calls(line, SCALAR)]
            assert len(dear) == 1
            assert not turns > 1 or print_module([Function("f", [], [each])]).count("unseen(")
    dear = [node for node in walk(body) if isinstance(node, Assign) and calls(node, SCALAR)]
    assert sum(isinstance(line, For) and calls(line, SCALAR) for line in lines) == len(dear)


@settings(max_examples=examples(30), deadline=None)
@given(bodies("j"), st.integers(1, 9))
def test_other_indices_are_found_in_each_loop(body: list[Statement], turns: int) -> None:
    head = [Assign("j", combine("-", turns - 1, "i"))]
    lines = distributed(
        For("i", ZERO, Number(turns), body), turns, lambda name: np.dtype("float64"), head
    )
    expected = ran([For("i", ZERO, Number(turns), [*head, *body])], turns)
    assert np.array_equal(ran(lines, turns), expected, equal_nan=True)


@settings(max_examples=examples(30), deadline=None)
@given(bodies("i"), st.integers(1, 9))
def test_what_cannot_be_handed_on_stays_in_one_loop(body: list[Statement], turns: int) -> None:
    loop = For("i", ZERO, Number(turns), body)
    lines = distributed(loop, turns, lambda name: None)
    assert "stack(" not in print_module([Function("f", [], lines)])
    assert np.array_equal(ran(lines, turns), ran([loop], turns), equal_nan=True)
