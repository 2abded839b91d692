"""While loops and branches against plain Python."""

from __future__ import annotations

import signal
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng
from numgrad import func
from numgrad.jit.front import tracer
from tests.func.control.programs import assert_close, carries, mixed, total
from tests.func.control.test_scans import WEIGHT, policies


@given(carries, st.integers(0, 7), policies, st.sampled_from(["tuple", "list", "tree"]))
def test_a_while_loop_is_a_loop(tree, count, policy, kind):
    """Count within the carry: how many steps there will be is not known before."""

    def rolled(tree, weight):
        if kind == "tree":
            carry = func.while_loop(
                lambda c: c["i"] < count,
                lambda c: {"i": c["i"] + 1, "tree": mixed(c["tree"], None, weight)[0]},
                {"i": 0, "tree": tree},
                checkpoint=policy,
            )
            return carry["tree"]
        i, found = func.while_loop(
            lambda i, tree: (i < count).reshape(1),
            lambda i, tree: [i + 1, mixed(tree, None, weight)[0]],
            (ng.tensor(0), tree) if kind == "tuple" else [ng.tensor(0), tree],
            checkpoint=policy,
        )
        assert i.item() == count
        return found

    def looped(tree, weight):
        for _ in range(count):
            tree = mixed(tree, None, weight)[0]
        return tree

    assert_close(rolled(tree, WEIGHT), looped(tree, WEIGHT))
    gradients = [
        func.grad(lambda *given, run=run: total(run(*given)), (0, 1))(tree, WEIGHT)
        for run in (rolled, looped)
    ]
    assert_close(*gradients)
    second = [
        func.hessian(lambda w, run=run: total(run(tree, w)))(WEIGHT) for run in (rolled, looped)
    ]
    assert_close(*second, 1e-7)


@given(st.floats(0.1, 50), policies)
def test_newtons_method_has_the_roots_derivative(a, policy):
    def root(a):
        far = func.while_loop(
            lambda x: (x * x - a).abs() > 1e-13 * a,
            lambda x: (x + a / x) / 2,
            a.detach() * 0 + 3.0,
            checkpoint=policy,
        )
        return (far + a / far) / 2

    value, slope = func.value_and_grad(root)(ng.tensor(a, dtype=ng.float64))
    assert value.item() == pytest.approx(a**0.5)
    assert slope.item() == pytest.approx(0.5 * a**-0.5)
    tangent = func.jvp(root, (ng.tensor(a, dtype=ng.float64),), (ng.ones((), dtype=ng.float64),))
    assert tangent[1].item() == pytest.approx(0.5 * a**-0.5)


@given(carries, st.booleans(), st.sampled_from([bool, np.bool_, ng.tensor]))
def test_cond_takes_one_branch(tree, flag, kind):
    taken = []

    def true_fn(tree, w):
        taken.append(True)
        return mixed(tree, None, w)

    def false_fn(tree, w):
        taken.append(False)
        return mixed(tree, w, w)

    def rolled(tree, w):
        return func.cond(kind(flag), true_fn, false_fn, tree, w)

    assert_close(rolled(tree, WEIGHT), (true_fn if flag else false_fn)(tree, WEIGHT))
    assert taken[0] == taken[-1] == flag  # without numbers the other one ran, too
    assert taken[1:-1] == [] if kind in (bool, np.bool_) else taken[1:-1] in ([], [not flag])
    gradients = [
        func.grad(lambda *given, f=f: total(f(*given)), (0, 1))(tree, WEIGHT)
        for f in (rolled, true_fn if flag else false_fn)
    ]
    assert_close(*gradients)
    assert_close(ng.cond(kind(flag), true_fn, false_fn, (tree, WEIGHT)), rolled(tree, WEIGHT))


@given(st.integers(-3, 6), st.sampled_from([int, np.int8, ng.tensor]))
def test_switch_takes_the_nearest_branch_there_is(index, kind):
    branches = [lambda x, k=k: x * k for k in range(4)]
    x = ng.tensor([1.0, 2.0], requires_grad=True)
    y = func.switch(kind(index), branches, x)
    y.sum().backward()
    factor = min(max(index, 0), 3)
    assert x.grad.tolist() == [factor, factor]


@pytest.mark.parametrize("policy", [None, 3, "log"])
@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_an_endless_loop(policy):
    main = threading.main_thread().ident
    steps = []

    def step(x):
        if len(steps) == 5:
            signal.pthread_kill(main, signal.SIGINT)
        steps.append(1)
        return x + 1

    with pytest.raises(KeyboardInterrupt):
        func.while_loop(lambda x: x > 0, step, ng.ones(2).sum(), checkpoint=policy)
    assert 5 <= len(steps) < 100


@pytest.mark.usefixtures("traced")
def test_a_trace_sees_the_loop_itself():
    """What is compiled computes what the Python loop does, whatever it goes by."""

    def loss(x):
        carry, ys = func.scan(lambda c, r: (c * r, c), x.sum(), x, checkpoint="sqrt")
        return (carry * ys).sum()

    x = ng.tensor([1.0, 2.0, 0.5], dtype=ng.float64)
    assert_close(ng.jit(func.value_and_grad(loss))(x), func.value_and_grad(loss)(x))
    for function in (
        lambda x: func.cond(x > 0, ng.sin, ng.cos, x),
        lambda x: func.switch(x.long(), [ng.sin, ng.cos], x),
        lambda x: func.while_loop(lambda x: x < 9, lambda x: x * 2, x),
        lambda x: func.fori_loop(1, x.long(), lambda i, x: x * i, x),
    ):
        gradient = func.value_and_grad(function)
        assert_close(ng.jit(gradient)(x.sum()), gradient(x.sum()))


@pytest.mark.parametrize("what", ["pred", "index", "cond_fn"])
def test_where_tangents_are_computed_traced_numbers_are_refused(what):
    functions = {
        "pred": lambda x: func.cond(x > 0, ng.sin, ng.cos, x),
        "index": lambda x: func.switch(x.long(), [ng.sin, ng.cos], x),
        "cond_fn": lambda x: func.while_loop(lambda x: x < 9, lambda x: x * 2, x),
    }

    def function(x):
        with ng.autograd.forward_ad.dual_level():
            return functions[what](ng.autograd.forward_ad.make_dual(x, ng.ones_like(x)))

    with pytest.raises(ng.TraceError, match=rf"test_loops.py:\d+.*traced {what}"):
        ng.jit(function)(ng.tensor(1.0))


class Unrolling:
    """What a recorder may do with loops and branches, of lists of leaves: here, unroll them."""

    def __init__(self):
        self.calls = []

    def scan(self, step, carry, columns, length, reverse):
        self.calls.append("scan")
        collected = []
        for k in reversed(range(length)) if reverse else range(length):
            carry, ys = step(carry, [None if c is None else c[k] for c in columns])
            collected.append(ys)
        collected = collected[::-1] if reverse else collected
        return carry, [ng.stack(parts) for parts in zip(*collected, strict=True)]

    def while_loop(self, predicate, step, carry):
        self.calls.append("while_loop")
        for _ in range(3):
            assert predicate(carry).dtype is ng.bool
            carry = step(carry)
        return carry

    def switch(self, index, branches, operands):
        self.calls.append("switch")
        results = [branch(operands) for branch in branches]
        return [
            ng.stack(parts)[index.long().reshape(1)].squeeze(0)
            for parts in zip(*results, strict=True)
        ]


@pytest.mark.usefixtures("traced")
def test_a_recorder_gets_lists_of_leaves(monkeypatch):
    recorder = Unrolling()
    for name in ("scan", "while_loop", "switch"):
        method = getattr(recorder, name)
        monkeypatch.setattr(
            tracer.Tracer, name, lambda _, *given, method=method: method(*given), raising=False
        )

    def program(x):
        carry, ys = func.scan(
            lambda c, r: ({"a": c["a"] * r[0]}, (c["a"], [r[1]])),
            {"a": x.sum()},
            (x, x.unsqueeze(0) + x.unsqueeze(1)),
            reverse=True,
        )
        i, y = func.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), (0 * x[0], x))
        z = func.cond(x[0] > 0, lambda x: (x, x * 2), lambda x: (-x, x), x)
        w = func.switch(x[0].long(), [ng.sin, ng.cos, ng.tanh], x)
        return carry, ys, i, y, z, w

    compiled = ng.jit(program)
    for numbers in ([1.0, 2.0, 0.5], [2.0, -3.0, 1.5]):
        x = ng.tensor(numbers, dtype=ng.float64)
        assert_close(compiled(x), program(x))
    assert recorder.calls == ["scan", "while_loop", "switch", "switch"]

    def differing(x):
        return func.cond(x[0] > 0, lambda x: x, lambda x: x[:2], x)

    with pytest.raises(RuntimeError, match="merging the branches' output"):
        ng.jit(differing)(x)
