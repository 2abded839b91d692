"""Blocks as LLVM vector instructions: of numbers, all lanes in registers, and of rows of lanes.

How many lanes there are, and how many rows make a block, is the order of summation that
`numgrad.kernels.reduce.order` describes. Eager reductions fold memory, compiled loops what they
have just computed, with these same instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from llvmlite import ir  # type: ignore[import-untyped]

from numgrad.base.tuning import SUM_BLOCK, SUM_DEPTH, SUM_LANES, SUM_ROWS, SUM_WIDTH
from numgrad.codegen.llvm.combine_ir import Combine
from numgrad.codegen.llvm.vector_ir import (
    Place,
    each,
    first_of,
    integer,
    lanes_of,
    loop,
    splat,
)
from numgrad.codegen.numba_private import as_dtype

__all__ = [
    "RUN",
    "RUN_LANES",
    "Fetched",
    "block_rows",
    "fold_lanes",
    "fold_run",
    "fold_runs",
    "lanes_of_rows",
    "nothing_of",
    "room_for",
]

RUN, RUN_LANES = SUM_BLOCK, SUM_LANES
INSTRUCTION_LENGTH = 4  # numbers for so many of which there are instructions of their own
FEW_LANES = 16  # numbers that are not worth all the lanes: the others would hold the identity


def lanes_of_rows(columns: int) -> int:
    """Return among how many lanes the rows are dealt out, where so many results lie side by side.

    A complex number is two of them.

    Examples
    --------
    >>> [lanes_of_rows(columns) for columns in (1, 2, 3, 100, 512)]
    [64, 64, 128, 4, 1]
    """
    if columns <= 2:
        return RUN_LANES
    return 1 << ((SUM_WIDTH - 1) // columns).bit_length()


def block_rows(columns: int, lanes: int = 0) -> int:
    """Return how many rows make a block.

    Examples
    --------
    >>> [block_rows(columns) for columns in (1, 2, 3, 100, 512)]
    [1024, 1024, 2048, 256, 256]
    """
    return max(SUM_DEPTH * (lanes or lanes_of_rows(columns)), SUM_ROWS)


class Fetched(NamedTuple):
    """What is fetched ahead into the caches, as processors do not where loops are long.

    Attributes
    ----------
    is_far : LLVM value
        Whether anything is.
    fetch : callable
        ``fetch(index, lanes)`` emits it, for what lies behind so many numbers.
    """

    is_far: Any
    fetch: Callable[..., None]


def nothing_of(context: Any, builder: Any, combine: Combine, dtype: Any) -> Any:
    """Return the identity of an operation as a constant of a Numba type."""
    number = combine.identity(as_dtype(dtype))
    return context.get_constant_generic(builder, dtype, number)


def fold_run(
    builder: Any,
    combine: Combine,
    dtype: Any,
    nothing: Any,
    read: Callable[[Any, int, Any], Any],
    count: Any,
    room: Place,
    parts: int = 1,
    *,
    masks: bool = True,
    fetched: Fetched | None = None,
) -> list[Any]:
    """Return what up to `RUN` numbers are combined to.

    Parameters
    ----------
    combine : Combine
    dtype : Numba type
        Of the results.
    nothing : LLVM value
        The identity.
    read : callable
        ``read(index, lanes, mask)`` returns so many numbers, or one; with a mask, those it names.
    count : LLVM value
        How many there are.
    room : Place
        For ``parts * RUN_LANES`` numbers.
    parts : int
        2 if each number is two, and so is the result.
    masks : bool
        Whether vectors of what is read can be masked, for which processors have instructions if
        they are of floating point numbers. Others are combined in any order: they do not round.
    fetched : Fetched, optional
        What is fetched ahead.
    """
    if lanes_of(dtype) == 1:
        return [_fold_numbers(builder, combine, dtype, nothing, read, count, room)]
    end = builder.append_basic_block("folded")
    found: list[Any] = []  # the results, and the blocks in which they are

    def case(is_so: Any, emit: Callable[[], list[Any]]) -> None:
        """Emit what is done where it is so; what is emitted next is for where it is not."""
        here, there = (builder.append_basic_block(name) for name in ("few", "more"))
        builder.cbranch(is_so, here, there)
        builder.position_at_end(here)
        found.append((emit(), builder.block))
        builder.branch(end)
        builder.position_at_end(there)

    def few_of(length: int) -> list[Any]:
        own = splat(builder, nothing, parts)
        values = [read(integer(k * parts), parts, None) for k in range(length)]
        values = [combine.emit(builder, dtype, own, value) for value in values]
        half = INSTRUCTION_LENGTH // 2
        while half:
            upper, values = values[half:], values[:half]
            pairs = zip(values, upper, strict=False)
            joined = [combine.emit(builder, dtype, x, y) for x, y in pairs]
            values[: len(upper)] = joined
            half //= 2
        return values if parts == 1 else _parts_of(builder, values[0])

    def some() -> list[Any]:
        if masks:
            value = splat(builder, nothing, parts * FEW_LANES)
            mask = first_of(builder, count, parts * FEW_LANES)
            x = combine.emit(builder, dtype, value, read(integer(0), parts * FEW_LANES, mask))
            return _halved(builder, combine, dtype, builder.select(mask, x, value), parts)
        with loop(builder, count, carried=nothing) as turn:
            turn[1] = combine.emit(builder, dtype, turn[1], read(turn[0], 1, None))
        return [turn[1]]

    for length in range(1, INSTRUCTION_LENGTH + 1):
        is_so = builder.icmp_signed("==", count, integer(parts * length))
        case(is_so, partial(few_of, length))
    case(builder.icmp_signed("<=", count, integer(parts * FEW_LANES)), some)

    lanes = parts * RUN_LANES
    whole = builder.and_(count, integer(-lanes))
    value, near = splat(builder, nothing, lanes), integer(0)
    if fetched is not None:  # in a loop of its own: the other one has no time for the question
        near = builder.select(fetched.is_far, whole, near)
        with loop(builder, near, lanes, carried=value) as turn:
            fetched.fetch(turn[0], lanes)
            turn[1] = combine.emit(builder, dtype, turn[1], read(turn[0], lanes, None))
        value = turn[1]
    with loop(builder, builder.sub(whole, near), lanes, carried=value) as turn:
        index = builder.add(near, turn[0])
        turn[1] = combine.emit(builder, dtype, turn[1], read(index, lanes, None))
    value, before = turn[1], builder.block
    rest = builder.and_(count, integer(lanes - 1))
    more, fold = (builder.append_basic_block(name) for name in ("rest", "fold"))
    builder.cbranch(builder.icmp_signed(">", rest, integer(0)), more, fold)
    builder.position_at_end(more)
    if masks:
        mask = first_of(builder, rest, lanes)
        joined = combine.emit(builder, dtype, value, read(whole, lanes, mask))
        joined = builder.select(mask, joined, value)
    else:
        room.write(integer(0), lanes, value)

        def body(index: Any, width: int) -> None:
            x, y = room.read(index, width), read(builder.add(whole, index), width, None)
            room.write(index, width, combine.emit(builder, dtype, x, y))

        each(builder, rest, lanes_of(dtype), body)
        joined = room.read(integer(0), lanes)
    after = builder.block
    builder.branch(fold)
    builder.position_at_end(fold)
    state = builder.phi(value.type)
    state.add_incoming(value, before)
    state.add_incoming(joined, after)
    found.append((_halved(builder, combine, dtype, state, parts), builder.block))
    builder.branch(end)

    builder.position_at_end(end)
    values = [builder.phi(one.type) for one in found[0][0]]
    for results, block in found:
        for value, result in zip(values, results, strict=True):
            value.add_incoming(result, block)
    return values


def fold_runs(
    builder: Any,
    combine: Combine,
    nothing: Any,
    place: Place,
    count: Any,
    read: Callable[[Any, Any, int, Any], Any],
    before: Callable[[Any, Any], None] | None = None,
    *,
    masks: bool,
    fetched: Fetched | None = None,
) -> None:
    """Fold up to `RUN` numbers at a time, each run to a number at `place`.

    ``read(first, index, lanes, mask)`` is as that of `fold_run` for the run from number `first` on,
    before which ``before(first, length)`` emits what it takes; so is that of `fetched`.
    """
    room = room_for(place.context, builder, place.dtype, RUN_LANES)
    with loop(builder, count, RUN) as (first, _):
        left = builder.sub(count, first)
        is_last = builder.icmp_signed("<", left, integer(RUN))
        length = builder.select(is_last, left, integer(RUN))
        if before is not None:
            before(first, length)
        own = partial(read, first)
        here = fetched and Fetched(fetched.is_far, partial(fetched.fetch, first))
        (number,) = fold_run(
            *(builder, combine, place.dtype, nothing, own, length, room), masks=masks, fetched=here
        )
        place.write(builder.sdiv(first, integer(RUN)), 1, number)


def _halved(builder: Any, combine: Combine, dtype: Any, value: Any, parts: int) -> list[Any]:
    """Combine the upper half of a vector into the lower one, and again."""
    lanes = value.type.count
    while lanes > parts:
        lanes //= 2
        halves = [
            builder.shuffle_vector(value, value, _numbers(first, lanes)) for first in (0, lanes)
        ]
        value = combine.emit(builder, dtype, *halves)
    return _parts_of(builder, value)


def _parts_of(builder: Any, value: Any) -> list[Any]:
    """Return the numbers of a vector."""
    places = [ir.Constant(ir.IntType(32), k) for k in range(value.type.count)]
    return [builder.extract_element(value, place) for place in places]


def _numbers(first: int, count: int) -> Any:
    kind = ir.VectorType(ir.IntType(32), count)
    return ir.Constant(kind, list(range(first, first + count)))


def _fold_numbers(
    builder: Any,
    combine: Combine,
    dtype: Any,
    nothing: Any,
    read: Callable[[Any, int, Any], Any],
    count: Any,
    room: Place,
) -> Any:
    """Do what `fold_run` does, one number at a time."""
    lanes = integer(RUN_LANES)
    room.write(integer(0), 1, nothing)
    is_few = builder.icmp_signed("<", count, lanes)
    live = builder.select(is_few, count, lanes)
    with loop(builder, live) as (index, _):
        room.write(index, 1, combine.emit(builder, dtype, nothing, read(index, 1, None)))
    with loop(builder, builder.sub(count, live)) as (index, _):
        lane = builder.and_(index, integer(RUN_LANES - 1))
        x = read(builder.add(lanes, index), 1, None)
        room.write(lane, 1, combine.emit(builder, dtype, room.read(lane, 1), x))
    with loop(builder, integer(RUN_LANES.bit_length() - 1)) as (turn, _):
        half = builder.ashr(integer(RUN_LANES // 2), turn)
        # The lanes from here on that there are: of those that are left, as many as fit.
        above = builder.sub(live, half)
        is_whole = builder.icmp_signed(">", above, half)
        above = builder.select(is_whole, half, above)
        with loop(builder, above) as (index, _):
            y = room.read(builder.add(index, half), 1)
            room.write(index, 1, combine.emit(builder, dtype, room.read(index, 1), y))
    return room.read(integer(0), 1)


def fold_lanes(
    builder: Any,
    combine: Combine,
    dtype: Any,
    target: Place,
    place: Place,
    rows: Any,
    lanes: Any,
    width: Any,
) -> None:
    """Combine rows of numbers, two at least: each with that of its lane, then the lanes, to one.

    The rows lie at `place`, of which the first are the lanes, and the result goes to `target`. How
    many rows there are, how many lanes, a power of two, and how long they are, are LLVM values.
    """
    one = integer(1)

    def lesser(x: Any, y: Any) -> Any:
        return builder.select(builder.icmp_signed("<", x, y), x, y)

    above = builder.udiv(builder.sub(rows, one), lanes)  # as many rows as there are lanes, and rest
    turns = builder.add(above, builder.cttz(lanes, ir.Constant(ir.IntType(1), 1)))
    with loop(builder, turns) as (turn, _):
        number = builder.add(turn, one)
        is_above = builder.icmp_signed("<=", number, above)
        half = builder.lshr(lanes, builder.sub(number, above))
        row = builder.select(is_above, builder.mul(number, lanes), half)
        end = lesser(rows, builder.add(row, lesser(row, lanes)))
        is_last = builder.icmp_signed("==", number, turns)
        into = place.moved(builder, builder.select(is_last, target.address, place.address))
        first, count = (
            builder.mul(number, width) for number in (row, builder.sub(end, lesser(row, end)))
        )

        def body(index: Any, many: int, into: Place = into, first: Any = first) -> None:
            x, y = place.read(index, many), place.read(builder.add(first, index), many)
            into.write(index, many, combine.emit(builder, dtype, x, y))

        each(builder, count, lanes_of(dtype), body)


def room_for(context: Any, builder: Any, dtype: Any, count: int) -> Place:
    """Return room on the stack of the function, made at its start."""
    kind = context.get_data_type(dtype)
    with builder.goto_entry_block():
        address = builder.alloca(ir.ArrayType(kind, count))
    return Place(context, builder, dtype, address, integer(0))
