"""Generate the source of elementwise loops: from a formula and the layout of each operand.

A *pattern* has a letter for each operand: ``a`` a real array, ``A`` a complex one, ``b`` a bool
one; ``s``, ``S`` and ``p`` are the single numbers of these kinds. `flat_source` is for operands
that lie flat in memory; `strided_source` for any, each with a *mode*: how the innermost loop walks
it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from numgrad.codegen.angle_passes import blocked_angles
from numgrad.codegen.expression import Symbol, emit
from numgrad.codegen.fold_passes import lane_of, without_folds
from numgrad.codegen.loops import (
    ZERO,
    Assign,
    Attribute,
    Break,
    Choice,
    Do,
    Expression,
    Fold,
    For,
    Function,
    If,
    Load,
    Name,
    Number,
    Statement,
    Store,
    Tuple,
    call,
    combine,
    names,
    plus,
    times,
)

__all__ = [
    "ARRAYS",
    "CONSTANT",
    "CONTIGUOUS",
    "STEPS",
    "SUM_OF_ROW",
    "SUM_OF_ROWS",
    "Formula",
    "flat_loop",
    "strided_loop",
]

Formula = Callable[[dict[str, Symbol]], Sequence[Symbol]]

_STRIDE = Name("stride", "numgrad.codegen.loop_runtime")

ARRAYS = "aAb"
# Modes: the innermost loop finds the elements side by side, or always the same, or far apart.
CONTIGUOUS, CONSTANT, STEPS = "1", "0", "g"
# Outputs are contiguous, or the values are added up: those of a row in blocks, each to a number of
# its own; or element by element of rows, which are dealt out among lanes.
SUM_OF_ROW, SUM_OF_ROWS = "r", "c"
_DEAL = ("shift", "lanes", "width")


_I = Name("i")
(_USE_WIDE_VECTORS,) = names("numgrad.codegen.llvm.width", "use_wide_vectors")


class _Parts(NamedTuple):
    """What flat and strided loops have in common."""

    letters: dict[str, str]  # of each input
    before: list[Statement]  # what stands before the loops
    lines: list[Statement]  # the computation of one element, of `<input>_i` and `<input>_s`
    outcomes: dict[str, Name]  # for each array to write to the variable with the value


def _parts(inputs: Sequence[str], formula: Formula, pattern: str) -> _Parts:
    letters = dict(zip(inputs, pattern, strict=True))
    symbols = {
        n: Symbol.input(f"{n}_i" if letter in ARRAYS else f"{n}_s", letter in "AS")
        for n, letter in letters.items()
    }
    code = emit(formula(symbols))
    outcomes = {f"out{position}": result for position, result in enumerate(code.results)}
    real, wide = ([n for n in inputs if letters[n] == letter] for letter in "aA")
    of_type = _type_of([*real, *wide, "out0"][0])
    before: list[Statement] = [Do(call(_USE_WIDE_VECTORS))] if code.functions else []
    before += code.typed(of_type)
    for n, letter in letters.items():
        if letter == "s":
            before.append(Assign(f"{n}_s", call(of_type, n)))
        elif letter == "S" and wide:
            before.append(Assign(f"{n}_s", call(_type_of(wide[0]), n)))
        elif letter not in ARRAYS:
            before.append(Assign(f"{n}_s", Name(n)))
    return _Parts(letters, before, code.lines, outcomes)


def _type_of(array: str) -> Expression:
    return Attribute(Attribute(Name(array), "dtype"), "type")


def _looped(
    parts: _Parts,
    first: Expression,
    last: Expression,
    reads: dict[str, Expression],
    writes: list[Statement],
) -> list[Statement]:
    """Return the loop over ``i`` that reads operands, computes and writes."""
    body = [*(Assign(f"{n}_i", read) for n, read in reads.items()), *parts.lines, *writes]
    real = {f"{n}_i": read for n, read in reads.items() if parts.letters[n] == "a"}
    lines = without_folds(
        [For("i", first, last, body)], lambda fold, _: fold.target.replace("_sum", "_row")
    )
    return [each for line in lines for each in _without_branches(line, real)]


def _without_branches(line: Statement, reads: dict[str, Expression]) -> list[Statement]:
    return blocked_angles(line, reads) if isinstance(line, For) else [line]


def flat_loop(inputs: Sequence[str], formula: Formula, pattern: str) -> Function:
    """Return the function ``loop(*inputs, *outputs)`` over flat contiguous arrays."""
    parts = _parts(inputs, formula, pattern)
    reads: dict[str, Expression] = {
        n: Load(Name(n), _I, True) for n, letter in parts.letters.items() if letter in ARRAYS
    }
    writes: list[Statement] = [
        Store(Name(o), _I, value, subscript=True) for o, value in parts.outcomes.items()
    ]
    body = [*parts.before, *_looped(parts, ZERO, Attribute(Name("out0"), "size"), reads, writes)]
    return Function("loop", [*inputs, *parts.outcomes], body)


def strided_loop(inputs: Sequence[str], formula: Formula, pattern: str, modes: str) -> Function:
    """Return the function of a loop over arrays of any strides.

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
        takes sums of a row, the loop has one more argument: room for `width` values, a block of the
        sum. If there are outputs that take sums of rows, `steps` also leads to the numbers of the
        rows that are added up for each of them, and the last argument is how these are dealt out
        (`numgrad.kernels.pointwise.summing_calls`): three numbers for each.
    """
    parts = _parts(inputs, formula, pattern)
    outputs = list(parts.outcomes)
    mode_of = dict(zip([*inputs, *outputs], modes, strict=True))
    arrays = [n for n in inputs if parts.letters[n] in ARRAYS]
    row: list[Statement] = [
        Assign(f"{n}_value", Load(Name(n), Name(f"{n}_at")))
        for n in arrays
        if mode_of[n] == CONSTANT
    ]
    reads = {n: _read(n, mode_of[n]) for n in arrays}
    dealt = [o for o in outputs if mode_of[o] == SUM_OF_ROWS]
    row += [Assign(f"{o}_lane", _lane(o)) for o in dealt]
    writes = [_write(o, value, mode_of[o]) for o, value in parts.outcomes.items()]
    row += _looped(parts, Name("start"), Name("stop"), reads, writes)
    walked = [*arrays, *outputs, *(f"{o}_n" for o in dealt)]
    by_steps = [n for n in arrays if mode_of[n] == STEPS]
    body: list[Statement] = [
        *parts.before,
        Assign("outer", Attribute(Name("lengths"), "size")),
        *(Assign(f"{n}_step", call(_STRIDE, _step(walked.index(n), "outer"))) for n in by_steps),
        *(
            Assign(f"{o}_{name}", Load(Name("deal"), Number(len(_DEAL) * k + j), True))
            for k, o in enumerate(dealt)
            for j, name in enumerate(_DEAL)
        ),
        _columns(walked, row),
    ]
    head = ["lengths", "steps", "index", "first_row", "last_row", "first", "last", "width"]
    parameters = [
        *head,
        *inputs,
        *outputs,
        *(f"{o}_row" for o in outputs if mode_of[o] == SUM_OF_ROW),
        *(["deal"] if dealt else []),
    ]
    return Function("loop", parameters, body)


def _read(n: str, mode: str) -> Expression:
    """Return an operand's element number ``i`` of a row."""
    if mode == CONSTANT:
        return Name(f"{n}_value")
    return Load(Name(n), plus(f"{n}_at", times(_I, f"{n}_step") if mode == STEPS else _I))


def _write(o: str, value: Expression, mode: str) -> Statement:
    """Return what becomes of an output's element number ``i`` of a row."""
    if mode == SUM_OF_ROW:
        place = plus(f"{o}_at", combine("//", "start", "width"))
        return Fold(f"{o}_sum", "sum", value, "i", [Store(Name(o), place, Name(f"{o}_sum"))])
    if mode == CONTIGUOUS:
        return Store(Name(o), plus(f"{o}_at", _I), value)
    return Fold(o, "sum", value, "_", place=plus(f"{o}_lane", _I))


def _lane(o: str) -> Expression:
    """Return where the lane of a row begins."""
    row = Name(f"{o}_n_at")
    lane = lane_of(row, combine(">>", row, f"{o}_shift"), Name(f"{o}_lanes"))
    return plus(f"{o}_at", times(lane, f"{o}_width"))


def _step(k: int, dim: str) -> Expression:
    """Return by how much a step along a dim moves in the memory of the k-th array."""
    return Load(Name("steps"), Tuple((Number(k), Name(dim))), True)


def _columns(walked: Sequence[str], row: Sequence[Statement]) -> Statement:
    """Return the loops around a row: over columns, and over rows."""
    index = Load(Name("index"), Name("d"), True)
    length = Load(Name("lengths"), Name("d"), True)

    def moved(sign: str, by: Callable[[Expression], Expression]) -> list[Statement]:
        return [
            Assign(f"{n}_at", combine(sign, f"{n}_at", by(_step(k, "d"))))
            for k, n in enumerate(walked)
        ]

    def indexed(value: Expression) -> Statement:
        return Store(Name("index"), Name("d"), value, subscript=True)

    def over_dims(*body: Statement) -> Statement:
        return For("d", combine("-", "outer", 1), Number(-1), body, Number(-1))

    stop = combine("+", "start", "width")
    within = Choice(combine("<", stop, "last"), stop, Name("last"))
    begin = over_dims(
        indexed(combine("%", "rest", length)),
        Assign("rest", combine("//", "rest", length)),
        *moved("+", lambda step: times(index, step)),
    )
    following = over_dims(
        indexed(plus(index, 1)),
        *moved("+", lambda step: step),
        If(combine("<", index, length), [Break()]),
        indexed(ZERO),
        *moved("-", lambda step: times(step, length)),
    )
    body = [
        Assign("stop", within),
        *(Assign(f"{n}_at", ZERO) for n in walked),
        Assign("rest", Name("first_row")),
        begin,
        For("_", Name("first_row"), Name("last_row"), [*row, following]),
    ]
    return For("start", Name("first"), Name("last"), body, Name("width"))
