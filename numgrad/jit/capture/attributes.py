"""What attributes of values give while code is followed."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from numgrad.graph.tensor import Tensor
from numgrad.jit.capture.contents import Contents
from numgrad.jit.capture.guards import is_a
from numgrad.jit.capture.lookups import CONTAINERS, in_class, own_attributes
from numgrad.jit.capture.meaning import Tokens, Value
from numgrad.jit.capture.origins import wrapped
from numgrad.jit.capture.tensor_names import is_of_tensors
from numgrad.jit.capture.values import ANY, BESIDE, NUMBER, TENSOR
from numgrad.jit.lowering.storage import root_of

__all__ = ["Attributes"]

_NONE: Tokens = frozenset()
_NUMBER: Tokens = frozenset((NUMBER,))
_TENSOR: Tokens = frozenset((TENSOR,))


class Attributes(Contents):
    """What is in the attributes of values."""

    def attribute(self, value: Tokens, name: str) -> Tokens:
        found: set[Any] = set()
        for token in value:
            if len(token) > 1:
                found |= self.read(self.inside[token])
                found |= self.read(self.attributes[token]["" if name == "__dict__" else name])
            if token == ANY:
                found |= self.of_any(name)
            elif token[0] == "of":
                if name in BESIDE:  # of how many elements there are
                    self.decide(frozenset((token,)))
                found.add(NUMBER if name in BESIDE else token)
            elif token == TENSOR:
                found |= _of_tensor(name)
            elif token[0] == "is":
                found |= self.of_object(self.things[token], token, name)
            elif token[0] == "made":
                kind = self.classes.get(token)
                found |= {token} if kind is None else self.of_class(kind, token, name)
            elif token[0] == "super":
                found |= self.of_super(token[1], name)
            else:
                found.add(token)
        return frozenset(found)

    def inherited(self, value: Tokens, name: str) -> Tokens:
        return frozenset().union(*[self.of_super(token, name) for token in value])

    def of_super(self, token: Any, name: str) -> Tokens:
        """Return the methods of all base classes."""
        thing: Any = self.things.get(token)
        kind: type = self.classes.get(token) or (thing if is_a(thing, type) else type(thing))
        found = [self.bind(each.__dict__.get(name), token, each) for each in kind.__mro__]
        return frozenset().union(*found)

    def of_any(self, name: str) -> Tokens:
        if name in BESIDE and not any(name in vars(type(each)) for each in self.owners()):
            return _NUMBER
        self.wake_named(name)  # it may be a property
        return frozenset((ANY,))

    def owners(self) -> Iterator[Any]:
        """Yield objects of which attributes with any names may be asked."""
        for token in self.read(self.objects_escaped):
            yield self.things[token]

    def of_object(self, thing: Any, token: Any, name: str) -> Tokens:
        if is_a(thing, np.ndarray):
            if type(thing) is not np.ndarray:
                self.decide(frozenset((token,)))
            return _NUMBER if name in BESIDE else frozenset((("of", id(root_of(thing))),))
        if is_a(thing, Tensor) and name not in own_attributes(thing):
            return _of_tensor(name)
        if is_a(thing, ModuleType):
            if name in vars(thing):
                return self.of(vars(thing)[name])
            return self.of(sys.modules.get(f"{thing.__name__}.{name}")) or frozenset((ANY,))
        if is_a(thing, type):
            owner, raw = in_class(thing, name)
            if owner is None:
                return self.of_class(type(thing), token, name)
            return self.bind(raw, token, thing) if owner is not object else frozenset((ANY,))
        own = own_attributes(thing)
        if name in own:
            return self.of(own[name])
        if is_a(thing, (functools.partial, MethodType)):
            return self.of(getattr(thing, name, None))
        return self.of_class(type(thing), token, name)

    def of_class(self, kind: type, token: Any, name: str) -> Tokens:
        """Return what an attribute in a class gives for one of its objects."""
        _, asked = in_class(kind, "__getattribute__")
        owner, raw = in_class(kind, name)
        if is_a(asked, FunctionType) and not self.libraries.has_code(asked.__code__):
            self.escape(frozenset((token,)))
            return frozenset((ANY,))
        if owner is None:
            _, maker = in_class(kind, "__getattr__")
            if not is_a(maker, FunctionType):
                return _NONE
            return self.called(maker, [Value(frozenset((token,))), Value()])
        return self.bind(raw, token, kind)

    def bind(self, raw: Any, token: Any, kind: type) -> Tokens:
        """Return what becomes of something in a class for an object, or for the class."""
        thing: Any = self.things.get(token)
        if is_a(raw, staticmethod):
            return self.of(raw.__func__)
        if is_a(raw, classmethod):
            (owner,) = self.of(thing if is_a(thing, type) else kind)
            return frozenset(("bound", each, owner) for each in self.of(raw.__func__))
        if is_a(raw, FunctionType) or wrapped(raw) is not None:
            (function,) = self.of(raw)
            return frozenset((function if thing is kind else ("bound", function, token),))
        if is_a(raw, (property, functools.cached_property)):
            getter = raw.fget if is_a(raw, property) else raw.func
            return self.called(getter, [Value(frozenset((token,)))])
        if not hasattr(type(raw), "__get__"):
            return self.of(raw)
        if is_a(thing, (*CONTAINERS, tuple)) and not is_a(thing, type):
            return frozenset((token,)) | self.items(frozenset((token,)))
        if self.libraries.has_class(kind) and not is_a(thing, type):  # a library's method
            return frozenset((token,))
        self.escape(frozenset((token,)) | self.of(raw))
        return frozenset((ANY,))

    def set_attribute(self, value: Tokens, name: str, given: Tokens) -> None:
        for token in value:
            if token in (ANY, TENSOR):
                self.escape(given)
            elif token[0] in ("is", "made", "code"):
                self.grow(self.attributes[token][name], given)
                self.grow(self.attributes[token][""], given)
                if token in self.escaped:
                    self.escape(given)


def _of_tensor(name: str) -> Tokens:
    """Return what an attribute of a tensor is, or gives if it is a method."""
    if is_of_tensors(name):
        return _TENSOR
    return _NUMBER if hasattr(Tensor, name) else frozenset((ANY,))
