"""What is folded, or taken for granted of scalar functions, is what the compiled kernels do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from numgrad.codegen.expression import Symbol
from numgrad.jit.ir.graph import Value
from numgrad.jit.ir.scalar_semantics import _FOLDED, SIGNATURES, fold
from numgrad.jit.passes.algebra import _NOT_NEGATIVE
from numgrad.kernels.pointwise.elementwise import Elementwise
from tests.jit.evaluate import same_bits
from tests.jit.short_graphs import apply, constant

FLOATS = [0.0, -0.0, 1.0, -1.5, 2.5, 1 / 3, np.inf, -np.inf, np.nan, 1e-40, 3e38, -1e-45]
INTEGERS = [0, 1, -1, 2, 7, 100, 127, -128]
NAMES = sorted(_FOLDED.keys() - {"where", "complex_of", "imag", "conj", "real"})


def computed(operations: list[str], *operands: Any) -> list[Any]:
    """Return what an eager kernel gives for arrays: one that computes all operations."""
    names = ("a", "b")[: len(operands)]
    kernel = Elementwise(
        "several",
        names,
        lambda symbols: [Symbol.apply(operation, *symbols.values()) for operation in operations],
    )
    results = [SIGNATURES[operation].result for operation in operations]
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
        if SIGNATURES[name].operands == count
        and kind in SIGNATURES[name].kinds
        and kind in _FOLDED[name][0]
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
    operations = sorted(_NOT_NEGATIVE)
    for operation, results in zip(operations, computed(operations, x), strict=True):
        assert not np.signbit(results[~np.isnan(results)]).any(), operation


@pytest.mark.parametrize("operation", ["exp", "sin", "pow", "true_divide"])
def test_what_numpy_rounds_otherwise_is_not_folded(operation: str) -> None:
    dtype = "complex128" if operation == "true_divide" else "float64"
    operands = [constant(1.5, dtype)] * SIGNATURES[operation].operands
    assert fold(apply(operation, *operands)) is None


def test_an_integer_division_by_zero_is_not_folded() -> None:
    value: Value = apply("floor_divide", constant(1, "int64"), constant(0, "int64"))
    assert fold(value) is None
