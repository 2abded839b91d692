"""Arrays that lie in steps of no whole elements, as fields of records do, are compiled for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numgrad as ng

FUNCTIONS = (
    lambda t: t * 2,
    lambda t: t.exp().sum(0),
    lambda t: (t * t).reshape(-1),
    lambda t: t.clone().flatten().mul_(3.0),
    lambda t: t.flip(0) + t.cumsum(0),
    lambda t: t.sort(-1)[0],
    lambda t: ng.func.grad(lambda u: (u.sin() * u).sum())(t),
)


def _field(shape: tuple[int, ...], before: str, dtype: str) -> Any:
    records = np.zeros(shape, [("a", before), ("x", dtype)])
    records["x"] = np.random.default_rng(0).normal(size=shape)
    return records["x"]


@pytest.mark.parametrize(("before", "dtype"), [("i1", "f8"), ("i4", "f8"), ("i2", "f4")])
@pytest.mark.parametrize("turned", [lambda x: x, lambda x: x.T, lambda x: x[::-2]])
def test_fields_of_records(before: str, dtype: str, turned: Any) -> None:
    given = turned(_field((4, 6), before, dtype))
    for function in FUNCTIONS:
        expected = np.asarray(function(ng.tensor(np.array(given))))
        found = np.asarray(ng.jit(function)(given))
        (by_dispatcher,) = ng.jit(function).lower(given).dispatcher(given)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        np.testing.assert_allclose(by_dispatcher, expected, rtol=1e-6)


def test_no_tensor_shares_the_memory_of_a_field() -> None:
    with pytest.raises(ValueError, match="strides not a multiple of the element byte size"):
        ng.from_numpy(_field((5,), "i1", "f8"))
    assert ng.tensor(_field((5,), "i1", "f8")).is_contiguous()
