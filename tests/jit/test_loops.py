"""Loops and branches in traced functions: numbers and derivatives of what Python does eagerly."""

from __future__ import annotations

import gc
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit

import numgrad as ng
from numgrad.base.pytree import flatten
from numgrad.func import (
    Binomial,
    associative_scan,
    cond,
    fori_loop,
    grad,
    hessian,
    jacfwd,
    jvp,
    scan,
    switch,
    value_and_grad,
    while_loop,
)
from tests.cases import examples

F64 = ng.float64


def _x() -> Any:
    return ng.tensor([0.3, -0.2, 0.5], dtype=F64)


def _rows(count: int) -> Any:
    return ng.tensor(np.random.default_rng(1).uniform(-0.5, 0.5, (count, 3)))


# What a body does with its carry (three numbers), a row, and what it closes over.
STEPS: list[Callable[[Any, Any, Any], Any]] = [
    lambda c, r, w: ng.tanh(c * w) + r,
    lambda c, r, w: c * 0.9 - r * w.sum() * c.sin(),
    lambda c, r, w: cond(c.sum() > 0.1, lambda c: c * 0.5 + r * w, lambda c: c.exp() - w, c),
    lambda c, r, w: while_loop(lambda c: (c * c).sum() > 0.2, lambda c: c * 0.7 + 0.05 * w, c),
    lambda c, r, w: fori_loop(0, 3, lambda i, c: c * 0.8 + r * w * i, c),
    lambda c, r, w: switch((c.sum() * 4).long(), [ng.sin, ng.cos, lambda c: c * w], c),
    lambda c, r, w: scan(lambda a, b: (a * 0.5 + b * w, None), c, ng.stack((r, c)))[0],
    lambda c, r, w: ng.where(c > r, c * w, r),
    lambda c, r, w: ng.stack((c[1], c[2] * w[0], c[0] + r[2])),
    lambda c, r, w: c - 0.1 * grad(lambda c: (c * c * w).sum() + (c * r).sum())(c),
]


def _program(seed: int) -> Callable[[Any, Any], Any]:
    drawn = random.Random(seed)
    steps = [drawn.choice(STEPS) for _ in range(drawn.randint(1, 3))]
    reverse, count = drawn.random() < 0.5, drawn.choice([1, 2, 5])

    def loss(w: Any, c: Any) -> Any:
        def body(state: Any, row: Any) -> Any:
            c = state["c"]
            for step in steps:
                c = step(c, row, w)
            return {"c": c, "n": state["n"] + 1}, (c * row, None)

        state = {"c": c, "n": ng.tensor(0)}
        state, (stacked, _) = scan(body, state, _rows(count), reverse=reverse)
        return (state["c"] ** 2).sum() + (stacked * w).sum() + state["n"]

    return loss


def _close(found: Any, expected: Any) -> None:
    found, expected = flatten(found)[0], flatten(expected)[0]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("seed", range(examples(24)))
def test_loops_compute_what_python_does(seed: int) -> None:
    loss = _program(seed)
    w, c = _x() * 1.5, _x()
    differentiated = value_and_grad(loss, argnums=(0, 1))
    _close(ng.jit(differentiated)(w, c), differentiated(w, c))


@pytest.mark.sampled(0.14)
@pytest.mark.parametrize("seed", range(examples(8)))
def test_so_do_their_second_derivatives_in_both_modes(seed: int) -> None:
    loss = _program(seed + 1000)
    w, c = _x() * 1.5, _x()

    def second(w: Any, c: Any) -> Any:
        direction = jvp(grad(loss), (w, c), (c, w))[1]
        return grad(lambda w: (grad(loss)(w, c) * c).sum())(w), direction

    _close(ng.jit(second)(w, c), second(w, c))


def test_a_loop_without_a_limit_has_derivatives_of_any_order() -> None:
    def root(a: Any) -> Any:
        return while_loop(lambda x: (x * x - a).abs() > 1e-12, lambda x: (x + a / x) / 2, a * 1.0)

    a, derivative = ng.tensor(2.0, dtype=F64), root
    for factor in (1.0, 0.5, -0.25, 0.375):
        expected = factor * 2.0 ** (0.5 - (0, 1, 2, 3)[(1.0, 0.5, -0.25, 0.375).index(factor)])
        assert ng.jit(derivative)(a).item() == pytest.approx(expected, rel=1e-9)
        derivative = grad(derivative)


def test_a_loop_of_no_turns_hands_on_what_it_was_given() -> None:
    def function(x: Any) -> Any:
        return while_loop(lambda x: x.sum() > 100.0, lambda x: x * 0.5, x * x).sum()

    x = _x()
    _close(ng.jit(value_and_grad(function))(x), value_and_grad(function)(x))
    _close(ng.jit(hessian(function))(x), hessian(function)(x))


def test_the_compiled_function_is_one_for_all_numbers() -> None:
    steps = ng.jit(
        lambda x: while_loop(lambda x, n: x < 100.0, lambda x, n: (x * 2, n + 1), (x, 0))
    )
    assert [int(steps(ng.tensor(x))[1]) for x in (60.0, 30.0, 1.0, 200.0)] == [1, 2, 7, 0]


@pytest.mark.parametrize("calls", [1, 3])
def test_what_a_loop_gives_is_returned_as_it_is(calls: int) -> None:
    """No operation is between a loop and a result: carries, stacks, one of them twice, both."""
    functions: list[Callable[[Any], Any]] = [
        lambda x: ng.func.map(lambda r: (r * x).sum(), ng.ones(5, 3, dtype=F64)),
        lambda x: scan(lambda c, r: (c * r, c), x, _rows(4)),
        lambda x: scan(lambda c, r: (c * r, c), x, _rows(4))[0],
        lambda x: (lambda found: (found[1], found[0], found[1]))(
            scan(lambda c, r: (c * r, (c + r).sum()), x, _rows(4))
        ),
        lambda x: while_loop(lambda x, n: x.sum() < 9.0, lambda x, n: (x * 2, n + 1), (x, x * 0)),
        lambda x: cond(x.sum() > 0, lambda: (x, x.sum()), lambda: (-x, x.prod())),
    ]
    for function in functions:
        compiled = ng.jit(function)
        for k in range(calls):
            x = _x() + k
            _close(compiled(x), function(x))


def test_loops_run_in_compiled_code_of_users() -> None:
    def loss(w: Any, x: Any) -> Any:
        last, _ = scan(lambda c, r: (ng.tanh(c * w + r), None), x, _rows(6))
        return while_loop(lambda c: (c * c).sum() > 0.01, lambda c: c * 0.6, last).sum()

    w, x = _x(), _x()
    gradient = ng.jit(value_and_grad(loss)).lower(w, x).dispatcher

    @njit
    def descend(w: Any, x: Any) -> Any:
        for _ in range(3):
            _value, g = gradient(w, x)
            w = w - 0.1 * g
        return w

    expected = w
    for _ in range(3):
        expected = expected - 0.1 * grad(loss)(expected, x)
    np.testing.assert_allclose(descend(w.numpy(), x.numpy()), expected.numpy(), rtol=1e-10)


def test_a_loop_takes_one_body_whatever_its_length() -> None:
    def function(x: Any, count: int) -> Any:
        return scan(lambda c, _: (c * 0.999 + ng.sin(c) * 0.001, None), x, length=count)[0].sum()

    sizes = [
        len(ng.jit(lambda x, n=n: grad(lambda x: function(x, n))(x)).lower(_x()).graph.values())
        for n in (10, 100_000)
    ]
    assert sizes[0] == sizes[1]


def test_what_a_call_does_not_need_is_not_stacked() -> None:
    def function(x: Any) -> Any:
        return scan(lambda c, r: (c * r, c.exp()), x, _rows(5))[0]

    x = _x().requires_grad_()
    graph = ng.jit(function).lower(x).graph
    assert "exp" not in str(graph)
    assert all(value.shape != (5, 3) or value.operation == "array" for value in graph.values())


def test_a_loop_reads_any_part_of_a_stack() -> None:
    """Rows in order are read where they lie, and others are put in order."""
    parts: list[Callable[[Any], Any]] = [
        lambda s: s[2:],
        lambda s: s[::2],
        lambda s: s[:, 1:],
        lambda s: s[3:].reshape(-1, 1),
    ]

    def run(x: Any, m: Any) -> Any:
        def grow(c: Any, _: Any) -> tuple[Any, Any]:
            c = (m @ c).sin() + 0.1
            return c, c

        last, stack = scan(grow, x, length=9)
        found = []
        for part in parts:
            rows = part(stack)
            first = rows[0] * 0 + 1
            found.append(scan(lambda c, row: (c * 0.5 + row, (c * row).sum()), first, rows))
        around = m.T @ (m @ last)  # a product outside of loops
        return sum(c.sum() + y.sum() for c, y in found) + around.sum()

    x = np.array([0.3, -0.2, 0.5])
    m = np.random.default_rng(2).uniform(-1, 1, (3, 3))
    function = value_and_grad(run, argnums=(0, 1))
    value, gradients = function(ng.tensor(x), ng.tensor(m))
    compiled = ng.jit(function)
    for found in (compiled(x, m), compiled.lower(x, m).dispatcher(x, m)):
        assert float(found[0]) == pytest.approx(value.item(), rel=1e-13)
        flat, _ = flatten(found)
        for one, other in zip(flat[1:], gradients, strict=True):
            np.testing.assert_allclose(np.asarray(one), other.numpy(), rtol=1e-11)


def test_a_body_writes_to_nothing_that_it_did_not_make() -> None:
    def function(x: Any) -> Any:
        total = x * 0.0

        def body(c: Any, row: Any) -> Any:
            total.add_(c)
            return c * 2, None

        return scan(body, x, _rows(3))[0] + total

    with pytest.raises(ng.TraceError, match="may not write to what it did not make"):
        ng.jit(function)(_x())


def test_what_a_body_made_stays_in_it() -> None:
    def function(x: Any) -> Any:
        kept = []

        def body(c: Any, row: Any) -> Any:
            kept.append(c * 2)
            return c + row, None

        return scan(body, x, _rows(3))[0] + kept[0]

    with pytest.raises(ng.TraceError, match="changes kept, which is read"):
        ng.jit(function)(_x())


def test_writes_within_a_body_are_those_of_python() -> None:
    def function(x: Any) -> Any:
        def body(c: Any, row: Any) -> Any:
            d = c.clone()
            d[1] = row[0] * d[2]
            d[:2] *= 0.5
            return d, d.sum()

        last, sums = scan(body, x, _rows(4))
        return (last * last).sum() + sums.prod()

    x = _x()
    _close(ng.jit(value_and_grad(function))(x), value_and_grad(function)(x))


def test_a_jitted_function_and_a_jacobian_within_a_body() -> None:
    inner = ng.jit(lambda c, w: ng.sin(c) * w)

    def function(w: Any, x: Any) -> Any:
        def body(c: Any, row: Any) -> Any:
            jacobian = jacfwd(lambda c: inner(c, w))(c)
            return jacobian @ c * 0.5 + row, None

        return scan(body, x, _rows(3))[0].sum()

    w, x = _x(), _x()
    _close(ng.jit(value_and_grad(function))(w, x), value_and_grad(function)(w, x))


def test_an_associative_scan_and_a_hessian_of_it() -> None:
    def function(x: Any) -> Any:
        return (associative_scan(lambda a, b: a * b + 0.1, x) ** 2).sum()

    x = ng.tensor(np.linspace(0.5, 1.5, 7))
    _close(ng.jit(hessian(function))(x), hessian(function)(x))


def _many_times(function: Any) -> Any:
    """Return a function that does what one does in each turn of a loop within a loop."""

    def body(c: Any, row: Any) -> Any:
        return scan(lambda c, _: (function(c), None), c, length=10)[0], None

    return lambda x: scan(body, x, length=100)[0]


def _interrupted(function: Any, *arguments: Any) -> tuple[float, float]:
    """Return how long a call takes until Ctrl-C is pressed, and how long from then on.

    It is pressed again if nothing comes of it: Python swallows what comes in a ``__del__``, and
    llvmlite has many where something is compiled.
    """
    pressed: list[float] = []
    ended = threading.Event()

    def press() -> None:
        wait = 0.2
        while not ended.wait(wait):
            pressed.append(time.process_time())
            os.kill(os.getpid(), signal.SIGINT)
            wait = 2.0

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    pressing = threading.Thread(target=press)
    start = time.process_time()
    pressing.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            function(*arguments)
    finally:
        end = time.process_time()
        ended.set()
        pressing.join()
        signal.signal(signal.SIGINT, before)
    return pressed[0] - start, end - pressed[0]


@pytest.mark.parametrize(
    "transform",
    [lambda f: f, grad, _many_times, lambda f: grad(_many_times(f))],
    ids=["value", "gradient", "in loops", "gradient in loops"],
)
def test_a_compiled_loop_without_end_ends_on_ctrl_c(transform: Any) -> None:
    endless = ng.jit(transform(lambda x: while_loop(lambda x: x < 10.0, lambda x: x.sin(), x)))
    found = endless(ng.tensor(20.0)).item()  # compiled
    until, after = _interrupted(endless, ng.tensor(1.0))
    # A gradient does not go back over the turns that there were by then, and loops around it end.
    assert after < 0.5 * until
    assert endless(ng.tensor(20.0)).item() == found


def _turn(x: Any) -> Any:
    return (x * 1.25).sin()


def _turn_by_index(x: Any) -> Any:
    return (x[x.argmax()] * x).sin()  # whose gradient looks for what the turn found


def _many_stretches(f: Any) -> Any:
    def function(x: Any) -> Any:
        for _ in range(30):  # rolled up
            x = scan(lambda c, _: (f(c), None), f(x * 2), length=3_000_000)[0]
        return x

    return function


LONG_LOOPS = {
    "scan": lambda f: lambda x: scan(lambda c, _: (f(c), None), x, length=10**8)[0],
    "fori_loop": lambda f: lambda x: fori_loop(0, 10**6, lambda _, c: f(c), x.tile(1000)),
    "unknown length": lambda f: (
        lambda x: fori_loop(0, (x.sum() * 0 + 10**8).long(), lambda _, c: f(c), x)
    ),
    "scan in scan": lambda f: _many_times(
        lambda x: scan(lambda c, _: (f(c), None), x, length=100_000)[0]
    ),
    "gradient": lambda f: grad(
        lambda x: scan(lambda c, _: (f(c), None), x, length=5_000_000)[0].sum()
    ),
    "plain for": _many_stretches,
}


@pytest.mark.parametrize("kind", LONG_LOOPS)
def test_a_long_compiled_loop_ends_on_ctrl_c(kind: str) -> None:
    x = ng.tensor([0.5, 1.0, 0.7])
    long = ng.jit(LONG_LOOPS[kind](_turn_by_index if kind == "gradient" else _turn))
    _interrupted(long, x)  # compiled
    gc.collect()  # what is left of the compiler
    _, after = _interrupted(long, x)
    assert after < 0.7  # a second and more would be left


@pytest.mark.sampled(0.09)
@pytest.mark.parametrize("policy", [3, "sqrt", "log", Binomial(carries=4)])
def test_checkpoints_are_loops_within_loops(policy: Any) -> None:
    def function(x: Any, reverse: bool, policy: Any) -> Any:
        def body(c: Any, row: Any) -> Any:
            c = ng.sin(c) + row
            return c, c * row

        last, ys = scan(body, x, _rows(24), reverse=reverse, checkpoint=policy)
        return (last * ys).sum()

    x = _x()
    for reverse in (False, True):
        plain = value_and_grad(lambda x, r=reverse: function(x, r, None))
        kept = value_and_grad(lambda x, r=reverse: function(x, r, policy))
        compiled = ng.jit(kept)
        _close(compiled(x), plain(x))
        stacks = [v.shape for v in compiled.lower(x).graph.values() if v.operation == "item"]
        assert max([shape[0] for shape in stacks if len(shape) > 1]) < 24


def test_carries_keep_their_types() -> None:
    with pytest.raises(RuntimeError, match="carry"):
        ng.jit(lambda x: scan(lambda c, _: (c.float(), None), x, length=3)[0])(_x())
    with pytest.raises(RuntimeError, match="carry"):
        ng.jit(lambda x: while_loop(lambda c: c.sum() < 3, lambda c: c[:2], x))(_x())
    with pytest.raises(RuntimeError, match="alike"):
        ng.jit(lambda x: cond(x.sum() > 0, lambda x: x, lambda x: x[:2], x))(_x())
