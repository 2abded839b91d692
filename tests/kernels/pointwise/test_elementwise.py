"""Elementwise kernels: what is emitted, what LLVM makes of it, and that layouts do not matter."""

from __future__ import annotations

import re

import numpy as np
import pytest
from llvmlite import binding

from numgrad.base.tuning import THREAD_ELEMENTS_ARITHMETIC
from numgrad.codegen.expression import Symbol, emit
from numgrad.codegen.loops import Assign, Name, combine
from numgrad.codegen.printer import print_module
from numgrad.codegen.render import flat_loop
from numgrad.kernels.pointwise.elementwise import Elementwise
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.core.primitive import CATALOGUE
from numgrad.runtime.threads import get_num_threads, set_num_threads
from tests.rows import names_of

IN_DOUBLE = names_of("IN_DOUBLE")
PRIMITIVES = [
    primitive
    for primitive in CATALOGUE.values()
    if isinstance(primitive, ElementwisePrimitive) and "f" in primitive.accepts
]
# What LLVM can vectorise: no call of the C library's mathematics in forward or gradient.
VECTORISED = [
    "add",
    "sub",
    "mul",
    "true_divide",
    "neg",
    "sqrt",
    "exp",
    "tanh",
    "sigmoid",
    "maximum",
]
VECTORISED += ["log", "log1p", "log2", "log10", "exp2", "expm1", "sinh", "cosh", "asinh", "acosh"]
VECTORISED += ["atanh", "hypot", "pow", "pow_tensors", "softplus", "logsigmoid", "logaddexp"]
VECTORISED += ["where", "relu", "abs", "floor", "addcmul", "pow_2", "reciprocal"]
VECTORISED += ["sin", "cos", "tan", "asin", "acos", "atan", "atan2", "erf", "erfc"]


def inspected(kernel: Elementwise) -> Elementwise:
    """Return a copy of a kernel that shares no compiled code with it."""
    return Elementwise(f"{kernel.name}, inspected", kernel.inputs, kernel.formula)


@pytest.fixture(autouse=True)
def compile_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Go without the disk cache: Numba cannot show the code of what it loaded."""
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", "off")


def float32_kernels(primitive: ElementwisePrimitive) -> list:
    """Return the compiled forward and gradient loops of a primitive for float32 arrays."""
    operands = [
        d.intervals[0][0] if d.is_number else np.ones(8, bool if d.is_mask else np.float32)
        for d in primitive.domains
    ]
    float32 = np.dtype(np.float32)
    forward = inspected(primitive.kernel)
    (out,) = forward((8,), operands, [np.dtype(bool) if primitive.kind == "bool" else float32])
    loops = list(forward.loops.values())
    if any(primitive.rules):
        plan = primitive.plan((1 << primitive.tensor_count) - 1, "t" * len(primitive.inputs))
        if plan.kernel_outputs:
            backward = inspected(plan.kernel)
            saved = [out if kind == "output" else operands[at] for kind, at in plan.saved]
            backward((8,), [np.ones(8, np.float32), *saved], [float32] * plan.kernel_outputs)
            loops += backward.loops.values()
    return loops


@pytest.mark.sampled(0.09)
@pytest.mark.parametrize("primitive", PRIMITIVES, ids=[p.name for p in PRIMITIVES])
def test_float32_stays_float32(primitive):
    """No loop of float32 arrays widens a number to float64, but for functions that need digits."""
    if primitive.name in IN_DOUBLE:
        return
    for loop in float32_kernels(primitive):
        for signature in loop.signatures:
            if any("array(float32" in str(argument) for argument in signature):
                assert "fpext" not in loop.inspect_llvm(signature)


@pytest.mark.sampled(0.13)
@pytest.mark.skipif(
    not re.search("avx|sse2|neon", binding.get_host_cpu_features().flatten()),
    reason="the processor has no SIMD instructions",
)
@pytest.mark.parametrize("name", VECTORISED)
def test_contiguous_loop_is_vectorised(name):
    for loop in float32_kernels(CATALOGUE[name]):
        for signature in loop.signatures:
            if any("float32, 1d, C" in str(argument) for argument in signature):
                llvm = loop.inspect_llvm(signature)
                assert re.search(r"store <\d+ x (float|i8)>|llvm\.memset", llvm), (
                    f"{name}: {signature}"
                )


def test_emission_computes_a_repeated_expression_once():
    x = Symbol.input("x", is_complex=False)
    code = emit([x * x + 1.0, (x * x) * 2.0])
    assert code.lines == [
        Assign("t0", combine("*", "x", "x")),
        Assign("t1", combine("+", "t0", "c0")),
        Assign("t2", combine("*", "t0", "c1")),
    ]
    assert code.results == [Name("t1"), Name("t2")]
    assert code.functions == set()
    assert code.constants == {"c0": 1.0, "c1": 2.0}


def test_a_formula_may_not_branch_on_a_value():
    x = Symbol.input("x", is_complex=False)
    with pytest.raises(TypeError, match="use where"):
        bool(x > 0)


def test_source_gives_constants_the_dtype_of_the_arrays():
    source = print_module([flat_loop(["x"], lambda symbols: [symbols["x"] * 0.5], "a")])
    assert "c0 = x.dtype.type(0.5)" in source


def square_plus() -> Elementwise:
    return Elementwise("square_plus", ["x", "y"], lambda s: [s["x"] * s["x"] + s["y"]])


@pytest.mark.parametrize(
    "layout",
    [
        lambda a: a,
        lambda a: a.T,
        lambda a: a[::2],
        lambda a: a[:, ::-1],
        lambda a: np.broadcast_to(a[:1], a.shape),
    ],
    ids=["contiguous", "transposed", "strided", "reversed", "expanded"],
)
def test_layout_does_not_change_the_values(layout):
    x = layout(np.random.default_rng(0).standard_normal((6, 8)))
    y = layout(np.random.default_rng(1).standard_normal((6, 8)))
    (result,) = square_plus()(x.shape, [x, y], [x.dtype])
    np.testing.assert_array_equal(result, x * x + y)


def test_numbers_and_broadcast_operands():
    x = np.arange(6.0).reshape(2, 3)
    for y in (2.5, np.array([1.0, 2.0, 3.0]), np.array([[1.0], [2.0]]), np.array([4.0])):
        (result,) = square_plus()((2, 3), [x, y], [x.dtype])
        np.testing.assert_array_equal(result, x * x + y)


def test_the_number_of_threads_does_not_change_the_bits():
    x = np.random.default_rng(0).standard_normal(3 * THREAD_ELEMENTS_ARITHMETIC + 17)
    kernel = Elementwise("wave", ["x"], lambda s: [Symbol.apply("tanh", s["x"]) * 0.3])
    before = get_num_threads()
    results = []
    try:
        for count in (1, 2, 5):
            set_num_threads(count)
            results.append(kernel(x.shape, [x], [x.dtype])[0])
    finally:
        set_num_threads(before)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
