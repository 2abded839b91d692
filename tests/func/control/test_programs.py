"""The programs that are measured: as scans they are what they are as plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from benchmarks import loop_peers, loops
from benchmarks.by_hand import BY_HAND
from numgrad import func
from numgrad.base import pytree
from tests.cases import examples
from tests.func.control.programs import assert_close

STEPS = 3


def call(name: str, scan: Any) -> Any:
    options = {"leaps": 2} if name == "hamiltonian" else {}
    return loops.PROGRAMS[name](scan, STEPS, **options)


@pytest.mark.parametrize("name", loops.PROGRAMS)
def test_a_program_is_a_loop_and_has_its_gradient(name):
    arguments = loops.tensors(loops.arguments(name, STEPS, cells=6))
    value, gradient = func.value_and_grad(call(name, func.scan))(*arguments)
    assert_close(func.value_and_grad(call(name, loops.python_loop))(*arguments), (value, gradient))
    # The derivative in one direction, by differences.
    leaves, spec = pytree.flatten(arguments[0])
    rng = np.random.default_rng(1)
    direction = [ng.from_numpy(np.asarray(rng.standard_normal(leaf.shape))) for leaf in leaves]
    ends = [
        call(name, func.scan)(
            pytree.unflatten(
                spec, [leaf + step * d for leaf, d in zip(leaves, direction, strict=True)]
            ),
            *arguments[1:],
        )
        for step in (1e-6, -1e-6)
    ]
    slope = sum(
        (g * d).sum().item() for g, d in zip(pytree.leaves(gradient), direction, strict=True)
    )
    assert slope == pytest.approx((ends[0] - ends[1]).item() / 2e-6, rel=1e-5, abs=1e-7)


@pytest.mark.sampled(0.06)
@pytest.mark.parametrize("name", loops.PROGRAMS)
@given(seed=st.integers(0, 2**32 - 1), steps=st.integers(1, 5))
@settings(max_examples=examples(3, in_sample=2))
def test_a_program_written_by_hand_is_the_same(name, seed, steps):
    rng = np.random.default_rng(seed)
    spread = 0.02 if name.startswith("kepler") else 0.1
    leaves, spec = pytree.flatten(loops.arguments(name, steps, cells=12))
    drawn = [np.asarray(a * rng.uniform(1 - spread, 1 + spread, a.shape)) for a in leaves]
    by_hand = BY_HAND[name](*loop_peers.flat(drawn), *loop_peers.counts(name, steps))
    arguments = loops.tensors(pytree.unflatten(spec, drawn))
    by_rules = func.value_and_grad(loops.PROGRAMS[name](func.scan, steps))(*arguments)
    for ours, theirs in zip(pytree.leaves(by_rules), pytree.leaves(by_hand), strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-12, atol=1e-13)
