"""Compiled functions of tensors without dims, also when they are compiled for fixed sizes."""

from __future__ import annotations

import pytest

import numgrad as ng
from numgrad.base.tuning import SPECIALISED_AFTER_CALLS


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (0,)])
def test_calls_before_and_after_sizes_are_fixed_give_the_same(shape: tuple[int, ...]) -> None:
    jitted = ng.jit(lambda x: x * x)
    for number in range(SPECIALISED_AFTER_CALLS + 10):
        x = ng.full(shape, float(number), dtype=ng.float64)
        assert jitted(x).tolist() == (x * x).tolist()


def test_gradients_of_one_number_are_the_same_before_and_after() -> None:
    jitted = ng.jit(ng.func.grad(lambda x: x * x.sin()))
    eager = ng.func.grad(lambda x: x * x.sin())
    for number in range(SPECIALISED_AFTER_CALLS + 10):
        x = ng.tensor(number / 7, dtype=ng.float64)
        assert jitted(x).item() == pytest.approx(eager(x).item(), rel=1e-14)
