"""Gradients of elementwise nodes for all examples at once, by the node's own fused kernel.

Without it the rules run operation by operation, each of which comes to the batcher.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.batching.memory import Memory, Part
from numgrad.batching.worlds import Worlds
from numgrad.graph.recorder import Traced
from numgrad.graph.tensor import Tensor, wrap
from numgrad.ops.core.elementwise.node import ElementwiseNode

__all__ = ["fused_gradients"]


def fused_gradients(worlds: Worlds, node: ElementwiseNode, gradient: Tensor) -> list[Any] | None:
    """Return what the kernel of a node gives for a gradient, as arrays inside.

    None where the world outside records or traces, and where the kernel does not stand for the
    rules.
    """
    if not worlds.computes_at_once or node.saved is None:
        return None
    node.raise_if_modified()
    inner: Any = gradient._array
    with worlds.outside():
        outer = worlds.part_of(inner).every(worlds.size)._array
        saved: list[Any] = list(node.saved)
        for at in range(0, len(saved), 3):
            if type(saved[at]) is Traced or type(saved[at]) is np.ndarray:
                saved[at] = worlds.part_of(saved[at]).aligned(inner.ndim)._array
        arrays = node.run_kernel(outer, tuple(saved))
    if arrays is None:
        return None
    return [Memory(worlds, Part(wrap(array), True)).array() for array in arrays]
