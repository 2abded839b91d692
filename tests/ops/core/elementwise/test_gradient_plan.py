"""Gradients of elementwise functions do not depend on how many elements there are, or how they lie.

Few numbers, more, and many go different ways to one kernel, and a cotangent may be one number that
is seen everywhere, as that of a sum.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad.base.tuning import FEW_ELEMENTS, RECYCLED_BYTES
from numgrad.ops.core.domains import REAL
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from tests.cases import examples

FUNCTIONS: dict[str, Any] = {
    "sigmoid": lambda x, y: x.sigmoid(),
    "expm1": lambda x, y: x.expm1(),
    "mul": lambda x, y: x * y,
    "pow": lambda x, y: x**3,
}
# Elements of float64 up to which one piece of memory holds them.
EDGES = (2, FEW_ELEMENTS, FEW_ELEMENTS + 1, RECYCLED_BYTES // 8 - 1, RECYCLED_BYTES // 8)


def laid_out(array: np.ndarray[Any, Any], layout: str) -> np.ndarray[Any, Any]:
    if layout == "transposed":
        return np.ascontiguousarray(array.T).T
    return np.repeat(array, 2, axis=-1)[..., ::2] if layout == "with gaps" else array


@pytest.mark.parametrize("name", FUNCTIONS)
@given(
    count=st.sampled_from(EDGES),
    rows=st.sampled_from([1, 3]),
    layout=st.sampled_from(["in order", "transposed", "with gaps"]),
    which=st.integers(0, 2),
    same=st.booleans(),
)
@settings(max_examples=examples(10))
def test_gradients_of_all_elements_are_those_of_each(
    name: str, count: int, rows: int, layout: str, which: int, same: bool
) -> None:
    random = np.random.default_rng(count)
    shape = (rows, -(-count // rows))
    arrays = [random.normal(size=shape) for _ in range(3)]
    if same:
        arrays[2] = np.full(shape, 0.75)
    x, y, g = [
        ng.from_numpy(laid_out(array, layout if k == which else "in order"))
        for k, array in enumerate(arrays)
    ]
    if same:
        g = g[:1, :1].expand(shape)
    x, y = x.requires_grad_(), y.requires_grad_()
    found = ng.autograd.grad(FUNCTIONS[name](x, y), (x, y), g, allow_unused=True)
    columns = np.unique(random.integers(0, shape[1], 5))
    few = [ng.from_numpy(array[:, columns]).requires_grad_() for array in arrays[:2]]
    cotangent = ng.from_numpy(arrays[2][:, columns].copy())
    expected = ng.autograd.grad(FUNCTIONS[name](*few), few, cotangent, allow_unused=True)
    for whole, part in zip(found, expected, strict=True):
        assert (whole is None) == (part is None)
        if whole is not None and part is not None:
            assert whole.shape == shape
            np.testing.assert_array_equal(whole.numpy()[:, columns], part.numpy())


@pytest.mark.parametrize(
    ("rule", "known"),
    [
        (lambda g: g, True),
        (lambda g, other: g, True),
        (lambda g, input, other: g, True),
        (lambda g: g * 1, False),
        (lambda g, other: other, False),
        (lambda other, g: other, False),
    ],
)
def test_a_gradient_that_is_the_cotangent_is_known_for_it(rule: Any, known: bool) -> None:
    """Then nothing is computed, and whoever gets it may not write to it."""
    primitive = ElementwisePrimitive(
        "handed", ("input", "other"), (rule, None), (REAL, REAL), doc="Return input.",
        formula=lambda input, other: input + 0 * other, listed=False,
    )  # fmt: skip
    assert [primitive.is_identity(0) for _ in range(2)] == [known] * 2
    x, y, g = (ng.tensor([number, number]) for number in (2.0, 3.0, 5.0))
    (found,) = ng.autograd.grad(primitive(x.requires_grad_(), y), x, g)
    assert not known or found.tolist() == g.tolist()


def test_an_output_is_saved_behind_numbers_that_are_not() -> None:
    """An operand that is a number does not make one of the output."""
    primitive = ElementwisePrimitive(
        "stretched", ("input", "other"), (None, lambda g, y: g * y), (REAL, REAL),
        doc="Return e to the input plus other.", listed=False,
        formula=lambda input, other: ng.exp(input + other),
    )  # fmt: skip
    for count in (2, FEW_ELEMENTS + 1):
        for _ in range(3):
            x = ng.linspace(-1, 1, count).requires_grad_()
            y = primitive(2.0, x)
            (found,) = ng.autograd.grad(y.sum(), x)
            assert found.tolist() == y.tolist()


def test_gradients_behind_a_sum_lie_as_what_was_saved() -> None:
    for first, second in itertools.product((False, True), repeat=2):
        for count in (2, FEW_ELEMENTS):
            for _ in range(3):
                x, y = (
                    (ng.ones(3, count).t().contiguous().t() if turned else ng.ones(3, count))
                    for turned in (first, second)
                )
                g = ng.ones(1, 1).expand(3, count)
                x, y = x.requires_grad_(), y.requires_grad_()
                found = ng.autograd.grad(x * y, (x, y), g)
                expected = g * y.detach(), g * x.detach()
                assert [f.stride() for f in found] == [e.stride() for e in expected]
                assert found[0].stride() == y.stride()
