"""Elementwise calls whose operands do not lie flat: broadcast, transposed, sliced, reversed.

The dims are merged into the fewest nested loops that serve all operands. The innermost runs
vectorised, with each operand contiguous, constant, or read by steps; nothing is copied.

Why these are not the ufuncs of `numgrad.math.ufunc`, which take operands of any strides: every
process compiles a ufunc's loops anew, which takes a processor 0.2 to 1.3 s an operation, where ours
are on disk; several outputs, and outputs that are summed, are no ufunc; and its inner loop sees a
broadcast operand as one of any strides. On one thread, of float64, its call took so many times as
long as one of ours:

=================================  =====  ======  =======  =======
elements                             100    1024   10,000  100,000
=================================  =====  ======  =======  =======
add, one operand transposed         0.54    0.63     0.98     1.02
add, by steps, flipped              0.55    0.54     0.56     0.61
add, a row broadcast                0.63    0.68     1.00     1.56
add, a column broadcast             0.65    0.70     1.30     1.92
tanh, transposed                    0.33    0.63     1.04     1.21
tanh, by steps, flipped             0.98    3.07     1.00     1.00
=================================  =====  ======  =======  =======
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from numgrad.codegen.render import ARRAYS, CONSTANT, CONTIGUOUS, STEPS
from numgrad.kernels.move.loop_order import contiguous_steps, steps_of, walk
from numgrad.kernels.pointwise.flat_calls import Number, letter_of, number_letter
from numgrad.runtime.memory import empty
from numgrad.runtime.threads import parallel_for

__all__ = ["StridedCall", "anchor_of", "modes_of", "prepare"]

Array = np.ndarray[Any, Any]

# Where an operand is read by steps, rows are done in columns of this many elements, so that the
# cache lines that a row reads are there yet when the next row reads their neighbours.
COLUMN = 1 << 8
_WHOLE = 1 << 62


class StridedCall:
    """What one call of a strided loop takes, for operands of given shapes, strides and dtypes.

    Parameters are those of `numgrad.kernels.pointwise.flat_calls.FlatCall`; `find_loop` takes the
    modes of the operands too.
    """

    __slots__ = (
        "anchors",
        "column",
        "dtypes",
        "grain",
        "lengths",
        "loop",
        "rows",
        "shape",
        "steps",
        "width",
    )

    def __init__(
        self,
        find_loop: Callable[[str, str, Sequence[Any]], Any],
        shape: tuple[int, ...],
        order: tuple[int, ...] | None,
        operands: Sequence[Array | Number],
        dtypes: Sequence[np.dtype[Any]],
        grain: int,
    ) -> None:
        self.grain = grain
        self.dtypes = list(dtypes)
        pattern, self.anchors, steps = prepare(shape, operands)
        self.shape = shape
        if order is not None:
            self.shape = tuple([shape[dim] for dim in order])
            steps = [[own[dim] for dim in order] for own in steps]
        steps += [contiguous_steps(self.shape)] * len(self.dtypes)
        lengths, steps = walk(self.shape, steps)
        modes = modes_of(pattern, steps) + CONTIGUOUS * len(self.dtypes)
        self.lengths = np.array(lengths[:-1], np.int64)
        self.steps = np.array(steps, np.int64)
        self.rows, self.width = prod(lengths[:-1]), lengths[-1]
        self.column = COLUMN if STEPS in modes and self.rows > 1 else _WHOLE
        examples = [read(operand) for read, operand in zip(self.anchors, operands, strict=True)]
        examples += [np.empty(0, dtype) for dtype in self.dtypes]
        self.loop = find_loop(pattern, modes, examples)

    def __call__(self, operands: Sequence[Array | Number]) -> list[Array]:
        """Compute the outputs, their dims in the order of the loops."""
        outputs = [empty(self.shape, dtype) for dtype in self.dtypes]
        arguments = [read(operand) for read, operand in zip(self.anchors, operands, strict=True)]
        arguments += [anchor_of(output) for output in outputs]
        loop, lengths, steps, column = self.loop, self.lengths, self.steps, self.column
        rows, width, grain = self.rows, self.width, self.grain

        def block(first_row: int, last_row: int, first: int, last: int) -> None:
            index = np.empty(lengths.size, np.int64)
            loop(lengths, steps, index, first_row, last_row, first, last, column, *arguments)

        if rows * width <= grain:
            block(0, rows, 0, width)
        elif rows >= width or width <= grain:
            parallel_for(lambda a, b: block(a, b, 0, width), rows, max(1, grain // width))
        else:
            parallel_for(lambda a, b: block(0, rows, a, b), width, max(1, grain // rows))
        return outputs


def prepare(
    shape: tuple[int, ...], operands: Sequence[Array | Number]
) -> tuple[str, list[Callable[[Any], Any]], list[list[int]]]:
    """Return how operands enter a strided loop.

    Returns
    -------
    pattern : str
        A letter for each operand.
    anchors : list of callable
        For each operand, what makes it the argument of the loop.
    steps : list of list of int
        For each operand that is an array there, its steps along the dims of `shape`.
    """
    pattern = ""
    anchors: list[Callable[[Any], Any]] = []
    steps: list[list[int]] = []
    for operand in operands:
        letter = letter_of(operand)
        if type(operand) is not np.ndarray:
            anchors.append(lambda number: number)
        elif operand.size == 1:
            letter = number_letter(letter)
            anchors.append(lambda array: array.item())
        elif any(stride % operand.itemsize for stride in operand.strides):
            anchors.append(anchor_of_copy)
            steps.append(steps_of(shape, np.ascontiguousarray(operand)))
        else:
            anchors.append(anchor_of)
            steps.append(steps_of(shape, operand))
        pattern += letter
    return pattern, anchors, steps


def modes_of(pattern: str, steps: Sequence[Sequence[int]]) -> str:
    """Return how the innermost loop reads each operand."""
    walked = iter(steps)
    read = {1: CONTIGUOUS, 0: CONSTANT}
    return "".join(
        read.get(next(walked)[-1], STEPS) if letter in ARRAYS else CONSTANT for letter in pattern
    )


def anchor_of(array: Array) -> Array:
    """Return a row of an array that starts at its first element."""
    return array if array.ndim == 1 else array[(0,) * (array.ndim - 1)]


def anchor_of_copy(array: Array) -> Array:
    """Return what `anchor_of` does, for an array whose elements do not lie whole steps apart."""
    return anchor_of(np.ascontiguousarray(array))
