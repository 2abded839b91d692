"""Expressions of the loop IR, written down as LLVM's instructions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types

from numgrad.codegen.llvm.function_types import Typed
from numgrad.codegen.llvm.function_variables import DATA, SHAPE, STRIDES, Variables, is_counted
from numgrad.codegen.llvm.plain_signatures import Written
from numgrad.codegen.llvm.quick_calls import ON_STACK
from numgrad.codegen.loops import (
    PREFIXES,
    SIGNS,
    Attribute,
    Call,
    Choice,
    Expression,
    Infix,
    Load,
    Name,
    Number,
    Prefix,
    Tuple,
)
from numgrad.codegen.numba_private import cgutils, found_in, signature

__all__ = ["ExpressionWriter", "parts_of", "passed"]


_PARTS_OF_QUOTIENTS = operator.floordiv, operator.mod


class ExpressionWriter:
    """Writes expressions where a builder stands.

    Parameters
    ----------
    context : numba.core.base.BaseContext
        Numba's target.
    builder : llvmlite.ir.IRBuilder
    typed : Typed
        The function that the expressions are of.
    variables : Variables
    write : callable
        Given another function of the module, returns what it is in this one of LLVM's.
    """

    def __init__(
        self,
        context: Any,
        builder: Any,
        typed: Typed,
        variables: Variables,
        write: Callable[[Typed], Any],
    ) -> None:
        self.context, self.builder, self.typed = context, builder, typed
        self.variables, self.write = variables, write
        self.counting: set[str] = set()  # variables that count upward from no less than 0
        self.failed: Any = None  # where an error leads to, and where it is kept

    def cast(self, node: Expression, kind: Any) -> Any:
        """Write down an expression, and what makes it one of a type."""
        return self.context.cast(self.builder, self.value(node), self.typed.plain(node), kind)

    def truth(self, node: Expression) -> Any:
        """Write down whether an expression holds."""
        value, kind = self.value(node), self.typed.plain(node)
        if kind == types.boolean:
            return value
        return self._function(bool, signature(types.boolean, kind))(self.builder, [value])

    def _function(self, function_type: Any, signature: Any) -> Any:
        context = self.context
        return found_in(context, lambda: context.get_function(function_type, signature))

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
                return self.operation(SIGNS[sign].operator, left, right)
            case Prefix(sign, operand):
                return self.operation(PREFIXES[sign], operand)
            case Choice(condition, yes, no):
                kind = self.typed.plain(node)
                return self._chosen(condition, [yes, no], lambda each: self.cast(each, kind))
            case Attribute(value, name):
                kind, found = self.typed.plain(value), self.value(value)
                context = self.context
                read = found_in(context, lambda: context.get_getattr(kind, name))
                if read is None:  # of a module
                    return self._constant_of(self.typed.of(node), self.typed.named(node))
                result = read(self.context, self.builder, kind, found, name)
                self.let_go(value, found)
                return result
            case Tuple(items):
                kinds = types.Tuple([self.typed.plain(item) for item in items])
                values = [self.value(item) for item in items]
                return self.context.make_tuple(self.builder, kinds, values)
            case Load(array, index, is_item) if not is_item or self.typed.indices(array, index):
                kind = self.typed.plain(array)
                address = (self.item if is_item else self.address)(array, index)
                align = None if kind.aligned else 1
                return self.context.unpack_value(self.builder, kind.dtype, address, align)
            case Load(array, Number(position)) if isinstance(
                self.typed.plain(array), types.BaseTuple
            ):
                return self.builder.extract_value(self.value(array), position)
            case Load(array, index):
                return self.operation(operator.getitem, array, index)
            case Call():
                return self._call(node)
        raise TypeError(f"no expression: {node!r}")

    def _named(self, name: Name) -> Any:
        if name in self.variables:
            return self.variables.read(name.id)
        return self._constant_of(self.typed.of(name), self.typed.module.known(name))

    def _constant(self, number: Number) -> Any:
        return self._constant_of(self.typed.of(number), number.value)

    def _constant_of(self, kind: Any, value: Any) -> Any:
        if isinstance(value, int | float | complex | str | tuple | np.generic | np.ndarray):
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

    def item(self, array: Expression, index: Expression) -> Any:
        """Write down where the element is that a subscript of integers means."""
        kind, builder = self.typed.plain(array), self.builder
        nodes = self.typed.indices(array, index)
        positions = [self.cast(node, types.intp) for node in nodes]
        is_row = kind.ndim == 1 and kind.layout == "C"
        from_start = [self._counts_from_start(array, node) for node in nodes]
        if is_row and all(from_start):
            return builder.gep(self._data(array), positions)
        whole = self.value(array)
        sizes, steps = [
            [builder.extract_value(whole, (field, dim)) for dim in range(kind.ndim)]
            for field in (SHAPE, STRIDES)
        ]
        for dim, position in enumerate(positions):
            if not from_start[dim]:
                is_back = builder.icmp_signed("<", position, ir.Constant(position.type, 0))
                behind = builder.add(sizes[dim], position)
                positions[dim] = builder.select(is_back, behind, position)
        data = self._data(array)
        if is_row:
            return builder.gep(data, positions)
        return cgutils.get_item_pointer2(
            self.context, builder, data, sizes, steps, kind.layout, positions
        )

    def _counts_from_start(self, array: Expression, index: Expression) -> bool:
        """Whether an index is known to be no less than 0, or there is no size to count from."""
        if isinstance(array, Name) and self.variables.has_no_size(array.id):
            return True
        match index:
            case Number(value):
                return value >= 0
            case Name(name, "") if name in self.counting:
                return True
        return not self.typed.plain(index).signed

    def address(self, array: Expression, index: Expression) -> Any:
        """Write down where an element of an array is."""
        at = self.cast(index, types.intp)
        return self.builder.gep(self._data(array), [at])

    def _data(self, array: Expression) -> Any:
        """Return where the elements of an array are."""
        known = self.variables.elements.get(array.id) if isinstance(array, Name) else None
        if known is None:
            value = self.value(array)
            if self.is_new(array):
                self.variables.hold(self.typed.plain(array), value)
            known = self.builder.extract_value(value, DATA)
        return known

    # --- calls ---

    def operation(self, function: Any, *operands: Expression) -> Any:
        """Write down a function of expressions."""
        if function in _PARTS_OF_QUOTIENTS and self._is_divided_by_known(*operands):
            return self._divided(function, *operands)
        values = [self.value(each) for each in operands]
        kinds = [self.typed.plain(each) for each in operands]
        function_type, signature = self.typed.signatures.of(function, tuple(kinds))
        result = self._run(function_type, signature, list(zip(values, kinds, strict=True)))
        self._let_go_of_all(operands, values)
        return result

    def _is_divided_by_known(self, number: Expression, divisor: Expression) -> bool:
        """Whether an int64 is divided by a number, above 0, that is written out."""
        if not (isinstance(divisor, Number) and type(divisor.value) is int and divisor.value > 0):
            return False
        return bool(self.typed.plain(number) == types.intp)

    def _divided(self, function: Any, number: Expression, divisor: Expression) -> Any:
        """Write down a quotient, rounded down, or its rest, for which Numba compiles a function."""
        builder, value, by = self.builder, self.value(number), self.value(divisor)
        rest = builder.srem(value, by)
        is_below = builder.icmp_signed("<", rest, ir.Constant(rest.type, 0))
        if function is operator.mod:
            return builder.select(is_below, builder.add(rest, by), rest)
        return builder.sub(builder.sdiv(value, by), builder.zext(is_below, value.type))

    def _run(
        self, function_type: Any, signature: Any, operands: list[tuple[Any, Any]], *before: Any
    ) -> Any:
        given = [
            self.context.cast(self.builder, value, kind, wanted)
            for (value, kind), wanted in zip(operands, signature.args, strict=True)
        ]
        if isinstance(function_type, Written):
            return function_type.write(self.context, self.builder, signature, given)
        run = self._function(function_type, signature)
        return run(self.builder, [*before, *given])

    def _call(self, node: Call) -> Any:
        helper = self.typed.helper(node)
        if helper is not None:
            return self._call_helper(helper, node.arguments)
        values = [self.value(each) for each in node.arguments]
        quick = self.typed.quick(node)
        if quick is not None:
            plain = [self.typed.plain(each) for each in node.arguments]
            result = quick.write(self.context, self.builder, values, plain)
            self._let_go_of_all(node.arguments, values)
            return result
        function_type, signature = self.typed.called(node)
        kinds = [self.typed.of(each) for each in node.arguments]
        before: list[Expression] = []
        if isinstance(function_type, types.BoundFunction):
            assert isinstance(node.function, Attribute)
            before.append(node.function.value)
        held = [self.value(each) for each in before]
        given = list(zip(values, kinds, strict=True))
        result = self._run(function_type, signature, given, *held)
        self._let_go_of_all([*node.arguments, *before], [*values, *held])
        return result

    def _call_helper(self, helper: Typed, nodes: Sequence[Expression]) -> Any:
        """Write down a call of another function of the module."""
        given = [
            self._data(node)
            if isinstance(kind, types.Array) and not helper.has_sizes
            else self.value(node)
            for kind, node in zip(helper.arguments, nodes, strict=True)
        ]
        status, result = self.context.call_conv.call_function(
            self.builder, self.write(helper), helper.result, passed(helper), given
        )
        self._check(status)
        if helper.has_sizes:
            self._let_go_of_all(nodes, given)
        return result

    def let_go(self, node: Expression, value: Any) -> None:
        """Free what an expression made, if no variable holds it."""
        kind = self.typed.plain(node)
        if is_counted(kind) and self.is_new(node):
            self.context.nrt.decref(self.builder, kind, value)

    def _let_go_of_all(self, nodes: Sequence[Expression], values: Sequence[Any]) -> None:
        for node, value in zip(nodes, values, strict=True):
            self.let_go(node, value)

    def is_new(self, value: Expression) -> bool:
        """Whether an expression makes what it gives, rather than finding it.

        Numba's parts of arrays are counted as whole ones are.
        """
        match value:
            case Call(function):
                if self.typed.helper(value):
                    return True
                quick = self.typed.quick(value)
                if quick is not None:
                    return quick.is_new
                called = self.typed.named(function)
                return all(called is not each for each in ON_STACK)
            case Load(array):
                return not isinstance(self.typed.plain(array), types.BaseTuple)
            case Attribute() | Infix() | Prefix():
                return True
        return False

    # --- errors ---

    def _check(self, status: Any) -> None:
        """Leave if what was called raised something."""
        builder = self.builder
        if self.failed is None:
            with builder.goto_block(self.variables.start):
                places = [builder.alloca(part.type) for part in (status.code, status.excinfoptr)]
            self.failed = builder.append_basic_block("failed"), *places
        block, code, excinfo = self.failed
        with cgutils.if_unlikely(builder, status.is_error):
            builder.store(status.code, code)
            builder.store(status.excinfoptr, excinfo)
            builder.branch(block)

    def fail(self) -> None:
        """Write down how the function ends if something was raised."""
        if self.failed is None:
            return
        block, *places = self.failed
        self.builder.position_at_end(block)
        self.variables.release()
        code, excinfo = (self.builder.load(place) for place in places)
        status = _Failed(code, excinfo)
        self.context.call_conv.return_status_propagate(self.builder, status)
        self.builder.unreachable()  # what is between this and a `try`, which there is none of


def passed(typed: Typed) -> tuple[Any, ...]:
    """Return the types that a function is called with."""
    if typed.has_sizes and not typed.is_apart:
        return tuple(typed.arguments)
    return tuple([part for kind in typed.arguments for part in parts_of(kind, typed.has_sizes)])


def parts_of(kind: Any, has_sizes: bool) -> list[Any]:
    """Return the types of what an argument comes as that does not come as a whole.

    Of an array that is where its elements are; then, if wanted, the size of each dim, and the bytes
    from one element to the next, unless the sizes say it.
    """
    if not isinstance(kind, types.Array):
        return [kind]
    numbers = (1 if kind.layout == "C" else 2) * kind.ndim if has_sizes else 0
    return [types.CPointer(kind.dtype), *[types.intp] * numbers]


class _Failed(NamedTuple):
    """What is known of a call that raised something."""

    code: Any
    excinfoptr: Any
