"""Custom Functions in `numgrad.jit`, in `numgrad.func`, and in forward mode."""

from __future__ import annotations

from typing import Any

import pytest

import numgrad as ng
from numgrad.base.pytree import leaves
from tests.autograd.function.functions import function, leaf, square

CALLS: list[str] = []


class Sine(ng.autograd.Function):
    """The sine, with every method there is."""

    @staticmethod
    def forward(x: Any, factor: Any) -> Any:
        return (x * factor).sin()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, ctx.factor = inputs
        ctx.save_for_backward(x)
        ctx.save_for_forward(x, output)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * ctx.factor * (x * ctx.factor).cos(), None

    @staticmethod
    def jvp(ctx: Any, tangent: Any, factor: Any) -> Any:
        x, y = ctx.saved_tensors
        assert factor is None and y.shape == x.shape
        CALLS.append("jvp")
        return tangent * ctx.factor * (x * ctx.factor).cos()


def own(x: Any) -> Any:
    """Return a number, of Functions in both styles."""
    return (square(ng).apply(x) * Sine.apply(x, 3)).sum()


def plain(x: Any) -> Any:
    """Return the same, of operations."""
    return (x * x * (x * 3).sin()).sum()


def point() -> Any:
    return ng.tensor([0.3, -0.8, 1.7], dtype=ng.float64)


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    "transform",
    [
        lambda f: f,
        ng.func.grad,
        ng.func.value_and_grad,
        ng.func.jacrev,
        ng.func.jacfwd,
        ng.func.hessian,
        lambda f: ng.func.jacrev(ng.func.grad(f)),
        lambda f: lambda x: ng.func.jvp(f, (x,), (ng.ones_like(x),)),
        lambda f: lambda x: ng.func.vjp(f, x)[1](ng.tensor(2.0, dtype=ng.float64)),
        lambda f: lambda x: ng.func.hvp(f, (x,), (x,)),
    ],
)
def test_transformations_see_through_functions(transform: Any, compiled: bool) -> None:
    wrapped = ng.jit(transform(own)) if compiled else transform(own)
    found, expected = wrapped(point()), transform(plain)(point())
    for one, other in zip(leaves(found), leaves(expected), strict=True):
        assert ng.allclose(one, other, rtol=1e-12)


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("compiled", [False, True])
def test_derivatives_agree_with_finite_differences(compiled: bool) -> None:
    f = ng.jit(own) if compiled else own
    x = point().requires_grad_()
    assert ng.autograd.gradcheck(f, x) and ng.autograd.gradgradcheck(f, x)


def test_a_jvp_of_ones_own_is_used() -> None:
    CALLS.clear()
    ng.func.jvp(lambda x: Sine.apply(x, 3), (point(),), (point(),))
    assert CALLS == ["jvp"]


def test_a_function_without_jvp_is_transposed() -> None:
    x = point()
    _, tangent = ng.func.jvp(square(ng).apply, (x,), (ng.ones_like(x),))
    assert ng.allclose(tangent, 2 * x)


@pytest.mark.parametrize(
    ("jvp", "message"),
    [
        (
            lambda ctx, t: (t, t),
            "Function's jvp returned an invalid number of forward gradients (expected 1 but got 2)",
        ),
        (lambda ctx, t: 3, "expected Variable or None (got int) for grad output 0."),
        (
            lambda ctx, t: t.sum(),
            "Trying to set a forward gradient that has a different size than that of the original "
            "Tensor, this is not supported. Tensor is of size [3] while the given forward gradient "
            "is of size [].",
        ),
    ],
)
def test_tangents_that_do_not_fit(jvp: Any, message: str) -> None:
    f = function(ng, lambda ctx, a: a * 2, jvp=staticmethod(jvp))
    with pytest.raises(RuntimeError) as error:
        ng.func.jvp(f.apply, (point(),), (point(),))
    assert str(error.value) == message


@pytest.mark.parametrize("materialize", [True, False])
def test_missing_tangents_are_zeros_or_none(materialize: bool) -> None:
    seen = []

    def forward(ctx: Any, a: Any, b: Any) -> Any:
        ctx.set_materialize_grads(materialize)
        return a * b

    def jvp(ctx: Any, s: Any, t: Any) -> Any:
        seen.append(None if t is None else t.tolist())
        return s

    f = function(ng, forward, jvp=staticmethod(jvp))
    constant = leaf(ng, 1.0, 2.0, 3.0)
    ng.func.jvp(lambda x: f.apply(x, constant), (point(),), (point(),))
    assert seen == [[0.0, 0.0, 0.0] if materialize else None]


def test_a_function_that_asks_for_numbers_cannot_be_traced() -> None:
    f = function(ng, lambda ctx, a: ng.from_numpy(a.detach().numpy() * 2))
    with pytest.raises(ng.TraceError, match="asks a traced tensor for a NumPy array"):
        ng.jit(f.apply)(point())


def test_a_traced_function_fuses_with_what_is_around_it() -> None:
    source = ng.jit(ng.func.grad(own)).lower(point()).source
    assert "sin" in source and "cos" in source and "objmode" not in source
