"""Each identity of scalar operations fires, and each tempting one that is not exact does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.passes.simplify import simplify
from tests.jit.evaluate import evaluate, same_bits
from tests.jit.simplified import simplified_graph
from tests.jit.small_graphs import apply, constant, expand, inputs, reduce

INF, NAN = float("inf"), float("nan")
Formula = Callable[..., Value]


def simplified(formula: Formula, dtype: Any, count: int = 3, shape: Any = (40,)) -> Graph:
    """Simplify a formula of inputs, and check that its bits are the same."""
    arguments = inputs(*[(dtype, shape)] * count)
    return simplified_graph(Graph(arguments, [formula(*arguments)]), [0])


def written(value: Value, names: dict[Value, str]) -> str:
    """Return a value as a formula: ``add(x, 1.0)``."""
    if value in names:
        return names[value]
    if value.operation == "constant":
        return repr(value.attributes["value"])
    operation = value.dtype.name if value.operation == "cast" else value.operation
    if operation == "view":
        return f"expand({written(value.operands[0], names)})"
    return f"{operation}({', '.join(written(operand, names) for operand in value.operands)})"


def result(formula: Formula, dtype: Any, count: int = 3) -> str:
    simple = simplified(formula, dtype, count)
    names = dict(zip(simple.inputs, "xyz", strict=False))
    return written(simple.outputs[0], names)


def f(operation: str, *operands: Any, dtype: Any = None) -> Value:
    """Apply an operation to values and numbers of their dtype."""
    own = next(o.dtype for o in reversed(operands) if isinstance(o, Value))
    values = [o if isinstance(o, Value) else constant(o, own) for o in operands]
    return apply(operation, *values, dtype=dtype)


def neg(x: Value) -> Value:
    return f("neg", x)


EXACT: dict[str, list[tuple[Formula, str]]] = {
    "float64": [
        (lambda x, y, z: f("mul", x, 1), "x"),
        (lambda x, y, z: f("mul", 1, x), "x"),
        (lambda x, y, z: f("true_divide", x, 1), "x"),
        (lambda x, y, z: f("mul", x, -1), "neg(x)"),
        (lambda x, y, z: f("true_divide", x, -1), "neg(x)"),
        (lambda x, y, z: f("add", x, -0.0), "x"),
        (lambda x, y, z: f("sub", x, 0.0), "x"),
        (lambda x, y, z: f("sub", -0.0, x), "neg(x)"),
        (lambda x, y, z: f("add", f("exp", x), 0.0), "exp(x)"),
        (lambda x, y, z: f("add", f("mul", x, x), 0.0), "mul(x, x)"),
        (lambda x, y, z: f("sub", f("abs", x), -0.0), "abs(x)"),
        (lambda x, y, z: f("add", f("sub", 1, x), 0.0), "sub(1.0, x)"),
        (lambda x, y, z: neg(neg(x)), "x"),
        (lambda x, y, z: f("add", x, neg(y)), "sub(x, y)"),
        (lambda x, y, z: f("add", neg(x), y), "sub(y, x)"),
        (lambda x, y, z: f("sub", x, neg(y)), "add(x, y)"),
        (lambda x, y, z: f("mul", neg(x), y), "neg(mul(x, y))"),
        (lambda x, y, z: f("mul", neg(x), neg(y)), "mul(x, y)"),
        (lambda x, y, z: f("true_divide", x, neg(y)), "neg(true_divide(x, y))"),
        (lambda x, y, z: f("true_divide", neg(x), neg(y)), "true_divide(x, y)"),
        (lambda x, y, z: f("sub", z, f("mul", neg(x), y)), "add(z, mul(x, y))"),
        (lambda x, y, z: f("mul", neg(x), 3), "mul(x, -3.0)"),
        (lambda x, y, z: neg(f("mul", 3, x)), "mul(-3.0, x)"),
        (lambda x, y, z: f("true_divide", 3, neg(x)), "true_divide(-3.0, x)"),
        (lambda x, y, z: neg(f("true_divide", x, 3)), "true_divide(x, -3.0)"),
        (lambda x, y, z: f("true_divide", x, 4), "mul(x, 0.25)"),
        (lambda x, y, z: f("true_divide", x, 2.0**-1000), f"mul(x, {2.0**1000})"),
        (lambda x, y, z: f("mul", f("mul", x, 2), 3), "mul(x, 6.0)"),
        (lambda x, y, z: f("mul", -1.5, f("mul", 4, x)), "mul(x, -6.0)"),
        (lambda x, y, z: f("abs", neg(x)), "abs(x)"),
        (lambda x, y, z: f("abs", f("abs", x)), "abs(x)"),
        (lambda x, y, z: f("floor", f("ceil", x)), "ceil(x)"),
        (lambda x, y, z: f("maximum", x, x), "x"),
        (lambda x, y, z: f("maximum", f("maximum", x, 0), 0), "maximum(x, 0.0)"),
        (lambda x, y, z: f("lt", x, x), "expand(False)"),
        (lambda x, y, z: f("logical_not", f("eq", x, y)), "ne(x, y)"),
        (lambda x, y, z: f("where", f("lt", x, y), z, z), "z"),
        (lambda x, y, z: f("where", constant(True, bool), y, z), "y"),
        (lambda x, y, z: f("where", constant(False, bool), y, z), "z"),
        (
            lambda x, y, z: f("where", f("logical_not", f("lt", x, y)), y, z),
            "where(lt(x, y), z, y)",
        ),
        (
            lambda x, y, z: f("where", f("lt", x, y), f("where", f("lt", x, y), x, y), z),
            "where(lt(x, y), x, z)",
        ),
        (
            lambda x, y, z: f("where", f("lt", x, y), z, f("where", f("lt", x, y), x, y)),
            "where(lt(x, y), z, y)",
        ),
        (lambda x, y, z: f("where", f("gt", y, x), f("where", f("lt", x, y), x, y), x), "x"),
        (
            lambda x, y, z: f("where", f("lt", x, y), constant(True, bool), constant(False, bool)),
            "lt(x, y)",
        ),
        (lambda x, y, z: f("cast", x, dtype="float64"), "x"),
        (lambda x, y, z: f("real", x), "x"),
        (lambda x, y, z: f("conj", x), "x"),
        (lambda x, y, z: f("real", f("complex_of", x, y)), "x"),
        (lambda x, y, z: f("imag", f("complex_of", x, y)), "y"),
        (lambda x, y, z: f("imag", f("cast", x, dtype="complex128")), "expand(0.0)"),
        (lambda x, y, z: f("real", f("cast", x, dtype="complex128")), "x"),
        (lambda x, y, z: f("add", f("mul", 2.0, constant(3.0)), x), "add(6.0, x)"),
    ],
    "float32": [
        (lambda x, y, z: f("cast", f("cast", x, dtype="float64"), dtype="float32"), "x"),
    ],
    "int8": [
        (lambda x, y, z: f("add", x, 0), "x"),
        (lambda x, y, z: f("sub", x, x), "expand(0)"),
        (lambda x, y, z: f("sub", 0, x), "neg(x)"),
        (lambda x, y, z: f("mul", x, 0), "expand(0)"),
        (lambda x, y, z: f("mul", x, -1), "neg(x)"),
        (lambda x, y, z: f("add", 100, f("add", x, 100)), "add(x, -56)"),
        (lambda x, y, z: f("sub", f("add", x, 1), 1), "x"),
        (lambda x, y, z: f("mul", f("mul", 3, x), 100), "mul(x, 44)"),
        (lambda x, y, z: neg(f("sub", x, y)), "sub(y, x)"),
        (lambda x, y, z: f("eq", x, x), "expand(True)"),
        (lambda x, y, z: f("logical_not", f("lt", x, y)), "ge(x, y)"),
        (lambda x, y, z: f("bitwise_and", x, x), "x"),
        (lambda x, y, z: f("bitwise_xor", x, x), "expand(0)"),
        (lambda x, y, z: f("bitwise_or", x, 0), "x"),
        (lambda x, y, z: f("bitwise_and", x, -1), "x"),
        (lambda x, y, z: f("cast", f("cast", x, dtype="float32"), dtype="float64"), "float64(x)"),
        (lambda x, y, z: f("cast", f("cast", x, dtype="int64"), dtype="int8"), "x"),
    ],
    "int64": [
        (lambda x, y, z: f("cast", f("cast", x, dtype="int32"), dtype="int8"), "int8(x)"),
    ],
    "bool": [
        (lambda x, y, z: f("logical_not", f("logical_not", x)), "x"),
        (lambda x, y, z: f("logical_and", x, True), "x"),
        (lambda x, y, z: f("logical_or", x, True), "expand(True)"),
        (lambda x, y, z: f("bitwise_xor", x, True), "logical_not(x)"),
        (lambda x, y, z: f("eq", x, False), "logical_not(x)"),
        (lambda x, y, z: f("ne", x, False), "x"),
        (lambda x, y, z: f("mul", x, False), "expand(False)"),
        (lambda x, y, z: f("add", x, True), "expand(True)"),
    ],
    "complex128": [
        (lambda x, y, z: f("conj", f("conj", x)), "x"),
        (lambda x, y, z: f("complex_of", f("real", x), f("imag", x)), "x"),
        (lambda x, y, z: f("imag", f("conj", x)), "neg(imag(x))"),
        (lambda x, y, z: f("add", x, neg(y)), "sub(x, y)"),
        (lambda x, y, z: f("add", x, complex(-0.0, -0.0)), "x"),
    ],
}

INEXACT: dict[str, list[tuple[Formula, str]]] = {
    "float64": [
        (lambda x, y, z: f("mul", x, 0), "mul(x, 0.0)"),
        (lambda x, y, z: f("add", x, 0.0), "add(x, 0.0)"),
        (lambda x, y, z: f("sub", x, -0.0), "sub(x, -0.0)"),
        (lambda x, y, z: f("sub", 0.0, x), "sub(0.0, x)"),
        (lambda x, y, z: f("sub", x, x), "sub(x, x)"),
        (lambda x, y, z: f("true_divide", x, x), "true_divide(x, x)"),
        (lambda x, y, z: neg(f("sub", x, y)), "neg(sub(x, y))"),
        (lambda x, y, z: f("add", f("sub", x, y), y), "add(sub(x, y), y)"),
        (lambda x, y, z: f("true_divide", x, 3), "true_divide(x, 3.0)"),
        (lambda x, y, z: f("true_divide", x, 2.0**-1024), f"true_divide(x, {2.0**-1024})"),
        (lambda x, y, z: f("mul", f("mul", x, 0.5), 2), "mul(mul(x, 0.5), 2.0)"),
        (lambda x, y, z: f("mul", f("mul", x, 2), 0.5), "mul(mul(x, 2.0), 0.5)"),
        (lambda x, y, z: f("mul", f("mul", x, 3), 2), "mul(mul(x, 3.0), 2.0)"),
        (
            lambda x, y, z: f("mul", f("mul", x, 2.0**1000), 2.0**30),
            f"mul(mul(x, {2.0**1000}), {2.0**30})",
        ),
        (lambda x, y, z: f("add", f("sqrt", x), 0.0), "add(sqrt(x), 0.0)"),
        (lambda x, y, z: f("add", f("mul", x, y), 0.0), "add(mul(x, y), 0.0)"),
        (lambda x, y, z: f("eq", x, x), "eq(x, x)"),
        (lambda x, y, z: f("le", x, x), "le(x, x)"),
        (lambda x, y, z: f("logical_not", f("lt", x, y)), "logical_not(lt(x, y))"),
        (
            lambda x, y, z: f("sub", f("maximum", x, y), f("maximum", y, x)),
            "sub(maximum(x, y), maximum(y, x))",
        ),
        (lambda x, y, z: f("exp", constant(1.0)), "exp(1.0)"),
        (
            lambda x, y, z: f("cast", f("cast", x, dtype="float32"), dtype="float64"),
            "float64(float32(x))",
        ),
        (
            lambda x, y, z: f("add", f("cast", f("cast", x, dtype="float32"), dtype="float64"), 0),
            "add(float64(float32(x)), 0.0)",
        ),
    ],
    "int64": [
        (
            lambda x, y, z: f("cast", f("cast", x, dtype="float64"), dtype="float32"),
            "float32(float64(x))",
        ),
        (
            lambda x, y, z: f("cast", f("cast", x, dtype="int8"), dtype="int64"),
            "int64(int8(x))",
        ),
    ],
    "complex128": [
        (lambda x, y, z: f("mul", x, 1), "mul(x, (1+0j))"),
        (lambda x, y, z: f("add", x, complex(-0.0, 0.0)), "add(x, (-0+0j))"),
        (lambda x, y, z: f("mul", neg(x), y), "mul(neg(x), y)"),
    ],
}


@pytest.mark.sampled(0.18)
@pytest.mark.parametrize(
    ("dtype", "formula", "expected"),
    [(d, formula, text) for d, cases in EXACT.items() for formula, text in cases],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_exact_identities_are_used(dtype: str, formula: Formula, expected: str) -> None:
    assert result(formula, dtype) == expected


@pytest.mark.parametrize(
    ("dtype", "formula", "expected"),
    [(d, formula, text) for d, cases in INEXACT.items() for formula, text in cases],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_inexact_identities_are_not_used(dtype: str, formula: Formula, expected: str) -> None:
    assert result(formula, dtype) == expected


def test_a_sum_of_floats_is_known_not_to_be_negative_zero() -> None:
    (x,) = inputs(("float64", (3, 4)))
    total = reduce("sum", x, 1)
    (simple,) = simplify(Graph([x], [apply("add", total, constant(0.0))])).outputs
    assert simple.operation == "reduce"


@pytest.mark.parametrize("operation", ["add", "mul", "eq"])
def test_commuted_operands_are_one_value(operation: str) -> None:
    x, y = inputs(("float64", (3,)), ("float64", (3,)))
    graph = Graph([x, y], [apply(operation, x, y), apply(operation, y, x)])
    one, other = simplify(graph).outputs
    assert one is other


def test_mirrored_comparisons_are_one_value() -> None:
    x, y = inputs(("float64", (3,)), ("float64", (3,)))
    one, other = simplify(Graph([x, y], [apply("lt", x, y), apply("gt", y, x)])).outputs
    assert one is other


def test_zeros_of_different_sign_are_two_constants() -> None:
    (x,) = inputs(("float64", (3,)))
    outputs = [apply("copysign", x, constant(zero)) for zero in (0.0, -0.0)]
    one, other = simplify(Graph([x], outputs)).outputs
    assert one is not other


def test_constants_of_different_dtypes_are_two() -> None:
    outputs = [constant(1.0), constant(1.0, "float32"), constant(True, bool), constant(1, "int64")]
    assert len(set(simplify(Graph([], outputs)).outputs)) == 4


def test_calls_are_never_merged_or_changed() -> None:
    (x,) = inputs(("float64", (3,)))
    calls = [Value("call", [x], (3,), x.dtype, primitive=len) for _ in range(2)]
    items = [Value("item", [call], (3,), x.dtype, position=0) for call in calls]
    graph = simplify(Graph([x], items))
    assert graph.outputs[0] is not graph.outputs[1]


def test_constants_are_folded_in_their_own_precision() -> None:
    third = apply("true_divide", constant(1.0, "float32"), constant(3.0, "float32"))
    (folded,) = simplify(Graph([], [third])).outputs
    assert folded.attributes["value"] == float(np.float32(1) / np.float32(3))


@pytest.mark.parametrize(
    ("number", "dtype", "to", "expected"),
    [
        (2.75, "float64", "int8", 2),
        (-2.75, "float64", "int8", -2),
        (300, "int64", "int8", 44),
        (255, "uint8", "int8", -1),
        (2**24 + 1, "int64", "float32", 2**24),
        (0.5, "float64", "bool", True),
        (1 + 2j, "complex128", "float32", 1.0),
        (1e300, "float64", "float32", INF),
    ],
)
def test_casts_of_constants_are_folded(number: Any, dtype: str, to: str, expected: Any) -> None:
    value = apply("cast", constant(number, dtype), dtype=to)
    (folded,) = simplify(Graph([], [value])).outputs
    assert folded.operation == "constant"
    assert repr(folded.attributes["value"]) == repr(type(folded.attributes["value"])(expected))


@pytest.mark.parametrize("number", [NAN, INF, 1e10, 128.0])
def test_casts_that_do_not_fit_are_left_to_the_processor(number: float) -> None:
    value = apply("cast", constant(number), dtype="int8")
    (left,) = simplify(Graph([], [value])).outputs
    assert left.operation == "cast"


def test_a_minus_of_a_small_operand_stays_with_it() -> None:
    x, y = inputs(("float64", (5, 1)), ("float64", (5, 100)))
    (product,) = simplify(Graph([x, y], [apply("mul", neg(x), y)])).outputs
    assert product.operation == "mul"


def test_a_fill_is_as_good_as_its_number() -> None:
    (x,) = inputs(("float64", (2, 3)))
    ones = expand(constant(1.0), (2, 3))
    assert simplify(Graph([x], [apply("mul", ones, x)])).outputs == (x,)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers_of_0_and_1(dtype: str) -> None:
    assert result(lambda x, y, z: f("pow", x, 0.0), dtype) == "expand(1.0)"
    assert result(lambda x, y, z: f("pow", x, 1.0), dtype) == "x"
    assert result(lambda x, y, z: f("pow", x, 3.0), dtype) == "pow(x, 3.0)"


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("source", ["bool", "int64", "float32", "float64"])
def test_zero_is_added_where_a_cast_can_give_negative_zeros(source: str, dtype: str) -> None:
    (x,) = inputs((source, (4,)))
    smallest = apply("add", x, constant(np.dtype(source).type(0).item(), source))  # not -0.0
    total = apply("add", apply("cast", smallest, dtype=dtype), constant(0.0, dtype))
    graph = Graph([x], [total])
    numbers = [np.array([-1e-300, -0.0, 1e-300, -1e-45], "float64").astype(source)]
    (before,), (after,) = evaluate(graph, numbers), evaluate(simplify(graph), numbers)
    assert same_bits(before, after)
