"""What the tests of this folder share: evaluation in a compiled loop, and errors in ulp."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
import pytest
from llvmlite import binding

from numgrad.codegen.compile.compile import kernel
from numgrad.codegen.scalar_ops import SCALAR_OPS
from numgrad.math import scalar
from tests.cases import thinned

Array = np.ndarray[Any, Any]

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
needs_simd = pytest.mark.skipif(
    not re.search("avx|sse2|neon", binding.get_host_cpu_features().flatten()),
    reason="the processor has no SIMD instructions",
)


def make_loop(function: Any, count: int) -> Callable[..., None]:
    """Return a loop over `count` arrays and an output."""
    if count == 1:

        def loop(x, out):
            for i in range(out.size):
                out[i] = function(x[i])

        return loop

    if count == 2:

        def loop_of_two(x, y, out):
            for i in range(out.size):
                out[i] = function(x[i], y[i])

        return loop_of_two

    if count == 3:

        def loop_of_three(x, y, z, out):
            for i in range(out.size):
                out[i] = function(x[i], y[i], z[i])

        return loop_of_three

    def loop_of_five(x, y, z, v, w, out):
        for i in range(out.size):
            out[i] = function(x[i], y[i], z[i], v[i], w[i])

    return loop_of_five


_loops: dict[Any, Any] = {}


def evaluate(function: Any, *operands: Array) -> Array:
    """Return a scalar function of arrays, element by element."""
    if function not in _loops:
        _loops[function] = kernel(make_loop(function, len(operands)))
    loop = _loops[function]
    out = np.empty_like(operands[0])
    loop(*operands, out)
    return out


def assert_vectorised(function: Any, dtype: type, count: int = 1) -> None:
    """Check that a loop stores vectors, and that one of float32 has no float64 in it."""
    operands = [np.full(8, 1.5, dtype)] * (count + 1)
    loop = kernel(make_loop(function, count), cached=False)
    loop(*operands)
    llvm = loop.inspect_llvm(loop.signatures[0])
    name = "float" if dtype is np.float32 else "double"
    assert re.search(rf"store <\d+ x {name}>", llvm)
    assert "fpext" not in llvm


def assert_within(
    name: str, exact_function: Callable[..., Any], *operands: Array, precision: int = 200
) -> None:
    """Check that the error of a scalar operation is nowhere more than the table of them states.

    `precision` is the bits that mpmath computes with.
    """
    info = np.finfo(operands[0].dtype)
    values = evaluate(getattr(scalar, name), *operands)
    bound = SCALAR_OPS[name].ulps
    points: Sequence[Any] = list(zip(*(x.tolist() for x in operands), values.tolist(), strict=True))
    with mpmath.workprec(precision):
        beyond = mpmath.mpf(2) ** int(info.maxexp)
        for *point, value in thinned(points, 7):
            exact = exact_function(*(mpmath.mpf(x) for x in point))
            exact = min(max(exact, -beyond), beyond)
            got = np.sign(value) * beyond if np.isinf(value) else mpmath.mpf(value)
            exponent = mpmath.frexp(exact)[1] - 1
            exponent = min(max(exponent, int(info.minexp)), int(info.maxexp) - 1)
            ulp = mpmath.mpf(2) ** (exponent - int(info.nmant))
            assert abs(got - exact) <= bound * ulp, (point, value)


def assert_values(function: Any, dtype: type, table: Sequence[tuple[float, ...]]) -> None:
    """Check results, signs of zero and nan included; a row has the operands, then the result."""
    *operands, expected = np.array(table, dtype).T.copy()
    result = evaluate(function, *operands)
    np.testing.assert_array_equal(result, expected)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(result)[known], np.signbit(expected)[known])


def numbers_of_every_size(dtype: type, count: int, *, signs: tuple[int, ...] = (1, -1)) -> Array:
    """Return numbers of random exponents, the subnormal ones included, and of either sign."""
    random = np.random.default_rng(0)
    info = np.finfo(dtype)
    exponents = random.uniform(info.minexp - info.nmant, info.maxexp - 0.01, count)
    return (np.exp2(exponents) * random.choice(signs, count)).astype(dtype)


def neighbours(dtype: type, *marks: float) -> Array:
    """Return the numbers next to some, on either side."""
    found = [np.array(marks, dtype)]
    for direction in (-np.inf, np.inf):
        nearby = found[0]
        for _ in range(3):
            with np.errstate(over="ignore", under="ignore"):
                nearby = np.nextafter(nearby, dtype(direction))
            found.append(nearby)
    joined = np.concatenate(found)
    return joined[np.isfinite(joined)]


def every_exponent(dtype: type, count: int = 1) -> np.ndarray:
    """Return random numbers of both signs with every exponent of a type, subnormals included."""
    random = np.random.default_rng(1)
    info = np.finfo(dtype)
    exponents = np.tile(np.arange(info.minexp - info.nmant, info.maxexp), count)
    signs = random.choice([-1.0, 1.0], exponents.size)
    return np.ldexp(signs * random.uniform(1, 2, exponents.size), exponents).astype(dtype)


def assert_same_bits(actual: np.ndarray, expected: Any) -> None:
    """Assert equality to the sign of zero; any nan equals any other."""
    expected = np.asarray(expected, actual.dtype)
    np.testing.assert_array_equal(actual, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(actual[numbers]), np.signbit(expected[numbers]))
