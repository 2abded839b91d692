"""Vector loops in LLVM IR: what `fold_ir` and `map_ir` are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types

__all__ = [
    "Place",
    "Rows",
    "apart",
    "each",
    "each_masked",
    "first_of",
    "integer",
    "lanes_of",
    "loop",
    "splat",
]

CACHE_LINE = 64  # bytes
VECTOR = 64  # bytes of lanes handled at once: the widest registers there are
INDEX = ir.IntType(64)


def lanes_of(dtype: Any) -> int:
    """Return how many numbers of a Numba type are handled at once."""
    return 1 if isinstance(dtype, types.Complex) else VECTOR * 8 // int(dtype.bitwidth)


class Place:
    """A run of numbers of a Numba type in memory, from a position behind an address on."""

    def __init__(self, context: Any, builder: Any, dtype: Any, address: Any, position: Any) -> None:
        self.context, self.builder, self.dtype = context, builder, dtype
        self.value_type = context.get_data_type(dtype)
        address = builder.bitcast(address, self.value_type.as_pointer())
        self.address = builder.gep(address, [position])

    def moved(self, builder: Any, address: Any) -> Place:
        """Return the place of the same kind of numbers at an address, for another builder."""
        return Place(self.context, builder, self.dtype, address, integer(0))

    def _at(self, index: Any, lanes: int) -> Any:
        address = self.builder.gep(self.address, [index])
        if lanes == 1:
            return address
        return self.builder.bitcast(address, ir.VectorType(self.value_type, lanes).as_pointer())

    def read(self, index: Any, lanes: int, mask: Any = None) -> Any:
        """Load a number, or a vector, which may begin at any of them; 0 where a mask says no."""
        address = self._at(index, lanes)
        if mask is not None:
            vector = address.type.pointee
            align, nothing = self._alignment(), ir.Constant(vector, None)
            load = self._masked("load", vector, [address.type, align.type, mask.type, vector])
            return self.builder.call(load, [address, align, mask, nothing])
        if isinstance(self.dtype, types.Complex):
            return self.context.unpack_value(self.builder, self.dtype, address)
        return self.builder.load(address, align=self.dtype.bitwidth // 8)

    def write(self, index: Any, lanes: int, value: Any, mask: Any = None) -> None:
        """Store a number or a vector; nothing where a mask says no."""
        address = self._at(index, lanes)
        if mask is not None:
            align, vector = self._alignment(), value.type
            store = self._masked("store", vector, [vector, address.type, align.type, mask.type])
            self.builder.call(store, [value, address, align, mask])
            return
        if isinstance(self.dtype, types.Complex):
            self.context.pack_value(self.builder, self.dtype, value, address)
        else:
            self.builder.store(value, address, align=self.dtype.bitwidth // 8)

    def prefetch(self, index: Any, lanes: int, distance: int) -> None:
        """Have fetched what lies so many bytes behind the numbers from an index on."""
        kinds = [self.address.type, *[ir.IntType(32)] * 3]
        fetch = self.builder.module.declare_intrinsic(
            "llvm.prefetch.p0", fnty=ir.FunctionType(ir.VoidType(), kinds)
        )
        how = [ir.Constant(ir.IntType(32), value) for value in (0, 3, 1)]  # to read, keep, data
        size = self.context.get_abi_sizeof(self.value_type)
        for line in range(0, lanes * size, CACHE_LINE):
            ahead = self.builder.add(index, integer((distance + line) // size))
            self.builder.call(fetch, [self._at(ahead, 1), *how])

    def _alignment(self) -> Any:
        return ir.Constant(ir.IntType(32), self.dtype.bitwidth // 8)

    def _masked(self, verb: str, vector: Any, kinds: Sequence[Any]) -> Any:
        """Return LLVM's intrinsic that loads or stores some of a vector."""
        letter = "f" if self.dtype in types.real_domain else "i"
        name = f"llvm.masked.{verb}.v{vector.count}{letter}{self.dtype.bitwidth}.p0"
        result = vector if verb == "load" else ir.VoidType()
        return self.builder.module.declare_intrinsic(name, fnty=ir.FunctionType(result, kinds))


class Rows(Place):
    """Numbers of rows that lie apart, read as if each row began where the last one ended.

    Parameters
    ----------
    builder
    source : Place
        Where the first row begins.
    first, count : LLVM values
        Which number is the first one, and how many are read.
    length, row_step : LLVM values
        How many numbers a row has, no fewer than there are lanes, and how far rows lie apart.
    is_repeated : LLVM value
        Whether a row is its first number again and again.
    """

    def __init__(
        self,
        builder: Any,
        source: Place,
        first: Any,
        count: Any,
        length: Any,
        row_step: Any,
        is_repeated: Any,
    ) -> None:
        self.context, self.builder, self.dtype = source.context, builder, source.dtype
        self.source, self.first, self.end = source, first, builder.add(first, count)
        self.length, self.row_step, self.is_repeated = length, row_step, is_repeated

    def read(self, index: Any, lanes: int, mask: Any = None) -> Any:
        """Load a number, or a vector, which may go on in the next row."""
        builder = self.builder
        at = builder.add(self.first, index)
        row = builder.udiv(at, self.length)
        column = builder.sub(at, builder.mul(row, self.length))
        start = builder.mul(row, self.row_step)
        place = builder.add(start, builder.select(self.is_repeated, integer(0), column))
        if lanes == 1:
            return self.source.read(place, 1)
        left = builder.sub(self.length, column)
        is_whole = builder.icmp_signed(">=", left, integer(lanes))
        is_there = builder.icmp_signed("<", builder.add(at, left), self.end)
        following = builder.select(is_there, builder.add(start, self.row_step), start)
        left = builder.select(is_whole, integer(lanes), left)

        def repeated() -> Any:
            x, y = (
                splat(builder, self.source.read(position, 1), lanes)
                for position in (start, following)
            )
            return builder.select(first_of(builder, left, lanes), x, y)

        def parted() -> Any:
            own = first_of(builder, left, lanes)
            masks = [own, builder.not_(own)]
            if mask is not None:
                masks = [builder.and_(one, mask) for one in masks]
            x = self.source.read(place, lanes, masks[0])
            y = self.source.read(builder.sub(following, left), lanes, masks[1])
            return builder.select(own, x, y)

        def different() -> Any:
            return either(
                builder, is_whole, lambda: self.source.read(place, lanes, mask), parted, likely=True
            )

        return either(builder, self.is_repeated, repeated, different)


def either(
    builder: Any,
    is_so: Any,
    emit: Callable[[], Any],
    otherwise: Callable[[], Any],
    *,
    likely: bool | None = None,
) -> Any:
    """Return the value that one of two functions emits, of which only that one is run."""
    found = []
    with builder.if_else(is_so, likely=likely) as branches:
        for branch, write in zip(branches, (emit, otherwise), strict=True):
            with branch:
                found.append((write(), builder.block))
    value = builder.phi(found[0][0].type)
    for one, block in found:
        value.add_incoming(one, block)
    return value


def integer(number: int) -> Any:
    """Return a constant that counts."""
    return ir.Constant(INDEX, number)


@contextmanager
def loop(builder: Any, stop: Any, step: int = 1, carried: Any = None) -> Iterator[list[Any]]:
    """Count from 0 while below `stop`; yield the index and a value carried from turn to turn.

    The body puts the value's next state in the list's second place, where it is found at the end.
    """
    before = builder.block
    head, body, end = (builder.append_basic_block(name) for name in ("head", "body", "end"))
    builder.branch(head)
    builder.position_at_end(head)
    index = builder.phi(INDEX)
    index.add_incoming(integer(0), before)
    state = None
    if carried is not None:
        state = builder.phi(carried.type)
        state.add_incoming(carried, before)
    builder.cbranch(builder.icmp_signed("<", index, stop), body, end)
    builder.position_at_end(body)
    turn = [index, state]
    yield turn
    index.add_incoming(builder.add(index, integer(step)), builder.block)
    if state is not None:
        state.add_incoming(turn[1], builder.block)
        turn[1] = state
    builder.branch(head)
    builder.position_at_end(end)


def each(builder: Any, count: Any, lanes: int, body: Callable[[Any, int], None]) -> None:
    """Emit ``body(index, lanes)`` for vectors, then ``body(index, 1)`` for what is left."""
    whole = builder.and_(count, integer(-lanes))
    if lanes > 1:
        with loop(builder, whole, lanes) as (index, _):
            body(index, lanes)
        count = builder.and_(count, integer(lanes - 1))
    with loop(builder, count) as (index, _):
        body(builder.add(whole, index) if lanes > 1 else index, 1)


def each_masked(
    builder: Any, count: Any, lanes: int, body: Callable[[Any, int, Any], None], at_once: int = 1
) -> None:
    """Emit ``body(index, lanes, mask)`` for vectors, then for what is left.

    What is left is masked: for bodies that take so long that one number after the other would take
    longer than all else. Before that, `at_once` vectors can be one for the body; see `paired`.
    """
    whole = builder.and_(count, integer(-at_once * lanes))
    with loop(builder, whole, at_once * lanes) as (index, _):
        body(index, at_once * lanes, None)
    left = builder.sub(count, whole)
    with loop(builder, left, lanes) as (index, _):
        mask = first_of(builder, builder.sub(left, index), lanes)
        body(builder.add(whole, index), lanes, mask)


def paired(builder: Any, x: Any, y: Any) -> Any:
    """Return two vectors as one, which LLVM will make two registers of.

    In a long computation nearly every instruction waits for the one before. With twice the lanes
    that for the other register comes in between.
    """
    return builder.shuffle_vector(x, y, _numbers(0, 2 * x.type.count))


def halves(builder: Any, vector: Any) -> tuple[Any, Any]:
    """Return the two vectors that `paired` made one."""
    count = vector.type.count // 2
    first, second = (
        builder.shuffle_vector(vector, vector, _numbers(start, count)) for start in (0, count)
    )
    return first, second


def _numbers(start: int, count: int) -> Any:
    kind = ir.VectorType(ir.IntType(32), count)
    return ir.Constant(kind, list(range(start, start + count)))


def first_of(builder: Any, count: Any, lanes: int) -> Any:
    """Return a mask that says yes for the first `count` of a vector."""
    limit = splat(builder, builder.trunc(count, ir.IntType(32)), lanes)
    return builder.icmp_signed("<", _numbers(0, lanes), limit)


def splat(builder: Any, value: Any, lanes: int) -> Any:
    """Return a vector of equal numbers, or the number itself."""
    if lanes == 1:
        return value
    vector = ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined)
    vector = builder.insert_element(vector, value, ir.Constant(ir.IntType(32), 0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), lanes), None)
    return builder.shuffle_vector(vector, vector, mask)


def apart(
    builder: Any,
    name: str,
    emit: Callable[..., None],
    places: Sequence[Place],
    numbers: Sequence[Any],
    key: Any = None,
) -> None:
    """Call a function of its own that ``emit(builder, places, numbers)`` writes.

    What has the same key is the same, and is written once in a module.

    Loops that stand in others would keep what they need in registers beside what these need, or
    rather on the stack: LLVM counts 13 pointers up from block to block.
    """
    kinds = [place.address.type for place in places] + [number.type for number in numbers]
    module = builder.module
    known = (each for each in module.functions if getattr(each, "key", None) == key)
    function = None if key is None else next(known, None)
    if function is None:
        function = ir.Function(
            module, ir.FunctionType(ir.VoidType(), kinds), module.get_unique_name(name)
        )
        function.key = key
        function.linkage = "internal"
        function.attributes.add("noinline")
        function.attributes.add("nounwind")
        inner = ir.IRBuilder(function.append_basic_block())
        moved = [
            place.moved(inner, address)
            for place, address in zip(places, function.args, strict=False)
        ]
        emit(inner, moved, list(function.args[len(places) :]))
        inner.ret_void()
    builder.call(function, [place.address for place in places] + list(numbers))
