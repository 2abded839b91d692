"""The kinds of arguments: what PyTorch's parser takes for each, and what it calls them.

`KINDS` is the table that signatures (`numgrad.ops.signatures.signature`) are written in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from numgrad.base import dtypes
from numgrad.base.device import device
from numgrad.base.layouts import memory_format as MemoryFormat
from numgrad.base.layouts import strided
from numgrad.codegen.expression import Symbol
from numgrad.graph.tensor import Tensor
from numgrad.ops.calls.keys import in_int64
from numgrad.ops.core.type_names import OWNERS, type_name
from numgrad.ops.signatures.devices import check_device
from numgrad.ops.signatures.numbers import (
    BEYOND_INT64,
    NUMBERS,
    NUMPY_NUMBERS,
    PLAIN_NUMBERS,
    Where,
    are_floats,
    are_numbers,
    as_float,
    as_floats,
    as_integer,
    as_number,
    is_float,
    is_integer,
    is_number,
    plain_floats,
    plain_numbers,
)
from numgrad.ops.signatures.signature import ABSENT

__all__ = [
    "KINDS",
    "NAMES",
    "OWNERS",
    "Kind",
    "as_given",
    "as_size",
    "check_storage",
    "is_index",
    "plain_ints",
    "plain_size",
    "plain_tensors",
    "type_name",
]


OPERANDS = (Tensor, *NUMBERS)


# --- lists of ints -------------------------------------------------------------------------------


def is_index(value: Any) -> bool:
    """Whether `value` can be the first of a list of ints, or stand for a list of one.

    Tensors with one element can, of bools, too.
    """
    if isinstance(value, Tensor):
        return value._array.size == 1 and value._array.dtype.kind in "biu"
    if isinstance(value, np.ndarray):
        return not value.ndim and value.dtype.kind in "iu"
    return hasattr(type(value), "__index__") and not isinstance(value, (bool, np.bool_))


def _is_length(value: Any) -> bool:
    """Whether `value` can be a later length, where a bool will do, too."""
    return isinstance(value, bool) or is_index(value)


def _are_ints(value: Any) -> bool:
    """Whether the parser takes a value for a list of ints; it looks at the first one only."""
    return isinstance(value, (tuple, list)) and (not value or is_index(value[0]))


def _are_lengths(value: Any) -> bool:
    """Whether a value is taken for the lengths of a new tensor, as which no bool comes first."""
    return _are_ints(value) and not (
        value and isinstance(value[0], Tensor) and value[0]._array.dtype.kind == "b"
    )


# Functions that are Python in PyTorch, or find out there what they are given, and hand a parameter
# on in a list: to which function, and what it calls that.
_HANDED_ON = {
    ("norm", "dim"): ("linalg_vector_norm", "dim"),
    ("normalize", "dim"): ("linalg_vector_norm", "dim"),
    ("split", "split_size"): ("split_with_sizes", "split_sizes"),
    ("split", "split_size_or_sections"): ("split_with_sizes", "split_sizes"),
}


def _as_ints(where: Where, value: Any) -> tuple[int, ...]:
    function, name = _HANDED_ON.get(where, where)
    if not isinstance(value, (tuple, list)):
        if function == where[0]:
            return (as_integer(value),)
        value = [value]
    for position, each in enumerate(value):
        error = "" if _is_length(each) else f"type must be tuple of ints,but got {type_name(each)}"
        if not error and not isinstance(each, Tensor) and not dtypes.is_int64(int(each)):
            error = BEYOND_INT64
        if error:
            raise TypeError(
                f"{function}(): argument '{name}'"
                f' failed to unpack the object at pos {position + 1} with error "{error}"'
            )
    return tuple([as_integer(each) for each in value])


def _as_int(where: Where, value: Any) -> int:
    if where[1] == "dim" and where in _HANDED_ON:
        return _as_ints(where, value)[0]
    return as_integer(value)


def plain_ints(values: Any) -> tuple[int, ...] | None:
    """Return a tuple or list of Python's ints as a tuple; None if it is anything else."""
    if not isinstance(values, (tuple, list)):
        return None
    for value in values:
        if type(value) is not int or not dtypes.is_int64(value):
            return None
    return values if type(values) is tuple else tuple(values)


_BEYOND_SIZES = 2**59  # elements of 16 bytes, of which no memory has so many


def plain_size(values: Any) -> tuple[int, ...] | None:
    """Return a tuple or list of lengths as a tuple; None if it is anything else."""
    if not isinstance(values, (tuple, list)):
        return None
    count = 1
    for value in values:
        if type(value) is not int or value < 0:
            return None
        count *= value or 1  # where there is none, NumPy wants room for the other lengths
    return tuple(values) if count < _BEYOND_SIZES else None


def as_size(where: Where, value: Any, complaint: str | None = None) -> tuple[int, ...]:
    """Return the lengths of a new tensor.

    Raises
    ------
    RuntimeError
        If one is negative (`complaint` says it another way), or there would be more elements than
        can be addressed.
    """
    size = _as_ints(where, value)
    negative = next((length for length in size if length < 0), None)
    if negative is not None:
        raise RuntimeError(
            complaint or f"Trying to create tensor with negative dimension {negative}: {list(size)}"
        )
    check_storage(size)
    return size


def check_storage(size: Sequence[int]) -> None:
    """Raise if no memory could hold an array of these lengths.

    Raises
    ------
    RuntimeError
    """
    if math.prod([length or 1 for length in size]) >= _BEYOND_SIZES:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)}")


# --- tensors -------------------------------------------------------------------------------------


def plain_tensors(values: Any) -> tuple[Tensor, ...] | None:
    """Return a tuple or list of tensors as a tuple; None if it is anything else."""
    if not isinstance(values, (tuple, list)):
        return None
    for value in values:
        if not isinstance(value, Tensor):
            return None
    return values if type(values) is tuple else tuple(values)


def _as_tensors(where: Where, value: Any) -> tuple[Tensor, ...]:
    for position, each in enumerate(value):
        if not isinstance(each, Tensor):
            raise TypeError(
                f"expected Tensor as element {position} in argument 0, but got {type_name(each)}"
            )
    return tuple(value)


# --- options -------------------------------------------------------------------------------------


def _unpinned(where: Where, value: Any) -> bool:
    if value:
        raise RuntimeError(
            "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory "
            "allocator is available on this system."
        )
    return False


def _is_device(value: Any) -> bool:
    if is_integer(value):
        return not isinstance(value, Tensor)
    return isinstance(value if isinstance(value, str) else getattr(value, "type", None), str)


def _is_dtype(value: Any) -> bool:
    """Whether `value` is a dtype, or one of Python's types that stand for one."""
    return isinstance(value, dtypes.dtype) or any(
        value is kind for kind in (bool, int, float, complex)
    )


# --- the table -----------------------------------------------------------------------------------


def as_given(where: Where, value: Any) -> Any:
    """Return an accepted value as it is."""
    return value


class Kind(NamedTuple):
    """One kind of argument.

    Attributes
    ----------
    words : str
        What PyTorch's messages call it.
    annotation : str
        Its type, for whoever reads the signature and for type checkers.
    text : str
        What docstrings call it.
    odd : str
        A condition, in Python, that holds for whatever isn't plainly of this kind.
    accepts : function
        Whether PyTorch's parser takes a value for it.
    read : function
        What the rule is given, of the function's and the parameter's name and an accepted value.
    plain : str
        What gives the argument in the plain case, None where it isn't; `odd` then isn't asked.
    """

    words: str
    annotation: str
    text: str
    odd: str
    accepts: Callable[[Any], bool]
    read: Callable[[Where, Any], Any] = as_given
    plain: str = ""


def _checked_device(where: Where, value: Any) -> Any:
    check_device(value)
    return value


KINDS = {
    "Tensor": Kind(
        "Tensor",
        "Tensor",
        "tensor",
        "not isinstance({0}, Tensor)",
        lambda value: isinstance(value, (Tensor, Symbol)),
    ),
    # What PyTorch takes for a tensor in arithmetic.
    "operand": Kind(
        "Tensor",
        "Tensor | Number",
        "tensor or number",
        "not isinstance({0}, OPERANDS)",
        lambda value: isinstance(value, (*OPERANDS, Symbol)),
    ),
    # Rules choose by what is True or False for all elements, too.
    "mask": Kind(
        "Tensor",
        "Tensor",
        "bool tensor",
        "not isinstance({0}, Tensor)",
        lambda value: isinstance(value, (Tensor, Symbol, bool, np.bool_)),
    ),
    "Tensor[]": Kind(
        "tuple of Tensors",
        "Sequence[Tensor]",
        "sequence of tensors",
        "",
        lambda value: isinstance(value, (tuple, list)),
        _as_tensors,
        "plain_tensors",
    ),
    "index[]": Kind(
        "tuple of Tensors",
        "Sequence[Tensor | None]",
        "sequence of tensors or None",
        "type({0}) is not tuple",
        lambda value: isinstance(value, (tuple, list)),
        lambda where, value: tuple(value),
    ),
    "int": Kind(
        "int",
        "int",
        "int",
        f"type({{0}}) is not int or not {in_int64('{0}')}",
        is_integer,
        _as_int,
    ),
    "int[]": Kind(
        "tuple of ints", "Sequence[int]", "sequence of ints", "", _are_ints, _as_ints, "plain_ints"
    ),
    "size": Kind(
        "tuple of ints",
        "Sequence[int]",
        "sequence of ints",
        "",
        _are_lengths,
        as_size,
        "plain_size",
    ),
    "bool": Kind(
        "bool",
        "bool",
        "bool",
        "{0} is not False and {0} is not True",
        lambda value: isinstance(value, bool),
    ),
    # Whether memory is pinned, which there is no other device for.
    "pinning": Kind(
        "bool",
        "bool",
        "bool",
        "{0} is not False",
        lambda value: isinstance(value, bool),
        _unpinned,
    ),
    "float": Kind(
        "float",
        "float",
        "float",
        f"type({{0}}) is not float and (type({{0}}) is not int or not {in_int64('{0}')})",
        is_float,
        lambda where, value: as_float(value),
    ),
    "float[]": Kind(
        "tuple of floats",
        "Sequence[float]",
        "sequence of floats",
        "",
        are_floats,
        as_floats,
        "plain_floats",
    ),
    "number[]": Kind(
        "tuple of Scalars",
        "Sequence[float]",
        "sequence of numbers",
        "",
        are_numbers,
        lambda where, value: tuple([as_number(each) for each in value]),
        "plain_numbers",
    ),
    "number": Kind(
        "Number",
        "Number | Tensor",
        "number",
        f"type({{0}}) not in PLAIN_NUMBERS and (type({{0}}) is not int or not {in_int64('{0}')})",
        is_number,
        lambda where, value: as_number(value),
    ),
    "str": Kind("str", "str", "str", "type({0}) is not str", lambda value: isinstance(value, str)),
    "dtype": Kind(
        "torch.dtype",
        "dtype",
        "dtype",
        "type({0}) is not dtype_class",
        _is_dtype,
        lambda where, value: dtypes.to_dtype(value),
    ),
    "layout": Kind(
        "torch.layout",
        "layout",
        "layout",
        "{0} is not strided",
        lambda value: value is strided,
    ),
    "device": Kind(
        "torch.device",
        "device | str",
        "device",
        "type({0}) is not device_class and (type({0}) is not str or {0} != 'cpu')",
        _is_device,
        _checked_device,
    ),
    "memory_format": Kind(
        "torch.memory_format",
        "memory_format",
        "memory format",
        "type({0}) is not MemoryFormat",
        lambda value: type(value) is MemoryFormat,
    ),
    "object": Kind("object", "Any", "object", "", lambda value: True),
}


def by_word(function: str, word: str, value: Any, default: Any, others: dict[str, Any]) -> Any:
    """Return what is given for a word that names nothing in Python, and so is among others."""
    for each in others:
        if each != word:
            raise TypeError(f"{function}() got an unexpected keyword argument '{each}'")
    if type(value) is not type(default) or value != default:
        raise TypeError(f"{function}() got multiple values for argument '{word}'")
    return others[word]


# What the sources of declared functions name.
NAMES = {
    "ABSENT": ABSENT,
    "MemoryFormat": MemoryFormat,
    "NUMPY_NUMBERS": NUMPY_NUMBERS,
    "OPERANDS": OPERANDS,
    "PLAIN_NUMBERS": PLAIN_NUMBERS,
    "as_number": as_number,
    "Tensor": Tensor,
    "by_word": by_word,
    "device_class": device,
    "dtype_class": dtypes.dtype,
    "plain_floats": plain_floats,
    "plain_ints": plain_ints,
    "plain_numbers": plain_numbers,
    "plain_size": plain_size,
    "plain_tensors": plain_tensors,
    "strided": strided,
}
