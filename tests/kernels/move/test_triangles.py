"""Triangles of matrices are NumPy's, of any dtype and layout."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from numgrad.kernels.move.triangles import triangle

SHAPES = (3, 3), (2, 3, 5), (5, 2), (1, 4), (2, 0, 3), (0, 3), (2, 2, 4, 4)


@pytest.mark.parametrize("dtype", ["float64", "float16", "complex128", "int8", "bool"])
def test_they_are_numpys(dtype: str) -> None:
    random = np.random.default_rng(0)
    for shape in SHAPES:
        row_by_row = (5 * random.standard_normal(shape)).astype(dtype)
        layouts = row_by_row, row_by_row[..., ::-1], row_by_row.swapaxes(-1, -2)
        for array, offset in itertools.product(layouts, (-9, -2, -1, 0, 1, 3, 2**70)):
            within = max(min(offset, 9), -9)
            for lower, expected in ((True, np.tril), (False, np.triu)):
                found = triangle(array, offset, lower)
                assert found.dtype == array.dtype and found.flags.c_contiguous
                assert not np.may_share_memory(found, array)
                np.testing.assert_array_equal(found, expected(array, within))
