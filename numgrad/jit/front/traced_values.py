"""The values of the arrays of a trace: arguments, constants, and what was there before it."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np

from numgrad.base.halves import HALF
from numgrad.base.tuning import COMPARED_BYTES, REMEMBERED_CALLS
from numgrad.graph.recorder import ForeignTensor, Storage, Traced, TraceError, address_of
from numgrad.graph.tensor import plain
from numgrad.jit.ir.constructors import broadcast, constant
from numgrad.jit.ir.graph import Value
from numgrad.jit.ir.memory_order import memory_of
from numgrad.jit.lowering.storage import read_place, root_of
from numgrad.runtime.frames import user_frame, where_user_is

__all__ = ["TracedValues"]

Array = np.ndarray[Any, Any]

_NO_HALVES = (
    "torch.float16 is not computed with in a compiled function: pass what is float16 in as "
    "x.float(), and round the result with .half() behind the call"
)


class TracedValues:
    """Knows the value of each array of a trace, and what the trace has from outside."""

    def __init__(self) -> None:
        self.inputs: list[Value] = []
        self._arguments: list[Storage] = []
        self._captured: dict[int, tuple[Array, Value]] = {}
        self._views: dict[Any, Value] = {}
        self._made: dict[Any, Value] = {}  # few numbers that the function made
        # What `bake` noted, and what it held then; by id.
        self.baked: dict[int, tuple[Array, Array]] = {}
        # Arrays that were copied; by the id of the array whose memory it is.
        self.copied: dict[int, Array] = {}
        # What the body of a loop made, while one is recorded.
        self._own: list[set[Storage]] = []
        # Where the user's lines are that record.
        self.files: set[str] = set()
        # Arrays and numbers of NumPy's that met tensors, by their id or that of their memory.
        self.given: dict[int, Any] = {}

    def argument(self, given: Array, number: int) -> Traced:
        """Return the array of the next argument, which lies as the given one, by some number."""
        value = Value("input", (), given.shape, given.dtype, position=len(self.inputs))
        self.inputs.append(value)
        array = self._array(value, given)
        array.storage.follows = frozenset((number,)) if given.ndim else frozenset()
        self._arguments.append(array.storage)
        return array

    def forget(self) -> None:
        """Let go of arrays, which know who recorded them, and of their views: the trace is over."""
        self._arguments.clear()
        self._views.clear()

    def value_of(self, array: Any) -> Value:
        """Return the value that an array has now."""
        if type(array) is not Traced:
            return self._capture(np.asarray(plain(array)))
        this: object = self
        storage, place = array.storage, array.place
        if storage.recorder is not this:
            raise ForeignTensor(
                f"{where_user_is()}a tensor of another traced call is used here: it has left the "
                "function that made it. Return it from there, and pass it in"
            )
        whole = storage.whole
        value: Value = storage.value
        if place is whole:
            return value
        seen = array.seen
        if seen is not None and seen[0] is value:
            of_it: Value = seen[1]
            return of_it
        offset = address_of(place) - address_of(whole)
        key = (value, place.shape, place.strides, offset, place.dtype)
        found = self._views.get(key)
        if found is None:
            found = self._views[key] = read_place(value, whole, place)
        array.seen = value, found
        return found

    def constant(self, array: Any) -> Any:
        """Take an array that was made in the traced function as a constant."""
        if type(array) is Traced:
            return array
        if array.size and _is_uniform(array):
            number = constant(array.flat[0].item(), array.dtype)
            return self._array(broadcast(number, array.shape), array)
        return self._array(self._made_before(array), array)

    def _made_before(self, array: Array) -> Value:
        """Return the value of an array that was made: turns of a loop make the same again."""
        if array.nbytes > COMPARED_BYTES:
            return Value("array", (), array.shape, array.dtype, array=array, made=True)
        key = array.shape, array.dtype, array.tobytes()
        value = self._made.get(key)
        if value is None:
            value = Value("array", (), array.shape, array.dtype, array=array, made=True)
            self._made[key] = value
        return value

    def known(self, array: Traced) -> Array | None:
        """Return the numbers of an array that is a constant of the trace, None for any other."""
        value = self.value_of(array)
        if value.operation == "array":
            numbers: Array = value.attributes["array"]
            return None if id(numbers) in self._captured else numbers
        if value.operation == "view" and value.operands[0].operation == "constant":
            number = value.operands[0].attributes["value"]
            return np.full(value.shape, number, value.dtype)
        return None

    def captured(self, array: Array) -> Traced:
        """Return a traced array for one that was there before the trace: read in every call."""
        return self._array(self._capture(array))

    def bake(self, array: Array) -> None:
        """Note that the trace depends on the numbers in an array that was there before it."""
        if id(array) not in self.baked:
            self.baked[id(array)] = (array, array.copy())

    def copies(self, array: Array) -> None:
        """Note that the function copies an array, which may have been there before it."""
        root = root_of(array)
        self.copied[id(root)] = root

    def takes(self, value: Any) -> None:
        """Note an array or a number of NumPy's that the function gives to an operation."""
        known = root_of(value) if isinstance(value, np.ndarray) else value
        self.given[id(known)] = known

    def _known(self, parameter: Any) -> Any:
        """Return a parameter with values in the place of traced arrays."""
        if isinstance(parameter, np.generic):
            self.takes(parameter)
        if type(parameter) is Traced:
            return self.value_of(parameter)
        if type(parameter) in (tuple, list):
            return type(parameter)([self._known(item) for item in parameter])
        return parameter

    def _fail(self, text: str) -> NoReturn:
        raise TraceError(where_user_is() + text)

    def origin(self, name: str) -> str:
        """Return where in the user's code an operation is applied."""
        frame = user_frame()
        if frame is None:
            return name
        file = frame.f_code.co_filename
        self.files.add(file)
        return _named(name, file, frame.f_lineno)

    def here(self) -> str:
        """Return the line of the user's that runs, as operations name it."""
        return self.origin("").removeprefix(" at ")

    def _array(
        self,
        value: Value,
        like: Array | None = None,
        follows: frozenset[int] = frozenset(),
        gaps: bool = False,
    ) -> Traced:
        """Return a new array of that value.

        It lies as an array of its shape and dtype does that is `like` it, by default in C order,
        and that `follows` from the strides of some arguments, and so may its `gaps`.
        """
        if value.dtype == HALF:
            self._fail(_NO_HALVES)
        whole = place = np.empty(value.shape, value.dtype) if like is None else like
        if like is not None:
            whole, place, value = memory_of(like, value)
        recorder: Any = self
        storage = Storage(recorder, whole, value)
        storage.follow(follows, gaps)
        if self._own:
            self._own[-1].add(storage)
        return Traced(storage, place)

    def _capture(self, array: Array) -> Value:
        """Return the value of an array that the function did not make; it is read at every call."""
        if array.dtype == HALF:
            self._fail(_NO_HALVES)
        root = root_of(array)
        known = self._captured.get(id(root))
        if known is None:
            value = Value("array", (), root.shape, root.dtype, array=root, made=False)
            known = self._captured[id(root)] = (root, value)
        return known[1] if root is array else read_place(known[1], root, array)


@lru_cache(REMEMBERED_CALLS)
def _named(name: str, file: str, line: int) -> str:
    return f"{name} at {os.path.basename(file)}:{line}"


def _is_uniform(array: Array) -> bool:
    """Whether all elements have the same bits."""
    first = array[(0,) * array.ndim]
    if array.size == 1:
        return True
    flat = np.ascontiguousarray(array).reshape(-1)
    return bool(
        (flat.view(np.uint8).reshape(flat.size, -1) == first.reshape(1).view(np.uint8)).all()
    )
