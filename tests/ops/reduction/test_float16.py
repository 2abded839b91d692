"""Sums and products in float16: what is rounded when, as in PyTorch.

With ``dtype=float16`` numbers are rounded before they are added, but for means, which are added in
float32 as they come. Sums are rounded once, products after each step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.kernels.reduce.halves import prod_of_halves

# Of so few numbers, whose order does not show in the rounded results of sums.
CALLS = ("sum", "nansum", "prod", "mean", "cumsum", "cumprod")


def _drawn(random: np.random.Generator, dtype: str) -> Any:
    shape = tuple(random.integers(1, 7, int(random.integers(1, 4))))
    values = random.normal(size=shape) * random.choice([0.01, 1, 10, 300])
    if dtype == "bool":
        return values > 0
    with np.errstate(over="ignore"):
        return np.round(values * 50).astype(dtype) if "int" in dtype else values.astype(dtype)


def _run(library: Any, name: str, array: Any, dim: int | None, casts: bool) -> Any:
    options: dict[str, Any] = {} if dim is None else {"dim": dim}
    if casts:
        options["dtype"] = library.float16
    return getattr(library.from_numpy(array), name)(**options).numpy()


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64", "int32", "bool"])
def test_numbers_are_rounded_when_pytorch_rounds_them(torch: Any, name: str, dtype: str) -> None:
    random = np.random.default_rng(16)
    for _ in range(60):
        array = _drawn(random, dtype)
        if random.random() < 0.2 and dtype == "float16":
            array.flat[0] = random.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 65504, 6e-8])
        dims = range(array.ndim) if name.startswith("cum") else [None, *range(array.ndim)]
        for dim in dims:
            if dim is None and name == "mean" and dtype != "float16" and array.ndim > 1:
                continue  # the order of a sum of more shows
            expected = _run(torch, name, array, dim, dtype != "float16")
            found = _run(ng, name, array, dim, dtype != "float16")
            assert found.dtype == expected.dtype == np.float16
            np.testing.assert_array_equal(found, expected, str((array, dim)))


def test_a_product_that_is_inf_on_the_way_stays_so(torch: Any) -> None:
    for library in (torch, ng):
        x = library.tensor([300.0, 300.0, 1 / 3])
        assert library.prod(x, dtype=library.float16).item() == np.inf
        assert library.prod(x.half()).item() == np.inf
        assert library.cumprod(x.half(), 0)[-1].item() == pytest.approx(30000, rel=1e-3)


def test_the_gradient_of_a_product_that_is_inf() -> None:
    x = ng.tensor([300.0, 300.0, 0.5]).half().requires_grad_()
    x.prod().backward()
    assert x.grad.dtype is ng.float16 and x.grad.tolist() == [np.inf] * 3


def test_products_are_those_of_numpy_step_by_step() -> None:
    """Which multiplies two numbers of float16 in float32, and rounds to even."""
    random = np.random.default_rng(17)
    scale = np.exp2(random.integers(-14, 8, (3000, 1)))
    rows = (random.normal(size=(3000, 5)) * scale).astype(np.float16)
    expected = rows[:, 0]
    with np.errstate(all="ignore"):
        for column in rows.T[1:]:
            expected = expected * column
    found = prod_of_halves(rows, (1,))
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
