"""Branches and loops of mapped functions, whose numbers are there: each example goes its own way.

A loop goes on until all examples are done; the carry of one that is done stays what it was. Of
branches all run that some example takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.batching.selection import Numbers, Selected, example_at, numbers_of
from numgrad.graph.modes.state import recording
from numgrad.graph.tensor import Tensor
from numgrad.ops.creation.from_data import as_tensor
from numgrad.ops.pointwise.selection import where

__all__ = ["run_switch", "run_while"]

Leaves = list[Any]  # tensors, and None where a pytree has it


def run_while(
    batcher: Any,
    predicate: Callable[[Leaves], Any],
    step: Callable[[Leaves], Leaves],
    carry: Leaves,
) -> Leaves:
    """Run a loop; see `numgrad.graph.open_recorder.LoopRecorder.while_loop`."""
    going = _flag(predicate(carry))
    while True:
        numbers = _numbers(going)
        if numbers.array.all():
            if not numbers.array.size:  # there are no examples
                return carry
            carry = step(carry)
            going = _flag(predicate(carry))
            continue
        if not numbers.array.any():
            return carry
        after = _run_selected(batcher, going, numbers, step, carry)
        carry = _merged(going, after, carry)
        with recording(False):
            going = going.logical_and(_flag(predicate(carry)))


def run_switch(
    batcher: Any,
    index: Tensor,
    branches: Sequence[Callable[[Leaves], Leaves]],
    operands: Leaves,
) -> Leaves:
    """Run branches; see `numgrad.graph.open_recorder.LoopRecorder.switch`."""
    index = _flag(index)
    if index._array.dtype == np.bool_:
        index = index.to(int)
    index = index.clamp(0, len(branches) - 1)
    numbers = _numbers(index)
    taken = np.unique(numbers.array)
    if len(taken) < 2:
        return branches[int(taken[0]) if len(taken) else 0](operands)
    result: Leaves | None = None
    for number in taken.tolist():
        mask = index == number
        own = Numbers(numbers.array == number, numbers.batched)
        found = _run_selected(batcher, mask, own, branches[number], operands)
        result = found if result is None else _merged(mask, found, result)
    assert result is not None
    return result


def _flag(found: Any) -> Tensor:
    """Return a truth value as a tensor of no dims, of which nothing is differentiated."""
    flag = found.detach() if isinstance(found, Tensor) else as_tensor(found)
    return flag if not flag._array.ndim else flag.reshape(())


def _numbers(flag: Tensor) -> Numbers:
    found = numbers_of(flag._array)
    assert found is not None
    return found


def _run_selected(
    batcher: Any,
    mask: Tensor,
    numbers: Numbers,
    body: Callable[[Leaves], Leaves],
    given: Leaves,
) -> Leaves:
    at = numbers.first()
    with Selected(batcher, mask, lambda tensor: example_at(batcher, tensor, at)) as selected:
        return body([None if leaf is None else selected.read(leaf) for leaf in given])


def _merged(mask: Tensor, chosen: Leaves, others: Leaves) -> Leaves:
    """Return the rows of the first that a mask selects, and the other rows of the second."""
    return [
        None if one is None else where(mask, one, other)
        for one, other in zip(chosen, others, strict=True)
    ]
