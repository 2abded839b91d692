"""Random numbers in compiled functions: those of eager calls; and where these leave generators."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings

import numgrad as ng
from numgrad import func
from numgrad.base.pytree import flatten
from numgrad.jit.front.trace_function import trace_function
from numgrad.jit.rolling.prepare import prepared
from tests.cases import examples, thinned
from tests.children import ended_well
from tests.jit.interpreter import by_numpy, fold_by_numpy, interpret
from tests.jit.random_programs import DRAWS, GENERATOR, bits, function_of, programs, seeded


def start() -> Any:
    return ng.tensor([0.25, 0.5, 0.75])


def interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function as its graph says it, all passes done, but interpreted and not compiled."""

    def run(*arguments: Any) -> Any:
        leaves, spec = flatten((arguments, {}))
        trace = trace_function(function, spec, leaves)
        sources = trace.sources
        arrays = [leaf.numpy() for leaf in leaves] + [source.words() for source in sources]
        found = interpret(prepared(trace.graph), arrays, by_numpy, fold_by_numpy)
        for source, words in zip(sources, found[len(found) - len(sources) :], strict=True):
            source.set_words(words)
        return [ng.tensor(array) for array in found[: len(found) - len(sources)]]

    return run


def numbers(function: Callable[..., Any], times: int = 2) -> list[Any]:
    """Return what calls of a function give, without how it lies in memory."""
    seeded()
    found = []
    for _ in range(times):
        leaves, _ = flatten(function(start()))
        found += [np.asarray(leaf.detach()).tolist() for leaf in leaves]
    return [*found, ng.get_rng_state().tolist(), GENERATOR.get_state().tolist()]


def called(function: Callable[..., Any], times: int = 3) -> list[Any]:
    """Return all there is of what calls of a function give, one after the other."""
    seeded()
    return [bits(function(start())) for _ in range(times)]


def assert_close(found: list[Any], wanted: list[Any]) -> None:
    """Compare `numbers` of gradients, which add up in another order; all else is the same."""
    first, *rest = wanted
    scale = np.nan_to_num(np.abs(first)).max()
    np.testing.assert_allclose(found[0], first, 1e-4, 1e-4 * scale)
    np.testing.assert_equal(found[1:], rest)


def differentiated(function: Callable[..., Any]) -> list[Any]:
    """Return the gradient of a call, what the call gives, and where the generators are then."""
    seeded()
    w = start().requires_grad_()
    result = function(w)
    (first,) = ng.autograd.grad(result.sum(), w)
    return [first.tolist(), *bits(result)]


@pytest.mark.parametrize("name", DRAWS)
def test_calls_draw_what_eager_calls_do(name: str) -> None:
    draw = DRAWS[name]
    np.testing.assert_equal(numbers(interpreted(draw)), numbers(draw))
    everywhere = lambda w: func.fori_loop(0, 3, lambda i, c: c * draw(c).to(c.dtype), w)  # noqa: E731
    np.testing.assert_equal(numbers(interpreted(everywhere)), numbers(everywhere))


def test_compiled_calls_draw_what_eager_calls_do() -> None:
    def all_of_them(w: Any) -> Any:
        return {name: draw(w) for name, draw in DRAWS.items()}

    assert called(ng.jit(all_of_them)) == called(all_of_them)


def test_loops_draw_what_eager_loops_do() -> None:
    def all_of_them(w: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            found = [draw(c) for draw in thinned([*DRAWS.values()], 3)]
            return c * found[0].to(c.dtype), found

        return func.scan(step, w, length=5)

    assert called(ng.jit(all_of_them)) == called(all_of_them)


@given(programs())
@settings(deadline=None, max_examples=examples(60))
def test_programs_draw_what_eager_ones_do(program: Any) -> None:
    function = function_of(program)
    np.testing.assert_equal(numbers(interpreted(function)), numbers(function))


@given(programs(("scan", "fori", "while", "cond", "checkpoint")))
@settings(deadline=None, max_examples=examples(40))
def test_their_gradients_draw_nothing_again(program: Any) -> None:
    def total(w: Any) -> Any:
        found = function_of(program)(w)
        return found[0] + found[1] + found[2]

    gradient = func.grad_and_value(total)
    try:
        expected = numbers(gradient, 1)
    except RuntimeError as error:  # the numbers grew until they are none
        assume("expects all elements" not in str(error) and "Expected p_in" not in str(error))
        raise
    assert_close(numbers(interpreted(gradient), 1), expected)


@given(programs(("scan", "while", "cond")))
@settings(deadline=None, max_examples=examples(2))
def test_compiled_programs_draw_what_eager_ones_do(program: Any) -> None:
    function = function_of(program)
    assert called(ng.jit(function)) == called(function)


@given(programs(("scan", "while", "cond")))
@settings(deadline=None, max_examples=examples(2))
def test_gradients_of_compiled_programs_are_those_of_eager_ones(program: Any) -> None:
    function = function_of(program)
    assert_close(differentiated(ng.jit(function)), differentiated(function))


MAPS: dict[str, Callable[[Any], Any]] = {
    "jvp": lambda w: func.jvp(lambda v: v * ng.randn(3) * v, (w,), (w,)),
    "vjp": lambda w: func.vjp(lambda v: v * ng.randn(3) * v, w)[1](w)[0],
    "hessian": lambda w: func.hessian(lambda v: (v * v * v * ng.randn(3)).sum())(w),
    "jacfwd": lambda w: func.jacfwd(lambda v: v * v * ng.rand(3), randomness="same")(w),
    "vmap": lambda w: func.vmap(lambda v: v * ng.rand(2), randomness="different")(w),
    "vmap, same": lambda w: func.vmap(lambda v: v * ng.rand(2), randomness="same")(w),
    "vmap, normal": lambda w: func.vmap(lambda v: ng.normal(v, v), randomness="different")(w),
    "vmap, bernoulli": lambda w: func.vmap(ng.bernoulli, randomness="different")(w),
    "vmap, randperm": lambda w: func.vmap(lambda v: v * ng.randperm(3), randomness="different")(w),
    "vmap, grad": lambda w: func.vmap(
        func.grad(lambda v: v * v * ng.randn(())), randomness="different"
    )(w),
}


@pytest.mark.parametrize("name", MAPS)
def test_transformations_draw_what_eager_ones_do(name: str) -> None:
    np.testing.assert_equal(numbers(interpreted(MAPS[name])), numbers(MAPS[name]))


@pytest.mark.parametrize("seed", range(3))
def test_a_condition_that_draws_is_asked_once_a_turn(seed: int) -> None:
    def until(x: Any) -> Any:
        return ng.func.while_loop(
            lambda n, _: ng.rand(()) < 0.8, lambda n, u: (n + 1, u + ng.rand(())), (x, x * 0.5)
        )

    x = ng.tensor(0.0)
    ng.manual_seed(seed)
    expected = until(x), ng.rand(2)
    ng.manual_seed(seed)
    found = ng.jit(until)(x), ng.rand(2)
    assert [each.tolist() for each in (*found[0], found[1])] == [
        each.tolist() for each in (*expected[0], expected[1])
    ]


@pytest.mark.parametrize("checkpoint", [None, 3, "sqrt", "log"])
def test_loops_with_checkpoints_draw_nothing_again(checkpoint: Any) -> None:
    def loss(w: Any) -> Any:
        step = lambda c, _: (c * ng.rand(3), c * ng.randn(3))  # noqa: E731
        last, ys = func.scan(step, w, length=12, checkpoint=checkpoint)
        return last[0] * ys[3, 1] + last[2] * ys[7, 2]

    gradient = func.grad_and_value(loss)
    assert_close(numbers(interpreted(gradient), 1), numbers(gradient, 1))


def test_a_python_loop_with_draws_is_rolled_up() -> None:
    def steps(count: int) -> Callable[[Any], Any]:
        def run(w: Any) -> Any:
            for _ in range(count):
                w = w * 0.5 + ng.randn(3) * w * ng.rand(())
            return w

        return run

    sizes = [len(ng.jit(steps(count)).lower(start()).graph.values()) for count in (50, 200)]
    assert sizes[0] == sizes[1] < 20


# --- generators -----------------------------------------------------------------------------------


def test_a_generator_may_be_an_argument() -> None:
    def function(w: Any, generator: Any) -> Any:
        return w * ng.randn(3, generator=generator) + ng.rand(3)

    compiled = ng.jit(function)
    for seed in range(4):
        one, other = (ng.Generator().manual_seed(seed) for _ in range(2))
        seeded()
        wanted = [function(start(), one).tolist() for _ in range(2)], ng.rand(1).tolist()
        seeded()
        found = [compiled(start(), other).tolist() for _ in range(2)], ng.rand(1).tolist()
        assert found == wanted
        assert one.get_state().tolist() == other.get_state().tolist()
    assert compiled.cache_info().misses == 1


def test_a_captured_generator_may_be_seeded_and_replaced() -> None:
    holder = {"generator": ng.Generator()}

    def function(w: Any) -> Any:
        return w + ng.rand(3, generator=holder["generator"])

    compiled, wanted, found = ng.jit(function), [], []
    for results, call in ((wanted, function), (found, compiled)):
        for seed in range(9):
            if seed % 3 == 0:
                holder["generator"] = ng.Generator()
            if seed % 2 == 0:
                holder["generator"].manual_seed(seed)
            results.append(call(start()).tolist())
    assert found == wanted


def test_one_generator_given_in_two_ways_is_refused() -> None:
    def function(w: Any, one: Any, other: Any) -> Any:
        return w + ng.rand(3, generator=one) * ng.rand(3, generator=other)

    compiled, generator = ng.jit(function), ng.Generator()
    compiled(start(), ng.Generator(), generator)
    with pytest.raises(ng.TraceError, match="have it come by one way"):
        compiled(start(), generator, generator)
    generator.manual_seed(0)  # whose lock nobody holds
    assert ng.rand(1, generator=generator).shape == (1,)


@pytest.mark.parametrize(
    ("ask", "what"),
    [
        (lambda: ng.initial_seed(), "its seed"),
        (lambda: ng.seed(), "a new seed"),
        (lambda: ng.get_rng_state(), "its state"),
        (lambda: ng.set_rng_state(ng.zeros(48, dtype=ng.uint8)), "another state"),
        (lambda: GENERATOR.numpy, "its generator of NumPy's"),
    ],
)
def test_what_a_generator_can_not_say_while_a_function_is_traced(ask: Any, what: str) -> None:
    with pytest.raises(ng.TraceError, match=f"asks a generator of random numbers for {what}"):
        ng.jit(lambda w: (ask(), w)[1])(start())


def test_threads_share_out_what_there_is_to_draw() -> None:
    compiled = ng.jit(lambda w: func.fori_loop(0, 20, lambda i, c: c + ng.rand(()), w))
    seeded()
    wanted = sorted(compiled(ng.tensor(0.0)).item() for _ in range(80)), ng.rand(1).item()
    seeded()
    found: list[float] = []
    work = lambda: found.extend(compiled(ng.tensor(0.0)).item() for _ in range(20))  # noqa: E731
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (sorted(found), ng.rand(1).item()) == wanted


# --- around compiled functions --------------------------------------------------------------------


def sampled(w: Any) -> Any:
    return w * w * ng.randn(3) + ng.rand(())


def jacobian(function: Callable[..., Any], w: Any) -> Any:
    given_ = w.requires_grad_()
    return ng.autograd.grad(function(given_), given_, ng.eye(3), is_grads_batched=True)[0]


AROUND: dict[str, Callable[..., Any]] = {
    "in another": lambda f, w: ng.jit(lambda v: f(v) * ng.rand(3))(w),
    "pickled": lambda f, w: (pickle.loads(pickle.dumps(f)) if f is not sampled else f)(w),
    "jvp": lambda f, w: func.jvp(f, (w,), (w,)),
    "hessian": lambda f, w: func.hessian(lambda v: f(v).sum())(w),
    "gradients side by side": jacobian,
    "vmap": lambda f, w: func.vmap(f, randomness="different")(ng.stack((w, w))),
}


@pytest.mark.parametrize("name", AROUND)
def test_transformations_of_compiled_functions(name: str) -> None:
    one, other = (lambda w, f=f: AROUND[name](f, w) for f in (sampled, ng.jit(sampled)))
    if name == "in another":
        one = lambda w: sampled(w) * ng.rand(3)  # noqa: E731
    assert called(other) == called(one)


def test_a_backward_pass_that_draws_does_so_when_it_runs() -> None:
    class Noisy(ng.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * ng.rand(3)

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient * ng.rand(3)

    def function(w: Any) -> Any:
        return Noisy.apply(w) * ng.rand(3)

    def run(call: Any) -> list[Any]:
        seeded()
        found = []
        for _ in range(3):
            w = start().requires_grad_()
            call(w).sum().backward()
            found.append(bits(w.grad))
        return found

    assert run(ng.jit(function)) == run(function)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda w: ng.bernoulli(w * 2), r"Expected p_in >= 0 && p_in <= 1"),
        (lambda w: w.clone().bernoulli_(-w), r"Expected p_in >= 0 && p_in <= 1"),
        (lambda w: ng.normal(w, w - 0.6), "normal expects all elements of std >= 0.0"),
        (
            lambda w: func.fori_loop(0, 9, lambda i, c: ng.normal(c * 0, c - 0.1).abs(), w),
            "normal expects all elements of std >= 0.0",
        ),
        (lambda w: ng.randint(3, 3, (2,)), "random_ expects 'from' to be less than 'to'"),
        (lambda w: ng.rand(2, dtype=ng.int64), "check_uniform_bounds"),
        (lambda w: w.clone().exponential_(-1.0), "exponential_ expects lambda > 0.0"),
    ],
)
def test_errors_are_those_of_eager_calls(function: Any, words: str) -> None:
    for call in (function, ng.jit(function)):
        seeded()
        with pytest.raises(RuntimeError, match=words):
            call(start())


# --- what it is for -------------------------------------------------------------------------------


def elbo(mean: Any, log_std: Any, data: Any) -> Any:
    """Return the evidence bound of a normal posterior, by samples that are reparametrised."""

    def sample(total: Any, _: Any) -> Any:
        z = mean + log_std.exp() * ng.randn(2, dtype=ng.float64)
        return total - 0.5 * ((data - z) ** 2).sum() - 0.5 * (z * z).sum(), None

    total, _ = func.scan(sample, ng.zeros((), dtype=ng.float64), length=16)
    return total / 16 + log_std.sum()


def test_reparametrised_samples_differentiate() -> None:
    data = ng.tensor([[0.5, -1.0], [1.5, 0.25], [1.0, 0.0]], dtype=ng.float64)
    point = [ng.tensor([0.3, -0.2], dtype=ng.float64), ng.tensor([-0.5, 0.1], dtype=ng.float64)]
    gradient = ng.jit(func.grad(elbo, argnums=(0, 1)))
    seeded()
    found = gradient(*point, data)
    eager = (seeded(), func.grad(elbo, argnums=(0, 1))(*point, data))[1]
    value = ng.jit(elbo)
    for k, one in enumerate(found):
        assert one.tolist() == pytest.approx(eager[k].tolist(), rel=1e-12)
        for at in range(2):
            ends = []
            for step in (1e-5, -1e-5):
                moved = [each.clone() for each in point]
                moved[k][at] += step
                seeded()  # derivatives take what is drawn for constants
                ends.append(value(*moved, data).item())
            assert one[at].item() == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6)


SCRIPT = """
import numgrad as ng
def chain(x):
    def step(x, _):
        proposal = x + ng.randn(2)
        accepted = ng.rand(()).log() < 0.5 * ((x * x).sum() - (proposal * proposal).sum())
        x = ng.where(accepted, proposal, x)
        return x, x
    return ng.func.scan(step, x, length=50)[1]
ng.manual_seed(3)
wanted = chain(ng.zeros(2)).tolist(), ng.get_rng_state().tolist()
ng.manual_seed(3)
assert (ng.jit(chain)(ng.zeros(2)).tolist(), ng.get_rng_state().tolist()) == wanted
"""


def test_kernels_from_the_disk_draw_the_same(tmp_path: Any) -> None:
    for _ in range(2):
        assert ended_well(SCRIPT, NUMGRAD_CACHE_DIR=str(tmp_path)) == ""
