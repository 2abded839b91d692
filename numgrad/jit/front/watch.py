"""Watch what a traced function reads from outside: a change means another trace.

A trace has in it whatever the function found: numbers, which tensors, of what length. So before it
runs, what its code may read is looked for, from its global names, the variables of enclosing
functions, defaults, bound objects and static arguments on, through attributes, entries, methods,
properties and the functions that it calls (see `numgrad.jit.capture.reads`). What is found on that
way is a condition of the trace. An object that goes somewhere is looked at as a whole: containers
with all that is in them, objects with each attribute whose name occurs in the code.

The code of libraries is not looked into, and their modules are taken to be what they are; their
containers are, and what holds one thing, as references and context variables do.
"""

from __future__ import annotations

import array as packed
import builtins
import dataclasses
import functools
import gc
import operator
import sys
import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from contextvars import ContextVar
from types import (
    BuiltinFunctionType,
    CellType,
    FunctionType,
    MappingProxyType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import TYPE_CHECKING, Any

import numpy as np

from numgrad.graph.recorder import TracedTensor
from numgrad.graph.tensor import Tensor
from numgrad.jit.capture.array_lookups import ArrayLookups, differ, numbers_of
from numgrad.jit.capture.flows import arrays_gone_by
from numgrad.jit.capture.guards import is_a, is_number, own_dict, slots_of
from numgrad.jit.capture.lookups import CONTAINERS, PLAIN, STOP, is_users, own_attributes
from numgrad.jit.capture.origins import (
    Libraries,
    behind,
    is_ours,
    refuse_blind,
    refuse_source,
    wrapped,
)
from numgrad.jit.capture.reads import BLIND, Chain, reads_of
from numgrad.jit.lowering.storage import root_of

if TYPE_CHECKING:
    from numgrad.jit.front.trace_function import Trace

__all__ = ["UNBOUND", "Watch", "contents_of"]

# What looks attributes up by names that the code does not show.
# fmt: off
_REFLECTIVE = frozenset((
    "getattr", "hasattr", "vars", "dir", "__dict__", "__getattr__", "__getattribute__",
    "attrgetter", "methodcaller", "AttributeError", "asdict", "astuple", "fields", "replace",
    "copy", "deepcopy", "locals",
))
# fmt: on
_OF_CLASSES = frozenset(("vars", "dir", "__dict__"))  # and what is in a class
_BLIND = tuple(getattr(builtins, name) for name in BLIND)
_BY_NAME = (operator.attrgetter, operator.methodcaller)
_BYTES = (bytearray, memoryview, packed.array)  # of numbers
_ON_OTHERS: tuple[type, ...] = (
    MappingProxyType,
    type({}.keys()),
    type({}.values()),
    type({}.items()),
)
_HOLDERS = ((weakref.ref, "{o}() is {v}"), (ContextVar, "{o}.get(None) is {v}"))
UNBOUND: Any = object()  # what a variable holds that is not bound


class Watch(ArrayLookups):
    """What one trace of a function depends on.

    Parameters
    ----------
    function : callable
    static : iterable
        Its static arguments.
    libraries : Libraries, optional
        Whose code is not looked into; by default as the function says.

    Attributes
    ----------
    tensors : list
        Tensors that may be read, each with the array it stood on, and how it hung in the graph.
    baked : dict
        Arrays whose numbers the trace goes by (masks, say), and what they held; by id.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        static: Iterable[Any] = (),
        libraries: Libraries | None = None,
    ) -> None:
        super().__init__(libraries or Libraries(function))
        self.tensors: list[tuple[Tensor, Any, Any]] = []
        self.baked: dict[int, tuple[Any, Any]] = {}
        self._seen: dict[Any, Any] = {}  # the values keep alive what the ids are of
        self._numbers: dict[int, Any] = {}  # of NumPy's
        self._words: set[str] = set()
        self._functions: list[tuple[FunctionType, tuple[Any, ...]]] = []  # that may be called
        self._begins_with = function, tuple(static)
        self.visit(function, own_dict(function).get("__name__", "the function"))
        for argument in self._begins_with[1]:
            self.visit(argument, "a static argument")
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
        return any(differ(array, held) for array, held in self.baked.values())

    def settle(self, trace: Trace, others: Iterable[Watch]) -> None:
        """Note the numbers that a trace went by; what others hold of them is not copied again.

        Those of an array that was copied, or that the graph does not read: NumPy has computed with
        that, or may have. Where an operation was given an array or a number that stands nowhere,
        NumPy has computed that, of any array that there is. And those that became Python's numbers
        or decided something, which their operations do not tell.
        """
        self.baked |= trace.baked
        found = (v.attributes["array"] for v in trace.graph.values() if v.operation == "array")
        read = {id(root_of(array)) for array in found} - self.computed.keys() - trace.copied.keys()
        if not self._known().issuperset((*trace.copied, *trace.given)):
            read = set()
        if any(id(root_of(array)) in read for array in self.arrays.values()):
            gone_by = arrays_gone_by(self.libraries, *self._begins_with, self._functions)
            read = set() if gone_by is None else read - gone_by
        for array in self.arrays.values():
            if id(root_of(array)) not in read and array.dtype.kind != "O":
                self.baked.setdefault(id(array), (array, numbers_of(array).copy()))
        for tensor, array, _ in self.tensors:
            if id(root_of(array)) in trace.copied and tensor._array is array:
                self.baked.setdefault(id(array), (array, numbers_of(array).copy()))
        for key, pair in self.baked.items():
            known = [each.baked[key] for each in others if key in each.baked]
            same = [each for each in known if each[0] is pair[0] and not differ(each[1], pair[1])]
            self.baked[key] = same[0] if same else pair

    def _known(self) -> set[int]:
        """Return the ids of the numbers of NumPy's and of the memory that were there before."""
        arrays = [*self.arrays.values(), *(array for _, array, _ in self.tensors)]
        return {id(root_of(array)) for array in arrays} | self._numbers.keys()

    # --- looking at values ------------------------------------------------------------------------

    def visit(self, value: Any, label: str) -> None:
        """Look at a value as a whole."""
        value = behind(value)
        if is_a(value, str):  # it may be the name of an attribute
            self._words.update(value.split(".") if len(value) < 80 else ())
        if is_a(value, np.generic):
            self._numbers[id(value)] = value
        if is_number(value) or is_a(value, PLAIN) or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if is_a(value, TracedTensor):  # it has left a function, and is of no use
            return
        if is_a(value, Tensor):
            self._visit_tensor(value)
        elif is_a(value, np.ndarray):
            self.visit_array(value, label)
        elif is_a(value, (tuple, frozenset)) and type(value).__iter__ in _ITERATIONS:
            for k, item in enumerate(value):
                self.visit(item, f"{label}[{k}]")
            self._look_at_written(value, label)
        elif is_a(value, CONTAINERS):
            self._visit_container(value, label)
        elif is_a(value, ModuleType):
            if not self.libraries.has_module(value):
                self.looked_at.append((value, label))
        elif not self._visit_callable(value, label) and not is_ours(value):
            self._visit_holder(value, label)
            self.looked_at.append((value, label))

    def _visit_tensor(self, tensor: Tensor) -> None:
        self.tensors.append((tensor, tensor._array, tensor._edge))
        self.guards.add("a captured tensor", "{o}._array is {v}", tensor, tensor._array)
        self.guards.add("a captured tensor", "{o}._edge is {v}", tensor, tensor._edge)
        self.looked_at.append((tensor, "a captured tensor"))

    def _visit_container(self, value: Any, label: str) -> None:
        if is_a(value, dict):
            kind = OrderedDict if is_a(value, OrderedDict) else dict  # each has an order of its own
            keys, values = tuple(kind.keys(value)), tuple(kind.values(value))
            self.guards.add(label, "same_keys({o}, {v})", value, (*keys, *values))
            for key, item in zip(keys, values, strict=True):
                self.visit(key, label)
                self.visit(item, f"{label}[{key!r}]")
        else:
            items = tuple(value)
            self.guards.add(label, "same_items({o}, {v})", value, items)
            for k, item in enumerate(items):
                self.visit(item, f"{label}[{k}]")
        if is_a(value, defaultdict):
            self.visit(value.default_factory, label)
        self._look_at_written(value, label)

    def _look_at_written(self, value: Any, label: str) -> None:
        """Look at what a container has by a class of its own."""
        if is_users(type(value)):
            self.looked_at.append((value, label))

    def _visit_holder(self, value: Any, label: str) -> None:
        """Look at what is in a library's object that holds other things."""
        self.watch_registered(value, label)
        for kind, text in _HOLDERS:
            if is_a(value, kind):
                inside = value() if kind is weakref.ref else value.get(None)
                self.guards.add(label, text, value, inside)
                self.visit(inside, label)
        self.visit_with_arrays(value, label)
        if is_a(value, _BYTES):
            self.guards.add(label, "same_items({o}, {v})", value, tuple(value))
        elif is_a(value, _ON_OTHERS):
            self.visit(gc.get_referents(value), label)
        elif is_a(value, _BY_NAME):
            self._words.add("getattr")
            self.visit(value.__reduce__(), label)
        elif self.libraries.has_class(type(value)) and issubclass(type(value), Collection):
            for name in own_attributes(value):
                found = self.attribute(value, name, label)
                if found is not STOP:
                    self.visit(found, f"{label}.{name}")

    # --- functions --------------------------------------------------------------------------------

    def _visit_callable(self, value: Any, label: str) -> bool:
        """Look at what a function takes from outside; return whether that is all there is to it."""
        function = wrapped(value)
        if function is not None:
            self.watch_results(value, label)
            self.visit(function, label)
        self.watch_environment(value, label)
        if is_a(value, FunctionType):
            self.visit_function(value, label)
        elif is_a(value, MethodType):
            refuse_source(value.__self__, label)
            self.visit_method(value.__func__, value.__self__, label)
        elif is_a(value, (functools.partial, functools.partialmethod)):
            self.visit(value.func, label)
            self.visit(value.args, label)
            self.visit(value.keywords, label)
        elif is_a(value, (staticmethod, classmethod)):
            self.visit(value.__func__, label)
        elif is_a(value, property):
            self.visit(value.fget, label)
        elif is_a(value, functools.cached_property):
            self.visit(value.func, label)
        elif is_a(value, (BuiltinFunctionType, MethodWrapperType)):
            if value in _BLIND:
                refuse_blind(value.__name__)
            refuse_source(value.__self__, label)
            if not is_a(value.__self__, (ModuleType, type)):
                self.visit(value.__self__, label)
        else:
            return function is not None and is_ours(value)
        return True

    def _visit_inside(self, value: Any, label: str) -> None:
        """Look at what the code of a library was given, if it is a user's function or tensors."""
        if is_a(value, (tuple, list)):
            for item in value:
                self._visit_inside(item, label)
        elif is_a(value, dict):
            for item in list(value.values()):
                self._visit_inside(item, label)
        elif is_a(value, Tensor) or (callable(value) and not is_ours(value)):
            self.visit(value, label)
        elif is_a(value, FunctionType) or wrapped(value) is not None:
            self._visit_callable(value, label)

    def visit_function(self, function: FunctionType, label: str, *bound: Any) -> None:
        """Look at what a function takes from outside, of which the first arguments are known."""
        key = (id(function), *map(id, bound))
        if key in self._seen:
            return
        self._seen[key] = (function, *bound)
        code = function.__code__
        if self.libraries.has_code(code):
            for cell in function.__closure__ or ():  # of a decorator or transform: what is in it?
                inside = contents_of(cell)
                if type(inside) is dict and inside and all(is_a(each, type) for each in inside):
                    items = (*inside, *inside.values())  # `functools.singledispatch` has those
                    self.guards.add(f"what is in {label}", "same_keys({o}, {v})", inside, items)
                    for each in inside:
                        self.watch_registered(each, label)
                self._visit_inside(inside, label)
            return
        self._functions.append((function, bound))
        self.guards.add(f"the code of {label}", "{o}.__code__ is {v}", function, code)
        if vars(function):
            self.looked_at.append((function, label))
        reads = reads_of(code, "len" not in function.__globals__)
        self._words |= reads.words
        defaults = function.__defaults__, function.__kwdefaults__
        if any(defaults):
            name = f"the defaults of {label}"
            self.guards.add(name, "{o}.__defaults__ is {v}", function, defaults[0])
            self.guards.add(name, "{o}.__kwdefaults__ is {v}", function, defaults[1])
            self.visit(defaults, name)
        for variable, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            chains = reads.variables.get(variable, ())
            inside = contents_of(cell)
            if not chains:
                continue
            if inside is UNBOUND:
                self.guards.add(variable, "is_unbound({o})", cell)
                continue
            self.guards.add(variable, "{o}.cell_contents is {v}", cell, inside)
            self._follow(inside, chains, variable)
        for name, chains in reads.names.items():
            self._follow_global(function.__globals__, name, chains)
        for name, found in reads.modules.items():
            module = sys.modules.get(name)
            if module is not None and not self.libraries.has_module(module):
                steps = [Chain(() if each is None else (("attribute", each),)) for each in found]
                self._follow(module, steps, name)
            elif module is not None:
                for word in {"environ", "getenv"} & (reads.words | found):
                    self.watch_environment(vars(module).get(word), f"{name}.{word}")
        for parameter, thing in zip(code.co_varnames[: code.co_argcount], bound, strict=False):
            chains = reads.variables.get(parameter, ())
            self._follow(thing, chains, parameter)
            if "super" in reads.words or parameter in code.co_cellvars:
                self.visit(thing, parameter)

    def _follow_global(self, table: dict[str, Any], name: str, chains: Iterable[Chain]) -> None:
        if name in table:
            inside = table[name]
            if not (is_a(inside, ModuleType) and self.libraries.has_module(inside)):
                self.guards.add(name, f"{{o}}[{name!r}] is {{v}}", table, inside)
            self._follow(inside, chains, name)
        elif name in BLIND:
            for chain in chains:
                if not chain.steps:
                    refuse_blind(name)
                (_, key), *steps = chain.steps  # of globals()[key]
                self._follow_global(table, key, [chain._replace(steps=tuple(steps))])
        else:  # it may be there in another call
            self.guards.add(name, "{k} not in {o}", table, key=name)

    # --- chains -----------------------------------------------------------------------------------

    def _follow(self, value: Any, chains: Iterable[Chain], label: str) -> None:
        """Look at what chains that begin at a value come by."""
        for chain in chains:
            found, name = value, label
            for kind, key in chain.steps:
                if kind == "attribute":
                    found = self.attribute(found, key, name)
                    name = f"{name}.{key}"
                else:
                    found = self.entry(found, key, name)
                    name = f"{name}[{key!r}]"
                if found is STOP:
                    break
            else:
                if chain.ends == "length":
                    self.length(found, name)
                elif chain.ends != "write":
                    refuse_source(found, name)
                    self.visit(found, name)

    # --- attributes by name -----------------------------------------------------------------------

    def _follow_words(self) -> None:
        """Look at attributes of the names that occur in the code, until no more are found."""
        done: set[tuple[int, str]] = set()
        known: dict[int, int] = {}  # how many words there were when an object was looked at
        while True:
            looked_at = [
                each for each in self.looked_at if known.get(id(each[0])) != len(self._words)
            ]
            if not looked_at:
                break
            for value, label in looked_at:
                known[id(value)] = len(self._words)
                for name in self._names_in(value, label):
                    if (id(value), name) not in done:
                        done.add((id(value), name))
                        found = self.attribute(value, name, label)
                        if found is not STOP:
                            if name in self._words:
                                refuse_source(found, f"{label}.{name}")
                            self.visit(found, f"{label}.{name}")
        for value, label in self.looked_at:
            is_asked = is_a(value, type) and not _OF_CLASSES.isdisjoint(self._words)
            if is_asked and not self.libraries.has_class(value):
                names = tuple(value.__dict__)
                self.guards.add(label, "same_names({o}.__dict__, {v})", value, names)
            is_watched = not is_a(value, (type, ModuleType, Tensor)) and type(value).__dictoffset__
            if is_watched and self._is_open(value):
                names = tuple(own_dict(value))
                self.guards.add(label, "same_names(own_dict({o}), {v})", value, names)

    def _is_open(self, value: Any) -> bool:
        """Whether attributes may be read whose names the code does not show."""
        kind = type(value)
        has_own = kind.__dictoffset__ or (slots_of(value) and not self.libraries.has_class(kind))
        return bool(has_own) and not _REFLECTIVE.isdisjoint(self._words)

    def _names_in(self, value: Any, label: str) -> Iterator[str]:
        own = own_attributes(value)
        everything = self._is_open(value) or dataclasses.is_dataclass(type(value))
        if is_a(value, (ModuleType, Tensor, type)):
            everything = False
        if is_a(value, Tensor):
            yield from ({"grad", "_version"} | own.keys()) & self._words
            return
        names = [*own] if is_a(value, type) else [*{**own, **slots_of(value)}]
        yield from names if everything else self._words.intersection(names)
        if is_a(value, (ModuleType, FunctionType)):
            return
        classes = list(type(value).__mro__)
        if is_a(value, type):
            classes = [*value.__mro__, *(c for c in classes if c is not type)]
        written = [each for each in classes if not self.libraries.has_class(each)]
        # What derives from a library's class may be called by that.
        everything = everything or len(written) + 1 < len(classes)
        for each in written:
            for name, raw in list(each.__dict__.items()):
                if name.startswith("__") and name.endswith("__"):
                    self._visit_operator(value, each, name, raw)
                elif name in self._words or everything:
                    if "super" in self._words:  # it may be read although a class below has it, too
                        self.watch_class(each, name, raw, f"{label}.{name}")
                        self.visit_method(raw, value, f"{label}.{name}")
                    yield name

    def _visit_operator(self, value: Any, owner: type, name: str, raw: Any) -> None:
        """Look at what Python itself calls, ``__add__`` or ``__new__``, say."""
        of_class = is_a(raw, (staticmethod, classmethod))
        function = raw.__func__ if of_class else raw
        if is_a(function, FunctionType):
            self.watch_class(owner, name, raw, name)
            is_class = is_a(value, type) and owner in value.__mro__
            if of_class:
                self.visit_function(function, name, value if is_class else type(value))
            else:
                self.visit_function(function, name, *(() if is_class else (value,)))
        elif callable(function) and not is_a(function, type):
            self.watch_class(owner, name, raw, name)
            self.visit(function, name)


_ITERATIONS = (tuple.__iter__, frozenset.__iter__)


def contents_of(cell: CellType) -> Any:
    """Return what a variable of an enclosing function holds now; a mark if it is not bound."""
    try:
        return cell.cell_contents
    except ValueError:
        return UNBOUND
