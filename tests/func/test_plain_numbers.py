"""Transformations called with plain numbers and lists: what they give for the same as tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng
from numgrad import func
from numgrad.base import pytree

numbers = st.one_of(st.floats(0.5, 2), st.integers(1, 3), st.floats(0.5, 2).map(np.float64))
vectors = st.lists(numbers, min_size=1, max_size=3)
matrices = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.lists(numbers, min_size=width, max_size=width), min_size=1)
)
points = st.one_of(numbers, vectors, matrices.filter(lambda rows: len(rows) < 4))


def cubes(x: Any) -> Any:
    return (x**3).sum()


def one_gives(transform: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: transform(cubes)(x)


# Each calls a transformation at one point, given in whatever form.
CALLS: dict[str, Callable[[Any], Any]] = {
    **{
        transform.__name__: one_gives(transform)
        for transform in (
            func.grad,
            func.value_and_grad,
            func.grad_and_value,
            func.jacrev,
            func.jacfwd,
            func.hessian,
        )
    },
    "vjp": lambda x: func.vjp(cubes, x)[1](2.0),
    "vjp of cotangents alike": lambda x: func.vjp(lambda y: y * 3, x)[1](x),
    "jvp": lambda x: func.jvp(cubes, (x,), (x,)),
    "hvp": lambda x: func.hvp(cubes, (x,), (x,)),
    "linearize": lambda x: func.linearize(cubes, x)[1](x),
}


def as_float(point: Any) -> ng.Tensor:
    made = ng.tensor(point)
    return made if made.is_floating_point() else made.float()


def assert_same(found: Any, expected: Any) -> None:
    leaves, spec = pytree.flatten(found)
    others, other_spec = pytree.flatten(expected)
    assert spec == other_spec
    for leaf, other in zip(leaves, others, strict=True):
        assert leaf.dtype is other.dtype and ng.equal(leaf, other)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@given(point=points)
def test_a_number_or_a_list_is_the_tensor_of_it(call: Callable[[Any], Any], point: Any) -> None:
    assert_same(call(point), call(as_float(point)))


@given(first=numbers, second=vectors)
def test_numbers_stand_in_pytrees(first: Any, second: list[Any]) -> None:
    first = float(first)

    def f(tree: Any) -> Any:
        return (tree["w"] ** 2).sum() * tree["b"][0]

    plain = {"w": second, "b": (first,)}
    tensors = {"w": as_float(second), "b": (as_float(first),)}
    assert_same(func.grad(f)(plain), func.grad(f)(tensors))
    assert_same(func.jacfwd(f)(plain), func.jacfwd(f)(tensors))
    assert_same(func.jvp(f, (plain,), (plain,)), func.jvp(f, (tensors,), (tensors,)))


def test_a_list_of_tensors_stays_a_list() -> None:
    def f(pair: Any) -> Any:
        assert isinstance(pair, list)
        return pair[0] * pair[1]

    point = [ng.tensor(2.0), ng.tensor(3.0)]
    assert_same(func.grad(f)(point), [ng.tensor(3.0), ng.tensor(2.0)])
    assert_same(func.jvp(f, (point,), ([1.0, 0.0],))[1], ng.tensor(3.0))
    _, pull = func.vjp(lambda x: [x, 2 * x], 1.0)
    assert_same(pull([1.0, 10.0]), (ng.tensor(21.0),))


def test_a_number_that_is_not_differentiated_stays_one() -> None:
    def f(x: Any, power: Any) -> Any:
        assert type(power) is int
        return x**power

    assert func.grad(f)(3.0, 2).item() == 6


def test_a_float64_number_stays_float64() -> None:
    assert func.grad(cubes)(np.float64(2)).dtype is ng.float64


@pytest.mark.parametrize(
    "point", [True, np.True_, "3.0", None, [True], [1.0, None], {"a": "b"}, {"n": 3}]
)
def test_what_is_no_number_is_refused(point: Any) -> None:
    for call in (func.grad, func.jacrev, func.jacfwd):
        with pytest.raises(ValueError, match="Thing passed to transform API must be Tensor, got"):
            call(cubes)(point)
    with pytest.raises(RuntimeError, match="Expected primals to only contain Tensors, got"):
        func.jvp(cubes, (point,), (point,))


@pytest.mark.usefixtures("traced")
def test_a_jitted_gradient_takes_numbers() -> None:
    assert ng.jit(func.grad(cubes))(2.0).item() == 12
    assert ng.jit(lambda: func.grad(cubes)([1.0, 2.0]))().tolist() == [3, 12]
