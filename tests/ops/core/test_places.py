"""How results and gradients lie: which matrices lie by columns, and copies that lie as others."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from numgrad.graph.tensor import wrap
from numgrad.ops.core.places import (
    Strides,
    copier,
    lies_by_columns,
    like_input,
    like_original,
    relaid,
    strides_of,
    with_gaps_of_input,
)

WHOLE = np.arange(210.0).reshape(5, 6, 7)
ARRAYS = {
    "rows": WHOLE,
    "columns": WHOLE.T,
    "turned": WHOLE.transpose(1, 2, 0),
    "gaps": WHOLE[:, ::2, 1:4],
    "turned, with gaps": WHOLE[:, ::2].transpose(2, 0, 1),
    "one row": WHOLE[:1].transpose(2, 0, 1),
    "repeated": np.broadcast_to(WHOLE[0], (5, 6, 7)),
}


def test_a_matrix_lies_by_columns_if_it_has_several_without_gaps() -> None:
    for rows, columns in itertools.product(range(4), repeat=2):
        for itemsize, dtype in ((4, np.float32), (8, np.float64)):
            by_columns = np.empty((columns + 1, rows), dtype)[:columns].T
            found = lies_by_columns(by_columns, itemsize)
            assert found == (rows > 1 and columns > 1), (rows, columns)
            assert not lies_by_columns(np.empty((rows, columns), dtype), itemsize)
            assert not lies_by_columns(by_columns, itemsize + 4)
            assert not lies_by_columns(np.empty((columns, rows + 1), dtype)[:, :rows].T, itemsize)


@pytest.mark.parametrize("name", ARRAYS)
def test_memory_like_an_input_has_its_dims_in_their_order(name: str) -> None:
    array = ARRAYS[name]
    dense, gaps = like_input(array), with_gaps_of_input(array)
    assert dense.shape == gaps.shape == array.shape and dense.dtype == gaps.dtype == array.dtype
    order = sorted(range(3), key=lambda dim: (-dense.strides[dim], dim))
    assert np.prod(array.shape) * 8 == dense.strides[order[0]] * dense.shape[order[0]]
    if name != "repeated":
        lying = [(array.strides[d], dense.strides[d]) for d in range(3) if array.shape[d] > 1]
        lying.sort()
        assert [step for _, step in lying] == sorted(step for _, step in lying)
        assert gaps.strides == array.strides or name == "one row"


@pytest.mark.parametrize("name", ARRAYS)
def test_copies_lie_as_the_memory_they_are_made_like(name: str) -> None:
    memory, values = ARRAYS[name], np.random.default_rng(0).normal(size=ARRAYS[name].shape)
    copied = copier(memory)
    if name in ("gaps", "turned, with gaps", "repeated"):
        assert copied is None
    else:
        assert copied is not None
        copy = copied(values)
        assert copy.strides == memory.strides and not np.may_share_memory(copy, values)
        np.testing.assert_array_equal(copy, values)
    value = wrap(values.copy())
    before = value._array
    place = np.empty_like(memory)
    assert relaid(value, place, ()) is value
    np.testing.assert_array_equal(value.numpy(), values)
    assert (value._array is before) == (place.strides == before.strides)
    assert value._array.strides == place.strides
    view = wrap(values.copy())[...]
    laid = relaid(view, place, ())
    assert laid._array.strides == place.strides
    np.testing.assert_array_equal(view.numpy(), values)


def test_what_a_node_keeps_of_how_an_operand_lies() -> None:
    for array in ARRAYS.values():
        lies: Any = strides_of(array)
        value = wrap(np.random.default_rng(0).normal(size=array.shape))
        given = value.numpy().copy()
        laid = like_original(value, lies)
        np.testing.assert_array_equal(laid.numpy(), given)
        if array.flags.c_contiguous:
            assert lies is None and laid is value
        else:
            assert lies == Strides(array.shape, array.strides, 3, array.itemsize)
            assert like_original(wrap(np.ones((5, 6))), lies)._array.strides == (48, 8)
