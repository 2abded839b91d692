"""Which axes of a nest are one loop: those along which all arrays go on evenly, and no others."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from numgrad.jit.ir.symbolic_sizes import Place, number, product, symbol
from numgrad.jit.schedule.axes import Loops
from numgrad.jit.schedule.nests import Nest

VALUES = {"a": 2, "b": 3, "c": 5, "d": 7}


@st.composite
def places(draw: st.DrawFn, count: int) -> Place:
    """Draw how an array lies: by a permutation of the axes, without some, with a step."""
    names = list(VALUES)[:count]
    order = draw(st.one_of(st.just(list(range(count))), st.permutations(range(count))))
    left = [axis for axis in order if draw(st.sampled_from([True, True, True, False]))]
    stride = draw(st.sampled_from([1, 1, 3]))
    steps = {
        axis: product([number(stride), *[symbol(names[after]) for after in left[at + 1 :]]])
        for at, axis in enumerate(left)
    }
    return Place(number(0), steps)


@given(st.data())
def test_axes_are_merged_where_every_array_goes_on_evenly(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 4))
    names = tuple(VALUES)[:count]
    found = data.draw(st.lists(places(count), min_size=1, max_size=2))
    kinds = [data.draw(st.sampled_from(["inner", "blocked", "neither"])) for _ in names]
    chosen = {
        kind: frozenset(axis for axis, own in enumerate(kinds) if own == kind)
        for kind in ("inner", "blocked")
    }
    loops = Loops(Nest(names, inner=chosen["inner"], blocked=chosen["blocked"]), found)
    steps = [
        [place.steps[axis].evaluate(VALUES) if axis in place.steps else 0 for axis in range(count)]
        for place in found
    ]

    def merged(axes: list[int]) -> list[tuple[int, ...]]:
        groups: list[tuple[int, ...]] = []
        for axis in axes:
            length = VALUES[names[axis]]
            if groups and all(one[groups[-1][-1]] == length * one[axis] for one in steps):
                groups[-1] += (axis,)
            else:
                groups.append((axis,))
        return groups

    axes = range(count)
    inner, blocked = sorted(chosen["inner"]), sorted(chosen["blocked"])
    if inner:
        rest = merged([axis for axis in axes if kinds[axis] == "neither"])
        wanted = (rest, merged(blocked), merged(inner)) if blocked else ([], rest, merged(inner))
    else:
        kept = merged([axis for axis in axes if kinds[axis] != "blocked"])
        rows = merged(blocked) if blocked else kept[:-1]
        wanted = (kept[:-1] if blocked else [], rows, kept[-1:])
    assert tuple(
        [loop.axes for loop in each] for each in (loops.outer, loops.rows, loops.inner)
    ) == (wanted)
    assert loops.reduces_rows == bool(inner)
    every = [*loops.outer, *loops.rows, *loops.inner]
    for loop in every:
        assert loop.axis == loop.axes[-1] and loop.index == f"i{loop.axis}"
        assert loop.size.evaluate(VALUES) == math.prod(VALUES[names[axis]] for axis in loop.axes)
    for place in found:
        kept_steps = loops.steps(place)
        assert kept_steps == {
            loop.axis: place.steps[loop.axis] for loop in every if loop.axis in place.steps
        }
        for at in (1, 2):  # the same element, by loops and by axes
            loop = every[at % len(every)]
            last = loop.size.evaluate(VALUES) - 1
            by_loop = (
                kept_steps[loop.axis].evaluate(VALUES) * last if loop.axis in kept_steps else 0
            )
            by_axes = sum(
                place.steps[axis].evaluate(VALUES) * (VALUES[names[axis]] - 1)
                for axis in loop.axes
                if axis in place.steps
            )
            assert by_loop == by_axes
