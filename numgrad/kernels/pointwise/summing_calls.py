"""Elementwise calls with sums: gradients of broadcast operands, in one pass.

The gradient of a row that was added to a matrix is the sum over the matrix's rows of what one loop
computes together with the matrix's own gradient. Nothing of the matrix's size is stored for it: the
loop goes through the values as they would lie in memory, and adds them up in blocks. These are what
threads share out, so the bits do not depend on how many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, gcd, prod
from typing import Any

import numpy as np

from numgrad.base.tuning import SUM_BLOCK, SUMMING_COLUMNS
from numgrad.codegen.render import ARRAYS, SUM_OF_ROW
from numgrad.kernels.move.loop_order import Walk, contiguous_steps, walk
from numgrad.kernels.move.strides import strided_view
from numgrad.kernels.pointwise.flat_calls import Number
from numgrad.kernels.pointwise.strided_calls import modes_of, prepare
from numgrad.kernels.pointwise.summed_outputs import Deal, Order, Shape, Summed, Whole
from numgrad.runtime.threads import parallel_for

__all__ = ["SummingCall"]

Array = np.ndarray[Any, Any]
JOINED_ROWS = 128  # from which on it pays to repeat a row in memory: 200 of 50, a tenth of the time


class SummingCall:
    """What one call takes, for operands of given shapes, strides and dtypes.

    Parameters
    ----------
    find_loop : callable
        Returns the loop for a pattern, modes, the arguments it will get, and those behind these.
    shape : tuple of int
        What the operands broadcast to.
    operands : sequence of array or number
        Operands like those that the call is for.
    dtypes, shapes : sequence
        The dtype and the shape of each output.
    orders : sequence of tuple of int
        In which order the dims of each output lie in memory, before it is summed.
    grain : int
        Elements a thread takes at a time.
    """

    def __init__(
        self,
        find_loop: Callable[..., Any],
        shape: Shape,
        operands: Sequence[Array | Number],
        dtypes: Sequence[np.dtype[Any]],
        shapes: Sequence[Shape],
        orders: Sequence[Order],
        grain: int,
    ) -> None:
        self.dtypes, self.grain = list(dtypes), grain
        pattern, self.anchors, steps = prepare(shape, operands)
        self.arrays = [k for k, letter in enumerate(pattern) if letter in ARRAYS]
        lengths, walked = self._choose_outputs(shape, shapes, orders, steps)
        deals = [output.deal for output in self.outputs if output.deal is not None]
        self.last_width = lengths[-1]
        lanes = _rows_in_one(lengths, walked, deals)
        if lanes > 1:
            self._put_side_by_side(lanes, lengths, walked)
            *before, rows, width = lengths
            self.last_width = (rows % lanes or lanes) * width
            lengths = [*before, ceil(rows / lanes), lanes * width]
            joined = Deal(deals[0].shift - lanes.bit_length() + 1, 1, lanes * width)
            deals = [joined] * len(deals)
        self.lengths, self.steps = np.array(lengths[:-1], np.int64), np.array(walked, np.int64)
        self.width, inner_rows = lengths[-1], prod(lengths[1:-1])
        per_block = 1  # steps of the outermost loop: whole blocks of all outputs
        for deal, own in zip(deals, walked[len(walked) - len(deals) :], strict=True):
            block = 1 << deal.shift
            per_block = max(per_block, block // gcd(block, own[0] or block))
        self.blocks, self.columns = ceil(lengths[0] / per_block), ceil(self.width / SUMMING_COLUMNS)
        self.rows, self.rows_of_block = lengths[0] * inner_rows, per_block * inner_rows
        self.deal = [np.array(deals, np.int64).reshape(-1)] if deals else []
        pairs = zip(self.dtypes, self.outputs, strict=True)
        self.room = [dtype for dtype, output in pairs if output.mode == SUM_OF_ROW]
        examples = [read(operand) for read, operand in zip(self.anchors, operands, strict=True)]
        examples += [np.empty(0, dtype) for dtype in self.dtypes]
        modes = modes_of(pattern, walked) + "".join([output.mode for output in self.outputs])
        self.loop = find_loop(pattern, modes, examples, self._room())

    def _choose_outputs(
        self,
        shape: Shape,
        shapes: Sequence[Shape],
        orders: Sequence[Order],
        steps: Sequence[Sequence[int]],
    ) -> Walk:
        """Decide which outputs are summed in the loop; return the loops and steps of all arrays."""
        summed = [own for own, target in zip(orders, shapes, strict=True) if target != shape]
        order = (summed or orders)[0]
        whole = [Whole(shape, *each, order) for each in zip(shapes, orders, strict=True)]
        self.outputs: list[Whole | Summed] = [
            each if target == shape or own != order else Summed(shape, target, order, dtype)
            for each, target, own, dtype in zip(whole, shapes, orders, self.dtypes, strict=True)
        ]
        steps = [[own[dim] for dim in order] for own in steps]
        found = self._walked(whole[0].shape, steps)
        self.outputs = [
            each if each.fits(found.lengths[-1]) else stored
            for each, stored in zip(self.outputs, whole, strict=True)
        ]
        lengths, walked = self._walked(whole[0].shape, steps)
        if len(lengths) == 1:  # a row is all there is
            lengths, walked = [1, *lengths], [[0, *own] for own in walked]
        return Walk(lengths, walked)

    def _walked(self, lengths: Sequence[int], steps: Sequence[Sequence[int]]) -> Walk:
        """Return the loops, and the steps of operands, of outputs, and of rows that are added."""
        steps = [*steps, *(output.steps for output in self.outputs)]
        return walk(lengths, steps + [each.positions for each in self.outputs if each.deal])

    def _put_side_by_side(
        self, lanes: int, lengths: Sequence[int], walked: Sequence[list[int]]
    ) -> None:
        """Make a row of one for each lane; what is the same for all is repeated in memory."""
        for k, own in enumerate(walked[: len(self.arrays)]):
            if own[-2] == 0 != own[-1]:
                k = self.arrays[k]
                self.anchors[k] = _repeating(self.anchors[k], lengths, own, lanes)
        for own in walked:
            if own[-2] == lengths[-1] * own[-1]:
                own[-2] *= lanes

    def _room(self) -> list[Array]:
        """Return room for a block of each output that sums elements of rows; and the deal."""
        return [*(np.empty(SUM_BLOCK, dtype) for dtype in self.room), *self.deal]

    def __call__(self, operands: Sequence[Array | Number]) -> list[Array]:
        """Compute the outputs."""
        arguments = [read(operand) for read, operand in zip(self.anchors, operands, strict=True)]
        values = [
            output.room(dtype) for output, dtype in zip(self.outputs, self.dtypes, strict=True)
        ]
        arguments += values
        loop, lengths, steps, blocks = self.loop, self.lengths, self.steps, self.blocks

        def task(start: int, stop: int) -> None:
            rest = [*arguments, *self._room()]
            index = np.empty(lengths.size, np.int64)
            while start < stop:  # blocks of one column
                column, block = divmod(start, blocks)
                last = min(blocks, block + stop - start)
                first_row = block * self.rows_of_block
                last_row = min(last * self.rows_of_block, self.rows)
                is_short = last_row == self.rows and self.last_width < self.width
                last_row -= is_short
                left, right = (
                    column * SUMMING_COLUMNS,
                    min((column + 1) * SUMMING_COLUMNS, self.width),
                )
                loop(lengths, steps, index, first_row, last_row, left, right, SUM_BLOCK, *rest)
                if is_short:
                    ends = last_row, self.rows, 0, self.last_width
                    loop(lengths, steps, index, *ends, SUM_BLOCK, *rest)
                start += last - block

        elements = self.rows_of_block * min(self.width, SUMMING_COLUMNS)
        parallel_for(task, blocks * self.columns, max(1, self.grain // elements))
        return [output.finish(own) for output, own in zip(self.outputs, values, strict=True)]


def _rows_in_one(
    lengths: Sequence[int], walked: Sequence[Sequence[int]], deals: Sequence[Deal]
) -> int:
    """Return how many rows can be one, each in a lane of its own; 1 if they can't.

    They can if they lie next to each other in all arrays, or are the same in some.
    """
    if len(lengths) < 2 or not deals or any(deal != deals[0] for deal in deals):
        return 1
    *before, rows, width = lengths
    lanes = deals[0].lanes
    arrays, positions = walked[: len(walked) - len(deals)], walked[len(walked) - len(deals) :]
    fits = all(own[-2] in (0, width * own[-1]) for own in arrays)
    fits = fits and all(own[-2] == 1 and not any(own[:-2]) for own in positions)
    fits = fits and rows >= 2 * lanes and (not before or rows % lanes == 0)
    return lanes if fits and prod(before) * rows >= JOINED_ROWS else 1


def _repeating(
    anchor: Callable[[Array], Array], lengths: Sequence[int], steps: list[int], count: int
) -> Callable[[Array], Array]:
    """Return what puts rows of an array in memory, each again and again; change the steps to it.

    The steps are those of loops whose last but one goes over rows that are the same.
    """
    *before, _, width = lengths
    shape = [length if step else 1 for length, step in zip(before, steps[:-2], strict=True)]
    view = (*shape, 1, width), (*steps[:-1], steps[-1]), 0
    memory = (*shape, count, width)
    steps[:] = [*contiguous_steps(memory)[:-2], 0, 1]

    def repeated(array: Array) -> Array:
        row, rows = anchor(array), np.empty(memory, array.dtype)
        rows[...] = row if before == [] and row.size == width else strided_view(row, view)
        return rows.reshape(-1)

    return repeated
