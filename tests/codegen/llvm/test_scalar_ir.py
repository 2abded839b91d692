"""Branch-free functions: written down where they are called, with the bits of NumPy's scalars."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from numba.core.caching import NullCache
from numba.core.errors import TypingError

from numgrad.codegen.compile.compile import kernel
from numgrad.codegen.llvm import scalar_ir as module
from numgrad.codegen.llvm.scalar_ir import (
    branch_free,
    cast,
    copysign,
    floor,
    leading_zeros,
    pick,
    rarely,
    sqrt,
    upper_half,
    where,
)

FLOATS = [np.float32, np.float64]
INTEGERS = [np.int32, np.int64, np.uint8, np.uint32, np.uint64]


def values_of(function: Any, *arrays: np.ndarray, dtype: Any = None) -> np.ndarray:
    """Return what a branch-free function gives for the elements of arrays, in a compiled loop."""
    if len(arrays) == 1:

        def loop(x, out):  # type: ignore[no-untyped-def]
            for i in range(out.size):
                out[i] = function(x[i])
    else:

        def loop(x, y, out):  # type: ignore[no-untyped-def]
            for i in range(out.size):
                out[i] = function(x[i], y[i])

    compiled = kernel(loop)
    compiled._cache = NullCache()
    out = np.empty(arrays[0].size, dtype or arrays[0].dtype)
    compiled(*arrays, out)
    return out


def numbers(dtype: Any) -> np.ndarray:
    special = [0.0, -0.0, 1, -1, 2.5, -2.5, np.inf, -np.inf, np.nan, 1e-40]
    return np.array(special, dtype) if np.issubdtype(dtype, np.floating) else integers(dtype)


def integers(dtype: Any) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.array([0, 1, 2, 3, 5, 77, info.max, info.max - 1, info.min, info.max // 2], dtype)


def pairs(dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    x = numbers(dtype)
    return np.repeat(x, x.size), np.tile(x, x.size)


@pytest.mark.parametrize("dtype", FLOATS)
def test_arithmetic_of_floats_is_numpys(dtype: Any) -> None:
    x, y = pairs(dtype)
    with np.errstate(all="ignore"):
        for function in (
            lambda x, y: x + y,
            lambda x, y: x - y,
            lambda x, y: x * y,
            lambda x, y: x / y,
            lambda x, y: 2 - x * 3 + 1 / y,
            lambda x, y: -x + abs(y),
            lambda x, y: dtype(0.1) * x - dtype(0.3),
        ):
            np.testing.assert_array_equal(values_of(branch_free(function), x, y), function(x, y))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_keep_their_type_and_wrap_around(dtype: Any) -> None:
    x, y = pairs(dtype)
    shift = dtype(3)
    for function in (
        lambda x, y: x + y,
        lambda x, y: x - y * dtype(7),
        lambda x, y: (x & y) | (x ^ dtype(1)),
        lambda x, y: (x << shift) + (y >> shift),
        lambda x, y: ~x + dtype(0) - y,
    ):
        np.testing.assert_array_equal(values_of(branch_free(function), x, y), function(x, y))


@pytest.mark.sampled(0.11)
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_comparisons_and_choices_are_numpys(dtype: Any) -> None:
    x, y = pairs(dtype)
    for compare in (
        lambda x, y: x < y,
        lambda x, y: x <= y,
        lambda x, y: x > y,
        lambda x, y: x >= y,
        lambda x, y: x == y,
        lambda x, y: x != y,
        lambda x, y: (x < y) | (x == dtype(1)) & ~(y > dtype(2)) ^ (x != x),
    ):
        found = values_of(branch_free(compare), x, y, dtype=bool)
        np.testing.assert_array_equal(found, compare(x, y))
        chosen = branch_free(lambda x, y, compare=compare: where(compare(x, y), x, dtype(9)))
        np.testing.assert_array_equal(
            values_of(branch_free(lambda x, y: chosen.function(x, y)), x, y),
            np.where(compare(x, y), x, dtype(9)),
        )


@pytest.mark.parametrize("dtype", FLOATS)
def test_functions_of_floats_are_numpys(dtype: Any) -> None:
    x, y = pairs(dtype)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(values_of(branch_free(lambda x: sqrt(x)), x), np.sqrt(x))
        np.testing.assert_array_equal(values_of(branch_free(lambda x: floor(x)), x), np.floor(x))
    signed = values_of(branch_free(lambda x, y: copysign(x, y)), x, y)
    np.testing.assert_array_equal(signed, np.copysign(x, y))
    np.testing.assert_array_equal(np.signbit(signed), np.signbit(y))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (np.float64, np.float32),
        (np.float32, np.float64),
        (np.int32, np.float32),
        (np.uint64, np.float64),
        (np.int32, np.int64),
        (np.int64, np.uint64),
        (np.uint8, np.int64),
        (np.int64, np.int32),
    ],
)
def test_casts_are_numpys(source: Any, target: Any) -> None:
    x = numbers(source)
    with np.errstate(all="ignore"):
        expected = x.astype(target)
    np.testing.assert_array_equal(
        values_of(branch_free(lambda x: cast(target, x)), x, dtype=target), expected
    )


def test_a_float_becomes_the_integer_towards_0_and_a_bool_a_number() -> None:
    x = np.array([-2.7, -0.5, 0.5, 3.9])
    cut = values_of(branch_free(lambda x: cast(np.int64, x)), x, dtype=np.int64)
    np.testing.assert_array_equal(cut, [-2, 0, 0, 3])
    truth = values_of(branch_free(lambda x: cast(np.float64, x > 0)), x)
    np.testing.assert_array_equal(truth, [0, 0, 1, 1])


def test_bits_of_integers() -> None:
    random = np.random.default_rng(0)
    x, y = random.integers(0, 2**64, (2, 50), np.uint64, endpoint=False)
    x >>= np.arange(50).astype(np.uint64)
    zeros = values_of(branch_free(lambda x: leading_zeros(x)), x)
    np.testing.assert_array_equal(zeros, [64 - int(number).bit_length() for number in x])
    halves = values_of(branch_free(lambda x, y: upper_half(x, y)), x, y)
    expected = [int(a) * int(b) >> 64 for a, b in zip(x, y, strict=True)]
    np.testing.assert_array_equal(halves, np.array(expected, np.uint64))


def test_an_element_of_a_table() -> None:
    table, places = np.array([1.5, -2.5, np.inf, 0.1]), np.array([3, 0, 2, 1])
    found = values_of(branch_free(lambda i: pick(table, i)), places, dtype=np.float64)
    np.testing.assert_array_equal(found, table[places])


def test_several_results_are_a_tuple() -> None:
    both = branch_free(lambda x, y: where(x < y, (x, y), (y, x)))

    @kernel
    def spread(x, y):  # type: ignore[no-untyped-def]
        least, most = both(x, y)
        return most - least

    spread._cache = NullCache()
    assert spread(3.0, 1.0) == spread(1.0, 3.0) == 2.0


def llvm_of(function: Any) -> str:
    compiled = kernel(function)
    compiled._cache = NullCache()
    compiled(1.0)
    (code,) = compiled.inspect_llvm().values()
    return str(code)


def test_it_is_written_down_where_it_is_called() -> None:
    cubed = branch_free(lambda x: x * x * x)

    def calls_it(x):  # type: ignore[no-untyped-def]
        return cubed(x) + 1

    assert not re.search(r"(call|define)[^\n]*lambda", llvm_of(calls_it))


def test_what_runs_rarely_is_one_function_that_is_called() -> None:
    def shrunk(x):  # type: ignore[no-untyped-def]
        return x / 1024

    def limited(x):  # type: ignore[no-untyped-def]
        return rarely(x > 100, apart, x, x * 2)

    apart, twice = branch_free(shrunk, inlined=False), branch_free(limited)

    def calls_it(x):  # type: ignore[no-untyped-def]
        return twice(twice(x)) + apart(x)

    code = llvm_of(calls_it)
    assert len(re.findall(r"define[^\n]*shrunk", code)) == 1
    assert len(re.findall(r"call[^\n]*shrunk", code)) >= 3
    compiled = kernel(calls_it)
    compiled._cache = NullCache()
    assert compiled(3.0) == 12 + 3 / 1024
    assert compiled(80.0) == 160 / 1024 + 80 / 1024
    assert compiled(2048.0) == 4 + 2


def test_python_cannot_call_it() -> None:
    @branch_free
    def halved(x):  # type: ignore[no-untyped-def]
        return x * 0.5

    with pytest.raises(TypeError, match="halved is a part of kernels"):
        halved(1.0)


def test_a_branch_on_a_value_names_the_way_out() -> None:
    @branch_free
    def size(x):  # type: ignore[no-untyped-def]
        return -x if x < 0 else x

    with pytest.raises(TypeError, match="where"):
        llvm_of(lambda x: size(x))


def test_types_are_not_mixed() -> None:
    mixed = branch_free(lambda x: x + np.float32(1))

    def calls_it(x):  # type: ignore[no-untyped-def]
        return mixed(x)

    with pytest.raises(TypingError):
        llvm_of(calls_it)
    assert issubclass(module.Unfit, TypeError)
