"""Errors of scalar functions in units in the last place, and what LLVM makes of a loop of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from llvmlite import binding
from numba import njit

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
needs_simd = pytest.mark.skipif(
    not re.search("avx|sse2|neon", binding.get_host_cpu_features().flatten()),
    reason="the processor has no SIMD instructions",
)
_loops: dict[Any, Any] = {}


def loop_of(function: Any, arity: int = 1) -> Any:
    """Return a compiled loop that writes `function` of arrays to the last argument."""
    if function not in _loops:

        @njit(error_model="numpy")
        def of_one(x, out):
            for i in range(out.size):
                out[i] = function(x[i])

        @njit(error_model="numpy")
        def of_two(y, x, out):
            for i in range(out.size):
                out[i] = function(y[i], x[i])

        _loops[function] = of_one if arity == 1 else of_two
    return _loops[function]


def evaluate(function: Any, *operands: np.ndarray) -> np.ndarray:
    """Return a scalar function of the elements of arrays."""
    out = np.empty_like(operands[0])
    loop_of(function, len(operands))(*operands, out)
    return out


def spacing(exact: mpmath.mpf, dtype: type) -> mpmath.mpf:
    """Return the distance of neighbouring numbers of a type where `exact` lies."""
    info = np.finfo(dtype)
    exponent = mpmath.frexp(exact)[1] - 1 if exact else info.minexp
    return mpmath.ldexp(1, max(int(exponent), int(info.minexp)) - int(info.nmant))


def assert_within(
    bound: float,
    function: Any,
    exact_function: Callable[..., mpmath.mpf],
    *operands: np.ndarray,
    precision: int = 200,
) -> None:
    """Assert that a function's values are at most `bound` ulp from the exact ones."""
    dtype = operands[0].dtype.type
    largest = float(np.finfo(dtype).max)
    with mpmath.workprec(precision):
        for *point, value in zip(*operands, evaluate(function, *operands), strict=True):
            exact = exact_function(*(mpmath.mpf(float(number)) for number in point))
            assert abs(exact) <= largest, point
            error = abs(mpmath.mpf(float(value)) - exact)
            assert error <= bound * spacing(exact, dtype), (point, value)


def every_exponent(dtype: type, count: int = 1) -> np.ndarray:
    """Return random numbers of both signs with every exponent of a type, subnormals included."""
    random = np.random.default_rng(1)
    info = np.finfo(dtype)
    exponents = np.tile(np.arange(info.minexp - info.nmant, info.maxexp), count)
    signs = random.choice([-1.0, 1.0], exponents.size)
    return np.ldexp(signs * random.uniform(1, 2, exponents.size), exponents).astype(dtype)


def assert_vectorised(function: Any, dtype: type, arity: int = 1) -> None:
    """Assert that a loop of a function stores several elements at a time, in its own type."""
    one = np.ones(1, dtype)
    loop = loop_of(function, arity)
    loop(*(one,) * arity, one.copy())
    (llvm,) = (loop.inspect_llvm(s) for s in loop.signatures if s[0].dtype.name == one.dtype.name)
    assert re.search(r"store <\d+ x (float|double)>", llvm)
    if dtype is np.float32:
        assert "fpext" not in llvm


def assert_same_bits(actual: np.ndarray, expected: Any) -> None:
    """Assert equality to the sign of zero; any nan equals any other."""
    expected = np.asarray(expected, actual.dtype)
    np.testing.assert_array_equal(actual, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(actual[numbers]), np.signbit(expected[numbers]))
