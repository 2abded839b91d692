"""Attributes and entries that a traced function looks up, and what has to stay for that."""

from __future__ import annotations

import abc
import functools
import gc
import os
from collections import deque
from collections.abc import Callable
from types import CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np

from numgrad.graph.recorder import TraceError
from numgrad.graph.tensor import Tensor, is_inference
from numgrad.jit.capture.guards import Guards, is_a, is_number, is_set, own_dict, slots_of
from numgrad.jit.capture.origins import Libraries, behind, refuse_source, wrapped
from numgrad.jit.lowering.storage import root_of
from numgrad.runtime.frames import where_user_is

__all__ = ["CONTAINERS", "PLAIN", "STOP", "Lookups", "in_class", "is_users", "own_attributes"]

CONTAINERS = (list, dict, set, deque)
PLAIN = (type(None), type(...), type(NotImplemented), bool, range, slice, np.dtype, CodeType)
_CACHED = type(functools.lru_cache(len))
STOP: Any = object()  # where a chain cannot be followed, or ends

_WRITES = frozenset(("append", "add", "extend", "appendleft"))  # that read nothing
_SHAPES = frozenset(("shape", "ndim", "dtype", "size", "itemsize", "nbytes"))
# What NumPy lets one set of an array that stays the same object.
_LIES = _SHAPES | frozenset(("strides", "flags"))
# What of an array reads no numbers.
_VIEWS = _SHAPES | frozenset(
    ("T", "mT", "real", "imag", "reshape", "transpose", "swapaxes", "view", "squeeze", "diagonal")
)
_GETATTRIBUTE = (object.__getattribute__, type.__getattribute__, ModuleType.__getattribute__)


class Lookups:
    """Following attributes and entries; what they come by is noted as conditions.

    Attributes
    ----------
    guards : Guards
    libraries : Libraries
    computed : dict
        Arrays of which NumPy computes something, by the id of the array whose memory it is.
    """

    def __init__(self, libraries: Libraries) -> None:
        self.guards = Guards()
        self.libraries = libraries
        self.computed: dict[int, Any] = {}

    def visit(self, value: Any, label: str) -> None:
        """Look at a value as a whole."""
        raise NotImplementedError

    def visit_function(self, function: FunctionType, label: str, *bound: Any) -> None:
        """Look at what a function takes from outside, of which the first arguments are known."""
        raise NotImplementedError

    def visit_method(self, function: Any, owner: Any, label: str) -> None:
        """Look at a function whose first argument is known."""
        while wrapped(function) is not None and not is_a(function, FunctionType):
            self.watch_results(function, label)
            function = wrapped(function)
        if not is_a(function, FunctionType) or self.libraries.has_code(function.__code__):
            self.visit(function, label)
            self.visit(owner, label)
        else:
            self.visit_function(function, label, owner)

    def watch_results(self, value: Any, label: str) -> None:
        """Watch the results that `functools.lru_cache` keeps: what is computed anew may differ.

        Those that are made while the function is traced are what is computed anew. The results
        stand in a dict of the cache's own, which is emptied in place.
        """
        if not is_a(value, _CACHED):
            return
        for inside in gc.get_referents(value):
            if type(inside) is dict and inside is not own_dict(value) and inside:
                held = tuple(inside), tuple(inside.values())
                name = f"what {label} keeps of earlier calls"
                self.guards.add(name, "begins_with({o}, {v})", inside, held)

    def watch_registered(self, value: Any, label: str) -> None:
        """Watch what else counts as an instance of an abstract class: of this one or any other."""
        if is_a(value, abc.ABCMeta):
            name = f"what is registered with {label}"
            self.guards.add(name, "{o}() == {v}", abc.get_cache_token, abc.get_cache_token())

    # --- attributes -------------------------------------------------------------------------------

    def attribute(self, value: Any, name: str, label: str) -> Any:
        """Return an attribute that is read, and watch it."""
        here = f"{label}.{name}"
        value = behind(value)
        if is_a(value, MethodType):
            if name == "__self__":
                return value.__self__
            value = value.__func__  # which has what a method is asked for
            if name == "__func__":
                return value
        refuse_source(value, label)
        if name == "__dict__" and is_a(value, (type, ModuleType)):
            self.visit(value, label)
            return STOP
        if is_a(value, ModuleType):
            return self._of_module(value, name, here)
        if is_a(value, np.ndarray):
            if name not in _VIEWS:
                self.computed[id(root_of(value))] = root_of(value)
            if name in _LIES and type(value) is np.ndarray:  # else it may ask code of a user's
                text = "{o}.flags.writeable" if name == "flags" else f"{{o}}.{name}"
                now = value.flags.writeable if name == "flags" else getattr(value, name)
                self.guards.add(here, f"{text} == {{v}}", value, now)
            if name in _SHAPES:
                return STOP
        if is_a(value, CONTAINERS) and name in _WRITES:
            return STOP
        if is_a(value, Tensor):
            self.visit(value, label)
            if name == "grad":
                self.guards.add(here, "{o}._grad is {v}", value, value._grad)
                return value._grad
            if name == "_version" and not is_inference(value):
                self.guards.add(here, "{o}._counter[0] == {v}", value, value._version)
            if name == "__dict__":
                self.visit(own_dict(value), here)
            elif name not in own_dict(value) and in_class(type(value), name)[0] is None:
                self.guards.add(here, "not has_own({o}, {k})", value, key=name)
            name = name if name in own_dict(value) else ""
        is_whole = is_a(value, (*PLAIN, *CONTAINERS, np.ndarray)) and name not in own_dict(value)
        owner = in_class(type(value), name)[0] if is_whole else None
        if is_a(value, np.ndarray) and owner is not None and self.libraries.has_class(owner):
            owner = None
        if is_whole and not is_a(value, PLAIN) and is_users(owner):
            self.visit(value, label)
            is_whole = False
        if is_number(value) or is_whole or not name:
            self.visit(value, label)
            return STOP
        return self._of_object(value, name, here)

    def _of_module(self, module: ModuleType, name: str, label: str) -> Any:
        found = vars(module).get(name, STOP)
        if not self.libraries.has_module(module):
            if found is not STOP:
                self.guards.add(label, f"{{o}}.{name} is {{v}}", module, found)
            else:
                self.guards.add(label, "{k} not in {o}.__dict__", module, key=name)
                self.visit(vars(module).get("__getattr__"), label)
            return found
        refuse_source(getattr(found, "__self__", None), label)
        self.watch_registered(found, label)
        self.watch_environment(found, label)
        return found if is_a(found, ModuleType) else STOP

    def watch_environment(self, value: Any, label: str) -> None:
        """Watch the environment, which programs set while they run, in all that reads it."""
        if value is os.environ or value is os.getenv:
            # The dict that it reads, of which Python's types say nothing.
            self.visit(os.environ._data, label)  # type: ignore[attr-defined]

    def _of_object(self, value: Any, name: str, label: str) -> Any:
        kind = type(value)
        owner, asked = in_class(kind, "__getattribute__")
        if asked not in _GETATTRIBUTE and is_a(asked, FunctionType):
            self.visit_method(asked, value, label)
            self.visit(own_dict(value), label)
            return STOP
        if not issubclass(kind, type):
            return self._of_instance(value, name, label)
        if self.libraries.has_class(value):
            return STOP
        owner, raw = in_class(value, name)
        if owner is None or _is_data_descriptor(in_class(kind, name)[1]):
            return self._of_instance(value, name, label)  # of the metaclass
        return self._of_class(value, owner, name, raw, label)

    def _of_instance(self, value: Any, name: str, label: str) -> Any:
        owner, raw = in_class(type(value), name)
        own = own_attributes(value)
        text = f"{{o}}.{name} is {{v}}"
        if name in own and (type(raw) is MemberDescriptorType or not _is_data_descriptor(raw)):
            self.guards.add(label, text, value, own[name])
            return own[name]
        if owner is None or type(raw) is MemberDescriptorType:  # a slot with nothing in it
            return self._missing(value, name, label)
        if is_a(raw, staticmethod):
            self.guards.add(label, text, value, raw.__func__)
            return raw.__func__
        if not hasattr(type(raw), "__get__") and wrapped(raw) is None:
            self.guards.add(label, text, value, raw)
            return raw
        if _is_data_descriptor(raw) and not _is_written(raw):
            return self._asked(value, f"{{o}}.{name}", label, lambda: getattr(value, name))
        if is_a(raw, FunctionType):
            self.guards.add(label, f"{{o}}.{name}.__func__ is {{v}}", value, raw)
            self._bind(raw, value, label)
            return MethodType(raw, value)
        self._watch_classes(type(value), owner, name, raw, label)
        if not _is_data_descriptor(raw):
            self.guards.add(label, "not has_own({o}, {k})", value, key=name)
        self._bind(raw, value, label)
        return STOP

    def _bind(self, raw: Any, value: Any, label: str) -> None:
        """Look at what is done when something in a class is asked for by an instance."""
        if is_a(raw, FunctionType) or wrapped(raw) is not None:
            self.visit_method(raw, value, label)
        elif is_a(raw, classmethod):
            self.visit_method(raw.__func__, type(value), label)
        elif is_a(raw, property):
            self.visit_method(raw.fget, value, label)
        elif is_a(raw, functools.cached_property):
            self.visit_method(raw.func, value, label)
        elif is_a(raw, functools.singledispatchmethod):
            self.visit(raw.dispatcher, label)
            for function in raw.dispatcher.registry.values():
                self.visit_method(function, value, label)
        else:
            _, get = in_class(type(raw), "__get__")
            if is_a(get, FunctionType) and not self.libraries.has_code(get.__code__):
                self.visit_function(get, label, raw, value, type(value))
            self.visit(raw, label)
            self.visit(value, label)

    def _of_class(self, value: type, owner: type, name: str, raw: Any, label: str) -> Any:
        if is_a(raw, classmethod):
            self.guards.add(label, f"{{o}}.{name}.__func__ is {{v}}", value, raw.__func__)
            self.visit_method(raw.__func__, value, label)
            return STOP
        if is_a(raw, (staticmethod, FunctionType)) or not hasattr(type(raw), "__get__"):
            found = raw.__func__ if is_a(raw, staticmethod) else raw
            self.guards.add(label, f"{{o}}.{name} is {{v}}", value, found)
            return found
        self._watch_classes(value, owner, name, raw, label)
        _, get = in_class(type(raw), "__get__")
        if is_a(get, FunctionType) and not self.libraries.has_code(get.__code__):
            self.visit_function(get, label, raw, None, value)
            self.visit(raw, label)
            return STOP
        return raw

    def watch_class(self, owner: type, name: str, raw: Any, label: str) -> None:
        """Note what is in a class under a name, if it is a user's."""
        if not self.libraries.has_class(owner):
            self.guards.add(label, "{o}.__dict__[{k}] is {v}", owner, raw, name)

    def _watch_classes(self, of_class: type, owner: type, name: str, raw: Any, label: str) -> None:
        """Note where in the bases of a class something is found, and where it is not."""
        for each in of_class.__mro__[: of_class.__mro__.index(owner)]:
            if not self.libraries.has_class(each):
                self.guards.add(label, "{k} not in {o}.__dict__", each, key=name)
        self.watch_class(owner, name, raw, label)

    def _missing(self, value: Any, name: str, label: str) -> Any:
        """Watch an attribute that is not there, or is made when it is asked for."""
        _, maker = in_class(type(value), "__getattr__")
        if is_a(maker, FunctionType) and not self.libraries.has_code(maker.__code__):
            for each in (*(value.__mro__ if is_a(value, type) else ()), *type(value).__mro__):
                if not self.libraries.has_class(each):
                    self.guards.add(label, "{k} not in {o}.__dict__", each, key=name)
            if not is_a(value, type):
                self.guards.add(label, "not has_own({o}, {k})", value, key=name)
            self.visit_function(maker, label, value)
            self.visit(value, label)
            return STOP
        if maker is not None:
            return self._asked(value, f"{{o}}.{name}", label, lambda: getattr(value, name))
        self.guards.add(label, "not hasattr({o}, {k})", value, key=name)
        return STOP

    def _asked(
        self, value: Any, text: str, label: str, ask: Callable[[], Any], key: Any = None
    ) -> Any:
        """Watch what a library computes when it is asked, by asking."""
        try:
            found, again = ask(), ask()
        except (AttributeError, LookupError, TypeError, ValueError):  # not in each call, perhaps
            self.visit(value, label)
            return STOP
        if callable(found):
            self.visit(found, label)
            return STOP
        if found is again or is_number(found):
            self.guards.add(label, f"{text} is {{v}}", value, found, key)
            return found
        if type(found).__hash__ is not None and found == again:
            self.guards.add(label, f"same_value({text}, {{v}})", value, found, key)
            return STOP
        raise TraceError(
            f"{where_user_is()}jit: {label}, of type {type(found).__name__}, is made anew whenever "
            "it is asked for, so that a change of it could not be noticed: pass it as an argument"
        )

    # --- entries ----------------------------------------------------------------------------------

    def entry(self, value: Any, key: Any, label: str) -> Any:
        """Return an entry that is read, and watch it."""
        here = f"{label}[{key!r}]"
        value = behind(value)
        kind = type(value)
        if issubclass(kind, tuple) and kind.__getitem__ is tuple.__getitem__:
            return value[key] if _has(value, key) else STOP
        is_array = issubclass(kind, np.ndarray) and _has(value, key)
        if is_array and is_a(value[key], np.generic):
            self.guards.add(here, "{o}[{k}] is {v}", value, value[key], key)
            return STOP
        plain = [each for each in CONTAINERS if issubclass(kind, each)]
        if plain and kind.__getitem__ is getattr(plain[0], "__getitem__", None):
            if isinstance(key, slice):
                return value
            if issubclass(kind, dict) and key not in value:
                self.guards.add(here, "{k} not in {o}", value, key=key)
                if hasattr(kind, "__missing__"):
                    self.visit(value, label)
                return STOP
            if _has(value, key):
                self.guards.add(here, "{o}[{k}] is {v}", value, value[key], key)
                return value[key]
        getter = getattr(kind, "__getitem__", None)
        looked_into = (Tensor, np.ndarray, *CONTAINERS, type, str, bytes)
        if issubclass(kind, looked_into) or is_a(getter, FunctionType) or getter is None:
            self.visit(value, label)
            return STOP
        return self._asked(value, "{o}[{k}]", here, lambda: value[key], key)

    def length(self, value: Any, label: str) -> None:
        """Watch how much there is in a container of which nothing else is read."""
        if type(value) in CONTAINERS:
            self.guards.add(f"the length of {label}", "len({o}) == {v}", value, len(value))
        elif type(value) is not tuple:
            self.visit(value, label)


def own_attributes(value: Any) -> dict[str, Any]:
    """Return the attributes that an object itself has."""
    if is_a(value, type):
        return {}
    found = dict(own_dict(value))
    for name, slot in slots_of(value).items():
        if is_set(slot, value):
            found[name] = slot.__get__(value)
    return found


def in_class(owner: type, name: str) -> tuple[Any, Any]:
    """Return the class that defines an attribute, and what is there; None twice if none does."""
    for each in owner.__mro__:
        if name in each.__dict__:
            return each, each.__dict__[name]
    return None, None


def is_users(kind: Any) -> bool:
    """Whether a class is neither Python's nor of its standard containers."""
    return kind is not None and kind.__module__ not in ("builtins", "collections")


def _is_data_descriptor(raw: Any) -> bool:
    kind = type(raw)
    return hasattr(kind, "__get__") and (hasattr(kind, "__set__") or hasattr(kind, "__delete__"))


def _is_written(raw: Any) -> bool:
    """Whether it is Python code that is run when this descriptor is asked."""
    if is_a(raw, property):
        return is_a(raw.fget, FunctionType) or wrapped(raw.fget) is not None
    return is_a(in_class(type(raw), "__get__")[1], FunctionType)


def _has(value: Any, key: Any) -> bool:
    try:
        value[key]
    except (LookupError, TypeError):
        return False
    return True
