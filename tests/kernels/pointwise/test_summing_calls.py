"""Elementwise calls that sum outputs to the shapes of broadcast operands."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numgrad.kernels.pointwise import summed_outputs, summing_calls
from numgrad.kernels.pointwise.elementwise import Elementwise
from numgrad.kernels.pointwise.summed_outputs import summed_dims
from numgrad.kernels.reduce import reductions
from numgrad.runtime.threads import get_num_threads, set_num_threads
from tests.cases import examples

# What the gradients of a product are: two outputs of three operands.
KERNEL = Elementwise("times", ["g", "x", "y"], lambda s: [s["g"] * s["y"], s["g"] * s["x"]])


def check(g: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    """Compare with the sums of arrays that hold all values: not a bit differs."""
    shapes = x.shape, y.shape
    outputs = KERNEL(g.shape, [g, x, y], [g.dtype] * 2, shapes=shapes)
    whole = KERNEL(g.shape, [g, x, y], [g.dtype] * 2)
    for output, values, shape in zip(outputs, whole, shapes, strict=True):
        expected = np.ascontiguousarray(values)
        if shape != g.shape:
            expected = reductions.sum(expected, summed_dims(g.shape, shape), True).reshape(shape)
        assert output.shape == shape
        assert output.dtype == g.dtype
        assert output.tobytes() == expected.tobytes()


@st.composite
def shapes(draw: Any) -> list[tuple[int, ...]]:
    """Return what two operands broadcast to, and their shapes."""
    full = draw(st.lists(st.sampled_from([1, 2, 3, 7, 40, 64]), min_size=1, max_size=4))
    full[draw(st.integers(0, len(full) - 1))] *= draw(st.sampled_from([1, 30, 700]))
    pair = [[draw(st.sampled_from([n, 1])) for n in full] for _ in range(2)]
    missing = draw(st.integers(0, len(full)))
    result = tuple(np.broadcast_shapes(*pair))
    return [result, tuple(pair[0]), tuple(pair[1][missing:])]


@settings(max_examples=examples(80, in_sample=5))
@given(shapes(), st.sampled_from(["whole", "transposed", "expanded"]), st.booleans())
def test_sums_are_those_of_the_values(case, layout, is_complex):
    full, one, other = case
    full = np.broadcast_shapes(one, other)
    generator = np.random.default_rng(0)

    def drawn(shape: tuple[int, ...]) -> np.ndarray:
        numbers = generator.standard_normal(shape).astype(np.float32)
        return numbers + 1j * numbers[..., ::-1] if is_complex and shape else numbers

    g = drawn(full[::-1] if layout == "transposed" else full)
    if layout == "transposed":
        g = g.T
    elif layout == "expanded":
        g = np.broadcast_to(g[..., :1], full)
    check(g, drawn(one).astype(g.dtype), drawn(other).astype(g.dtype))


@pytest.mark.sampled(0.5)
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
    monkeypatch.setattr(summing_calls, "SUMMING_COLUMNS", 1 << 10)
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
    empty = summed_outputs.empty

    def counted(shape: Any, dtype: Any) -> np.ndarray:
        made.append(int(np.prod(shape)))
        return empty(shape, dtype)

    monkeypatch.setattr(summed_outputs, "empty", counted)
    KERNEL(g.shape, [g, g, row], [g.dtype] * 2, shapes=(g.shape, row.shape))
    assert sorted(made)[1:] == [g.size]  # what is not summed
    assert min(made) <= g.size // 100
