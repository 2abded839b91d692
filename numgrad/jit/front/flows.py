"""Find the arrays whose numbers a traced function turns into Python's numbers and decisions.

An operation says what it is given while a function is traced; a number of Python's has no origin.
So where an array from outside is an operand, the code is followed once more with what its
variables may hold: objects from outside, what NumPy computes from arrays of these, and what the
code makes itself. Where Python goes by something, an array in it is noted.

Tensors are not followed: who asks one for a number while it is traced gets an error. What can't be
followed may be any object that went out of sight, and any array in those.
"""

from __future__ import annotations

import builtins
import functools
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import CO_GENERATOR, CO_VARARGS, CO_VARKEYWORDS
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from numgrad.graph.tensor import Tensor
from numgrad.jit.front.guards import is_a
from numgrad.jit.front.lookups import in_class
from numgrad.jit.front.origins import Libraries, is_ours, wrapped
from numgrad.jit.front.stack import Lost, Tokens, Value, follow
from numgrad.jit.front.values import ANY, BESIDE, NUMBER, TENSOR, Values, contents_of, rows

__all__ = ["arrays_gone_by"]

_NONE: Tokens = frozenset()
Visited = Iterable[tuple[FunctionType, tuple[Any, ...]]]

# fmt: off
# Methods of arrays that return something of Python's.
_OF_PYTHON = frozenset(("item", "tolist", "tobytes", "tofile", "dump", "dumps", "data", "ctypes"))
_OF_TENSORS = frozenset(n for n in dir(Tensor) if not n.startswith("__")) - _OF_PYTHON
_OF_ARRAYS = frozenset(n for n in dir(np.ndarray) if not n.startswith("__")) - _OF_PYTHON
# Functions of NumPy that do, of arrays.
_ASKS = frozenset((
    "allclose", "array_equal", "array_equiv", "array_repr", "array_str", "array2string",
    "base_repr", "binary_repr", "count_nonzero", "format_float_positional", "iterable",
    "format_float_scientific", "save", "savetxt", "savez", "may_share_memory", "shares_memory",
))
# Methods and functions of ours that return no tensors.
_NO_TENSORS = BESIDE | frozenset((
    "is_tensor", "type", "get_device", "data_ptr", "storage_offset", "broadcast_shapes",
    "result_type", "can_cast", "promote_types", "get_default_dtype", "finfo", "iinfo",
    "is_same_size",
    "dim_order", "is_grad_enabled", "is_nonzero", "equal", "allclose", "is_conj", "is_neg",
    "is_inference", "is_view", "is_set_to", "is_shared", "is_pinned", "untyped_storage", "storage",
))
# Methods of containers that compare nothing.
_PUTS = frozenset(("append", "appendleft", "extend", "extendleft", "values", "keys", "items"))
# What Python calls where a class is called, or made.
_MAKERS = frozenset((
    "__init__", "__new__", "__post_init__", "__call__", "__init_subclass__", "__set_name__",
))
_BUILTINS = {
    getattr(builtins, name): way
    for way, names in {
        "nothing": "len isinstance issubclass id callable hasattr print object Exception",
        "same": "iter reversed slice",
        "list": "list tuple dict",
        "hashed": "set frozenset sorted",
        "compared": "max min any all",
        "decides": "float int complex bool str bytes hash round range format ascii repr chr divmod",
        "computed": "abs pow sum",
        "next": "next", "zip": "zip", "enumerate": "enumerate", "map": "map", "filter": "filter",
        "super": "super", "getattr": "getattr", "setattr": "setattr", "type": "type",
    }.items()
    for name in names.split()
}
_BUILTINS[deque] = "list"
# fmt: on


def arrays_gone_by(
    libraries: Libraries, function: Callable[..., Any], static: Iterable[Any], visited: Visited
) -> set[int] | None:
    """Return the ids of arrays that Python goes by, or may; None if the code can't be followed.

    Parameters
    ----------
    libraries : Libraries
        Whose code is not followed.
    function : callable
        What is traced.
    static : iterable
        Those of its arguments that are no tensors.
    visited : iterable
        The functions that it may call, with their first arguments where these are known.
    """
    flows = _Flows(libraries, visited)
    try:
        flows.follow(function, static)
    except Lost:
        return None
    return flows.found


class _Frame:
    """What the variables of a function may hold, and what it may return."""

    def __init__(self, key: Any, code: CodeType, table: dict[str, Any], outer: Any) -> None:
        self.key, self.code, self.globals, self.outer = key, code, table, outer
        self.variables: dict[str, set[Any]] = {}
        self.cells: dict[str, CellType] = {}
        self.returns: set[Any] = set()
        self.is_outside = False  # whether what it returns goes out of sight


class _Flows(Values):
    """The functions that may be called, with what their variables may hold."""

    def __init__(self, libraries: Libraries, visited: Visited) -> None:
        super().__init__(libraries)
        self.frames: dict[Any, _Frame] = {}
        self.shared: dict[Any, set[Any]] = {}  # cells and global names
        self.made: dict[Any, tuple[CodeType, _Frame]] = {}  # functions
        self.visited = list(visited)
        self.known = {id(each) for each, _ in self.visited}
        self.by_name: dict[str, list[FunctionType]] = {}
        for each, _ in self.visited:
            self.by_name.setdefault(each.__name__, []).append(each)

    def follow(self, function: Callable[..., Any], static: Iterable[Any]) -> None:
        """Go through all code until nothing new is found."""
        given = self.of_all(static) | {TENSOR}
        is_awake = False
        while True:
            self.is_changed = False
            for token in self.of(function):
                self.call_one(token, "", (), {}, given, -1)
            for frame in list(self.frames.values()):
                self.frame = frame
                follow(frame.code, self)
            if self.is_changed:
                continue
            if is_awake:
                break
            is_awake = True
            for each, bound in self.visited:  # what Python itself calls
                if each.__name__.startswith("__") and each.__name__ not in _MAKERS:
                    self.wake(each, bound)
        if self.is_any_used:
            self.use_all(frozenset(self.escaped))

    # --- variables --------------------------------------------------------------------------------

    def place(self, frame: _Frame, name: str) -> set[Any]:
        """Return the set of what a variable may hold."""
        if name not in frame.code.co_freevars:
            return frame.variables.setdefault(name, set())
        if frame.outer is not None:
            return self.place(frame.outer, name)
        cell = frame.cells[name]
        if id(cell) not in self.shared:
            self.shared[id(cell)] = set(self.of_all(contents_of((cell,))))
        return self.shared[id(cell)]

    def load(self, kind: str, name: str) -> Tokens:
        frame = self.frame
        if kind == "IMPORT_NAME":
            found = [sys.modules.get(each) for each in (name, name.partition(".")[0])]
            return self.of_all(found)
        if kind not in ("LOAD_GLOBAL", "LOAD_NAME"):
            return frozenset(self.place(frame, name))
        table = frame.globals
        below = table.get("__builtins__", builtins)
        below = below if is_a(below, dict) else vars(below)
        found_here = self.of(table[name] if name in table else below.get(name))
        rebound = self.shared.get((id(table), name), _NONE)
        return found_here | rebound | frame.variables.get(name, _NONE)

    def store(self, kind: str, name: str, value: Tokens) -> None:
        if kind == "STORE_GLOBAL":
            place = self.shared.setdefault((id(self.frame.globals), name), set())
        else:
            place = self.place(self.frame, name)
        self.grow(place, value)

    def leave(self, value: Tokens) -> None:
        self.grow(self.frame.returns, value)
        if self.frame.is_outside:
            self.escape(value)

    # --- functions --------------------------------------------------------------------------------

    def function(self, at: int, code: CodeType, defaults: Tokens) -> Tokens:
        token = ("code", self.frame.key, at)
        self.made[token] = code, self.frame
        self.grow(self.inside.setdefault(token, set()), self.items(defaults) - defaults)
        return frozenset((token,))

    def wake(self, function: FunctionType, bound: Sequence[Any]) -> None:
        if id(function) in self.known:
            frame = self.frame_of(function)
            given = [Value(self.of(each)) for each in bound]
            self.bind_arguments(frame, given, {}, frozenset((ANY,)))
            self.let_out(frame)

    def let_out(self, frame: _Frame) -> None:
        """Let what a function returns go out of sight."""
        frame.is_outside = True
        self.escape(frozenset(frame.returns))

    def wake_named(self, name: str) -> None:
        for function in self.by_name.get(name, ()):
            self.wake(function, ())

    def frame_of(self, function: FunctionType) -> _Frame:
        """Return the frame of a function from outside."""
        key = id(function)
        if key not in self.frames:
            code = function.__code__
            frame = self.frames[key] = _Frame(key, code, function.__globals__, None)
            frame.cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
            self.things["function", key] = function
            values = function.__defaults__ or ()
            names = code.co_varnames[: code.co_argcount]
            named = dict(zip(names[len(names) - len(values) :], values, strict=True))
            for name, value in {**named, **(function.__kwdefaults__ or {})}.items():
                self.grow(self.place(frame, name), self.of(value))
            self.is_changed = True
        return self.frames[key]

    def frame_of_made(self, token: Any) -> _Frame:
        """Return the frame of a function that the code makes."""
        if token not in self.frames:
            code, outer = self.made[token]
            self.frames[token] = _Frame(token, code, outer.globals, outer)
            self.is_changed = True
        return self.frames[token]

    def bind_arguments(
        self, frame: _Frame, given: Sequence[Value], named: Mapping[str, Value], spread: Tokens
    ) -> None:
        """Let parameters hold what they are given."""
        code = frame.code
        count = code.co_argcount + code.co_kwonlyargcount
        names = code.co_varnames
        has_rest = bool(code.co_flags & CO_VARARGS)
        rest = names[count] if has_rest else None
        others = names[count + has_rest] if code.co_flags & CO_VARKEYWORDS else None
        for k, value in enumerate(given):
            name = names[k] if k < code.co_argcount else rest
            if name is not None:
                self.grow(self.place(frame, name), value.tokens)
        for name, value in named.items():
            target = name if name in names[:count] else others
            if target is not None:
                self.grow(self.place(frame, target), value.tokens)
        if spread:
            for name in (*names[:count], rest, others):
                if name is not None:
                    self.grow(self.place(frame, name), spread)

    def returned(self, frame: _Frame) -> Tokens:
        """Return what a call of a function gives."""
        found = frozenset(frame.returns)
        if not frame.code.co_flags & CO_GENERATOR:
            return found
        token = ("made", frame.key, "generator")
        self.grow(self.inside.setdefault(token, set()), found)
        return frozenset((token,))

    # --- calls ------------------------------------------------------------------------------------

    def call(
        self,
        function: Value,
        given: Sequence[Value],
        named: Mapping[str, Value],
        spread: Tokens,
        at: int,
    ) -> Tokens:
        if not function.tokens and not function.name:
            return self.unknown(_every(given, named, spread))
        found: set[Any] = set()
        for token in function.tokens:
            found |= self.call_one(token, function.name, given, named, spread, at)
        return frozenset(found)

    def call_tensor(self, name: str, every: Tokens) -> Tokens:
        """Return what a method of a tensor gives, or a function of this package.

        A parameter may be asked for its number, and nothing tells of that: so what NumPy computed,
        and what is as short as a list of dims, may decide.
        """
        for token in self.with_contents(every):
            thing: Any = self.things.get(token)
            is_array = is_a(thing, np.ndarray)
            is_short = is_array and (not thing.ndim or thing.dtype.kind in "iub")
            if token[0] == "of" or (is_short and thing.size <= 64):
                self.decide((token,))
        self.escape(frozenset(filter(self.is_called, every)))
        return frozenset((NUMBER if name in _NO_TENSORS else TENSOR,))

    def call_one(
        self,
        token: Any,
        name: str,
        given: Sequence[Value],
        named: Mapping[str, Value],
        spread: Tokens,
        at: int,
    ) -> Tokens:
        every = _every(given, named, spread)
        if token[0] == "code":
            frame = self.frame_of_made(token)
            rest = _parameters(frame.code)[len(given) :]
            defaults = Value(frozenset(self.inside.get(token, _NONE)))
            more = {each: defaults for each in rest if each not in named}
            self.bind_arguments(frame, given, {**more, **named}, spread)
            if ANY in spread:
                self.let_out(frame)
            return self.returned(frame)
        if token[0] == "bound":
            first = Value(frozenset((token[2],)))
            return self.call_one(token[1], name, [first, *given], named, spread, at)
        if token[0] == "of":
            if name not in _OF_ARRAYS and name not in _OF_TENSORS:
                self.decide(frozenset((token,)))
                self.use_all(every)
            return self.computed(frozenset((token,)), *_each(given, named, spread))
        if token[0] == "is":
            return self.call_object(self.things[token], token, name, given, named, spread, at)
        if token[0] == "made":
            return self.call_made(token, name, given, every)
        if token == ANY:
            return self.call_any(name, every)
        if token == TENSOR:
            return self.call_tensor(name, every)
        if token == NUMBER:  # a method of a string, say
            self.use_all(every)
            return frozenset((NUMBER,))
        return self.unknown(every)

    def call_any(self, name: str, every: Tokens) -> Tokens:
        """Return what a call of something out of sight gives."""
        self.escape(every)
        self.wake_named(name)
        self.wake_named("__call__")
        self.use_all(every)
        return self.computed(every) | {ANY}

    def call_made(self, token: Any, name: str, given: Sequence[Value], every: Tokens) -> Tokens:
        """Return what a method of a container gives, or a call of an object that was made."""
        kind = self.classes.get(token)
        if kind is not None:
            found: Tokens = _NONE
            for each in self.of_class(kind, token, "__call__"):
                found |= self.call_one(each, "__call__", given, {}, every, -1)
            return found
        if name not in _PUTS and given:
            self.decide(given[0].tokens)
        self.put(frozenset((token,)), every | self.items(every))
        return self.contents(token) | every

    def call_object(
        self,
        thing: Any,
        token: Any,
        name: str,
        given: Sequence[Value],
        named: Mapping[str, Value],
        spread: Tokens,
        at: int,
    ) -> Tokens:
        every = _every(given, named, spread)
        inner = wrapped(thing)
        if is_a(thing, FunctionType):
            if not self.libraries.has_code(thing.__code__):
                frame = self.frame_of(thing)
                self.bind_arguments(frame, given, named, spread)
                return self.returned(frame)
            return self.call_library(thing, given, named, spread, at)
        if is_a(thing, MethodType):
            found: Tokens = _NONE
            for owner in self.of(thing.__self__):
                first = Value(frozenset((owner,)))
                for each in self.of(thing.__func__):
                    found |= self.call_one(each, name, [first, *given], named, spread, at)
            return found
        if is_a(thing, functools.partial):
            own = [Value(self.of(each)) for each in thing.args]
            more = {key: Value(self.of(each)) for key, each in thing.keywords.items()}
            return self.call(
                Value(self.of(thing.func), name), [*own, *given], {**more, **named}, spread, at
            )
        if inner is not None:
            if not is_ours(thing):
                self.decide(every)
            return self.call(Value(self.of(inner), name), given, named, spread, at)
        if is_a(thing, type) and thing not in _BUILTINS:
            return self.call_class(thing, given, named, spread, at)
        if self.is_container(token):  # a method of it
            if name not in _PUTS and given:
                self.decide(given[0].tokens)
            self.put(frozenset((token,)), every | self.items(every))
            if name == "items":
                keys, values = self.of_all(thing.keys()), self.of_all(thing.values())
                more_inside = frozenset(self.inside.get(token, _NONE))
                return rows([keys | more_inside, values | more_inside])
            return self.contents(token) | every
        _, method = in_class(type(thing), "__call__")
        if is_a(method, FunctionType) and not self.libraries.has_code(method.__code__):
            bound = frozenset(("bound", each, token) for each in self.of(method))
            return self.call(Value(bound, "__call__"), given, named, spread, at)
        return self.call_library(thing, given, named, spread, at)

    def call_class(
        self,
        kind: type,
        given: Sequence[Value],
        named: Mapping[str, Value],
        spread: Tokens,
        at: int,
    ) -> Tokens:
        """Return a new object of a class."""
        every = _every(given, named, spread)
        if self.libraries.has_class(kind):
            return self.call_library(kind, given, named, spread, at)
        token = ("made", self.frame.key if self.frame else None, at, id(kind))
        self.classes[token], self.things["class", id(kind)] = kind, kind
        _, method = in_class(kind, "__init__")
        if not is_a(method, FunctionType):  # else that says what becomes of them
            self.put(frozenset((token,)), every)
        own = Value(frozenset((token,)))
        for maker, first in (("__new__", Value(self.of(kind))), ("__init__", own)):
            _, method = in_class(kind, maker)
            method = method.__func__ if is_a(method, staticmethod) else method
            if is_a(method, FunctionType):
                for each in self.of(method):
                    found = self.call_one(each, maker, [first, *given], named, spread, at)
                    self.put(own.tokens, found if maker == "__new__" else _NONE)
        _, method = in_class(type(kind), "__call__")
        if is_a(method, FunctionType):
            self.escape(every)
            return frozenset((token, ANY))
        return own.tokens

    def call_library(
        self,
        thing: Any,
        given: Sequence[Value],
        named: Mapping[str, Value],
        spread: Tokens,
        at: int,
    ) -> Tokens:
        """Return what a function gives that is not followed, of Python's, NumPy's or ours."""
        every = _every(given, named, spread)
        try:
            way = _BUILTINS.get(thing)
        except TypeError:  # it can't be a key
            way = None
        if way is not None:
            return self.call_builtin(way, given, every, at)
        name = getattr(thing, "__name__", "")
        module: Any = getattr(thing, "__module__", None) or type(thing).__module__
        if is_a(thing, FunctionType):  # `functools.wraps` tells the name of another one
            module = thing.__globals__.get("__name__")
        package = module.partition(".")[0] if isinstance(module, str) else ""
        kinds = (np.ufunc, FunctionType, BuiltinFunctionType, type)
        is_numpys = is_a(thing, np.ufunc) or (
            package == "numpy" and (is_a(thing, kinds) or hasattr(thing, "__wrapped__"))
        )
        functions = frozenset(filter(self.is_called, every))
        if is_numpys and not functions:
            if name in _ASKS:
                self.use_all(every)
            self.decide(self.with_contents(every))
            return self.computed(frozenset((NUMBER,)), *_each(given, named, spread))
        if package == "numgrad":
            inner = self.reach(thing)[1] if is_a(thing, FunctionType) else []
            found = set(functions)
            for each in (*functions, *self.of_all(f for f in inner if id(f) in self.known)):
                rest = every - {each}
                found |= self.call_one(each, "", (), {}, rest, at)
            return frozenset(found) | self.call_tensor(name, every - functions)
        self.use_all(every)
        self.escape(every | self.of(thing))
        return frozenset((ANY,))

    def is_called(self, token: Any) -> bool:
        """Whether a token is a function, or an object that is called like one."""
        if token[0] != "is":
            return token[0] in ("code", "bound")
        thing = self.things[token]
        return callable(thing) and not is_a(thing, (type, Tensor))

    def call_builtin(self, way: str, given: Sequence[Value], every: Tokens, at: int) -> Tokens:
        first = given[0].tokens if given else every
        number: Tokens = frozenset((NUMBER,))
        items = self.items(first) if way in ("computed", "compared", "hashed", "next") else _NONE
        if way == "nothing":
            self.measure(every)
            return number
        if way == "same":
            return every
        if way == "type":
            return self.computed(every) & {ANY}
        if way == "computed":
            return self.computed(every | items)
        if way == "decides":
            self.use_all(every)
            return number
        if way in ("compared", "hashed"):
            self.decide(every | items | self.call_all(every, items))
            return every | items if way == "compared" else self.make(at, items)
        if way == "list":
            return self.make(at, self.items(every))
        if way == "next":
            return items | every - first
        if way == "zip":
            return rows([self.items(each.tokens) for each in given])
        if way == "enumerate":
            return rows([number, self.items(first)])
        if way in ("map", "filter"):
            items = frozenset().union(*[self.items(each.tokens) for each in given[1:]])
            found = self.call_all(first, items)
            if way == "filter":
                self.decide(found | items)
            return self.make(at, found if way == "map" else items)
        if way == "super":
            names = self.frame.code.co_varnames
            owner = given[-1].tokens if given else frozenset(self.place(self.frame, names[0]))
            return frozenset(("super", token) for token in owner)
        name = given[1].constant if len(given) > 1 else None
        if isinstance(name, str) and way == "getattr":
            rest = frozenset().union(*[each.tokens for each in given[2:]])
            return self.attribute(first, name) | rest
        self.put(first, every - first)
        return self.unknown(every)

    def call_all(self, functions: Tokens, given: Tokens) -> Tokens:
        """Return what functions among some values give of any items."""
        found: set[Any] = set()
        for token in functions:
            if token[0] != "is" or callable(self.things[token]):
                found |= self.call_one(token, "", [Value(given)] * 2, {}, _NONE, -1)
        return frozenset(found)

    def entered(self, value: Tokens) -> Tokens:
        found: set[Any] = set()
        for token in value:
            if token[0] == "is" and is_ours(self.things[token]):
                continue
            methods = self.attribute(frozenset((token,)), "__enter__")
            found |= self.call(Value(methods, "__enter__"), [], {}, _NONE, -1)
        return frozenset(found)


def _parameters(code: CodeType) -> tuple[str, ...]:
    """Return the names of parameters, but for those that take all the rest."""
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _each(given: Sequence[Value], named: Mapping[str, Value], spread: Tokens) -> list[Tokens]:
    """Return the arguments of a call."""
    found = [each.tokens for each in (*given, *named.values())]
    return [*found, spread] if spread else found


def _every(given: Sequence[Value], named: Mapping[str, Value], spread: Tokens) -> Tokens:
    """Return what any argument of a call may be."""
    return frozenset().union(*_each(given, named, spread))
