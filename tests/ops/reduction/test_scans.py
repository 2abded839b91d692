"""Cumulative sums, products, extremes and logarithms of sums, against PyTorch and NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng
from numgrad.ops.core.primitive import CATALOGUE
from tests.ops.torch_comparison import compare

SHAPES = [(), (1,), (5,), (0,), (2, 3), (3, 0), (0, 3), (2, 3, 4)]
DTYPES = ["float32", "float64", "complex64", "complex128", "int64", "int32", "uint8", "bool"]
INF, NAN = np.inf, np.nan


def numbers(shape, dtype="float64"):
    random = np.random.default_rng(3)
    values = random.uniform(-2, 2, shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * random.uniform(-2, 2, shape)
    if np.dtype(dtype).kind in "iu":
        values = np.abs(values * 3)
    return np.asarray(values).astype(dtype)


CALLS = {
    "first": lambda m, name, x: getattr(m, name)(x, 0),
    "last": lambda m, name, x: getattr(x, name)(-1),
    "keyword": lambda m, name, x: getattr(x, name)(dim=1),
    "axis": lambda m, name, x: getattr(m, name)(x, axis=0),
    "none": lambda m, name, x: getattr(x, name)(),
    "out of range": lambda m, name, x: getattr(x, name)(7),
    "several": lambda m, name, x: getattr(x, name)((0, 1)),
    "a word": lambda m, name, x: getattr(x, name)("a"),
}
NAMES = ["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"]


@pytest.mark.sampled(0.11, by="name")
@pytest.mark.parametrize("way", CALLS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_call_does_what_pytorch_does(torch, name, way, shape):
    # The parser's words for a wrong dim of cummax name both of its signatures.
    compare(
        torch,
        lambda m, x: CALLS[way](m, name, x),
        numbers(shape),
        exact_words=way not in ("several", "a word"),
    )


@pytest.mark.sampled(0.11, by="name")
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_does_what_pytorch_does(torch, name, dtype):
    for dim in (0, 1):
        compare(torch, lambda m, x, dim=dim: getattr(m, name)(x, dim), numbers((3, 4), dtype))


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("target", ["float64", "complex128", "int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
@pytest.mark.parametrize("requires_grad", [True, False])
def test_a_dtype_to_compute_in_is_pytorchs(torch, name, target, dtype, requires_grad):
    if requires_grad and target == "complex128" and dtype == "float32":
        return  # PyTorch cannot run this backward; the catalogue's samples check ours
    compare(
        torch,
        lambda m, x: getattr(m, name)(x, 0, dtype=getattr(m, target)),
        numbers((3, 2), dtype),
        requires_grad=requires_grad,
    )


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("zeros", [(0,), (2,), (4,), (0, 4), (1, 2), (0, 2, 4), (0, 1, 2, 3, 4)])
def test_products_with_zeros_have_pytorchs_derivatives(torch, zeros, dtype):
    values = numbers((5,), dtype)
    values[list(zeros)] = 0
    compare(torch, lambda m, x: m.cumprod(x, 0), values)
    compare(torch, lambda m, x: m.cumprod(x, 0), np.stack([values, numbers((5,), dtype)], 1))


@pytest.mark.parametrize("values", [[2.0, 2.0, 1.0, 2.0], [NAN, 1.0, 3.0], [1.0, NAN, 2.0, NAN]])
@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_ties_and_nan_have_pytorchs_results_and_subgradients(torch, name, values):
    compare(torch, lambda m, x: getattr(m, name)(x, 0), np.array(values))


def test_a_product_that_overflows_has_a_gradient_where_it_is_finite():
    x = ng.tensor([2.0, 1e200, 1e200], dtype=ng.float64, requires_grad=True)
    x.cumprod(0)[1].backward()
    assert x.grad.tolist() == [1e200, 2.0, 0.0]


@given(
    length=st.integers(1, 6),
    reverse=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_a_linear_recurrence_and_its_reverse_are_transposes(length, reverse, seed):
    random = np.random.default_rng(seed)
    factors, terms, weights = (
        random.standard_normal((length, 2)) + 1j * random.standard_normal((length, 2))
        for _ in range(3)
    )
    recur = CATALOGUE["linear_recurrence"].apply

    def run(f, t, reverse):
        return recur(ng.from_numpy(f), ng.from_numpy(t), dim=0, reverse=reverse).numpy()

    there = (run(factors, terms, reverse) * weights).sum()
    back = (terms * run(factors, weights, not reverse)).sum()
    np.testing.assert_allclose(there, back, rtol=1e-10)


@given(values=st.lists(st.floats(-700, 700), min_size=1, max_size=50))
def test_logcumsumexp_is_that_of_numpys_logaddexp(values):
    array = np.array(values)
    ours = ng.logcumsumexp(ng.from_numpy(array), 0).numpy()
    np.testing.assert_allclose(ours, np.logaddexp.accumulate(array), rtol=1e-13, atol=1e-13)
