"""Generate the source of elementwise loops: from a formula and the layout of each operand.

A *pattern* has a letter for each operand: ``a`` a real array, ``A`` a complex one, ``b`` a bool
one; ``s``, ``S`` and ``p`` are the single numbers of these kinds. `flat_source` is for operands
that lie flat in memory; `strided_source` for any, each with a *mode*: how the innermost loop walks
it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from numgrad.base.tuning import ANGLE_BLOCK
from numgrad.codegen.expression import Symbol, emit

__all__ = [
    "ARRAYS",
    "CONSTANT",
    "CONTIGUOUS",
    "STEPS",
    "SUM_OF_ROW",
    "SUM_OF_ROWS",
    "Formula",
    "flat_source",
    "strided_source",
]

Formula = Callable[[dict[str, Symbol]], Sequence[Symbol]]

ARRAYS = "aAb"
# Modes: the innermost loop finds the elements side by side, or always the same, or far apart.
CONTIGUOUS, CONSTANT, STEPS = "1", "0", "g"
# Outputs are contiguous, or the values are added up: those of a row, or element by element of rows.
SUM_OF_ROW, SUM_OF_ROWS = "r", "c"


class _Parts(NamedTuple):
    """What flat and strided loops have in common."""

    head: list[str]  # docstring and imports
    constants: list[str]  # what stands before the loops
    lines: list[str]  # the computation of one element, of `<input>_i` and `<input>_s`
    outputs: list[str]  # the arrays to write to
    results: list[str]  # the name of the value for each


def _parts(
    name: str, inputs: Sequence[str], formula: Formula, pattern: str, imports: Sequence[str] = ()
) -> _Parts:
    letters = dict(zip(inputs, pattern, strict=True))
    symbols = {
        n: Symbol.input(f"{n}_i" if letter in ARRAYS else f"{n}_s", letter in "AS")
        for n, letter in letters.items()
    }
    lines, results, functions, constants = emit(formula(symbols))
    outputs = [f"out{position}" for position in range(len(results))]
    # Constants take the dtype of the arrays they meet: numpy.float32 with a Python number would
    # silently become float64 in Numba.
    typed = [n for n in inputs if letters[n] == "a"] + [n for n in inputs if letters[n] == "A"]
    of_type = f"{typed[0] if typed else outputs[0]}.dtype.type"
    head = [f'"""{name}, for operands {pattern}."""', "", "import numpy as np", "", *imports]
    before = []
    if functions:
        head.append("from numgrad.math import scalar")
        head.append("from numgrad.codegen.llvm.width import use_wide_vectors")
        before.append("use_wide_vectors()")
    if functions or imports:
        head.append("")
    for constant, text in constants.items():
        typed_text = text if text in ("True", "False") else f"{of_type}({text})"
        before.append(f"{constant} = {typed_text}")
    for n, letter in letters.items():
        if letter == "s":
            before.append(f"{n}_s = {of_type}({n})")
        elif letter in "pS":
            before.append(f"{n}_s = {n}")
    return _Parts(head, before, lines, outputs, results)


def _indent(lines: Sequence[str], levels: int = 1) -> list[str]:
    return ["    " * levels + line for line in lines]


def flat_source(name: str, inputs: Sequence[str], formula: Formula, pattern: str) -> str:
    """Return the source of ``loop(*inputs, *outputs)`` over flat contiguous arrays."""
    parts = _parts(name, inputs, formula, pattern)
    letters = dict(zip(inputs, pattern, strict=True))
    reads = {n: f"{n}[i]" for n, letter in letters.items() if letter in ARRAYS}
    steps = [f"{n}_i = {read}" for n, read in reads.items()]
    steps += parts.lines
    steps += [f"{o}[i] = {r}" for o, r in zip(parts.outputs, parts.results, strict=True)]
    angles = {n: read for n, read in reads.items() if letters[n] == "a"}
    code = [
        *parts.head,
        "",
        f"def loop({', '.join([*inputs, *parts.outputs])}):",
        *_indent(parts.constants),
        *_indent(_looped(steps, "0", f"{parts.outputs[0]}.size", angles)),
    ]
    return "\n".join(code) + "\n"


def strided_source(
    name: str, inputs: Sequence[str], formula: Formula, pattern: str, modes: str
) -> str:
    """Return the source of a loop over arrays of any strides.

    It is called as ``loop(lengths, steps, index, first_row, last_row, first, last, width, *inputs,
    *outputs)``. A row is a run of the innermost loop. `lengths` are those of the outer loops;
    ``steps[k]`` leads through the memory of the k-th array, innermost last; `index` is room for a
    counter for each outer loop; rows from `first_row` to `last_row` are computed, of each row the
    part from `first` to `last`, in columns that are `width` wide. Arrays are known by their first
    element: the shape and strides that they come with do not matter.

    Parameters
    ----------
    modes : str
        A letter for each operand: contiguous, constant or by steps; for numbers it does not matter.
        Then one for each output: contiguous, or how its values are added up. For each output that
        takes sums of a row, the loop has one more argument: room for `width` values.
    """
    imports = ["from numgrad.codegen.llvm.pointers import element, store"]
    if SUM_OF_ROW in modes:
        imports.append("from numgrad.codegen.fold_runtime import run_sum")
    parts = _parts(name, inputs, formula, pattern, imports)
    letters = dict(zip(inputs, pattern, strict=True))
    mode_of = dict(zip([*inputs, *parts.outputs], modes, strict=True))
    arrays = [n for n in inputs if letters[n] in ARRAYS]
    walked = [*arrays, *parts.outputs]
    templates = {
        CONTIGUOUS: "element({0}, {0}_at + i)",
        STEPS: "element({0}, {0}_at + i * {0}_step)",
        CONSTANT: "{0}_value",
    }
    reads = {n: templates[mode_of[n]].format(n) for n in arrays}
    steps = [f"{n}_i = {read}" for n, read in reads.items()]
    steps += parts.lines
    writes = {
        CONTIGUOUS: "store({0}, {0}_at + i, {1})",
        SUM_OF_ROW: "store({0}_row, i - start, {1})",
        SUM_OF_ROWS: "store({0}, {0}_at + i, element({0}, {0}_at + i) + {1})",
    }
    outcomes = zip(parts.outputs, parts.results, strict=True)
    steps += [writes[mode_of[o]].format(o, r) for o, r in outcomes]
    angles = {n: read for n, read in reads.items() if letters[n] == "a"}
    row = [f"{n}_value = element({n}, {n}_at)" for n in arrays if mode_of[n] == CONSTANT]
    row += _looped(steps, "start", "stop", angles)
    summed = [o for o in parts.outputs if mode_of[o] == SUM_OF_ROW]
    row += [
        f"store({o}, {o}_at, element({o}, {o}_at) + run_sum({o}_row, 0, stop - start, 0))"
        for o in summed
    ]
    at = [f"{n}_at" for n in walked]
    body = [
        *parts.constants,
        "outer = lengths.size",
        *(f"{n}_step = steps[{k}, outer]" for k, n in enumerate(walked) if mode_of.get(n) == STEPS),
        "for start in range(first, last, width):",
        "    stop = start + width if start + width < last else last",
        f"    {' = '.join(at)} = 0",
        "    rest = first_row",
        "    for d in range(outer - 1, -1, -1):",
        "        index[d] = rest % lengths[d]",
        "        rest //= lengths[d]",
        *(f"        {n}_at += index[d] * steps[{k}, d]" for k, n in enumerate(walked)),
        "    for _ in range(first_row, last_row):",
        *_indent(row, 2),
        "        for d in range(outer - 1, -1, -1):",
        "            index[d] += 1",
        *(f"            {n}_at += steps[{k}, d]" for k, n in enumerate(walked)),
        "            if index[d] < lengths[d]:",
        "                break",
        "            index[d] = 0",
        *(f"            {n}_at -= steps[{k}, d] * lengths[d]" for k, n in enumerate(walked)),
    ]
    first = "lengths, steps, index, first_row, last_row, first, last, width"
    arguments = ", ".join([first, *inputs, *parts.outputs, *(f"{o}_row" for o in summed)])
    return "\n".join([*parts.head, "", f"def loop({arguments}):", *_indent(body)]) + "\n"


_ANGLE_CALL = re.compile(r"scalar\.(sin|cos|tan)\((\w+)_i\)")


def _looped(steps: list[str], first: str, last: str, reads: dict[str, str]) -> list[str]:
    """Write the loop of ``i`` from `first` to `last` that does `steps` for every element.

    If they have sin, cos or tan of an operand in them, there are two, with branches for angles that
    are far from 0, and without. Which of the two runs is decided, block by block, by one look at
    the operand's elements. An element has the same value in both.

    Parameters
    ----------
    reads : dict
        For each operand that is a real array, how its i-th element is read.
    """
    found = {match[2] for step in steps for match in _ANGLE_CALL.finditer(step)}
    angles = sorted(found & reads.keys())
    if not angles:
        return [f"for i in range({first}, {last}):", *_indent(steps)]
    # Of an index that may be negative Numba makes a choice, which LLVM does not vectorise.
    head = "for i in range(np.uintp(block), np.uintp(end)):"
    far, near = (
        [_ANGLE_CALL.sub(rf"scalar.\1_{way}(\2_i)", step) for step in steps]
        for way in ("apart", "near")
    )
    block = [
        f"end = block + {ANGLE_BLOCK}",
        f"end = end if end < {last} else {last}",
        "far = False",
        head,
    ]
    block += [f"    far = far | scalar.is_far({reads[angle]})" for angle in angles]
    block += ["if far:", *_indent([head, *_indent(far)])]
    block += ["else:", *_indent([head, *_indent(near)])]
    return [f"for block in range({first}, {last}, {ANGLE_BLOCK}):", *_indent(block)]
