"""What generated loops call to combine many values, in the order of `numgrad.kernels.reduce.order`.

Each function there is once for each kind of `COMBINES`: ``fold_sum``, ``fold_max`` and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types
from numba.extending import lower_builtin, type_callable

from numgrad.base.tuning import SUM_BLOCK
from numgrad.codegen.compile.dispatchers import inline
from numgrad.codegen.llvm.combine_ir import ADD, COMBINES, Combine, is_float
from numgrad.codegen.llvm.pointers import element, lesser, store
from numgrad.codegen.llvm.run_ir import RUN_LANES, fold_run, nothing_of, room_for
from numgrad.codegen.llvm.vector_ir import Place, apart, integer

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

    @type_callable(run)
    def type_run(context):  # type: ignore[no-untyped-def]
        return lambda values, start, count, identity: values.dtype

    @lower_builtin(run, types.Array, types.Integer, types.Integer, types.Any)
    def lower_run(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        values, *kinds, _ = signature.args
        data = context.make_array(values)(context, builder, arguments[0]).data
        first, length = (
            context.cast(builder, argument, kind, types.int64)
            for argument, kind in zip(arguments[1:3], kinds, strict=True)
        )
        return _emit(context, builder, combine, values.dtype, data, first, length)

    return run


def _emit(
    context: Any, builder: Any, combine: Combine, dtype: Any, data: Any, first: Any, count: Any
) -> Any:
    """Emit the call of a function that folds a block; return the result."""
    parts, kind = 1, types.uint8 if isinstance(dtype, types.Boolean) else dtype
    if isinstance(dtype, types.Complex) and combine is ADD:  # two sums side by side
        parts, kind = 2, dtype.underlying_float
        first, count = builder.mul(first, integer(2)), builder.mul(count, integer(2))
    source = Place(context, builder, kind, data, first)
    result = room_for(context, builder, kind, parts)

    def emit(inner: Any, places: list[Place], numbers: list[Any]) -> None:
        values = fold_run(
            inner,
            combine,
            kind,
            nothing_of(context, inner, combine, kind),
            places[1].read,
            numbers[0],
            room_for(context, inner, kind, parts * RUN_LANES),
            parts,
            masks=is_float(kind),
        )
        for k, value in enumerate(values):
            places[0].write(integer(k), 1, value)

    apart(builder, "run", emit, [result, source], [count])
    values = [result.read(integer(k), 1) for k in range(parts)]
    if parts == 2:
        number = context.make_complex(builder, dtype)
        number.real, number.imag = values
        return number._getvalue()
    return context.cast(builder, values[0], kind, dtype)


# --- more than a block ---------------------------------------------------------------------------


@inline
def shifted(values, filled):  # type: ignore[no-untyped-def]
    """Drop the first block of what was filled in, and return how many values there are still."""
    for i in range(filled - SUM_BLOCK):
        store(values, i, element(values, SUM_BLOCK + i))
    return filled - SUM_BLOCK


def _make(join: Any, run: Any) -> Any:
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
    def halve(values, start, live, lanes, width):  # type: ignore[no-untyped-def]
        """Combine the upper half of rows into the lower one, and again, from `start` on."""
        half = lanes >> 1
        while half > 0:
            if live > half:
                other = start + half * width
                for i in range((live - half) * width):
                    value = join(element(values, start + i), element(values, other + i))
                    store(values, start + i, value)
                live = half
            half >>= 1

    @inline
    def fold_rows(values, rows, lanes, block, width, out, identity):  # type: ignore[no-untyped-def]
        """Combine rows of `width` values to the elements of `out`.

        Those of each block are in its lanes already.
        """
        if rows == 0:
            for i in range(width):
                store(out, i, identity)
            return
        blocks = (rows + block - 1) // block
        for k in range(blocks):
            start = k * lanes * width
            halve(values, start, lesser(lanes, rows - k * block), lanes, width)
            if lanes > 1:
                for i in range(width):
                    store(values, k * width + i, element(values, start + i))
        while blocks > 1:
            rows = blocks
            blocks = (rows + block - 1) // block
            for k in range(blocks):
                start = k * block * width
                count = lesser(block, rows - k * block)
                for row in range(lanes, count):
                    at, other = start + (row & (lanes - 1)) * width, start + row * width
                    for i in range(width):
                        value = join(element(values, at + i), element(values, other + i))
                        store(values, at + i, value)
                halve(values, start, lesser(lanes, count), lanes, width)
                for i in range(width):
                    store(values, k * width + i, element(values, start + i))
        for i in range(width):
            store(out, i, element(values, i))

    return fold, total, merge, merged, fold_rows


for _kind, _combine in COMBINES.items():
    _join = globals()[f"join_{_kind}"]
    _run = _make_run(_join, _combine)
    for _function in (_run, *_make(_join, _run)):
        globals()[f"{_function.__name__}_{_kind}"] = _function
