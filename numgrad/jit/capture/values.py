"""What is known of values while bytecode is followed, and what is gone by of them.

Tokens: ``("is", id)`` is an object from outside, ``("of", id)`` what NumPy computes from an array,
``("made", ...)`` an object that the code makes, ``("code", ...)`` a function that it makes,
``("bound", function, object)`` a method, ``("super", object)`` what looks methods up in base
classes, ``("row", values)`` a tuple with these values, and ``("rows", values)`` gives such ones.
"""

from __future__ import annotations

import gc
import weakref
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from types import CellType, FunctionType, ModuleType
from typing import Any

import numpy as np

from numgrad.codegen.numba_private import CPUDispatcher
from numgrad.graph.recorder import TracedTensor
from numgrad.graph.tensor import Tensor
from numgrad.jit.capture.guards import is_a, is_number, own_dict
from numgrad.jit.capture.lookups import PLAIN, own_attributes
from numgrad.jit.capture.meaning import Place, Tokens, Value
from numgrad.jit.capture.origins import Libraries, behind, is_machinery
from numgrad.jit.lowering.storage import root_of

__all__ = ["ANY", "BESIDE", "NUMBER", "ROWS", "TENSOR", "Values", "contents_of"]

ANY: Any = ("any",)  # what is out of sight
TENSOR: Any = ("tensor",)
NUMBER: Any = ("number",)  # or a string, or something else in which there is no array
ROWS = ("row", "rows")
_NONE: Tokens = frozenset()
_NUMBER: Tokens = frozenset((NUMBER,))
_TENSOR: Tokens = frozenset((TENSOR,))

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
        self.reader: Any = None  # the instruction of it
        self.waiting: deque[Any] = deque()  # runs of code, with instructions that are to be done
        self.things: dict[Any, Any] = {}  # that are from outside
        self.from_outside: dict[Any, Tokens] = {}  # what comes out of objects from there
        self.inside: defaultdict[Any, Place] = defaultdict(Place)  # what is put in containers
        self.attributes: defaultdict[Any, defaultdict[str, Place]]  # that are set; "" for all
        self.attributes = defaultdict(lambda: defaultdict(Place))
        self.classes: dict[Any, type] = {}  # of what is made of a class
        self.escaped: set[Any] = set()  # what is out of sight
        self.is_any_used = False  # whether something is gone by that is out of sight
        self.objects_escaped = Place()  # those that have attributes
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
        value = behind(value)
        if is_number(value) or is_a(value, PLAIN):
            return _NUMBER
        if is_a(value, TracedTensor) or (is_a(value, Tensor) and not own_attributes(value)):
            return _TENSOR
        token = ("is", id(value))
        self.things[token] = value
        return frozenset((token,))

    def read(self, place: Place) -> Tokens:
        """Return what is in a place; the instruction is done again when there is more."""
        place.readers.add(self.reader)
        return place.tokens

    def grow(self, place: Place, given: Tokens) -> None:
        if not given <= place.tokens:
            place.tokens |= given
            for run, k in place.readers:
                run.do(k)
                self.wait_for(run)

    def wait_for(self, run: Any, is_next: bool = False) -> None:
        """Have the instructions done that are to be done of a run, as what is next or at last."""
        if not run.is_waiting:
            run.is_waiting = True
            if is_next:
                self.waiting.append(run)
            else:
                self.waiting.appendleft(run)

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
                todo += self.read(self.inside[token]) | self.in_attributes(token)

    def escape(self, value: Tokens) -> None:
        """Note that something went out of sight: it may be given to anything."""
        todo = list(value)
        while todo:
            token = todo.pop()
            if token in self.escaped or len(token) == 1:
                continue
            self.escaped.add(token)
            todo += self.inside[token].tokens | self.attributes[token][""].tokens
            if token[0] == "is":
                if not is_a(self.things[token], (np.ndarray, Tensor)):
                    self.grow(self.objects_escaped, frozenset((token,)))
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
            each = behind(todo.pop())
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
            elif is_a(each, CPUDispatcher):
                todo.append(each.py_func)  # it also leads to all that was ever compiled
            elif is_machinery(each):
                continue
            elif is_a(each, (weakref.ref, ContextVar)):
                todo.append(each() if is_a(each, weakref.ref) else each.get(None))
            elif is_a(each, Tensor):
                todo += own_attributes(each).values()
            else:
                todo += gc.get_referents(each)
        self._reached[id(value)] = (value, arrays, functions)
        return arrays, functions

    def in_attributes(self, token: Any) -> Tokens:
        """Return what was put in any attribute."""
        return self.read(self.attributes[token][""])

    def unknown(self, value: Tokens) -> Tokens:
        self.escape(value)
        return frozenset((ANY,))


def contents_of(cells: Iterable[CellType] | None) -> Iterator[Any]:
    """Yield what variables of enclosing functions hold."""
    for cell in cells or ():
        try:
            yield cell.cell_contents
        except ValueError:  # it is not bound yet
            continue
