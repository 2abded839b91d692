"""Loops with sines in them: what the passes make of one computes what it did."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from numgrad.codegen.angle_passes import angles_in, blocked_angles, near_angles, phases
from numgrad.codegen.expression import scalar
from numgrad.codegen.loop_passes import walk
from numgrad.codegen.loops import (
    Assign,
    Call,
    Do,
    Expression,
    For,
    Function,
    If,
    Load,
    Name,
    Number,
    Statement,
    Store,
    call,
    combine,
)
from numgrad.codegen.printer import print_module
from tests.cases import examples

ANGLES = {"sin": math.sin, "cos": math.cos, "tan": math.tan}
FAR = 8.0
FIRST, LAST, SIZE = 3, 20, 24


@st.composite
def loops(draw: Any) -> For:
    """Draw a loop: what it reads, what it computes of that and of sines, and what it stores."""
    lines: list[Statement] = []
    for k in range(draw(st.integers(1, 3))):
        place = draw(
            st.sampled_from([Name("i"), combine("+", "i", 2), combine("*", "i", 1), Number(5)])
        )
        lines.append(Assign(f"v{k}", Load(Name(draw(st.sampled_from("xy"))), place)))
    for k in range(len(lines), len(lines) + draw(st.integers(1, 9))):
        known = st.sampled_from([f"v{j}" for j in range(max(0, k - 4), k)])
        value: Expression
        if draw(st.integers(0, 2)):
            function = draw(st.sampled_from([*ANGLES, "sin", "cos", "exp", "abs", "abs"]))
            value = call(scalar(function), draw(known))
        else:
            value = combine(draw(st.sampled_from("+-*")), draw(known), draw(known))
        lines.append(Assign(f"v{k}", value))
    stored = st.lists(st.integers(0, len(lines) - 1), min_size=1, max_size=3, unique=True)
    for position, k in enumerate(draw(stored)):
        lines.append(Store(Name(f"out{position}"), Name("i"), Name(f"v{k}")))
    return For("i", Name("lo"), Name("hi"), lines)


def ran(lines: list[Statement], rooms: list[str], scale: float) -> tuple[Any, Any]:
    """Return what statements stored, run in Python, and whether they noted an angle that is far."""
    outs = [f"out{k}" for k in range(3)]
    function = Function("f", ["x", "y", *outs, "lo", "hi", "far", *rooms], lines)
    source = print_module([function]) + "    return far\n"
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    of_scalars = {f"{name}_{way}": f for name, f in ANGLES.items() for way in ("near", "apart")}
    exp = lambda x: math.exp(-abs(x))  # noqa: E731

    def fill(*functions: Any) -> Any:
        def near(angles: Any, start: int, count: int, *rooms: Any) -> None:
            for function, room in zip(functions, rooms, strict=True):
                room[:count] = [function(angle) for angle in angles[start : start + count]]

        return near

    namespace.update(
        scalar=SimpleNamespace(
            **ANGLES, **of_scalars, exp=exp, abs=abs, is_far=lambda x: abs(x) > FAR
        ),
        np=SimpleNamespace(uintp=int),
        element=lambda array, place: array[place],
        store=lambda array, place, value: array.__setitem__(place, value),
        near_sin_cos=fill(math.sin, math.cos),
        **{f"near_{name}": fill(function) for name, function in ANGLES.items()},
    )
    x, y = np.linspace(-scale, scale, SIZE).tolist(), np.linspace(1, scale, SIZE)[::-1].tolist()
    written = [[math.nan] * SIZE for _ in outs]
    room = [[math.nan] * SIZE for _ in rooms]
    far = namespace["f"].py_func(x, y, *written, FIRST, LAST, False, *room)
    return written, far


def same(ours: Any, others: Any) -> bool:
    return bool(np.array_equal(ours, others, equal_nan=True))


@settings(max_examples=examples(60), deadline=None)
@given(loops(), st.sampled_from([1.0, 3.0, 30.0]))
def test_phases_compute_what_the_loop_does(loop: For, scale: float) -> None:
    rooms: list[str] = []

    def room(name: str) -> str:
        rooms.append(f"room{len(rooms)}")
        return rooms[-1]

    lines = phases(loop, room)
    expected, _ = ran([loop], [], scale)
    assert same(ran(lines, rooms, scale)[0], expected)
    needed = [line for line in lines if isinstance(line, For)]
    assert not angles_in(needed)
    kernels = [line for line in lines if isinstance(line, Do)]
    filled = [room for line in kernels for room in line.value.arguments[3:]]  # type: ignore[union-attr]
    assert len(filled) <= len(angles_in(loop))


@settings(max_examples=examples(60), deadline=None)
@given(loops(), st.sampled_from([1.0, 3.0, 30.0]))
def test_a_loop_of_near_angles_notes_those_that_are_far(loop: For, scale: float) -> None:
    near = near_angles(loop)
    assert not angles_in(near)
    stored, is_far = ran([near], [], scale)
    assert same(stored, ran([loop], [], scale)[0])
    watched = [
        Assign("far", combine("|", "far", call(scalar("is_far"), a))) for a in angles_in(loop)
    ]
    values = [line for line in loop.body if isinstance(line, Assign)]
    assert is_far == ran([For("i", loop.first, loop.last, [*values, *watched])], [], scale)[1]


@settings(max_examples=examples(60), deadline=None)
@given(loops(), st.sampled_from([1.0, 30.0]))
def test_blocks_of_what_is_read_are_looked_at_once(loop: For, scale: float) -> None:
    reads = {
        line.target: line.value
        for line in loop.body
        if isinstance(line, Assign) and isinstance(line.value, Load)
    }
    lines = blocked_angles(loop, reads)
    assert same(ran(lines, [], scale)[0], ran([loop], [], scale)[0])
    known = set(reads)  # with what has another sign
    for line in loop.body:
        match line:
            case Assign(target, Call(Name("abs"), (Name(read),))) if read in known:
                known.add(target)
    of_read = [angle for angle in angles_in(loop) if angle in known]
    assert any(isinstance(node, If) for node in walk(lines)) == bool(of_read)
    ways = [
        n.function.id for n in walk(lines) if isinstance(n, Call) and isinstance(n.function, Name)
    ]
    assert sum(name.endswith("_near") for name in ways) == len(of_read)
