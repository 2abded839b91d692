"""Elementwise calls with sums: gradients of broadcast operands, in one pass.

The gradient of a row that was added to a matrix is the sum over the matrix's rows of what one loop
computes together with the matrix's own gradient. Nothing of the matrix's size is stored for it: the
rows are added up in blocks of a fixed number, and the sums of the blocks pairwise. Blocks are what
threads share out, so the bits do not depend on how many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, prod
from typing import Any

import numpy as np

from numgrad.base.tuning import SUMMING_COLUMNS, SUMMING_ROWS, SUMMING_TILE
from numgrad.codegen.render import CONTIGUOUS, SUM_OF_ROW, SUM_OF_ROWS
from numgrad.kernels.move.loop_order import contiguous_steps, walk
from numgrad.kernels.pointwise.flat_calls import Number
from numgrad.kernels.pointwise.strided_calls import modes_of, prepare
from numgrad.kernels.reduce.reductions import sum as sum_over
from numgrad.runtime.memory import empty
from numgrad.runtime.threads import parallel_for

__all__ = ["SummingCall"]

Array = np.ndarray[Any, Any]


class SummingCall:
    """What one call takes, for operands of given shapes, strides and dtypes.

    Parameters
    ----------
    find_loop : callable
        Returns the loop for a pattern, modes, the arguments it will get, and room for rows.
    shape : tuple of int
        What the operands broadcast to.
    operands : sequence of array or number
        Operands like those that the call is for.
    dtypes, shapes : sequence
        The dtype and the shape of each output.
    grain : int
        Elements a thread takes at a time.
    """

    def __init__(
        self,
        find_loop: Callable[..., Any],
        shape: tuple[int, ...],
        operands: Sequence[Array | Number],
        dtypes: Sequence[np.dtype[Any]],
        shapes: Sequence[tuple[int, ...]],
        grain: int,
    ) -> None:
        self.dtypes, self.shapes, self.grain = list(dtypes), list(shapes), grain
        pattern, self.anchors, steps = prepare(shape, operands)
        arrays = len(steps)
        for target in shapes:
            steps.append([0] * (len(shape) - len(target)) + contiguous_steps(target))
        lengths, steps = walk(shape, steps)
        if len(lengths) == 1:  # a row is all there is
            lengths, steps = [1, *lengths], [[0, *own] for own in steps]
        self.modes = [
            CONTIGUOUS if target == shape else SUM_OF_ROWS if own[-1] else SUM_OF_ROW
            for target, own in zip(shapes, steps[arrays:], strict=True)
        ]
        # A block is some steps of the outermost loop, so that loop becomes two.
        self.width = lengths[-1]
        inner_rows = prod(lengths[1:-1])
        per_block = max(1, SUMMING_ROWS // inner_rows)
        self.blocks = ceil(lengths[0] / per_block)
        self.rows, self.rows_of_block = lengths[0] * inner_rows, per_block * inner_rows
        self.columns = ceil(self.width / SUMMING_COLUMNS)
        self.lengths = np.array([self.blocks, per_block, *lengths[1:-1]], np.int64)
        # For each output how many parts there are of it, by column and by block.
        self.parts: list[tuple[int, int]] = []
        for k, own in enumerate(steps):
            step = own[0] * per_block
            if k >= arrays:
                mode, target = self.modes[k - arrays], shapes[k - arrays]
                is_shared = mode != CONTIGUOUS and own[0] == 0
                if is_shared:
                    step = prod(target)
                self.parts.append(
                    (self.columns if mode == SUM_OF_ROW else 1, self.blocks if is_shared else 1)
                )
            own.insert(0, step)
        self.steps = np.array(steps, np.int64)
        examples = [read(operand) for read, operand in zip(self.anchors, operands, strict=True)]
        examples += [np.empty(0, dtype) for dtype in self.dtypes]
        modes = modes_of(pattern, steps) + "".join(self.modes)
        self.loop = find_loop(pattern, modes, examples, self._room())

    def _room(self) -> list[Array]:
        """Return room for the values of a row, for each output that takes their sum."""
        return [
            np.empty(SUMMING_TILE, dtype)
            for dtype, mode in zip(self.dtypes, self.modes, strict=True)
            if mode == SUM_OF_ROW
        ]

    def __call__(self, operands: Sequence[Array | Number], outputs: None) -> list[Array]:
        """Compute the outputs."""
        partial = []
        for dtype, target, mode, parts in zip(
            self.dtypes, self.shapes, self.modes, self.parts, strict=True
        ):
            if mode == CONTIGUOUS:
                partial.append(empty(target, dtype).reshape(1, -1))
            else:
                partial.append(np.zeros((parts[0], parts[1] * prod(target)), dtype))
        arguments = [read(operand) for read, operand in zip(self.anchors, operands, strict=True)]
        loop, blocks = self.loop, self.blocks

        def task(start: int, stop: int) -> None:
            room = self._room()
            index = np.empty(self.lengths.size, np.int64)
            while start < stop:  # blocks of one column
                column, block = divmod(start, blocks)
                last = min(blocks, block + stop - start)
                loop(
                    self.lengths,
                    self.steps,
                    index,
                    block * self.rows_of_block,
                    min(last * self.rows_of_block, self.rows),
                    column * SUMMING_COLUMNS,
                    min((column + 1) * SUMMING_COLUMNS, self.width),
                    SUMMING_TILE,
                    *arguments,
                    *(part[column if len(part) > 1 else 0] for part in partial),
                    *room,
                )
                start += last - block

        elements = self.rows_of_block * min(self.width, SUMMING_COLUMNS)
        parallel_for(task, blocks * self.columns, max(1, self.grain // elements))
        results = []
        for part, target, parts in zip(partial, self.shapes, self.parts, strict=True):
            count = prod(parts)
            if count > 1:
                part = sum_over(part.reshape(count, prod(target)), (0,), False)
            results.append(part.reshape(target))
        return results
