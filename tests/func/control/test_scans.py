"""Scans against Python loops: values and derivatives, over drawn pytrees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad import func
from numgrad.base import pytree
from tests.cases import examples
from tests.func.control.programs import (
    assert_close,
    carries,
    columns,
    mixed,
    total,
    trees,
    written_out,
)

WEIGHT = ng.tensor(0.3, dtype=ng.float64)
policies = st.one_of(
    st.none(),
    st.integers(1, 6),
    st.sampled_from(["sqrt", "log"]),
    st.builds(func.Binomial, st.integers(1, 4)),
)


@st.composite
def scans(draw: Any) -> tuple[Any, ...]:
    count = draw(st.integers(1, 6))
    xs = draw(columns(count))
    return draw(carries), xs, count, draw(st.booleans()), draw(policies)


def of_scan(program: tuple[Any, ...]) -> Any:
    _, _, count, reverse, policy = program

    def run(carry: Any, xs: Any, weight: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            return mixed(c, x, weight)

        return func.scan(step, carry, xs, length=count, reverse=reverse, checkpoint=policy)

    return run


def of_loop(program: tuple[Any, ...]) -> Any:
    _, _, count, reverse, _ = program

    def run(carry: Any, xs: Any, weight: Any) -> Any:
        return written_out(lambda c, x: mixed(c, x, weight), carry, xs, count, reverse, 0)

    return run


@given(scans())
def test_a_scan_is_a_loop(program):
    carry, xs = program[:2]
    assert_close(of_scan(program)(carry, xs, WEIGHT), of_loop(program)(carry, xs, WEIGHT))


@given(scans())
def test_gradients_are_those_of_a_loop(program):
    carry, xs = program[:2]
    argnums = (0, 2) if xs is None else (0, 1, 2)
    scanned, looped = (
        func.grad_and_value(lambda *given, run=run: total(run(*given)), argnums)(carry, xs, WEIGHT)
        for run in (of_scan(program), of_loop(program))
    )
    assert_close(scanned, looped)


@settings(max_examples=examples(50))
@given(scans())
def test_second_derivatives_and_forward_mode_are_those_of_a_loop(program):
    carry, xs = program[:2]

    def derivatives(run: Any) -> Any:
        def value(carry: Any, weight: Any) -> Any:
            return total(run(carry, xs, weight))

        def slope(weight: Any) -> Any:
            return total(func.grad(value)(carry, weight))

        def tangent(weight: Any) -> Any:
            return func.jvp(value, (carry, weight), (carry, weight))[1]

        one = ng.ones((), dtype=ng.float64)
        return (
            tangent(WEIGHT),
            func.grad(slope)(WEIGHT),  # reverse over reverse
            func.grad(tangent)(WEIGHT),  # reverse over forward
            func.jvp(slope, (WEIGHT,), (one,)),  # forward over reverse
            func.jvp(tangent, (WEIGHT,), (one,)),
        )

    assert_close(derivatives(of_scan(program)), derivatives(of_loop(program)), 1e-7)


@given(scans())
def test_backward_reaches_leaves_that_the_body_closes_over(program):
    carry, xs = program[:2]
    found = []
    for run in (of_scan(program), of_loop(program)):
        weight = ng.tensor(0.3, dtype=ng.float64, requires_grad=True)
        captured = weight * 2  # which is older than the loop, and no leaf
        value = total(run(carry, xs, captured)) + total(run(carry, xs, weight))
        value.backward()
        found.append(weight.grad)
    assert_close(*found)


@pytest.mark.parametrize("policy", [None, 2, "sqrt", "log", func.Binomial(1)])
def test_gradcheck(policy):
    def run(start, rows, weight):
        def step(carry, row):
            a, b = carry
            a = (a * weight + row).tanh()
            return (a, b * a), a.exp()

        carry, ys = func.scan(step, (start, start + 1), rows, checkpoint=policy)
        return *carry, ys

    rng = np.random.default_rng(2)
    given = [ng.from_numpy(rng.uniform(0.2, 1, shape)) for shape in ((2,), (5, 2), (2,))]
    given = [each.requires_grad_() for each in given]
    assert ng.autograd.gradcheck(run, given)
    assert ng.autograd.gradgradcheck(run, given)


@given(st.integers(1, 4), st.integers(0, 2), st.booleans(), policies)
def test_rows_may_be_of_any_dim(count, dim, reverse, policy):
    shape = [2, 3, 4]
    shape[dim] = count
    xs = ng.from_numpy(np.random.default_rng(1).standard_normal(shape))
    start = xs.select(dim, 0)

    def step(carry, x):
        return carry * 0.5 + x, (carry * x, x.sum())

    scanned = func.scan(step, start, xs, dim=dim, reverse=reverse, checkpoint=policy)
    assert_close(scanned, written_out(step, start, xs, count, reverse, dim))


@given(st.integers(0, 5), st.integers(-2, 4), policies)
def test_a_fori_loop_is_a_loop(lower, steps, policy):
    start = ng.tensor([0.5, 2.0], dtype=ng.float64)

    def body(i, value):
        assert (i.dtype, i.ndim) == (ng.int64, 0)
        return value * WEIGHT + i

    def looped(value):
        for i in range(lower, lower + steps):
            value = body(ng.tensor(i), value)
        return value

    def rolled(value):
        return func.fori_loop(lower, ng.tensor(lower + steps), body, value, checkpoint=policy)

    for function in (rolled, lambda x: func.grad(lambda x: total(rolled(x)))(x)):
        expected = looped if function is rolled else func.grad(lambda x: total(looped(x)))
        assert_close(function(start), expected(start))


@given(st.integers(1, 5).flatmap(columns).filter(lambda xs: xs is not None), policies)
def test_a_map_is_a_loop(xs, policy):
    first = func.map(lambda x, w: mixed(x, None, w), xs, WEIGHT, checkpoint=policy)
    count = func.map(total, xs).numel()
    _, looped = written_out(lambda c, x: (c, mixed(x, None, WEIGHT)), None, xs, count, False, 0)
    assert_close(first, looped)


def compose(first: Any, second: Any) -> Any:
    """Compose two maps x -> a x + b, of matrices a."""
    return {
        "a": second["a"] @ first["a"],
        "b": (second["a"] @ first["b"].unsqueeze(-1)).squeeze(-1) + second["b"],
    }


@given(st.integers(1, 9), st.booleans(), st.sampled_from(["generic", "pointwise"]))
def test_an_associative_scan_combines_all_that_is_before(count, reverse, mode):
    rng = np.random.default_rng(count)
    given = {
        "a": ng.from_numpy(rng.standard_normal((count, 2, 2))),
        "b": ng.from_numpy(rng.standard_normal((count, 2))),
    }

    def looped(xs):
        order = reversed(range(count)) if reverse else range(count)
        rows = [{name: x[k] for name, x in xs.items()} for k in order]
        found = rows[:1]
        for row in rows[1:]:
            found.append(compose(found[-1], row))
        if reverse:
            found.reverse()
        return {name: ng.stack([row[name] for row in found]) for name in xs}

    def scanned(xs):
        return func.associative_scan(compose, xs, 0, reverse, mode)

    assert_close(scanned(given), looped(given))
    gradients = [func.grad(lambda xs, f=f: total(f(xs)))(given) for f in (scanned, looped)]
    assert_close(*gradients)


@given(trees(st.integers(-3, 3)), st.integers(1, 4))
def test_numbers_become_tensors_and_keep_their_dtypes(tree, count):
    carry, _ = func.scan(lambda c, _: (c, None), tree, length=count)
    assert_close(carry, pytree.map_tree(ng.tensor, tree))
