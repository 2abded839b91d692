"""Writes under `vmap` to what the operation that gives the new numbers read itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng


def _product(v: Any) -> Any:
    y = v.clone()
    y.mul_(v)
    return y


def _square(v: Any) -> Any:
    y = v * 2
    y.mul_(y.clone())
    return y.sin()


def _part(v: Any) -> Any:
    y = v.clone()
    y[0].mul_(v[1])
    y[1:] *= v[:-1]
    return y * v


def _chain(v: Any) -> Any:
    y = v.clone()
    y.div_(v + 2)
    y.pow_(2)
    y.atan2_(v + 3)
    return y


@pytest.mark.parametrize("function", [_product, _square, _part, _chain])
def test_derivatives_are_those_of_each_example(function: Callable[[Any], Any]) -> None:
    weights = ng.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=ng.float64)

    def together(x: Any) -> Any:
        return (ng.func.vmap(function)(ng.stack([x, x * 2])) * weights).sum()

    def apart(x: Any) -> Any:
        return (ng.stack([function(x), function(x * 2)]) * weights).sum()

    x = ng.tensor([0.3, -0.7, 0.2], dtype=ng.float64)
    for transform in (ng.func.grad, ng.func.jacfwd, ng.func.hessian):
        np.testing.assert_allclose(transform(together)(x), transform(apart)(x), rtol=1e-12)
