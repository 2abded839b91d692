"""Branches and loops of mapped functions: what they give each example is what it gets alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad.base.pytree import flatten
from numgrad.func import cond, grad, jvp, scan, switch, vmap, while_loop
from numgrad.jit.front.trace_function import trace_function
from tests.batching.control_programs import function_of, nesting_programs
from tests.cases import examples
from tests.jit.interpreter import interpret

WEIGHT = ng.tensor([0.7, -0.4, 1.2], dtype=ng.float64)

Function = Callable[[Any], Any]
# What is mapped, of a program's function f, as a function of one example.
INSIDE: dict[str, Callable[[Function], Function]] = {
    "value": lambda f: f,
    "gradient": lambda f: grad(lambda a: (f(a) * f(a)).sum()),
    "tangent": lambda f: lambda a: jvp(f, (a,), (a.cos(),))[1],
    "second": lambda f: lambda a: jvp(grad(lambda a: f(a).sum()), (a,), (a.cos(),))[1],
}


def batch_of(seed: int) -> Any:
    return ng.from_numpy(np.random.default_rng(seed).uniform(-1, 1, (5, 3)))


def looped(function: Function, batch: Any) -> Any:
    return ng.stack([function(row) for row in batch])


def close(found: Any, wanted: Any) -> None:
    found, wanted = found.detach().numpy(), wanted.detach().numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("inside", INSIDE)
@settings(max_examples=examples(25), deadline=None)
@given(nesting_programs(), st.integers(0, 99))
def test_each_example_goes_its_own_way(inside, program, seed):
    batch = batch_of(seed)
    mapped = INSIDE[inside](function_of(program, WEIGHT))
    close(vmap(mapped)(batch), looped(mapped, batch))


@settings(max_examples=examples(25), deadline=None)
@given(nesting_programs(), st.integers(0, 99))
def test_gradients_from_outside_are_those_of_the_examples(program, seed):
    batch = batch_of(seed)

    def over_batch(weight: Any, x: Any) -> Any:
        return vmap(function_of(program, weight))(x).sin().sum()

    def one_by_one(weight: Any, x: Any) -> Any:
        return looped(function_of(program, weight), x).sin().sum()

    for found, wanted in zip(
        grad(over_batch, (0, 1))(WEIGHT, batch),
        grad(one_by_one, (0, 1))(WEIGHT, batch),
        strict=True,
    ):
        close(found, wanted)


@settings(max_examples=examples(15), deadline=None)
@given(nesting_programs(), st.integers(0, 99))
def test_batches_of_batches(program, seed):
    batch, weights = batch_of(seed), ng.stack([WEIGHT, -WEIGHT])

    def of_weight(weight: Any) -> Any:
        return vmap(function_of(program, weight))(batch)

    close(vmap(of_weight)(weights), looped(of_weight, weights))


# --- traced: one loop for all examples ------------------------------------------------------------


def interpreted(function: Function, *arguments: Any) -> list[Any]:
    """Return what a function is traced to gives, without a compiler."""
    leaves, spec = flatten((arguments, {}))
    trace = trace_function(function, spec, leaves)
    found = interpret(trace.graph, [leaf.numpy() for leaf in leaves])
    return [ng.tensor(found[output.which]) for output in trace.outputs]


@pytest.mark.parametrize("inside", ["value", "gradient"])
@settings(max_examples=examples(15), deadline=None)
@given(nesting_programs(0), st.integers(0, 99))
def test_traced_loops_of_batches(inside, program, seed):
    batch = batch_of(seed)
    mapped = INSIDE[inside](function_of(program, WEIGHT))
    close(interpreted(vmap(mapped), batch)[0], looped(mapped, batch))


@settings(max_examples=examples(15), deadline=None)
@given(nesting_programs(), st.integers(0, 99))
def test_traced_loops_in_loops(program, seed):
    batch, mapped = batch_of(seed), function_of(program, WEIGHT)
    close(interpreted(vmap(mapped), batch)[0], looped(mapped, batch))


@settings(max_examples=examples(15), deadline=None)
@given(nesting_programs(0), st.integers(0, 99))
def test_traced_gradients_from_outside(program, seed):
    batch = batch_of(seed)

    def over_batch(weight: Any, x: Any) -> Any:
        return vmap(function_of(program, weight))(x).sin().sum()

    gradient = grad(over_batch, (0, 1))
    for found, wanted in zip(
        interpreted(gradient, WEIGHT, batch), gradient(WEIGHT, batch), strict=True
    ):
        close(found, wanted)


@settings(max_examples=examples(10), deadline=None)
@given(nesting_programs(0), st.integers(0, 99))
def test_traced_batches_of_batches(program, seed):
    batch, weights = batch_of(seed), ng.stack([WEIGHT, -WEIGHT])

    def of_weight(weight: Any) -> Any:
        return vmap(function_of(program, weight))(batch)

    close(interpreted(vmap(of_weight), weights)[0], looped(of_weight, weights))


def test_a_traced_branch_that_all_examples_take() -> None:
    batch = batch_of(3)

    def over_batch(weight: Any, x: Any) -> Any:
        f = lambda a: cond(weight[0] > 0.1, lambda: a.sin() * weight, lambda: a * 2)  # noqa: E731
        return vmap(grad(lambda a: (f(a) * a).sum()))(x)

    for weight in (WEIGHT, -WEIGHT):
        close(interpreted(over_batch, weight, batch)[0], over_batch(weight, batch))


def root(a: Any) -> Any:
    """Return a square root, by Newton's method."""
    return while_loop(lambda x: (x * x - a).abs() > 1e-12, lambda x: (x + a / x) / 2, a + 1)


def test_compiled_loops_of_batches():
    a = ng.tensor([0.5, 2.0, 30.0, 9.0], dtype=ng.float64)
    close(ng.jit(vmap(grad(root)))(a), 0.5 / a.sqrt())


def test_rows_that_are_done_keep_their_carry():
    counts = ng.tensor([0, 3, 5, 1])

    def count(n: Any) -> Any:
        return while_loop(lambda k, s: k < n, lambda k, s: (k + 1, s + k), (0, 0))

    for mapped in (vmap(count), ng.jit(vmap(count))):
        turns, total = mapped(counts)
        assert turns.tolist() == [0, 3, 5, 1] and total.tolist() == [0, 3, 10, 0]


def test_a_branch_that_no_example_takes_does_not_run():
    ran = []

    def f(x: Any) -> Any:
        return switch(
            (x > 0).to(int), [lambda x: ran.append(0) or x, lambda x: ran.append(1) or -x], x
        )

    assert vmap(f)(ng.tensor([1.0, 2.0])).tolist() == [-1, -2] and ran == [1]
    assert vmap(f)(ng.ones(0)).shape == (0,)


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("compiled", [False, True])
def test_examples_that_are_not_selected_raise_nothing(compiled):
    """Entries behind a table's end, integers divided by zero, infinite slopes."""
    table = ng.tensor([1.0, 2.0, 3.0])

    def f(k: Any, x: Any) -> Any:
        entry = cond(k < 3, lambda: table[k], lambda: x)
        quotient = cond(k > 0, lambda: 6 // k, lambda: k)
        return entry * cond(x > 0, lambda: x.sqrt(), lambda: x) + quotient

    k, x = ng.tensor([0, 1, 2, 7]), ng.tensor([4.0, 0.0, 1.0, -2.0])
    mapped = vmap(f)
    assert (ng.jit(mapped) if compiled else mapped)(k, x).tolist() == [2, 6, 6, 4]
    if not compiled:
        assert vmap(grad(f, 1))(k, x).tolist() == [0.25, 2, 1.5, -4]


def test_words():
    row = ng.ones(3)

    def writes(x: Any) -> Any:
        out = x.clone()
        cond(x.sum() > 3, lambda: out.add_(1), lambda: out)
        return out

    with pytest.raises(RuntimeError, match="may not write to what it did not make"):
        vmap(writes)(ng.stack([row, row * 2]))
    with pytest.raises(RuntimeError, match="Expected pred to be bool or single-element tensor"):
        vmap(lambda x: cond(x > 1, lambda: x, lambda: x))(ng.stack([row, row * 2]))
    with pytest.raises(RuntimeError, match="Expected carry and body_fn_output to have same metad"):
        vmap(lambda x: while_loop(lambda x: x.sum() < 9, lambda x: x[:2], x))(ng.stack([row, row]))
    with pytest.raises(RuntimeError, match="data-dependent control flow"):
        vmap(lambda x: x if x.sum() > 0 else -x)(ng.stack([row, row]))


def test_scans_of_one_first_carry():
    """The first carry is the same for all examples, the others are not."""
    rows = ng.arange(6.0).reshape(2, 3)
    last, sums = vmap(lambda xs: scan(lambda c, x: (c + x, c), ng.tensor(0.0), xs))(rows)
    assert last.tolist() == [3, 12] and sums.tolist() == [[0, 0, 1], [0, 3, 7]]


@pytest.mark.parametrize("count", [2, 3, 4])
def test_an_index_beyond_the_branches_means_the_nearest(count):
    """As outside of a batch, and in JAX."""
    branches = [lambda x, k=k: x + 10.0 * k for k in range(count)]
    index, x = ng.arange(-2, count + 3), ng.arange(count + 5.0)
    found = vmap(lambda i, x: switch(i, branches, x))(index, x)
    alone = [switch(int(i), branches, each) for i, each in zip(index.tolist(), x, strict=True)]
    assert found.tolist() == [each.item() for each in alone]


@pytest.mark.parametrize(
    ("signs", "expected"), [([1, 1], "yes"), ([-1, -1], "no"), ([1, -1], "both")]
)
def test_branches_change_python_once_for_all_that_take_them(
    signs: list[int], expected: str
) -> None:
    ran = {"yes": 0, "no": 0}

    def note(name: str, x: Any) -> Any:
        ran[name] += 1
        return x * 2 if name == "yes" else x

    def mapped(x: Any) -> Any:
        return cond(x > 0, lambda x: note("yes", x), lambda x: note("no", x), x)

    found = vmap(mapped)(ng.tensor(signs))
    assert found.tolist() == [2 * sign if sign > 0 else sign for sign in signs]
    assert ran == {name: int(expected in (name, "both")) for name in ran}
    with pytest.raises(ng.TraceError, match="make it a part of the carry and return it"):
        ng.jit(vmap(mapped))(ng.tensor(signs))


ADVICE = {
    "bincount": "zeros(count).index_add(0, input, weights)",
    "unique": "sort()",
    "unique_consecutive": "sort()",
    "nonzero": "where(mask, input, 0)",
}


@pytest.mark.parametrize("name", ADVICE)
def test_what_has_no_shape_without_numbers_says_what_to_do(name: str) -> None:
    x = ng.tensor([[1, 2, 2], [0, 1, 1]])
    function = getattr(ng, name)
    for call, error in ((ng.jit(function), ng.TraceError), (vmap(function), RuntimeError)):
        with pytest.raises(error, match=re.escape(f"use {ADVICE[name]}")):
            call(x if error is RuntimeError else x[0])
    counts = ng.zeros(4).index_add(0, x[0], ng.ones(3))  # what is advised
    assert counts.tolist() == ng.bincount(x[0], minlength=4).tolist()
