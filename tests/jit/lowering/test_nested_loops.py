"""What loops within loops keep for a gradient, and that the bits stay those of eager calls."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.base.pytree import flatten, leaves
from numgrad.jit.front.trace_function import trace_function
from numgrad.jit.ir.graph import Graph
from numgrad.jit.ir.validate import validate
from numgrad.jit.lowering.handed_over import with_less_kept
from numgrad.jit.lowering.loops import Loop
from numgrad.jit.lowering.unneeded import needed_loops
from numgrad.jit.passes.simplify import simplify
from numgrad.jit.rolling import prepare
from numgrad.jit.rolling.prepare import prepared
from numgrad.jit.rolling.rolling import rolled
from tests.cases import examples
from tests.jit.interpreter import by_numpy, fold_by_numpy, interpret

WIDE = 3

Block = Callable[[Any, Any, Any], Any]  # of a carry, something from further out, and a weight

# What innermost turns do: cheap operations, dear ones, and products.
LINES: list[Block] = [
    lambda y, x, w: y * w + x,
    lambda y, x, w: (y * x).tanh() + 0.3 * w,
    lambda y, x, w: y - 0.1 * y.sum() * w,
    lambda y, x, w: y / (1.0 + x * x) + 0.1,
    lambda y, x, w: ng.where(y > x, y * w, y.sin()),
    lambda y, x, w: ng.stack((y[2] * w[0], y[0] + x[1], y[1] - y[0] * y[0])),
    lambda y, x, w: ng.outer(w, y) @ x + 0.5 * y,
]


def _block(drawn: random.Random, depth: int) -> Block:
    """Return a step made of some lines, and at most `depth` loops within loops."""
    parts = [drawn.choice(LINES) for _ in range(drawn.randint(1, 3))]
    if depth:
        loop = drawn.choice([_scan, _scan, _mapped, _while, _fori, _branch])
        parts.insert(drawn.randint(0, len(parts)), loop(drawn, depth))

    def block(y: Any, x: Any, w: Any) -> Any:
        for part in parts:
            y = part(y, x, w)
        return y

    return block


def _scan(drawn: random.Random, depth: int) -> Block:
    inner, turns = _block(drawn, depth - 1), drawn.randint(3, 5)
    gives, reverse = drawn.random() < 0.5, drawn.random() < 0.3
    policy = drawn.choice([None, None, 2, "sqrt"])

    def block(y: Any, x: Any, w: Any) -> Any:
        rows = ng.stack([x * (0.5 + k) for k in range(turns)])

        def step(c: Any, row: Any) -> Any:
            c = inner(c, row, w)
            return c, (c * y if gives else None)

        last, found = ng.func.scan(step, y, rows, reverse=reverse, checkpoint=policy)
        return last if found is None else last + 0.1 * found.sum(0)

    return block


def _mapped(drawn: random.Random, depth: int) -> Block:
    inner = _block(drawn, depth - 1)
    return lambda y, x, w: ng.func.map(lambda row: inner(row, x, w), ng.stack((y, y * w))).sum(0)


def _while(drawn: random.Random, depth: int) -> Block:
    inner, turns = _block(drawn, depth - 1), drawn.randint(1, 4)

    def block(y: Any, x: Any, w: Any) -> Any:
        def goes_on(k: Any, c: Any) -> Any:
            return (k < turns) & (c.abs().sum() < 50.0)

        return ng.func.while_loop(
            goes_on, lambda k, c: (k + 1.0, inner(c, x, w)), (ng.zeros((), dtype=ng.float64), y)
        )[1]

    return block


def _fori(drawn: random.Random, depth: int) -> Block:
    inner, turns = _block(drawn, depth - 1), drawn.randint(2, 4)
    return lambda y, x, w: ng.func.fori_loop(0, turns, lambda k, c: inner(c, x * k, w), y)


def _branch(drawn: random.Random, depth: int) -> Block:
    inner, other = _block(drawn, depth - 1), drawn.choice(LINES)

    def block(y: Any, x: Any, w: Any) -> Any:
        return ng.func.cond(
            y.sum() > x.sum(), lambda c: inner(c, x, w), lambda c: other(c, x, w), y
        )

    return block


def _drawn(seed: int) -> Callable[..., Any]:
    """Return value and gradient of a scan of two or three levels, by all that it takes."""
    drawn = random.Random(seed)
    block = _scan(drawn, drawn.randint(2, 3))
    return ng.func.value_and_grad(
        lambda y, x, w: (block(y, x, w) * w).sum().sin(), argnums=(0, 1, 2)
    )


def _arguments() -> list[Any]:
    rng = np.random.default_rng(2)
    return [ng.from_numpy(rng.uniform(-0.8, 0.8, WIDE)) for _ in range(3)]


def _traced(function: Callable[..., Any], arguments: list[Any]) -> Graph:
    given, spec = flatten((tuple(arguments), {}))
    return trace_function(function, spec, given).graph


@pytest.mark.parametrize("seed", range(examples(20)))
def test_bits_are_those_of_loops_that_compute_all_of_it_again(seed: int) -> None:
    arguments = _arguments()
    graph = _traced(_drawn(seed), arguments)
    whole = needed_loops(simplify(rolled(graph)))
    found = needed_loops(simplify(with_less_kept(whole)))
    validate(found)
    arrays = [each.numpy() for each in arguments]
    with np.errstate(all="ignore"):
        expected = interpret(graph, arrays, by_numpy, fold_by_numpy)
        computed = interpret(found, arrays, by_numpy, fold_by_numpy)
    for one, other in zip(expected, computed, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.sampled(0.18)
@pytest.mark.parametrize("seed", range(100, 100 + examples(4)))
def test_so_they_are_compiled(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = leaves(_drawn(seed)(*_arguments()))
    found = leaves(ng.jit(_drawn(seed))(*_arguments()))
    monkeypatch.setattr(prepare, "with_less_kept", lambda graph: graph)
    whole = leaves(ng.jit(_drawn(seed))(*_arguments()))
    for one, other, eager in zip(found, whole, expected, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
        np.testing.assert_allclose(one.numpy(), eager.numpy(), 1e-10, 1e-12)


# --- what is kept -------------------------------------------------------------------------------


def _loops(graph: Graph) -> list[Loop]:
    calls = [value.attributes.get("primitive") for value in graph.values()]
    return [each for each in calls if isinstance(each, Loop)]


def _count(graph: Graph) -> int:
    """Return how many loops there are, with those in loops."""
    return sum(1 + _count(loop.graph) for loop in _loops(graph))


def _backward(loss: Callable[..., Any], *arguments: Any) -> Loop:
    """Return the last loop of value and gradient."""
    found = _traced(ng.func.value_and_grad(loss), list(arguments))
    return _loops(prepared(found))[-1]


def _nested(depth: int, turns: int, policy: Any = None) -> Callable[..., Any]:
    """Return a loss of loops in loops whose innermost turns are dear."""

    def loss(w: Any, y: Any) -> Any:
        def level(c: Any, depth: int) -> Any:
            if not depth:
                return (c * w).tanh() + 0.1 * (c * c).sin()
            return ng.func.scan(
                lambda c, _: (level(c, depth - 1), None), c, length=turns, checkpoint=policy
            )[0]

        return level(y, depth).sum()

    return loss


@pytest.mark.sampled(0.4)
@pytest.mark.parametrize("depth", [2, 3, 4])
def test_dear_loops_do_not_run_again(depth: int) -> None:
    """Of each loop there is one on the way forth and one on the way back."""
    loss, arguments = _nested(depth, 4), [_arguments()[0], _arguments()[1]]
    graph = prepared(_traced(ng.func.grad(loss), arguments))
    assert _count(graph) == 2 * depth
    expected = ng.func.grad(loss)(*arguments).numpy()
    np.testing.assert_allclose(ng.jit(ng.func.grad(loss))(*arguments).numpy(), expected, 1e-12)


def test_stacks_that_would_be_too_large_are_those_of_one_turn() -> None:
    small, large = _nested(2, 30), _nested(2, 3_000)
    arguments = ng.ones(8, dtype=ng.float64), ng.ones(8, dtype=ng.float64)
    assert [loop.reverse for loop in _loops(_backward(small, *arguments).graph)] == [True]
    found = _backward(large, *arguments)
    assert [loop.reverse for loop in _loops(found.graph)] == [False, True]
    assert max(len(each.shape) for each in found.graph.inputs) == 1


@pytest.mark.parametrize("policy", [5, "sqrt", "log"])
def test_checkpoints_are_kept_to(policy: Any) -> None:
    """What the innermost loop stacks is there for as many turns as were asked for."""
    loss = _nested(1, 256, policy)
    arguments = ng.ones(8, dtype=ng.float64), ng.ones(8, dtype=ng.float64)
    whole = prepared(_traced(ng.func.grad(loss), list(arguments)))

    def stacked(graph: Graph) -> int:
        """Return how many numbers of a stack there are at once, at most."""
        sizes = [0]
        for value in graph.values():
            loop = value.attributes.get("primitive")
            if isinstance(loop, Loop):
                sizes.append(stacked(loop.graph))
            if value.operation == "item":
                sizes.append(int(np.prod(value.shape)))
        return max(sizes)

    assert stacked(whole) <= {5: 51, "sqrt": 16, "log": 4}[policy] * 8


def test_a_loop_that_stops_by_itself_is_not_run_again_to_count_its_turns() -> None:
    def loss(w: Any, y: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            c = ng.func.while_loop(lambda c: (c * c).sum() > 0.5, lambda c: (c * w).tanh() * 0.9, c)
            return c + 1.0, None

        return ng.func.scan(step, y, length=10)[0].sum()

    found = _loops(_backward(loss, *_arguments()[:2]).graph)
    assert not any(loop.stops for loop in found)
    assert [loop.counted for loop in found] == [True, True]  # one for the carries of all turns
