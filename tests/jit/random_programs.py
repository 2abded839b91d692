"""Programs that draw random numbers wherever there is a place to, for tests to compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

import numgrad as ng
from numgrad.base.pytree import flatten

__all__ = ["DRAWS", "GENERATOR", "bits", "function_of", "programs", "seeded"]

GENERATOR = ng.Generator()  # which some programs draw from, beside the default one

# What is drawn, for a tensor of three elements in [0, 1). All that is left to compute is exact.
DRAWS: dict[str, Callable[[Any], Any]] = {
    "rand": lambda w: ng.rand(3),
    "rand, float64": lambda w: ng.rand((), dtype=ng.float64),
    "rand, complex": lambda w: ng.rand(3, dtype=ng.complex64).real,
    "randn": lambda w: ng.randn(3),
    "randn, float64": lambda w: ng.randn(2, 3, dtype=ng.float64)[1],
    "randn, complex": lambda w: ng.randn(3, dtype=ng.complex128).imag,
    "randint": lambda w: ng.randint(-3, 9, (3,)),
    "randint, many": lambda w: ng.randint(2**40, (1,)),
    "randint, small": lambda w: ng.randint(0, 200, (3,), dtype=ng.uint8),
    "randperm": lambda w: ng.randperm(3),
    "rand_like": lambda w: ng.rand_like(w),
    "randn_like": lambda w: ng.randn_like(w.expand(2, 3).t()).sum(1),
    "randint_like": lambda w: ng.randint_like(w, 5),
    "normal": lambda w: ng.normal(w, 0.5),
    "normal, std": lambda w: ng.normal(0.5, w * w),
    "normal, both": lambda w: ng.normal(w, w.abs()),
    "normal, none": lambda w: ng.normal(1.0, 2.0, (3,)),
    "bernoulli": lambda w: ng.bernoulli(w.clamp(0, 1)),
    "bernoulli, number": lambda w: ng.bernoulli(w, 0.3),
    "bernoulli_": lambda w: ng.empty(3).bernoulli_(0.4),
    "bernoulli_, tensor": lambda w: w.clone().bernoulli_(w.clamp(0, 1)),
    "uniform_": lambda w: w.clone().uniform_(-1, 2),
    "normal_": lambda w: w.clone().normal_(1, 0.5),
    "random_": lambda w: ng.empty(3).random_(4),
    "exponential_": lambda w: ng.empty(3).exponential_(),
    "geometric_": lambda w: ng.empty(3).geometric_(0.2),
    "of another": lambda w: ng.rand(3, generator=GENERATOR),
    "of both": lambda w: ng.randn(3, generator=GENERATOR) * ng.rand(1),
    "mask": lambda w: w * (ng.rand(3) < 0.5),
}

Program = list[tuple[Any, ...]]


def programs(places: tuple[str, ...] = ()) -> Any:
    """Return a strategy for programs: lists of what to do, some in places with programs inside."""
    names = st.sampled_from(sorted(DRAWS))
    draw = st.tuples(st.sampled_from(["draw", "draw", "draw unused"]), names)
    seed = st.tuples(st.just("seed"), st.integers(0, 99))
    leaf = st.one_of(draw, draw, draw, draw, draw, seed)
    kinds = places or ("scan", "fori", "while", "cond", "python", "checkpoint")

    def inside(children: Any) -> Any:
        body = st.lists(children, min_size=1, max_size=3)
        return st.one_of(leaf, st.tuples(st.sampled_from(kinds), st.integers(2, 4), body))

    return st.lists(st.recursive(leaf, inside, max_leaves=5), min_size=1, max_size=4)


def function_of(program: Program) -> Callable[[Any], Any]:
    """Return the function that does what a program says."""

    def run(w: Any) -> Any:
        for step in program:
            w = _step(w, *step)
        return w * 1  # no argument as it stands

    return run


def _step(w: Any, kind: str, *given: Any) -> Any:
    if kind == "draw":
        return w * 0.5 + DRAWS[given[0]](w).to(w.dtype) * w
    if kind == "draw unused":
        DRAWS[given[0]](w)
        return w
    if kind == "seed":
        ng.manual_seed(given[0])
        return w
    count, body = given[0], function_of(given[1])
    if kind == "scan":
        w, ys = ng.func.scan(lambda c, x: (body(c) + x, c * ng.rand(())), w, ng.rand(count, 3))
        return w - ys[count - 1]
    if kind == "fori":
        return ng.func.fori_loop(0, count, lambda i, c: body(c), w)
    if kind == "while":
        start = (ng.tensor(0.0), w)
        following = lambda t, v: (t + ng.rand(()), body(v))  # noqa: E731
        return ng.func.while_loop(lambda t, v: t < 0.5 * count, following, start)[1]
    if kind == "cond":
        return ng.cond(ng.rand(()) < 0.5, lambda v: body(v), lambda v: v * ng.rand(1), (w,))
    if kind == "checkpoint":
        return ng.utils.checkpoint.checkpoint(body, w, use_reentrant=False)
    for _ in range(count * 4):
        w = body(w) * 0.5
    return w


def seeded() -> None:
    """Have all generators begin anew."""
    ng.manual_seed(11)
    GENERATOR.manual_seed(12)


def bits(result: Any) -> list[Any]:
    """Return all that there is of results, and where the generators are."""
    leaves, _ = flatten(result)
    found = [(each.dtype, each.shape, each.stride(), each.detach().tolist()) for each in leaves]
    return [*map(repr, found), ng.get_rng_state().tolist(), GENERATOR.get_state().tolist()]
