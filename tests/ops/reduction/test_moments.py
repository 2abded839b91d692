"""Variances, standard deviations, norms and logarithms of sums of exponentials, against PyTorch."""

from __future__ import annotations

import math

import numpy as np
import pytest

import numgrad as ng
from numgrad.ops.core.primitive import CATALOGUE
from tests.ops.torch_comparison import compare

SHAPES = [(), (1,), (5,), (0,), (2, 3), (3, 0), (0, 3), (2, 3, 4)]
DTYPES = ["float32", "float64", "complex64", "complex128", "int64", "bool"]
INF, NAN = np.inf, np.nan


def numbers(shape, dtype="float64"):
    random = np.random.default_rng(2)
    values = random.uniform(-2, 2, shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * random.uniform(-2, 2, shape)
    return np.asarray(values).astype(dtype)


SPREADS = {
    "all": lambda m, name, x: getattr(m, name)(x),
    "biased": lambda m, name, x: getattr(m, name)(x, False),
    "first": lambda m, name, x: getattr(m, name)(x, 0),
    "last, biased": lambda m, name, x: getattr(m, name)(x, -1, False),
    "positions": lambda m, name, x: getattr(m, name)(x, 0, True, True),
    "unbiased": lambda m, name, x: getattr(m, name)(x, unbiased=False),
    "several": lambda m, name, x: getattr(m, name)(x, (0, -1), unbiased=False, keepdim=True),
    "correction": lambda m, name, x: getattr(m, name)(x, correction=0),
    "correction of a dim": lambda m, name, x: getattr(m, name)(x, dim=1, correction=2),
    "fraction": lambda m, name, x: getattr(m, name)(x, dim=0, correction=0.5, keepdim=True),
    "None": lambda m, name, x: getattr(m, name)(x, None),
    "no dims": lambda m, name, x: getattr(m, name)(x, (), correction=0),
    "axis": lambda m, name, x: getattr(m, name)(x, axis=0, keepdims=True),
    "too much correction": lambda m, name, x: getattr(m, name)(x, correction=100),
    "too much for a dim": lambda m, name, x: getattr(m, name)(x, 0, correction=100),
    "all of it": lambda m, name, x: getattr(m, name)(x, dim=-1, correction=3),
    "both": lambda m, name, x: getattr(m, name)(x, dim=0, unbiased=True, correction=1),
    "twice": lambda m, name, x: getattr(m, name)(x, (0, 0)),
    "out of range": lambda m, name, x: getattr(m, name)(x, 7),
    "a float": lambda m, name, x: getattr(m, name)(x, 1.5),
}


@pytest.mark.sampled(0.11, by="name")
@pytest.mark.parametrize("way", SPREADS)
@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_call_does_what_pytorch_does(torch, name, way, shape):
    # PyTorch's gradient is n times too large where the dims are named by an empty sequence.
    order = 0 if way == "no dims" else 2
    compare(torch, lambda m, x: SPREADS[way](m, name, x), numbers(shape), order=order)


@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_does_what_pytorch_does(torch, name, dtype):
    compare(torch, lambda m, x: getattr(m, name)(x), numbers((2, 3), dtype))
    compare(torch, lambda m, x: getattr(m, name)(x, dim=1, correction=0), numbers((2, 3), dtype))


def test_no_dims_have_the_derivatives_of_all_dims():
    values = ng.from_numpy(numbers((2, 3))).requires_grad_()
    assert ng.autograd.gradcheck(lambda x: x.var((), correction=0), [values])
    assert ng.autograd.gradcheck(lambda x: x.std([]), [values])


@pytest.mark.sampled(0.11, by="name")
@pytest.mark.parametrize("values", [[1.0, 1.0, 1.0], [NAN, 1.0], [INF, 1.0], [2.0]])
@pytest.mark.parametrize("correction", [0, 1, 2, 3])
@pytest.mark.parametrize("dim", [None, 0])
@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
def test_degenerate_values_have_pytorchs_results(torch, name, values, correction, dim):
    # The mean of an infinite element is infinite; in PyTorch's var_mean and std_mean it is nan.
    own_mean = name.endswith("mean") and values[0] == INF

    def call(m, x):
        result = getattr(m, name)(x, dim=dim, correction=correction)
        return result[0].detach() if own_mean else result

    compare(torch, call, np.array(values), order=1)


ORDERS = [2, 1, 3, 4, 1.5, 0.5, 0, -1, -2.5, math.inf, -math.inf, "fro", None, True]


@pytest.mark.sampled(0.14)
@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_norms_are_pytorchs(torch, p, shape):
    values = numbers(shape)
    compare(torch, lambda m, x: x.norm(p), values)
    compare(torch, lambda m, x: m.norm(x, p=p, dim=0), values)
    compare(torch, lambda m, x: m.norm(x, p, -1, True), values)
    compare(torch, lambda m, x: x.norm(p, dim=(0, 1)), values)


@pytest.mark.parametrize("p", [2, 1, 3, 1.5, 0, math.inf])
@pytest.mark.parametrize("dtype", DTYPES)
def test_norms_of_every_dtype_are_pytorchs(torch, p, dtype):
    compare(torch, lambda m, x: x.norm(p), numbers((2, 3), dtype), order=1)
    compare(torch, lambda m, x: x.norm(p, 1), numbers((2, 3), dtype), order=1)


@pytest.mark.parametrize("p", [2, 1, 3, 1.5, 0.5, 0, -1, -2.5, math.inf, -math.inf])
@pytest.mark.parametrize(
    "values", [[0.0, 0.0], [0.0, 1.0], [-1.0, 1.0, 1.0], [NAN, 1.0], [INF, 1.0], [-0.0, 2.0, -2.0]]
)
def test_norms_at_kinks_and_special_values_are_pytorchs(torch, p, values):
    compare(torch, lambda m, x: x.norm(p), np.array(values), order=1)


def test_norms_in_another_dtype_and_their_errors_are_pytorchs(torch):
    values = numbers((2, 3), "float32")
    compare(torch, lambda m, x: x.norm(2, dtype=m.float64), values)
    compare(torch, lambda m, x: x.norm(3, 0, dtype=m.complex64), values, order=1)
    compare(torch, lambda m, x: x.norm(dtype=m.int64), values)
    compare(torch, lambda m, x: x.norm("a"), values)
    compare(torch, lambda m, x: x.norm(2, (0, 0)), values)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "call",
    [
        lambda m, x: m.logsumexp(x, 0),
        lambda m, x: x.logsumexp(-1, True),
        lambda m, x: x.logsumexp(dim=(0, -1), keepdim=True),
        lambda m, x: x.logsumexp(axis=1),
        lambda m, x: x.logsumexp(),
        lambda m, x: x.logsumexp(None),
        lambda m, x: x.logsumexp(7),
        lambda m, x: x.logsumexp("a"),
    ],
)
def test_logsumexp_is_pytorchs(torch, call, shape):
    compare(torch, call, numbers(shape))


@pytest.mark.parametrize("dtype", DTYPES)
def test_logsumexp_of_every_dtype_is_pytorchs(torch, dtype):
    compare(torch, lambda m, x: x.logsumexp(1), numbers((2, 3), dtype))


@pytest.mark.parametrize("name", ["logsumexp", "softmax", "log_softmax", "logcumsumexp"])
@pytest.mark.parametrize(
    "values", [[-INF, -INF], [-INF, 1.0], [1.0, -INF], [NAN, 1.0], [1000.0, 1.0], [-1000.0, 0.0]]
)
def test_exponentials_of_special_values_are_pytorchs(torch, name, values):
    compare(torch, lambda m, x: getattr(m, name)(x, 0), np.array(values), order=1)
    compare(torch, lambda m, x: getattr(m, name)(x, 0), np.array(values, "float32"), order=0)


@pytest.mark.sampled(0.14, by="name")
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "call",
    [
        lambda f, m, x: f(x, 0),
        lambda f, m, x: f(x, -1),
        lambda f, m, x: f(x, dim=1),
        lambda f, m, x: f(x, axis=0),
        lambda f, m, x: f(x, 0, dtype=m.float32),
        lambda f, m, x: f(x),
        lambda f, m, x: f(x, 7),
    ],
)
def test_softmax_is_pytorchs(torch, name, call, shape):
    compare(torch, lambda m, x: call(getattr(m, name), m, x), numbers(shape))


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
@pytest.mark.parametrize("dim", ["a", 1.5, None])
def test_dims_of_other_types_are_refused_in_pytorchs_words(torch, name, dim):
    compare(torch, lambda m, x: getattr(x, name)(dim), numbers((2, 3)))


@pytest.mark.parametrize("name", ["softmax_backward", "log_softmax_backward"])
def test_gradients_of_softmax_are_those_of_floats(name: str) -> None:
    ones = ng.ones(2, 3, dtype=ng.int64)
    for dim, where in ((0, ""), (1, "_lastdim")):
        with pytest.raises(NotImplementedError, match=f"{name}{where}_kernel_impl.*'Long'"):
            CATALOGUE[name].apply(ones, ones, dim=dim)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_softmax_of_every_dtype_is_pytorchs(torch, name, dtype):
    values = numbers((2, 3), dtype)
    compare(torch, lambda m, x: getattr(m, name)(x, 0), values)
    compare(torch, lambda m, x: getattr(m, name)(x, 1), values)
    if values.dtype.kind != "c":  # PyTorch discards imaginary parts in silence
        compare(torch, lambda m, x: getattr(m, name)(x, 1, dtype=m.float64), values)


@pytest.mark.parametrize("p", [2, 1, 3, math.inf])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_float32_norms_are_those_of_float64(p, scale):
    """Against the definition in float64: a reference of another make than the kernels."""
    values = (numbers((1000,)) * scale).astype(np.float32)
    expected = np.linalg.norm(values.astype(np.float64), p)
    assert ng.norm(ng.from_numpy(values), p).item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("seed", range(40))
def test_equal_numbers_have_no_variance_and_no_gradient(seed):
    random = np.random.default_rng(seed)
    shape = tuple(random.integers(1, (40, 9, 1000)[seed % 3], size=1 + seed % 2).tolist())
    dims = None if seed % 4 == 0 else (seed % len(shape),)
    own = [1 if dims is None or dim in dims else n for dim, n in enumerate(shape)]
    columns = random.normal(size=own) * 10.0 ** random.integers(-9, 9)
    values = np.array(np.broadcast_to(columns, shape), ["float32", "float64"][seed % 2])
    x = ng.from_numpy(np.asfortranarray(values) if seed % 5 == 0 else values).requires_grad_()

    deviation, mean = ng.std_mean(x, dims, correction=0, keepdim=True)
    assert not deviation.any()
    assert not ng.var(x, dims, unbiased=False).any()
    assert (mean.detach().numpy() == values.max(dims, keepdims=True)).all()
    deviation.sum().backward()
    assert not x.grad.numpy().any()


@pytest.mark.parametrize("n", [3, 100, 1000])
def test_numbers_that_are_nearly_equal_have_a_variance(n):
    values = np.full((n, 4), 0.7)
    values[1] += np.spacing(0.7)
    assert (ng.std(ng.from_numpy(values), 0).numpy() > 0).all()
