"""Watch what a traced function reads from outside: a change means another trace.

A trace has in it whatever the function found: numbers, which tensors, of what length. So before it
runs, what its code may read is looked for, from its global names, the variables of enclosing
functions, defaults, bound objects and static arguments on, through attributes, entries, methods,
properties and the functions that it calls (see `numgrad.jit.front.reads`). What is found on that
way is a condition of the trace. An object that goes somewhere is looked at as a whole: containers
with all that is in them, objects with each attribute whose name occurs in the code.

The code of libraries is not looked into, and their modules are taken to be what they are.
"""

from __future__ import annotations

import dataclasses
import functools
import io
import os
import random
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np

from numgrad.graph.frames import is_library, is_of_package, where_user_is
from numgrad.graph.recorder import TracedTensor, TraceError
from numgrad.graph.tensor import Tensor
from numgrad.jit.front.guards import Guards, is_number
from numgrad.jit.front.reads import Chain, reads_of
from numgrad.jit.front.trace_function import Trace
from numgrad.jit.lowering.storage import root_of

__all__ = ["Watch"]

# What looks attributes up by names that the code does not show.
# fmt: off
_REFLECTIVE = frozenset((
    "getattr", "hasattr", "vars", "dir", "__dict__", "__getattr__", "__getattribute__",
    "attrgetter", "methodcaller", "AttributeError", "asdict", "astuple", "fields", "replace",
    "copy", "deepcopy", "eval", "exec", "locals", "globals",
))
# fmt: on
_CONTAINERS = (list, dict, set, deque)
_WRITES = frozenset(("append", "add", "extend", "appendleft"))  # that read nothing
_SHAPES = frozenset(("shape", "ndim", "dtype", "size", "itemsize", "nbytes"))
_SOURCES = (random.Random, np.random.Generator, np.random.RandomState, np.random.BitGenerator)
_PLAIN = (type(None), type(...), type(NotImplemented), bool, range, slice, np.dtype, CodeType)
_STOP: Any = object()  # where a chain cannot be followed, or ends
_EMPTY: Any = object()  # what a variable holds that is not bound


class Watch:
    """What one trace of a function depends on.

    Parameters
    ----------
    function : callable
    static : iterable
        Its static arguments.

    Attributes
    ----------
    guards : Guards
    tensors : list
        Tensors that may be read, each with the array it stood on, and how it hung in the graph.
    baked : dict
        Arrays whose numbers the trace goes by (masks, say), and what they held; by id.
    """

    def __init__(self, function: Callable[..., Any], static: Iterable[Any] = ()) -> None:
        self.guards = Guards()
        self.tensors: list[tuple[Tensor, Any, Any]] = []
        self.baked: dict[int, tuple[Any, Any]] = {}
        self._arrays: dict[int, Any] = {}
        self._seen: dict[Any, Any] = {}  # the values keep alive what the ids are of
        self._words: set[str] = set()
        self._looked_at: list[tuple[Any, str]] = []  # objects of which attributes are read
        self._home = _home_of(function)
        self._visit(function, getattr(function, "__name__", "the function"))
        for argument in static:
            self._visit(argument, "a static argument")
        self._follow_words()

    # --- whether it holds -------------------------------------------------------------------------

    def holds(self) -> bool:
        """Whether all is what it was."""
        return self.guards.hold() and not (self.baked and self.changed_numbers())

    def changed(self) -> str | None:
        """Return the name of something that is not what it was, None if all is."""
        return self.guards.broken() or (
            "the numbers in a captured tensor" if self.changed_numbers() else None
        )

    def changed_numbers(self) -> bool:
        """Whether one of the arrays that traces go by holds other numbers now."""
        return any(_differ(array, held) for array, held in self.baked.values())

    def settle(self, trace: Trace, others: Iterable[Watch]) -> None:
        """Note the numbers that a trace went by; what others hold of them is not copied again.

        Those of an array that the graph does not read, NumPy has computed with, or may have.
        """
        self.baked |= trace.baked
        found = (v.attributes["array"] for v in trace.graph.values() if v.operation == "array")
        read = {id(root_of(array)) for array in found}
        for array in self._arrays.values():
            if id(root_of(array)) not in read and array.dtype.kind != "O":
                self.baked.setdefault(id(array), (array, array.copy()))
        for key, pair in self.baked.items():
            known = [each.baked[key] for each in others if key in each.baked]
            same = [each for each in known if each[0] is pair[0] and not _differ(each[1], pair[1])]
            self.baked[key] = same[0] if same else pair

    # --- looking at values ------------------------------------------------------------------------

    def _visit(self, value: Any, label: str) -> None:
        """Look at a value as a whole."""
        if is_number(value) or isinstance(value, _PLAIN) or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if isinstance(value, TracedTensor):  # it has left a function, and is of no use
            return
        if isinstance(value, Tensor):
            self._visit_tensor(value)
        elif isinstance(value, np.ndarray):
            self._arrays[id(value)] = value
        elif isinstance(value, (tuple, frozenset)):
            for k, item in enumerate(value):
                self._visit(item, f"{label}[{k}]")
        elif isinstance(value, _CONTAINERS):
            self._visit_container(value, label)
        elif isinstance(value, ModuleType):
            if not self._is_library_module(value):
                self._looked_at.append((value, label))
        elif not self._visit_callable(value, label) and not _is_ours(value):
            self._looked_at.append((value, label))

    def _visit_tensor(self, tensor: Tensor) -> None:
        self.tensors.append((tensor, tensor._array, tensor._edge))
        self.guards.add("a captured tensor", "{o}._array is {v}", tensor, tensor._array)
        self.guards.add("a captured tensor", "{o}._edge is {v}", tensor, tensor._edge)
        self._looked_at.append((tensor, "a captured tensor"))

    def _visit_container(self, value: Any, label: str) -> None:
        if isinstance(value, dict):
            self.guards.add(label, "same_keys({o}, {v})", value, (*value, *value.values()))
            for key, item in list(value.items()):
                self._visit(item, f"{label}[{key!r}]")
        else:
            self.guards.add(label, "same_items({o}, {v})", value, tuple(value))
            for k, item in enumerate(list(value)):
                self._visit(item, f"{label}[{k}]")
        if type(value).__module__ not in ("builtins", "collections"):
            self._looked_at.append((value, label))

    # --- functions --------------------------------------------------------------------------------

    def _visit_callable(self, value: Any, label: str) -> bool:
        """Look at what a function takes from outside; return whether that is all there is to it."""
        wrapped = _wrapped(value)
        if wrapped is not None:
            self._visit(wrapped, label)
        if isinstance(value, FunctionType):
            self._visit_function(value, label)
        elif isinstance(value, MethodType):
            _refuse_source(value.__self__, label)
            self._visit_method(value.__func__, value.__self__, label)
        elif isinstance(value, functools.partial):
            self._visit(value.func, label)
            self._visit(value.args, label)
            self._visit(value.keywords, label)
        elif isinstance(value, (staticmethod, classmethod)):
            self._visit(value.__func__, label)
        elif isinstance(value, property):
            self._visit(value.fget, label)
        elif isinstance(value, BuiltinFunctionType):
            _refuse_source(value.__self__, label)
        else:
            return wrapped is not None and _is_ours(value)
        return True

    def _visit_inside(self, value: Any, label: str) -> None:
        """Look at what the code of a library was given, if it is a user's function or tensors."""
        if isinstance(value, (tuple, list)):
            for item in value:
                self._visit_inside(item, label)
        elif isinstance(value, Tensor) or (callable(value) and not _is_ours(value)):
            self._visit(value, label)
        elif isinstance(value, FunctionType) or _wrapped(value) is not None:
            self._visit_callable(value, label)

    def _visit_method(self, function: Any, owner: Any, label: str) -> None:
        """Look at a function whose first parameter is known."""
        while _wrapped(function) is not None and not isinstance(function, FunctionType):
            function = _wrapped(function)
        if not isinstance(function, FunctionType) or self._is_library(function.__code__):
            self._visit(function, label)
            self._visit(owner, label)
        else:
            self._visit_function(function, label, owner)

    def _visit_function(self, function: FunctionType, label: str, *bound: Any) -> None:
        key = (id(function), *map(id, bound))
        if key in self._seen:
            return
        self._seen[key] = (function, *bound)
        code = function.__code__
        if self._is_library(code):
            for cell in function.__closure__ or ():  # of a decorator or transform: what is in it?
                self._visit_inside(_contents_of(cell), label)
            return
        reads = reads_of(code)
        self._words |= reads.words
        defaults = function.__defaults__, function.__kwdefaults__
        if any(defaults):
            name = f"the defaults of {label}"
            self.guards.add(name, "{o}.__defaults__ is {v}", function, defaults[0])
            self.guards.add(name, "{o}.__kwdefaults__ is {v}", function, defaults[1])
            self._visit(defaults, name)
        for variable, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            chains = reads.variables.get(variable, ())
            inside = _contents_of(cell)
            if inside is _EMPTY or not chains:
                continue
            self.guards.add(variable, "{o}.cell_contents is {v}", cell, inside)
            self._follow(inside, chains, variable)
        for name, chains in reads.names.items():
            if name in function.__globals__:
                inside = function.__globals__[name]
                if not (isinstance(inside, ModuleType) and self._is_library_module(inside)):
                    self.guards.add(name, f"{{o}}[{name!r}] is {{v}}", function.__globals__, inside)
                self._follow(inside, chains, name)
        for name, found in reads.modules.items():
            module = sys.modules.get(name)
            if module is not None and not self._is_library_module(module):
                steps = [Chain(() if each is None else (("attribute", each),)) for each in found]
                self._follow(module, steps, name)
        if bound and code.co_argcount:
            first = code.co_varnames[0]
            self._follow(bound[0], reads.variables.get(first, ()), first)
            if "super" in reads.words or first in code.co_cellvars:
                self._visit(bound[0], first)

    # --- chains -----------------------------------------------------------------------------------

    def _follow(self, value: Any, chains: Iterable[Chain], label: str) -> None:
        """Look at what chains that begin at a value come by."""
        for chain in chains:
            found, name = value, label
            for kind, key in chain.steps:
                if kind == "attribute":
                    found = self._attribute(found, key, name)
                    name = f"{name}.{key}"
                else:
                    found = self._entry(found, key, name)
                    name = f"{name}[{key!r}]"
                if found is _STOP:
                    break
            else:
                if not chain.ends:
                    _refuse_source(found, name)
                    self._visit(found, name)

    def _attribute(self, value: Any, name: str, label: str) -> Any:
        """Return an attribute that is read, and watch it."""
        here = f"{label}.{name}"
        _refuse_source(value, label)
        if isinstance(value, ModuleType):
            found = vars(value).get(name, _STOP)
            if not self._is_library_module(value):
                if found is not _STOP:
                    self.guards.add(here, f"{{o}}.{name} is {{v}}", value, found)
                return found
            _refuse_source(getattr(found, "__self__", None), here)
            return found if isinstance(found, ModuleType) else _STOP
        if isinstance(value, np.ndarray) and name in _SHAPES:
            return _STOP
        if isinstance(value, _CONTAINERS) and name in _WRITES:
            return _STOP
        if isinstance(value, Tensor):
            self._visit(value, label)
            if name == "grad":
                self.guards.add(here, "{o}._grad is {v}", value, value._grad)
                return value._grad
            name = name if name in getattr(value, "__dict__", ()) else ""
        if is_number(value) or isinstance(value, (*_PLAIN, *_CONTAINERS, np.ndarray)) or not name:
            self._visit(value, label)
            return _STOP
        return self._attribute_of_object(value, name, here)

    def _attribute_of_object(self, value: Any, name: str, label: str) -> Any:
        is_class = isinstance(value, type)
        if is_class and self._is_library_class(value):
            return _STOP
        owner, raw = _in_class(value if is_class else type(value), name)
        own = _own(value)
        text = f"{{o}}.{name} is {{v}}"
        if not is_class and _is_data_descriptor(raw):
            if isinstance(raw, property) and isinstance(raw.fget, FunctionType):
                self._watch_class(owner, name, raw, label)
                self._visit_method(raw.fget, value, label)
                return _STOP
            return self._evaluated(value, name, label)
        if not is_class and name in own:
            self.guards.add(label, text, value, own[name])
            return own[name]
        if owner is None:
            return self._missing(value, name, label)
        if isinstance(raw, (FunctionType, classmethod)) or _wrapped(raw) is not None:
            self._watch_class(owner, name, raw, label)
            if not is_class:
                self.guards.add(label, "not has_own({o}, {k})", value, key=name)
            function = raw.__func__ if isinstance(raw, classmethod) else raw
            bound = type(value) if isinstance(raw, classmethod) and not is_class else value
            if is_class and not isinstance(raw, classmethod):
                self._visit(function, label)
            else:
                self._visit_method(function, bound, label)
            return _STOP
        if isinstance(raw, staticmethod):
            self.guards.add(label, text, value, raw.__func__)
            return raw.__func__
        if hasattr(type(raw), "__get__") and not is_class:
            self._watch_class(owner, name, raw, label)
            for function in (getattr(raw, "func", None), getattr(type(raw), "__get__", None)):
                if isinstance(function, FunctionType):
                    self._visit_method(function, value if function is not raw else raw, label)
            self._visit(raw, label)
            return _STOP
        if is_class:
            return self._evaluated(value, name, label)
        self.guards.add(label, text, value, raw)
        return raw

    def _watch_class(self, owner: type, name: str, raw: Any, label: str) -> None:
        if not self._is_library_class(owner):
            self.guards.add(label, "{o}.__dict__[{k}] is {v}", owner, raw, name)

    def _missing(self, value: Any, name: str, label: str) -> Any:
        """Watch an attribute that is not there, or is made when it is asked for."""
        _, maker = _in_class(type(value), "__getattr__")
        if isinstance(maker, FunctionType) and not self._is_library(maker.__code__):
            self._visit_function(maker, label, value)
            self._visit(value, label)
            return _STOP
        if maker is not None:
            return self._evaluated(value, name, label)
        self.guards.add(label, "not hasattr({o}, {k})", value, key=name)
        return _STOP

    def _evaluated(self, value: Any, name: str, label: str) -> Any:
        """Watch what a library computes when an attribute is read, by reading it."""
        return self._asked(value, f"{{o}}.{name}", label, lambda: getattr(value, name))

    def _asked(
        self, value: Any, text: str, label: str, ask: Callable[[], Any], key: Any = None
    ) -> Any:
        try:
            found, again = ask(), ask()
        except (AttributeError, LookupError, TypeError, ValueError):
            return _STOP
        if callable(found):
            self._visit_callable(found, label)
            return _STOP
        if found is again or is_number(found):
            self.guards.add(label, f"{text} is {{v}}", value, found, key)
            return found
        if type(found).__hash__ is not None and found == again:
            self.guards.add(label, f"same_value({text}, {{v}})", value, found, key)
            return _STOP
        raise TraceError(
            f"{where_user_is()}jit: {label}, of type {type(found).__name__}, is made anew whenever "
            "it is asked for, so that a change of it could not be noticed: pass it as an argument"
        )

    def _entry(self, value: Any, key: Any, label: str) -> Any:
        """Return an entry that is read, and watch it."""
        here = f"{label}[{key!r}]"
        kind = type(value)
        if isinstance(value, tuple) and kind.__getitem__ is tuple.__getitem__:
            return value[key] if _has(value, key) else _STOP
        plain = [each for each in _CONTAINERS if isinstance(value, each)]
        if plain and kind.__getitem__ is getattr(plain[0], "__getitem__", None):
            if isinstance(key, slice):
                return value
            if isinstance(value, dict) and key not in value:
                self.guards.add(here, "{k} not in {o}", value, key=key)
                return _STOP
            if _has(value, key):
                self.guards.add(here, "{o}[{k}] is {v}", value, value[key], key)
                return value[key]
        getter = getattr(kind, "__getitem__", None)
        looked_into = (Tensor, np.ndarray, *_CONTAINERS, type, str, bytes)
        if isinstance(value, looked_into) or isinstance(getter, FunctionType) or getter is None:
            self._visit(value, label)
            return _STOP
        return self._asked(value, "{o}[{k}]", here, lambda: value[key], key)

    # --- attributes by name -----------------------------------------------------------------------

    def _follow_words(self) -> None:
        """Look at attributes of the names that occur in the code, until no more are found."""
        done: set[tuple[int, str]] = set()
        grown = -1
        while grown != len(done):
            grown = len(done)
            for value, label in list(self._looked_at):
                for name in self._names_in(value, label):
                    if (id(value), name) not in done:
                        done.add((id(value), name))
                        found = self._attribute(value, name, label)
                        if found is not _STOP:
                            if name in self._words:
                                _refuse_source(found, f"{label}.{name}")
                            self._visit(found, f"{label}.{name}")
        for value, label in self._looked_at:
            if self._is_open(value) and not isinstance(value, (type, ModuleType, Tensor)):
                names = tuple(_own(value))
                self.guards.add(label, "same_names({o}.__dict__, {v})", value, names)

    def _is_open(self, value: Any) -> bool:
        """Whether attributes may be read whose names the code does not show."""
        return hasattr(value, "__dict__") and bool(_REFLECTIVE & self._words)

    def _names_in(self, value: Any, label: str) -> Iterator[str]:
        own = _own(value)
        everything = self._is_open(value) or dataclasses.is_dataclass(value)
        if isinstance(value, (ModuleType, Tensor, type)):
            everything = False
        if isinstance(value, Tensor):
            yield from ({"grad"} | own.keys()) & self._words
            return
        yield from list(own) if everything else own.keys() & self._words
        if isinstance(value, ModuleType):
            return
        of_class = value if isinstance(value, type) else type(value)
        written = [each for each in of_class.__mro__ if not self._is_library_class(each)]
        # What derives from a library's class may be called by that.
        everything = everything or len(written) + 1 < len(of_class.__mro__)
        for each in written:
            for name, raw in list(vars(each).items()):
                if name.startswith("__") and name.endswith("__"):
                    if isinstance(raw, FunctionType):
                        self._visit_function(raw, name, *(() if value is of_class else (value,)))
                elif name in self._words or everything:
                    if "super" in self._words:  # it may be read although a class below has it, too
                        self._watch_class(each, name, raw, f"{label}.{name}")
                        self._visit_method(raw, value, f"{label}.{name}")
                    yield name

    # --- libraries --------------------------------------------------------------------------------

    def _is_library(self, code: CodeType) -> bool:
        file = code.co_filename
        return is_library(file) and not (self._home and file.startswith(self._home))

    def _is_library_module(self, module: ModuleType) -> bool:
        file = vars(module).get("__file__")
        if file is None:
            return module.__name__.partition(".")[0] in sys.stdlib_module_names
        return is_library(file) and not (self._home and file.startswith(self._home))

    def _is_library_class(self, owner: type) -> bool:
        module = sys.modules.get(owner.__module__)
        if module is None or owner.__module__ == "__main__":
            return False
        return self._is_library_module(module)


def _home_of(function: Any) -> str | None:
    """Return the folder of a function that is itself a part of an installed package."""
    while _wrapped(function) is not None:
        function = _wrapped(function)
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None or not is_library(code.co_filename) or is_of_package(code.co_filename):
        return None
    return os.path.dirname(code.co_filename) + os.sep


def _wrapped(value: Any) -> Any:
    """Return the function that a decorator or `jit` wrapped, None if there is none."""
    return (getattr(value, "__dict__", None) or {}).get("__wrapped__")


def _is_ours(value: Any) -> bool:
    """Whether a function, or an object by its class, is this package's."""
    if isinstance(value, FunctionType):
        return _is_of_package(value.__globals__.get("__name__", ""))
    return _is_of_package(type(value).__module__)


def _is_of_package(module: Any) -> bool:
    return isinstance(module, str) and module.partition(".")[0] == "numgrad"


def _refuse_source(value: Any, label: str) -> None:
    """Raise for what gives something else whenever it is asked."""
    is_iterator = hasattr(type(value), "__next__") and not isinstance(value, io.IOBase)
    if is_iterator and isinstance(type(value).__next__, FunctionType):
        return  # written in Python, its attributes are watched
    if is_iterator or isinstance(value, _SOURCES):
        raise TraceError(
            f"{where_user_is()}jit: {label} comes from a {type(value).__name__}, which gives "
            "something else every time, and while a function is traced it would be asked once: "
            "draw from it outside, and pass what it gives as an argument"
        )


def _contents_of(cell: CellType) -> Any:
    """Return what a variable of an enclosing function holds now; a mark if it is not bound."""
    try:
        return cell.cell_contents
    except ValueError:
        return _EMPTY


def _differ(array: Any, held: Any) -> bool:
    return not np.array_equal(array, held, equal_nan=held.dtype.kind in "fc")


def _own(value: Any) -> dict[str, Any]:
    """Return the attributes that an object itself has."""
    own = getattr(value, "__dict__", None)
    found = dict(own) if own is not None and not isinstance(value, type) else {}
    for each in type(value).__mro__:
        for name, raw in vars(each).items():
            if type(raw) is MemberDescriptorType and not isinstance(value, type):
                held = getattr(value, name, _STOP)
                if held is not _STOP and name not in ("__dict__", "__weakref__"):
                    found[name] = held
    return found


def _in_class(owner: type, name: str) -> tuple[Any, Any]:
    """Return the class that defines an attribute, and what is there; None twice if none does."""
    for each in owner.__mro__:
        if name in each.__dict__:
            return each, each.__dict__[name]
    return None, None


def _is_data_descriptor(raw: Any) -> bool:
    kind = type(raw)
    return hasattr(kind, "__get__") and (hasattr(kind, "__set__") or hasattr(kind, "__delete__"))


def _has(value: Any, key: Any) -> bool:
    try:
        value[key]
    except (LookupError, TypeError):
        return False
    return True
