"""Elementwise loops as LLVM vector instructions: functions without branches, mapped over arrays.

Kernels that do more than one thing to a block of elements call these instead of loops written in
Python, which Numba types and LLVM writes four times over as it vectorises them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic, lower_builtin

from numgrad.codegen.llvm.scalar_ir import Number
from numgrad.codegen.llvm.vector_ir import (
    Place,
    apart,
    each_masked,
    first_of,
    integer,
    lanes_of,
    loop,
    splat,
)
from numgrad.codegen.numba_private import AbstractTemplate, infer_global, signature

__all__ = ["Blockwise", "Map", "make_any", "make_blockwise"]


def _emit_apart(
    context: Any,
    builder: Any,
    function: Callable[..., Any],
    outputs: int,
    places: Sequence[Place],
    numbers: Sequence[tuple[Any, Any]],
    count: Any,
) -> None:
    """Store what a function gives for `count` elements of places, and for numbers with their types.

    The first `outputs` of the places are where it goes.
    """

    def emit(builder: Any, places: Sequence[Place], numbers: Sequence[Any]) -> None:
        *constants, count = numbers

        def body(index: Any, lanes: int, mask: Any) -> None:
            read = [(place.dtype, place.read(index, lanes, mask)) for place in places[outputs:]]
            spread = [splat(builder, constant, lanes) for constant in constants]
            read += zip(kinds, spread, strict=True)
            found = function(*(Number(builder, kind, value) for kind, value in read))
            results = found if isinstance(found, tuple) else (found,)
            for place, result in zip(places, results, strict=False):
                place.write(index, lanes, result.value, mask)

        each_masked(builder, count, lanes_of(places[0].dtype), body, at_once=2)

    kinds = [kind for kind, _ in numbers]
    apart(builder, function.__name__, emit, places, [*(value for _, value in numbers), count])


def _place(context: Any, builder: Any, kind: Any, array: Any, position: Any) -> Place:
    """Return where an array's elements are, from a position on."""
    data = context.make_array(kind)(context, builder, array).data
    return Place(context, builder, kind.dtype, data, position)


class Map:
    """A function for kernels that stores what a branch-free function gives.

    ``map(count, *outputs, *operands)`` does so for `count` elements. Each output is two arguments,
    a flat array and the position of the first element; so is each operand, or it is one number. All
    are real, and none is bool.

    Parameters
    ----------
    function : callable
        Of as many numbers as there are operands; returns one number, or a tuple of as many as there
        are outputs.
    outputs : int
        How many there are.
    """

    def __init__(self, function: Callable[..., Any], outputs: int = 1) -> None:
        self.function = function
        self.__name__, self.__module__ = function.__name__, function.__module__
        self.__qualname__ = f"Map of {function.__qualname__}"

        class Template(AbstractTemplate):
            key = self

            def generic(self, args: Any, kws: Any) -> Any:
                own = [types.int64]
                for before, kind in pairwise(args):
                    follows = isinstance(before, types.Array) and isinstance(kind, types.Integer)
                    own.append(types.int64 if follows else types.unliteral(kind))
                return signature(types.void, *own)

        def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            places, numbers = [], []
            given = iter(list(zip(sig.args, args, strict=True))[1:])
            for kind, value in given:
                if isinstance(kind, types.Array):
                    places.append(_place(context, builder, kind, value, next(given)[1]))
                else:
                    numbers.append((kind, value))
            _emit_apart(context, builder, function, outputs, places, numbers, args[0])
            return context.get_dummy_value()

        infer_global(self, types.Function(Template))
        lower_builtin(self, types.VarArg(types.Any))(lower)

    def __call__(self, *arguments: Any) -> None:
        """Raise: only kernels can call it."""
        raise TypeError(f"{self.__name__} is a part of kernels: only these can call it")


def make_any(function: Callable[[Any, Any], Any]) -> Any:
    """Return a function for kernels that asks whether anything holds for elements.

    ``any(array, start, count, number)`` is true if ``function(x, number)`` is for any of `count`
    elements of a flat real array.
    """

    def holds(typing_context: Any, array: Any, start: Any, count: Any, number: Any) -> Any:
        kind = array.dtype

        def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            start, count, number = args[1:]
            place, lanes = _place(context, builder, sig.args[0], args[0], start), lanes_of(kind)
            other = Number(builder, kind, splat(builder, number, lanes))

            def asked(index: Any, mask: Any) -> Any:
                x = place.read(index, lanes, mask)
                return function(Number(builder, kind, x), other).value

            whole = builder.and_(count, integer(-lanes))
            nothing = ir.Constant(ir.VectorType(ir.IntType(1), lanes), None)
            with loop(builder, whole, lanes, carried=nothing) as turn:
                turn[1] = builder.or_(turn[1], asked(turn[0], None))
            left, before = builder.sub(count, whole), builder.block
            with builder.if_then(builder.icmp_signed("!=", left, integer(0))):
                mask = first_of(builder, left, lanes)
                also = builder.or_(turn[1], builder.and_(mask, asked(whole, mask)))
                inside = builder.block
            found = builder.phi(also.type)
            found.add_incoming(turn[1], before)
            found.add_incoming(also, inside)
            bits = ir.IntType(lanes)
            return builder.icmp_unsigned("!=", builder.bitcast(found, bits), ir.Constant(bits, 0))

        return types.boolean(array, types.int64, types.int64, kind), lower

    holds.__name__, holds.__qualname__ = f"any {function.__name__}", f"any {function.__qualname__}"
    return intrinsic(holds)


class Blockwise(NamedTuple):
    """Two functions for kernels that store a branch-free function of blocks of elements.

    Both are called as ``each(a, b, out, p, q, n, inner, width, first, last)``, with flat arrays,
    for the blocks from `first` to `last`.

    Attributes
    ----------
    rows : intrinsic
        Stores ``function(a, b, p, q)`` of n elements of a and b, for which p and q have a number.
    columns : intrinsic
        Stores that of the first `width` of `inner` columns, for each of which they have a number.
    """

    rows: Any
    columns: Any


def make_blockwise(function: Callable[[Any, Any, Any, Any], Any]) -> Blockwise:
    """Return what stores a branch-free function of four numbers, of rows and of columns."""
    return Blockwise(_make_blockwise(function, True), _make_blockwise(function, False))


def _make_blockwise(function: Callable[..., Any], are_rows: bool) -> Any:
    def each_block(
        typing_context: Any,
        a: Any,
        b: Any,
        out: Any,
        p: Any,
        q: Any,
        n: Any,
        inner: Any,
        width: Any,
        first: Any,
        last: Any,
    ) -> Any:
        return types.void(a, b, out, p, q, *(types.int64,) * 5), lower

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        arrays = dict(zip("abopq", zip(sig.args, args, strict=False), strict=False))
        n, inner, width, first, last = args[5:]

        def at(name: str, position: Any) -> Place:
            return _place(context, builder, *arrays[name], position)

        with loop(builder, builder.sub(last, first)) as (index, _):
            block = builder.add(first, index)
            row = builder.mul(block, n)
            if are_rows:
                cells = [at(name, block) for name in "pq"]
                numbers = [(cell.dtype, cell.read(integer(0), 1)) for cell in cells]
                places = [at(name, row) for name in "oab"]
                _emit_apart(context, builder, function, 1, places, numbers, n)
            else:
                column = builder.mul(block, inner)
                with loop(builder, n) as (i, _):
                    start = builder.mul(builder.add(row, i), inner)
                    places = [at(name, start) for name in "oab"]
                    places += [at(name, column) for name in "pq"]
                    _emit_apart(context, builder, function, 1, places, [], width)
        return context.get_dummy_value()

    each_block.__name__ = f"{function.__name__} of {'rows' if are_rows else 'columns'}"
    each_block.__qualname__ = f"{function.__module__} {each_block.__name__}"
    return intrinsic(each_block)
