"""Which calls are shared among threads: none of 10,000 elements, all that take long enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.codegen.expression import Symbol
from numgrad.kernels.pointwise.elementwise import Elementwise
from numgrad.runtime import threads

CALLS: dict[str, Callable[[Any], object]] = {
    "arithmetic": lambda x: x + x,
    "broadcast": lambda x: x * x[0],
    "transposed": lambda x: x + x.T.contiguous().T,
    "function": lambda x: x.exp(),
    "sum": lambda x: x.sum(1),
    "amax": lambda x: x.amax(0),
    "argmax": lambda x: x.argmax(1),
    "variance": lambda x: x.var(1),
    "logsumexp": lambda x: x.logsumexp(1),
    "softmax": lambda x: x.softmax(1),
    "cumsum": lambda x: x.cumsum(1),
}


@pytest.fixture
def posts(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The requests for help of this test, on four threads."""
    found: list[int] = []
    post = threads._Pool.post

    def record(pool: Any, requests: list[Any]) -> None:
        found.append(len(requests))
        post(pool, requests)

    monkeypatch.setattr(threads._Pool, "post", record)
    before = ng.get_num_threads()
    ng.set_num_threads(4)
    yield found
    ng.set_num_threads(before)


@pytest.mark.sampled(0.14)
@pytest.mark.parametrize("name", CALLS)
def test_ten_thousand_elements_stay_in_the_calling_thread(name: str, posts: list[int]) -> None:
    x = ng.from_numpy(np.random.default_rng(0).random((100, 100))).requires_grad_()
    y = CALLS[name](x)
    if name != "argmax":
        y.sum().backward()  # type: ignore[attr-defined]
    assert posts == []


@pytest.mark.parametrize("name", CALLS)
def test_much_work_is_shared(name: str, posts: list[int]) -> None:
    CALLS[name](ng.from_numpy(np.random.default_rng(0).random((1024, 1024))))
    assert posts


def test_softmax_is_shared_where_a_sum_of_as_many_is_not(posts: list[int]) -> None:
    x = ng.from_numpy(np.random.default_rng(0).random((1000, 100)))
    x.sum(1)
    assert posts == []
    x.softmax(1)
    assert posts


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_are_shared_sooner_than_arithmetic(dtype: type) -> None:
    dtypes = [np.dtype(dtype)]
    functions = Elementwise("f", ["x"], lambda s: [Symbol.apply("exp", s["x"]) + 1])
    quick = Elementwise("q", ["x"], lambda s: [Symbol.apply("abs", s["x"]) + 1])
    assert functions._grain(dtypes) == quick._grain(dtypes) // 2
