"""Sums, means, products, truth and counts, against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import numgrad as ng
from tests.ops.torch_comparison import compare

SHAPES = [(), (1,), (5,), (0,), (2, 3), (3, 0), (0, 3), (2, 3, 4)]
DTYPES = ["float32", "float64", "complex64", "complex128", "int64", "int32", "uint8", "bool"]
INF, NAN = np.inf, np.nan


def numbers(shape, dtype="float64"):
    random = np.random.default_rng(0)
    values = random.uniform(-2, 2, shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * random.uniform(-2, 2, shape)
    if dtype == "bool":
        return np.asarray(values > 0)
    if np.dtype(dtype).kind in "iu":
        return np.asarray(np.abs(values * 3)).astype(dtype)
    return np.asarray(values).astype(dtype)


def calls(name):
    """Return the ways in which a reduction over any dims is called."""
    return {
        "all": lambda m, x: getattr(m, name)(x),
        "method": lambda m, x: getattr(x, name)(),
        "first": lambda m, x: getattr(x, name)(0),
        "last, keepdim": lambda m, x: getattr(m, name)(x, -1, True),
        "keywords": lambda m, x: getattr(m, name)(x, dim=1, keepdim=True),
        "axis": lambda m, x: getattr(m, name)(x, axis=0, keepdims=True),
        "several": lambda m, x: getattr(x, name)((0, -1)),
        "list": lambda m, x: getattr(x, name)([1], keepdim=False),
        "no dims": lambda m, x: getattr(x, name)(()),
        "twice": lambda m, x: getattr(x, name)((0, 0)),
        "twice from behind": lambda m, x: getattr(x, name)((-1, 0, -1)),
        "out of range": lambda m, x: getattr(x, name)(7),
        "keepdim no bool": lambda m, x: getattr(x, name)(0, 1),
        "a word": lambda m, x: getattr(x, name)("a"),
        "a float": lambda m, x: getattr(x, name)(1.0),
        "a list": lambda m, x: getattr(m, name)([1.0]),
    }


ANY_DIMS = [
    pytest.param(name, call, id=f"{name}-{way}")
    for name in ("sum", "mean", "nansum", "nanmean", "all", "any")
    for way, call in calls(name).items()
]


@pytest.mark.sampled(0.11, by="name")
@pytest.mark.parametrize(("name", "call"), ANY_DIMS)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_call_does_what_pytorch_does(torch, name, call, shape):
    compare(torch, call, numbers(shape))


@pytest.mark.parametrize("name", ["sum", "mean", "nansum", "nanmean", "prod", "all", "any"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_does_what_pytorch_does(torch, name, dtype):
    compare(torch, lambda m, x: getattr(m, name)(x), numbers((2, 3), dtype))
    compare(torch, lambda m, x: getattr(m, name)(x, 1), numbers((2, 3), dtype))


@pytest.mark.sampled(0.11, by="name")
@pytest.mark.parametrize("name", ["sum", "mean", "nansum", "prod"])
@pytest.mark.parametrize("target", ["float32", "float64", "complex128", "int32", "int64", "bool"])
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex64"])
@pytest.mark.parametrize("requires_grad", [True, False])
def test_a_dtype_to_compute_in_is_pytorchs(torch, name, target, dtype, requires_grad):
    def call(m, x):
        return getattr(m, name)(x, 0, dtype=getattr(m, target))

    def call_all(m, x):
        return getattr(m, name)(x, dtype=getattr(m, target))

    if requires_grad and target == "complex128" and dtype == "float32":
        return  # PyTorch cannot run this backward; the catalogue's samples check ours
    for each in (call, call_all):
        compare(torch, each, numbers((2, 3), dtype), requires_grad=requires_grad)


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "nansum", "nanmean"])
@pytest.mark.parametrize(
    "values", [[INF, 1.0], [INF, -INF], [NAN, 1.0], [-INF, NAN, 0.0], [1e38, 1e38], [-0.0, 0.0]]
)
def test_special_values_are_pytorchs(torch, name, values):
    for dtype in ("float32", "float64"):
        compare(torch, lambda m, x: getattr(m, name)(x), np.array(values, dtype), order=1)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "call",
    [
        lambda m, x: m.prod(x),
        lambda m, x: x.prod(0),
        lambda m, x: x.prod(-1, True),
        lambda m, x: m.prod(x, dim=1, keepdim=True),
        lambda m, x: x.prod(axis=0),
        lambda m, x: x.prod(7),
        lambda m, x: x.prod((0, 1)),
    ],
)
def test_products_are_pytorchs(torch, call, shape):
    compare(torch, call, numbers(shape))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(
    "zeros", [(), ((0, 1),), ((0, 1), (1, 0)), ((0, 1), (0, 2)), ((0, 0), (0, 1), (0, 2))]
)
def test_products_with_zeros_have_pytorchs_derivatives(torch, zeros, dtype):
    values = numbers((2, 3), dtype)
    for place in zeros:
        values[place] = 0
    compare(torch, lambda m, x: m.prod(x), values)
    compare(torch, lambda m, x: m.prod(x, 1), values)
    compare(torch, lambda m, x: m.prod(x, 0, True), values)


@pytest.mark.parametrize(
    "call",
    [
        lambda m, x: m.count_nonzero(x),
        lambda m, x: x.count_nonzero(0),
        lambda m, x: x.count_nonzero(dim=(0, -1)),
        lambda m, x: x.count_nonzero(()),
        lambda m, x: x.count_nonzero((0, 0)),
        lambda m, x: x.count_nonzero(9),
    ],
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_counts_are_pytorchs(torch, call, dtype):
    for shape in ((), (2, 3), (0, 3)):
        compare(torch, call, numbers(shape, dtype))
    compare(torch, call, np.array([[0.0, NAN], [-0.0, INF]]))


@pytest.mark.parametrize(
    ("reduce", "slope"),
    [
        (lambda t: t.sum(), 1.0),
        (lambda t: t.sum(0), 1.0),
        (lambda t: t.mean(), 1 / 4),
        (lambda t: t.mean(0), 1 / 2),
    ],
)
def test_sums_and_means_save_nothing_so_that_their_graph_runs_twice(reduce, slope):
    x = ng.ones(2, 2, requires_grad=True)
    y = reduce(x)
    y.backward(ng.ones_like(y))
    y.backward(ng.ones_like(y))
    assert x.grad.tolist() == [[2 * slope] * 2] * 2


def test_the_gradient_of_a_sum_is_a_view_without_memory_of_its_own():
    x = ng.ones(100, 100, requires_grad=True)
    seen = []
    y = x * 1.0
    y.register_hook(lambda g: seen.append(g._array.strides))
    y.sum().backward()
    assert seen == [(0, 0)]
    y = x * 1.0
    y.register_hook(lambda g: seen.append(g._array.strides))
    y.sum(0).sum().backward()
    assert seen[1] == (0, 0)


def test_both_names_of_one_argument_are_an_error():
    with pytest.raises(TypeError, match="axis"):
        ng.ones(2).sum(dim=0, axis=0)
