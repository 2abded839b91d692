"""Compiled functions that come and go leave nothing behind."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.jit.ir.graph import Value

ROUNDS = 10
ARRAY = np.array([1.0, 2.0, 3.0])
WEIGHT = ng.tensor([1.0, 2.0, 3.0], dtype=ng.float64)


def plain(k: int) -> None:
    ng.jit(lambda x: (x * (k + 0.125)).sum())(ARRAY)


def often(k: int) -> None:
    compiled = ng.jit(lambda x: (x * 0.125).sin())  # its code has the number in it
    for _ in range(103):
        compiled(ARRAY)


def differentiated(k: int) -> None:
    x = ng.tensor([1.0, 2.0, 3.0], requires_grad=True)
    ng.jit(lambda x: (x * (k + 0.125)).exp().sum())(x).backward()


def captured(k: int) -> None:
    held = {"scale": k + 0.125, "weights": [WEIGHT]}
    ng.jit(lambda x: x * held["weights"][0] * held["scale"])(ARRAY)


def traced_anew(k: int) -> None:
    scale = k + 0.125
    compiled = ng.jit(lambda x: x + scale)
    compiled(ARRAY)
    scale = k + 0.25
    compiled(ARRAY)


def looked_at(k: int) -> None:
    ng.jit(lambda x: x * 0.125).lower(ARRAY).dispatcher(ARRAY)


KINDS: list[Callable[[int], None]] = [
    plain,
    often,
    differentiated,
    captured,
    traced_anew,
    looked_at,
]


def count() -> tuple[int, int]:
    """Return how many blocks of memory Python holds, and how many objects LLVM's modules are."""
    gc.collect()
    gc.collect()
    modules = sum(type(each).__name__ == "ModuleRef" for each in gc.get_objects())
    return sys.getallocatedblocks(), modules


@pytest.mark.parametrize("make", KINDS)
def test_a_function_that_is_forgotten_is_gone(make: Callable[[int], Any]) -> None:
    for k in range(10, 10 + ROUNDS):
        make(k)
    # What other things remember (small strings, the last kernels) fills up, more and more slowly; a
    # leak goes on as it began.
    for start in range(200, 200 + 30 * ROUNDS, ROUNDS):
        blocks, modules = count()
        for k in range(start, start + ROUNDS):
            make(k)
        after, of_llvm = count()
        assert of_llvm == modules
        grown = (after - blocks) / ROUNDS
        if grown < 3:
            return
    raise AssertionError(f"each function left {grown} blocks behind")


def test_what_a_loop_recorded_is_freed_without_a_look_for_garbage() -> None:
    def loss(w: Any) -> Any:
        state, seen = w, []
        for k in range(100):
            state = (state * w + state.sin() * 0.5).tanh()
            seen.append(state[k % 2] * 2)
        return ng.stack(seen).sum()

    def values() -> int:
        return sum(type(each) is Value for each in gc.get_objects())

    gc.collect()
    before = values()
    gc.disable()
    try:
        ng.jit(ng.func.grad(loss))(np.array([0.1, 0.2]))
        left = values() - before
    finally:
        gc.enable()
    assert left < 500  # three times as many where cycles keep the turns
