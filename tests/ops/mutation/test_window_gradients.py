"""Gradients of writes to windows, whose elements share memory: those of what is computed."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

import numgrad as ng

MASK = [True, False, False]
WINDOWS: dict[str, Callable[[Any], Any]] = {
    "expand": lambda y: y[:3].unsqueeze(0).expand(2, 3),
    "strided": lambda y: y.as_strided((2, 3), (1, 1), 1),
    "wide": lambda y: y.as_strided((2, 3), (2, 1)),
    "gaps": lambda y: y.as_strided((2, 3), (1, 2)),
    "unfold": lambda y: y.unfold(0, 3, 1),
    "one": lambda y: y.as_strided((2, 3), (0, 2), 1),
}
WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "mul": lambda w, c: w.mul_(c),
    "add": lambda w, c: w.add_(c),
    "sin": lambda w, c: w.sin_(),
    "copy": lambda w, c: w.copy_(c * ng.tensor([[1.0], [2.0]])),
    "cumsum": lambda w, c: w.cumsum_(1),
    "turned": lambda w, c: w.copy_(w.flip(1) * 2),
    "fill": lambda w, c: w.fill_(c[1]),
    "zero": lambda w, c: w.zero_(),
    "row": lambda w, c: w[1].copy_(c),
    "row times": lambda w, c: w[0].mul_(c),
    "column": lambda w, c: w[:, 0].fill_(0.7),
    "index_fill": lambda w, c: w.index_fill_(1, ng.tensor([0]), 0.3),
    "masked_fill": lambda w, c: w.masked_fill_(ng.tensor(MASK), 0.3),
    "index_add": lambda w, c: w.index_add_(0, ng.tensor([1]), c[None]),
}


def _program(draw: Random) -> Callable[[Any], Any]:
    steps = [(draw.choice([*WINDOWS]), draw.choice([*WRITES])) for _ in range(draw.choice([1, 2]))]
    last, squares = draw.choice([*WINDOWS]), draw.random() < 0.5

    def program(x: Any) -> Any:
        y = x * 1
        total = 0
        for window, write in steps:
            w = WINDOWS[window](y)
            WRITES[write](w, x[:3] * 2)
            total = total + (w.clone().sin().sum() if squares else 0)
        return total + (WINDOWS[last](y) ** 2).sum() + (y * ng.arange(1.0, 7)).sum()

    return program


@pytest.mark.filterwarnings("ignore:Use of .* on expanded tensors is deprecated")
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_they_are_finite_differences(compiled: bool) -> None:
    x = ng.tensor([0.3, -1.2, 0.8, 1.9, -0.4, 0.6], dtype=ng.float64)
    step, tried = 1e-5, 0
    for seed in range(8 if compiled else 120):
        program = _program(Random(seed))
        try:
            program(x)
        except RuntimeError:  # elements that are one can't be written to by themselves
            continue
        gradient = ng.func.grad(program)
        found = (ng.jit(gradient) if compiled else gradient)(x)
        for number in range(6):
            moved = ng.zeros(6, dtype=ng.float64)
            moved[number] = step
            slope = (program(x + moved) - program(x - moved)) / (2 * step)
            assert ng.allclose(found[number], slope, 1e-5, 1e-6), (seed, number)
        tried += 1
    assert tried >= (3 if compiled else 50)


TURNED: dict[str, Callable[[Any], Any]] = {
    "expand": lambda y: y[:, :1].expand(3, 2),
    "one": lambda y: y.as_strided((2, 3), (0, 2), 1),
    "strided": lambda y: y.as_strided((2, 3), (1, 1), 1),
    "wide": lambda y: y.as_strided((2, 3), (2, 1)),
    "unfold": lambda y: y.unfold(0, 2, 1),
    "apart": lambda y: y[1:],
}


@pytest.mark.parametrize("last", TURNED)
@pytest.mark.parametrize("window", ["strided", "wide", "unfold", "apart"])
def test_second_derivatives_of_writes_to_a_base_that_lies_otherwise(window: str, last: str) -> None:
    """Gradients come row by row to a base that lies column by column."""

    def program(x: Any) -> Any:
        y = x.reshape(2, 3).t() * 1
        w = TURNED[window](y)
        w.copy_(w.clone().sin() * x.repeat(2)[: w.numel()].reshape(w.shape))
        return (TURNED[last](y).contiguous() ** 3).sum() + (y.contiguous() ** 2 * y.sum()).sum()

    x = ng.tensor([0.3, -1.2, 0.8, 1.9, -0.4, 0.6], dtype=ng.float64)
    gradient, step = ng.func.grad(program), 1e-5
    rows = ng.func.jacrev(gradient)(x)
    for number in range(6):
        moved = ng.zeros(6, dtype=ng.float64)
        moved[number] = step
        slope = (gradient(x + moved) - gradient(x - moved)) / (2 * step)
        assert ng.allclose(rows[:, number], slope, 1e-5, 1e-6)
