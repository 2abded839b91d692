"""Arrays from numbers and nested sequences: shape, dtype and elements, as PyTorch reads them.

Arrays of other libraries are no sequences: they are asked for their memory (`array_of`).
"""

from __future__ import annotations

import array as packed
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from numgrad.base import dtypes
from numgrad.base.halves import narrowed
from numgrad.graph.modes.state import modes
from numgrad.graph.recorder import note_copy
from numgrad.graph.tensor import Tensor, plain
from numgrad.ops.arguments.conversion import to_complex, to_index
from numgrad.ops.arguments.factories import Array, checked_number
from numgrad.ops.signatures.kinds import type_name
from numgrad.ops.signatures.numbers import BEYOND_INT64

__all__ = ["PYTHONS_OWN", "array_of", "build_array", "check_array", "is_foreign", "is_sequence"]

_ndarray = np.ndarray
_MAX_DIMENSIONS = 64  # of a NumPy array


def check_array(array: Array) -> Array:
    """Return `array`, of NumPy's own class, or raise unless a tensor can hold its elements.

    Raises
    ------
    TypeError
        For a dtype that tensors don't have, and for masked elements.
    ValueError
        For elements in the other byte order.
    """
    if type(array) is not _ndarray:
        array = plain(array)
    if not array.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion "
            "between byte orders is currently not supported."
        )
    try:
        dtypes.of_numpy(array.dtype)
    except TypeError:
        supported = "float64, float32, float16, complex64, complex128, int64, int32, int16, int8, "
        raise TypeError(
            f"can't convert np.ndarray of type numpy.{array.dtype.type.__name__}. The only "
            f"supported types are: {supported}uint64, uint32, uint16, uint8, and bool."
        ) from None
    return array


def is_foreign(kind: type) -> bool:
    """Whether instances of a class are arrays of another library: those say so by a protocol."""
    if kind in _NOT_FOREIGN:  # most data is, and looking for what it lacks takes long
        return False
    return not issubclass(kind, (np.ndarray, np.generic, Tensor)) and any(
        hasattr(kind, name) for name in _PROTOCOLS
    )


PYTHONS_OWN = frozenset((list, tuple, bool, int, float, complex))
_NOT_FOREIGN = PYTHONS_OWN | {np.ndarray, Tensor, np.bool_, np.int64, np.float32, np.float64}
_PROTOCOLS = ("__array__", "__array_interface__", "__dlpack__")


def array_of(data: Any, copy: bool | None = None) -> Array:
    """Return another library's array as one of NumPy, over the same memory where it lets us.

    Parameters
    ----------
    copy : bool, optional
        False where there must not be a copy.

    Raises
    ------
    TypeError
        For a dtype that tensors don't have.
    ValueError
        If the memory can't be shared but has to be.
    """
    kind = type(data)
    exports = hasattr(kind, "__dlpack__") and hasattr(kind, "__dlpack_device__")
    if exports and (copy is False or not hasattr(kind, "__array__")):
        return check_array(np.from_dlpack(data))
    if copy is False and np.lib.NumpyVersion(np.__version__) >= "2.0.0":
        return check_array(np.asarray(data, copy=False))
    return check_array(np.asarray(data))


def _read_arrays(data: Any, depth: int = 0) -> Any:
    """Return nested sequences with arrays of NumPy for those of other libraries in them."""
    kind = type(data)
    if kind is list or kind is tuple:
        if depth == _MAX_DIMENSIONS:  # or a list that is in itself
            raise ValueError(f"too many dimensions '{kind.__name__}'")
        kinds = set(map(type, data))
        if kinds <= _PYTHON_NUMBERS:
            return data
        if not kinds.isdisjoint(_LISTS) or any(map(is_foreign, kinds)):
            return [_read_arrays(element, depth + 1) for element in data]
    elif is_foreign(kind):
        array = array_of(data)
        return array if array.ndim else array[()]
    return data


def _note_copies(data: Any) -> None:
    """Let a traced function depend on the arrays in nested sequences."""
    if type(data) is list or type(data) is tuple:
        for element in data:
            _note_copies(element)
    note_copy(data)


def _infer(data: Any) -> dtypes.dtype:
    """Return the dtype of data: the promotion of the dtypes of all elements."""
    kind = type(data)
    if kind is list or kind is tuple:
        kinds = set(map(type, data))
        if kinds and kinds <= _PYTHON_NUMBERS:  # the one of the highest category decides
            return dtypes.scalar_dtype(max(kinds, key=_CATEGORY_OF.__getitem__)())
    if isinstance(data, np.generic) and not isinstance(data, (str, bytes)):
        return dtypes.of_numpy(check_array(np.asarray(data)).dtype)
    if isinstance(data, (bool, int, float, complex)):
        return dtypes.scalar_dtype(data)
    if isinstance(data, Tensor):
        return data.dtype
    if isinstance(data, np.ndarray):
        return dtypes.of_numpy(check_array(data).dtype)
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if not is_sequence(data):
        raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
    found: dtypes.dtype | None = None
    for element in data:
        dtype = _infer(element)
        found = dtype if found is None else dtypes.promote_types(found, dtype)
    return dtypes.default_dtype() if found is None else found


def is_sequence(data: Any) -> bool:
    """Whether PyTorch looks into `data`: not into tensors, sets and dictionaries."""
    if type(data) is list:
        return True
    if isinstance(data, (Tensor, dict)):
        return False
    if isinstance(data, np.generic):
        return isinstance(data, (str, bytes))
    return hasattr(type(data), "__getitem__") and hasattr(type(data), "__len__")


def _measure(data: Any) -> tuple[int, ...]:
    """Return the shape that the first elements of nested sequences have."""
    shape: list[int] = []
    while is_sequence(data):
        shape.append(len(data))
        if len(shape) > _MAX_DIMENSIONS:  # or a string, whose first element is a string again
            raise ValueError(f"too many dimensions '{type(data).__name__}'")
        if not shape[-1]:
            break
        data = plain(data[0])
    return tuple(shape)


class _Numbers(NamedTuple):
    """What nested lists hold that are nothing but lists of Python's numbers."""

    shape: tuple[int, ...]
    elements: Sequence[Any]
    highest: type  # of the types of the numbers, the one that decides on the dtype


def _numbers_in(data: Any) -> _Numbers | None:
    """Return the numbers in nested lists; None if there is anything else, or the lengths differ.

    Most data is of this kind, and it is taken apart level by level, not element by element.
    """
    depth, first = 0, data
    while type(first) in _LISTS:
        if not first or depth == _MAX_DIMENSIONS:
            return None
        depth, first = depth + 1, first[0]
    if type(first) not in _PYTHON_NUMBERS:
        return None
    shape: tuple[int, ...] = ()
    elements = [data]
    for _ in range(depth):
        if not _LISTS.issuperset(map(type, elements)):
            return None
        lengths = set(map(len, elements))
        if len(lengths) > 1:
            return None
        shape += tuple(lengths)
        elements = elements[0] if len(elements) == 1 else list(chain.from_iterable(elements))
    kinds = set(map(type, elements))
    if not kinds <= _PYTHON_NUMBERS:
        return None
    highest = kinds.pop() if len(kinds) == 1 else max(kinds, key=_CATEGORY_OF.__getitem__)
    return _Numbers(shape, elements, highest)


def _flatten(data: Any, shape: tuple[int, ...]) -> list[Any]:
    """Return the elements of nested sequences in order, or raise if they are ragged."""
    level = [data]
    for dimension, length in enumerate(shape):
        below: list[Any] = []
        for sequence in level:
            if not (is_sequence(sequence) or isinstance(sequence, Tensor)):
                raise TypeError("not a sequence")
            elements = _elements(sequence)
            if len(elements) != length:
                raise ValueError(
                    f"expected sequence of length {length} at dim {dimension} (got {len(elements)})"
                )
            below.extend(elements)
        level = below
    return level


def _elements(sequence: Any) -> Any:
    """Return the parts of a sequence; those of a tensor or array are arrays and NumPy scalars."""
    if isinstance(sequence, Tensor):
        if not sequence._array.ndim:
            raise TypeError("not a sequence")
        return list(sequence._array)
    return plain(sequence)


def _store(elements: Sequence[Any], dtype: dtypes.dtype) -> Array:
    """Return elements as an array of one dimension."""
    if dtype.category == dtypes.FLOATING:
        # Python's own packing takes what has __float__, and raises where PyTorch does.
        if dtype is dtypes.float16:
            return narrowed(_store(elements, dtypes.float32))
        return np.frombuffer(packed.array(dtype.numpy.char, elements), dtype.numpy)
    if dtype.category == dtypes.INTEGER:
        return _store_integers(elements, dtype)
    if dtype.category == dtypes.BOOL:
        return np.array([_truth(element) for element in elements], bool)
    with np.errstate(over="ignore"):
        return np.array([_complex(e) for e in elements], np.complex128).astype(dtype.numpy)


def _store_integers(elements: Sequence[Any], dtype: dtypes.dtype) -> Array:
    if set(map(type, elements)) <= {int, bool} and dtype is not dtypes.uint64:
        try:
            numbers = np.frombuffer(packed.array("q", elements), np.int64)
        except OverflowError:
            raise ValueError(BEYOND_INT64) from None
        if dtype is dtypes.int64:
            return numbers
        limits = np.iinfo(dtype.numpy)
        low = limits.min if dtype.is_signed else -int(limits.max)
        if numbers.min() >= low and numbers.max() <= limits.max:
            return numbers.astype(dtype.numpy)
    numbers = np.empty(len(elements), dtype.numpy)
    for position, element in enumerate(elements):
        numbers[position] = _integer(element, dtype)
    return numbers


def _integer(element: Any, dtype: dtypes.dtype) -> Any:
    if isinstance(element, Tensor):
        element = to_index(element)
    elif isinstance(element, np.ndarray) and dtype is dtypes.uint64:
        raise TypeError("an integer is required")
    if not isinstance(element, (float, np.floating)):
        element = _index(element)
        if dtype is dtypes.uint64:
            if element < 0:
                raise OverflowError("can't convert negative int to unsigned")
            if element >= 2**64:
                raise OverflowError("int too big to convert")
        elif not dtypes.is_int64(element):
            raise ValueError(BEYOND_INT64)
    else:
        element = float(element)
    return checked_number(element, dtype, dtype.name)


def _index(element: Any) -> int:
    """Return an element as an int, or raise Python's words for what has no ``__index__``."""
    if isinstance(element, (bool, np.bool_)) or not hasattr(type(element), "__index__"):
        if isinstance(element, (bool, np.bool_)):
            return int(element)
        raise TypeError(f"'{type(element).__name__}' object cannot be interpreted as an integer")
    return int(element.__index__())


def _truth(element: Any) -> bool:
    if isinstance(element, Tensor):
        return bool(element._array.any())
    if isinstance(element, np.ndarray):
        return bool(_index(element))
    if is_sequence(element):
        raise TypeError(f"'{type_name(element)}' object cannot be interpreted as an integer")
    return bool(element)


def _complex(element: Any) -> complex:
    if isinstance(element, Tensor):
        return to_complex(element)
    if isinstance(element, (int, float, complex, np.number, np.bool_, np.ndarray)):
        return complex(element)
    return complex(packed.array("d", [element])[0])


_CATEGORY_OF = {bool: 0, int: 1, float: 2, complex: 3}
_PYTHON_NUMBERS = frozenset(_CATEGORY_OF)
_LISTS = frozenset((list, tuple))


def build_array(data: Any, dtype: dtypes.dtype | None) -> Array:
    """Return numbers or nested sequences as a new array."""
    numbers = _numbers_in(data)
    if numbers is not None:
        shape, elements, highest = numbers
        array = _store(elements, dtypes.scalar_dtype(highest()) if dtype is None else dtype)
        return array if len(shape) == 1 else array.reshape(shape)
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type_name(data)}'")
    data = _read_arrays(plain(data))
    if modes.trace is not None:
        _note_copies(data)
    shape = _measure(data)
    chosen = dtype
    if chosen is None:
        chosen = _infer(data)
    if 0 in shape:
        return np.empty(shape, chosen.numpy)
    # A sequence of arrays (not of lists) is stacked instead of being taken apart.
    if isinstance(data, (list, tuple)) and all(
        isinstance(part, np.ndarray) and part.shape == shape[1:] for part in data
    ):
        return np.stack([plain(part).astype(chosen.numpy) for part in data])
    return _store(_flatten(data, shape), chosen).reshape(shape)
