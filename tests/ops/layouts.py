"""How the elements of a tensor may lie in memory, and operands that all lie so.

A layout holds for shapes of any number of dims: it says in which order memory has the dims, how far
elements lie apart, how much longer than the shape each dim is in memory, and which dims show one
element everywhere.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

__all__ = ["LAYOUTS", "Layout", "layouts", "operands", "place", "shapes"]


@dataclass(frozen=True)
class Layout:
    """Strides for shapes; dims count from the last one, which is 0."""

    order: tuple[int, ...] = (3, 2, 1, 0)  # the dim that varies fastest stands last
    step: int = 1
    margin: int = 0
    expanded: frozenset[int] = field(default_factory=frozenset)


LAYOUTS: dict[str, Layout] = {
    "contiguous": Layout(),
    "reversed dims": Layout((0, 1, 2, 3)),
    "rotated dims": Layout((2, 1, 0, 3)),
    "last two exchanged": Layout((3, 2, 0, 1)),
    "channels last": Layout((3, 1, 0, 2)),
    "stepped": Layout(step=2),
    "stepped, reversed": Layout((0, 1, 2, 3), step=2),
    "part of longer rows": Layout(margin=1),
    "part of longer columns": Layout((0, 1, 2, 3), margin=1),
    "expanded first": Layout(expanded=frozenset([2])),
    "expanded last": Layout(expanded=frozenset([0])),
    "expanded last, reversed": Layout((0, 1, 2, 3), expanded=frozenset([0])),
    "expanded everywhere": Layout(expanded=frozenset([0, 1, 2, 3])),
}

layouts = st.one_of(
    st.sampled_from(list(LAYOUTS.values())),
    st.builds(
        Layout,
        st.permutations(range(4)).map(tuple),
        st.integers(1, 2),
        st.integers(0, 1),
        st.sets(st.integers(0, 3), max_size=2).map(frozenset),
    ),
)
shapes = st.one_of(
    st.just((2, 3, 4)),
    st.just((2, 3, 4, 2)),
    st.tuples(*[st.sampled_from([0, 1, 2, 3])] * 3),
    st.tuples(*[st.sampled_from([1, 2, 3])] * 4),
)


def place(layout: Layout, shape: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """Return the strides of a tensor of that layout, and how many elements of memory it takes."""
    strides, step, last = [0] * len(shape), layout.step, 0
    for behind in reversed(layout.order):
        dim = len(shape) - 1 - behind
        if dim < 0 or behind in layout.expanded:
            continue
        strides[dim] = step
        last += max(shape[dim] - 1, 0) * step
        step *= max(shape[dim], 1) + layout.margin
    return tuple(strides), last + 1


# The operands that lines of `layout_calls` name, beside `x` and `y`: shape, and what is in them.
_SHAPES: dict[str, tuple[tuple[int, ...], str]] = {
    "m": ((3, 4), "f"),
    "n": ((3, 4), "f"),
    "s": ((4, 4), "f"),
    "v": ((4,), "f"),
    "u": ((3,), "f"),
    "z": ((), "f"),
    "q": ((2, 3, 4), "f"),
    "p": ((2, 4, 3), "f"),
    "g": ((3, 3), "f"),
    "o": ((2, 3, 3), "f"),
    "i": ((2,), "i"),
    "j": ((2, 3), "i"),
}


def operands(
    library: Any,
    first: Layout,
    second: Layout | None = None,
    shape: tuple[int, ...] = (2, 3, 4),
    line: str = "",
) -> dict[str, Any]:
    """Return the operands that a line names, all without one; each a view of memory of its own.

    `x`, `c` and what is used with them lie as `first` says; `y`, `k`, `b` and the other factors as
    `second`.
    """
    random = np.random.default_rng(0)
    second = first if second is None else second
    named = {node.id for node in ast.walk(ast.parse(line)) if isinstance(node, ast.Name)}
    wanted: Mapping[str, tuple[tuple[int, ...], str]] = {
        "x": (shape, "f"),
        "y": (shape, "f"),
        "k": (shape, "i"),
        "b": (shape, "b"),
        "c": (shape, "c"),
        "d": ((*shape[:-1], 2), "d"),
        **_SHAPES,
    }
    made = {}
    for name, (full, kind) in wanted.items():
        layout = Layout() if kind == "d" else second if name in "ynkbsupij" else first
        strides, room = place(layout, full)
        numbers: np.ndarray = random.uniform(0.1, 0.9, room).astype(np.float32)
        if kind == "i":
            numbers = np.zeros(room, np.int64)
        elif kind == "b":
            numbers = numbers > 0.5
        elif kind == "c":
            numbers = numbers + 1j * random.uniform(0.1, 0.9, room).astype(np.float32)
        if not line or name in named:
            made[name] = library.from_numpy(numbers).as_strided(full, strides)
    return made
