"""What a dispatcher takes, and its words for the rest; from Python and from compiled code."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from numba.core.runtime import _nrt_python, rtsys

import numgrad as ng
from tests.cases import examples

# What Numba has a type for, so that compiled code can hand it on: of neither rank nor dtype.
OTHERS = {
    "None": (None, "is no array but None"),
    "string": ("abc", "is no array but a string"),
    "tuple": ((1.0, 2.0, 3.0), "is no array but a tuple"),
    "mixed tuple": ((1, 2.0, "a"), "is no array but a tuple"),
    "bytes": (b"abc", "is no array but"),
    "complex number": (1j, "is of complex128"),
    "other float": (np.zeros(3, np.float32), "is of float32"),
    "integers": (np.zeros(3, np.int64), "is of int64"),
    "structured": (np.zeros(3, [("a", "f8")]), "is of Record"),
    "strings": (np.array(["a", "b"]), "is of"),
    "dates": (np.zeros(3, "M8[s]"), "is of datetime64"),
}
# What it has none for: only a call from Python gets as far as our words.
UNKNOWN = {
    "objects": (np.array([1, None, 2], dtype=object), "an array of object"),
    "masked": (
        np.ma.masked_array(np.ones(3)),
        "a MaskedArray",
    ),
    "foreign byte order": (
        np.zeros(3, np.dtype(np.float64).newbyteorder()),
        "an array of float64 in foreign byte order",
    ),
    "half": (np.zeros(3, np.float16), "an array of float16"),
    "long double": (np.zeros(3, np.longdouble), "an array of"),
    "list": ([1.0, 2.0, 3.0], "a list"),
    "nested list": ([[1.0, 2.0, 3.0]], "a list"),
    "set": ({1.0}, "a set"),
    "dict": ({}, "a dict"),
    "function": (len, "a builtin_function_or_method"),
    "object": (object(), "a object"),
}


@lru_cache
def dispatcher() -> Any:
    return ng.jit(lambda x, y: x * y).lower(np.zeros(3), np.zeros(())).dispatcher


@lru_cache
def caller() -> Any:
    inner = dispatcher()
    return njit(lambda x, y: inner(x, y))


@pytest.mark.sampled(0.09, by="kind")
@pytest.mark.parametrize("position", [0, 1])
@pytest.mark.parametrize("compiled", [False, True], ids=["from Python", "from compiled code"])
@pytest.mark.parametrize("kind", OTHERS)
def test_an_argument_of_another_kind(kind: str, compiled: bool, position: int) -> None:
    value, words = OTHERS[kind]
    arguments = (value, 1.0) if position == 0 else (np.ones(3), value)
    with pytest.raises(TypeError) as caught:
        (caller() if compiled else dispatcher())(*arguments)
    message = str(caught.value)
    assert message.startswith(f"argument {position} must be ")
    assert words in message
    assert "\n" not in message


@pytest.mark.filterwarnings("ignore::numba.core.errors.NumbaPendingDeprecationWarning")
def test_a_list_that_compiled_code_hands_on() -> None:
    with pytest.raises(TypeError, match="argument 0 must be an array of float64, .* but a list"):
        caller()([1.0, 2.0, 3.0], 1.0)


@pytest.mark.parametrize("position", [0, 1])
@pytest.mark.parametrize("kind", UNKNOWN)
def test_an_argument_of_no_kind_that_can_be_compiled(kind: str, position: int) -> None:
    value, words = UNKNOWN[kind]
    arguments = (value, 1.0) if position == 0 else (np.ones(3), value)
    with pytest.raises(TypeError) as caught:
        dispatcher()(*arguments)
    # A list that compiled code has handed on before is known.
    assert str(caught.value).startswith(f"argument {position} ")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("compiled", [False, True], ids=["from Python", "from compiled code"])
@pytest.mark.parametrize("position", [0, 1])
@given(shape=st.lists(st.integers(0, 3), max_size=3), gaps=st.booleans())
@settings(max_examples=examples(10))
def test_float16_of_any_shape(compiled: bool, position: int, shape: list[int], gaps: bool) -> None:
    half = np.zeros([*shape, 4], np.float16)[..., :: 2 if gaps else 1]
    arguments = (half, 1.0) if position == 0 else (np.ones(3), half)
    with pytest.raises(TypeError) as caught:
        (caller() if compiled else dispatcher())(*arguments)
    assert str(caught.value).startswith(f"argument {position} is an array of float16, but compiled")
    assert "\n" not in str(caught.value)


@pytest.mark.sampled(0.18)
@pytest.mark.parametrize("compiled", [False, True], ids=["from Python", "from compiled code"])
@pytest.mark.parametrize("position", [0, 1])
@pytest.mark.parametrize("shape", [(), (1,), (4,), (3, 1), (0,), (1, 1, 3)])
def test_an_argument_of_another_shape(
    shape: tuple[int, ...], position: int, compiled: bool
) -> None:
    if shape == () and position == 1:
        return
    arguments = (np.ones(shape), 1.0) if position == 0 else (np.ones(3), np.ones(shape))
    with pytest.raises(ValueError, match=f"argument {position} must have the shape"):
        (caller() if compiled else dispatcher())(*arguments)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_too_many_and_too_few_arguments(count: int) -> None:
    with pytest.raises(TypeError, match="arguments: expected 2, got"):
        dispatcher()(*[np.ones(3)] * count)


@pytest.mark.parametrize("number", [True, 3, np.float32(1.5), 2.5, np.array(2.5)])
def test_numbers_are_held_on_the_stack(number: Any) -> None:
    """Memory for each took as long as Newton's method for Kepler's equation does."""
    inner = ng.jit(lambda x, y: x * y - y).lower(np.zeros(()), np.zeros(())).dispatcher

    @njit
    def called(count: int, x: Any) -> Any:
        total = 0.0
        for k in range(count):
            total += inner(x, k)[0] if count > 0 else 0.0
        return total

    assert called(3, number) == 3 * float(number) - 3
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats().alloc
        called(100, number)
        assert rtsys.get_allocation_stats().alloc - before < 100
    finally:
        _nrt_python.memsys_disable_stats()


def test_a_tensor() -> None:
    with pytest.raises(TypeError, match="takes NumPy arrays and numbers, but got a Tensor"):
        dispatcher()(ng.ones(3), 1.0)


def lying(
    dtype: str, shape: tuple[int, ...], gaps: bool, odd: bool, fixed: bool
) -> np.ndarray[Any, Any]:
    """Return an array of 1.5 (1 of integers): with gaps, unaligned, read-only, as is asked."""
    wide = (*shape[:-1], 2 * shape[-1])
    size = int(np.prod(wide)) * np.dtype(dtype).itemsize
    array = np.zeros(size + 1, np.uint8)[odd : size + odd].view(dtype).reshape(wide)
    array = array[..., ::2] if gaps else array[..., : shape[-1]].copy() if not odd else array
    array = array[..., : shape[-1]]
    array[...] = 1.5
    array.flags.writeable = not fixed
    return array


LAID = st.tuples(st.booleans(), st.booleans(), st.booleans(), st.sampled_from("<>"))


@settings(max_examples=examples(10))
@given(
    st.sampled_from(["f8", "i8", "c16"]),
    st.sampled_from([(3,), (2, 3), (1, 2, 1, 2, 1, 2)]),
    st.lists(LAID, min_size=2, max_size=6),
)
def test_arrays_that_lie_in_any_way_one_after_the_other(
    code: str, shape: tuple[int, ...], calls: list[tuple[bool, bool, bool, str]]
) -> None:
    """What it took before does not let those of foreign byte order pass."""
    double = ng.jit(lambda x: x + x).lower(np.zeros(shape, code)).dispatcher
    for *way, order in calls:
        array = lying(f"{order}{code}", shape, *way)
        if array.dtype.isnative:
            np.testing.assert_array_equal(double(array)[0], array + array)
            continue
        with pytest.raises(TypeError, match="foreign byte order"):
            double(array)


@pytest.mark.parametrize("code", ["f8", "i4", "c8"])
def test_an_unaligned_array_does_not_let_one_of_foreign_byte_order_pass(code: str) -> None:
    double = ng.jit(lambda x: x + x).lower(np.zeros((2, 2), code)).dispatcher
    for gaps in (False, True):
        for order, odd in (("<", True), ("<", False), (">", False), (">", True)):
            array = lying(f"{order}{code}", (2, 2), gaps, odd, False)
            if array.dtype.isnative:
                np.testing.assert_array_equal(double(array)[0], array + array)
                continue
            with pytest.raises(TypeError, match="foreign byte order"):
                double(array)


DTYPES = [np.bool_, np.int64, np.float32, np.float64, np.complex128]
NUMBERS = [True, 3, 2.5, 1 + 2j, np.float32(1.5), np.int32(4), np.complex64(1j), np.bool_(False)]


@pytest.mark.sampled(0.14)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_number_in_the_place_of_an_array_of_no_dims(dtype: Any) -> None:
    """It is taken where that dtype holds numbers of its kind; nothing is cut off."""
    add = ng.jit(lambda x: x + x).lower(np.zeros((), dtype)).dispatcher
    for number in NUMBERS:
        if np.can_cast(type(number), dtype, "same_kind") or np.result_type(type(number)) == dtype:
            twice = np.add(np.asarray(number).astype(dtype), np.asarray(number).astype(dtype))
            np.testing.assert_allclose(add(number)[0], twice)
        else:
            with pytest.raises(TypeError, match="argument 0 must be of"):
                add(number)


@given(st.sampled_from(DTYPES), st.integers(0, 3), st.booleans())
@settings(max_examples=examples(10))
def test_few_elements_called_often(dtype: Any, ndim: int, as_tensor: bool) -> None:
    """At some call their sizes are compiled in."""
    array = np.ones((2,) * ndim, dtype)
    compiled = ng.jit(lambda x: x + x)
    expected = np.add(array, array)
    argument = ng.from_numpy(array) if as_tensor else array
    for _ in range(104):
        np.testing.assert_array_equal(compiled(argument).numpy(), expected)
