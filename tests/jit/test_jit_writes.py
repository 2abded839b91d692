"""Programs that write parts of unequal length, and read what they wrote, beside other results."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad.graph.core import Tensor
from tests.jit.programs import Program
from tests.jit.test_programs import check_compiled, check_graphs

MAX = settings().max_examples  # 100, and 1000 with the profile "thorough"
LENGTHS = [5, 7, 12]
FORMULAS = ["{} * 2", "{}.sin()", "{} + 1", "{} * {}", "-{}", "{}.exp() * 0.125", "{}.flip(0)"]
TOTALS = ["{}.sum()", "{}.amax()", "({} * {}).sum()"]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Return a program of a few buffers, all of one or two dims, and arguments for it.

    Each line writes a part, adds to one, reads one into a new variable, or sums one up. The parts
    of a line have one length, of few, so that lines of a length meet in one nest and others don't.
    """
    length = draw(st.sampled_from(LENGTHS))
    tail = draw(st.sampled_from(["", ", 2"]))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    shape = (length, *([2] if tail else []))
    arguments = {name: random.normal(size=shape) for name in ("x0", "x1")}
    lines = [f"b0 = ng.zeros({length}{tail}, dtype=ng.float64)", "b1 = x0.clone()"]
    buffers, known, scalars = ["b0", "b1"], ["x0", "x1"], []

    def part(name: str, width: int) -> str:
        step = draw(st.sampled_from([s for s in (1, 2, -1) if s < 0 or (width - 1) * s < length]))
        start = draw(st.integers(0, length - (width - 1) * max(step, 1) - 1))
        if step < 0:
            return f"{name}[{start}:{start + width}].flip(0)"
        return f"{name}[{start}:{start + (width - 1) * step + 1}:{step}]"

    def value(width: int) -> str:
        source = part(draw(st.sampled_from(buffers + known)), width)
        formula = draw(st.sampled_from(FORMULAS))
        return formula.format(*[source] * formula.count("{}"))

    widths = draw(st.lists(st.integers(1, length), min_size=2, max_size=2))
    for _ in range(draw(st.integers(3, 7))):
        width = draw(st.sampled_from([*widths, widths[0], length]))
        kind = draw(st.sampled_from(["write", "write", "add", "new", "total", "scale"]))
        target = draw(st.sampled_from(buffers))
        if kind in ("write", "add", "scale"):
            place = part(target, width).removesuffix(".flip(0)")
            sign = {"write": "=", "add": "+=", "scale": "*="}[kind]
            lines.append(f"{place} {sign} {value(width)}")
        elif kind == "new":
            name = f"b{len(buffers)}"
            lines.append(f"{name} = {value(length)}" if width % 2 else f"{name} = {target}.clone()")
            buffers.append(name)
        else:
            total = draw(st.sampled_from(TOTALS))
            name = f"s{len(scalars)}"
            lines.append(f"{name} = " + total.format(*[part(target, width)] * total.count("{}")))
            scalars.append(name)
            if draw(st.booleans()):
                lines.append(f"{target}[{draw(st.integers(0, length - 1))}] = {name}")
    return Program(lines, ["x0", "x1"], buffers + scalars, arguments)


@settings(max_examples=MAX // 5)
@given(programs())
def test_graphs_of_programs_that_write_parts(program: Program) -> None:
    check_graphs(program)


@settings(max_examples=MAX // 100)
@given(programs())
def test_compiled_programs_that_write_parts(program: Program) -> None:
    check_compiled(program)


@settings(max_examples=MAX // 10)
@given(programs())
def test_compiled_programs_without_derivatives(program: Program) -> None:
    arguments = [argument.detach() for argument in program.arguments()]
    wanted: Any = program.function(*arguments)
    for found, expected in zip(ng.jit(program.function)(*arguments), wanted, strict=True):
        assert isinstance(found, Tensor)
        a, b = found.numpy(), expected.numpy()
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12 * (1 + np.abs(b).max()))
