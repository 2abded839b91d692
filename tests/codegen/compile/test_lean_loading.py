"""Kernels that need little of Numba have it load little, and whoever needs more gets all of it."""

from __future__ import annotations

import pytest

from numgrad.codegen.numba_private import HAS_PIPELINES
from tests import children

PROGRAM = """
import sys
import numpy as np
import numgrad as ng
from numgrad.func import hessian, value_and_grad

def loss(x):
    return ((x[1:] - x[:-1] ** 2) ** 2 + ng.exp(x[:-1]).sqrt() * x[1:].sin()).sum()

x = ng.linspace(0.1, 0.9, 5, dtype=ng.float64)
for change in value_and_grad, hessian:
    ng.jit(change(loss))(x)
"""
IS_ALL = "from numgrad.codegen.numba_private import load_all; print(not load_all())\n"
OWN = """
from numba import njit

@njit
def own(values):
    found = {1: values.mean()}
    return sorted([found[1], np.median(values)])[0]
"""


@pytest.mark.skipif(not HAS_PIPELINES, reason="Numba compiles the printed source")
def test_a_gradient_needs_numbers_and_arrays_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", "off")
    assert children.ended_well(PROGRAM + IS_ALL, fresh=True) == "False\n"


def test_users_functions_find_all_of_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled before, after, or while a kernel is, which calls one, or is called by one."""
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", "off")
    program = PROGRAM + OWN + "print(own(np.arange(4.0)))\n"
    assert children.ended_well(program + IS_ALL, fresh=True).split() == ["1.5", "True"]
    again = "print(float(ng.jit(loss)(x)) == float(ng.jit(lambda x: loss(x) + 0)(x)))\n"
    assert children.ended_well(program + again, fresh=True).split() == ["1.5", "True"]
    kernel = """
from numgrad.codegen.compile.compile import kernel

@kernel
def around(x, out):
    out[0] = own(x)
    out[1] = x[0] + np.sqrt(x[1])

out = np.empty(2)
around(np.arange(4.0), out)
print(out.tolist())
"""
    around = PROGRAM + OWN + kernel
    assert children.ended_well(around, fresh=True) == "[1.5, 1.0]\n"
