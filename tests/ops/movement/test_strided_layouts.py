"""The memory that strided views and scatters lie in, against the addresses of their elements."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numgrad.ops.movement import strided
from numgrad.ops.movement.view_geometry import geometry_between, inside_of, scattered

F64 = np.dtype(np.float64)


@st.composite
def layouts(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Draw a shape, strides and an offset, in elements."""
    shape = draw(st.lists(st.integers(1, 3), max_size=3))
    strides = draw(st.lists(st.integers(0, 6), min_size=len(shape), max_size=len(shape)))
    return tuple(shape), tuple(strides), draw(st.integers(0, 9))


def _places(layout: tuple[tuple[int, ...], tuple[int, ...], int]) -> set[int]:
    shape, strides, offset = layout
    return {
        offset + sum(k * step for k, step in zip(at, strides, strict=True))
        for at in np.ndindex(*shape)
    }


@given(layouts(), layouts())
def test_memory_of_a_scatter_has_room_for_all_that_is_at_either_layout(outer, inner):
    with patch.object(strided, "strided_view", lambda memory, layout: (memory, layout)):
        memory, layout = strided._memory_of_scattered(outer, inner, F64)
    both = _places(outer) | _places(inner)
    assert memory.dtype == F64 and not memory.any()
    assert memory.shape == (max(both) - min(both) + 1,)
    assert layout == (*outer[:2], outer[2] - min(both))
    array = strided._memory_of_scattered(outer, inner, F64)
    assert array.shape == outer[0]
    assert tuple(step // 8 for step in array.strides) == outer[1]


@given(st.data())
def test_what_is_read_and_written_within_a_base_is_what_lies_there(data: st.DataObject) -> None:
    order = data.draw(st.sampled_from("CF"))
    base = np.arange(24.0).reshape(2, 3, 4, order=order)
    steps = [data.draw(st.sampled_from([1, 2])) for _ in base.shape]
    first = [data.draw(st.integers(0, length - 1)) for length in base.shape]
    key = tuple(slice(start, None, step) for start, step in zip(first, steps, strict=True))
    view = base[key]
    if data.draw(st.booleans()):
        view = view.transpose(data.draw(st.permutations(range(3))))
    start = view.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    geometry = geometry_between(base.shape, base.strides, F64, view.shape, view.strides, F64, start)
    other = np.random.default_rng(0).normal(size=base.shape)
    for array in (base.copy(order), np.asarray(other, order=order)):
        found = inside_of(array, geometry)
        same = np.lib.stride_tricks.as_strided(
            array.ravel(order)[start // 8 :], view.shape, view.strides
        )
        np.testing.assert_array_equal(found, same)
        assert np.shares_memory(found, array)
        for source in (np.full(view.shape, 7.0), -view):
            wanted, kept = array.copy(order), array.copy(order)
            inside = np.lib.stride_tricks.as_strided(
                wanted.ravel("K")[start // 8 :], view.shape, view.strides
            )
            inside[...] = source
            result = scattered(array, source, geometry)
            np.testing.assert_array_equal(result, wanted)
            np.testing.assert_array_equal(array, kept)
            assert result.strides == wanted.strides
    turned = np.asarray(other, order="F" if order == "C" else "C")
    assert inside_of(turned, geometry) is None
    assert inside_of(np.zeros((3, 2, 4)), geometry) is None
    wanted = turned.copy("C")
    wanted_view = np.asarray(wanted, order=order)
    inside = np.lib.stride_tricks.as_strided(
        wanted_view.ravel("K")[start // 8 :], view.shape, view.strides
    )
    inside[...] = 5.0
    np.testing.assert_array_equal(scattered(turned, np.asarray(5.0), geometry), wanted_view)


@pytest.mark.parametrize("start", [-8, 8 * 24])
def test_a_view_that_leaves_the_memory_of_the_base_is_refused(start: int) -> None:
    facts = (2, 3, 4), (96, 32, 8), F64, (2,), (8,), F64
    for between in (0, 8 * 22):
        geometry_between(*facts, between)
    for between in (start, 8 * 23, -16):
        with pytest.raises(RuntimeError, match="memory"):
            geometry_between(*facts, between)
    with pytest.raises(RuntimeError):
        geometry_between((2,), (8,), F64, (2,), (8,), np.dtype(np.int64), 0)
