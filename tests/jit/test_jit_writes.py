"""Programs that write parts of unequal length, and read what they wrote, beside other results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad.graph.tensor import Tensor
from tests.cases import examples
from tests.jit.programs import Program
from tests.jit.test_programs import check_compiled, check_graphs

LENGTHS = [5, 7, 12]
FORMULAS = ["{} * 2", "{}.sin()", "{} + 1", "{} * {}", "-{}", "{}.exp() * 0.125", "{}.flip(0)"]
TOTALS = ["{}.sum()", "{}.amax()", "({} * {}).sum()"]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Return a program of a few buffers, all of one or two dims, and arguments for it.

    Each line writes a part, adds to one, reads one into a new variable, or sums one up. The parts
    of a line have one length, of few, and to those of two lengths the same argument is added, for
    jit to know that they are equally long: only then do such lines meet in one nest.
    """
    length = draw(st.sampled_from(LENGTHS))
    tail = draw(st.sampled_from(["", ", 2"]))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    shape = (length, *([2] if tail else []))
    arguments = {name: random.normal(size=shape) for name in ("x0", "x1")}
    widths = [draw(st.integers(2, length // 2)), draw(st.integers(1, length))]
    for number, width in enumerate(widths):
        arguments[f"t{number}"] = random.normal(size=(width, *shape[1:]))
    lines = [f"b0 = ng.zeros({length}{tail}, dtype=ng.float64)", "b1 = x0.clone()"]
    buffers, known = ["b0", "b1"], ["x0", "x1"]
    scalars: list[str] = []
    parts: list[str] = []

    def part(name: str, width: int) -> str:
        step = draw(st.sampled_from([s for s in (1, 2, -1) if s < 0 or (width - 1) * s < length]))
        start = draw(st.integers(0, length - (width - 1) * max(step, 1) - 1))
        if step < 0:
            return f"{name}[{start}:{start + width}].flip(0)"
        return f"{name}[{start}:{start + (width - 1) * step + 1}:{step}]"

    def value(width: int) -> str:
        source = part(draw(st.sampled_from(buffers + known)), width)
        formula = draw(st.sampled_from(FORMULAS))
        code = formula.format(*[source] * formula.count("{}"))
        if width in widths:
            code += f" + t{widths.index(width)}"
        if scalars and draw(st.booleans()):
            code = f"({code}) * {draw(st.sampled_from(scalars))}"
        return code

    for _ in range(draw(st.integers(3, 7))):
        width = draw(st.sampled_from([*widths, widths[0], length]))
        kind = draw(st.sampled_from(["write", "write", "again", "add", "new", "total", "scale"]))
        target = draw(st.sampled_from(buffers))
        if kind in ("write", "add", "scale"):
            place = part(target, width).removesuffix(".flip(0)")
            sign = {"write": "=", "add": "+=", "scale": "*="}[kind]
            lines.append(f"{place} {sign} {value(width)}")
        elif kind == "new":
            name = f"b{len(buffers)}"
            lines.append(f"{name} = {value(length)}" if width % 2 else f"{name} = {target}.clone()")
            buffers.append(name)
        elif kind == "again":  # what every other place is written to is read in the same loops
            short = widths[0]
            lines.append(f"{target}[: {2 * short} : 2] = {value(short)}")
            name = f"r{len(parts)}"
            lines.append(f"{name} = {part(target, short)} + t0")
            parts.append(name)
        else:
            total = draw(st.sampled_from(TOTALS))
            name = f"s{len(scalars)}"
            lines.append(f"{name} = " + total.format(*[part(target, width)] * total.count("{}")))
            scalars.append(name)
            if draw(st.booleans()):
                lines.append(f"{target}[{draw(st.integers(0, length - 1))}] = {name}")
    return Program(lines, list(arguments), buffers + parts + scalars, arguments)


# Programs that read what the nest that would read it makes itself, so what is not complete there.
READS_OF_ONE_NEST = {
    "what other steps write": ["b[0:10:2] = t * 2", "c = b[0:5] + t"],
    "what later steps write": ["b[0:9:2] = t * 2", "c = b[2:11:2] + t"],
    "what is written, backwards": ["b[0:10:2] = t * 2", "c = b[1:6].flip(0) + t"],
    "what is written, to write it": ["b[0:9:2] = t * 2", "b[1:6] = b[0:5] + t", "c = b[3:8] * t"],
    "what is added to": ["b[0:9:2] += t", "b[0:5] += b[4:9].flip(0) * t", "c = b[:5] + t"],
    "what is put": ["b[k] = t * 2", "c = b[0:5] + t"],
    "what is put, at other positions": ["b[k] = t * 2", "c = b[k.flip(0)] + t"],
    "what is added at positions": ["b.index_add_(0, k, t)", "c = b[0:5].flip(0) + t"],
    "a sum": ["s = (t * 2).sum()", "c = t * s"],
    "a sum, to write": ["s = t.sum()", "b[0:5] = t * s", "c = b[:5].flip(0) + t"],
    "a sum of what is written": ["b[0:5] = t * 2", "s = b[0:5].sum()", "c = t * s"],
    "sums of other rows": ["m = t[:, None] * x", "s = m.sum(1)", "c = m - s.flip(0)[:, None]"],
    "sums of columns": ["m = t[:, None] * x", "c = m - m.sum(0)"],
}


def check_values(program: Program) -> None:
    """Compare the results of a compiled function, of arguments without gradients."""
    arguments = [argument.detach() for argument in program.arguments()]
    wanted: Any = program.function(*arguments)
    for found, expected in zip(ng.jit(program.function)(*arguments), wanted, strict=True):
        assert isinstance(found, Tensor)
        a, b = found.numpy(), expected.numpy()
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12 * (1 + np.abs(b).max()))


@pytest.mark.sampled(0.14)
@pytest.mark.parametrize("reads", READS_OF_ONE_NEST)
def test_a_nest_does_not_read_what_it_makes(reads: str) -> None:
    random = np.random.default_rng(0)
    given = {
        "x": random.normal(size=12),
        "t": random.normal(size=5),
        "k": np.array([1, 3, 2, 7, 0]),
    }
    lines = ["b = x.clone()", *READS_OF_ONE_NEST[reads]]
    check_values(Program(lines, list(given), ["b", "c"], given))


@settings(max_examples=examples(20))
@given(programs())
def test_graphs_of_programs_that_write_parts(program: Program) -> None:
    check_graphs(program)


@settings(max_examples=examples(1))
@given(programs())
def test_compiled_programs_that_write_parts(program: Program) -> None:
    check_compiled(program)


@settings(max_examples=examples(10))
@given(programs())
def test_compiled_programs_without_derivatives(program: Program) -> None:
    check_values(program)


# Masks of a tensor, of all its dims or of none.
MASKS = {"per element": lambda x: x > 0, "for the whole": lambda x: x.sum() > 0}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3)])
@pytest.mark.parametrize("in_view", [False, True])
def test_a_write_by_a_mask_has_the_name_it_has_eagerly(
    mask: str, shape: tuple[int, ...], in_view: bool
) -> None:
    def derivative(x: Tensor) -> Tensor:
        y = x * 1.5
        z = y.detach() + 0 * y
        squares = z * z
        written = z.view(z.shape) if in_view else z
        written[MASKS[mask](written)] = ng.ones(())
        return ng.autograd.grad(squares.sum(), x)[0]

    x = ng.ones(shape, requires_grad=True)
    words = []
    for function in (derivative, ng.jit(derivative)):
        with pytest.raises(RuntimeError, match="modified by an inplace operation") as caught:
            function(x)
        words.append(str(caught.value))
    assert words[0] == words[1]
