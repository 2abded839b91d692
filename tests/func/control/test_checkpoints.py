"""Loops that keep few carries: how many, and that steps run again as they ran before."""

from __future__ import annotations

import gc
import itertools
import math
import tracemalloc
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng
from numgrad import func
from numgrad.func.control.checkpoints import Marks, binomial_marks, read_policy


class Live:
    """Counts the carries that exist at the same time."""

    def __init__(self) -> None:
        self.now = self.most = self.steps = 0

    def watch(self, carry):
        self.now += 1
        self.steps += 1
        self.most = max(self.most, self.now)
        weakref.finalize(carry._array, self._drop)
        return carry

    def _drop(self) -> None:
        self.now -= 1


def scanned(live, count, policy):
    def run(x):
        return func.scan(
            lambda c, _: (live.watch(c.sin()), None), x, length=count, checkpoint=policy
        )[0]

    return run


def repeated(live, count, policy):
    def run(x):
        return func.while_loop(
            lambda i, _: i < count,
            lambda i, c: (i + 1, live.watch(c.sin())),
            (0, x),
            checkpoint=policy,
        )[1]

    return run


DERIVATIVES = {
    "gradient": func.grad,
    "tangent": lambda f: lambda x: func.jvp(f, (x,), (x,))[1],
    "second": lambda f: func.grad(func.grad(f)),
    "forward over reverse": lambda f: lambda x: func.jvp(func.grad(f), (x,), (x,))[1],
    "reverse over forward": lambda f: func.grad(lambda x: func.jvp(f, (x,), (x,))[1]),
}
X = ng.tensor(0.5, dtype=ng.float64)


@pytest.mark.sampled(0.4)
@pytest.mark.parametrize("loop", [scanned, repeated])
@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_memory_grows_as_the_policy_says(derivative, loop):
    order = 1 if derivative in ("gradient", "tangent") else 2
    sizes = {"sqrt": math.isqrt, "log": int.bit_length, func.Binomial(3): lambda n: 3}
    for policy, size in sizes.items():
        if order == 2 and isinstance(policy, func.Binomial):
            continue
        for count in (64, 200) if order == 2 else (64, 500):
            everything, live = Live(), Live()
            expected = DERIVATIVES[derivative](loop(everything, count, None))(X)
            found = DERIVATIVES[derivative](loop(live, count, policy))(X)
            assert found.item() == pytest.approx(expected.item())
            assert everything.most >= count - 1
            assert live.most <= order * (2.5 * size(count) + 3)
            if order == 1:
                assert live.steps <= (2 if policy == "sqrt" else 20) * count


@given(st.integers(1, 300), st.integers(1, 8))
def test_a_fixed_number_of_carries_is_kept(count, carries):
    """And one step's graph, and the carry that a run is at."""
    live = Live()
    if carries == 1:  # where every step is reached from the beginning
        count = min(count, 30)
    func.grad(scanned(live, count, func.Binomial(carries)))(X)
    assert live.most <= carries + 3


@given(st.integers(2, 500), st.integers(2, 8))
def test_binomial_marks_leave_what_can_be_reversed(length, carries):
    repetitions = next(r for r in itertools.count(1) if math.comb(carries + r, r) >= length)
    marks = binomial_marks(0, length, carries)
    assert marks[0] == 0
    assert len(marks) <= carries
    for number, (start, stop) in enumerate(itertools.pairwise([*marks, length])):
        again = repetitions - (stop < length)  # of what is before a mark, one run was made already
        assert 0 < stop - start <= math.comb(carries - number + again, again)


@given(st.integers(1, 2000), st.sampled_from(["sqrt", "log", func.Binomial(5), 7]))
def test_marks_of_a_loop_of_unknown_length_are_as_few(count, policy):
    marks = Marks(read_policy("", policy), None)
    for step in range(count):
        if marks.wants(step):
            marks.keep(step, None)
    steps = [step for step, _ in marks.kept]
    gaps = {b - a for a, b in itertools.pairwise(steps)}
    assert steps[0] == 0
    assert len(gaps) <= 1
    longest = max([*gaps, count - steps[-1]])
    if policy == "sqrt":
        assert max(len(steps), longest) <= 3 * math.sqrt(count)
    elif policy == 7:
        assert longest <= 7
    else:
        budget = 5 if policy != "log" else 2 * max(2, count.bit_length())
        assert len(steps) <= (budget + 1) // 2
        assert longest <= 1 + 4 * count / len(steps)


def test_steps_that_give_nothing_leave_nothing():
    def memory_of(count):
        x = ng.tensor(0.5, requires_grad=True)
        gc.collect()
        tracemalloc.start()
        try:
            y = func.scan(lambda c, _: (c.sin(), None), x, length=count, checkpoint="log")[0]
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
            y.backward()

    memory_of(10)
    assert memory_of(3000) < memory_of(1000) + 50_000  # a list for each step would be 300,000


@pytest.mark.parametrize("policy", [None, 1, 4, "sqrt", "log", func.Binomial(1), func.Binomial(3)])
def test_random_numbers_come_again(policy):
    def run(x):
        def step(c, _):
            factor = ng.rand(())
            return c * factor, c

        carry, ys = func.scan(step, x, length=11, checkpoint=policy)
        return carry + (ys * ys).sum()

    expected = []
    for order in range(3):
        ng.manual_seed(5)
        derivative = run
        for _ in range(order):
            derivative = func.grad(derivative)
        found = derivative(ng.tensor(2.0)).item(), ng.rand(()).item()
        # The same numbers as without anything kept, and the same ones go on behind.
        ng.manual_seed(5)
        factors = [ng.rand(()).item() for _ in range(11)]
        products = list(itertools.accumulate([1.0, *factors], lambda a, b: a * b))
        squares = sum(p * p for p in products[:-1])
        values = 2 * products[-1] + 4 * squares, products[-1] + 4 * squares, 2 * squares
        expected = values[order], ng.rand(()).item()
        assert found == pytest.approx(expected, rel=1e-4)


def test_the_backward_pass_can_run_again_if_the_graph_is_retained():
    x = ng.tensor(0.5, requires_grad=True)
    y = func.scan(lambda c, _: (c * x, None), x, length=5, checkpoint=2)[0]
    first = ng.autograd.grad(y, x, retain_graph=True)
    assert ng.autograd.grad(y, x) == first
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        ng.autograd.grad(y, x)


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("which", ["init", "xs", "captured", "leaf", "constant"])
def test_what_was_written_to_since_is_refused(which, count):
    leaf = ng.ones(3, requires_grad=True)
    constant = ng.ones(3)
    init, captured, xs = leaf * 1, leaf * 2, (leaf * 1).expand(count, 3).clone()

    def step(c, x):
        return c * x * captured * leaf * constant, None

    y = func.scan(step, init, xs, checkpoint=2)[0]
    with ng.no_grad():
        {"init": init, "xs": xs, "captured": captured, "leaf": leaf, "constant": constant}[
            which
        ].mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_body_that_writes_to_its_carry_is_refused():
    x = ng.ones(3, requires_grad=True) * 1
    for policy in (1, "log"):
        with pytest.raises(RuntimeError, match="writes to its carry or its row in place"):
            func.scan(lambda c, _: (c.mul_(2), None), x, length=3, checkpoint=policy)


def test_only_what_depends_on_something_requires_grad():
    w = ng.ones(2, requires_grad=True)
    for policy in (None, 2):
        (a, b, i), ys = func.scan(
            lambda c, x: ((c[0] * w, c[1] * x, c[2] + 1), (c[1], c[2], c[0])),
            (ng.ones(2), ng.ones(2), 0),
            ng.ones(3, 2),
            checkpoint=policy,
        )
        assert [t.requires_grad for t in (a, b, i, *ys)] == [True, False, False, False, False, True]
        assert not func.scan(lambda c, x: (c * x, c), ng.ones(2), ng.ones(3, 2))[0].requires_grad


POLICIES = [None, 2, "log"]


def test_inference_tensors_are_taken_where_nothing_is_recorded():
    with ng.inference_mode():
        x = ng.ones(2)
    w = ng.ones(2, requires_grad=True)
    for policy in POLICIES:
        found = func.scan(lambda c, _: (c * 2, None), x, length=3, checkpoint=policy)[0]
        assert found.tolist() == [8, 8]
        with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
            func.scan(lambda c, _: (c * w, None), x, length=3, checkpoint=policy)


def compiled(c, w):
    return (c * w).sin() + w


def within_a_checkpoint(loop):
    def run(x):
        return ng.utils.checkpoint.checkpoint(lambda x: loop(x).exp(), x, use_reentrant=False)

    return run


def with_hooks(loop):
    def run(x):
        with ng.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2):
            return loop(x) * x

    return run


def in_anomaly_mode(loop):
    def run(x):
        with ng.autograd.detect_anomaly():
            return loop(x)

    return run


SURROUNDINGS = {
    "a compiled body": lambda run: run(ng.jit(compiled)),
    "a checkpoint": lambda run: within_a_checkpoint(run(compiled)),
    "hooks on what is saved": lambda run: with_hooks(run(compiled)),
    "anomaly mode": lambda run: in_anomaly_mode(run(compiled)),
    "a loop": lambda run: (
        lambda x: func.scan(lambda c, _: (run(compiled)(c), None), x, length=3, checkpoint="sqrt")[
            0
        ]
    ),
}


@pytest.mark.usefixtures("traced")
@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
@pytest.mark.parametrize("surroundings", SURROUNDINGS)
def test_derivatives_are_the_same_in_all_surroundings(surroundings):
    found = []
    for policy in POLICIES:
        w = ng.tensor([0.7, 0.2], dtype=ng.float64, requires_grad=True)
        x = ng.tensor([0.3, 0.5], dtype=ng.float64, requires_grad=True)

        def run(body, w=w, policy=policy):
            return lambda x: func.scan(
                lambda c, _: (body(c, w), None), x, length=5, checkpoint=policy
            )[0]

        value = SURROUNDINGS[surroundings](run)(x)
        slopes = ng.autograd.grad(value.sum(), (x, w), create_graph=True)
        second = ng.autograd.grad(sum(s.sum() for s in slopes), (x, w))
        found.append([t.tolist() for t in (value, *slopes, *second)])
    for other in found[1:]:
        assert other == [pytest.approx(row) for row in found[0]]


@pytest.mark.parametrize("policy", POLICIES)
def test_dual_tensors_and_batches_of_gradients(policy):
    def run(x, w):
        return func.scan(lambda c, _: ((c * w).sin() + c.sum(), c), x, length=4, checkpoint=policy)

    forward = ng.autograd.forward_ad
    x, w = (ng.tensor(v, dtype=ng.float64) for v in ([0.3, 0.5], [0.7, 0.2]))
    jacobian = func.jacfwd(lambda x: run(x, w)[0])(x)
    with forward.dual_level():
        dual = forward.make_dual(x, ng.tensor([1.0, 0.0], dtype=ng.float64))
        tangent = forward.unpack_dual(run(dual, w)[0]).tangent
    assert tangent.tolist() == pytest.approx(jacobian[:, 0].tolist())
    leaf = x.clone().requires_grad_()
    rows = ng.eye(2, dtype=ng.float64)
    (batch,) = ng.autograd.grad(run(leaf, w)[0], leaf, rows, is_grads_batched=True)
    assert batch.tolist() == [pytest.approx(row) for row in jacobian.tolist()]
    value = run(leaf, w)[0]
    with forward.dual_level():  # of a cotangent, to a loop that was run before
        cotangent = forward.make_dual(rows[0], rows[1])
        (gradient,) = ng.autograd.grad(value, leaf, cotangent)
        assert forward.unpack_dual(gradient).tangent.tolist() == pytest.approx(batch[1].tolist())


@pytest.mark.parametrize("policy", POLICIES)
def test_complex_carries(policy):
    w = ng.tensor([0.3 + 0.2j, 0.1 - 0.5j], dtype=ng.complex128, requires_grad=True)

    def run(w):
        return func.scan(
            lambda c, _: ((c * w).sin() + w.conj(), c.abs()), w, length=4, checkpoint=policy
        )

    assert ng.autograd.gradcheck(run, w)
    assert ng.autograd.gradgradcheck(run, w)
