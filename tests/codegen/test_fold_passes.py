"""Reductions in loops: what the pass makes of them combines in the order of eager sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from numgrad.base.tuning import SUM_BLOCK, SUM_LANES
from numgrad.codegen.fold_passes import (
    SPELLED,
    identity,
    in_blocks,
    lane_of,
    without_folds,
)
from numgrad.codegen.llvm.combine_ir import COMBINES
from numgrad.codegen.loop_passes import rewritten, walk
from numgrad.codegen.loops import (
    ZERO,
    Assign,
    Call,
    Expression,
    Fold,
    For,
    Function,
    Load,
    Name,
    Number,
    Statement,
    Store,
    call,
    combine,
    plus,
    times,
)
from numgrad.codegen.printer import print_module
from tests.cases import examples

JOINS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda a, b: a + b,
    "prod": lambda a, b: a * b,
    "max": lambda a, b: a if a >= b or a != a else b,
    "min": lambda a, b: a if a <= b or a != a else b,
}
F8 = np.dtype("float64")
DONE = [Store(Name("out"), Name("count"), Name("s")), Assign("count", plus("count", 1))]


def of_block(kind: str, values: Sequence[float]) -> float:
    """Return a block combined: dealt out among lanes, of which the upper half joins the lower."""
    nothing = float(COMBINES[kind].identity(F8).real)
    lanes = [nothing] * max(1, min(len(values), SUM_LANES))
    for i, value in enumerate(values):
        lanes[i % SUM_LANES] = JOINS[kind](lanes[i % SUM_LANES], value)
    half = SUM_LANES // 2
    while half:
        lower, upper = lanes[:half], lanes[half:]
        lanes = [JOINS[kind](*pair) for pair in zip(lower, upper, strict=False)]
        lanes += lower[len(upper) :]
        half //= 2
    return lanes[0]


def blocks_of(kind: str, values: Sequence[float]) -> list[float]:
    starts = range(0, len(values), SUM_BLOCK)
    return [of_block(kind, values[start : start + SUM_BLOCK]) for start in starts]


def total(kind: str, values: Sequence[float]) -> float:
    while len(values) > SUM_BLOCK:
        values = blocks_of(kind, values)
    return of_block(kind, values)


def nest(kind: str, sizes: Sequence[int], *, tiled: bool) -> tuple[For, ...]:
    """Return loops that reduce all elements of ``x``; the innermost, if `tiled`, a block a time."""
    place: Expression = ZERO
    for k, size in enumerate(sizes):
        place = plus(times(place, size), f"i{k}") if k else Name("i0")
    body: list[Statement] = [Fold("s", kind, Load(Name("x"), place), "i0", DONE, F8)]
    for k, size in reversed(list(enumerate(sizes))):
        last = Number(size)
        if tiled and k == len(sizes) - 1 and k > 0:
            hi = Assign("hi", call(Name("min"), plus("lo", SUM_BLOCK), last))
            body = [hi, For(f"i{k}", Name("lo"), Name("hi"), body)]
            body = [For("lo", ZERO, last, body, Number(SUM_BLOCK))]
        else:
            body = [For(f"i{k}", ZERO, last, body)]
    (loop,) = body
    assert isinstance(loop, For)
    return (loop,)


def ran(lines: list[Statement], rooms: dict[str, int], x: list[float]) -> list[float]:
    """Return what statements store, run in Python."""
    function = Function("f", ["x", "out", "count", *rooms], lines)
    namespace: dict[str, Any] = {}
    exec(print_module([function]), namespace)

    def shifted(values: list[float], filled: int) -> int:
        values[: filled - SUM_BLOCK] = values[SUM_BLOCK:filled]
        return filled - SUM_BLOCK

    for kind, join in JOINS.items():
        namespace[f"join_{kind}"] = join
        namespace[f"run_{kind}"] = lambda v, start, n, _, kind=kind: of_block(
            kind, v[start : start + n]
        )
        namespace[f"fold_{kind}"] = lambda v, n, _, kind=kind: total(kind, v[:n])
        namespace[f"merge_{kind}"] = lambda v, k, value, _: v.__setitem__(k, value)
        namespace[f"merged_{kind}"] = lambda v, n, _, kind=kind: total(kind, v[:n])
    namespace.update(
        np=SimpleNamespace(float64=float, inf=np.inf),
        element=lambda array, place: array[place],
        store=lambda array, place, value: array.__setitem__(place, value),
        shifted=shifted,
    )
    out = [np.nan] * (len(x) + 1)
    namespace["f"].py_func(x, out, 0, *([np.nan] * size for size in rooms.values()))
    return out[: out.index(next(v for v in out if v != v and v is np.nan))]


SIZES = st.one_of(
    st.lists(st.integers(1, 5), min_size=1, max_size=3),
    st.tuples(st.integers(1, 12), st.sampled_from([100, SUM_BLOCK, SUM_BLOCK + 1, 2500])),
    st.tuples(st.sampled_from([1, 17, 300, SUM_BLOCK])),
)


def numbers(count: int, seed: int) -> list[float]:
    random = np.random.default_rng(seed)
    x = random.normal(size=count) * 10.0 ** random.integers(-3, 4, count)
    x[random.random(count) < 0.2] = -0.0
    return [float(each) for each in x]


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from(list(JOINS)), SIZES, st.integers(0, 99))
def test_a_run_is_combined_block_by_block(kind: str, sizes: Sequence[int], seed: int) -> None:
    x, rooms = numbers(prod(sizes), seed), {}

    def room(fold: Fold, count: int | None) -> str:
        rooms["room"] = SUM_BLOCK if count is None else count
        return "room"

    lines = without_folds(nest(kind, sizes, tiled=True), room)
    assert not any(type(node) is Fold for node in walk(lines))
    found = ran(lines, rooms, x)
    assert list(map(repr, found)) == list(map(repr, blocks_of(kind, x)))


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from(list(JOINS)), SIZES, st.integers(0, 99), st.integers(0, 3))
def test_all_blocks_of_a_loop_are_combined(
    kind: str, sizes: Sequence[int], seed: int, rows: int
) -> None:
    """In every turn of a loop around; or, where no such loop is there, by what that does."""
    x, rooms = numbers(prod(sizes), seed), {"levels": prod(sizes)}

    def room(fold: Fold, count: int | None) -> str:
        rooms["room"] = SUM_BLOCK if count is None else count
        return "room"

    def levels(fold: Fold) -> str:
        return "levels"

    def across(fold: Fold, loop: str) -> tuple[list[Statement], Fold]:
        return [Assign("first", Name("count"))], replace(fold, whole="")

    def marked(whole: str) -> list[Statement]:
        return rewritten(
            list(nest(kind, sizes, tiled=True)),
            lambda node: replace(node, whole=whole) if type(node) is Fold else node,
        )

    blocks = in_blocks([For("row", ZERO, Number(rows), marked("i0"))], levels, across)
    found = ran(without_folds(blocks, room), rooms, x * max(rows, 1)) if rows else []
    assert list(map(repr, found)) == [repr(total(kind, x))] * rows
    shared = in_blocks(marked("item"), levels, across)
    assert shared[0] == Assign("first", Name("count"))
    found = ran(without_folds(shared, room), rooms, x)
    assert list(map(repr, found)) == list(map(repr, blocks_of(kind, x)))


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from(list(JOINS)), SIZES, st.integers(0, 99))
def test_a_run_of_known_length_is_one(kind: str, sizes: Sequence[int], seed: int) -> None:
    """Few values are written out, in the same order."""
    x, rooms = numbers(prod(sizes), seed), {}

    def room(fold: Fold, count: int | None) -> str:
        assert count == len(x)
        rooms["room"] = count
        return "room"

    turns = {f"i{k}": size for k, size in enumerate(sizes)}
    lines = without_folds(nest(kind, sizes, tiled=False), room, turns)
    (found,) = ran(lines, rooms, x)
    assert repr(found) == repr(total(kind, x))
    called = [n.function.id for n in walk(lines) if type(n) is Call and type(n.function) is Name]
    assert (f"fold_{kind}" in called) == (len(x) > SPELLED)


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_values_that_lie_in_memory_are_combined_from_there(data: st.DataObject) -> None:
    """Only where they lie side by side, and where the loop writes to nothing."""
    kind, first = data.draw(st.sampled_from(list(JOINS))), data.draw(st.integers(0, 70))
    count, offset = data.draw(st.integers(0, 200)), data.draw(st.integers(0, 5))
    step, writes = data.draw(st.sampled_from([1, 1, 2])), data.draw(st.booleans())
    is_named, is_doubled = data.draw(st.booleans()), data.draw(st.booleans())
    x = numbers(600, data.draw(st.integers(0, 99)))
    place = data.draw(st.permutations([times("i", step), Number(offset), Name("base")]))
    value: Expression = Load(Name("x"), plus(*place))
    if is_doubled:
        value = times(value, 2)
    body: list[Statement] = [Assign("v", value)] if is_named else []
    fold = Fold("s", kind, Name("v") if is_named else value, "i", DONE, F8)
    body += [fold, Store(Name("x"), Number(599), Number(0.5))] if writes else [fold]
    rooms: dict[str, int] = {}

    def room(fold: Fold, count: int | None) -> str:
        rooms["room"] = SUM_BLOCK
        return "room"

    loop = For("i", Number(first), Number(first + count), body)
    lines = without_folds([loop], room)
    (found,) = ran([Assign("base", Number(3)), *lines], rooms, x)
    read = [x[step * i + offset + 3] * (1 + is_doubled) for i in range(first, first + count)]
    assert repr(found) == repr(of_block(kind, read))
    assert bool(rooms) == (step == 2 or writes or is_doubled)


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from(list(JOINS)), st.integers(1, 40), st.integers(1, 4), st.integers(0, 99))
def test_rows_are_dealt_out_among_lanes(kind: str, rows: int, width: int, seed: int) -> None:
    """Those of a block: each column of a lane has its rows combined, one after the other."""
    x, lanes, block = numbers(rows * width, seed), 4, 16
    row, blocks = Name("row"), -(-rows // block)
    lane = lane_of(row, combine("//", row, block), Number(lanes))
    value = Load(Name("x"), plus(times(row, width), "i"))
    fold = Fold("lanes", kind, value, "row", dtype=F8, place=plus(times(lane, width), "i"))
    count = blocks * lanes * width
    every, kept = Number(count), Load(Name("lanes"), Name("k"))
    made: list[Statement] = [
        For("k", ZERO, every, [Store(Name("lanes"), Name("k"), identity(kind, F8))]),
        For("row", ZERO, Number(rows), [For("i", ZERO, Number(width), [fold])]),
        For("k", ZERO, every, [Store(Name("out"), Name("k"), kept)]),
    ]
    lines = without_folds(made, lambda fold, count: "room")
    found = ran(lines, {"lanes": count}, x * lanes)
    expected = [float(COMBINES[kind].identity(F8).real)] * count
    for k, each in enumerate(x):
        at = (k // width // block * lanes + k // width % lanes) * width + k % width
        expected[at] = JOINS[kind](expected[at], each)
    assert list(map(repr, found)) == list(map(repr, expected))


def test_a_run_that_begins_further_out_is_left() -> None:
    (loop,) = nest("sum", (2, 3), tiled=False)
    assert without_folds(loop.body, lambda fold, count: "room") == list(loop.body)
