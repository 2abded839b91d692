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
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types

from numgrad.codegen.llvm.function_expressions import ExpressionWriter, passed
from numgrad.codegen.llvm.function_types import Typed
from numgrad.codegen.llvm.function_variables import Variables
from numgrad.codegen.llvm.quick_calls import array_of, itemsize_of
from numgrad.codegen.loops import (
    Assign,
    Blank,
    Break,
    Call,
    Do,
    Expression,
    For,
    If,
    Name,
    Number,
    Raise,
    Return,
    Statement,
    Store,
    Tuple,
    Unpack,
    While,
)

__all__ = ["FunctionWriter"]


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
    """

    def __init__(
        self,
        context: Any,
        typed: Typed,
        target: Any,
        write: Callable[[Typed], Any],
    ) -> None:
        builder: Any = ir.IRBuilder(target.append_basic_block("entry"))
        self.context, self.builder, self.typed = context, builder, typed
        function = typed.function
        kinds = passed(typed)
        arguments = list(context.call_conv.decode_arguments(builder, kinds, target))
        self.variables = Variables(context, builder, function, typed.variables)
        self.expressions = ExpressionWriter(context, builder, typed, self.variables, write)
        self.borrowed: set[str] = set()  # arrays that are parts of others
        self.loops: list[Any] = []  # where `break` leads to
        values = iter(arguments)
        for name, kind in zip(function.parameters, typed.arguments, strict=True):
            self._bind_argument(name, kind, values)
        body = self.builder.append_basic_block("body")
        self.builder.position_at_end(body)
        self._body(function.body)
        if not self.builder.block.is_terminated:
            if typed.result == types.none:
                self._leave(types.none, context.get_dummy_value())
            else:  # behind a loop that only a value ends
                self.builder.unreachable()
        self.expressions.fail()
        with self.builder.goto_block(self.variables.start):
            self.builder.branch(body)

    def _bind_argument(self, name: str, kind: Any, values: Iterator[Any]) -> None:
        """Give an argument its name, which is the next of the values, or what they make."""
        first, typed = next(values), self.typed
        if not isinstance(kind, types.Array) or (typed.has_sizes and not typed.is_apart):
            self.variables.bind(name, first)
        elif not typed.has_sizes:
            self.variables.bind_elements(name, first)
        else:
            sizes = [next(values) for _ in range(kind.ndim)]
            if kind.layout == "C":
                steps = [itemsize_of(self.context, kind)]
                for size in sizes[:0:-1]:
                    steps.insert(0, self.builder.mul(steps[0], size, flags=["nsw"]))
            else:
                steps = [next(values) for _ in range(kind.ndim)]
            array = array_of(self.context, self.builder, kind, first, sizes, steps[: kind.ndim])
            self.variables.bind(name, array)

    def _bind(self, name: str, value: Any, is_new: bool) -> None:
        self.variables.bind(name, value, is_new=is_new, is_repeated=bool(self.loops))

    def _leave(self, kind: Any, value: Any) -> None:
        """Return from the function."""
        self.variables.release()
        value = self.context.get_return_value(self.builder, kind, value)
        self.context.call_conv.return_value(self.builder, value)

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
                is_new = self.expressions.is_new(value)
                is_other_name = isinstance(value, Name) and value.id in self.borrowed
                if is_other_name or (not is_new and isinstance(value, Call)):
                    self.borrowed.add(target)
                self._bind(target, self.expressions.cast(value, kind), is_new)
            case Store(array, index, value, _, subscript):
                self._store(array, index, value, subscript)
            case Do(value):
                self.expressions.let_go(value, self.expressions.value(value))
            case For():
                self._for(line)
            case While():
                self._while(line)
            case If(condition, then, otherwise):
                with self.builder.if_else(self.expressions.truth(condition)) as (yes, no):
                    with yes:
                        self._body(then)
                    with no:
                        self._body(otherwise)
                if _always_leaves(then) and _always_leaves(otherwise):
                    self.builder.unreachable()
            case Unpack(targets, value):
                items = self.expressions.value(value)
                for position, target in enumerate(targets):
                    of_item = self.typed.plain(value)[position]
                    item = self.builder.extract_value(items, position)
                    kind = self.typed.variables[target]
                    item = self.context.cast(self.builder, item, of_item, kind)
                    self._bind(target, item, self.expressions.is_new(value))
            case Return(value):
                self._return(value)
            case Raise(error, message):
                self.variables.release()
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
        result = self.expressions.cast(value, kind)
        if isinstance(value, Tuple):
            for item in value.items:
                if not self.expressions.is_new(item):
                    self.context.nrt.incref(
                        self.builder, self.typed.plain(item), self.expressions.value(item)
                    )
        elif not self.expressions.is_new(value):
            self.context.nrt.incref(self.builder, kind, result)
        self._leave(kind, result)

    def _store(
        self, array: Expression, index: Expression, value: Expression, is_item: bool
    ) -> None:
        expressions = self.expressions
        if is_item and not self.typed.takes(array, index, value):
            expressions.operation(operator.setitem, array, index, value)
            return
        kind = self.typed.plain(array)
        number = expressions.cast(value, kind.dtype)
        address = (expressions.item if is_item else expressions.address)(array, index)
        align = None if kind.aligned else 1
        self.context.pack_value(self.builder, kind.dtype, number, address, align)

    def _for(self, line: For) -> None:
        builder = self.builder
        first, last, step = (
            self.expressions.cast(each, types.intp) for each in (line.first, line.last, line.step)
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
        self.variables.bind(line.index, given)
        if (
            line.index not in self.variables.several
            and _is_no_less(line.first, 0)
            and _is_no_less(line.step, 1)
        ):
            self.expressions.counting.add(line.index)
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
        builder.cbranch(self.expressions.truth(line.condition), body, after)
        builder.position_at_end(body)
        self.loops.append(after)
        self._body(line.body)
        self.loops.pop()
        if not builder.block.is_terminated:
            builder.branch(head)
        builder.position_at_end(after)


def _is_no_less(node: Expression, least: int) -> bool:
    """Whether an expression is a number that is written out, of some size at least."""
    return isinstance(node, Number) and node.value >= least


def _always_leaves(body: Sequence[Statement]) -> bool:
    """Whether nothing goes on behind some statements."""
    return bool(body) and isinstance(body[-1], Return | Raise | Break)
