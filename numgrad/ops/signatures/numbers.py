"""Numbers as arguments: what PyTorch's parser takes for one, and for several."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.modes.state import interceptors
from numgrad.graph.recorder import note_given, note_numbers
from numgrad.graph.tensor import NO_EDGE, Tensor
from numgrad.ops.core.type_names import type_name

__all__ = [
    "BEYOND_INT64",
    "NUMBERS",
    "NUMPY_NUMBERS",
    "PLAIN_NUMBERS",
    "Where",
    "are_floats",
    "are_numbers",
    "as_float",
    "as_floats",
    "as_integer",
    "as_number",
    "is_float",
    "is_integer",
    "is_number",
    "plain_floats",
    "plain_numbers",
]

NUMBERS = (bool, int, float, complex, np.number, np.bool_)
# What is handed on as it is, beside ints that a dtype holds; NumPy's numbers are converted first.
PLAIN_NUMBERS = frozenset({float, bool, complex})
NUMPY_NUMBERS = frozenset({np.dtype(code).type for code in "?bhilqBHILQefdFD"})
BEYOND_INT64 = "Overflow when unpacking long long"
# The names of a function and of its parameter.
Where = tuple[str, str]


def is_integer(value: Any) -> bool:
    """Whether `value` can be a length: an int, a NumPy integer or a 0-d integer tensor."""
    if isinstance(value, Tensor):
        return not value._array.ndim and value._array.dtype.kind in "iu"
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def as_integer(value: Any) -> int:
    """Return an integer of any kind as a Python int.

    Raises
    ------
    ValueError
        If int64 does not hold it: a dim, a length, a count.
    """
    integer = int(_number_in(value)) if isinstance(value, Tensor) else int(value)
    if not dtypes.is_int64(integer):
        raise ValueError(BEYOND_INT64)
    return integer


def _number_in(tensor: Tensor) -> Any:
    """Return the only element; what is traced depends on it."""
    if interceptors:
        note_numbers(tensor._array)
    return tensor._array.item()


def is_number(value: Any) -> bool:
    """Whether `value` is a number: Python's, NumPy's, or a 0-d tensor that needs no gradient."""
    if isinstance(value, Tensor):
        return not value._array.ndim and value._edge is NO_EDGE
    return isinstance(value, NUMBERS)


def as_number(value: Any) -> Any:
    """Return a number of any kind as a Python number.

    Raises
    ------
    OverflowError
        If it is an int that no dtype holds.
    """
    if isinstance(value, Tensor):
        return _number_in(value)
    note_given(value)
    dtypes.kind_of_number(value)
    if isinstance(value, np.bool_):  # to PyTorch, NumPy's bool is a floating point number here
        return float(value)
    return value.item() if isinstance(value, np.generic) else value


def is_float(value: Any) -> bool:
    """Whether a value is taken for a real number, a tensor of one included."""
    if isinstance(value, Tensor):
        return is_number(value) and value._array.dtype.kind != "c"
    return isinstance(value, (int, float, np.floating, np.integer, np.bool_))


def are_floats(value: Any) -> bool:
    """Whether the parser takes a value for a list of floats; it looks at the first one only."""
    return isinstance(value, (tuple, list)) and (not value or is_float(value[0]))


def as_floats(where: Where, value: Any) -> tuple[float, ...]:
    """Return a list of real numbers as Python floats, or raise."""
    for position, each in enumerate(value):
        if not is_float(each):
            raise TypeError(
                f"{where[0]}(): argument '{where[1]}' must be tuple of floats, but found element "
                f"of type {type_name(each)} at pos {position + 1}"
            )
    return tuple([as_float(each) for each in value])


def as_float(value: Any) -> float:
    """Return a number as the nearest float: an int beyond 64 bits, too."""
    return float(value) if isinstance(value, int) else float(as_number(value))


def plain_floats(values: Any) -> tuple[float, ...] | None:
    """Return a tuple or list of Python's floats as a tuple; None if it is anything else."""
    if not isinstance(values, (tuple, list)):
        return None
    for value in values:
        if type(value) is not float:
            return None
    return tuple(values)


def are_numbers(value: Any) -> bool:
    """Whether the parser takes a value for a list of numbers; it looks at all of them."""
    if not isinstance(value, (tuple, list)):
        return False
    return all(isinstance(each, NUMBERS) for each in value)


def plain_numbers(values: Any) -> tuple[Any, ...] | None:
    """Return a tuple or list of Python's floats and ints as a tuple; None if it is another."""
    if not isinstance(values, (tuple, list)):
        return None
    for value in values:
        if type(value) is not float and type(value) is not int:
            return None
    return tuple(values)
