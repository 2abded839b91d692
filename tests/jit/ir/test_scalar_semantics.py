"""What is folded, or taken for granted of scalar functions, is what the compiled kernels do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from numgrad.codegen.expression import Symbol
from numgrad.codegen.scalar_ops import SCALAR_OPS
from numgrad.jit.ir.graph import Value
from numgrad.jit.ir.scalar_semantics import fold
from numgrad.kernels.pointwise.elementwise import Elementwise
from tests.jit.evaluate import same_bits
from tests.jit.small_graphs import apply, constant

FLOATS = [0.0, -0.0, 1.0, -1.5, 2.5, 1 / 3, np.inf, -np.inf, np.nan, 1e-40, 3e38, -1e-45]
INTEGERS = [0, 1, -1, 2, 7, 100, 127, -128]
FOLDED = {name for name, op in SCALAR_OPS.items() if op.exact is not None}
NAMES = sorted(FOLDED - {"where", "complex_of", "imag", "conj", "real"})


def computed(operations: list[str], *operands: Any) -> list[Any]:
    """Return what an eager kernel gives for arrays: one that computes all operations."""
    names = ("a", "b")[: len(operands)]
    kernel = Elementwise(
        "several",
        names,
        lambda symbols: [Symbol.apply(operation, *symbols.values()) for operation in operations],
    )
    results = [SCALAR_OPS[operation].result for operation in operations]
    dtypes = [np.dtype(bool) if each == "bool" else operands[0].dtype for each in results]
    return kernel(operands[0].shape, operands, dtypes)


# One kernel for all operations that have as many operands: compiling takes long.
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
def test_folding_gives_the_bits_of_the_kernel(dtype: str, count: int) -> None:
    kind = np.dtype(dtype).kind
    operations = [
        name
        for name in NAMES
        if SCALAR_OPS[name].operands == count
        and kind in SCALAR_OPS[name].kinds
        and kind in SCALAR_OPS[name].exact_kinds
    ]
    with np.errstate(all="ignore"):
        numbers = np.array(FLOATS if kind == "f" else INTEGERS, dtype)
        operands = [each.reshape(-1) for each in np.meshgrid(*[numbers] * count, indexing="ij")]
    for operation, results in zip(operations, computed(operations, *operands), strict=True):
        folded = [
            fold(apply(operation, *[constant(n, dtype) for n in row]))
            for row in zip(*(each.tolist() for each in operands), strict=True)
        ]
        with np.errstate(all="ignore"):
            assert same_bits(np.array(folded, results.dtype), results), operation


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_never_negative_zero(dtype: str) -> None:
    with np.errstate(all="ignore"):
        x = np.array([*FLOATS, -87.0, -103.5, -104.0, -745.5, -1e5, *np.linspace(-9, 9, 99)], dtype)
    operations = sorted(name for name, op in SCALAR_OPS.items() if op.never_negative)
    for operation, results in zip(operations, computed(operations, x), strict=True):
        assert not np.signbit(results[~np.isnan(results)]).any(), operation


@pytest.mark.parametrize("operation", ["exp", "sin", "pow", "true_divide"])
def test_what_numpy_rounds_otherwise_is_not_folded(operation: str) -> None:
    dtype = "complex128" if operation == "true_divide" else "float64"
    operands = [constant(1.5, dtype)] * SCALAR_OPS[operation].operands
    assert fold(apply(operation, *operands)) is None


def test_an_integer_division_by_zero_is_not_folded() -> None:
    value: Value = apply("floor_divide", constant(1, "int64"), constant(0, "int64"))
    assert fold(value) is None


_DTYPES = ["bool", "int8", "uint8", "int64", "float32", "float64", "complex128"]
_EDGES = [126.5, 127.5, 128.0, 255.0, 255.5, 256.0, 2.0**31, 2.0**63, -(2.0**63), 1e300, 1 << 40]


@pytest.mark.parametrize("dtype", _DTYPES)
@pytest.mark.parametrize("source", _DTYPES)
def test_casts_are_folded_where_the_number_fits(source: str, dtype: str) -> None:
    kind = np.dtype(source).kind
    numbers = {"b": [True, False], "i": [0, 1, -1, 127, -128], "u": [0, 1, 127, 255]}
    if source == "int64":
        numbers["i"] = [*numbers["i"], 1 << 40, -(1 << 63), (1 << 63) - 1, (1 << 53) + 1]
    for number in numbers.get(kind, [*FLOATS, *_EDGES]):
        with np.errstate(all="ignore"):
            given = np.asarray(number).astype(source)
            found = fold(apply("cast", constant(given.item(), source), dtype=dtype))
            if kind == "c" and dtype not in ("bool", "complex128"):
                given = given.real
            if kind in "fc" and np.dtype(dtype).kind in "iu":
                info = np.iinfo(dtype)
                if not np.isfinite(given) or not info.min <= int(given) <= info.max:
                    assert found is None, number  # processors do not agree on it
                    continue
            assert found is not None, number
            assert same_bits(np.array(found, dtype), given.astype(dtype)), number
