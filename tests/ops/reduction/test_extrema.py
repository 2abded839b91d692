"""Greatest and least elements, positions, and named results, against PyTorch."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import numgrad as ng
from tests.ops.torch_comparison import compare

SHAPES = [(), (1,), (5,), (0,), (2, 3), (3, 0), (0, 3), (2, 3, 4)]
DTYPES = ["float32", "float64", "complex64", "int64", "int32", "uint8", "bool"]
INF, NAN = np.inf, np.nan
TIES = [
    [2.0, 2.0, 1.0, 2.0],
    [NAN, 1.0, NAN, 3.0],
    [1.0, 1.0, 1.0, 1.0],
    [INF, -INF, INF, -INF],
    [-0.0, 0.0, -1.0, 0.0],
]

OVER_DIMS = {
    "all": lambda m, name, x: getattr(m, name)(x),
    "first": lambda m, name, x: getattr(x, name)(0),
    "several": lambda m, name, x: getattr(x, name)((0, -1), True),
    "keywords": lambda m, name, x: getattr(m, name)(x, dim=1, keepdim=True),
    "axis": lambda m, name, x: getattr(m, name)(x, axis=-1, keepdims=True),
    "no dims": lambda m, name, x: getattr(x, name)(()),
    "twice": lambda m, name, x: getattr(x, name)((0, 0)),
    "out of range": lambda m, name, x: getattr(x, name)(7),
    "a word": lambda m, name, x: getattr(x, name)("a"),
    "keepdim no bool": lambda m, name, x: getattr(x, name)(0, 1),
}
ONE_DIM = {
    "all": lambda m, name, x: getattr(m, name)(x),
    "first": lambda m, name, x: getattr(x, name)(0),
    "last": lambda m, name, x: getattr(m, name)(x, -1, True),
    "keywords": lambda m, name, x: getattr(m, name)(x, dim=1, keepdim=True),
    "axis": lambda m, name, x: getattr(x, name)(axis=0, keepdims=True),
    "out of range": lambda m, name, x: getattr(x, name)(7),
    "several": lambda m, name, x: getattr(x, name)((0, 1)),
    "a word": lambda m, name, x: getattr(x, name)("a"),
}
NAMED = {
    "all": lambda m, name, x: getattr(m, name)(x),
    "keywords": lambda m, name, x: getattr(m, name)(x, dim=1, keepdim=True),
    "method": lambda m, name, x: getattr(x, name)(dim=-1),
    "out of range": lambda m, name, x: getattr(x, name)(dim=7),
}
CALLS = [
    pytest.param(name, call, id=f"{name}-{way}")
    for names, ways in (
        (("amax", "amin"), OVER_DIMS),
        (("max", "min", "argmax", "argmin"), ONE_DIM),
        (("aminmax",), NAMED),
    )
    for name in names
    for way, call in ways.items()
]


@pytest.mark.sampled(0.11, by="name")
@pytest.mark.parametrize(("name", "call"), CALLS)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_call_does_what_pytorch_does(torch, name, call, shape):
    values = np.random.default_rng(1).permutation(24)[: np.prod(shape, dtype=int)].reshape(shape)
    compare(torch, lambda m, x: call(m, name, x), values.astype("float64"))


@pytest.mark.sampled(0.09)
@pytest.mark.parametrize(("name", "call"), CALLS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_does_what_pytorch_does(torch, name, call, dtype):
    values = np.array([[3, 1, 2], [0, 1, 5]]).astype(dtype)
    compare(torch, lambda m, x: call(m, name, x), values)


@pytest.mark.parametrize("name", ["max", "min", "amax", "amin", "argmax", "argmin", "aminmax"])
@pytest.mark.parametrize("values", TIES)
def test_ties_and_nan_have_pytorchs_results_and_subgradients(torch, name, values):
    compare(torch, lambda m, x: getattr(m, name)(x), np.array(values))
    compare(torch, lambda m, x: getattr(m, name)(x, dim=0), np.array(values))
    compare(torch, lambda m, x: getattr(m, name)(x, dim=1), np.array([values, values[::-1]]))


@pytest.mark.parametrize("name", ["max", "min"])
def test_two_tensors_are_compared_elementwise(torch, name):
    first, second = np.array([1.0, 5.0, 2.0]), np.array([3.0, 5.0, 1.0])
    compare(torch, lambda m, x, y: getattr(m, name)(x, y), first, second)
    compare(torch, lambda m, x, y: getattr(x, name)(other=y), first, second)
    compare(torch, lambda m, x: getattr(m, name)(x, 2.0), first)
    compare(torch, lambda m, x: x.max(keepdim=True), first)


@pytest.mark.parametrize("name", ["max", "min", "cummax", "cummin"])
def test_named_results_print_and_unpack_as_pytorchs(torch, name):
    values = np.array([[3.0, 1.0, 2.0], [0.0, 1.0, 5.0]])
    ours = getattr(ng, name)(ng.from_numpy(values), 1)
    theirs = getattr(torch, name)(torch.from_numpy(values), 1)
    assert repr(ours) == repr(theirs)
    values_of, indices_of = ours
    assert values_of is ours.values is ours[0]
    assert indices_of is ours.indices is ours[1]


def test_named_results_pickle():
    kind = type(ng.ones(2).max(0))
    assert pickle.loads(pickle.dumps(kind(1, 2))) == kind(1, 2)
    assert type(pickle.loads(pickle.dumps(kind(1, 2)))) is kind


def test_the_gradient_of_the_values_does_not_need_the_input_as_it_was():
    x = ng.tensor([1.0, 3.0, 2.0], requires_grad=True)
    y = x * 1.0
    values, _ = y.max(0)
    y.zero_()
    values.backward()
    assert x.grad.tolist() == [0.0, 1.0, 0.0]
