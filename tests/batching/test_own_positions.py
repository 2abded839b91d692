"""Each example has its own positions, in what is one for all: values and derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng

A = np.arange(1.0, 10).reshape(3, 3) ** 1.5
INDEX = np.array([[0], [1], [2]])
PLACES = np.array([[[0, 1, 2]], [[2, 0, 1]], [[1, 1, 0]]])
MASK = np.eye(3, dtype=bool)[:, :, None] & np.ones(3, bool)

CALLS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "index_fill": lambda a, i, j, m: a.index_fill(0, i, ng.tensor(0.5, dtype=ng.float64)),
    "index_fill number": lambda a, i, j, m: a.index_fill(1, i, 0.5),
    "index_copy": lambda a, i, j, m: a.index_copy(0, i, a[:1] * 2),
    "index_add": lambda a, i, j, m: a.index_add(0, i, a[:1] * 2),
    "index_reduce": lambda a, i, j, m: a.index_reduce(0, i, a[:1] * 2, "prod"),
    "index_select": lambda a, i, j, m: a.index_select(0, i),
    "take": lambda a, i, j, m: a.take(i),
    "put": lambda a, i, j, m: a.put(i, a[0, :1] * 3),
    "index_put": lambda a, i, j, m: a.index_put((i,), a[0] * 3, accumulate=True),
    "index": lambda a, i, j, m: a[i],
    "gather": lambda a, i, j, m: a.gather(0, j),
    "scatter": lambda a, i, j, m: a.scatter(0, j, a[:1] * 2),
    "scatter_add": lambda a, i, j, m: a.scatter_add(1, j, a[:1]),
    "masked_fill": lambda a, i, j, m: a.masked_fill(m, ng.tensor(0.5, dtype=ng.float64)),
    "masked_scatter": lambda a, i, j, m: a.masked_scatter(m, a.T * 2),
}
WAYS: dict[str, Callable[[Any], Any]] = {
    "value": lambda f: f,
    "grad": lambda f: ng.func.grad(lambda *args: f(*args).sum()),
    "jacrev": ng.func.jacrev,
    "jacfwd": ng.func.jacfwd,
    "hessian": lambda f: ng.func.hessian(lambda *args: (f(*args) ** 2).sum()),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CALLS)
def test_positions_of_examples_in_what_is_one_for_all(name: str, way: str) -> None:
    function = WAYS[way](CALLS[name])
    shared, own = ng.tensor(A), [ng.tensor(each) for each in (INDEX, PLACES, MASK)]
    mapped = ng.func.vmap(function, in_dims=(None, 0, 0, 0))
    expected = np.stack(
        [function(shared, *[each[k] for each in own]).numpy() for k in range(len(INDEX))]
    )
    np.testing.assert_allclose(mapped(shared, *own).numpy(), expected, rtol=1e-12)
