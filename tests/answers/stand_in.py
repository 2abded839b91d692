"""Objects that stand in for PyTorch's, with PyTorch behind them or with a record of its answers.

A test does something with PyTorch (asks for an attribute, calls, indexes, compares) and is answered
with plain data, with an object that it does more with, or with an exception. A `Recorder` does it
and writes each answer down, in order; a `Player` reads the answers back. Both hand out `StandIn`
objects, so that a test can't tell them apart, and what it then compares is compared by the same
lines in both cases.

Functions that a test passes to PyTorch (to differentiate, as hooks) are called while PyTorch works:
the record says when, and with what.
"""

from __future__ import annotations

import builtins
import contextlib
import copy
import functools
import operator
import types
import warnings
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

__all__ = ["OutOfStep", "Player", "Recorder", "StandIn", "Unrecordable"]

Entry = list[Any]
RECORD_ANEW = "Where PyTorch is installed, `python -m tests.answers` records the answers anew."


class OutOfStep(AssertionError):
    """A test asked PyTorch something else than when its answers were recorded."""


class Unrecordable(Exception):
    """Something that a record can't hold."""


class StandIn:
    """An object of PyTorch's: whatever is done with it, its session answers."""

    __slots__ = ("_cached", "_handle", "_session")
    __array_priority__ = 1000  # as PyTorch's: an operator with an array on the left is the tensor's

    def __init__(self, session: Session, handle: int) -> None:
        object.__setattr__(self, "_session", session)
        object.__setattr__(self, "_handle", handle)
        object.__setattr__(self, "_cached", {})

    def __getattr__(self, name: str) -> Any:
        if name in self._cached:
            return self._cached[name]
        answer = self._session.ask("getattr", getattr, self, name)
        if self._session.is_static(self):  # a module's or a class's names stay what they are
            self._cached[name] = answer
        return answer

    def __setattr__(self, name: str, value: Any) -> None:
        self._session.ask("setattr", setattr, self, name, value)

    def __delattr__(self, name: str) -> None:
        self._session.ask("delattr", delattr, self, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._session.ask("call", _call, self, *args, **kwargs)

    def __hash__(self) -> int:
        return self._handle

    def __instancecheck__(self, instance: Any) -> bool:
        if not isinstance(instance, StandIn):
            return False
        answer: bool = self._session.ask("isinstance", isinstance, instance, self)
        return answer

    def __subclasscheck__(self, subclass: Any) -> bool:
        answer: bool = self._session.ask("issubclass", issubclass, subclass, self)
        return answer

    def __iter__(self) -> Iterator[Any]:
        return iter(self._session.ask("list", list, self))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array: np.ndarray = self._session.ask("asarray", np.asarray, self)
        return array if dtype is None else array.astype(dtype)

    def __copy__(self) -> Any:
        return self._session.ask("copy", copy.copy, self)

    def __deepcopy__(self, memo: Any) -> Any:
        return self._session.ask("deepcopy", copy.deepcopy, self)

    def __reduce__(self) -> Any:
        raise TypeError("an object that stands in for PyTorch's can't be pickled")


def _call(function: Any, *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


def _leave(manager: Any, *error: Any) -> Any:
    return type(manager).__exit__(manager, *error)


def _words(text: str) -> list[str]:
    return text.split()


# What a special method of a `StandIn` is, as a function of PyTorch's objects.
_SPECIAL: dict[str, Callable[..., Any]] = {
    "bool": bool,
    "int": int,
    "float": float,
    "complex": complex,
    "len": len,
    "dir": dir,
    "next": next,
    "str": str,
    "repr": repr,
    "format": format,
    "round": round,
    "abs": abs,
    "enter": lambda manager: type(manager).__enter__(manager),
    "exit": _leave,
    "divmod": divmod,
    "rdivmod": lambda right, left: divmod(left, right),
}
for _name in _words("eq ne lt le gt ge neg pos invert index getitem setitem delitem contains"):
    _SPECIAL[_name] = getattr(operator, _name)
for _name in _words("add sub mul truediv floordiv mod pow matmul and or xor lshift rshift"):
    _function = getattr(operator, f"__{_name}__")
    _SPECIAL[_name] = _function
    _SPECIAL[f"r{_name}"] = lambda right, left, function=_function: function(left, right)
    _SPECIAL[f"i{_name}"] = getattr(operator, f"__i{_name}__")


def _forwarded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a special method that the session answers."""

    def method(self: StandIn, *args: Any) -> Any:
        return self._session.ask(name, function, self, *args)

    return method


for _name, _function in _SPECIAL.items():
    setattr(StandIn, f"__{_name}__", _forwarded(_name, _function))


class Address(int):
    """Where a tensor's memory starts: another number in every run, so only relations are kept."""

    def __add__(self, other: int) -> Address:
        return Address(int(self) + other)

    __radd__ = __add__

    def __sub__(self, other: int) -> int:
        distance = int(self) - int(other)
        return distance if isinstance(other, Address) else Address(distance)


class Size(tuple[int, ...]):
    """``torch.Size``, as far as tests look at it."""

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    def numel(self) -> int:
        """Return the number of elements of a tensor of this shape."""
        return int(np.prod(self, dtype=int))


@functools.cache
def _named_tuple(name: str, fields: tuple[str, ...]) -> type[tuple[Any, ...]]:
    """Return a class of tuples whose elements have names too, as PyTorch's ``return_types``."""
    members: dict[str, Any] = {
        field: property(lambda self, at=at: self[at]) for at, field in enumerate(fields)
    }

    def show(self: Any) -> str:
        pairs = [f"{field}={value!r}" for field, value in zip(fields, self, strict=True)]
        if name[0].isupper():  # a class of Python's own named tuples
            return f"{name}({', '.join(pairs)})"
        return f"torch.return_types.{name}(\n" + ",\n".join(pairs) + ")"

    return type(name, (tuple,), {"__slots__": (), "_fields": fields, "__repr__": show, **members})


@functools.cache
def _exception_class(name: str, base: str) -> type[Exception]:
    """Return a class of exceptions by its name: a builtin one, or one like PyTorch's own."""
    known = getattr(builtins, name, None)
    if known is not None:
        return known  # type: ignore[no-any-return]
    return type(name, (getattr(builtins, base),), {})


def _builtin_base(kind: type[BaseException]) -> str:
    return next(each.__name__ for each in kind.__mro__ if each.__module__ == "builtins")


# --- sessions ------------------------------------------------------------------------------------


class Session:
    """What a test does with PyTorch, from its first question to its last."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.arrays: list[np.ndarray] = []
        self.stand_ins: list[StandIn] = []
        self.functions: list[Callable[..., Any]] = []

    def ask(self, operation: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Do something with PyTorch's objects, and return its answer."""
        raise NotImplementedError

    def is_static(self, stand_in: StandIn) -> bool:
        """Return whether an object's attributes stay what they are."""
        raise NotImplementedError

    def function_number(self, function: Callable[..., Any]) -> int:
        """Return the number of a function of the test's, that PyTorch may call."""
        for number, known in enumerate(self.functions):
            if known is function:
                return number
        self.functions.append(function)
        return len(self.functions) - 1

    def check(self, operation: str, args: Any, kwargs: Any) -> int:
        """Return a number that differs where a test asks for something else.

        The numbers of arrays and floats are no part of it: where they changed, answers do, too, and
        where a machine rounds otherwise nothing is wrong.
        """
        described = repr((operation, self._describe(args), self._describe(kwargs)))
        return zlib.crc32(described.encode()) & 0xFFF

    def _describe(self, value: Any) -> Any:
        if isinstance(value, StandIn):
            return value._handle
        if isinstance(value, (str, bool, int, type(None), type(Ellipsis))):
            return value
        if isinstance(value, np.ndarray):
            return str(value.dtype), value.shape
        if isinstance(value, (tuple, list)):
            return [self._describe(each) for each in value]
        if isinstance(value, dict):
            return {key: self._describe(each) for key, each in value.items()}
        if isinstance(value, slice):
            return self._describe((value.start, value.stop, value.step))
        if callable(value) and not isinstance(value, type):
            return "function", self.function_number(value)
        return type(value).__name__


class Recorder(Session):
    """A session with PyTorch behind it, which keeps every answer."""

    def __init__(self, module: types.ModuleType) -> None:
        super().__init__()
        self.real: list[Any] = []  # by handle; held, so that no other object takes an identity
        self.handles: dict[int, int] = {}
        self.wrapped: dict[int, Callable[..., Any]] = {}
        self.root = self._stand_in(module)[0]

    def ask(self, operation: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        number = self.check(operation, args, kwargs)
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                result = function(
                    *[self._unwrap(each) for each in args],
                    **{name: self._unwrap(each) for name, each in kwargs.items()},
                )
        except Exception as error:
            self._record_warnings(caught)
            kind = type(error)
            words = [str(each) for each in error.args]
            self.entries.append([number, "raise", kind.__name__, _builtin_base(kind), words])
            raise
        self._record_warnings(caught)
        if function is _call and getattr(self._unwrap(args[0]), "__name__", "") == "data_ptr":
            result = Address(result)
        answer, encoded = self._keep(result)
        self.entries.append([number, *encoded])
        return answer

    def is_static(self, stand_in: StandIn) -> bool:
        return isinstance(self.real[stand_in._handle], (types.ModuleType, type))

    def _record_warnings(self, caught: list[warnings.WarningMessage]) -> None:
        for each in caught:
            words = str(each.message)
            self.entries.append([0, "warn", each.category.__name__, words])
            warnings.warn(words, each.category, stacklevel=4)

    def _stand_in(self, value: Any) -> tuple[StandIn, Entry]:
        """Return what stands in for an object, the same one whenever it is the same."""
        handle = self.handles.get(id(value))
        if handle is not None:
            return self.stand_ins[handle], ["object", handle]
        self.handles[id(value)] = len(self.real)
        self.real.append(value)
        made = StandIn(self, len(self.real) - 1)
        self.stand_ins.append(made)
        return made, ["static"] if self.is_static(made) else ["new"]

    def _keep(self, value: Any) -> tuple[Any, Entry]:
        """Return an answer as the test sees it, and as the record has it."""
        kind = type(value)
        if value is None or kind in (bool, int, float, str):
            return value, ["data", value]
        if kind is complex:
            return value, ["complex", value.real, value.imag]
        if isinstance(value, (np.ndarray, np.generic)):
            if value.dtype.kind not in "biufc":
                raise Unrecordable(str(value.dtype))
            self.arrays.append(np.array(value))
            where = len(self.arrays) - 1
            return value, ["array" if kind is np.ndarray else "scalar", where]
        if kind.__name__ == "Size" and isinstance(value, tuple):
            return Size(value), ["size", list(value)]
        if isinstance(value, (tuple, list)):
            return self._keep_items(value, kind)
        if kind is dict:
            pairs = [(self._keep(key), self._keep(each)) for key, each in value.items()]
            kept = {key[0]: each[0] for key, each in pairs}
            return kept, ["dict", [[key[1], each[1]] for key, each in pairs]]
        if isinstance(value, type) and issubclass(value, BaseException):
            name, base = value.__name__, _builtin_base(value)
            return value, ["class", name, base]
        for number, function in enumerate(self.functions):
            if value is function or value is self.wrapped.get(number):
                return function, ["function", number]
        return self._stand_in(value)

    def _keep_items(self, value: Any, kind: type) -> tuple[Any, Entry]:
        pairs = [self._keep(each) for each in value]
        items, encoded = [each for each, _ in pairs], [each for _, each in pairs]
        if kind in (list, tuple):
            return kind(items), [kind.__name__, encoded]
        fields = getattr(kind, "_fields", None) or _fields_of(value)
        return _named_tuple(kind.__name__, tuple(fields))(items), [
            "named",
            kind.__name__,
            list(fields),
            encoded,
        ]

    def _unwrap(self, value: Any) -> Any:
        """Return what PyTorch is to be given for what the test gives."""
        if isinstance(value, StandIn):
            return self.real[value._handle]
        if isinstance(value, Size):  # some functions tell it from a tuple
            return getattr(self.real[0], "Size", tuple)(value)
        if isinstance(value, (tuple, list)):
            items = [self._unwrap(each) for each in value]
            return items if isinstance(value, list) else tuple(items)
        if isinstance(value, dict):
            return {self._unwrap(key): self._unwrap(each) for key, each in value.items()}
        if isinstance(value, slice):
            return slice(*map(self._unwrap, (value.start, value.stop, value.step)))
        if isinstance(value, type) or not callable(value):
            return value
        return self._wrap(value)

    def _wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that PyTorch may call, and whose calls are recorded."""
        number = self.function_number(function)

        def called(*args: Any, **kwargs: Any) -> Any:
            kept = [self._keep(each) for each in args]
            named = {name: self._keep(each) for name, each in kwargs.items()}
            encoded = {name: each[1] for name, each in named.items()}
            self.entries.append([0, "begin", number, [each[1] for each in kept], encoded])
            try:
                answer = function(
                    *[each[0] for each in kept], **{name: each[0] for name, each in named.items()}
                )
            finally:
                self.entries.append([0, "end"])
            return self._unwrap(answer)

        if number not in self.wrapped:
            with contextlib.suppress(AttributeError):
                functools.update_wrapper(called, function)
                del called.__wrapped__  # type: ignore[attr-defined]
            self.wrapped[number] = called
        return self.wrapped[number]


def _fields_of(value: Any) -> list[str]:
    """Return the names of the elements of one of PyTorch's ``return_types``."""
    names = [name for name in type(value).__dict__ if not name.startswith(("_", "n_"))]
    found = [next((n for n in names if getattr(value, n) is each), None) for each in value]
    if None in found or len(set(found)) < len(found):
        raise Unrecordable(f"a tuple whose names are not known: {type(value).__name__}")
    return [str(name) for name in found]


class Player(Session):
    """A session without PyTorch, answered from a record."""

    def __init__(self, entries: list[Entry], arrays: list[np.ndarray]) -> None:
        super().__init__()
        self.entries, self.arrays = entries, arrays
        self.position = 0
        self.static: set[int] = set()
        self.root = self._stand_in(static=True)

    def ask(self, operation: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        number = self.check(operation, args, kwargs)
        raised: Exception | None = None
        while True:
            entry = self._next(operation, args)
            if entry[1] == "begin":
                raised = self._call_back(entry)
            elif entry[1] == "warn":
                warnings.warn(entry[3], _exception_class(entry[2], "UserWarning"), stacklevel=3)
            else:
                break
        if entry[0] != number:
            raise OutOfStep(_advice(f"{operation} of {self._describe(args)}"))
        if entry[1] == "raise":
            kind = _exception_class(entry[2], entry[3])
            if raised is not None and type(raised).__name__ == entry[2]:
                raise raised
            raise kind(*entry[4])
        return self._read(entry[1:])

    def is_static(self, stand_in: StandIn) -> bool:
        return stand_in._handle in self.static

    def _next(self, operation: str, args: Any) -> Entry:
        """Return the next entry; `operation` and `args` are for the words of an error."""
        if self.position >= len(self.entries):
            raise OutOfStep(_advice(f"{operation} of {self._describe(args)} after the last answer"))
        self.position += 1
        return self.entries[self.position - 1]

    def _call_back(self, entry: Entry) -> Exception | None:
        """Call one of the test's functions, as PyTorch did; return what it raised."""
        _, _, number, encoded, named = entry
        raised = None
        args = [self._read(each) for each in encoded]
        kwargs = {name: self._read(each) for name, each in named.items()}
        try:
            self.functions[number](*args, **kwargs)
        except OutOfStep:
            raise
        except Exception as error:
            raised = error
        if self._next("the end of a call", ())[1] != "end":
            raise OutOfStep(_advice("the end of a function's call"))
        return raised

    def _stand_in(self, static: bool) -> StandIn:
        made = StandIn(self, len(self.stand_ins))
        self.stand_ins.append(made)
        if static:
            self.static.add(made._handle)
        return made

    def _read(self, encoded: Entry) -> Any:
        """Return an answer as the test sees it."""
        kind, *rest = encoded
        if kind in ("new", "static"):
            return self._stand_in(kind == "static")
        if kind in ("list", "tuple"):
            return getattr(builtins, kind)([self._read(each) for each in rest[0]])
        if kind == "named":
            name, fields, items = rest
            return _named_tuple(name, tuple(fields))([self._read(each) for each in items])
        if kind == "dict":
            return {self._read(key): self._read(each) for key, each in rest[0]}
        return _READERS[kind](self, *rest)


_READERS: dict[str, Callable[..., Any]] = {
    "data": lambda session, value: value,
    "complex": lambda session, real, imaginary: complex(real, imaginary),
    "array": lambda session, where: session.arrays[where].copy(order="K"),
    "scalar": lambda session, where: session.arrays[where][()],
    "size": lambda session, lengths: Size(lengths),
    "class": lambda session, name, base: _exception_class(name, base),
    "function": lambda session, number: session.functions[number],
    "object": lambda session, handle: session.stand_ins[handle],
}


def _advice(what: str) -> str:
    return f"PyTorch was asked something else when this was recorded: {what}. " + RECORD_ANEW
