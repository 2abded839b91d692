"""Functions of the loop IR, written down as LLVM's instructions.

Numba's way to them is through Python's bytecode: two milliseconds for each statement, twelve for
each loop, which is most of what a first call takes. Here, a statement becomes instructions as it is
met. What it does is Numba's own all the same: arithmetic, conversions, functions that are called
are what Numba registers for the types.

A function is called as Numba's are, so that what it calls can raise. Arrays that it makes are its
own until it returns.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types

from numgrad.codegen.llvm.function_types import OPERATORS, PREFIXES, Typed, nested
from numgrad.codegen.llvm.quick_calls import array_at
from numgrad.codegen.loops import (
    Assign,
    Attribute,
    Blank,
    Break,
    Call,
    Choice,
    Do,
    Expression,
    For,
    Function,
    If,
    Infix,
    Load,
    Name,
    Number,
    Prefix,
    Raise,
    Return,
    Statement,
    Store,
    Tuple,
    Unpack,
    While,
)
from numgrad.codegen.numba_private import cgutils

__all__ = ["FunctionWriter", "passed"]

_DATA = 4  # of what makes up an array, where its elements are


class FunctionWriter:
    """Writes a function into a module of LLVM's.

    Parameters
    ----------
    context : numba.core.base.BaseContext
        Numba's target.
    typed : Typed
    target : llvmlite.ir.Function
        Without a body yet, in Numba's call convention.
    write : callable
        Given another function of the module, returns what it is in this one of LLVM's.
    is_main : bool
        Whether it is called from elsewhere, with whole arrays. To others, arrays are where their
        elements are, and have no sizes.
    """

    def __init__(
        self,
        context: Any,
        typed: Typed,
        target: Any,
        write: Callable[[Typed], Any],
        *,
        is_main: bool = False,
    ) -> None:
        self.context, self.typed, self.target, self.write = context, typed, target, write
        self.is_main = is_main
        self.builder: Any = ir.IRBuilder(target.append_basic_block("entry"))
        function = typed.function
        self.values: dict[str, Any] = {}  # of variables that are assigned once, where they are seen
        self.places: dict[str, Any] = {}  # of the others
        self.owned: list[tuple[Any, Any]] = []  # places of what is freed in the end, with types
        self.data: dict[str, Any] = {}  # of arrays among `values`, where their elements are
        self.borrowed: set[str] = set()  # arrays that are parts of others
        self.failed: Any = None  # where an error leads to, and where it is kept
        self.loops: list[Any] = []  # where `break` leads to
        self.counting: set[str] = set()  # variables that count upward from no less than 0
        self.several = _assigned_apart(function)
        arguments = self._arguments()
        self.start = self.builder.block
        for name, value in zip(function.parameters, arguments, strict=True):
            kind = typed.variables[name]
            if is_main or not isinstance(kind, types.Array):
                self._bind(name, value, kind)
            elif name in self.several:
                self._bind(name, array_at(context, self.builder, kind, value), kind)
            else:
                self.data[name] = value  # an array is made of it where it is needed
        body = self.builder.append_basic_block("body")
        self.builder.position_at_end(body)
        self._body(function.body)
        if not self.builder.block.is_terminated:
            self._leave(types.none, context.get_dummy_value())
        self._fail()
        with self.builder.goto_block(self.start):
            self.builder.branch(body)

    def _arguments(self) -> list[Any]:
        """Return the arguments; of arrays that a function of the module gave, only the elements."""
        context, typed = self.context, self.typed
        if self.is_main:
            return list(
                context.call_conv.decode_arguments(self.builder, typed.arguments, self.target)
            )
        kinds = passed(typed.arguments)
        return list(context.call_conv.decode_arguments(self.builder, kinds, self.target))

    # --- variables ---

    def _place(self, name: str, kind: Any) -> Any:
        """Return where a variable is held that is assigned in several places, or freed."""
        place = self.places.get(name)
        if place is None:
            with self.builder.goto_block(self.start):
                place = self.builder.alloca(self.context.get_value_type(kind), name=name)
                if _is_counted(kind):
                    self.builder.store(ir.Constant(place.type.pointee, None), place)
                    self.owned.append((kind, place))
            self.places[name] = place
        return place

    def _bind(self, name: str, value: Any, kind: Any, *, is_new: bool = False) -> None:
        """Give a value of the variable's type a name; new ones are the function's own."""
        is_several = name in self.several
        if not is_several:
            self.values[name] = value
            if isinstance(kind, types.Array):
                self.data[name] = self.builder.extract_value(value, _DATA)
        if _is_counted(kind) and (is_new or is_several):
            if not is_new:
                self.context.nrt.incref(self.builder, kind, value)
            place = self._place(name, kind)
            if is_several or self.loops:
                self.context.nrt.decref(self.builder, kind, self.builder.load(place))
            self.builder.store(value, place)
        elif is_several:
            self.builder.store(value, self._place(name, kind))

    def _leave(self, kind: Any, value: Any) -> None:
        """Return from the function."""
        self._release()
        value = self.context.get_return_value(self.builder, kind, value)
        self.context.call_conv.return_value(self.builder, value)

    def _release(self) -> None:
        for kind, place in self.owned:
            self.context.nrt.decref(self.builder, kind, self.builder.load(place))

    def _check(self, status: Any) -> None:
        """Leave if what was called raised something."""
        builder = self.builder
        if self.failed is None:
            with builder.goto_block(self.start):
                places = [builder.alloca(part.type) for part in (status.code, status.excinfoptr)]
            self.failed = builder.append_basic_block("failed"), *places
        block, code, excinfo = self.failed
        with cgutils.if_unlikely(builder, status.is_error):
            builder.store(status.code, code)
            builder.store(status.excinfoptr, excinfo)
            builder.branch(block)

    def _fail(self) -> None:
        """Write down how the function ends if something was raised."""
        if self.failed is None:
            return
        block, *places = self.failed
        self.builder.position_at_end(block)
        self._release()
        code, excinfo = (self.builder.load(place) for place in places)
        status = _Failed(code, excinfo)
        self.context.call_conv.return_status_propagate(self.builder, status)
        self.builder.unreachable()  # what is between this and a `try`, which there is none of

    # --- statements ---

    def _body(self, body: Sequence[Statement]) -> None:
        for line in body:
            if self.builder.block.is_terminated:
                return
            self._statement(line)

    def _statement(self, line: Statement) -> None:
        match line:
            case Assign(target, value):
                kind = self.typed.variables[target]
                is_new = self._is_new(value)
                if not is_new and isinstance(value, Call):
                    self.borrowed.add(target)
                self._bind(target, self.cast(value, kind), kind, is_new=is_new)
            case Store(array, index, value, _, subscript):
                self._store(array, index, value, subscript)
            case Do(value):
                self._drop(value)
            case For():
                self._for(line)
            case While():
                self._while(line)
            case If(condition, then, otherwise):
                with self.builder.if_else(self.truth(condition)) as (yes, no):
                    with yes:
                        self._body(then)
                    with no:
                        self._body(otherwise)
                if _always_leaves(then) and _always_leaves(otherwise):
                    self.builder.unreachable()
            case Unpack(targets, value):
                items = self.value(value)
                for position, target in enumerate(targets):
                    of_item = self.typed.plain(value)[position]
                    item = self.builder.extract_value(items, position)
                    kind = self.typed.variables[target]
                    item = self.context.cast(self.builder, item, of_item, kind)
                    self._bind(target, item, kind, is_new=self._is_new(value))
            case Return(value):
                self._return(value)
            case Raise(error, message):
                self._release()
                raised = getattr(builtins, error)
                self.context.call_conv.return_user_exc(self.builder, raised, (message,))
            case Break():
                self.builder.branch(self.loops[-1])
            case Blank():
                pass
            case _:
                raise TypeError(f"no statement: {line!r}")

    def _return(self, value: Expression) -> None:
        """Hand a value on, with what it is made of."""
        kind = self.typed.result
        for item in value.items if isinstance(value, Tuple) else [value]:
            if isinstance(item, Name) and item.id in self.borrowed:
                raise TypeError(f"{item.id} is a part of what goes when the function returns")
        result = self.cast(value, kind)
        if isinstance(value, Tuple):
            for item in value.items:
                if not self._is_new(item):
                    self.context.nrt.incref(self.builder, self.typed.plain(item), self.value(item))
        elif not self._is_new(value):
            self.context.nrt.incref(self.builder, kind, result)
        self._leave(kind, result)

    def _drop(self, value: Expression) -> None:
        kind = self.typed.plain(value)
        found = self.value(value)
        if _is_counted(kind):
            self.context.nrt.decref(self.builder, kind, found)

    def _store(
        self, array: Expression, index: Expression, value: Expression, is_item: bool
    ) -> None:
        if is_item and not self._is_plain(array, index):
            setitem = OPERATORS["[]="]
            operands = [
                (self.value(each), self.typed.plain(each)) for each in (array, index, value)
            ]
            self._applied(setitem, operands)
            return
        kind = self.typed.plain(array)
        number = self.cast(value, kind.dtype)
        self.context.pack_value(self.builder, kind.dtype, number, self._address(array, index))

    def _for(self, line: For) -> None:
        builder = self.builder
        first, last, step = (
            self.cast(each, types.intp) for each in (line.first, line.last, line.step)
        )
        before = builder.block
        head, body, after = (
            builder.append_basic_block(f"for.{name}") for name in ("head", "body", "end")
        )
        builder.branch(head)
        builder.position_at_end(head)
        index = builder.phi(first.type, line.index)
        index.add_incoming(first, before)
        goes_on = builder.icmp_signed("<", index, last)
        if not (isinstance(step, ir.Constant) and step.constant > 0):
            upward = builder.icmp_signed(">", step, ir.Constant(step.type, 0))
            goes_on = builder.select(upward, goes_on, builder.icmp_signed(">", index, last))
        builder.cbranch(goes_on, body, after)
        builder.position_at_end(body)
        kind = self.typed.variables[line.index]
        given = self.context.cast(builder, index, types.intp, kind)
        self._bind(line.index, given, kind)
        if (
            line.index not in self.several
            and _is_no_less(line.first, 0)
            and _is_no_less(line.step, 1)
        ):
            self.counting.add(line.index)
        self.loops.append(after)
        self._body(line.body)
        self.loops.pop()
        if not builder.block.is_terminated:
            index.add_incoming(builder.add(index, step, flags=["nsw"]), builder.block)
            builder.branch(head)
        builder.position_at_end(after)

    def _while(self, line: While) -> None:
        builder = self.builder
        head, body, after = (
            builder.append_basic_block(f"while.{name}") for name in ("head", "body", "end")
        )
        builder.branch(head)
        builder.position_at_end(head)
        builder.cbranch(self.truth(line.condition), body, after)
        builder.position_at_end(body)
        self.loops.append(after)
        self._body(line.body)
        self.loops.pop()
        if not builder.block.is_terminated:
            builder.branch(head)
        builder.position_at_end(after)

    # --- expressions ---

    def cast(self, node: Expression, kind: Any) -> Any:
        """Write down an expression, and what makes it one of a type."""
        return self.context.cast(self.builder, self.value(node), self.typed.plain(node), kind)

    def truth(self, node: Expression) -> Any:
        """Write down whether an expression holds."""
        return self.context.is_true(self.builder, self.typed.plain(node), self.value(node))

    def value(self, node: Expression) -> Any:
        """Write down an expression; return what holds its value, of its type."""
        match node:
            case Name():
                return self._named(node)
            case Number():
                return self._constant(node)
            case Infix("and" | "or" as sign, left, right):
                choices = [left, right] if sign == "or" else [right, left]
                return self._chosen(left, choices, self.truth)
            case Infix(sign, left, right):
                return self._operation(OPERATORS[sign], left, right)
            case Prefix(sign, operand):
                return self._operation(PREFIXES[sign], operand)
            case Choice(condition, yes, no):
                kind = self.typed.plain(node)
                return self._chosen(condition, [yes, no], lambda each: self.cast(each, kind))
            case Attribute(value, name):
                kind = self.typed.plain(value)
                read = self.context.get_getattr(kind, name)
                return read(self.context, self.builder, kind, self.value(value), name)
            case Tuple(items):
                kinds = types.Tuple([self.typed.plain(item) for item in items])
                values = [self.value(item) for item in items]
                return self.context.make_tuple(self.builder, kinds, values)
            case Load(array, index, is_item) if not is_item or self._is_plain(array, index):
                kind = self.typed.plain(array).dtype
                address = self._address(array, index)
                return self.context.unpack_value(self.builder, kind, address)
            case Load(array, Number(position)) if isinstance(
                self.typed.plain(array), types.BaseTuple
            ):
                return self.builder.extract_value(self.value(array), position)
            case Load(array, index):
                return self._operation(OPERATORS["[]"], array, index)
            case Call():
                return self._call(node)
        raise TypeError(f"no expression: {node!r}")

    def _named(self, name: Name) -> Any:
        if not name.module:
            if name.id in self.several:
                return self.builder.load(self.places[name.id])
            if name.id in self.values:
                return self.values[name.id]
            if name.id in self.data:
                kind = self.typed.variables[name.id]
                return array_at(self.context, self.builder, kind, self.data[name.id])
        return self._constant_of(self.typed.of(name), self.typed.module.known(name))

    def _constant(self, number: Number) -> Any:
        return self._constant_of(self.typed.of(number), number.value)

    def _constant_of(self, kind: Any, value: Any) -> Any:
        if isinstance(value, int | float | complex | str | tuple | np.generic):
            return self.context.get_constant_generic(self.builder, types.unliteral(kind), value)
        return self.context.get_dummy_value()  # functions, types and modules have no value

    def _chosen(
        self, condition: Expression, choices: list[Expression], write: Callable[[Any], Any]
    ) -> Any:
        """Write down one of two values, of which only one is computed."""
        builder, found = self.builder, []
        with builder.if_else(self.truth(condition)) as branches:
            for branch, node in zip(branches, choices, strict=True):
                with branch:
                    found.append((write(node), builder.block))
        result = builder.phi(found[0][0].type)
        for value, block in found:
            result.add_incoming(value, block)
        return result

    def _is_plain(self, array: Expression, index: Expression) -> bool:
        """Whether a subscript means the element that lies so far behind the first."""
        kind = self.typed.plain(array)
        is_row = isinstance(kind, types.Array) and kind.ndim == 1 and kind.layout == "C"
        return is_row and isinstance(index, Name) and index.id in self.counting

    def _address(self, array: Expression, index: Expression) -> Any:
        at = self.cast(index, types.intp)
        return self.builder.gep(self._data(array), [at])

    def _data(self, array: Expression) -> Any:
        """Return where the elements of an array are."""
        known = self.data.get(array.id) if isinstance(array, Name) else None
        return known or self.builder.extract_value(self.value(array), _DATA)

    # --- calls ---

    def _operation(self, function: Any, *operands: Expression) -> Any:
        given = [(self.value(each), self.typed.plain(each)) for each in operands]
        return self._applied(function, given)

    def _applied(self, function: Any, operands: list[tuple[Any, Any]]) -> Any:
        """Write down a function of values of types."""
        kinds = tuple([kind for _, kind in operands])
        function_type, signature = self.typed.signatures.of(function, kinds)
        return self._run(function_type, signature, operands)

    def _run(
        self, function_type: Any, signature: Any, operands: list[tuple[Any, Any]], *before: Any
    ) -> Any:
        given = [
            self.context.cast(self.builder, value, kind, wanted)
            for (value, kind), wanted in zip(operands, signature.args, strict=True)
        ]
        run = self.context.get_function(function_type, signature)
        return run(self.builder, [*before, *given])

    def _call(self, node: Call) -> Any:
        helper = self.typed.helper(node)
        if helper is not None:
            return self._call_helper(helper, node.arguments)
        values = [(self.value(each), self.typed.of(each)) for each in node.arguments]
        quick = self.typed.quick(node)
        if quick is not None:
            given = [value for value, _ in values]
            kinds = [types.unliteral(kind) for _, kind in values]
            return quick.write(self.context, self.builder, given, kinds)
        function_type, signature = self.typed.called(node)
        before = []
        if isinstance(function_type, types.BoundFunction):
            assert isinstance(node.function, Attribute)
            before.append(self.value(node.function.value))
        return self._run(function_type, signature, values, *before)

    def _call_helper(self, helper: Typed, nodes: Sequence[Expression]) -> Any:
        """Write down a call of another function of the module: of arrays, the elements go there."""
        given = [
            self._data(node) if isinstance(kind, types.Array) else self.value(node)
            for kind, node in zip(helper.arguments, nodes, strict=True)
        ]
        status, result = self.context.call_conv.call_function(
            self.builder, self.write(helper), helper.result, passed(helper.arguments), given
        )
        self._check(status)
        return result

    def _is_new(self, value: Expression) -> bool:
        """Whether an expression makes what it gives, rather than finding it."""
        if not isinstance(value, Call):
            return False
        quick = None if self.typed.helper(value) else self.typed.quick(value)
        return quick is None or quick.is_new


def _is_no_less(node: Expression, least: int) -> bool:
    """Whether an expression is a number that is written out, of some size at least."""
    return isinstance(node, Number) and node.value >= least


def passed(arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Return the types that a function is called with by others: of arrays, a pointer."""
    return tuple(
        [
            types.CPointer(kind.dtype) if isinstance(kind, types.Array) else kind
            for kind in arguments
        ]
    )


class _Failed(NamedTuple):
    """What is known of a call that raised something."""

    code: Any
    excinfoptr: Any


def _is_counted(kind: Any) -> bool:
    """Whether references to values of a type are counted."""
    parts: Any = kind if isinstance(kind, types.BaseTuple) else ()
    return isinstance(kind, types.Array) or any(map(_is_counted, parts))


def _always_leaves(body: Sequence[Statement]) -> bool:
    """Whether nothing goes on behind some statements."""
    return bool(body) and isinstance(body[-1], Return | Raise | Break)


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
    return apart
