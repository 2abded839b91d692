"""Linear maps at many vectors at once: rows of Jacobians as one batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from numgrad.batching.batcher import Batcher
from numgrad.graph.anomaly import anomaly
from numgrad.graph.modes import modes, recording
from numgrad.graph.tensor import Tensor, fresh

__all__ = ["can_batch", "unit_rows"]

# Elements of the vectors of one batch.
ELEMENTS = 1 << 20


def can_batch(nodes: Iterable[Any], tensors: Sequence[Tensor]) -> bool:
    """Return whether passes over some nodes, a vector for each element, can be run as one.

    Not where the user's code would see it: a hook, or a custom Function.
    """
    trace = modes.trace
    if (trace is not None and not isinstance(trace, Batcher)) or modes.dual is not None:
        return False
    if anomaly.enabled or any(tensor._array.size**2 > ELEMENTS for tensor in tensors):
        return False
    return all(node.attached is None and not hasattr(node, "ctx") for node in nodes)


def unit_rows(
    function: Callable[[Tensor], Sequence[Tensor | None]], like: Tensor, record: bool
) -> list[Tensor | None]:
    """Return what a linear function gives for each unit vector, stacked along a first dim.

    Parameters
    ----------
    function : callable
        Takes a tensor of the shape and dtype of `like`.
    like : Tensor
    record : bool
        Whether what comes of it is recorded.
    """
    array = like._array
    basis = fresh(np.eye(array.size, dtype=array.dtype).reshape(array.size, *array.shape))
    with recording(record):
        batcher = Batcher(array.size)
        with batcher.open():
            found = function(batcher.inside(basis, True))
            parts = [None if each is None else batcher.part(each) for each in found]
        return [None if part is None else part.every(array.size) for part in parts]
