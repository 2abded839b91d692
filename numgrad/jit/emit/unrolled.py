"""Generate unrolled loop nests: few elements, sizes written out.

There is a single item, of one block and one chunk, so nothing is cut up: what is reduced is one
run, whose length is known. The passes that make loops of few turns fast do the rest.
"""

from __future__ import annotations

from collections.abc import Mapping

from numgrad.base.tuning import UNROLLED_LANES
from numgrad.codegen.fold_passes import without_folds
from numgrad.codegen.loop_distribution import distributed, on_stack, unseen
from numgrad.codegen.loop_passes import names_in, without_stores
from numgrad.codegen.loops import (
    ZERO,
    Assign,
    For,
    If,
    Name,
    Number,
    Statement,
)
from numgrad.jit.emit.loop_nest import LoopNest, band_statements
from numgrad.jit.ir.symbolic_sizes import product

__all__ = ["nest_statements"]

MANY_ANGLES = 64  # sines that a loop is given for itself: with more LLVM gives up
MANY_ROWS = 8  # from which on LLVM shall not unroll what a row is

Sizes = Mapping[str, int]


def nest_statements(nest: LoopNest, sizes: Sizes) -> list[Statement]:
    """Return a short nest, with sines in the loops instead of in between.

    They are computed as if no angle was far; if one was, all is done again. That takes no calls,
    and lets LLVM see the nest as a whole: what a small one needs.
    """
    few, write = nest, _several_items
    if _is_simple(nest, sizes):
        few = LoopNest(*nest.given, length=nest.facts.length(sizes))
        few.unread, write = nest.unread, _single_item
    lines, near = write(few, sizes), few.near(MANY_ANGLES)
    if near is not None:
        lines = [Assign("far", Number(False)), *write(near, sizes), If(Name("far"), lines)]
    rooms = [
        on_stack(name, dtype, size.evaluate(sizes))
        for name, (dtype, size) in few.parts.partials.items()
    ]
    known = [Assign(name, Number(sizes[name])) for name in sorted(names_in(lines)) if name in sizes]
    return [*known, *rooms, *lines]


def _several_items(nest: LoopNest, sizes: Sizes) -> list[Statement]:
    return band_statements([nest], sizes)


def _is_simple(nest: LoopNest, sizes: Sizes) -> bool:
    """Whether a nest has a single item, and one loop within its rows at most."""
    loops = nest.loops
    lengths = [loop.size.evaluate(sizes) for loop in [*loops.rows, *loops.inner]]
    is_single = sizes[f"items{nest.position}"] == 1 and not loops.outer
    return is_single and len(loops.inner) <= 1 and 0 not in lengths


def _turns(nest: LoopNest, sizes: Sizes) -> dict[str, int]:
    """Return how many turns each loop has."""
    turns = {loop.index: loop.size.evaluate(sizes) for loop in nest.loops.inner}
    if nest.loops.rows:
        rows = product([loop.size for loop in nest.loops.rows])
        turns[nest.parts.over_rows] = rows.evaluate(sizes)
    return turns


def _single_item(nest: LoopNest, sizes: Sizes) -> list[Statement]:
    """Return a nest for which `_is_simple` holds."""
    item: list[Statement] = [Assign("item", ZERO)]
    parts, turns = nest.parts, _turns(nest, sizes)
    rows = turns.get(parts.over_rows, 1)
    if nest.loops.inner:
        length = nest.facts.length(sizes)
        is_long = rows >= MANY_ROWS and length >= UNROLLED_LANES
        item += [Assign("lo", ZERO), Assign("hi", unseen(length) if is_long else Number(length))]
    body = [*parts.lane(False), *nest.row()]
    if nest.loops.rows:
        last = Number(rows)
        item += [Assign("block", ZERO), Assign("first_row", ZERO), Assign("last_row", last)]
        loop = For(parts.over_rows, ZERO, last, without_folds(body, parts.room, turns))
        body = distributed(loop, rows, nest.dtype_to_hand_on, nest.indices_of_rows("at_row"))
    body = without_folds([*parts.item_start, *body, *parts.item_end], parts.room, turns)
    lines = [*nest.before_items(sizes), *item, *body, *parts.finish]
    return without_stores(lines, nest.unread)
