"""Few rows added at positions, in calls that are remembered: along each dim of a square tensor."""

from __future__ import annotations

import numpy as np
import pytest

import numgrad as ng


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("places", [[0, 2, 0], [1, 1], [2]])
def test_rows_are_added_along_the_dim_that_is_meant(dim: int, places: list[int]) -> None:
    random = np.random.default_rng(0)
    for _ in range(4):  # the later calls are remembered
        array = random.integers(0, 9, (3, 3)).astype(float)
        shape = (len(places), 3) if dim == 0 else (3, len(places))
        source = random.integers(0, 9, shape).astype(float)
        expected = array.copy()
        rows = expected if dim == 0 else expected.T
        np.add.at(rows, places, source if dim == 0 else source.T)
        found = ng.from_numpy(array).index_add(dim, ng.tensor(places), ng.from_numpy(source))
        assert found.tolist() == expected.tolist()
