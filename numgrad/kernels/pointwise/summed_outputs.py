"""Outputs of elementwise loops that are summed: what a loop gives of one, and what is done with it.

A loop adds up the blocks of `numgrad.kernels.reduce.order`, and its reductions add up what these
give. So the bits are those of the sum of an array that holds all values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, prod
from typing import Any, NamedTuple

import numpy as np

from numgrad.codegen.llvm.run_ir import block_rows, lanes_of_rows
from numgrad.codegen.render import CONTIGUOUS, SUM_OF_ROW, SUM_OF_ROWS
from numgrad.codegen.scalar_ops import REAL_OF
from numgrad.kernels.move.layout import arranged
from numgrad.kernels.move.loop_order import contiguous_steps
from numgrad.kernels.move.memory_order import copy_in_order
from numgrad.kernels.reduce import operations as folds
from numgrad.kernels.reduce.few_elements import FewElements
from numgrad.kernels.reduce.order import PART, TILE, steps_of
from numgrad.kernels.reduce.reductions import sum as sum_over
from numgrad.runtime.memory import empty

__all__ = ["Deal", "Summed", "Whole", "summed_dims"]

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
Order = tuple[int, ...]


def summed_dims(shape: Shape, target: Shape) -> tuple[int, ...]:
    """Return the dims of a shape that are summed to give one that broadcasts to it.

    Examples
    --------
    >>> summed_dims((4, 2, 3), (1, 3))
    (0, 1)
    """
    lead = len(shape) - len(target)
    return tuple(range(lead)) + tuple(
        [lead + dim for dim, n in enumerate(target) if n == 1 and shape[lead + dim] != 1]
    )


class Deal(NamedTuple):
    """How rows that are added up are dealt out, by their numbers.

    Attributes
    ----------
    shift : int
        By how many bits the number of a row is shifted to be that of its block.
    lanes : int
        Among how many lanes those of a block are dealt out: a power of two.
    width : int
        How many sums a lane has.
    """

    shift: int
    lanes: int
    width: int


class Whole:
    """An output that a loop stores; if it is to be summed, that is done afterwards.

    Parameters
    ----------
    shape, target : tuple of int
        Of the values, and of the output.
    order, walked : tuple of int
        The dims of the values in the order in which they are to lie in memory, and of the loops.
    """

    mode = CONTIGUOUS
    deal: Deal | None = None
    positions: Sequence[int] = ()

    def __init__(self, shape: Shape, target: Shape, order: Order, walked: Order) -> None:
        self.shape, self.target = tuple([shape[dim] for dim in walked]), target
        self.size = prod(shape)
        self.dims = summed_dims(shape, target) if target != shape else ()
        self.order = None if order == walked else order
        in_order = walked == tuple(range(len(shape)))
        self.back = None if in_order else np.argsort(walked).tolist()
        self.steps = contiguous_steps(self.shape)

    def fits(self, length: int) -> bool:
        """Return True: any loop can store it."""
        return True

    def room(self, dtype: np.dtype[Any]) -> Array:
        """Return memory for what the loop gives."""
        return empty(self.size, dtype)

    def finish(self, values: Array) -> Array:
        """Return the output, given what the loop gave."""
        result = values.reshape(self.shape)
        if self.back is not None:
            result = result.transpose(self.back)
        if self.order is not None:
            result = copy_in_order(result, self.order)
        return sum_over(result, self.dims, True).reshape(self.target) if self.dims else result


class Summed:
    """An output that a loop sums, in blocks, over the dims next to each other that come last.

    Parameters are those of `Whole`; the values lie in the order of the loops.

    Attributes
    ----------
    mode : str
        Whether elements of rows are summed, or rows.
    deal : Deal or None
        How rows are dealt out.
    n : int
        How many elements or rows make a sum.
    steps, positions : list of int
        How far a step along each dim leads in what the loop gives, and among the n.
    """

    def __init__(self, shape: Shape, target: Shape, order: Order, dtype: np.dtype[Any]) -> None:
        self.target, self.dims, self.dtype = target, summed_dims(shape, target), dtype
        self.real, parts = REAL_OF.get(dtype, dtype), 1 + (dtype.kind == "c")
        # A complex number is two that lie next to each other.
        self.shape = shape + (2,) * (parts - 1)
        self.layout = arranged(None, self.shape, self.dims, (*order, len(shape))[: len(self.shape)])
        _, outer, self.n, inner, *_ = self.layout
        lanes, block, width = lanes_of_rows(inner), block_rows(inner), inner // parts
        blocks, live = ceil(self.n / block), min(self.n, lanes)
        self.mode, self.deal = SUM_OF_ROW, None
        if width == 1:  # whose blocks are added up at once
            live = 1
        else:
            self.mode = SUM_OF_ROWS
            self.deal = Deal(block.bit_length() - 1, lanes, width)
        self.count = outer * blocks * live * width
        self.steps, self.positions = self._steps([shape[dim] for dim in order], order)
        self.merges = [(outer * blocks, live, inner), (outer, blocks, inner)]
        self.merge = self._merge_of_few()
        kept = [dim for dim in self.layout.kept if self.shape[dim] > 1]
        self.is_done = not self.layout.rest and kept == sorted(kept)  # once that is merged

    def _steps(self, lengths: Sequence[int], order: Order) -> tuple[list[int], list[int]]:
        steps, positions = [0] * len(order), [0] * len(order)
        step, position, stage = 1, 1, "behind"
        for k in range(len(order) - 1, -1, -1):
            is_summed = order[k] in self.dims
            if lengths[k] == 1:
                continue
            if stage == "behind" and is_summed:
                stage = "summed"
            elif stage == "summed" and not is_summed:
                stage, step = "before", self.count // prod(lengths[: k + 1])
            if stage == "summed":
                positions[k] = position
                position *= lengths[k]
            else:
                steps[k] = step
                step *= lengths[k]
        return steps, positions

    def fits(self, length: int) -> bool:
        """Whether a loop whose innermost one has a length can sum it.

        It cannot sum elements of several rows, as blocks would begin anywhere. Of so few rows that
        each has a lane of its own, none are added up.
        """
        return self.n == length if self.deal is None else self.n > self.deal.lanes

    def _merge_of_few(self) -> Callable[[Array], Array] | None:
        """Return what adds up few sums of lanes and of blocks at once; None for many."""
        (_, live, inner), (outer, blocks, _) = self.merges
        rows = blocks * live
        if rows == 1:
            return lambda values: values
        if inner > TILE or outer * rows * inner > PART or blocks > block_rows(inner):
            return None
        few = FewElements(outer, rows, inner, (outer * inner,))
        steps = steps_of(rows, inner, inner, block=live if blocks > 1 < live else 0)
        return folds.SUM.specialised(few, self.real, self.real, self.real, steps)

    def room(self, dtype: np.dtype[Any]) -> Array:
        """Return memory for what the loop gives."""
        values = empty(self.count, dtype)
        if self.deal is not None:
            values.fill(0)
        return values

    def finish(self, values: Array) -> Array:
        """Return the output, given what the loop gave."""
        if self.real is not self.dtype:
            values = values.view(self.real)
        if self.merge is not None:
            values = self.merge(values)
        else:
            for sizes in self.merges:
                if sizes[1] > 1:
                    values = folds.SUM.reduce(values, *sizes, self.real)
        if not self.is_done:
            values = folds.SUM.finish(values, self.layout, self.shape, self.dims, True)
        if self.real is not self.dtype:
            values = values.reshape(-1).view(self.dtype)
        return values.reshape(self.target)
