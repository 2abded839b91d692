"""What generated loops call to combine many values, in the order of `numgrad.kernels.reduce.order`.

Each function there is once for each kind of `COMBINES`: ``fold_sum``, ``fold_max`` and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from numba import types
from numba.extending import lower_builtin, type_callable

from numgrad.base.tuning import SUM_BLOCK
from numgrad.codegen.compile.dispatchers import inline
from numgrad.codegen.llvm.combine_ir import ADD, COMBINES, Combine, is_float
from numgrad.codegen.llvm.pointers import element, lesser, store
from numgrad.codegen.llvm.quick_calls import DATA
from numgrad.codegen.llvm.run_ir import RUN_LANES, fold_lanes, fold_run, nothing_of, room_for
from numgrad.codegen.llvm.vector_ir import Place, apart, each, integer, lanes_of

__all__ = ["LEVELS", "join_max", "shifted"]

LEVELS = 4 * SUM_BLOCK  # room for what blocks are combined to, these blocks again, and so on


# --- operations on two values --------------------------------------------------------------------


@inline
def join_sum(a, b):  # type: ignore[no-untyped-def]
    """Return a + b."""
    return a + b


@inline
def join_prod(a, b):  # type: ignore[no-untyped-def]
    """Return a * b."""
    return a * b


@inline
def join_max(a, b):  # type: ignore[no-untyped-def]
    """Return the greater number, or nan."""
    return a if (a >= b) | (a != a) else b


@inline
def join_min(a, b):  # type: ignore[no-untyped-def]
    """Return the lesser number, or nan."""
    return a if (a <= b) | (a != a) else b


@inline
def join_all(a, b):  # type: ignore[no-untyped-def]
    """Return whether both hold."""
    return a & b


@inline
def join_any(a, b):  # type: ignore[no-untyped-def]
    """Return whether one holds."""
    return a | b


# --- a block -------------------------------------------------------------------------------------


def _make_run(join: Callable[[Any, Any], Any], combine: Combine) -> Any:
    """Return what combines the values of a block."""

    def run(values: Any, start: int, count: int, identity: Any) -> Any:
        """Return `count` values from `start` on, a block at most, combined."""
        lanes = [identity] * min(count, RUN_LANES) or [identity]
        for i in range(count):
            lane = i % RUN_LANES
            lanes[lane] = join(lanes[lane], element(values, start + i))
        half = RUN_LANES // 2
        while half:
            upper = lanes[half:]
            lanes = lanes[:half]
            for i, value in enumerate(upper):
                lanes[i] = join(lanes[i], value)
            half //= 2
        return lanes[0]

    def emit(context: Any, builder: Any, dtype: Any, data: Any, *numbers: Any) -> Any:
        parts, kind = _numbers_of(dtype, combine)
        first, count = (builder.mul(number, integer(parts)) for number in numbers[:2])
        source = Place(context, builder, kind, data, first)
        result = room_for(context, builder, kind, parts)

        def emit_fold(inner: Any, places: list[Place], numbers: list[Any]) -> None:
            nothing = nothing_of(context, inner, combine, kind)
            room = room_for(context, inner, kind, parts * RUN_LANES)
            read, of_floats = places[1].read, is_float(kind)
            values = fold_run(
                inner, combine, kind, nothing, read, numbers[0], room, parts, masks=of_floats
            )
            for k, value in enumerate(values):
                places[0].write(integer(k), 1, value)

        key = "run", combine.name, kind, parts
        apart(builder, "run", emit_fold, [result, source], [count], key)
        values = [result.read(integer(k), 1) for k in range(parts)]
        if parts == 2:
            number = context.make_complex(builder, dtype)
            number.real, number.imag = values
            return number._getvalue()
        return context.cast(builder, values[0], kind, dtype)

    return _by_instructions(run, emit, lambda values, *_: values.dtype)


def _make_combine_lanes(join: Callable[[Any, Any], Any], combine: Combine) -> Any:
    """Return what combines rows of lanes."""

    def combine_lanes(
        values: Any, target: int, start: int, rows: int, lanes: int, width: int
    ) -> None:
        """Combine rows of `width` values with their lanes, and these to one row, at `target`."""
        above = [*range(lanes, rows, lanes)]
        halves = [lanes >> turn for turn in range(1, int(lanes).bit_length())]
        for row in [*above, *halves]:
            for i in range(start, start + (min(rows, row + min(row, lanes)) - row) * width):
                store(values, i, join(element(values, i), element(values, i + row * width)))
        for i in range(width):
            store(values, target + i, element(values, start + i))

    def emit(context: Any, builder: Any, dtype: Any, data: Any, *numbers: Any) -> Any:
        parts, kind = _numbers_of(dtype, combine)
        target, start, rows, lanes, width = numbers
        target, start, width = (
            builder.mul(each, integer(parts)) for each in (target, start, width)
        )
        places = [Place(context, builder, kind, data, at) for at in (target, start)]

        def emit_fold(inner: Any, places: list[Place], numbers: list[Any]) -> None:
            fold_lanes(inner, combine, kind, *places, *numbers)
            is_one = inner.icmp_signed("==", numbers[0], integer(1))
            each(
                inner,
                inner.select(is_one, numbers[2], integer(0)),
                lanes_of(kind),
                lambda index, many: places[0].write(index, many, places[1].read(index, many)),
            )

        key = "combine_lanes", combine.name, kind
        apart(builder, "combine_lanes", emit_fold, places, [rows, lanes, width], key)
        return context.get_dummy_value()

    return _by_instructions(combine_lanes, emit, lambda *_: types.void)


def _numbers_of(dtype: Any, combine: Combine) -> tuple[int, Any]:
    """Return how many numbers are combined for a value of a Numba type, and of which type."""
    if isinstance(dtype, types.Complex) and combine is ADD:  # two sums side by side
        return 2, dtype.underlying_float
    return 1, types.uint8 if isinstance(dtype, types.Boolean) else dtype


def _by_instructions(function: Any, emit: Callable[..., Any], result: Callable[..., Any]) -> Any:
    """Have `emit` write what compiled code does in a function of values and some integers."""

    @type_callable(function)
    def type_function(context):  # type: ignore[no-untyped-def]
        return wraps(function)(result)  # whose parameters Numba looks at

    @lower_builtin(function, types.Array, types.VarArg(types.Any))
    def lower_function(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        values, *kinds = signature.args
        data = builder.extract_value(arguments[0], DATA)
        numbers = [
            context.cast(builder, argument, kind, types.int64)
            for argument, kind in zip(arguments[1:], kinds, strict=True)
            if isinstance(kind, types.Integer)
        ]
        return emit(context, builder, values.dtype, data, *numbers)

    return function


# --- more than a block ---------------------------------------------------------------------------


@inline
def shifted(values, filled):  # type: ignore[no-untyped-def]
    """Drop the first block of what was filled in, and return how many values there are still."""
    for i in range(filled - SUM_BLOCK):
        store(values, i, element(values, SUM_BLOCK + i))
    return filled - SUM_BLOCK


def _make(run: Any, combine_lanes: Any) -> Any:
    """Return ways of combining any number of values."""

    @inline
    def fold(values, count, identity):  # type: ignore[no-untyped-def]
        """Return the first `count` values combined; they are garbage afterwards."""
        while count > SUM_BLOCK:
            blocks = (count + SUM_BLOCK - 1) // SUM_BLOCK
            for k in range(blocks):
                start = k * SUM_BLOCK
                store(values, k, run(values, start, lesser(SUM_BLOCK, count - start), identity))
            count = blocks
        return run(values, 0, count, identity)

    @inline
    def total(values, count, identity):  # type: ignore[no-untyped-def]
        """Return the values of blocks combined: what there is one of is the result."""
        if count == 1:
            return element(values, 0)
        return fold(values, count, identity)

    @inline
    def merge(levels, index, value, identity):  # type: ignore[no-untyped-def]
        """Add the value of block number `index`; when there is a block of these, it is folded."""
        start = 0
        store(levels, start + index % SUM_BLOCK, value)
        while index % SUM_BLOCK == SUM_BLOCK - 1:
            value = run(levels, start, SUM_BLOCK, identity)
            index //= SUM_BLOCK
            start += SUM_BLOCK
            store(levels, start + index % SUM_BLOCK, value)

    @inline
    def merged(levels, count, identity):  # type: ignore[no-untyped-def]
        """Return the value of all `count` blocks that were added."""
        if count == 0:
            return identity
        start = 0
        while count > 1:
            last = (count - 1) % SUM_BLOCK + 1
            value = run(levels, start, last, identity)
            count = (count + SUM_BLOCK - 1) // SUM_BLOCK
            start += SUM_BLOCK
            store(levels, start + (count - 1) % SUM_BLOCK, value)
        return element(levels, start)

    @inline
    def fold_rows(values, rows, lanes, block, width, out, identity):  # type: ignore[no-untyped-def]
        """Combine rows of `width` values, the results of blocks, to the elements of `out`."""
        if rows == 0:
            for i in range(width):
                store(out, i, identity)
            return
        while rows > 1:
            blocks = (rows + block - 1) // block
            for k in range(blocks):
                count = lesser(block, rows - k * block)
                combine_lanes(values, k * width, k * block * width, count, lanes, width)
            rows = blocks
        for i in range(width):
            store(out, i, element(values, i))

    return fold, total, merge, merged, fold_rows


for _kind, _combine in COMBINES.items():
    _join = globals()[f"join_{_kind}"]
    _run, _lanes = _make_run(_join, _combine), _make_combine_lanes(_join, _combine)
    for _function in (_run, _lanes, *_make(_run, _lanes)):
        globals()[f"{_function.__name__}_{_kind}"] = _function
