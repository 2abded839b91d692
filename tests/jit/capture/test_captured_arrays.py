"""NumPy arrays from outside a traced function, where eager mode takes them and where it doesn't."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng

pytestmark = pytest.mark.usefixtures("traced")

OPERATORS = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"]
OPERATORS += ["eq", "ne", "lt", "le", "gt", "ge"]
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, a: ng.add(x, a),
    "method": lambda x, a: x.mul(a),
    "maximum": lambda x, a: ng.maximum(x, a),
    "where": lambda x, a: ng.where(x > 0, x, a),
    "matmul": lambda x, a: ng.matmul(x, a),
    "exp": lambda x, a: ng.exp(a) + x,
    "cat": lambda x, a: ng.cat([x, a]),
    "index": lambda x, a: x[a.astype(np.int64) % 2],
    "mask": lambda x, a: x[a > 1],
    "as_tensor": lambda x, a: x * ng.as_tensor(a),
    "from_numpy": lambda x, a: x * ng.from_numpy(a),
    "tensor": lambda x, a: x * ng.tensor(a),
    "gradient": lambda x, a: ng.func.grad(lambda y: (y * y * a).sum())(x),
}


def outcome(function: Callable[[Any], Any], x: Any) -> Any:
    """Return the result, or the class of the error."""
    try:
        return function(x)
    except (TypeError, RuntimeError) as error:
        return type(error)


def check(function: Callable[[Any, Any], Any], dtype: Any) -> None:
    array = np.array([1, 2]).astype(dtype)
    compiled = ng.jit(lambda x: function(x, array))
    x = ng.tensor([3.0, -4.0], dtype=ng.float64)
    for numbers in ([1, 2], [2, 1], [4, 3]):  # that of an array are read anew, or it is traced anew
        array[:] = numbers
        found, wanted = (outcome(f, x) for f in (compiled, lambda x: function(x, array)))
        if isinstance(wanted, type):
            assert found is wanted
        else:
            assert found.dtype is wanted.dtype
            np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-14)


@pytest.mark.sampled(0.054, by="name")
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name: str, side: str, dtype: Any) -> None:
    apply = getattr(operator, name)
    check((lambda x, a: apply(x, a)) if side == "right" else (lambda x, a: apply(a, x)), dtype)


@pytest.mark.sampled(0.11, by="name")
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str, dtype: Any) -> None:
    check(FUNCTIONS[name], dtype)


@pytest.mark.parametrize("name", OPERATORS[:8])
def test_an_array_on_the_right_is_taken(name: str) -> None:
    array = np.array([1.0, 2.0])
    x = ng.tensor([3.0, 4.0], dtype=ng.float64)
    found = ng.jit(lambda x: getattr(operator, name)(x, array))(x)
    np.testing.assert_allclose(found.numpy(), getattr(operator, name)(x.numpy(), array))
