"""What is known of operations on numbers is what Numba says of them, and Numba is not asked."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import numpy as np
import pytest
from numba import types

from numgrad.codegen.llvm.plain_signatures import plain_attribute, plain_signature, plain_type
from numgrad.codegen.numba_private import HAS_PIPELINES, cpu_target, fill_tables
from tests.children import ended_well

NUMBERS = (
    *(types.int32, types.int64, types.uint64, types.float32, types.float64, types.complex128),
    *(types.boolean, types.literal(3), types.float64[::1], types.int64[:], types.float32[:, ::1]),
)
OPERATORS = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "neg", "and_", "or_"),
    *("eq", "ne", "lt", "le", "gt", "ge"),
)
FUNCTIONS = [getattr(operator, name) for name in OPERATORS]
CLASSES = [plain_type(kind) for kind in (np.int64, np.float32, np.float64)]


@pytest.mark.parametrize("count", [1, 2])
def test_signatures_are_numbas(count: int) -> None:
    fill_tables()
    context, known = cpu_target.typing_context, 0
    for function in (*FUNCTIONS, *CLASSES):
        for operands in itertools.product(NUMBERS, repeat=count):
            own: Any = plain_signature(function, operands)
            if own is None:
                continue
            is_type = isinstance(function, types.Type)
            kind = function if is_type else context.resolve_value_type(function)
            found = context.resolve_function_type(kind, operands, {})
            assert (own.args, own.return_type) == (found.args, found.return_type), function
            known += 1
    assert known > 10


def test_arithmetic_of_numbers_is_known() -> None:
    for kind in (types.int64, types.float32, types.float64):
        for name in ("add", "sub", "mul"):
            found = plain_signature(getattr(operator, name), (kind, kind))
            assert found is not None and found.return_type == kind
        for name in ("eq", "ne", "lt", "le", "gt", "ge"):
            assert plain_signature(getattr(operator, name), (kind, types.float64)) is not None
        assert plain_signature(operator.neg, (kind,)) is not None
    assert plain_signature(operator.floordiv, (types.int64,) * 2) is not None
    assert plain_signature(operator.truediv, (types.float64,) * 2) is not None


def test_attributes_are_numbas() -> None:
    fill_tables()
    context, known = cpu_target.typing_context, 0
    for kind in (*NUMBERS, *(types.DType(each) for each in NUMBERS[:6])):
        for name in ("shape", "size", "dtype", "type"):
            own = plain_attribute(kind, name)
            assert own is None or own == context.resolve_getattr(kind, name)
            known += own is not None
        assert not isinstance(kind, types.Array) or plain_attribute(kind, "shape") is not None
    assert known > 10


PROGRAM = """
import numpy as np, numgrad as ng
from numgrad.codegen import numba_private
def fill(context):
    raise AssertionError("Numba was asked")
type(numba_private.cpu_target.target_context).refresh = fill
x = np.array([1.0, 2.0, 3.0])
def f(x):
    return (ng.exp(-x[1:]) * (x[:-1] - 0.5) ** 2).sum()
print(ng.jit(ng.func.value_and_grad(f))(x)[1].tolist() == ng.func.grad(f)(ng.tensor(x)).tolist())
"""


@pytest.mark.skipif(not HAS_PIPELINES, reason="plain Numba finds all types by itself")
def test_a_function_of_numbers_is_compiled_without_numbas_tables() -> None:
    """Filling them took a quarter of a first call."""
    eager = "import numgrad as ng\nx = ng.ones(3, dtype=ng.float64)\n"
    assert ended_well(eager + PROGRAM, NUMGRAD_CACHE_DIR="off") == "True\n"


def test_a_function_that_was_declared_while_a_kernel_was_compiled_is_known_to_it() -> None:
    """A Bessel function declares its parts as a loop of many numbers is typed."""
    program = """
import numgrad as ng
x = ng.zeros(100_000, dtype=ng.float64)
print(ng.special.bessel_j0(x).sum().item())
"""
    assert ended_well(program, NUMGRAD_CACHE_DIR="off") == "100000.0\n"
