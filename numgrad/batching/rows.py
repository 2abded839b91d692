"""Linear maps at many vectors at once: batches of cotangents, and rows of Jacobians as one batch.

The batch is a dim of its own, of which the pass over the recorded operations knows nothing: that is
what `numgrad.func.vmap` does to any function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from numgrad.batching.batcher import Batcher
from numgrad.graph.backward.accumulate import private_tensor
from numgrad.graph.backward.engine import run
from numgrad.graph.modes.anomaly import anomaly
from numgrad.graph.modes.state import modes, recording
from numgrad.graph.tensor import Edge, Tensor, fresh
from numgrad.graph.upward import upward

__all__ = ["batched_gradients", "can_batch", "mapped_rows", "unit_rows"]

# Elements of the vectors of one batch.
ELEMENTS = 1 << 20


def batched_gradients(
    outputs: Sequence[Edge],
    cotangents: Sequence[Tensor],
    inputs: Sequence[Edge],
    *,
    keep_graph: bool,
    create_graph: bool,
) -> list[Tensor | None]:
    """Return the gradients at `inputs` for a batch of cotangents, each with the batch in front.

    Parameters
    ----------
    outputs, inputs : sequence of edges
        Where to start, and where to end.
    cotangents : sequence of Tensor
        For each of the outputs those of all entries, along a first dim.
    keep_graph, create_graph : bool
        As of `numgrad.graph.backward.engine.run`.

    Returns
    -------
    list of Tensor or None
        None where no gradient arrives.
    """

    def gradients(given: Sequence[Tensor]) -> list[Tensor | None]:
        return run(
            list(zip(outputs, given, strict=True)),
            keep_graph=keep_graph,
            create_graph=create_graph,
            inputs=inputs,
            accumulate=False,
        )

    return mapped_rows(gradients, cotangents, create_graph)


upward.batched_gradients = batched_gradients


def mapped_rows(
    function: Callable[[Sequence[Tensor]], Sequence[Tensor | None]],
    batches: Sequence[Tensor],
    record: bool,
) -> list[Tensor | None]:
    """Return what a function gives for all entries of batches, stacked along a first dim.

    Parameters
    ----------
    function : callable
        Takes a tensor for each of the batches.
    batches : sequence of Tensor
        Of one length along their first dims.
    record : bool
        Whether what comes of it is recorded.
    """
    size = batches[0]._array.shape[0]
    with recording(record):
        batcher = Batcher(size)
        with batcher.open():
            found = function([batcher.inside(each, True) for each in batches])
            parts = [None if each is None else batcher.part(each) for each in found]
        results = [None if part is None else part.every(size) for part in parts]
    if record:
        return results
    # Views that were made without grad mode are no results.
    return [
        private_tensor(each) if each is not None and each._base is not None else each
        for each in results
    ]


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
    return mapped_rows(lambda given: function(given[0]), [basis], record)
