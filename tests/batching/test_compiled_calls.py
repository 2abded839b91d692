"""Compiled functions that are called in mapped ones: compiled for the batch, with gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.func import grad, vmap

X = ng.arange(12, dtype=ng.float64).reshape(4, 3) / 7


def close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), rtol=1e-10)


def looped(function: Any) -> Any:
    return ng.stack([function(row) for row in X])


def model(x: Any) -> Any:
    return (x * 1.5).sin().sum() * x.prod()


TRANSFORMED: dict[str, Callable[[Any], Any]] = {
    "value": lambda f: f,
    "gradient": grad,
    "second": lambda f: grad(lambda a: grad(f)(a).sum()),
}


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("name", TRANSFORMED)
def test_transformations_of_compiled_functions(name):
    transformed = TRANSFORMED[name]
    compiled = ng.jit(model)
    close(vmap(transformed(compiled))(X), looped(transformed(model)))
    assert compiled.cache_info().misses == 0  # it is compiled for the batch, not for an example
    assert compiled.of_batches


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("name", ["value", "gradient"])
def test_gradients_from_outside(name):
    transformed = TRANSFORMED[name]

    def total(function: Any) -> Any:
        return grad(lambda x: vmap(transformed(function))(x).sum())(X)

    close(total(ng.jit(model)), total(model))


def test_it_is_traced_once_for_a_signature():
    seen = []

    def f(x, w):
        seen.append(x.shape)
        return x * w

    mapped = vmap(ng.jit(f), in_dims=(0, None))
    for w in (2.0, 3.0, 4.0):
        close(mapped(X, w), X * w)
    close(mapped(X[:2], 2.0), X[:2] * 2)
    assert seen == [(3,)] * 2


@pytest.mark.usefixtures("traced")
def test_what_a_compiled_function_closes_over():
    w = ng.tensor(2.0, dtype=ng.float64, requires_grad=True)
    of_outside = ng.jit(lambda x: (x * w).sin().sum())
    vmap(of_outside)(X).sum().backward()
    close(w.grad, ((X * 2).cos() * X).sum())
    # What is inside is no array that a compiled function could read: so it runs as it is.
    close(vmap(lambda a: ng.jit(lambda b: (a * b).sum())(a.cos()))(X), (X * X.cos()).sum(1))


def test_results_that_are_arguments_or_no_tensors():
    f = ng.jit(lambda x, k, mode: {"x": x, "y": x * k, "mode": mode}, static_argnames="mode")

    def call(x: Any) -> Any:
        found = f(x, 3, mode="p")
        assert found["x"] is x and found["mode"] == "p"
        return grad(lambda x: f(x, 3, mode="p")["y"].sum())(x) + found["y"]

    close(vmap(call)(X), X * 3 + 3)
