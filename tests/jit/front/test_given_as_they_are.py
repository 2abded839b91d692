"""Results of traced functions that are given as they are, and compositions of functions around.

A tensor that a function was given or has captured, and that it returns as it is, has its gradient
like any other; whatever transformations stand between.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad import func
from numgrad.utils.checkpoint import checkpoint
from tests.cases import examples

D = ng.float64
X = ng.tensor([0.3, -0.8, 1.1], dtype=D)
Y = ng.tensor([1.2, 0.5, -0.4], dtype=D)
W = ng.tensor([0.9, 0.4, -0.5], dtype=D, requires_grad=True)
SCALES = ng.tensor([1.0, 2.0, 3.0], dtype=D)

Function = Callable[..., tuple[Any, Any]]


def test_a_captured_tensor_may_be_returned_beside_what_was_computed(traced: None) -> None:
    w = ng.tensor([1.0, 2.0], requires_grad=True)
    same, product = ng.jit(lambda x: (w, x * w))(ng.ones(2))
    assert same is w
    (same.sum() + (product * 3).sum()).backward()
    assert w.grad.tolist() == [4.0, 4.0]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: func.jvp(lambda z: z, (W * 1,), (x,))[0],
        lambda x: func.vjp(lambda z: z, W * 1)[0],
        lambda x: func.vjp(lambda z: z, x)[1](W * 1)[0],
        lambda x: func.vmap(lambda z: W * 1)(ng.stack([x, x]))[0],
        lambda x: func.jvp(lambda z: z, (W,), (x,))[0],
    ],
)
def test_transformations_of_what_gives_its_argument(f: Any, traced: None) -> None:
    (gradient,) = ng.autograd.grad(ng.jit(f)(X).sum(), W)
    assert gradient.tolist() == [1.0, 1.0, 1.0]


# --- drawn compositions ---------------------------------------------------------------------------

BINARY: list[Callable[[Any, Any], Any]] = [
    lambda p, q: p + q,
    lambda p, q: p * q / 2,
    lambda p, q: p - q * W,
    lambda p, q: ng.where(p > q, p, q * 2),
    lambda p, q: ng.stack([p, q]).sum(0),
]
UNARY: list[Callable[[Any], Any]] = [
    lambda p: p,
    lambda p: p.sin(),
    lambda p: p * W,
    lambda p: p.detach() * p,
    lambda p: p.detach(),
    lambda p: p[[2, 0, 1]],
    lambda p: p.clone(),
    lambda p: p.reshape(3, 1).T[0],
    lambda p: p.view(3),
    lambda p: W,
    lambda p: W * 1,
    lambda p: SCALES,
]


def _written(tensor: Any, other: Any, way: int) -> Any:
    """Return a copy with something written to it."""
    copy = tensor + 0 * other  # mapped, if what is written is
    if way == 0:
        copy[1] = other[0]
    elif way == 1:
        copy.mul_(other)
    elif way == 2:
        copy[:2].add_(other[1:])
    else:
        copy.view(3)[0] = 2.0
    return copy


def _with_cosines(f: Function, *given: Any) -> Any:
    return func.jvp(lambda *z: f(*z)[0], given, tuple([each.cos() for each in given]))


def _with_cotangent(f: Function, *given: Any) -> Any:
    value, pull = func.vjp(lambda *z: f(*z)[1], *given)
    return value, pull(value.sin())[0]


def _mapped(f: Function, first: Any, *others: Any) -> Any:
    dims = (0, *[None] * len(others))
    return [
        each.sum(0) for each in func.vmap(f, in_dims=dims)(ng.stack([first, first / 3]), *others)
    ]


CALLS: dict[str, Callable[..., Any]] = {
    "as it is": lambda f, *given: f(*given),
    "jit": lambda f, *given: f(*given),
    "checkpoint": lambda f, *given: checkpoint(f, *given, use_reentrant=False),
    "grad": lambda f, *given: (func.grad(lambda *z: f(*z)[0].sum())(*given), given[0]),
    "jvp": _with_cosines,
    "vjp": _with_cotangent,
    "vmap": _mapped,
}


def drawn(r: random.Random, depth: int, inputs: int, compile: Callable[[Any], Any]) -> Function:
    """Return a random function of some vectors that returns two."""
    steps: list[tuple[Any, list[int]]] = []
    count = inputs
    for _ in range(r.randrange(1, 4)):
        kind = r.choice(["binary", "unary", "unary", "written", *["call"] * (3 if depth else 0)])
        one, other = r.randrange(count), r.randrange(count)
        if kind == "call":
            given = [one, other][: r.randrange(1, 3)]
            how = r.choice(list(CALLS))
            inner = drawn(r, depth - 1, len(given), compile)
            inner = compile(inner) if how == "jit" else inner
            steps.append((lambda *g, how=how, inner=inner: CALLS[how](inner, *g), given))
            count += 2
            continue
        way = r.randrange(12)
        if kind == "binary":
            steps.append((lambda p, q, way=way: [BINARY[way % 5](p, q)], [one, other]))
        elif kind == "unary":
            steps.append((lambda p, way=way: [UNARY[way](p)], [one]))
        else:
            steps.append((lambda p, q, way=way: [_written(p, q, way % 4)], [one, other]))
        count += 1
    first, second = r.randrange(count), r.randrange(count)

    def f(*given: Any) -> tuple[Any, Any]:
        values = list(given)
        for step, places in steps:
            values += step(*[values[k] for k in places])
        return values[first], values[second]

    return f


def derivatives(f: Function) -> Sequence[Any]:
    """Return the values, and the first and second derivatives for `X`, `Y` and `W`."""
    x, y = X.clone().requires_grad_(), Y.clone().requires_grad_()
    values = f(x, y)
    found: list[Any] = [each.detach().clone() for each in values]
    for _ in range(2):
        total = sum(
            [(each * each.sin() * SCALES).sum() for each in values if each.requires_grad],
            ng.zeros(()),
        )
        if not total.requires_grad:
            return [*found, *[None] * (8 - len(found))]
        values = ng.autograd.grad(total, (x, y, W), create_graph=True, allow_unused=True)
        found += values
        values = [each for each in values if each is not None]
    return found


@pytest.mark.parametrize("seed", range(20))
def test_drawn_compositions_have_eager_derivatives(seed: int, traced: None) -> None:
    for number in range(examples(25, in_sample=2)):
        ways = {
            "inner": drawn(random.Random(f"{seed} {number}"), 2, 2, ng.jit),
            "outer": ng.jit(drawn(random.Random(f"{seed} {number}"), 2, 2, lambda f: f)),
            "both": ng.jit(drawn(random.Random(f"{seed} {number}"), 2, 2, ng.jit)),
        }
        expected = derivatives(drawn(random.Random(f"{seed} {number}"), 2, 2, lambda f: f))
        for way, f in ways.items():
            for one, other in zip(derivatives(f), expected, strict=True):
                pair = [np.zeros(3) if t is None else t.detach().numpy() for t in (one, other)]
                np.testing.assert_allclose(*pair, rtol=1e-9, atol=1e-12, err_msg=f"{way} {number}")
