"""Variables of functions that become LLVM's instructions, and whose their arrays are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types

from numgrad.codegen.llvm.function_types import nested
from numgrad.codegen.llvm.quick_calls import DATA, SHAPE, STRIDES, array_at
from numgrad.codegen.loops import (
    Assign,
    Do,
    For,
    Function,
    If,
    Name,
    Number,
    Return,
    Statement,
    Store,
    Unpack,
    While,
)

__all__ = ["DATA", "SHAPE", "STRIDES", "Variables", "is_counted"]


class Variables:
    """The variables of a function.

    What is assigned once is the value itself, wherever it is in sight. The others have a place in
    memory, which LLVM makes registers of. Arrays that the function makes have one as well, so that
    they can be freed: it owns them until it returns.

    Parameters
    ----------
    context : numba.core.base.BaseContext
    builder : llvmlite.ir.IRBuilder
        Behind the first instructions of the function, where it stands still, for the places.
    function : Function
    kinds : dict
        The types of the variables.
    """

    def __init__(
        self, context: Any, builder: Any, function: Function, kinds: dict[str, Any]
    ) -> None:
        self.context, self.builder, self.kinds = context, builder, kinds
        self.start = builder.block
        self.several = _assigned_apart(function)
        self.values: dict[str, Any] = {}  # of those that are assigned once
        self.elements: dict[str, Any] = {}  # of arrays among them, where these are
        self.places: dict[str, Any] = {}  # of the others
        self.owned: list[tuple[Any, Any]] = []  # places of what is freed in the end, with types

    def __contains__(self, name: Name) -> bool:
        return not name.module and (
            name.id in self.values or name.id in self.elements or name.id in self.places
        )

    def read(self, name: str) -> Any:
        """Write down what reads a variable."""
        if name in self.several:
            return self.builder.load(self.places[name])
        if name in self.values:
            return self.values[name]
        return array_at(self.context, self.builder, self.kinds[name], self.elements[name])

    def has_no_size(self, name: str) -> bool:
        """Whether of an array all that is known is where its elements are."""
        return name in self.elements and name not in self.values

    def bind_elements(self, name: str, data: Any) -> None:
        """Give an array a name of which is known where its elements are."""
        if name in self.several:
            kind = self.kinds[name]
            self.bind(name, array_at(self.context, self.builder, kind, data))
        else:
            self.elements[name] = data  # the rest is made where it is needed

    def bind(
        self, name: str, value: Any, *, is_new: bool = False, is_repeated: bool = False
    ) -> None:
        """Give a value of the variable's type a name.

        Parameters
        ----------
        name : str
        value : llvmlite.ir.Value
        is_new : bool
            Whether it is made of something that nobody else has.
        is_repeated : bool
            Whether this stands in a loop.
        """
        kind, is_several = self.kinds[name], name in self.several
        if not is_several:
            self.values[name] = value
            if isinstance(kind, types.Array):
                self.elements[name] = self.builder.extract_value(value, DATA)
        if is_counted(kind) and (is_new or is_several):
            if not is_new:
                self.context.nrt.incref(self.builder, kind, value)
            place = self._place(name, kind)
            if is_several or is_repeated:
                self.context.nrt.decref(self.builder, kind, self.builder.load(place))
            self.builder.store(value, place)
        elif is_several:
            self.builder.store(value, self._place(name, kind))

    def _place(self, name: str, kind: Any) -> Any:
        """Return where a variable is held that is assigned in several places, or freed."""
        if name not in self.places:
            self.places[name] = self._new_place(name, kind)
        return self.places[name]

    def _new_place(self, name: str, kind: Any) -> Any:
        with self.builder.goto_block(self.start):
            place = self.builder.alloca(self.context.get_value_type(kind), name=name)
            if is_counted(kind):
                self.builder.store(ir.Constant(place.type.pointee, None), place)
                self.owned.append((kind, place))
        return place

    def hold(self, kind: Any, value: Any) -> None:
        """Own what has no name until the function returns, or comes here again."""
        place = self._new_place("", kind)
        self.context.nrt.decref(self.builder, kind, self.builder.load(place))
        self.builder.store(value, place)

    def release(self) -> None:
        """Write down what frees all that the function owns."""
        for kind, place in self.owned:
            self.context.nrt.decref(self.builder, kind, self.builder.load(place))


def is_counted(kind: Any) -> bool:
    """Whether references to values of a type are counted."""
    parts: Any = kind if isinstance(kind, types.BaseTuple) else ()
    return isinstance(kind, types.Array) or any(map(is_counted, parts))


def _assigned_apart(function: Function) -> set[str]:
    """Return the variables whose value is not that of the one assignment before, in sight."""
    assigned: dict[str, tuple[int, ...]] = dict.fromkeys(function.parameters, ())
    apart: set[str] = set()

    def assign(name: str, where: tuple[int, ...]) -> None:
        if name in assigned:
            apart.add(name)
        assigned[name] = where

    def read(node: Any, where: tuple[int, ...]) -> None:
        if isinstance(node, Name):
            seen = assigned.get(node.id) if not node.module else None
            if seen is not None and where[: len(seen)] != seen:
                apart.add(node.id)
        elif isinstance(node, tuple | list):
            for each in node:
                read(each, where)
        elif hasattr(node, "__dataclass_fields__") and not isinstance(node, Number):
            for field in node.__dataclass_fields__:
                read(getattr(node, field), where)

    def walk(body: Sequence[Statement], where: tuple[int, ...]) -> None:
        for position, line in enumerate(body):
            match line:
                case Assign(target, value):
                    read(value, where)
                    assign(target, where)
                case Unpack(targets, value):
                    read(value, where)
                    for target in targets:
                        assign(target, where)
                case For(index, first, last, _, step):
                    read((first, last, step), where)
                    assign(index, (*where, position, 0))
                case If(condition) | While(condition):
                    read(condition, where)
                case Do() | Store() | Return():
                    read(line, where)
            for number, inner in enumerate(nested(line)):
                walk(inner, (*where, position, number))

    walk(function.body, ())
    while True:  # what an array is called besides lasts no longer than the array
        others = {
            line.target
            for line in _every(function.body)
            if type(line) is Assign and type(line.value) is Name and line.value.id in apart
        }
        if others <= apart:
            return apart
        apart |= others


def _every(body: Sequence[Statement]) -> Iterator[Statement]:
    """Yield statements and those in them."""
    for line in body:
        yield line
        for inner in nested(line):
            yield from _every(inner)
