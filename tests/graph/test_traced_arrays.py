"""Arrays of a traced function, by a recorder that has numbers for them: what each method asks it.

Also where arrays lie, and which have a view of another shape, by both ways to find that out.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad.graph import recorder
from numgrad.graph.recorder import Storage, Traced, TracedTensor, distance, reshaped
from tests.cases import examples

NUMBERS = np.array([[3.0, -1.0, 2.0], [0.5, 2.0, 7.0]])


class Asked(Exception):
    """What is asked for is not there."""


class Telling:
    """A recorder that tells what it is asked for, and has the numbers of what it is asked about."""

    transforms = False

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def numbers(self, what: str, array: Any) -> Any:
        self.asked.append(what)
        return array.place

    def refuse(self, what: str, array: Any = None) -> Any:
        raise Asked(what)

    def depend_on_strides(self, arguments: Any) -> None:
        self.asked.append(arguments)

    def write(self, target: Any, value: Any) -> None:
        self.asked.append((target.shape, value))

    def cast(self, array: Any, dtype: Any, order: str) -> Any:
        return ("cast", array, dtype, order)

    def reshape(self, array: Any, shape: tuple[int, ...]) -> Any:
        return ("reshape", array, shape)

    def describe(self, tensor: Any) -> str:
        return "a tensor of no numbers"


def traced(array: Any) -> Any:
    whole: Any = np.asarray(array)
    told: Any = Telling()
    return Traced(Storage(told, whole, None), whole)


ONE = np.array([4.0])
WHOLE_NUMBER = np.array([3])
ASKING: list[tuple[str, Any, Callable[[Any], Any]]] = [
    ("a Python number", ONE, lambda x: x.item()),
    ("a Python number", NUMBERS, lambda x: x.item(1, 2)),
    ("a list of Python numbers", NUMBERS, lambda x: x.tolist()),
    ("a NumPy array", NUMBERS, lambda x: np.asarray(x).tolist()),
    ("a NumPy array", NUMBERS, lambda x: np.asarray(x, np.float32).dtype),
    ("a truth value", ONE[0, ...], bool),
    ("a truth value", 0 * ONE[0, ...], bool),
    ("a Python number", ONE[0, ...], float),
    ("a Python number", ONE[0, ...], int),
    ("a Python number", WHOLE_NUMBER[0, ...], operator.index),
    ("a Python number", ONE[0, ...], complex),
    ("its numbers", ONE, list),
    ("its numbers", NUMBERS, lambda x: (x < 2).tolist()),
    ("its numbers", NUMBERS, lambda x: (x <= 2).tolist()),
    ("its numbers", NUMBERS, lambda x: (x > 2).tolist()),
    ("its numbers", NUMBERS, lambda x: (x >= 2).tolist()),
    ("its numbers", NUMBERS, lambda x: x.sum()),
    ("its numbers", NUMBERS, lambda x: x.ctypes.data),
]


@pytest.mark.parametrize(("what", "array", "ask"), ASKING)
def test_who_asks_for_numbers_gets_them_from_the_recorder(
    what: str, array: Any, ask: Callable[[Any], Any]
) -> None:
    asked = traced(array)
    assert ask(asked) == ask(array)
    assert asked.storage.recorder.asked == [what]


def test_other_names_of_python_are_asked_for_in_vain() -> None:
    array = traced(NUMBERS)
    for name in ("__array_interface__", "__dlpack__", "__deepcopy__"):
        assert not hasattr(array, name)
    assert array.storage.recorder.asked == []


def test_facts_are_those_of_the_array_and_strides_are_asked_for() -> None:
    array = traced(NUMBERS.T)
    told: Any = array.storage.recorder
    names = ("shape", "dtype", "ndim", "size", "itemsize", "nbytes")
    assert [getattr(array, name) for name in names] == [(3, 2), np.float64, 2, 6, 8, 48]
    assert len(array) == 3
    assert array.strides == NUMBERS.T.strides and array.flags.f_contiguous
    assert told.asked == []  # they follow from no argument
    array.storage.follow(frozenset([1]))
    assert array.strides and told.asked == [{1}]
    assert not array.flags.c_contiguous and told.asked == [{1}] * 2


@pytest.mark.parametrize(
    ("shape", "gaps", "follows"),
    [
        ((2, 3), False, True),
        ((2, 1), False, True),
        ((1, 1, 4), False, True),
        ((4,), False, False),
        ((1, 2, 1, 2), False, True),
        ((2, 1), True, True),
        ((1, 1), True, True),
        ((), True, False),
    ],
)
def test_strides_of_arguments_decide_only_where_there_is_more_than_one_way(
    shape: tuple[int, ...], gaps: bool, follows: bool
) -> None:
    storage = traced(np.zeros(shape)).storage
    storage.follow(frozenset(), gaps)
    assert storage.follows == frozenset()
    storage.follow(frozenset([2]), gaps)
    storage.follow(frozenset([0]), gaps)
    assert storage.follows == ({0, 2} if follows else set())


def test_views_lie_where_numpys_do() -> None:
    array = traced(NUMBERS)
    views: list[Callable[[Any], Any]] = [
        lambda x: x[0],
        lambda x: x[1, 2],
        lambda x: x[..., 1],
        lambda x: x[1, ...],
        lambda x: x[:, None, ::-1],
        lambda x: x.transpose(1, 0),
        lambda x: x.swapaxes(0, 1),
        lambda x: x.view(np.complex64),
        lambda x: x.reshape(3, 2),
        lambda x: x.reshape((6,)),
        lambda x: x.T if isinstance(x, np.ndarray) else x.transpose(),
    ]
    for view in views:
        made, expected = view(array), np.asarray(view(NUMBERS))
        assert type(made) is Traced and made.storage is array.storage
        assert type(made.place) is np.ndarray and made.place.dtype == expected.dtype
        assert made.place.shape == expected.shape
        if expected.ndim:  # a single number is another array for NumPy
            assert made.place.strides == expected.strides
            assert distance(NUMBERS, made.place) == distance(NUMBERS, expected)
    assert distance(NUMBERS, array[1, 2].place) == 40
    for key in ([0], np.array([1]), (0, [1]), (slice(None), np.array([True, False, True]))):
        with pytest.raises(Asked, match="a NumPy array"):
            array[key]


def test_what_is_no_view_is_the_recorders() -> None:
    array = traced(NUMBERS)
    told: Any = array.storage.recorder
    array[0] = 5.0
    array[:, 1:] = "what"
    assert told.asked == [((3,), 5.0), ((2, 2), "what")]
    assert array.astype(np.float64, copy=False) is array
    assert array.astype(np.float64) == ("cast", array, np.float64, "K")
    assert array.astype("f4", "C") == ("cast", array, np.float32, "C")
    assert array.astype("f4", copy=False) == ("cast", array, np.float32, "K")
    assert array.copy() == ("cast", array, np.float64, "C")
    assert array.copy("K") == ("cast", array, np.float64, "K")
    turned = array.transpose()
    assert turned.reshape(6) == ("reshape", turned, (6,))
    assert turned.reshape((2, -1)) == ("reshape", turned, (2, 3))
    with pytest.raises(ValueError, match="cannot reshape"):
        turned.reshape(4, -1)


def test_a_tensor_without_numbers_is_printed_as_the_recorder_says() -> None:
    tensor = object.__new__(TracedTensor)
    tensor._array = traced(NUMBERS)
    for text in (repr(tensor), str(tensor)):
        assert text == "a tensor of no numbers"


def test_a_tensor_without_numbers_says_where_it_is_from() -> None:
    tensor = object.__new__(TracedTensor)
    tensor._array = array = traced(NUMBERS)
    told: Any = array.storage.recorder
    for told.transforms, words in ((True, "vmap maps"), (False, "a traced function")):
        with pytest.raises(RuntimeError, match=f"of .*{words} has left it"):
            _ = tensor._array


@settings(max_examples=examples(100))
@given(
    shape=st.lists(st.integers(0, 4), max_size=4).map(tuple),
    order=st.permutations(range(4)),
    steps=st.lists(st.sampled_from([1, 2, -1]), min_size=4, max_size=4),
    wanted=st.sampled_from(
        [(-1,), (6,), (2, 3), (3, 2), (4, -1), (2, 2, 2), (1, -1, 2), (0,), (), (1, 1)]
    ),
)
def test_a_view_of_another_shape_is_found_by_newer_and_older_numpys(
    shape: tuple[int, ...], order: list[int], steps: list[int], wanted: tuple[int, ...]
) -> None:
    count = len(shape)
    whole = np.arange(8.0**count).reshape((8,) * count)
    slices: Any = [slice(None, n * abs(s), s) for n, s in zip(shape, steps, strict=False)]
    array = whole[(*slices, ...)]
    array = array.transpose([dim for dim in order if dim < count])
    with pytest.MonkeyPatch.context() as patch:
        found = []
        for has in {False, recorder._HAS_RESHAPE_WITHOUT_COPY}:
            patch.setattr(recorder, "_HAS_RESHAPE_WITHOUT_COPY", has)
            with warnings.catch_warnings(action="ignore"):  # of newer NumPys
                found.append(reshaped(array, wanted))
    try:
        copied = array.reshape(wanted)
    except ValueError:
        assert found == [None] * len(found)
        return
    is_view = array.size == 0 or np.shares_memory(copied, array)
    for view in found:
        assert (view is not None) == is_view
        if view is not None and array.size:
            assert view.shape == copied.shape and view.strides == copied.strides
            assert np.shares_memory(view, array)
            np.testing.assert_array_equal(view, copied)


def test_distances_are_asked_for_where_they_cannot_be_read(monkeypatch: Any) -> None:
    monkeypatch.setattr(recorder, "_is_readable", False)
    memory = np.arange(10.0)
    assert distance(memory[2:], memory[7:]) == 40 and distance(memory[7:], memory[2:]) == -40
    for array in (memory, memory[3:], memory[::-1]):
        assert recorder._asked_address(array) == recorder._read_address(array)


def test_arrays_that_are_traced_are_told_from_others() -> None:
    array = traced(NUMBERS)
    assert recorder.is_traced_array(array) and not recorder.is_traced_array(NUMBERS)
    assert recorder.place_of(array) is NUMBERS and recorder.place_of(NUMBERS) is NUMBERS
    assert recorder.address_of(array) == recorder.address_of(NUMBERS)
    assert isinstance(ng.ones(1)._array, np.ndarray)


def test_memory_follows_what_the_source_follows() -> None:
    source, result = traced(NUMBERS), traced(NUMBERS)
    recorder.follow_strides(source, result)
    assert result.storage.follows == frozenset()
    source.storage.follow(frozenset([0]))
    for pair in ((source, NUMBERS), (NUMBERS, result)):
        recorder.follow_strides(*pair)
    assert result.storage.follows == frozenset() == source.storage.shared_by
    recorder.follow_strides(source, result)
    assert result.storage.follows == {0} and result.storage.shared_by == frozenset()
    other = traced(NUMBERS[0])
    other.storage.follows = frozenset([5])
    recorder.note_alternative(source, other)
    assert other.storage.follows == {0, 5} and other.storage.shared_by == {0}
    assert source.storage.shared_by == {0} == source.storage.follows


def test_addresses_are_read_and_not_asked_for() -> None:
    """Which takes a sixth of the time, where an object of NumPy's begins as CPython's do."""
    assert recorder._address is recorder._read_address
    array = np.ones((3, 4))
    for view in (array, array[1:], array[:, 2], array[::-1]):
        assert recorder.address_of(view) == view.__array_interface__["data"][0]
