"""Where results lie: the usual case is answered at once, and as a loop order answers it."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from numgrad.kernels.move.loop_order import result_order
from numgrad.kernels.move.memory_order import copy_with_gaps, empty_for, in_order_of
from tests.cases import examples


@st.composite
def operands(draw: Any) -> tuple[tuple[int, ...], list[np.ndarray[Any, Any]]]:
    """Draw a shape, and arrays (or none) in any order of dims, perhaps with gaps, that fit it."""
    shape = tuple(draw(st.lists(st.sampled_from([1, 1, 2, 3, 4, 0]), max_size=4)))
    arrays = []
    for number in range(draw(st.integers(0, 3))):
        own = [n if number == 0 or draw(st.booleans()) else 1 for n in shape]
        order = draw(st.one_of(st.just(range(len(own))), st.permutations(range(len(own)))))
        step = draw(st.sampled_from([1, 1, 2]))
        memory = np.arange(np.prod([own[dim] * step for dim in order], dtype=int), dtype=float)
        lying = memory.reshape([own[dim] * step for dim in order])
        array = lying[(slice(None, None, step),) * len(own)].transpose(np.argsort(list(order)))
        arrays.append(array)
    return shape, arrays


@settings(max_examples=examples(1000))
@given(operands(), st.booleans())
def test_results_lie_as_the_order_of_the_loops_says(
    drawn: tuple[tuple[int, ...], list[np.ndarray[Any, Any]]],
    by_columns: bool,
) -> None:
    shape, arrays = drawn
    order = result_order(shape, arrays)
    dims = order.dims or range(len(shape))
    expected = np.empty([shape[dim] for dim in dims]).transpose(np.argsort(list(dims)).tolist())
    if order.strides is not None:
        expected = np.lib.stride_tricks.as_strided(
            expected, shape, [step * 8 for step in order.strides]
        )
    assert empty_for(shape, np.float64, arrays).strides == expected.strides
    values = np.empty(shape, order="F" if by_columns else "C")
    values[...] = np.arange(values.size).reshape(shape)
    placed = in_order_of(values, arrays)
    assert placed.strides == expected.strides
    np.testing.assert_array_equal(placed, values)


@given(operands())
def test_a_copy_with_gaps_has_the_same_strides(
    drawn: tuple[tuple[int, ...], list[np.ndarray[Any, Any]]],
) -> None:
    for array in drawn[1]:
        copy = copy_with_gaps(array)
        np.testing.assert_array_equal(copy, array)
        assert not np.may_share_memory(copy, array) or not array.size
        if array.size:
            long = [dim for dim, n in enumerate(array.shape) if n > 1]
            assert [copy.strides[dim] for dim in long] == [array.strides[dim] for dim in long]
