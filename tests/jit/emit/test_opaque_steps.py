"""Steps that are calls of primitives: what they do for arrays that lie as those before is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.ops.core.primitive import CATALOGUE

CALLS: dict[str, Callable[[Any], Any]] = {
    "var": lambda x: (x * 2).var(-1),
    "std_mean": lambda x: (x * 2).std(0, correction=0),
    "vector_norm": lambda x: (x * 2).norm(dim=-1),
    "cumsum": lambda x: (x * 2).cumsum(0),
    "max_along_dim": lambda x: (x * 2).max(-1)[0],
    "prod_over_dim": lambda x: (x * 0.5).t().prod(0),
    "sort": lambda x: (x * 2).sort(-1)[0],
    "logcumsumexp": lambda x: x.exp().logcumsumexp(-1),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_are_eager_ones_and_new_arrays_each_time(name: str) -> None:
    function = CALLS[name]
    compiled = ng.jit(function)
    random = np.random.default_rng(0)
    for shape in ((5, 7), (5, 7), (1, 3), (70, 80)):
        x = ng.from_numpy(random.standard_normal(shape))
        found, again = compiled(x), compiled(x)
        assert ng.equal(found, function(x))
        found.zero_()
        assert ng.equal(again, function(x))


@pytest.mark.parametrize("name", ["var", "cumsum"])
def test_what_a_forward_finds_out_each_time_is_found_out_once(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in eager calls, a function made for how the operands lie takes the forward's place."""
    function = CALLS[name]
    x = ng.from_numpy(np.random.default_rng(1).standard_normal((6, 9)))
    compiled = ng.jit(function)
    expected = compiled(x)

    def forward(*arrays: Any, **parameters: Any) -> Any:
        raise AssertionError("asked again")

    monkeypatch.setattr(CATALOGUE[name], "forward", forward)
    assert ng.equal(compiled(x), expected)


def test_gradients_of_loops_with_calls_whose_number_of_turns_differs() -> None:
    """What turns saved is as long as there were turns: it lies otherwise in each call."""

    def loss(limit: Any, x: Any) -> Any:
        def turn(k: Any, y: Any) -> Any:
            return k + 1, y.cumsum(0) / (1 + y.var(-1, keepdim=True))

        return ng.func.while_loop(lambda k, y: k < limit, turn, (ng.tensor(0.0), x))[1].sum()

    gradient = ng.func.grad(loss, argnums=1)
    compiled = ng.jit(gradient)
    x = ng.from_numpy(np.random.default_rng(2).standard_normal((4, 3)))
    for limit in (1.0, 5.0, 0.0, 3.0):
        found, expected = (each(ng.tensor(limit), x) for each in (compiled, gradient))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
