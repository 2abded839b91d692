"""What accumulates into an array of one number, beside results that are such arrays, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import numgrad as ng
from tests.cases import examples

WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "index": lambda x, i: x[i],
    "rows": lambda x, i: x.reshape(2, 3)[i % 2],
    "index_select": lambda x, i: x.index_select(0, i),
    "gather": lambda x, i: x.gather(0, i),
    "take": lambda x, i: x.take(i),
    "sort": lambda x, i: x.sort().values,
    "max": lambda x, i: x.reshape(2, 3).max(0).values,
    "cumsum": lambda x, i: x.cumsum(0),
    "index_add": lambda x, i: x.index_add(0, i, x[:4]),
    "scatter_add": lambda x, i: x.scatter_add(0, i, x[2:]),
    "added to zeros": lambda x, i: ng.zeros_like(x).index_add(0, i, x[:4]),
    "put": lambda x, i: ng.zeros_like(x).index_put((i,), x[:4], accumulate=True),
    "in place": lambda x, i: _added_to(x.clone(), i),
    "in place to zeros": lambda x, i: _added_to(ng.zeros_like(x), i) * x,
}
# Results of the shape of an argument that are one number repeated, and others.
BESIDE: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda x: None,
    "zeros": lambda x: ng.zeros_like(x),
    "ones": lambda x: ng.ones_like(x),
    "zeros of another shape": lambda x: ng.zeros(2, 3, dtype=x.dtype),
    "a view": lambda x: ng.zeros_like(x).reshape(3, 2),
}


def _added_to(x: Any, i: Any) -> Any:
    x[[0]] += 2
    x[i] += 1.5
    return x


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, Callable[..., Any]]:
    """Return what it is, and a function of three vectors and positions."""
    first, second = (draw(st.sampled_from(sorted(WAYS))) for _ in range(2))
    beside = draw(st.sampled_from(sorted(BESIDE)))
    used = draw(st.sampled_from(["x", "x, y", "x twice"]))
    name = f"{first} of x, {second} of {used}; beside it {beside}"

    def value(x: Any, y: Any, z: Any, i: Any) -> Any:
        total = (WAYS[first](x, i) ** 2).sum()
        if used != "x":
            total = total + WAYS[second](y if used == "x, y" else x, i).sin().sum()
        return total

    def program(x: Any, y: Any, z: Any, i: Any) -> Any:
        found = ng.func.grad(value, argnums=(0, 1, 2))(x, y, z, i)
        return *found, WAYS[first](x, i), BESIDE[beside](x)

    return name, program


def arguments() -> list[Any]:
    random = np.random.default_rng(3)
    return [*(ng.from_numpy(random.normal(size=6)) for _ in range(3)), ng.tensor([5, 0, 5, 2])]


@settings(max_examples=examples(60))
@given(programs())
def test_any_of_them_can_be_scheduled(program: tuple[str, Callable[..., Any]]) -> None:
    assert ng.jit(program[1]).lower(*arguments()).source


@settings(
    max_examples=examples(3, in_sample=2), phases=[Phase.generate]
)  # shrinking would compile for minutes
@given(programs())
def test_they_are_what_they_are_without_jit(program: tuple[str, Callable[..., Any]]) -> None:
    found, wanted = ng.jit(program[1])(*arguments()), program[1](*arguments())
    for result, expected in zip(found, wanted, strict=True):
        if expected is None:
            assert result is None
            continue
        np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-13)


@pytest.mark.sampled(0.072)
@pytest.mark.parametrize("way", WAYS)
def test_the_gradient_of_an_argument_that_is_not_used(way: str) -> None:
    def value(w: Any, b: Any, i: Any) -> Any:
        return WAYS[way](w, i).sum()

    gradient = ng.func.grad(value, argnums=(0, 1))
    x, y, _, i = arguments()
    for found, wanted in zip(ng.jit(gradient)(x, y, i), gradient(x, y, i), strict=True):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-13)
