"""What may come of values while bytecode is followed: attributes, items, what NumPy computes.

Tokens: ``("is", id)`` is an object from outside, ``("of", id)`` what NumPy computes from an array,
``("made", ...)`` an object that the code makes, ``("code", ...)`` a function that it makes,
``("bound", function, object)`` a method, ``("super", object)`` what looks methods up in base
classes, ``("row", values)`` a tuple with these values, and ``("rows", values)`` gives such ones.
"""

from __future__ import annotations

import functools
import gc
import sys
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from numgrad.graph.recorder import TracedTensor
from numgrad.graph.tensor import Tensor
from numgrad.jit.front.guards import is_a, is_number, own_dict
from numgrad.jit.front.lookups import CONTAINERS, PLAIN, in_class, own_attributes
from numgrad.jit.front.origins import Libraries, wrapped
from numgrad.jit.front.stack import Tokens, Value
from numgrad.jit.lowering.storage import root_of

__all__ = ["ANY", "BESIDE", "NUMBER", "ROWS", "TENSOR", "Values", "contents_of", "rows"]

ANY: Any = ("any",)  # what is out of sight
TENSOR: Any = ("tensor",)
NUMBER: Any = ("number",)  # or a string, or something else in which there is no array
ROWS = ("row", "rows")
_NONE: Tokens = frozenset()
_NUMBER: Tokens = frozenset((NUMBER,))
_TENSOR: Tokens = frozenset((TENSOR,))
_NO_OPERANDS = (FunctionType, BuiltinFunctionType, MethodType, ModuleType, type, Tensor)

# Attributes that say nothing of the numbers in an array or a tensor.
# fmt: off
BESIDE = frozenset((
    "shape", "ndim", "dtype", "size", "itemsize", "nbytes", "dim", "ndimension", "numel",
    "nelement",
    "element_size", "stride", "strides", "flags", "is_contiguous", "device", "layout",
    "requires_grad", "is_leaf", "is_floating_point", "is_complex", "grad_fn", "__class__",
    "__name__", "__doc__",
))
# fmt: on


class Values:
    """What is known of values.

    Attributes
    ----------
    found : set of int
        The ids of arrays whose numbers Python goes by.
    """

    def __init__(self, libraries: Libraries) -> None:
        self.libraries = libraries
        self.found: set[int] = set()
        self.frame: Any = None  # the function that is followed
        self.things: dict[Any, Any] = {}  # that are from outside
        self.inside: dict[Any, set[Any]] = {}  # what is put in containers
        self.attributes: dict[Any, dict[str, set[Any]]] = {}  # that are set
        self.classes: dict[Any, type] = {}  # of what is made of a class
        self.escaped: set[Any] = set()  # what is out of sight
        self.is_any_used = False  # whether something is gone by that is out of sight
        self.is_changed = False
        self._reached: dict[int, Any] = {}

    def wake(self, function: FunctionType, bound: Sequence[Any]) -> None:
        """Let a function be called with anything."""
        raise NotImplementedError

    def wake_named(self, name: str) -> None:
        """Let functions of that name be called with anything."""
        raise NotImplementedError

    def call_one(
        self,
        token: Any,
        name: str,
        given: Sequence[Value],
        named: Mapping[str, Value],
        spread: Tokens,
        at: int,
    ) -> Tokens:
        """Return what a call of one thing gives."""
        raise NotImplementedError

    def called(self, function: Any, given: Sequence[Value]) -> Tokens:
        """Return what a call of an object from outside gives."""
        found: Tokens = frozenset()
        for token in self.of(function):
            found |= self.call_one(token, "", given, {}, _NONE, -1)
        return found

    def of(self, value: Any) -> Tokens:
        """Return the tokens of an object from outside."""
        if is_number(value) or is_a(value, PLAIN):
            return _NUMBER
        if is_a(value, TracedTensor) or (is_a(value, Tensor) and not own_attributes(value)):
            return _TENSOR
        token = ("is", id(value))
        self.things[token] = value
        return frozenset((token,))

    def grow(self, place: set[Any], given: Iterable[Any]) -> None:
        before = len(place)
        place.update(given)
        self.is_changed |= len(place) > before

    # --- what is gone by --------------------------------------------------------------------------

    def decide(self, value: Iterable[Any]) -> None:
        for token in value:
            if token == ANY:
                self.is_any_used = True
            elif token[0] == "of":
                self.found.add(token[1])
            elif token[0] == "is" and is_a(self.things[token], np.ndarray):
                self.found.add(id(root_of(self.things[token])))
            elif token[0] in ROWS:
                self.decide(frozenset().union(*token[1]))

    def use(self, token: Any) -> None:
        """Note that all is gone by that is in something."""
        self.decide(frozenset((token,)))
        if token[0] == "is":
            for array in self.reach(self.things[token])[0]:
                self.found.add(id(root_of(array)))
        elif token[0] in ROWS:
            for each in frozenset().union(*token[1]):
                self.use(each)

    def use_all(self, value: Tokens) -> None:
        seen: set[Any] = set()
        todo = list(value)
        while todo:
            token = todo.pop()
            if token not in seen:
                seen.add(token)
                self.use(token)
                todo += [*self.inside.get(token, ()), *self.in_attributes(token)]

    def escape(self, value: Tokens) -> None:
        """Note that something went out of sight: it may be given to anything."""
        todo = list(value)
        while todo:
            token = todo.pop()
            if token in self.escaped or len(token) == 1:
                continue
            self.escaped.add(token)
            self.is_changed = True
            todo += [*self.inside.get(token, ()), *self.in_attributes(token)]
            if token[0] == "is":
                for function in self.reach(self.things[token])[1]:
                    self.wake(function, ())
            elif token[0] == "code":
                self.call_one(token, "", [], {}, frozenset((ANY,)), -1)
            elif token[0] in ("bound", "super"):
                todo += token[1:]
            elif token[0] in ROWS:
                todo += frozenset().union(*token[1])

    def reach(self, value: Any) -> tuple[list[Any], list[FunctionType]]:
        """Return the arrays and the functions in an object."""
        known = self._reached.get(id(value))
        if known is not None:
            return known[1:]
        arrays: list[Any] = []
        functions: list[FunctionType] = []
        seen: dict[int, Any] = {}
        todo = [value]
        while todo:
            each = todo.pop()
            if id(each) in seen or is_number(each) or is_a(each, (*PLAIN, ModuleType)):
                continue
            seen[id(each)] = each
            if is_a(each, np.ndarray):
                arrays.append(each)
                todo += each.flat if each.dtype.kind == "O" else ()
            elif is_a(each, FunctionType):
                functions.append(each)
                todo += [*(each.__defaults__ or ()), *(each.__kwdefaults__ or {}).values()]
                todo += [*own_dict(each).values(), *contents_of(each.__closure__)]
            elif is_a(each, type):
                if not self.libraries.has_class(each):
                    todo += each.__dict__.values()
            elif is_a(each, (weakref.ref, ContextVar)):
                todo.append(each() if is_a(each, weakref.ref) else each.get(None))
            elif is_a(each, Tensor):
                todo += own_attributes(each).values()
            else:
                todo += gc.get_referents(each)
        self._reached[id(value)] = (value, arrays, functions)
        return arrays, functions

    # --- attributes and items ---------------------------------------------------------------------

    def attribute(self, value: Tokens, name: str) -> Tokens:
        found: set[Any] = set()
        for token in value:
            found |= self.inside.get(token, _NONE)
            known = self.attributes.get(token, {})
            found |= self.in_attributes(token) if name == "__dict__" else known.get(name, _NONE)
            if token == ANY:
                found |= self.of_any(name)
            elif token[0] == "of":
                if name in BESIDE:  # of how many elements there are
                    self.decide(frozenset((token,)))
                found.add(NUMBER if name in BESIDE else token)
            elif token == TENSOR:
                found.add(NUMBER if name in BESIDE else token)
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

    def in_attributes(self, token: Any) -> Tokens:
        """Return what was put in any attribute."""
        return frozenset().union(*self.attributes.get(token, {}).values())

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
        for token in self.escaped:
            if token[0] == "is" and not is_a(self.things[token], (np.ndarray, Tensor)):
                yield self.things[token]

    def of_object(self, thing: Any, token: Any, name: str) -> Tokens:
        if is_a(thing, np.ndarray):
            if type(thing) is not np.ndarray:
                self.decide(frozenset((token,)))
            return _NUMBER if name in BESIDE else frozenset((("of", id(root_of(thing))),))
        if is_a(thing, Tensor) and name not in own_attributes(thing):
            return _NUMBER if name in BESIDE else _TENSOR
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
            if token == ANY:
                self.escape(given)
            elif token[0] in ("is", "made", "code"):
                names = self.attributes.setdefault(token, {})
                self.grow(names.setdefault(name, set()), given)
                if token in self.escaped:
                    self.escape(given)

    def put(self, value: Tokens, given: Tokens) -> None:
        for token in value:
            if token == ANY:
                self.escape(given)
            elif token[0] in ("is", "made", "code"):
                self.grow(self.inside.setdefault(token, set()), given)
                if token in self.escaped:
                    self.escape(given)

    def make(self, at: int, given: Tokens) -> Tokens:
        token = ("made", self.frame.key, at)
        self.grow(self.inside.setdefault(token, set()), given)
        return frozenset((token,))

    def entry(self, value: Tokens, key: Value) -> Tokens:
        thing: Any
        for token in key.tokens:
            thing = self.things.get(token)
            if not is_a(thing, np.ndarray) or not thing.ndim:
                self.decide(frozenset((token,)))
        found: set[Any] = set()
        for token in value:
            thing = self.things.get(token)
            if type(thing) in (list, tuple, dict) and type(key.constant) in (int, str):
                found |= self.inside.get(token, _NONE)
                try:
                    found |= self.of(thing[key.constant])
                except (LookupError, TypeError):  # it is the key of another container
                    continue
            else:
                found |= self.contents(token) | self.special(token, "__getitem__", [key])
        return frozenset(found)

    def items(self, value: Tokens) -> Tokens:
        found: set[Any] = set()
        for token in value:
            if token[0] == "rows":
                found.add(("row", token[1]))
            else:
                found |= self.contents(token) | self.special(token, "__iter__", [])
        return frozenset(found)

    def contents(self, token: Any) -> Tokens:
        """Return what may come out of something, and views of it."""
        found = self.inside.get(token, _NONE)
        if len(token) == 1:
            return frozenset((token,))
        if token[0] == "of":
            self.decide(frozenset((token,)))  # by how many there are
            return frozenset((*found, token))
        if token[0] in ROWS:
            return frozenset((*found, *frozenset().union(*token[1])))
        if token[0] == "made":
            return frozenset((*found, token))
        thing: Any = self.things.get(token)
        if is_a(thing, np.ndarray):
            views = {token, ("of", id(root_of(thing)))}
            things = thing.flat if thing.dtype.kind == "O" else ()
            return frozenset((*found, *views, *self.of_all(things)))
        if is_a(thing, dict):
            return frozenset((*found, token, *self.of_all([*thing.keys(), *thing.values()])))
        if is_a(thing, (*CONTAINERS, tuple, frozenset)):
            return frozenset((*found, token, *self.of_all(thing)))
        return frozenset(found)

    def of_all(self, values: Iterable[Any]) -> Tokens:
        return frozenset().union(*map(self.of, values))

    def special(self, token: Any, name: str, given: Sequence[Value]) -> Tokens:
        """Return what a method gives that Python itself calls."""
        thing: Any = self.things.get(token)
        if token[0] not in ("is", "made") or is_a(thing, (np.ndarray, *CONTAINERS, tuple)):
            return _NONE
        kind = self.classes.get(token) or type(thing)
        if token[0] == "made" and token not in self.classes:
            return _NONE
        _, method = in_class(kind, name)
        if is_a(method, FunctionType) and not self.libraries.has_code(method.__code__):
            found = self.called(method, [Value(frozenset((token,))), *given])
            return found if name == "__getitem__" else found | self.items(found) | {ANY}
        self.escape(frozenset((token,)))
        return frozenset((ANY,))

    def unpack(self, value: Tokens, count: int) -> Sequence[Tokens]:
        rows = [token for token in value if token[0] == "row" and len(token[1]) == count]
        rest = self.items(frozenset(value) - frozenset(rows))
        return [rest.union(*[row[1][k] for row in rows]) for k in range(count)]

    def find(self, value: Value, container: Tokens) -> None:
        if not isinstance(value.constant, str):
            self.decide(value.tokens | container)
            self.decide(self.with_contents(container))

    def measure(self, value: Tokens) -> None:
        self.decide(frozenset(token for token in value if token[0] == "of"))

    # --- what is computed -------------------------------------------------------------------------

    def computed(self, *values: Tokens) -> Tokens:
        if any(map(self.is_tensor, values)):
            return _TENSOR
        if not all(values):  # nothing has been found yet
            return _NONE
        found: set[Any] = set()
        for token in self.with_contents(frozenset().union(*values)):
            thing: Any = self.things.get(token)
            if is_a(thing, np.ndarray):
                found.add(("of", id(root_of(thing))))
            elif token[0] == "of" or len(token) == 1:
                found.add(token)
            elif token[0] in ROWS or self.is_container(token):
                self.decide(frozenset().union(*values))  # it may be repeated
                found.add(token)
            elif token in self.classes or (token[0] == "is" and not is_a(thing, _NO_OPERANDS)):
                self.escape(frozenset((token,)))
                found.add(ANY)
        return frozenset(found)

    def is_tensor(self, value: Tokens) -> bool:
        """Whether a value is a tensor, and can't be anything else."""
        return bool(value) and all(
            token == TENSOR or is_a(self.things.get(token), Tensor) for token in value
        )

    def with_contents(self, value: Iterable[Any]) -> set[Any]:
        """Return values with all that is in containers among them."""
        found: set[Any] = set()
        todo = list(value)
        while todo:
            token = todo.pop()
            if token not in found:
                found.add(token)
                if token[0] in ROWS or self.is_container(token):
                    todo += self.contents(token)
        return found

    def is_container(self, token: Any) -> bool:
        """Whether something is a container of Python's."""
        if token[0] == "made":
            return token not in self.classes
        return is_a(self.things.get(token), (*CONTAINERS, tuple, frozenset))

    def unknown(self, value: Tokens) -> Tokens:
        self.escape(value)
        return frozenset((ANY,))


def rows(parts: Sequence[Tokens]) -> Tokens:
    """Return what gives tuples with such values; of nested ones the places are not told apart."""
    flat = [frozenset().union(*[_flat(token) for token in part]) for part in parts]
    return frozenset((("rows", tuple(flat)),))


def _flat(token: Any, depth: int = 0) -> Tokens:
    """Return a tuple in a tuple as it is, and what is in one further inside."""
    if token[0] not in ROWS:
        return frozenset((token,))
    if depth:
        return frozenset().union(*[_flat(each, depth) for part in token[1] for each in part])
    parts = [frozenset().union(*[_flat(each, 1) for each in part]) for part in token[1]]
    return frozenset(((token[0], tuple(parts)),))


def contents_of(cells: Iterable[CellType] | None) -> Iterator[Any]:
    """Yield what variables of enclosing functions hold."""
    for cell in cells or ():
        try:
            yield cell.cell_contents
        except ValueError:  # it is not bound yet
            continue
