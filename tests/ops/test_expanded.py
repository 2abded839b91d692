"""Operands and cotangents that show elements again and again, beside others of any layout."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

import numgrad as ng
from tests.cases import thinned

# More elements than those up to which operands are written out, and fewer.
SHAPES = [(70, 75), (6, 5)]
LAYOUTS: dict[str, Callable[[np.ndarray, int, int], np.ndarray]] = {
    "flat": lambda x, m, n: x[: m * n].reshape(m, n),
    "transposed": lambda x, m, n: x[: m * n].reshape(n, m).T,
    "every second column": lambda x, m, n: x[: 2 * m * n].reshape(m, 2 * n)[:, ::2],
    "every second row": lambda x, m, n: x[: 2 * m * n].reshape(2 * m, n)[::2],
    "expanded row": lambda x, m, n: np.broadcast_to(x[:n], (m, n)),
    "expanded column": lambda x, m, n: np.broadcast_to(x[:m, None], (m, n)),
    "expanded number": lambda x, m, n: np.broadcast_to(x[0], (m, n)),
    "row": lambda x, m, n: x[:n],
    "column": lambda x, m, n: x[:m, None],
}


def as_tensor(array: np.ndarray) -> ng.Tensor:
    """Return a tensor with an array's strides, 0 among them."""
    base = array if array.base is None else array.base
    steps = [step // array.itemsize for step in array.strides]
    start = (array.ctypes.data - base.ctypes.data) // array.itemsize
    tensor: ng.Tensor = ng.from_numpy(base.reshape(-1)).as_strided(array.shape, steps, start)
    return tensor


@pytest.mark.sampled(0.036)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("name", ["add", "mul", "maximum", "lt", "where"])
def test_every_pair_of_layouts(name: str, dtype: type, shape: tuple[int, int]) -> None:
    random = np.random.default_rng(0)
    numbers = [random.integers(-9, 9, 3 * 70 * 75).astype(dtype) for _ in range(2)]
    for first, second in thinned([*product(LAYOUTS, repeat=2)], 3):
        a, b = (LAYOUTS[kind](x, *shape) for kind, x in zip((first, second), numbers, strict=True))
        x, y = as_tensor(a), as_tensor(b)
        if name == "where":
            found, expected = ng.where(x > 0, x, y), np.where(a > 0, a, b)
        else:
            expected = {"add": np.add, "mul": np.multiply, "maximum": np.maximum, "lt": np.less}[
                name
            ](a, b)
            found = getattr(ng, name)(x, y)
        np.testing.assert_array_equal(found.numpy(), expected, f"{first}, {second}")


@pytest.mark.parametrize("shape", SHAPES)
def test_a_write_in_place_of_an_expanded_operand(shape: tuple[int, int]) -> None:
    m, n = shape
    z = np.arange(float(m * n)).reshape(n, m)
    written = ng.from_numpy(z.copy()).T
    written *= ng.arange(float(n)).expand(m, n)
    np.testing.assert_array_equal(written.numpy(), z.T * np.arange(n))


REDUCTIONS = {
    "logsumexp": lambda x: x.logsumexp(1),
    "logsumexp of columns": lambda x: x.logsumexp(0, keepdim=True),
    "logsumexp of all": lambda x: x.logsumexp((0, 1)),
    "softmax": lambda x: x.softmax(1),
    "log_softmax": lambda x: x.log_softmax(0),
    "var": lambda x: x.var(1),
    "std": lambda x: x.std(0),
    "norm": lambda x: x.norm(dim=1),
    "prod": lambda x: (x * 0.01 + 1).prod(0),
    "amax": lambda x: x.amax(1),
    "cumsum": lambda x: x.cumsum(1),
    "logcumsumexp": lambda x: x.logcumsumexp(0),
    "nansum": lambda x: x.nansum(0),
    "sum": lambda x: (x * x).sum(1),
    "mean": lambda x: (x * x).mean(0),
    "max": lambda x: x.max(1).values,
    "sort": lambda x: x.sort(1).values,
    "gather": lambda x: x.gather(1, ng.zeros(x.shape, dtype=ng.int64)),
}


@pytest.mark.sampled(0.054)
@pytest.mark.parametrize("shape", [(2, 2), (70, 75)])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_cotangent_that_is_expanded(name: str, transposed: bool, shape: tuple[int, int]) -> None:
    """It gives the gradient that the same numbers give when they lie side by side."""
    data = np.random.default_rng(1).normal(size=shape)
    function = REDUCTIONS[name]
    gradients = []
    for dense in (True, False):
        leaf = ng.from_numpy(data.T.copy() if transposed else data.copy()).requires_grad_()
        result = function(leaf.T if transposed else leaf)
        cotangent = ng.tensor(1.5, dtype=ng.float64).expand(result.shape)
        result.backward(cotangent.contiguous() if dense else cotangent)
        gradients.append(leaf.grad.numpy())
    np.testing.assert_allclose(gradients[1], gradients[0], rtol=1e-12, atol=1e-13)


def test_the_variance_of_a_number_has_a_gradient() -> None:
    x = ng.tensor(1.5, requires_grad=True)
    ng.var(x, dim=0, unbiased=False).backward()
    assert x.grad.item() == 0
