"""What calls give while code is followed: of functions, methods, classes, and other objects."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from types import CodeType, FunctionType, MethodType
from typing import Any

from numgrad.jit.capture.contents import rows
from numgrad.jit.capture.frames import each_of, every_of
from numgrad.jit.capture.guards import is_a
from numgrad.jit.capture.library_calls import BUILTINS, OF_ARRAYS, LibraryCalls
from numgrad.jit.capture.lookups import in_class
from numgrad.jit.capture.meaning import Tokens, Value
from numgrad.jit.capture.origins import is_ours, wrapped
from numgrad.jit.capture.tensor_names import is_of_tensors
from numgrad.jit.capture.values import ANY, NUMBER, TENSOR

__all__ = ["Calls"]

_NONE: Tokens = frozenset()
# Methods of containers that compare nothing.
_PUTS = frozenset(("append", "appendleft", "extend", "extendleft", "values", "keys", "items"))


class Calls(LibraryCalls):
    """What calls give."""

    def call(
        self,
        function: Value,
        given: Sequence[Value],
        named: Mapping[str, Value],
        spread: Tokens,
        at: int,
    ) -> Tokens:
        if not function.tokens and not function.name:
            return self.unknown(every_of(given, named, spread))
        found: set[Any] = set()
        for token in function.tokens:
            found |= self.call_one(token, function.name, given, named, spread, at)
        return frozenset(found)

    def call_one(
        self,
        token: Any,
        name: str,
        given: Sequence[Value],
        named: Mapping[str, Value],
        spread: Tokens,
        at: int,
    ) -> Tokens:
        every = every_of(given, named, spread)
        if token[0] == "code":
            frame = self.frame_of_made(token)
            rest = _parameters(frame.code)[len(given) :]
            defaults = Value(self.read(self.inside[token]))
            more = {each: defaults for each in rest if each not in named}
            self.bind_arguments(frame, given, {**more, **named}, spread)
            if ANY in spread:
                self.let_out(frame)
            return self.returned(frame)
        if token[0] == "bound":
            first = Value(frozenset((token[2],)))
            return self.call_one(token[1], name, [first, *given], named, spread, at)
        if token[0] == "of":
            if name not in OF_ARRAYS and not is_of_tensors(name):
                self.decide(frozenset((token,)))
                self.use_all(every)
            return self.computed(frozenset((token,)), *each_of(given, named, spread))
        if token[0] == "is":
            return self.call_object(self.things[token], token, name, given, named, spread, at)
        if token[0] == "made":
            return self.call_made(token, name, given, every)
        if token == ANY:
            return self.call_any(name, every)
        if token == TENSOR:
            self.call_ours(every)
            return frozenset((TENSOR,))
        if token == NUMBER:  # a method of a string, say
            self.use_all(every)
            self.escape(every)
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
        every = every_of(given, named, spread)
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
        if is_a(thing, type) and thing not in BUILTINS:
            return self.call_class(thing, given, named, spread, at)
        if self.is_container(token):  # a method of it
            if name not in _PUTS and given:
                self.decide(given[0].tokens)
            self.put(frozenset((token,)), every | self.items(every))
            if name == "items" and is_a(thing, dict):
                keys, values = self.of_all(thing.keys()), self.of_all(thing.values())
                more_inside = self.read(self.inside[token])
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
        every = every_of(given, named, spread)
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
