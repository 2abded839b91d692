"""Shapes broadcast as NumPy's do, and where they can't, PyTorch's words name the last dim."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad.ops.core.promotion import broadcast_shapes
from tests.cases import examples

SHAPES = st.lists(st.sampled_from([1, 1, 2, 3, 0]), max_size=4).map(tuple)


@given(st.lists(SHAPES, min_size=1, max_size=4))
@settings(max_examples=examples(300))
def test_shapes_broadcast_as_numpys(shapes: Any) -> None:
    try:
        wanted = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(RuntimeError, match="must match the size of tensor b"):
            broadcast_shapes(shapes)
    else:
        assert broadcast_shapes(shapes) == wanted


@given(SHAPES, SHAPES)
@settings(max_examples=examples(300))
def test_the_last_dims_that_differ_are_named_in_order(first: Any, second: Any) -> None:
    rank = max(len(first), len(second))
    a, b = [(1,) * (rank - len(shape)) + shape for shape in (first, second)]
    differ = [dim for dim in range(rank) if a[dim] != b[dim] and 1 not in (a[dim], b[dim])]
    if not differ:
        return
    at = differ[-1]
    words = (
        f"The size of tensor a ({a[at]}) must match the size of tensor b ({b[at]}) at "
        f"non-singleton dimension {at}"
    )
    with pytest.raises(RuntimeError, match=re.escape(words)):
        broadcast_shapes([first, second])


LYING = [
    ((3, 4), (1, 1)),
    ((2, 3, 4), (1, 1, 1)),
    ((2, 3, 2), (2, 2, 2)),
    ((3, 4), (0, 1)),
    ((3, 4), (1, 0)),
    ((3, 4), (2, 2)),
    ((4, 3), (1, 4)),
    ((2, 3, 4), (1, 2, 1)),
]


def test_operands_that_are_cast_lie_as_pytorchs(torch: Any) -> None:
    """Also where several strides are the same, and the lengths of the dims decide."""
    for shape, strides in LYING:
        for dtype in ("complex128", "float32", "float64"):
            found = []
            for m in (ng, torch):
                x = m.as_strided(m.arange(30.0, dtype=m.float32), shape, strides)
                other = m.ones(shape, dtype=getattr(m, dtype))
                sums = [x + other[..., :1], other[..., :1] * x, m.where(x > 2, x, other[0])]
                sums.append(x.to(getattr(m, dtype)))
                found.append([each.stride() for each in sums])
            assert found[0] == found[1], (shape, strides, dtype)
