"""Tensors of numbers in nested lists: shape, dtype and elements, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng

NUMBERS = {
    bool: st.booleans(),
    int: st.integers(-(2**40), 2**40),
    float: st.floats(-(2.0**99), 2.0**99, width=32),
    complex: st.complex_numbers(max_magnitude=1e30, allow_nan=False),
}
DTYPES = {bool: ng.bool, int: ng.int64, float: ng.float32, complex: ng.complex64}


def nested(draw: Any, shape: tuple[int, ...], numbers: Any) -> Any:
    if not shape:
        return draw(numbers)
    container = draw(st.sampled_from([list, tuple]))
    return container([nested(draw, shape[1:], numbers) for _ in range(shape[0])])


def elements_of(data: Any) -> list[Any]:
    if not isinstance(data, (list, tuple)):
        return [data]
    return [element for part in data for element in elements_of(part)]


@st.composite
def data_and_shapes(draw: Any) -> tuple[Any, tuple[int, ...]]:
    shape = tuple(draw(st.lists(st.integers(1, 3), max_size=4)))
    kinds = draw(st.lists(st.sampled_from(list(NUMBERS)), min_size=1, max_size=2))
    return nested(draw, shape, st.one_of([NUMBERS[kind] for kind in kinds])), shape


@given(case=data_and_shapes())
def test_a_tensor_holds_the_numbers_of_nested_lists(case: Any) -> None:
    data, shape = case
    found = elements_of(data)
    highest = max(map(type, found), key=list(NUMBERS).index)
    tensor = ng.tensor(data)
    assert tensor.shape == shape
    assert tensor.dtype is DTYPES[highest]
    expected = np.array(found, np.result_type(highest)).astype(tensor.numpy().dtype)
    np.testing.assert_array_equal(tensor.numpy().ravel(), expected)


@given(case=data_and_shapes(), depth=st.integers(0, 1))
def test_arrays_among_the_numbers_change_nothing(case: Any, depth: int) -> None:
    data, shape = case
    plain = ng.tensor(data, dtype=ng.complex128)

    def with_arrays(part: Any, dims: int) -> Any:
        if dims <= depth:
            return np.asarray(part, np.complex128)[()]
        return [with_arrays(each, dims - 1) for each in part]

    found = ng.tensor(with_arrays(data, len(shape)), dtype=ng.complex128)
    assert found.shape == shape
    np.testing.assert_array_equal(found.numpy(), plain.numpy())


@given(case=data_and_shapes(), choose=st.data())
def test_ragged_lists_are_refused(case: Any, choose: st.DataObject) -> None:
    data, shape = case
    if len(shape) < 2 or shape[0] < 2:
        return
    rows = list(data)
    at = choose.draw(st.integers(1, shape[0] - 1))
    shorter = choose.draw(st.booleans())
    rows[at] = list(rows[at])[:-1] if shorter else 1.0
    with pytest.raises((ValueError, TypeError), match="expected sequence of length|not a sequence"):
        ng.tensor(rows)


def test_a_list_in_itself_has_too_many_dimensions() -> None:
    data: list[Any] = []
    data.append(data)
    with pytest.raises(ValueError, match="too many dimensions 'list'"):
        ng.tensor(data)


INDEX = "only integer scalar arrays can be converted to a scalar index"


@pytest.mark.parametrize(
    ("array", "dtype", "expected"),
    [
        (np.array(3), ng.int64, 3),
        (np.array(3, np.uint8), ng.uint8, 3),
        (np.array(3), ng.bool, True),
        (np.array(0), ng.bool, False),
        (np.array(1.5), ng.float32, 1.5),
        (np.array(2j), ng.complex64, 2j),
        (np.array(2j), None, 2j),
        (np.array(1.5), ng.int64, INDEX),
        (np.array([2]), ng.int64, INDEX),
        (np.array([2]), None, INDEX),
        (np.array(True), ng.int64, INDEX),
        (np.array(1.5), ng.bool, INDEX),
        (np.array([True]), ng.bool, INDEX),
        (np.array(3), ng.uint64, "an integer is required"),
    ],
)
def test_an_array_behind_a_number_is_what_python_takes_it_for(
    array: Any, dtype: Any, expected: Any
) -> None:
    """As in PyTorch: an integer is one by ``__index__``, which only arrays without dims have."""
    if isinstance(expected, str):
        with pytest.raises(TypeError, match=expected):
            ng.tensor([1, array], dtype=dtype)
    else:
        assert ng.tensor([1, array], dtype=dtype).tolist() == [1, expected]
