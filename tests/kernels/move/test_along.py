"""Elements by positions along a dim, and dims moved to an end, as NumPy has them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numgrad.kernels.move.along import along, dim_first, dim_last

shapes = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@given(shape=shapes, data=st.data())
@pytest.mark.parametrize("scale", [1, 40])
def test_elements_are_those_of_numpy(scale: int, shape: list[int], data: st.DataObject) -> None:
    shape = [shape[0] * scale, *shape[1:]]
    random = np.random.default_rng(0)
    array = random.random(shape).T
    dim = data.draw(st.integers(-array.ndim, array.ndim - 1))
    wide = [n if data.draw(st.booleans()) else 1 for n in array.shape]
    wide[dim] = data.draw(st.integers(0, 5))
    positions = random.integers(-array.shape[dim], array.shape[dim], wide)
    expected = np.take_along_axis(array, positions, dim)
    found = along(array, positions, dim)
    np.testing.assert_array_equal(found, expected)
    assert found.strides == expected.strides
    for ours, end in ((dim_last, -1), (dim_first, 0)):
        moved, other = ours(array, dim), np.moveaxis(array, dim, end)
        assert moved.strides == other.strides
        assert moved.shape == other.shape
        assert moved.base is not None
