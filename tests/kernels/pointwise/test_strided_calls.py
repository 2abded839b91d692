"""Elementwise calls on operands that do not lie flat: values, strides of results, vector code."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llvmlite import binding

from numgrad.base.tuning import FEW_ELEMENTS, THREAD_ELEMENTS_ARITHMETIC
from numgrad.codegen.expression import Symbol
from numgrad.kernels.pointwise.elementwise import Elementwise
from numgrad.runtime.threads import get_num_threads, set_num_threads
from tests.cases import examples


def blend() -> Elementwise:
    return Elementwise("blend", ["x", "y"], lambda s: [s["x"] * 2.0 - s["y"], s["x"] * s["y"]])


@st.composite
def operands(draw: Any) -> tuple[tuple[int, ...], list[np.ndarray]]:
    """Return a shape and two arrays that broadcast to it, of any strides."""
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 5]), min_size=1, max_size=5)))
    factor = 1 + FEW_ELEMENTS // int(np.prod(shape))  # so many that nothing is written out
    shape = (*shape[:-1], shape[-1] * factor)
    generator = np.random.default_rng(draw(st.integers(0, 1000)))
    arrays = []
    for position in range(2):
        own = list(shape)
        if position:  # the first one is full, so the shape is the result's
            own = [draw(st.sampled_from([n, 1])) for n in shape]
        order = draw(st.permutations(range(len(own))))
        steps = [draw(st.sampled_from([1, 1, 2, -1])) for _ in own]
        room = [own[dim] * abs(steps[dim]) for dim in order]
        stored = generator.standard_normal(room)
        array = stored.transpose(np.argsort(order))
        arrays.append(array[tuple(slice(None, None, step) for step in steps)])
    return shape, arrays


@settings(max_examples=examples(60))
@given(operands())
def test_any_strides_give_the_values_of_numpy(case):
    shape, (x, y) = case
    out, product = KERNEL(shape, [x, y], [x.dtype, x.dtype])
    np.testing.assert_array_equal(out, x * 2.0 - y)
    np.testing.assert_array_equal(product, x * y)


KERNEL = blend()


@pytest.mark.parametrize("count", [2 * THREAD_ELEMENTS_ARITHMETIC, 40])
def test_threads_do_not_change_the_values(count):
    x = np.random.default_rng(0).standard_normal(
        (count, 2 * THREAD_ELEMENTS_ARITHMETIC // count + 3, 2)
    )[..., 0]
    y = np.random.default_rng(1).standard_normal((x.shape[1], 1))[:, 0]
    before, results = get_num_threads(), []
    try:
        for threads in (1, 2, 5):
            set_num_threads(threads)
            results.append(KERNEL(x.shape, [x, y], [x.dtype] * 2)[0])
    finally:
        set_num_threads(before)
    for result in results:
        np.testing.assert_array_equal(result, x * 2.0 - y)


@pytest.mark.parametrize(
    "axes", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1)], ids=lambda axes: "".join(map(str, axes))
)
@pytest.mark.parametrize("small", [True, False])
def test_result_has_the_strides_that_pytorch_gives_it(torch, axes, small):
    shape = (3, 4, 5) if small else (13, 24, 35)
    x = np.ones(shape).transpose(axes)
    for y in (x, np.ones(x.shape), np.ones(x.shape[1:]), np.ones((x.shape[0], 1, 1))):
        for left, right in ((x, y), (y, x)):
            expected = torch.from_numpy(left) + torch.from_numpy(right)
            (result,) = PLUS(x.shape, [left, right], [x.dtype])
            assert result.strides == tuple(8 * step for step in expected.stride())


PLUS = Elementwise("plus", ["x", "y"], lambda s: [s["x"] + s["y"]])


def test_odd_strides_and_mixed_kinds():
    record = np.zeros(FEW_ELEMENTS + 7, np.dtype([("x", np.float64), ("flag", np.bool_)]))
    record["x"] = np.arange(FEW_ELEMENTS + 7)
    record["flag"][::3] = True
    kernel = Elementwise("select", ["x", "flag"], lambda s: [s["x"] * 2.0, s["flag"]])
    (doubled, flags) = kernel(
        record.shape, [record["x"], record["flag"]], [np.dtype(np.float64), np.dtype(bool)]
    )
    np.testing.assert_array_equal(doubled, record["x"] * 2.0)
    np.testing.assert_array_equal(flags, record["flag"])


def test_integers_and_python_numbers():
    x = np.arange(3 * FEW_ELEMENTS).reshape(3, -1)[:, ::2]
    (result,) = PLUS(x.shape, [x, 2], [x.dtype])
    np.testing.assert_array_equal(result, x + 2)


@pytest.mark.skipif(
    not re.search("avx|sse2|neon", binding.get_host_cpu_features().flatten()),
    reason="the processor has no SIMD instructions",
)
@pytest.mark.parametrize(
    "make",
    [
        lambda x: (x, x[0]),
        lambda x: (x, x[:, :1]),
        lambda x: (x[:, ::2], x[:, 1::2]),
    ],
    ids=["row", "column", "steps"],
)
def test_inner_loop_is_vectorised(make, monkeypatch):
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", "off")
    kernel = Elementwise("inspected", ["x", "y"], lambda s: [s["x"] * s["y"] + 0.5])
    x, y = make(np.ones((100, 100), np.float32))
    kernel(x.shape, [x, y], [x.dtype])
    (loop,) = kernel.loops.values()
    (signature,) = loop.signatures
    llvm = loop.inspect_llvm(signature)
    assert re.search(r"store <\d+ x float>", llvm)
    assert "fpext" not in llvm


def test_steps_that_are_a_variable_leave_a_loop_vectorised(monkeypatch):
    """LLVM would do so for steps of 1 alone, and look whether they are."""
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", "off")
    kernel = Elementwise("power", ["x", "y"], lambda s: [Symbol.apply("exp", s["x"]) * s["y"]])
    x = np.ones((100, 100))
    kernel(x.shape, [x, x.T], [x.dtype])
    (loop,) = kernel.loops.values()
    (llvm,) = loop.inspect_llvm().values()
    assert re.search(r"call <\d+ x double> @llvm.fma", llvm)
    assert not re.search(r"icmp (eq|ne) i64 %\S+, 1$", llvm, re.MULTILINE)  # steps of 1 alone


def test_far_angles_are_told_from_near_ones_in_strided_loops():
    x = np.linspace(-4, 4, 4 * FEW_ELEMENTS).reshape(4, -1).copy()
    x[2, 5] = 1e300
    wave = Elementwise("wave", ["x", "y"], lambda s: [Symbol.apply("sin", s["x"]) * s["y"]])
    (flat,) = wave(x.shape, [x, np.ones(x.shape)], [x.dtype])
    (strided,) = wave(x.shape, [x, np.ones(x.shape[1])], [x.dtype])
    np.testing.assert_array_equal(flat, strided)
