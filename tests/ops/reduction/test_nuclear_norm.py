"""The old `norm` of order nuc, of all dims and of two."""

from __future__ import annotations

import numpy as np
import pytest

import numgrad as ng


@pytest.mark.parametrize("dims", [None, (0, 1), (1, 0)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_it_is_the_sum_of_the_singular_values(dims: tuple[int, ...] | None, keepdim: bool) -> None:
    array = np.random.default_rng(0).normal(size=(3, 2))
    found = ng.norm(ng.from_numpy(array), "nuc", dims, keepdim)
    expected = np.linalg.norm(array, "nuc")
    np.testing.assert_allclose(found.item(), expected, rtol=1e-12)
    assert found.shape == ((1, 1) if keepdim else ())
