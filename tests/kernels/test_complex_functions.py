"""Functions of complex numbers where one part is 0 or large: no inf * 0 on the way."""

from __future__ import annotations

import numpy as np
import pytest

import numgrad as ng

PARTS = [0.0, -0.0, 1.0, -2.5, 30.0, 400.0, -800.0]
POINTS = np.array([complex(x, y) for x in PARTS for y in PARTS])


@pytest.mark.parametrize("name", ["sin", "cos", "tan", "sinh", "cosh", "tanh", "exp2"])
def test_values_are_pytorchs(torch, name):
    ours = getattr(ng, name)(ng.from_numpy(POINTS)).numpy()
    theirs = getattr(torch, name)(torch.from_numpy(POINTS)).numpy()
    for part in ("real", "imag"):
        mine, reference = getattr(ours, part), getattr(theirs, part)
        np.testing.assert_allclose(mine, reference, rtol=1e-12, atol=1e-15)
        zeros = reference == 0
        np.testing.assert_array_equal(np.signbit(mine[zeros]), np.signbit(reference[zeros]))
