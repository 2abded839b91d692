"""What generated loops call: memory on the stack, checks of arguments.

All of it is built into the function that calls it. Sums of blocks stand in
`numgrad.codegen.fold_runtime`, sines and cosines of a block in `numgrad.math.angle_blocks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic, overload

from numgrad.codegen.compile.dispatchers import inline
from numgrad.codegen.llvm.quick_calls import (
    DATA,
    MEMINFO,
    ON_STACK,
    PARENT,
    QUICK,
    Quick,
    array_of,
    itemsize_of,
    new_array,
)
from numgrad.codegen.numba_private import cgutils, impl_ret_borrowed

__all__ = [
    "as_argument",
    "distinct",
    "finishes",
    "part",
    "span",
    "stack",
    "stride",
    "unseen",
]


# --- arrays --------------------------------------------------------------------------------------


def _stack(typing_context: Any, dtype: Any, count: Any) -> Any:
    """Return an array of `count` (a literal) elements that lives until the function returns."""
    if not (isinstance(dtype, types.NumberClass) and isinstance(count, types.IntegerLiteral)):
        return None
    array_type = types.Array(dtype.dtype, 1, "C")
    length = count.literal_value

    def lower(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        of_element = context.get_data_type(array_type.dtype)
        size = context.get_constant(types.intp, length)
        data = cgutils.alloca_once(builder, of_element, size=size)
        return array_of(
            context, builder, array_type, data, [size], [itemsize_of(context, array_type)]
        )

    return array_type(dtype, count), lower


stack: Any = intrinsic(_stack)
ON_STACK.append(stack)


def _unseen(typing_context: Any, count: Any) -> Any:
    """Return an integer of which LLVM does not know what it is.

    It unrolls a loop of few steps before it thinks of vectors, and then finds none.
    """
    if not isinstance(count, types.Integer):
        return None

    def lower(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        number = context.cast(builder, arguments[0], signature.args[0], types.intp)
        kind = ir.FunctionType(number.type, [number.type])
        return builder.asm(kind, "", "=r,0", [number], side_effect=False)

    return types.intp(count), lower


unseen: Any = intrinsic(_unseen)


_IS_CONSTANT = ir.FunctionType(ir.IntType(1), [ir.IntType(64)])


def _stride(typing_context: Any, count: Any) -> Any:
    """Return an integer as LLVM does not take for a stride that might be 1.

    Where a loop reads by steps that are a variable, it would only make vector instructions for
    steps of 1, and check when it runs whether they are. Of a sum it does not expect that. A number
    that it knows stays one.
    """
    if not isinstance(count, types.Integer):
        return None

    def lower(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        number = context.cast(builder, arguments[0], signature.args[0], types.intp)
        kind, zero = number.type, ir.Constant(number.type, 0)
        is_constant = builder.module.declare_intrinsic("llvm.is.constant", [kind], _IS_CONSTANT)
        is_known = builder.call(is_constant, [number])
        unknown = builder.asm(ir.FunctionType(kind, [kind]), "", "=r,0", [zero], side_effect=False)
        return builder.add(number, builder.select(is_known, zero, unknown))

    return types.intp(count), lower


stride: Any = intrinsic(_stride)


def _part(typing_context: Any, room: Any, start: Any, count: Any, dtype: Any) -> Any:
    """Return `count` elements of a dtype in the bytes of an array, from byte `start` on.

    They keep the array: a function's own goes as soon as nothing of it is named any more.
    """
    if not (isinstance(room, types.Array) and isinstance(dtype, types.NumberClass)):
        return None
    array_type = _type_of_part(room, start, count, dtype)

    def lower(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        found = _written_part(context, builder, arguments, signature.args, keeps=True)
        return impl_ret_borrowed(context, builder, array_type, found)

    return array_type(room, start, count, dtype), lower


part: Any = intrinsic(_part)


def _type_of_part(room: Any, start: Any, count: Any, dtype: Any) -> Any:
    return types.Array(dtype.dtype, 1, "C")


def _written_part(
    context: Any, builder: Any, values: Sequence[Any], kinds: Sequence[Any], keeps: bool = False
) -> Any:
    """Write a part down; unless it `keeps` the array, for who does so anyway."""
    result = _type_of_part(*kinds)
    byte = ir.IntType(8).as_pointer()
    room, *numbers = values
    first, size = (
        context.cast(builder, number, kind, types.intp)
        for number, kind in zip(numbers[:2], kinds[1:3], strict=True)
    )
    data = builder.extract_value(room, DATA)
    place = builder.gep(builder.bitcast(data, byte), [first])
    place = builder.bitcast(place, context.get_data_type(result.dtype).as_pointer())
    owner = [builder.extract_value(room, each) for each in (MEMINFO, PARENT)] if keeps else []
    step = itemsize_of(context, result)
    return array_of(context, builder, result, place, [size], [step], *owner)


QUICK[part] = Quick(_type_of_part, _written_part, is_new=False)


def _distinct(typing_context: Any) -> Any:
    """Promise that no two arrays among the arguments share memory that is written to.

    LLVM then need not ask in front of every loop whether they do, and above a certain number of
    arrays it doesn't even ask but gives up.
    """

    def lower(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        for argument in builder.function.args:
            # Of what makes up an array, the elements are number 4.
            if isinstance(argument.type, ir.PointerType) and argument.name.endswith(".4"):
                argument.add_attribute("noalias")
        return context.get_dummy_value()

    return types.void(), lower


distinct: Any = intrinsic(_distinct)


def as_argument(value: Any, dtype: Any, position: int) -> Any:
    """Return an argument as a C-contiguous array: itself, a copy, or a number as an array.

    Raises
    ------
    TypeError
        If it is an array of another dtype. The message names its position.
    """
    return np.asarray(value, dtype, order="C")


def _compacted(context: Any, builder: Any, values: list[Any], kinds: list[Any]) -> Any:
    """Write down what gives an array itself if it is C-contiguous and aligned, else a copy that is.

    Its type does not say so.
    """
    array, result = kinds[0], types.Array(kinds[0].dtype, kinds[0].ndim, "C")
    given = context.make_array(array)(context, builder, values[0])
    sizes, steps = (cgutils.unpack_tuple(builder, each) for each in (given.shape, given.strides))
    itemsize = expected = given.itemsize
    zero, one = (ir.Constant(itemsize.type, number) for number in (0, 1))
    address = builder.ptrtoint(given.data, itemsize.type)
    fits = builder.icmp_unsigned("==", builder.urem(address, itemsize), zero)
    for size, step in zip(reversed(sizes), reversed(steps), strict=True):
        is_one = builder.icmp_unsigned("==", size, one)
        follows = builder.icmp_unsigned("==", step, expected)
        fits = builder.and_(fits, builder.or_(is_one, follows))
        expected = builder.mul(expected, size)
    kept = cgutils.alloca_once_value(builder, values[0])
    with builder.if_else(fits) as (as_it_is, copied):
        with as_it_is:
            context.nrt.incref(builder, array, values[0])
        with copied:
            new = new_array(context, builder, result, sizes)
            fresh = context.make_array(result)(context, builder, new)
            with cgutils.loop_nest(builder, sizes, itemsize.type) as index:
                source = cgutils.get_item_pointer(context, builder, array, given, index)
                target = cgutils.get_item_pointer(context, builder, result, fresh, index)
                item = context.unpack_value(builder, array.dtype, source)
                context.pack_value(builder, array.dtype, item, target)
            builder.store(new, kept)
    return builder.load(kept)


def _as_compact(typing_context: Any, array: Any) -> Any:
    """Return an array as a C-contiguous one, with a type that says so."""
    result = types.Array(array.dtype, array.ndim, "C")

    def lower(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return _compacted(context, builder, arguments, signature.args)

    return result(array), lower


_as_compact_array: Any = intrinsic(_as_compact)


def _type_of_argument(value: Any, dtype: Any, position: Any) -> Any:
    """Return the type of an argument that is an array of the dtype, or a number; None if not."""
    wanted = dtype.dtype
    if isinstance(value, types.Array):
        return types.Array(wanted, value.ndim, "C") if value.dtype == wanted else None
    is_number = isinstance(value, _NUMBERS) and _rank(value) <= _rank(wanted)
    return types.Array(wanted, 0, "C") if is_number else None


def _written_argument(context: Any, builder: Any, values: list[Any], kinds: list[Any]) -> Any:
    """Write down what gives an argument as an array: of a number, one on the stack."""
    if isinstance(kinds[0], types.Array):
        return _compacted(context, builder, values, kinds)
    result = _type_of_argument(*kinds)
    number = context.cast(builder, values[0], kinds[0], result.dtype)
    data = cgutils.alloca_once(builder, context.get_data_type(result.dtype))
    context.pack_value(builder, result.dtype, number, data)
    return array_of(context, builder, result, data, [], [])


QUICK[as_argument] = Quick(_type_of_argument, _written_argument)


@overload(as_argument, prefer_literal=True)
def _as_argument(value, dtype, position):  # type: ignore[no-untyped-def]
    wanted = dtype.dtype
    given = value.dtype if isinstance(value, types.Array) else value
    if isinstance(value, types.Array):
        fits = given == wanted
    else:
        fits = isinstance(given, _NUMBERS) and _rank(given) <= _rank(wanted)
    if not fits:
        place = getattr(position, "literal_value", "?")
        kind = "of" if isinstance(value, (types.Array, *_NUMBERS)) else "an array of"
        found = f"is of {given}" if kind == "of" else f"is no array but {_spelled(given)}"
        message = f"argument {place} must be {kind} {wanted}, as traced, but {found}"

        def wrong(value, dtype, position):  # type: ignore[no-untyped-def]
            # When it runs, not when it is compiled: what stands behind has to have a type.
            if unseen(1) > 0:
                raise TypeError(message)
            return np.empty((), dtype)

        return wrong
    if not isinstance(value, types.Array) or value.ndim == 0:

        def from_number(value, dtype, position):  # type: ignore[no-untyped-def]
            array = np.empty((), dtype)
            array[()] = number_in(value)
            return array

        return from_number
    if value.layout == "C":
        return lambda value, dtype, position: value

    return lambda value, dtype, position: _as_compact_array(value)


def number_in(value: Any) -> Any:
    """Return a number, or that in an array of no dims."""
    return np.asarray(value)[()]


@overload(number_in)
def _number_in(value):  # type: ignore[no-untyped-def]
    if isinstance(value, types.Array):
        return lambda value: value[()]
    return lambda value: value


_NUMBERS = (types.Boolean, types.Integer, types.Float, types.Complex)


def _rank(number: Any) -> int:
    """Return where the kind of a number stands among those that hold one another."""
    return next(rank for rank, kind in enumerate(_NUMBERS) if isinstance(number, kind))


def _spelled(given: Any) -> str:
    """Return what Python calls the values of a type, where that is simple."""
    names = {types.BaseTuple: "a tuple", types.List: "a list", types.UnicodeType: "a string"}
    names |= {types.NoneType: "None", types.Set: "a set", types.StringLiteral: "a string"}
    return next((name for kind, name in names.items() if isinstance(given, kind)), str(given))


# --- which part of a program a call runs ---------------------------------------------------------


@inline
def span(nest, what, items):  # type: ignore[no-untyped-def]
    """Return the items of a nest that are asked for: all, some, or none.

    `what` says it: the first nest and the last, excluded; of a single one perhaps the first item
    and the last, excluded. Instead of those, 0 and -1 mean all, -1 and -1 none.
    """
    if nest < what[0] or nest >= what[1] or what[2] < 0:
        return 0, 0
    if what[3] < 0:
        return 0, items
    return what[2], what[3]


@inline
def finishes(nest, what):  # type: ignore[no-untyped-def]
    """Whether what the items of a nest gave is to be combined."""
    return nest >= what[0] and nest < what[1] and what[3] < 0


def _type_of_span(nest: Any, what: Any, items: Any) -> Any:
    return types.UniTuple(types.intp, 2)


def _written_span(context: Any, builder: Any, values: Sequence[Any], kinds: Sequence[Any]) -> Any:
    is_asked, first, last = _asked_for(context, builder, values, kinds)
    zero = context.get_constant(types.intp, 0)
    is_all = builder.icmp_signed("<", last, zero)
    items = context.cast(builder, values[2], kinds[2], types.intp)
    is_none = builder.or_(builder.not_(is_asked), builder.icmp_signed("<", first, zero))
    start = builder.select(builder.or_(is_none, is_all), zero, first)
    stop = builder.select(is_none, zero, builder.select(is_all, items, last))
    return context.make_tuple(builder, _type_of_span(*kinds), (start, stop))


def _written_finishes(
    context: Any, builder: Any, values: Sequence[Any], kinds: Sequence[Any]
) -> Any:
    is_asked, _, last = _asked_for(context, builder, values, kinds)
    return builder.and_(
        is_asked, builder.icmp_signed("<", last, context.get_constant(types.intp, 0))
    )


def _asked_for(context: Any, builder: Any, values: Sequence[Any], kinds: Sequence[Any]) -> Any:
    """Return whether a nest is asked for, and which items are the first and the last."""
    nest = context.cast(builder, values[0], kinds[0], types.intp)
    data = builder.extract_value(values[1], DATA)
    low, high, first, last = (
        builder.load(builder.gep(data, [context.get_constant(types.intp, k)])) for k in range(4)
    )
    is_after = builder.icmp_signed(">=", nest, low)
    return builder.and_(is_after, builder.icmp_signed("<", nest, high)), first, last


QUICK[span] = Quick(_type_of_span, _written_span)
QUICK[finishes] = Quick(lambda nest, what: types.boolean, _written_finishes)
