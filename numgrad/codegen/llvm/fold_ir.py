"""Reductions as LLVM vector instructions: rows of numbers combined lane by lane.

A reduction spends its time in two short loops: *leaves* combine some rows of an array into a row of
lanes, and *joins* combine two rows of lanes. Which of them come in which order over which lanes is
worked out in Python, as a list of steps (`numgrad.kernels.reduce.order`), and a kernel only follows
the list. Loops and decisions written in Python as well took 50 times as long to compile as
``x + 1`` does: Numba types and lowers every statement, and LLVM writes each loop that it vectorises
four times over. So the two loops are given to LLVM as instructions on vectors, which processors
have or LLVM splits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from numba import types
from numba.extending import intrinsic

from numgrad.base.tuning import PREFETCH_DISTANCE, PREFETCHED_BYTES
from numgrad.codegen.llvm.combine_ir import Combine, is_float
from numgrad.codegen.llvm.run_ir import (
    RUN,
    Fetched,
    fold_lanes,
    fold_runs,
    nothing_of,
    room_for,
)
from numgrad.codegen.llvm.vector_ir import (
    Place,
    Rows,
    apart,
    each,
    each_masked,
    halves,
    integer,
    lanes_of,
    loop,
    paired,
    splat,
)

__all__ = [
    "FOLD",
    "FOLD_LANES",
    "FOLD_REPEATS",
    "FOLD_ROWS",
    "OUT",
    "TREE",
    "Transform",
    "make_follow",
]

HEADER = 4  # numbers before the first step
FIELDS = 5  # and in each step
OUT = -1  # a position of lanes: the result's own memory
FOLD, FOLD_LANES, FOLD_ROWS, FOLD_REPEATS = -1, -2, -3, -4  # numbers of rows: see `make_follow`
TREE = 8  # rows read side by side


class Transform(NamedTuple):
    """What is combined, of an element x and of the centre of its lane.

    Attributes
    ----------
    function : function marked `inline`
        ``function(x, centre)`` for two numbers; called where there are no instructions on vectors.
    emit : callable, optional
        ``emit(builder, dtype, target, x, centre)`` returns the same for two numbers or two vectors:
        x of the real Numba type `dtype`, the result and the centre of type `target`.
    is_dear : bool
        Whether it takes so many instructions that they are written down for one row, not for
        `TREE`. Such rows are combined one after the other.
    """

    function: Any
    emit: Callable[[Any, Any, Any, Any, Any], Any] | None
    is_dear: bool = False


def make_follow(transform: Transform, combine: Combine) -> Any:
    """Return a function for kernels that follows the steps of a reduction.

    ``follow(a, out, centres, steps, item_step, count)`` does so `count` times, with `a` beginning
    `item_step` elements further on each time, and `out` as many as it gets. `steps` is a flat
    int64 array. It begins with how much room lanes need, how many columns `out` gets, how far rows
    lie apart in `a`, and how many lanes there are. Then come steps of `FIELDS` numbers ``(target,
    x, y, rows, width)``, with positions of lanes as `target`, `x` and `y`:

    - with rows: so many rows of `a`, from position x on, are transformed and combined into the
      lanes at `target`; into nothing, as it were, if y is 1, and into what these hold if it is 0;
      one after the other;
    - with no rows: y rows of lanes from x on are combined into `target` (see `fold_lanes`);
    - with `FOLD` for rows: of the y numbers of `a` from position x on, each `RUN` are folded to one
      number (see `fold_run`), which are put at `target`;
    - with `FOLD_LANES`: the same for lanes from x on, which are not transformed;
    - with `FOLD_ROWS`: the same as with `FOLD` for numbers of rows of `width` elements, which are
      `RUN_LANES` at least; with `FOLD_REPEATS` all elements of a row are its first one.
    """

    def follow(
        typing_context: Any, a: Any, out: Any, centres: Any, steps: Any, item_step: Any, count: Any
    ) -> Any:
        integer = types.int64
        return types.void(a, out, centres, steps, integer, integer), _lower

    def _lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _Follow(context, builder, signature, arguments, transform, combine).emit()
        return context.get_dummy_value()

    return intrinsic(follow)


class _Follow:
    """The instructions of one kernel."""

    def __init__(
        self,
        context: Any,
        builder: Any,
        signature: Any,
        arguments: Any,
        transform: Transform,
        combine: Combine,
    ) -> None:
        self.context, self.builder = context, builder
        self.transform, self.combine = transform, combine
        arrays: list[Any] = [
            context.make_array(kind)(context, builder, argument)
            if isinstance(kind, types.Array)
            else None
            for kind, argument in zip(signature.args[:4], arguments[:4], strict=True)
        ]
        self.a, self.out, self.centres, self.steps = arrays  # centres may be None
        self.item_step, self.count = arguments[4:]
        self.source, self.target = signature.args[0].dtype, signature.args[1].dtype
        self.nothing = nothing_of(context, builder, combine, self.target)
        self.lanes = lanes_of(self.target)
        self.calls = transform.emit is None or isinstance(self.source, types.Complex)

    def place(self, dtype: Any, address: Any, position: Any) -> Place:
        """Return where some numbers are."""
        return Place(self.context, self.builder, dtype, address, position)

    def emit(self) -> None:
        """Emit everything: the loop over items and in it the loop over steps."""
        builder = self.builder
        numbers = self.place(types.int64, self.steps.data, integer(0))
        room, columns, row_step, _ = (numbers.read(integer(i), 1) for i in range(HEADER))
        end = builder.sub(self.steps.nitems, integer(HEADER))
        if self.centres is None and not self.calls:
            # Runs of one block each, which may be few elements, need no steps.
            kind, run = (numbers.read(integer(HEADER + field), 1) for field in (3, 2))
            is_run = builder.icmp_signed("==", end, integer(FIELDS))
            is_run = builder.and_(is_run, builder.icmp_signed("==", kind, integer(FOLD)))
            with builder.if_else(is_run) as (alone, in_steps):
                with alone:
                    self.runs_alone(run)
                with in_steps:
                    self.steps_of_items(numbers, room, columns, row_step, end)
        else:
            self.steps_of_items(numbers, room, columns, row_step, end)

    def runs_alone(self, length: Any) -> None:
        """Fold a block of each item, with nothing in between."""
        zero = integer(0)
        target = self.place(self.target, self.out.data, zero)
        source = self.place(self.source, self.a.data, zero)

        def emit(builder: Any, places: list[Place], numbers: list[Any]) -> None:
            items, step, length, is_far = numbers
            with loop(builder, items) as (item, _):
                start = builder.mul(item, step)
                address = builder.gep(places[1].address, [start])
                moved = places[1].moved(builder, address)
                out = places[0].moved(builder, builder.gep(places[0].address, [item]))
                self.fold_runs(builder, [out, moved], length, is_far)

        numbers = [self.count, self.item_step, length, self.is_far()]
        apart(self.builder, "runs_alone", emit, [target, source], numbers)

    def is_far(self) -> Any:
        """Return whether there is more to read than caches hold that are near."""
        itemsize = self.context.get_abi_sizeof(self.context.get_data_type(self.source))
        least = integer(PREFETCHED_BYTES // itemsize)
        return self.builder.icmp_signed(">=", self.a.nitems, least)

    def steps_of_items(
        self, numbers: Place, room: Any, columns: Any, row_step: Any, end: Any
    ) -> None:
        """Follow the steps for each item."""
        context, builder = self.context, self.builder
        lane = context.get_abi_sizeof(context.get_data_type(self.target))
        lanes = context.nrt.allocate(builder, builder.mul(room, integer(lane)))
        with loop(builder, self.count) as (item, _):
            start = builder.mul(item, self.item_step)
            first = builder.mul(item, columns)
            result = self.place(self.target, self.out.data, first)
            spread = None if self.centres is None else self.spread(lanes, room, first, columns)
            with loop(builder, end, FIELDS) as (at, _):
                target, x, y, rows, width = (
                    numbers.read(builder.add(at, integer(HEADER + i)), 1) for i in range(FIELDS)
                )
                is_leaf = builder.icmp_signed(">", rows, integer(0))

                def lanes_at(position: Any, result: Place = result) -> Place:
                    is_out = builder.icmp_signed("==", position, integer(OUT))
                    place = self.place(self.target, lanes, position)
                    place.address = builder.select(is_out, result.address, place.address)
                    return place

                with builder.if_else(is_leaf) as (leaf, join):
                    with leaf:
                        begin = builder.add(start, x)
                        self.leaf(lanes_at(target), begin, y, rows, row_step, width, spread)
                    with join:
                        is_join = builder.icmp_signed("==", rows, integer(0))
                        with builder.if_else(is_join) as (lanes_with_lanes, fold):
                            with lanes_with_lanes:
                                self.join(lanes_at(target), lanes_at(x), y, width)
                            with fold:
                                into, begin = lanes_at(target), builder.add(start, x)
                                is_source = builder.icmp_signed("==", rows, integer(FOLD))
                                is_lanes = builder.icmp_signed("==", rows, integer(FOLD_LANES))
                                with builder.if_else(is_source) as (of_source, others):
                                    with of_source:
                                        source = self.place(self.source, self.a.data, begin)
                                        self.runs(into, source, y, spread)
                                    with others, builder.if_else(is_lanes) as (lanes_, rows_):
                                        with lanes_:
                                            self.runs_of_lanes(into, lanes_at(x), y)
                                        with rows_:
                                            layout = [width, row_step, rows]
                                            self.runs_of_rows(into, begin, y, layout, spread)
        context.nrt.free(builder, lanes)

    def spread(self, lanes: Any, room: Any, first: Any, columns: Any) -> Place:
        """Copy the centres of the columns into the last lanes, again and again; or one for all."""
        builder = self.builder
        width = self.place(types.int64, self.steps.data, integer(HEADER)).read(
            integer(FIELDS - 1), 1
        )
        place = self.place(self.target, lanes, builder.sub(room, width))
        is_one = builder.icmp_signed("<=", self.centres.nitems, integer(1))
        first = builder.select(is_one, integer(0), first)
        source = self.place(self.target, self.centres.data, first)
        with loop(builder, width) as (index, _):
            column = builder.select(is_one, integer(0), builder.srem(index, columns))
            place.write(index, 1, source.read(column, 1))
        return place

    def leaf(
        self,
        place: Place,
        start: Any,
        is_new: Any,
        rows: Any,
        row_step: Any,
        width: Any,
        centres: Place | None,
    ) -> None:
        """Combine rows of the array into lanes."""
        builder = self.builder
        source = self.place(self.source, self.a.data, start)
        is_new = builder.icmp_signed("!=", is_new, integer(0))
        if self.calls:  # along the rows, which is how LLVM's own vectoriser goes
            self.along(place, source, rows, row_step, width, is_new, centres)
            return
        places = [place, source] if centres is None else [place, source, centres]
        if self.transform.is_dear:
            apart(builder, "down", self.down, places, [row_step, width, is_new, rows])
            return
        is_tree = builder.icmp_signed("==", rows, integer(TREE))
        with builder.if_else(is_tree) as (at_once, one_by_one):
            with at_once:
                apart(builder, "tree", self.tree, places, [row_step, width, is_new])
            with one_by_one:
                apart(builder, "down", self.down, places, [row_step, width, is_new, rows])

    def transformed(
        self,
        builder: Any,
        places: list[Place],
        row: Any,
        index: Any,
        lanes: int,
        mask: Any = None,
    ) -> Any:
        """Return the transformed elements of a row."""
        x = places[1].read(builder.add(row, index), lanes, mask)
        centre = places[2].read(index, lanes, mask) if len(places) > 2 else None
        return self.transform.emit(builder, self.source, self.target, x, centre)  # type: ignore[misc]

    def two_transformed(
        self,
        builder: Any,
        places: list[Place],
        rows: tuple[Any, Any],
        index: Any,
        lanes: int,
        mask: Any,
    ) -> tuple[Any, Any]:
        """Return the transformed elements of two rows, computed side by side."""
        x, y = (places[1].read(builder.add(row, index), lanes, mask) for row in rows)
        centre = None
        if len(places) > 2:
            centre = places[2].read(index, lanes, mask)
            centre = paired(builder, centre, centre)
        both = paired(builder, x, y)
        emit = self.transform.emit
        return halves(builder, emit(builder, self.source, self.target, both, centre))  # type: ignore[misc]

    def before(
        self, builder: Any, place: Place, is_new: Any, index: Any, lanes: int, mask: Any = None
    ) -> Any:
        """Return what lanes hold before rows are combined into them."""
        nothing = splat(builder, self.nothing, lanes)
        return builder.select(is_new, nothing, place.read(index, lanes, mask))

    def tree(self, builder: Any, places: list[Place], numbers: list[Any]) -> None:
        """Combine `TREE` rows into lanes, one after the other, but all of them in one go."""
        row_step, width, is_new = numbers

        def body(index: Any, lanes: int) -> None:
            value, row = self.before(builder, places[0], is_new, index, lanes), integer(0)
            for _ in range(TREE):
                x = self.transformed(builder, places, row, index, lanes)
                value = self.combine.emit(builder, self.target, value, x)
                row = builder.add(row, row_step)
            places[0].write(index, lanes, value)

        each(builder, width, self.lanes, body)

    def down(self, builder: Any, places: list[Place], numbers: list[Any]) -> None:
        """Combine any number of rows into lanes, one after the other."""
        row_step, width, is_new, rows = numbers

        def body(index: Any, lanes: int, mask: Any = None) -> None:
            value = self.before(builder, places[0], is_new, index, lanes, mask)
            first = integer(0)
            if self.transform.is_dear:
                first = builder.and_(rows, integer(-2))
                with loop(builder, first, 2, carried=value) as turn:
                    row = builder.mul(turn[0], row_step)
                    both = row, builder.add(row, row_step)
                    for x in self.two_transformed(builder, places, both, index, lanes, mask):
                        turn[1] = self.combine.emit(builder, self.target, turn[1], x)
                value = turn[1]
            with loop(builder, builder.sub(rows, first), carried=value) as turn:
                row = builder.mul(builder.add(first, turn[0]), row_step)
                x = self.transformed(builder, places, row, index, lanes, mask)
                turn[1] = self.combine.emit(builder, self.target, turn[1], x)
            places[0].write(index, lanes, turn[1], mask)

        if self.transform.is_dear:
            each_masked(builder, width, self.lanes, body)
        else:
            each(builder, width, self.lanes, body)

    def along(
        self,
        place: Place,
        source: Place,
        rows: Any,
        row_step: Any,
        width: Any,
        is_new: Any,
        centres: Place | None,
    ) -> None:
        """Combine rows into lanes, one number at a time."""
        builder = self.builder
        # Not a choice within the loop: LLVM would write the loop once more for each answer.
        fresh = builder.select(is_new, width, integer(0))
        with loop(builder, fresh) as (index, _):
            place.write(index, 1, self.nothing)
        with loop(builder, rows) as (row, _), loop(builder, width) as (index, _):
            x = source.read(builder.add(builder.mul(row, row_step), index), 1)
            x = self.call(x, None if centres is None else centres.read(index, 1))
            before = place.read(index, 1)
            place.write(index, 1, self.combine.emit(builder, self.target, before, x))

    def call(self, x: Any, centre: Any, builder: Any = None) -> Any:
        """Call the transformation of numbers."""
        context, builder = self.context, builder or self.builder
        typing = context.typing_context
        function = typing.resolve_value_type(self.transform.function)
        signature = function.get_call_type(typing, (self.source, self.target), {})
        call = context.get_function(function, signature)
        context.add_linking_libs(getattr(call, "libs", ()))
        value = call(builder, (x, self.nothing if centre is None else centre))
        return context.cast(builder, value, signature.return_type, self.target)

    def join(self, place: Place, source: Place, rows: Any, width: Any) -> None:
        """Combine rows of lanes."""
        numbers = self.place(types.int64, self.steps.data, integer(HEADER - 1))

        def emit(builder: Any, places: list[Place], numbers: list[Any]) -> None:
            fold_lanes(builder, self.combine, self.target, *places, *numbers)

        arguments = [rows, numbers.read(integer(0), 1), width]
        apart(self.builder, "join", emit, [place, source], arguments)

    def runs(self, place: Place, source: Place, count: Any, centres: Place | None) -> None:
        """Fold runs of the array, each to a number."""
        places = [place, source] if centres is None else [place, source, centres]

        def emit(builder: Any, places: list[Place], numbers: list[Any]) -> None:
            self.fold_runs(builder, places, *numbers)

        if self.calls:  # what may raise has to be in the function that is called
            emit(self.builder, places, [count])
        else:
            apart(self.builder, "runs", emit, places, [count, self.is_far()])

    def runs_of_rows(
        self, place: Place, first: Any, count: Any, layout: list[Any], centres: Place | None
    ) -> None:
        """Fold runs of rows that lie apart, from their element number `first` on."""
        source = self.place(self.source, self.a.data, integer(0))
        places = [place, source] if centres is None else [place, source, centres]

        def emit(builder: Any, places: list[Place], numbers: list[Any]) -> None:
            first, count, length, row_step, kind = numbers
            is_repeated = builder.icmp_signed("==", kind, integer(FOLD_REPEATS))
            places[1] = Rows(builder, places[1], first, count, length, row_step, is_repeated)
            self.fold_runs(builder, places, count)

        if self.calls:
            emit(self.builder, places, [first, count, *layout])
        else:
            apart(self.builder, "runs_of_rows", emit, places, [first, count, *layout])

    def fold_runs(self, builder: Any, places: list[Place], count: Any, is_far: Any = None) -> None:
        """Emit the loop over runs of the array, which are fetched ahead where they are far."""
        centre = places[2].read(integer(0), 1) if len(places) > 2 else None

        def transformed(position: Any, lanes: int, mask: Any) -> Any:
            x = places[1].read(position, lanes, mask)
            if self.calls:
                return self.call(x, centre, builder)
            spread = None if centre is None else splat(builder, centre, lanes)
            return self.transform.emit(builder, self.source, self.target, x, spread)  # type: ignore[misc]

        def fetch(first: Any, index: Any, lanes: int) -> None:
            places[1].prefetch(builder.add(first, index), lanes, PREFETCH_DISTANCE)

        each_run = self.each_run(builder, places[0], count)
        if not (self.calls or self.transform.is_dear):
            each_run(
                lambda first, index, lanes, mask: transformed(
                    builder.add(first, index), lanes, mask
                ),
                fetched=None if is_far is None else Fetched(is_far, fetch),
            )
            return
        room = room_for(self.context, builder, self.target, RUN)

        def compute(first: Any, count: Any) -> None:
            def body(index: Any, lanes: int, mask: Any = None) -> None:
                x = transformed(builder.add(first, index), lanes, mask)
                room.write(index, lanes, x, mask)

            if self.calls:
                each(builder, count, 1, body)
            else:
                each_masked(builder, count, self.lanes, body, at_once=2)

        each_run(lambda _, index, lanes, mask: room.read(index, lanes, mask), before=compute)

    def runs_of_lanes(self, place: Place, source: Place, count: Any) -> None:
        """Fold runs of lanes, each to a number."""

        def emit(builder: Any, places: list[Place], numbers: list[Any]) -> None:
            def read(first: Any, index: Any, lanes: int, mask: Any) -> Any:
                return places[1].read(builder.add(first, index), lanes, mask)

            self.each_run(builder, places[0], numbers[0])(read)

        apart(self.builder, "runs_of_lanes", emit, [place, source], [count])

    def each_run(self, builder: Any, place: Place, count: Any) -> Callable[..., None]:
        """Return `fold_runs` of so many numbers, which lacks what reads them."""
        masks = is_float(self.source)
        return partial(fold_runs, builder, self.combine, self.nothing, place, count, masks=masks)
