"""What the variables of functions may hold while code is followed, and what these may return."""

from __future__ import annotations

import builtins
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from inspect import CO_GENERATOR, CO_VARARGS, CO_VARKEYWORDS
from types import CellType, CodeType, FunctionType
from typing import Any

from numgrad.jit.capture.attributes import Attributes
from numgrad.jit.capture.guards import is_a
from numgrad.jit.capture.meaning import Place, Tokens, Value
from numgrad.jit.capture.origins import Libraries
from numgrad.jit.capture.stack import Run
from numgrad.jit.capture.values import ANY, contents_of

__all__ = ["Frame", "Frames", "Visited", "each_of", "every_of"]

_NONE: Tokens = frozenset()
Visited = Iterable[tuple[FunctionType, tuple[Any, ...]]]


class Frame:
    """What the variables of a function may hold, and what it may return."""

    def __init__(self, key: Any, code: CodeType, table: dict[str, Any], outer: Any) -> None:
        self.key, self.code, self.globals, self.outer = key, code, table, outer
        self.variables: defaultdict[str, Place] = defaultdict(Place)
        self.cells: dict[str, CellType] = {}
        self.returns = Place()
        self.is_outside = False  # whether what it returns goes out of sight


class Frames(Attributes):
    """The functions that may be called, with what their variables may hold."""

    def __init__(self, libraries: Libraries, visited: Visited) -> None:
        super().__init__(libraries)
        self.frames: dict[Any, Frame] = {}
        self.shared: defaultdict[Any, Place] = defaultdict(Place)  # cells and global names
        self.made: dict[Any, tuple[CodeType, Frame]] = {}  # functions
        self.visited = list(visited)
        self.known = {id(each) for each, _ in self.visited}
        self.by_name: dict[str, list[FunctionType]] = {}
        for each, _ in self.visited:
            self.by_name.setdefault(each.__name__, []).append(each)

    # --- variables --------------------------------------------------------------------------------

    def place(self, frame: Frame, name: str) -> Place:
        """Return what a variable may hold."""
        if name not in frame.code.co_freevars:
            return frame.variables[name]
        if frame.outer is not None:
            return self.place(frame.outer, name)
        cell = frame.cells[name]
        if id(cell) not in self.shared:
            self.grow(self.shared[id(cell)], self.of_all(contents_of((cell,))))
        return self.shared[id(cell)]

    def load(self, kind: str, name: str) -> Tokens:
        frame = self.frame
        if kind == "IMPORT_NAME":
            found = [sys.modules.get(each) for each in (name, name.partition(".")[0])]
            return self.of_all(found)
        if kind not in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"):
            return self.read(self.place(frame, name))
        table = frame.globals
        below = table.get("__builtins__", builtins)
        below = below if is_a(below, dict) else vars(below)
        found_here = self.of(table[name] if name in table else below.get(name))
        rebound = self.read(self.shared[id(table), name])
        return found_here | rebound | self.read(frame.variables[name])

    def store(self, kind: str, name: str, value: Tokens) -> None:
        if kind == "STORE_GLOBAL":
            place = self.shared[id(self.frame.globals), name]
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
        self.grow(self.inside[token], self.items(defaults) - defaults)
        return frozenset((token,))

    def wake(self, function: FunctionType, bound: Sequence[Any]) -> None:
        if id(function) in self.known:
            frame = self.frame_of(function)
            given = [Value(self.of(each)) for each in bound]
            self.bind_arguments(frame, given, {}, frozenset((ANY,)))
            self.let_out(frame)

    def let_out(self, frame: Frame) -> None:
        """Let what a function returns go out of sight."""
        frame.is_outside = True
        self.escape(frame.returns.tokens)

    def wake_named(self, name: str) -> None:
        for function in self.by_name.get(name, ()):
            self.wake(function, ())

    def frame_of(self, function: FunctionType) -> Frame:
        """Return the frame of a function from outside."""
        key = id(function)
        if key not in self.frames:
            code = function.__code__
            frame = self.begin(key, code, function.__globals__, None)
            frame.cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
            self.things["function", key] = function
            values = function.__defaults__ or ()
            names = code.co_varnames[: code.co_argcount]
            named = dict(zip(names[len(names) - len(values) :], values, strict=True))
            for name, value in {**named, **(function.__kwdefaults__ or {})}.items():
                self.grow(self.place(frame, name), self.of(value))
        return self.frames[key]

    def frame_of_made(self, token: Any) -> Frame:
        """Return the frame of a function that the code makes."""
        if token not in self.frames:
            code, outer = self.made[token]
            self.begin(token, code, outer.globals, outer)
        return self.frames[token]

    def begin(self, key: Any, code: CodeType, table: dict[str, Any], outer: Any) -> Frame:
        """Have the code of a function followed, before what calls it goes on."""
        frame = self.frames[key] = Frame(key, code, table, outer)
        meaning: Any = self  # with what calls give, which is defined above
        self.wait_for(Run(code, meaning, frame), is_next=True)
        return frame

    def bind_arguments(
        self, frame: Frame, given: Sequence[Value], named: Mapping[str, Value], spread: Tokens
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

    def returned(self, frame: Frame) -> Tokens:
        """Return what a call of a function gives."""
        found = self.read(frame.returns)
        if not frame.code.co_flags & CO_GENERATOR:
            return found
        token = ("made", frame.key, "generator")
        self.grow(self.inside[token], found)
        return frozenset((token,))


def each_of(given: Sequence[Value], named: Mapping[str, Value], spread: Tokens) -> list[Tokens]:
    """Return the arguments of a call."""
    found = [each.tokens for each in (*given, *named.values())]
    return [*found, spread] if spread else found


def every_of(given: Sequence[Value], named: Mapping[str, Value], spread: Tokens) -> Tokens:
    """Return what any argument of a call may be."""
    return frozenset().union(*each_of(given, named, spread))
