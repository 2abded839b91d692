"""Count the floating-point operations that compiled kernels carry out.

Numba hands its optimised LLVM code to the engine that makes machine code of it. On the way there,
every basic block with floating-point instructions in it gets three more, which add their number to
a counter. So what is counted is what ran: in vectors and in what is left over beside them, in all
the loops of an operation, as often as they went round. The optimisation has happened by then, and
is not disturbed.

Additions, subtractions, multiplications, divisions, square roots, roundings, comparisons, minima
and maxima count 1 for every lane of a vector, a fused multiplication and addition 2. Conversions,
signs, choices, and integer work (on the bits of exponents, for instance) do not count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numba.core.codegen import JITCPUCodegen

__all__ = ["Counter", "instrumented", "operations"]

_FLOATING = r"(?:<(?P<lanes>\d+) x )?(?:half|float|double)\b"
_ARITHMETIC = re.compile(rf"= f(?:add|sub|mul|div|rem|cmp) (?:[a-z]+ )*{_FLOATING}")
_CALL = re.compile(rf"\bcall (?:[a-z]+ )*{_FLOATING}.*? @(?P<name>[\w.]+|\"[^\"]*\")\(")
_WEIGHTS = {
    **dict.fromkeys(("llvm.fma", "llvm.fmuladd"), 2),
    **dict.fromkeys(("llvm.sqrt", "sqrt", "sqrtf"), 1),
    **dict.fromkeys(("llvm.minnum", "llvm.maxnum", "llvm.minimum", "llvm.maximum"), 1),
    **dict.fromkeys(("llvm.floor", "llvm.ceil", "llvm.trunc", "llvm.round"), 1),
    **dict.fromkeys(("llvm.rint", "llvm.nearbyint", "llvm.roundeven"), 1),
    **dict.fromkeys(("llvm.fabs", "llvm.copysign", "llvm.masked", "PyFloat_AsDouble"), 0),
}
_BEGINNING = re.compile(r"define |[\w.$-]+:|\"[^\"]*\":")  # of a function, or of a block in it
_PHI = re.compile(r"  %\S+ = phi |  %\"[^\"]*\" = phi ")


def operations(line: str) -> tuple[int, int]:
    """Return how many operations a line of LLVM code carries out, and calls of unknown functions.

    Examples
    --------
    >>> operations("  %5 = fadd <16 x float> %4, %3")
    (16, 0)
    >>> operations("  %6 = tail call double @llvm.fma.f64(double %1, double %2, double %3)")
    (2, 0)
    >>> operations("  %7 = call double @exp(double %6)")
    (0, 1)
    """
    found = _ARITHMETIC.search(line)
    if found:
        return int(found["lanes"] or 1), 0
    found = _CALL.search(line)
    if not found:
        return 0, 0
    name = found["name"]
    weight = _WEIGHTS.get(".".join(name.split(".")[:2]) if name.startswith("llvm.") else name)
    return (0, 1) if weight is None else (weight * int(found["lanes"] or 1), 0)


def _blocks(lines: list[str]) -> Iterator[list[str]]:
    """Yield parts of a module, each with at most one basic block."""
    block: list[str] = []
    for line in lines:
        if _BEGINNING.match(line) or line == "}":
            yield block
            block = []
        block.append(line)
    yield block


def instrumented(code: str, addresses: tuple[int, int]) -> str:
    """Return LLVM code that adds its operations, and unknown calls, to integers in memory."""
    lines: list[str] = []
    for number, block in enumerate(_blocks(code.splitlines())):
        instructions = (line for line in block if line.startswith("  "))
        counts = [sum(of_kind) for of_kind in zip(*map(operations, instructions), strict=True)]
        extra = []
        for kind, count in enumerate(counts):
            if count:
                at = f"ptr inttoptr (i64 {addresses[kind]} to ptr), align 8"
                name = f"%counted.{number}.{kind}"
                extra.append(f"  {name} = load i64, {at}")
                extra.append(f"  {name}.more = add i64 {name}, {count}")
                extra.append(f"  store i64 {name}.more, {at}")
        phis = [position for position, line in enumerate(block) if _PHI.match(line)]
        first = phis[-1] + 1 if phis else 1  # after the label, or the head of the function
        lines += [*block[:first], *extra, *block[first:]]
    return "\n".join(lines)


class Counter:
    """Counts in every kernel that is compiled after it was made: there must be no cache.

    The kernels have to run on one thread, for they add to one place without a lock.
    """

    def __init__(self) -> None:
        self._totals = np.zeros(2, np.int64)
        start = self._totals.ctypes.data
        addresses = (start, start + self._totals.itemsize)
        add_module = JITCPUCodegen._add_module

        def add_instrumented(codegen: Any, module: Any) -> Any:
            return add_module(codegen, llvm.parse_assembly(instrumented(str(module), addresses)))

        # What is linked into other kernels stays as it was, so nothing is counted twice.
        JITCPUCodegen._add_module = add_instrumented

    def count(self, call: Callable[[], object]) -> int:
        """Return the operations of a call.

        Raises
        ------
        RuntimeError
            If it called functions of which it is not known what they do.
        """
        self._totals[:] = 0
        call()
        total, unknown = self._totals.tolist()
        if unknown:
            raise RuntimeError(f"{unknown} calls of mathematical functions were not counted")
        return int(total)
