"""What is kept and what is computed again costs the least there is."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from numgrad.jit.lowering.min_cut import ENDLESS, cheapest_supply


@st.composite
def _systems(draw: st.DrawFn) -> tuple[dict[int, list[int]], dict[int, float], dict[int, float]]:
    count = draw(st.integers(1, 6))
    operands = {
        key: draw(st.lists(st.integers(0, key - 1), max_size=3)) if key else []
        for key in range(count)
    }
    keeping = {key: float(draw(st.integers(0, 9))) for key in range(count)}
    computing = {key: float(draw(st.integers(0, 9))) for key in range(count)}
    for key in range(count):
        if not operands[key] or (draw(st.booleans()) and not keeping[key]):
            computing[key] = ENDLESS
    return operands, keeping, computing


@given(_systems(), st.sets(st.integers(0, 5), min_size=1))
def test_it_costs_the_least_of_all_choices(system: tuple, wanted: set[int]) -> None:
    operands, keeping, computing = system
    needed = {key for key in wanted if key in operands}
    best = ENDLESS
    for there in itertools.product(("no", "kept", "computed"), repeat=len(operands)):
        is_complete = all(there[key] != "no" for key in needed) and all(
            there[source] != "no"
            for key in operands
            if there[key] == "computed"
            for source in operands[key]
        )
        if is_complete:
            cost = sum(keeping[k] for k in operands if there[k] == "kept")
            best = min(best, cost + sum(computing[k] for k in operands if there[k] == "computed"))
    kept, computed = cheapest_supply(needed, operands, keeping, computing)
    assert needed <= kept | computed
    assert all(source in kept | computed for key in computed for source in operands[key])
    total = sum(keeping[key] for key in kept) + sum(computing[key] for key in computed)
    assert total == best
