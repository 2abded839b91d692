"""Passes of a Fourier transform in LLVM IR, of many transforms side by side in vectors.

A complex vector is one of real parts and one of imaginary parts behind it in memory, each as wide
as the widest register: `lanes_of` transforms go the same way, so that no number moves within a
vector but where elements come from complex arrays, or go to them.

A pass is one of Stockham's: of n numbers that are `step` apart it makes 4 (or 2) times n / 4 that
are four times as far apart, in the order that leaves the result sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from numgrad.codegen.llvm.quick_calls import DATA
from numgrad.codegen.llvm.vector_ir import VECTOR, Place, integer, lanes_of, loop, splat

__all__ = ["join", "join_turned", "pass_of_four", "pass_of_two", "split"]

Complex = tuple[Any, Any]


class _Vectors:
    """Complex vectors in an array, by their number."""

    def __init__(self, context: Any, builder: Any, kind: Any, array: Any) -> None:
        self.builder, self.lanes = builder, lanes_of(kind.dtype)
        self.place = Place(
            context, builder, kind.dtype, builder.extract_value(array, DATA), integer(0)
        )

    def read(self, number: Any) -> Complex:
        at = self.builder.mul(number, integer(2 * self.lanes))
        behind = self.builder.add(at, integer(self.lanes))
        return self.place.read(at, self.lanes), self.place.read(behind, self.lanes)

    def write(self, number: Any, value: Complex) -> None:
        at = self.builder.mul(number, integer(2 * self.lanes))
        self.place.write(at, self.lanes, value[0])
        self.place.write(self.builder.add(at, integer(self.lanes)), self.lanes, value[1])

    def pair(self, number: Any) -> Complex:
        """Return the real and the imaginary part of one number, each in all of a vector."""
        at = self.builder.mul(number, integer(2))
        parts = [self.place.read(each, 1) for each in (at, self.builder.add(at, integer(1)))]
        real, imaginary = (splat(self.builder, each, self.lanes) for each in parts)
        return real, imaginary


def _sum(builder: Any, x: Complex, y: Complex) -> Complex:
    return builder.fadd(x[0], y[0]), builder.fadd(x[1], y[1])


def _difference(builder: Any, x: Complex, y: Complex) -> Complex:
    return builder.fsub(x[0], y[0]), builder.fsub(x[1], y[1])


def _product(builder: Any, x: Complex, y: Complex) -> Complex:
    kind = x[0].type
    name = f"llvm.fma.v{kind.count}f{8 * VECTOR // kind.count}"
    function = builder.module.declare_intrinsic(name, fnty=ir.FunctionType(kind, [kind] * 3))

    def fma(*factors: Any) -> Any:
        return builder.call(function, factors)

    real = fma(x[0], y[0], builder.fneg(builder.fmul(x[1], y[1])))
    return real, fma(x[0], y[1], builder.fmul(x[1], y[0]))


def _turned(x: Complex, builder: Any) -> Complex:
    """Return a number times i."""
    return builder.fneg(x[1]), x[0]


def _four(builder: Any, parts: Sequence[Complex], turns: Sequence[Complex]) -> list[Complex]:
    a, b, c, d = parts
    even, odd = _sum(builder, a, c), _difference(builder, a, c)
    others, turned = _sum(builder, b, d), _turned(_difference(builder, b, d), builder)
    return [
        _sum(builder, even, others),
        _product(builder, _difference(builder, odd, turned), turns[0]),
        _product(builder, _difference(builder, even, others), turns[1]),
        _product(builder, _sum(builder, odd, turned), turns[2]),
    ]


def _two(builder: Any, parts: Sequence[Complex], turns: Sequence[Complex]) -> list[Complex]:
    a, b = parts
    return [_sum(builder, a, b), _product(builder, _difference(builder, a, b), turns[0])]


def _make_pass(radix: int, butterfly: Callable[..., list[Complex]]) -> Any:
    def butterflies(
        typing_context: Any, source: Any, target: Any, table: Any, count: Any, step: Any, turn: Any
    ) -> Any:
        return types.void(source, target, table, *(types.int64,) * 3), lower

    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, target, table = (
            _Vectors(context, builder, *each)
            for each in zip(signature.args[:3], arguments[:3], strict=True)
        )
        count, step, turn = arguments[3:]
        part = builder.sdiv(count, integer(radix))
        with loop(builder, part) as (p, _):
            angle = builder.mul(p, turn)
            turns = [table.pair(builder.mul(angle, integer(k))) for k in range(1, radix)]
            first, last = builder.mul(p, step), builder.mul(builder.mul(p, step), integer(radix))
            gap = builder.mul(part, step)
            with loop(builder, step) as (q, _):
                at = builder.add(first, q)
                parts = [
                    source.read(builder.add(at, builder.mul(gap, integer(k)))) for k in range(radix)
                ]
                to = builder.add(last, q)
                for k, value in enumerate(butterfly(builder, parts, turns)):
                    target.write(builder.add(to, builder.mul(step, integer(k))), value)
        return context.get_dummy_value()

    butterflies.__name__ = f"pass of {radix}"
    return intrinsic(butterflies)


def _every_other(builder: Any, vector: Any, first: int) -> Any:
    numbers = list(range(first, vector.type.count, 2))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(numbers)), numbers)
    return builder.shuffle_vector(vector, vector, mask)


def _interleaved(builder: Any, real: Any, imaginary: Any) -> Any:
    lanes = real.type.count
    numbers = [number for k in range(lanes) for number in (k, lanes + k)]
    mask = ir.Constant(ir.VectorType(ir.IntType(32), 2 * lanes), numbers)
    return builder.shuffle_vector(real, imaginary, mask)


def _split(typing_context: Any, source: Any, at: Any, target: Any, number: Any, swaps: Any) -> Any:
    """Read `lanes` complex numbers from number `at` on, and write them as a complex vector.

    Real and imaginary parts change places if it `swaps`: an inverse transform is a forward one
    between two of these.
    """

    def lower(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        source, target = (
            _Vectors(context, builder, signature.args[k], arguments[k]) for k in (0, 2)
        )
        at = builder.mul(arguments[1], integer(2))
        both = source.place.read(at, 2 * source.lanes)
        parts = [_every_other(builder, both, k) for k in range(2)]
        target.write(arguments[3], _swapped(builder, arguments[4], parts))
        return context.get_dummy_value()

    return types.void(source, types.int64, target, types.int64, types.boolean), lower


def _swapped(builder: Any, swaps: Any, parts: Sequence[Any]) -> Complex:
    real, imaginary = parts
    return builder.select(swaps, imaginary, real), builder.select(swaps, real, imaginary)


def _join(
    typing_context: Any, source: Any, number: Any, target: Any, at: Any, swaps: Any, scale: Any
) -> Any:
    """Write a complex vector times a real number as complex numbers, from number `at` on."""

    def lower(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        source, target = (
            _Vectors(context, builder, signature.args[k], arguments[k]) for k in (0, 2)
        )
        scale = splat(builder, arguments[5], source.lanes)
        parts = [builder.fmul(each, scale) for each in source.read(arguments[1])]
        whole = _interleaved(builder, *_swapped(builder, arguments[4], parts))
        target.place.write(builder.mul(arguments[3], integer(2)), 2 * source.lanes, whole)
        return context.get_dummy_value()

    kinds = (source, types.int64, target, types.int64, types.boolean, source.dtype)
    return types.void(*kinds), lower


def _join_turned(
    typing_context: Any,
    source: Any,
    number: Any,
    target: Any,
    at: Any,
    turns: Any,
    row: Any,
    more: Any,
    which: Any,
) -> Any:
    """Write a complex vector as `join` does, times one of `turns` and a number of `more`."""

    def lower(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        source, target, turns, more = (
            _Vectors(context, builder, signature.args[k], arguments[k]) for k in (0, 2, 4, 6)
        )
        turn = _product(builder, turns.read(arguments[5]), more.pair(arguments[7]))
        whole = _interleaved(builder, *_product(builder, source.read(arguments[1]), turn))
        target.place.write(builder.mul(arguments[3], integer(2)), 2 * source.lanes, whole)
        return context.get_dummy_value()

    kinds = (source, types.int64, target, types.int64, turns, types.int64, more, types.int64)
    return types.void(*kinds), lower


pass_of_four, pass_of_two = _make_pass(4, _four), _make_pass(2, _two)
split: Any = intrinsic(_split)
join: Any = intrinsic(_join)
join_turned: Any = intrinsic(_join_turned)
