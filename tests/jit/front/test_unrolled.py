"""A function that is thousands of operations says so once, and which loop to write."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import numgrad as ng
from numgrad.jit.front import unrolled


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have few operations be many."""
    monkeypatch.setattr(unrolled, "TOO_MANY", 60)
    monkeypatch.setattr(unrolled, "_told", set())


def settle(x: Any, y: Any) -> Any:
    x = ng.cos(x)
    for k in range(1, 40):
        x = ng.sin(x) * y[:k].sum()
        y = y * 0.5
    return x


def drawn_in(x: Any, rows: Any) -> Any:
    for row, k in zip(rows, range(40), strict=False):
        if k * k % 7 > 2:
            x = x * row
        elif k * k % 5 > 1:
            x = ng.sin(x) - row
        else:
            x = x / 3.0 + row.sum()
    return x


def repeated(x: Any) -> Any:
    for _ in range(100):
        x = ng.sin(x) * x - 0.5
    return x


def _warned(function: Any, *arguments: Any) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        ng.jit(function).lower(*arguments)
    return found


def test_the_line_is_named_once_with_the_loop_to_write() -> None:
    arguments = ng.ones(3), ng.ones(40)
    (found,) = _warned(settle, *arguments)
    assert found.category is ng.UnrolledWarning
    assert found.filename == __file__
    assert found.lineno == settle.__code__.co_firstlineno + 3
    first, *rest = str(found.message).splitlines()
    assert "operations are left to compile one by one" in first
    assert [line.strip() for line in rest] == [
        "def step(carry, k):",
        "x, y = carry",
        "x = ng.sin(x) * y[:k].sum()",
        "y = y * 0.5",
        "return (x, y), None",
        "(x, y), _ = ng.func.scan(step, (x, y), ng.arange(1, 40))",
    ]
    assert not _warned(settle, *arguments)


def test_of_a_gradient_the_loop_is_named_and_not_who_asked_for_it() -> None:
    (found,) = _warned(ng.func.grad(lambda *given: settle(*given).sum()), ng.ones(3), ng.ones(40))
    assert found.lineno == settle.__code__.co_firstlineno + 3


def test_what_a_loop_takes_several_of_is_taken_apart() -> None:
    (found,) = _warned(drawn_in, ng.ones(3), ng.ones(40, 3))
    first, second, *_, last = [line.strip() for line in str(found.message).splitlines()[1:]]
    assert (first, second) == ("def step(x, each):", "row, k = each")
    assert last == "x, _ = ng.func.scan(step, x, (rows, range(40)))"


def test_a_long_body_is_left_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unrolled, "WRITTEN_LINES", 2)
    (found,) = _warned(settle, ng.ones(3), ng.ones(40))
    assert [line.strip() for line in str(found.message).splitlines()[1:]] == [
        "def step(carry, k):",
        "...  # one turn",
        "return (x, y), None",
        "(x, y), _ = ng.func.scan(step, (x, y), ng.arange(1, 40))",
    ]


def test_what_is_rolled_up_says_nothing() -> None:
    assert not _warned(repeated, ng.ones(3))
