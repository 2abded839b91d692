"""Parts of a mapped function that are for some of the examples: bodies of branches and of loops.

An operation runs on all examples, so a body does, too, and of what it gives only the rows that the
mask selects count. In the others it computes with the numbers of one that is selected: so nothing
raises, and no derivative is infinite there, that does not in the one. What comes of these numbers
has no derivative: ``where(mask, x, chosen.detach())`` stands in the place of x.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from numgrad.graph.recorder import Traced
from numgrad.graph.tensor import Tensor
from numgrad.ops.pointwise.selection import where

__all__ = ["Numbers", "Selected", "example_at", "numbers_of"]


class Numbers(NamedTuple):
    """The numbers of an array of a mapped function, for all examples."""

    array: np.ndarray[Any, Any]  # with a first dim for each batch in which they differ
    batched: tuple[bool, ...]  # of which batches, from the outermost on, that is so

    def first(self) -> tuple[int, ...]:
        """Return where the first example is for which it holds, in each of the batches."""
        lengths = self.array.shape[: sum(self.batched)]
        flags = self.array.reshape(lengths)
        at = iter(np.unravel_index(int(flags.argmax()), lengths) if lengths else ())
        return tuple([int(next(at)) if batched else 0 for batched in self.batched])


def numbers_of(array: Any) -> Numbers | None:
    """Return the numbers of an array, of all batches that are open; None if it is traced by jit."""
    if type(array) is not Traced:
        return Numbers(array, ())
    recorder: Any = array.storage.recorder
    if not recorder.transforms:
        return None
    part = recorder.part_of(array)
    with recorder.outside():
        found = numbers_of(part.tensor._array)
    return None if found is None else Numbers(found.array, (*found.batched, part.batched))


def example_at(batcher: Any, tensor: Tensor, at: Sequence[int]) -> Tensor:
    """Return one example, as one for all; `at` says which one, in each batch from the outermost."""
    part = batcher.part(tensor)
    *outer, own = at
    with batcher.outside():
        found = part.tensor.select(0, own) if part.batched else part.tensor
        if outer:
            found = example_at(batcher.outside().trace, found, outer)
    one: Tensor = batcher.inside(found, False)
    return one


class Selected:
    """A body that runs for the examples that a mask selects, of which there is one at least.

    Parameters
    ----------
    batcher : Batcher
    mask : Tensor
        A truth value for each example, of no dims inside.
    choose : callable
        Returns, of a tensor inside, the example that stands for those that are not selected.
    """

    def __init__(self, batcher: Any, mask: Tensor, choose: Callable[[Tensor], Tensor]) -> None:
        self._batcher = batcher
        self._mask = mask
        self._choose = choose
        self._start = batcher.made
        self._known: dict[int, tuple[Tensor, Tensor]] = {}

    def __enter__(self) -> Selected:
        self._batcher.selections.append(self)
        return self

    def __exit__(self, *exception: object) -> None:
        self._batcher.selections.pop()

    def is_older(self, storage: Any) -> bool:
        """Return whether some memory was there before the body ran."""
        older: bool = storage.number <= self._start
        return older

    def read(self, tensor: Tensor) -> Tensor:
        """Return what stands for a tensor from outside of the body."""
        known = self._known.get(id(tensor))
        if known is None:
            known = self._known[id(tensor)] = (tensor, self._substituted(tensor))
        return known[1]

    def _substituted(self, tensor: Tensor) -> Tensor:
        batcher = self._batcher
        selections, batcher.selections = batcher.selections, []
        try:
            if not batcher.part(tensor).batched:
                return tensor
            return where(self._mask, tensor, self._choose(tensor.detach()))
        finally:
            batcher.selections = selections
