"""Dims of length 1 have PyTorch's strides: in views, copies, and sums of what they are in."""

from __future__ import annotations

import random
from math import prod
from typing import Any

import pytest

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
COPIES = (
    "x.clone()",
    "x.to(lib.float64)",
    "x.type(lib.float64)",
    "x.flip(0)",
    "x.rot90(1, (0, 1))",
    "x.sort(-1)[1]",
    "x.contiguous()",
    "x.transpose(0, 1).clone()",
    "x.frexp()[0]",
    "x.frexp()[1]",
    "x.nan_to_num()",
    "lib.nn.functional.hardtanh(x)",
    "lib.nn.functional.relu6(x)",
    "lib.rand_like(x)",
    "lib.randn_like(x)",
)


def _drawn(lib: Any, shape: list[int], steps: list[int], order: list[int]) -> Any:
    whole = [n * step for n, step in zip(shape, steps, strict=True)]
    x = lib.arange(float(prod(whole))).reshape(whole)
    return x[tuple([slice(None, None, step) for step in steps])].permute(order)


def _function(call: str, shape: Any, dims: tuple[int, ...], k: int) -> Any:
    code = f"x{call}" if call[0] == "[" else f"x.{call}"
    names = {"n": shape[0], "m": prod(shape[1:]), "dims": dims, "k": k, "prod": prod}
    return eval(f"lambda x: {code}", names)


@pytest.mark.usefixtures("traced")
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
            if (number % 3, at) == (0, number // 3 % len(VIEWS)):
                compiled = ng.jit(function)(x)
                assert compiled.stride() == expected, (shape, steps, order, call, dims, k)


def _windowed(lib: Any, shape: list[int], order: list[int], steps: list[int]) -> Any:
    """Return a tensor without gaps; its dims of length 1 have any strides."""
    strides, step = [0] * len(shape), 1
    for dim in order:
        strides[dim] = step if shape[dim] > 1 else steps[dim]
        step *= shape[dim]
    return lib.arange(float(step)).as_strided(shape, strides)


@pytest.mark.usefixtures("traced")
def test_copies_keep_them(torch: Any) -> None:
    """Of what fills its memory; the compiled ones as the others."""
    draw = random.Random(6)
    for number in range(40):
        count = draw.randint(2, 4)
        shape = [draw.choice([1, 1, 2, 3]) for _ in range(count)]
        order = draw.sample(range(count), count)
        steps = [draw.choice([1, 2, 12, 100]) for _ in range(count)]
        x, other = [_windowed(lib, shape, order, steps) for lib in (ng, torch)]
        for at, call in enumerate(COPIES):
            expected = eval(call, {"x": other, "lib": torch}).stride()
            for _ in range(3):
                found = eval(call, {"x": x, "lib": ng})
                assert found.stride() == expected, (shape, order, steps, call)
            if at == number % len(COPIES):
                compiled = ng.jit(eval(f"lambda x: {call}", {"lib": ng}))(x)
                assert compiled.stride() == expected, (shape, order, steps, call)
        for name in ("zeros_like", "ones_like", "empty_like"):
            found, expected = getattr(ng, name)(x), getattr(torch, name)(other)
            assert found.stride() == expected.stride(), (shape, order, steps, name)


def test_a_copy_of_an_image_of_one_channel_has_it_last(torch: Any) -> None:
    """What it is convolved with lies so, and its elements are flattened into new memory."""
    for lib in (torch, ng):
        image = lib.zeros(2, 4, 4, 1).permute(0, 3, 1, 2)
        result = lib.nn.functional.conv2d(image.clone(), lib.ones(3, 1, 2, 2))
        result.flatten()[:1].add_(1)
        assert result.sum().item() == 0
