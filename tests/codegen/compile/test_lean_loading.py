"""Kernels that need little of Numba have it load little, and whoever needs more gets all of it."""

from __future__ import annotations

import pytest

from numgrad.codegen.numba_private import HAS_PIPELINES
from tests import children

PROGRAM = """
import numpy as np
import numgrad as ng
from numba import njit
from numgrad.codegen.numba_private import cpu_target

@njit
def own(values):
    return values.mean()

def loss(x):
    return (x[1:] - ng.exp(x[:-1]).sqrt() * x[1:].sin()).sum()

ng.jit(ng.func.grad(loss))(ng.linspace(0.1, 0.9, 5, dtype=ng.float64))
print(len(cpu_target.target_context._registries))
print(own(np.arange(4.0)))
"""


@pytest.mark.skipif(not HAS_PIPELINES, reason="Numba compiles the printed source")
def test_a_gradient_needs_numbers_alone_and_a_users_function_finds_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", "off")
    assert children.ended_well(PROGRAM).split() == ["1", "1.5"]


OF_COMPLEX = """
import numgrad as ng
print(ng.full((3, 5), 2.0, dtype=ng.complex128).prod(0).sum().item().real)
"""


def test_a_reduction_that_calls_a_function_for_each_number_can_be_a_processs_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", "off")
    assert children.ended_well(OF_COMPLEX).split() == ["40.0"]
