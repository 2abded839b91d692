"""The programs that are measured: as scans they are what they are as plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numgrad as ng
from benchmarks import loops
from numgrad import func
from numgrad.base import pytree
from tests.func.control.programs import assert_close

STEPS = 3


def call(name: str, scan: Any) -> Any:
    options = {"leaps": 2} if name == "hamiltonian" else {}
    return loops.PROGRAMS[name](scan, STEPS, **options)


@pytest.mark.parametrize("name", loops.PROGRAMS)
def test_a_program_is_a_loop_and_has_its_gradient(name):
    given = loops.tensors(loops.arguments(name, STEPS, cells=6))
    value, gradient = func.value_and_grad(call(name, func.scan))(*given)
    assert_close(func.value_and_grad(call(name, loops.python_loop))(*given), (value, gradient))
    # The derivative in one direction, by differences.
    leaves, spec = pytree.flatten(given[0])
    rng = np.random.default_rng(1)
    direction = [ng.from_numpy(np.asarray(rng.standard_normal(leaf.shape))) for leaf in leaves]
    ends = [
        call(name, func.scan)(
            pytree.unflatten(
                spec, [leaf + step * d for leaf, d in zip(leaves, direction, strict=True)]
            ),
            *given[1:],
        )
        for step in (1e-6, -1e-6)
    ]
    slope = sum(
        (g * d).sum().item() for g, d in zip(pytree.leaves(gradient), direction, strict=True)
    )
    assert slope == pytest.approx((ends[0] - ends[1]).item() / 2e-6, rel=1e-5, abs=1e-7)
