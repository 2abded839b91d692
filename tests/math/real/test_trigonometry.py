"""sin, cos and tan against mpmath, near 0 and far from it."""

from __future__ import annotations

import re

import mpmath
import numpy as np
import pytest
from numba.core.caching import NullCache

import numgrad as ng
from numgrad.codegen.compile.compile import kernel
from numgrad.codegen.compile.pipelines import TRANSLATED
from numgrad.codegen.expression import Symbol
from numgrad.kernels.pointwise.elementwise import Elementwise
from numgrad.math import scalar
from tests.math.real.accuracy import (
    assert_same_bits,
    assert_vectorised,
    assert_within,
    evaluate,
    every_dtype,
    every_exponent,
    needs_simd,
)

# ours, ours for near angles, exact
FUNCTIONS = {
    "sin": (scalar.sin, scalar.sin_near, mpmath.sin),
    "cos": (scalar.cos, scalar.cos_near, mpmath.cos),
    "tan": (scalar.tan, scalar.tan_near, mpmath.tan),
}
NEAR = {np.float32: 2.0**13, np.float64: 2.0**27}
every_function = pytest.mark.parametrize("name", FUNCTIONS)


def near_angles(dtype: type) -> np.ndarray:
    """Return angles of every size up to the limit, and those next to where a function is 0."""
    random = np.random.default_rng(0)
    near = NEAR[dtype]
    quarters = np.unique(random.integers(0, int(near / np.pi * 4), 600)) * (np.pi / 4)
    x = np.concatenate(
        [
            random.uniform(-near, near, 600),
            random.uniform(-4, 4, 800),
            quarters,
            -quarters,
            np.arange(40) * (np.pi / 2),
            10.0 ** random.uniform(-35, np.log10(near), 400),
            [near],
        ]
    ).astype(dtype)
    return x[np.abs(x) <= near]


def angles_next_to_zeros(dtype: type) -> np.ndarray:
    """Return, for every exponent, the number of a type that is nearest to a multiple of pi/2.

    They come from the convergents of the continued fraction of 2**exponent / (pi/2).
    """
    info = np.finfo(dtype)
    digits = info.nmant + 1
    found = []
    with mpmath.workprec(1300):
        for exponent in range(-digits, info.maxexp - digits + 1):
            rest = mpmath.ldexp(2 / mpmath.pi, exponent)
            before, denominator = 0, 1
            while denominator < 2**digits:
                whole = int(rest)
                if denominator >= 2 ** (digits - 1):
                    found.append(np.ldexp(float(denominator), exponent))
                if rest == whole:
                    break
                rest = 1 / (rest - whole)
                before, denominator = denominator, int(rest) * denominator + before
    return np.array(found).astype(dtype)


@every_function
@every_dtype
@pytest.mark.sampled(1.0)
def test_error_near_0_is_below_1_ulp(name, dtype):
    assert_within(name, FUNCTIONS[name][2], near_angles(dtype))


@every_function
@every_dtype
@pytest.mark.sampled(1.0)
def test_error_at_every_exponent_is_below_1_ulp(name, dtype):
    assert_within(name, FUNCTIONS[name][2], every_exponent(dtype), precision=1300)


@every_function
@every_dtype
@pytest.mark.sampled(1.0)
def test_error_next_to_zeros_is_below_1_ulp(name, dtype):
    assert_within(name, FUNCTIONS[name][2], angles_next_to_zeros(dtype), precision=1300)


def test_the_hardest_float64_is_among_the_angles_next_to_zeros():
    assert 6381956970095103 * 2.0**797 in angles_next_to_zeros(np.float64)


@every_function
@every_dtype
def test_without_a_branch_the_bits_are_the_same(name, dtype):
    function, without_branch, *_ = FUNCTIONS[name]
    x = near_angles(dtype)
    assert_same_bits(evaluate(function, x), evaluate(without_branch, x))


@every_function
@every_dtype
def test_special_values(name, dtype):
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], dtype)
    expected = [1.0, 1.0] if name == "cos" else [0.0, -0.0]
    function, without_branch, *_ = FUNCTIONS[name]
    assert_same_bits(evaluate(function, x), [*expected, np.nan, np.nan, np.nan])
    assert_same_bits(evaluate(without_branch, x), [*expected, np.nan, np.nan, np.nan])


@every_function
@every_dtype
def test_sign_of_the_argument(name, dtype):
    x = np.abs(np.concatenate([near_angles(dtype), every_exponent(dtype)]))
    function = FUNCTIONS[name][0]
    sign = 1 if name == "cos" else -1
    assert_same_bits(evaluate(function, -x), sign * evaluate(function, x))


@every_function
@every_dtype
def test_an_elements_bits_do_not_depend_on_its_neighbours(name, dtype):
    """One far element sends its block the other way; the others keep their values."""
    x = near_angles(dtype)
    function = getattr(ng, name)
    alone = function(ng.from_numpy(x)).numpy()
    beside = function(ng.from_numpy(np.append(x, dtype(1e9)))).numpy()
    assert_same_bits(beside[:-1], alone)
    assert beside[-1] == evaluate(FUNCTIONS[name][0], np.array([1e9], dtype))[0]


@needs_simd
@every_function
@every_dtype
def test_a_loop_of_near_angles_is_vectorised(name, dtype):
    assert_vectorised(FUNCTIONS[name][1], dtype)


@every_function
@every_dtype
def test_by_a_call_the_bits_are_the_same(name, dtype):
    x = np.concatenate([near_angles(dtype), every_exponent(dtype), angles_next_to_zeros(dtype)])
    x = np.concatenate([x, -x, np.array([0.0, -0.0, np.inf, np.nan], dtype)])
    apart = getattr(scalar, f"{name}_apart")
    assert_same_bits(evaluate(FUNCTIONS[name][0], x), evaluate(apart, x))


@every_function
@every_dtype
def test_a_kernel_has_the_reduction_of_far_angles_once_and_apart(name, dtype):
    loop = Elementwise(name, ["x"], lambda s: [Symbol.apply(name, s["x"])]).loop("a")
    compiled = kernel(loop.py_func, TRANSLATED)
    compiled._cache = NullCache()
    x = np.linspace(-1e9, 1e9, 5000).astype(dtype)
    out = np.empty_like(x)
    compiled(x, out)
    assert_same_bits(out, evaluate(FUNCTIONS[name][0], x))
    (code,) = compiled.inspect_llvm().values()
    *others, whole = sorted(re.findall(r"^define.*?^}", code, re.M | re.S), key=len)
    assert "numgrad.table" not in whole  # the digits of 2/pi
    assert sum("numgrad.table" in function for function in others) == 1
    number = "float" if dtype is np.float32 else "double"
    assert re.search(rf"store <\d+ x {number}>", whole)
