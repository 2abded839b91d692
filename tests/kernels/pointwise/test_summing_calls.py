"""Elementwise calls that sum outputs to the shapes of broadcast operands."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numgrad.kernels.pointwise import summing_calls
from numgrad.kernels.pointwise.elementwise import Elementwise
from numgrad.runtime.threads import get_num_threads, set_num_threads
from tests.cases import examples

# What the gradients of a product are: two outputs of three operands.
KERNEL = Elementwise("times", ["g", "x", "y"], lambda s: [s["g"] * s["y"], s["g"] * s["x"]])


def reduced(values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return the sum to a shape that broadcasts to that of the values, in float64."""
    missing = values.ndim - len(shape)
    dims = tuple(range(missing)) + tuple(
        missing + dim for dim, n in enumerate(shape) if n == 1 and values.shape[missing + dim] != 1
    )
    return values.astype(np.float64).sum(dims, keepdims=True).reshape(shape)


def check(g: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    outputs = KERNEL(g.shape, [g, x, y], [g.dtype] * 2, shapes=(x.shape, y.shape))
    tolerance = 16 * np.finfo(g.dtype).eps
    for output, values, shape in zip(outputs, (g * y, g * x), (x.shape, y.shape), strict=True):
        assert output.shape == shape
        assert output.dtype == g.dtype
        bound = reduced(np.abs(values), shape)
        assert np.all(np.abs(output - reduced(values, shape)) <= tolerance * bound)


@st.composite
def shapes(draw: Any) -> list[tuple[int, ...]]:
    """Return what two operands broadcast to, and their shapes."""
    full = draw(st.lists(st.sampled_from([1, 2, 3, 7, 40]), min_size=1, max_size=4))
    full[draw(st.integers(0, len(full) - 1))] *= draw(st.sampled_from([1, 30, 700]))
    pair = [[draw(st.sampled_from([n, 1])) for n in full] for _ in range(2)]
    missing = draw(st.integers(0, len(full)))
    result = tuple(np.broadcast_shapes(*pair))
    return [result, tuple(pair[0]), tuple(pair[1][missing:])]


@settings(max_examples=examples(80))
@given(shapes(), st.booleans())
def test_sums_are_those_of_the_values(case, transposed):
    full, one, other = case
    full = np.broadcast_shapes(one, other)
    generator = np.random.default_rng(0)
    g = generator.standard_normal(full[::-1] if transposed else full)
    check(
        g.T if transposed else g, generator.standard_normal(one), generator.standard_normal(other)
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("full", "small"),
    list(
        product(
            [(2000, 300), (3, 40_000), (70_000, 3)],
            [(1, 1), "row", "column"],
        )
    ),
)
def test_blocks_and_columns_join(full, small, dtype):
    shape = {"row": full[1:], "column": (full[0], 1)}.get(small, small)
    generator = np.random.default_rng(0)
    check(
        generator.standard_normal(full).astype(dtype),
        generator.standard_normal(full).astype(dtype),
        generator.standard_normal(shape).astype(dtype),
    )


@pytest.mark.parametrize("shape", [(1, 3), (900, 1), (1, 1), (1,)])
def test_the_number_of_threads_does_not_change_the_bits(shape, monkeypatch):
    monkeypatch.setattr(summing_calls, "SUMMING_COLUMNS", 1 << 9)
    generator = np.random.default_rng(0)
    full = (900, 3000 if shape[-1] == 1 else 3)
    g, x = generator.standard_normal((2, *full)).astype(np.float32)
    y = generator.standard_normal(shape).astype(np.float32)
    before, results = get_num_threads(), []
    try:
        for threads in (1, 2, 4, 16):
            set_num_threads(threads)
            results.append(KERNEL(full, [g, x, y], [g.dtype] * 2, shapes=(full, shape))[1])
    finally:
        set_num_threads(before)
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_nothing_of_the_full_size_is_stored_for_a_sum(monkeypatch):
    g = np.ones((4000, 500))
    row = np.ones(500)
    made = []
    zeros = np.zeros

    def counted(shape: Any, dtype: Any) -> np.ndarray:
        made.append(int(np.prod(shape)))
        return zeros(shape, dtype)

    monkeypatch.setattr(summing_calls.np, "zeros", counted)
    KERNEL(g.shape, [g, g, row], [g.dtype] * 2, shapes=(g.shape, row.shape))
    assert made
    assert max(made) <= g.size // 100
