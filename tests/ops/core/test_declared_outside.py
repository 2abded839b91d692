"""Operations that a script or a notebook declares: as those of numgrad, and replaceable."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad.autograd import GradcheckError
from numgrad.ops.core.catalogue import CATALOGUE, RESERVED
from numgrad.ops.core.declare import binary, unary
from numgrad.ops.core.domains import POSITIVE, REAL
from numgrad.ops.core.registry import FUNCTIONS
from numgrad.ops.signatures.declared import declare as by_signature_of
from numgrad.ops.signatures.published import publish
from tests.cases import examples

NAME = "of_the_users"
pytestmark = pytest.mark.usefixtures("forgotten", "traced")


def declare(factor: float, slope: float | None = None) -> Any:
    """Declare `factor` times the square, whose derivative is `slope` times twice the input."""
    slope = factor if slope is None else slope
    return publish(
        unary(
            NAME,
            lambda g, input: g * (2 * slope) * input,
            domain=REAL,
            formula=lambda input: factor * input * input,
            accepts="f",
            doc="Return a multiple of the square.",
        )
    )


def declare_composition(factor: float) -> Any:
    """Declare the same as a function that is made of others."""
    return by_signature_of(f"{NAME}(Tensor input)")(lambda input: input * input * factor)


factors = st.sampled_from([0.5, 1.0, 2.0, -3.0])


@settings(max_examples=examples(3, in_sample=2))
@given(factors=st.lists(factors, min_size=1, max_size=3))
def test_a_declaration_is_a_citizen_and_declaring_it_again_replaces_it(
    factors: list[float],
) -> None:
    x = ng.tensor([1.0, -3.0], dtype=ng.float64, requires_grad=True)
    kept = ng.jit(lambda x: getattr(ng, NAME)(x))
    kept_slope = ng.jit(ng.func.grad(lambda x: getattr(x, NAME)().sum()))
    for factor in factors:
        function = declare(factor)
        value, slope = [factor, 9 * factor], [2 * factor, -6 * factor]
        assert getattr(ng, NAME) is function
        results = [getattr(ng, NAME)(x), getattr(x, NAME)(), kept(x), ng.jit(function)(x)]
        results.append(getattr(x.detach().clone(), f"{NAME}_")())
        for result in results:
            assert result.tolist() == value
        assert results[0].grad_fn.name() == "OfTheUsersBackward0"
        for gradient in (
            ng.autograd.grad(results[0].sum(), x)[0],
            kept_slope(x),
            ng.func.jvp(function, (x,), (ng.ones_like(x),))[1],
        ):
            assert gradient.tolist() == slope
        assert (
            ng.func.hessian(lambda x: getattr(x, NAME)().sum())(x).diag().tolist()
            == [2 * factor] * 2
        )
        dispatcher = ng.jit(lambda x, f=function: f(x)).lower(np.ones(2)).dispatcher
        assert dispatcher(np.array([1.0, -3.0]))[0].tolist() == value
        assert ng.utils.check_operation(NAME)


@settings(max_examples=examples(3, in_sample=2))
@given(factors=st.lists(factors, min_size=2, max_size=3))
@pytest.mark.parametrize("by_signature", [False, True])
def test_what_is_remembered_of_a_composition_is_forgotten_with_its_parts(
    by_signature: bool, factors: list[float]
) -> None:
    @by_signature_of(f"{NAME}_twice(Tensor input)", dispatched=True)
    def twice(input: Any) -> Any:
        return getattr(ng, NAME)(getattr(ng, NAME)(input))

    for factor in factors:
        declare_composition(factor) if by_signature else declare(factor)
        for number in (1.0, -2.0, 3.0, 0.5):
            x = ng.tensor([number], requires_grad=True)
            (gradient,) = ng.autograd.grad(twice(x), x)
            assert gradient.item() == 4 * factor**3 * number**3


@settings(max_examples=examples(3, in_sample=2))
@given(factor=factors, slope=factors)
def test_the_checks_find_a_wrong_rule(factor: float, slope: float) -> None:
    function = declare(factor, slope)
    if factor == slope:
        assert "jit" in ng.utils.check_operation(function)
    else:
        with pytest.raises(GradcheckError):
            ng.utils.check_operation(function)


def test_two_operands_have_a_rule_each() -> None:
    publish(
        binary(
            NAME,
            (lambda g, other: g / other, lambda g, y, other: -g * y / other),
            (REAL, POSITIVE),
            formula=lambda input, other: input / other,
            accepts="f",
            doc="Return a quotient.",
        )
    )
    assert ng.utils.check_operation(NAME)
    assert getattr(ng.tensor([6.0]), NAME)(2).item() == 3


@given(name=st.sampled_from(sorted(name for name in RESERVED if name.isidentifier())))
def test_names_that_numgrad_has_are_refused(name: str) -> None:
    before = CATALOGUE.get(name), FUNCTIONS.get(name), getattr(ng.Tensor, name, None)
    with pytest.raises(ValueError, match=f"numgrad has {name} already"):
        unary(name, lambda g: g, domain=REAL, formula=lambda input: input, doc="")
    assert (CATALOGUE.get(name), FUNCTIONS.get(name), getattr(ng.Tensor, name, None)) == before


def test_what_nobody_declared_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="module 'numgrad' has no attribute 'of_the_users'"):
        getattr(ng, NAME)
    with pytest.raises(ValueError, match="has no operation called 'of_the_users'"):
        ng.utils.check_operation(NAME)


@pytest.mark.sampled(0.054)
@pytest.mark.parametrize("name", ["tanh", "where", "maximum", "lerp", "clamp", "cumsum", "pow"])
def test_operations_of_numgrad_pass(name: str) -> None:
    assert ng.utils.check_operation(name)[0] == "derivatives in float64"
