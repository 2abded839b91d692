"""Symbolic arrays: shape, strides and dtype without numbers, under tensors that are traced.

A `Traced` array has a shape, a dtype and strides, and shares memory with its views, as any array
does; but what would compute with it is recorded. Its memory is never read or written: it is there
so that views lie where they would lie. Whatever asks for its numbers gets a `TraceError`.

What is recorded, and how, is for the `Recorder` (`numgrad.graph.open_recorder`) to say that is open
on this thread (``modes.trace``). A tensor on a traced array is a `TracedTensor`, so that the fast
paths of hot functions, which look for a plain `Tensor`, leave it to the seam of all operations.
"""

from __future__ import annotations

import ctypes
import operator
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from numgrad.graph.modes.state import modes
from numgrad.graph.tensor import Tensor
from numgrad.graph.upward import upward

if TYPE_CHECKING:
    from numgrad.graph.open_recorder import Recorder

__all__ = [
    "ForeignTensor",
    "Storage",
    "TraceError",
    "Traced",
    "TracedTensor",
    "address_of",
    "at_hand",
    "distance",
    "follow_strides",
    "instead_of",
    "is_traced_array",
    "note_alternative",
    "note_copy",
    "note_given",
    "note_numbers",
    "place_of",
    "refuse_shape_of",
    "reshaped",
]

Array = np.ndarray[Any, Any]

_HAS_RESHAPE_WITHOUT_COPY = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


class TraceError(RuntimeError):
    """Something in a traced function needs numbers that are not there while it is traced.

    The trace that it is raised in hears of it, and ends with it whatever becomes of it on its way:
    behind an ``except`` the function would be compiled with what it does where it fails.
    """

    __module__ = "numgrad"

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        if modes.trace is not None:
            modes.trace.fails(self)


class ForeignTensor(TraceError):
    """A tensor is used in a trace that is traced by another one."""

    __module__ = "numgrad"


ForeignTensor.__name__ = ForeignTensor.__qualname__ = "TraceError"  # what people can name


class Storage:
    """The memory that a traced array and its views share.

    Attributes
    ----------
    whole : numpy.ndarray
        An array over all of the memory, which nobody reads.
    value : Any
        What it holds now, in the recorder's terms, with the shape of `whole`.
    follows : frozenset of int
        The arguments from whose strides it follows how the arrays in this memory lie.
    shared_by : frozenset of int
        Those whose strides had it that another array is a view of this memory, or that it is not:
        a write to either is a write to both, or is not.
    """

    __slots__ = ("follows", "recorder", "shared_by", "value", "whole")

    def __init__(self, recorder: Recorder, whole: Array, value: Any) -> None:
        self.recorder = recorder
        self.whole = whole
        self.value = value
        self.follows: frozenset[int] = frozenset()
        self.shared_by: frozenset[int] = frozenset()

    def follow(self, arguments: frozenset[int], gaps: bool = False) -> None:
        """Say that these arguments' strides decide how it lies.

        With one dim nothing does, unless there may be gaps between the elements.
        """
        if arguments and self.whole.ndim > (not gaps):
            self.follows |= arguments


class Traced:
    """An array that a recorder knows the meaning of; see the module's docstring.

    Attributes
    ----------
    storage : Storage
    place : numpy.ndarray
        An array over the part of the memory that this is, which nobody reads.
    seen : tuple or None
        What the storage held when a recorder last found out what this is of it, and that.
    """

    __slots__ = ("place", "seen", "storage")

    __array_ufunc__ = None  # NumPy's operators refuse it

    def __init__(self, storage: Storage, place: Array) -> None:
        self.storage = storage
        self.place = place
        self.seen: tuple[Any, Any] | None = None

    shape = property(lambda self: self.place.shape)
    dtype = property(lambda self: self.place.dtype)
    ndim = property(lambda self: self.place.ndim)
    size = property(lambda self: self.place.size)
    itemsize = property(lambda self: self.place.itemsize)
    nbytes = property(lambda self: self.place.nbytes)

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides: who asks for them goes by them (`place_of` is for who does not)."""
        self.note_strides()
        return self.place.strides

    @property
    def flags(self) -> Any:
        """The flags, which tell how it lies in memory, too."""
        self.note_strides()
        return self.place.flags

    def note_strides(self) -> None:
        """Say that the traced function goes by how this lies in memory."""
        if self.storage.follows:
            self.storage.recorder.depend_on_strides(self.storage.follows)

    def __len__(self) -> int:
        return len(self.place)

    def at(self, place: Array) -> Traced:
        """Return the view that lies at `place`."""
        return Traced(self.storage, place)

    def view(self, dtype: Any) -> Traced:
        """Return a view of the same memory in another dtype."""
        return self.at(self.place.view(dtype))

    def __getitem__(self, key: Any) -> Traced:
        keys = key if isinstance(key, tuple) else (key,)
        if any(isinstance(k, (list, np.ndarray)) for k in keys):  # of which NumPy makes no view
            self.storage.recorder.refuse("a NumPy array", self)
        # With an ellipsis, all integers give an array of no dims, not a number.
        return self.at(self.place[keys if any(k is ... for k in keys) else (*keys, ...)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.storage.recorder.write(self[key], value)

    def transpose(self, *dims: Any) -> Traced:
        """Return a view with its dims in another order."""
        return self.at(self.place.transpose(*dims))

    def swapaxes(self, first: int, second: int) -> Traced:
        """Return a view with two dims in each other's place."""
        return self.at(self.place.swapaxes(first, second))

    def reshape(self, *shape: Any) -> Traced:
        """Return a view, or where there is none a copy, of another shape."""
        if len(shape) == 1 and isinstance(shape[0], tuple):
            (shape,) = shape
        place = reshaped(self.place, shape)
        if place is not None:
            return self.at(place)
        # Of the lengths -1 is to be found; an array of one element repeated has any shape.
        shape = np.broadcast_to(np.empty((), bool), self.shape).reshape(shape).shape
        return self.storage.recorder.reshape(self, shape)

    def astype(self, dtype: Any, order: str = "K", copy: bool = True) -> Traced:
        """Return a copy of another dtype."""
        dtype = np.dtype(dtype)
        if dtype == self.dtype and not copy:
            return self
        return self.storage.recorder.cast(self, dtype, order)

    def copy(self, order: str = "C") -> Traced:
        """Return a copy: what is written here later does not show in it."""
        return self.storage.recorder.cast(self, self.dtype, order)

    def _numbers(self, what: str) -> Array:
        return self.storage.recorder.numbers(what, self)

    def item(self, *index: Any) -> Any:
        """Return a number if there is one, else raise `TraceError`."""
        return self._numbers("a Python number").item(*index)

    def tolist(self) -> Any:
        """Return the numbers if they are there, else raise `TraceError`."""
        return self._numbers("a list of Python numbers").tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self._numbers("a NumPy array"), dtype)

    def __bool__(self) -> bool:
        return bool(self._numbers("a truth value"))

    def __float__(self) -> float:
        return float(self._numbers("a Python number"))

    def __int__(self) -> int:
        return int(self._numbers("a Python number"))

    def __index__(self) -> int:
        return operator.index(self._numbers("a Python number"))

    def __complex__(self) -> complex:
        return complex(self._numbers("a Python number"))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._numbers("its numbers"))

    def __lt__(self, other: Any) -> Any:
        return self._numbers("its numbers") < other

    def __le__(self, other: Any) -> Any:
        return self._numbers("its numbers") <= other

    def __gt__(self, other: Any) -> Any:
        return self._numbers("its numbers") > other

    def __ge__(self, other: Any) -> Any:
        return self._numbers("its numbers") >= other

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._numbers("its numbers"), name)


def reshaped(array: Array, shape: tuple[int, ...]) -> Array | None:
    """Return a view of an array in another shape, or None if there is none."""
    try:
        if _HAS_RESHAPE_WITHOUT_COPY:
            return array.reshape(shape, copy=False)
        view = array.view()
        view.shape = shape  # which newer NumPys warn of
    except (AttributeError, ValueError):  # NumPy's errors where it would have to copy
        return None
    return view


def is_traced_array(array: Any) -> bool:
    """Whether an array has no numbers."""
    return type(array) is Traced


# What to write instead of what returns as many elements as numbers say.
_INSTEAD = {
    "bincount": "zeros(count).index_add(0, input, weights), where count is a number",
    "one_hot": "one_hot(tensor, num_classes), where num_classes is a number",
    "repeat_interleave": "output_size=, which says how long the result is",
    "unique": "sort(), and compare neighbours, or call it outside and pass in what it returns",
}
_INSTEAD["unique_consecutive"] = _INSTEAD["unique"]


def instead_of(what: str) -> str:
    """Return what to use where the shape of a result may not depend on numbers."""
    return _INSTEAD.get(what, "where(mask, input, 0)")


def refuse_shape_of(what: str, array: Any) -> None:
    """Raise `TraceError` for an operation whose result has a shape that follows from numbers."""
    if type(array) is Traced:
        array.storage.recorder.refuse_shape(what)


def at_hand(array: Any) -> Any:
    """Return an array that an operation keeps as it is, such as an index.

    In a traced function one that was there before is made a traced array, so that it is read in
    every call.
    """
    if modes.trace is not None and type(array) is np.ndarray:
        return modes.trace.captured(array)
    return array


def note_numbers(array: Any) -> None:
    """Say that a traced function goes by the numbers in an array that was there before."""
    if modes.trace is not None and type(array) is np.ndarray:
        modes.trace.bake(array)


def note_copy(array: Any) -> None:
    """Say that a traced function copies the numbers in an array, whoever made that."""
    if modes.trace is not None and type(array) is np.ndarray:
        modes.trace.copies(array)
    note_given(array)


def note_given(value: Any) -> None:
    """Say that a traced function gives an array or a number to an operation, if it is NumPy's."""
    if modes.trace is not None and isinstance(value, (np.ndarray, np.generic)):
        modes.trace.takes(value)


def follow_strides(source: Any, result: Any) -> None:
    """Say that how `result` lies in memory follows from how `source` lies."""
    if type(source) is Traced and type(result) is Traced:
        result.storage.follow(source.storage.follows)


def note_alternative(source: Any, result: Any) -> None:
    """Say that `result` is a view of `source`, or a copy, by how that lies in memory.

    Which of them it is matters to a traced function that writes to one of the two.
    """
    if type(source) is Traced:
        found = source.storage.follows
        for storage in (source.storage, result.storage):
            storage.shared_by |= found
            storage.follows |= found


def place_of(array: Any) -> Array:
    """Return an array of the same shape, strides and address, whose numbers may mean nothing."""
    place: Array = array.place if type(array) is Traced else array
    return place


def address_of(array: Any) -> int:
    """Return where an array lies in memory, or would."""
    return _address(place_of(array))


def distance(first: Array, second: Array) -> int:
    """Return how many bytes the second of two arrays lies behind the first."""
    if not _is_readable:
        return _asked_address(second) - _asked_address(first)
    start, stop = (
        _read_pointer(id(first) + _HEADER).value,
        _read_pointer(id(second) + _HEADER).value,
    )
    return (stop or 0) - (start or 0)


def _asked_address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _read_address(array: Array) -> int:
    return _read_pointer(id(array) + _HEADER).value or 0


# The address is the first field of NumPy's `PyArrayObject`, right behind what every object begins
# with. To read it takes a sixth of the time that asking takes, which counts where every write to
# a view is recorded.
_HEADER = object.__basicsize__
_read_pointer = ctypes.c_void_p.from_address
_probe = np.ones(2)
_is_readable = sys.implementation.name == "cpython" and (
    _read_address(_probe[1:]) == _asked_address(_probe[1:])
)
_address = _read_address if _is_readable else _asked_address


class TracedTensor(Tensor):
    """A tensor without numbers."""

    _traced: Any  # the array
    _has_history: bool = False  # whether it stands for an argument that requires grad

    @property
    def _array(self) -> Any:
        """The array, for as long as a function is traced."""
        if modes.trace is None:
            raise ForeignTensor(
                "a tensor of a function that vmap maps has left it, and is one of a batch that is "
                "over: return it from the function, and use what vmap gives"
                if self._traced.storage.recorder.transforms
                else "a tensor of a traced function has left it, and has no numbers: return it "
                "from the function, and use what the call gives"
            )
        return self._traced

    @_array.setter
    def _array(self, array: Any) -> None:
        self._traced = array

    def __repr__(self) -> str:
        return self._traced.storage.recorder.describe(self)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        if self._traced.ndim or self._traced.storage.recorder.transforms:
            return super().__format__(spec)
        return repr(self)


TracedTensor.__name__ = TracedTensor.__qualname__ = "Tensor"  # as messages call it


def _tensor_class(array: Any) -> type[Tensor]:
    return TracedTensor if type(array) is Traced else Tensor


upward.tensor_class = _tensor_class
