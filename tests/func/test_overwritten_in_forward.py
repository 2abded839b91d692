"""Forward mode of functions that overwrite what was saved, against dual numbers and by hand."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

import numgrad as ng
from numgrad.autograd import forward_ad
from numgrad.graph.modes.state import interceptors, modes

func = ng.func
x = ng.tensor([[0.3, 1.2, -0.7], [0.9, -0.4, 2.0]], dtype=ng.float64)
v = ng.tensor([[1.0, 0.5, -1.0], [0.2, 0.3, 0.7]], dtype=ng.float64)

MAKE: dict[str, Callable[[Any, Any], Any]] = {
    "exp": lambda a, b: (a * 0.1).exp(),
    "tanh": lambda a, b: a.tanh(),
    "square": lambda a, b: a * a,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / (b * b + 1),
    "pow": lambda a, b: (a * a + 1) ** b.sin(),
    "softmax": lambda a, b: a.softmax(-1),
    "cumprod": lambda a, b: a.cumprod(0),
    "norm": lambda a, b: (a * a + 1).sum().sqrt() * b,
    "matmul": lambda a, b: a @ (b.t() @ a),
    "sort": lambda a, b: a.sort(0)[0],
    "view": lambda a, b: a.reshape(-1).view(2, 3),
    "turned": lambda a, b: a.t().reshape(2, 3),
    "taken": lambda a, b: a[ng.tensor([1, 0])] * b,
    "solved": lambda a, b: ng.linalg.solve(ng.eye(2) + a @ a.t(), b),
}
WRITE: dict[str, Callable[[Any, Any], Any]] = {
    "mul_": lambda a, b: a.mul_(b),
    "add_": lambda a, b: a.add_(b),
    "sin_": lambda a, b: a.sin_(),
    "sigmoid_": lambda a, b: a.sigmoid_(),
    "zero_": lambda a, b: a.zero_(),
    "copy_": lambda a, b: a.copy_(b),
    "pow_": lambda a, b: a.pow_(2),
    "item": lambda a, b: a.__setitem__((..., 0), 0.5),
    "row": lambda a, b: a[0].mul_(b[1]),
    "index_add_": lambda a, b: a.index_add_(0, ng.tensor([1]), b[:1]),
    "no_grad": lambda a, b: _without_grad(a, b),
}


def _without_grad(a: Any, b: Any) -> None:
    with ng.no_grad():
        a.mul_(b)


def _program(draw: Random) -> Callable[[Any], Any]:
    """Return a function of x that overwrites most of what it computes."""
    steps = []
    for _ in range(draw.randint(3, 9)):
        name = draw.choice([*MAKE] if draw.random() < 0.55 else [*WRITE])
        steps.append((name, draw.random(), draw.random()))

    def program(x: Any) -> Any:
        values = [x * 1]
        for name, first, second in steps:
            a = values[int(first * len(values))]
            b = values[int(second * len(values))]
            if name in MAKE:
                values.append(MAKE[name](a, b))
            else:
                WRITE[name](a, b.clone())
        return tuple([each * 1 for each in values[-3:]])

    return program


def _dual(program: Callable[[Any], Any]) -> list[Any]:
    with forward_ad.dual_level():
        outputs = program(forward_ad.make_dual(x, v))
        parts = [forward_ad.unpack_dual(each) for each in outputs]
    return [part.tangent if part.tangent is not None else ng.zeros(2, 3) for part in parts]


WAYS: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "jvp": lambda f: func.jvp(f, (x,), (v,))[1],
    "linearize": lambda f: func.linearize(f, x)[1](v),
    "jacfwd": lambda f: [(each * v).sum((-2, -1)) for each in func.jacfwd(f)(x)],
    "jit": lambda f: ng.jit(lambda x, v: func.jvp(f, (x,), (v,))[1])(x, v),
    "mapped": lambda f: [
        each[0] for each in func.vmap(lambda x, v: func.jvp(f, (x,), (v,))[1])(x[None], v[None])
    ],
}


def _assert_close(found: Any, wanted: Any) -> None:
    assert all(map(ng.allclose, found, [each.to(ng.float64) for each in wanted])), (found, wanted)


@pytest.mark.parametrize("way", WAYS)
def test_tangents_of_programs_that_overwrite_what_was_saved(way: str) -> None:
    for seed in range(4 if way == "jit" else 15):
        program = _program(Random(seed))
        _assert_close(WAYS[way](program), _dual(program))
    assert modes.overwritten is None and not interceptors


def test_the_second_tangent_is_that_of_the_function() -> None:
    step = 1e-4
    for seed in range(8):
        program = _program(Random(seed + 100))

        def once(x: Any, program: Any = program) -> Any:
            return func.jvp(program, (x,), (v,))[1]

        pairs = zip(once(x + step * v), once(x - step * v), strict=True)
        wanted = [(after - before) / (2 * step) for after, before in pairs]
        for found, each in zip(func.jvp(once, (x,), (v,))[1], wanted, strict=True):
            assert ng.allclose(found, each, 1e-4, 1e-4), seed


def test_what_forward_mode_keeps_is_no_help_to_reverse_mode() -> None:
    def program(x: Any) -> Any:
        y = x.exp()
        z = y.sin()
        y.mul_(2)
        return (z + y).sum()

    wanted = (x.exp().cos() + 2) * x.exp() * v
    assert ng.allclose(func.jvp(program, (x,), (v,))[1], wanted.sum())
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        func.grad(program)(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        func.jvp(func.grad(program), (x,), (v,))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        func.grad(lambda x: func.jvp(program, (x,), (v,))[0])(x)


def test_what_is_saved_again_after_a_write_is_kept_again() -> None:
    def program(x: Any) -> Any:
        y, total = x * 1, 0
        for number in range(1, 5):
            total = total + y.sin() * number
            y.mul_(x)
        y.zero_()
        return total

    wanted = sum(n * n * x ** (n - 1) * (x**n).cos() for n in range(1, 5)) * v
    assert ng.allclose(func.jvp(program, (x,), (v,))[1], wanted)


def test_a_loop_of_writes_copies_what_was_saved_and_no_more() -> None:
    copied: list[int] = []

    def program(x: Any, saves: bool) -> Any:
        rows = ng.zeros(50, 3, dtype=ng.float64)
        for number in range(50):
            rows[number] = x[0] * number
        total = (rows * rows if saves else rows).sum()
        rows.zero_()
        copied.append(len(modes.overwritten.nodes))
        return total

    for saves, wanted in ((False, v[0] * 1225), (True, 2 * x[0] * v[0] * 40425)):
        found = func.jvp(lambda x, saves=saves: program(x, saves), (x,), (v,))[1]
        assert ng.allclose(found, wanted.sum())
    assert copied == [0, 1]
