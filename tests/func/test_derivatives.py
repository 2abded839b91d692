"""Derivatives against finite differences and against each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad import func

EPS = 1e-6
MATRIX = ng.from_numpy(np.random.default_rng(3).standard_normal((3, 3)))


def in_place(x: Any) -> Any:
    """Write into a copy, through views too, and go on from there."""
    y = ng.zeros(3, dtype=x.dtype)
    y[0] = x[1] * x[0]
    y[1:] = ng.sin(x[1:])
    z = y.view(3, 1)
    z.mul_(x[2]).add_(1)
    return y.exp()


def in_place_of_values(x: Any) -> Any:
    """Write constants over a part of something."""
    y = x * x
    y[1] = 5.0
    return ng.stack([y, y.t()]).cumsum(0)


# From three numbers to some; smooth where they are between 0.2 and 2 and differ.
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: ng.tanh(x) * ng.exp(-x * x) + x.sqrt() / 3,
    "broadcast": lambda x: x.unsqueeze(1) ** x - ng.atan2(x.unsqueeze(1), x + 1),
    "products": lambda x: (MATRIX @ x) * (x @ MATRIX).sin(),
    "reductions": lambda x: ng.stack([x.sum(), x.prod(), x.std(), x.logsumexp(0), x.max()]),
    "softmax": lambda x: ng.softmax(x * x, 0).log(),
    "selection": lambda x: ng.where(x > 1, x**3, ng.sin(x)).sort().values.flip(0),
    "indexing": lambda x: x[[0, 2, 2]] * x[1:].repeat(2)[:3] + x.cumprod(0),
    "views": lambda x: x.expand(2, 3).t().reshape(6).as_strided((2, 3), (1, 2)) ** 2,
    "casts": lambda x: (x.to(ng.complex128) * (1 + 2j)).abs() + (x * 1j).exp().real,
    "in place": in_place,
    "constants in place": in_place_of_values,
    "nothing": lambda x: ng.ones(2, dtype=ng.float64),
    "inner gradient": lambda x: func.grad(lambda y: (x * y**3).sum())(x * x),
    "inner jvp": lambda x: func.jvp(lambda y: x * y**3, (x.sin(),), (x,))[1],
    "inner vjp": lambda x: func.vjp(lambda y: (x * y).cumsum(0), x**2)[1](x)[0],
}
both = pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
# None of them is within a step of a kink, which is 1 for some function.
points = st.permutations([0.3, 0.7, 1.1, 1.6]).flatmap(
    lambda base: st.floats(-0.09, 0.09).map(lambda d: ng.tensor(base[:3], dtype=ng.float64) + d)
)
vectors = st.lists(st.floats(-2, 2), min_size=3, max_size=3).map(
    lambda v: ng.tensor(v, dtype=ng.float64)
)


def numerical_jacobian(f: Callable[[Any], Any], x: Any) -> np.ndarray:
    columns = []
    for j in range(3):
        step = np.zeros(3)
        step[j] = EPS
        upper, lower = (f(x + ng.from_numpy(sign * step)).numpy() for sign in (1, -1))
        columns.append((upper - lower) / (2 * EPS))
    return np.stack(columns, -1)


def scalar(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def weighted(x: Any) -> Any:
        y = f(x)
        weights = ng.from_numpy(np.cos(np.arange(y.numel())).reshape(tuple(y.shape)))
        return (y * y * weights).sum()

    return weighted


@both
@settings(max_examples=5)
@given(x=points)
def test_jacobians_are_finite_differences(f: Any, x: Any) -> None:
    expected = numerical_jacobian(f, x)
    np.testing.assert_allclose(func.jacrev(f)(x).numpy(), expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(func.jacfwd(f)(x).numpy(), expected, rtol=1e-6, atol=1e-7)


@both
@settings(max_examples=3)
@given(x=points, v=vectors)
def test_second_derivatives_agree(f: Any, x: Any, v: Any) -> None:
    loss = scalar(f)
    expected = numerical_jacobian(func.grad(loss), x)
    hessian = func.hessian(loss)(x).numpy()
    np.testing.assert_allclose(hessian, expected, rtol=1e-5, atol=1e-5)
    tight = {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(func.jacrev(func.jacrev(loss))(x).numpy(), hessian, **tight)
    np.testing.assert_allclose(func.jacrev(func.jacfwd(loss))(x).numpy(), hessian, **tight)
    np.testing.assert_allclose(func.jacfwd(func.jacfwd(loss))(x).numpy(), hessian, **tight)
    product = hessian @ v.numpy()
    np.testing.assert_allclose(func.hvp(loss, (x,), (v,)).numpy(), product, **tight)
    slope = func.grad(lambda x: func.jvp(loss, (x,), (v,))[1])(x)
    np.testing.assert_allclose(slope.numpy(), product, **tight)


@both
@settings(max_examples=5)
@given(x=points, v=vectors, data=st.data())
def test_vjp_is_the_transpose_of_jvp(f: Any, x: Any, v: Any, data: Any) -> None:
    output, tangent = func.jvp(f, (x,), (v,))
    again, vjp_fn = func.vjp(f, x)
    seed = data.draw(st.integers(0, 99))
    u = ng.from_numpy(np.random.default_rng(seed).standard_normal(tuple(output.shape)))
    np.testing.assert_array_equal(output.numpy(), again.numpy())
    left, right = (u * tangent).sum().item(), (vjp_fn(u)[0] * v).sum().item()
    np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9)
    linear = func.linearize(f, x)[1]
    np.testing.assert_allclose(linear(v).numpy(), tangent.numpy(), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(linear(2 * v).numpy(), 2 * tangent.numpy(), rtol=1e-12, atol=1e-300)


@both
def test_derivatives_can_be_checked_by_gradcheck(f: Any) -> None:
    x = ng.tensor([0.4, 0.9, 1.3], dtype=ng.float64, requires_grad=True)
    loss = scalar(f)
    assert ng.autograd.gradcheck(lambda x: (x * func.grad(loss)(x)).sum(), (x,))
    assert ng.autograd.gradcheck(lambda x: (x * func.jvp(loss, (x,), (x,))[1]).sum(), (x,))


@given(x=st.floats(-2, 2), y=st.floats(-2, 2), z=st.floats(-2, 2))
def test_perturbations_are_not_confused(x: float, y: float, z: float) -> None:
    x, y, z = (ng.tensor(v, dtype=ng.float64) for v in (x, y, z))
    derivative = (func.grad, lambda f: lambda t: func.jvp(f, (t,), (ng.ones_like(t),))[1])
    for outer in derivative:
        for middle in derivative:
            for inner in derivative:
                # d/dx of x d/dy of y d/dz of x y z^2 = d/dx of x d/dy of 2 x y^2 z = 8 x y z
                found = outer(
                    lambda a: a * middle(lambda b: b * inner(lambda c: a * b * c * c)(z))(y)
                )(x)
                expected = (8 * x * y * z).item()
                np.testing.assert_allclose(found.item(), expected, rtol=1e-12, atol=1e-300)


def test_siskind_and_pearlmutters_case() -> None:
    one = ng.tensor(1.0)
    jvp = lambda f: lambda t: func.jvp(f, (t,), (ng.ones_like(t),))[1]  # noqa: E731
    for outer in (func.grad, jvp):
        for inner in (func.grad, jvp):
            assert outer(lambda x: x * inner(lambda y: x + y)(one))(one).item() == 1


@given(extra=st.lists(st.sampled_from(["tensor", "array", "text"]), min_size=1, max_size=2))
def test_cotangents_are_one_argument(extra: list[str]) -> None:
    x = ng.tensor(2.0)
    kinds = {"tensor": x, "array": np.ones(2), "text": "x"}
    _, pull = func.vjp(lambda x: (x, x), x)
    with pytest.raises(TypeError, match="cotangents are one argument"):
        pull(x, *[kinds[each] for each in extra])
    assert pull((x, x), False)[0].item() == 4


def test_errors_of_linearize_name_it() -> None:
    x = ng.ones(3)
    for call in (
        lambda: func.linearize(lambda x: 3, x),
        lambda: func.linearize(lambda x: x),
        lambda: func.linearize(lambda x: x, "x"),
    ):
        with pytest.raises(RuntimeError, match=r"^linearize\(func, \*primals\): "):
            call()
