"""How the dims of two shapes of equally many elements are split into groups."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from numgrad.jit.schedule.dim_classes import _groups

SIZES = st.lists(st.sampled_from([1, 2, 3, 4, 6]), max_size=5)


def split(draw: Any, size: int) -> list[int]:
    """Return sizes with a product, some of them 1."""
    found = []
    while size > 1:
        part = draw(st.sampled_from([k for k in range(2, size + 1) if size % k == 0]))
        found.append(part)
        size //= part
    for _ in range(draw(st.integers(0, 2))):
        found.insert(draw(st.integers(0, len(found))), 1)
    return found


@given(sizes=SIZES, data=st.data())
def test_groups_are_the_shortest_with_the_same_number_of_elements(
    sizes: list[int], data: st.DataObject
) -> None:
    before, after = sizes, split(data.draw, math.prod(sizes))
    groups = _groups(before, after)
    for shape, side in ((before, 0), (after, 1)):
        dims = [dim for group in groups for dim in group[side]]
        assert dims == [dim for dim, size in enumerate(shape) if size != 1]
    for inner, outer in groups:
        assert math.prod(before[dim] for dim in inner) == math.prod(after[dim] for dim in outer)
        ends = [
            {math.prod(shape[dim] for dim in dims[: k + 1]) for k in range(len(dims) - 1)}
            for shape, dims in ((before, inner), (after, outer))
        ]
        assert not ends[0] & ends[1]


def test_dims_of_one_element_are_in_no_group() -> None:
    assert _groups((2, 1, 3), (1, 6)) == [([0, 2], [1])]
    assert _groups((1, 4, 3), (4, 1, 3)) == [([1], [0]), ([2], [2])]
    assert _groups((), (1, 1)) == []
