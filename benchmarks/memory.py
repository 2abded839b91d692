"""Memory: the peak of a process, and the bytes of a node."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import numgrad as ng

ELEMENTS = 10_000_000
NODES = 20_000


class Peak:
    """The most memory the process had: the interpreter and its imports are in it."""

    def peakmem_import(self) -> None:
        """Nothing more: what the others are to be compared with."""

    def peakmem_chain(self) -> None:
        y = ng.tensor(1.0, requires_grad=True)
        for _ in range(100_000):
            y = y * 0.999999
        y.backward()

    def peakmem_elementwise(self) -> None:
        w = ng.full((ELEMENTS,), 0.5, requires_grad=True)
        (ng.tanh(w) * ng.exp(-w * w) + ng.sin(w)).sum().backward()

    def peakmem_elementwise_without_grad(self) -> None:
        w = ng.full((ELEMENTS,), 0.5)
        (ng.tanh(w) * ng.exp(-w * w) + ng.sin(w)).sum()

    def peakmem_in_place(self) -> None:
        w = ng.full((ELEMENTS,), 0.5)
        for _ in range(10):
            w.mul_(1.5).tanh_()


def _times_number(y: Any) -> Any:
    return y * 0.999999


def _sine(y: Any) -> Any:
    return y.sin()


def _view(y: Any) -> Any:
    return y.view(1)


# "multiply" saves nothing but a number, "sin" an array of one element.
OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "multiply": _times_number,
    "sin": _sine,
    "view": _view,
}


class Node:
    """What each node of a chain over one element adds, with all that it keeps alive."""

    params = (list(OPERATIONS),)
    param_names = ("operation",)
    unit = "bytes"

    def track_bytes(self, name: str) -> float:
        operation = OPERATIONS[name]
        leaf = ng.ones(1, requires_grad=True)
        operation(leaf)  # compile before counting
        gc.collect()
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            y = leaf
            for _ in range(NODES):
                y = operation(y)
            after, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        del y
        return (after - before) / NODES
