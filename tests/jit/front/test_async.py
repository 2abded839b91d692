"""Async functions, whose code does not run when they are called, are refused by `jit`."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator
from typing import Any

import pytest

import numgrad as ng


async def coroutine(x: Any, k: float = 1.0) -> Any:
    return x * k


async def generator(x: Any, k: float = 1.0) -> AsyncIterator[Any]:
    yield x * k


class Called:
    async def __call__(self, x: Any) -> Any:
        return x

    async def method(self, x: Any) -> Any:
        return x


FUNCTIONS = {
    "coroutine": coroutine,
    "generator": generator,
    "partial": functools.partial(coroutine, k=2.0),
    "partial of a generator": functools.partial(generator, k=2.0),
    "method": Called().method,
    "object": Called(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_async_functions_are_refused_when_declared(name: str) -> None:
    with pytest.raises(TypeError, match="jit: expected a function that returns.*async"):
        ng.jit(FUNCTIONS[name])
    with pytest.raises(TypeError, match="jit: expected a function that returns.*async"):
        ng.jit(static_argnames="k")(FUNCTIONS[name])
