"""Dims of length 1 have PyTorch's strides: in views, and in sums and means of what they are in."""

from __future__ import annotations

import random
from math import prod
from typing import Any

import numgrad as ng

VIEWS = (
    "unsqueeze(k)",
    "unsqueeze(-1)",
    "squeeze()",
    "squeeze(dims)",
    "reshape(-1)",
    "reshape(n, 1, m)",
    "unflatten(0, (1, -1))",
    "flatten(0, 1)",
    "view(x.shape)",
    "select(0, 0)",
    "[:, None]",
    "unsqueeze(k).unsqueeze(0).squeeze(0)",
)
REDUCED = (
    "sum(dims)",
    "sum(dims, keepdim=True)",
    "mean(dims)",
    "amax(dims, keepdim=True)",
    "unsqueeze(k).mean(dims)",
)


def _drawn(lib: Any, shape: list[int], steps: list[int], order: list[int]) -> Any:
    whole = [n * step for n, step in zip(shape, steps, strict=True)]
    x = lib.arange(float(prod(whole))).reshape(whole)
    return x[tuple([slice(None, None, step) for step in steps])].permute(order)


def _function(call: str, shape: Any, dims: tuple[int, ...], k: int) -> Any:
    code = f"x{call}" if call[0] == "[" else f"x.{call}"
    names = {"n": shape[0], "m": prod(shape[1:]), "dims": dims, "k": k, "prod": prod}
    return eval(f"lambda x: {code}", names)


def test_strides_are_pytorchs(torch: Any) -> None:
    draw = random.Random(5)
    for number in range(60):
        count = draw.randint(2, 4)
        shape = [draw.choice([1, 1, 2, 3]) for _ in range(count)]
        steps = [draw.choice([1, 1, 2]) for _ in range(count)]
        order = draw.sample(range(count), count)
        dims = tuple(sorted(draw.sample(range(count), draw.randint(1, count))))
        k = draw.randint(-count - 1, count)
        x, other = [_drawn(lib, shape, steps, order) for lib in (ng, torch)]
        for at, call in enumerate((*VIEWS, *REDUCED)):
            function = _function(call, other.shape, dims, k)
            try:
                expected = function(other).stride()
            except RuntimeError:  # no view
                continue
            for _ in range(3):  # as it is written, and by the program that is made of it
                assert function(x).stride() == expected, (shape, steps, order, call, dims, k)
            if at == number % len(VIEWS):
                compiled = ng.jit(function)(x)
                assert compiled.stride() == expected, (shape, steps, order, call, dims, k)
