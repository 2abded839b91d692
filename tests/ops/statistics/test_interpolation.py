"""Interpolation and splines beside NumPy and SciPy: values, derivatives, wrong arguments."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import numgrad as ng

NAN = float("nan")
ENDS = ["not-a-knot", "natural", "clamped", (1, 0.5), (2, -1.5)]


def table(random: Any, size: int, extra: tuple[int, ...] = ()) -> tuple[Any, Any]:
    points = np.cumsum(random.uniform(0.2, 2, size))
    return points, random.normal(size=(size, *extra))


def test_lines_are_as_in_numpy():
    random = np.random.default_rng(1)
    for size in (1, 2, 3, 8):
        xp, fp = table(random, size)
        x = np.concatenate([random.uniform(-2, 12, 20), xp, [NAN, np.inf, -np.inf]])
        for options in ({}, {"left": 3.0}, {"left": -1.0, "right": 2}, {"right": NAN}):
            found = ng.interp(*map(ng.from_numpy, (x.reshape(-1, 1), xp, fp)), **options)
            expected = np.interp(x, xp, fp, **options).reshape(-1, 1)
            assert np.allclose(found.numpy(), expected, 1e-14, 1e-14, equal_nan=True)


def test_lines_promote_and_stay_in_float32():
    xp, fp = ng.tensor([0, 1, 3]), ng.tensor([0.0, 2.0, 4.0])
    found = ng.interp(ng.tensor([[2]]), xp, fp)
    assert found.dtype == ng.float32
    assert found.tolist() == [[3.0]]
    assert ng.interp(ng.tensor([2.0], dtype=ng.float64), xp, fp).dtype == ng.float64


def test_the_slope_at_a_point_is_that_of_the_line_behind_it_and_outside_it_is_0():
    x = ng.tensor([-1.0, 0.0, 1.0, 3.0, 4.0], requires_grad=True)
    xp, fp = ng.tensor([0.0, 1.0, 3.0]), ng.tensor([0.0, 2.0, 4.0])
    ng.interp(x, xp, fp).sum().backward()
    assert x.grad.tolist() == [0.0, 2.0, 1.0, 1.0, 0.0]


@pytest.mark.parametrize("size", [2, 3, 4, 7])
def test_splines_are_scipys(size):
    random = np.random.default_rng(size)
    for extra, bc_type in itertools.product(
        ((), (3,), (2, 2)), [*ENDS[:3], *itertools.product(ENDS, ENDS)]
    ):
        x, y = table(random, size, extra)
        theirs = bc_type
        if isinstance(bc_type, tuple):
            theirs = [e if isinstance(e, str) else (e[0], np.full(extra, e[1])) for e in bc_type]
        expected = CubicSpline(x, y, bc_type=theirs)
        c = ng.cubic_spline(ng.from_numpy(x), ng.from_numpy(y), bc_type)
        assert c.shape == expected.c.shape
        assert np.allclose(c.numpy(), expected.c, 1e-9, 1e-9), bc_type
        t = random.uniform(x[0] - 1, x[-1] + 1, (3, 2))
        for nu in range(5):
            found = ng.piecewise_polynomial(ng.from_numpy(t), ng.from_numpy(x), c, nu=nu)
            assert np.allclose(found.numpy(), expected(t, nu), 1e-8, 1e-8)


def spline(bc_type: Any) -> Any:
    """Return a function of a table and of where to look."""
    return lambda x, y, t: ng.piecewise_polynomial(t, x, ng.cubic_spline(x, y, bc_type))


FUNCTIONS = {
    "interp": lambda x, y, t: ng.interp(t, x, y),
    **{f"spline, {end}": spline(end) for end in ENDS[:3]},
    "spline, values at the ends": lambda x, y, t: ng.piecewise_polynomial(
        t, x, ng.cubic_spline(x, y, ((1, y[0] * x[1]), (2, y[1])))
    ),
    "derivative of a spline": lambda x, y, t: ng.piecewise_polynomial(
        t, x, ng.cubic_spline(x, y), nu=1
    ),
}


@pytest.mark.sampled(0.5)
@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_batches_and_compiled_functions_agree(name):
    function, random = FUNCTIONS[name], np.random.default_rng(4)
    tables = [table(random, 5) for _ in range(2)]
    x, y = (ng.from_numpy(np.stack(each)) for each in zip(*tables, strict=True))
    t = x[:, :1] + (x[:, -1:] - x[:, :1]) * ng.from_numpy(random.uniform(0, 1, (2, 3)))
    one = [each[0].clone().requires_grad_() for each in (x, y, t)]
    assert ng.autograd.gradcheck(function, one)
    assert ng.autograd.gradgradcheck(function, one, fast_mode=True)
    each = ng.stack([function(*part) for part in zip(x, y, t, strict=True)])
    assert np.allclose(ng.func.vmap(function)(x, y, t).numpy(), each.numpy())
    assert np.allclose(ng.jit(function)(x[0], y[0], t[0]).numpy(), each[0].numpy())
    tangents = tuple(ng.from_numpy(random.normal(size=part.shape[1:])) for part in (x, y, t))
    inside = (x[0], y[0], t[0])
    moved = ng.func.jvp(function, inside, tangents)[1]
    jacobians = ng.func.jacrev(function, (0, 1, 2))(*inside)
    assert np.allclose(
        moved.numpy(), sum(j @ v for j, v in zip(jacobians, tangents, strict=True)).numpy()
    )


def test_a_spline_through_a_cubic_is_that_cubic_and_so_is_its_derivative():
    x = ng.tensor([0.0, 1.0, 2.5, 4.0, 5.0], dtype=ng.float64)
    c = ng.cubic_spline(x, x**3 - 2 * x)
    t = ng.linspace(-1, 6, 15, dtype=ng.float64).requires_grad_()
    found = ng.piecewise_polynomial(t, x, c)
    (slope,) = ng.autograd.grad(found.sum(), t, create_graph=True)
    (bend,) = ng.autograd.grad(slope.sum(), t)
    assert np.allclose(found.detach().numpy(), (t**3 - 2 * t).detach().numpy())
    assert np.allclose(slope.detach().numpy(), (3 * t**2 - 2).detach().numpy())
    assert np.allclose(bend.numpy(), 6 * t.detach().numpy())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: ng.interp(x, x[None], x), "expected one dim of points"),
        (lambda x: ng.interp(x, x, x[:2]), "expected values for 3 points"),
        (lambda x: ng.interp(x, x, x[:, None]), "expected one value a point"),
        (lambda x: ng.interp(x, x, x + 1j), "expected real tensors"),
        (lambda x: ng.cubic_spline(x[:1], x[:1]), "at least two points"),
        (lambda x: ng.cubic_spline(x, x[:2]), "expected values for 3 points"),
        (lambda x: ng.cubic_spline(x, x, "periodic"), "bc_type must be"),
        (lambda x: ng.cubic_spline(x, x, ("natural", (3, 1.0))), "a condition is a pair"),
        (lambda x: ng.cubic_spline(x, x, 3), "a condition for each end"),
        (lambda x: ng.piecewise_polynomial(x, x, x), "expected two dims of c"),
        (lambda x: ng.piecewise_polynomial(x, x, x[None]), "expected values for 2 pieces"),
        (lambda x: ng.piecewise_polynomial(x, x, x[None, :2], nu=-1), "expected nu >= 0"),
    ],
)
def test_what_does_not_fit_is_refused(call, words):
    with pytest.raises((RuntimeError, ValueError), match=words):
        call(ng.tensor([0.0, 1.0, 2.0]))
