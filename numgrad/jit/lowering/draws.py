"""Random numbers in a graph: functions of where a generator is, and of nothing else.

A draw takes the state of a generator, in words (`numgrad.kernels.random`), and has two results: the
numbers, and the state behind them. So the order of draws is that in which they take each other's
states, no pass needs to know of it, and what is computed again draws the same numbers again.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from numgrad.ops.creation.drawing import Distribution
from numgrad.ops.creation.generator import Generator

__all__ = ["STATE_DTYPE", "STATE_SHAPE", "Drawing"]

STATE_SHAPE, STATE_DTYPE = (6,), np.dtype(np.uint64)

_OF_ANY_DTYPE = ("geometric", "integers", "permutation")
_own = threading.local()


class Drawing:
    """What a graph calls to draw numbers.

    Attributes
    ----------
    draw : Distribution
    shape : tuple of int
    template : tuple
        Both, as what is equal if they are.
    """

    __slots__ = ("draw", "shape", "template")

    name = "draw"

    def __init__(self, draw: Distribution, shape: tuple[int, ...]) -> None:
        self.draw, self.shape = draw, shape
        self.template = (draw.kind, draw.dtype, draw.parameters, shape)

    def metas(self) -> list[tuple[tuple[int, ...], Any]]:
        """Return shape and dtype of the results."""
        return [(self.shape, self.draw.dtype.numpy), (STATE_SHAPE, STATE_DTYPE)]

    def forward(self, words: np.ndarray[Any, Any]) -> tuple[Any, Any]:
        """Return numbers and the state behind them, in the interpreter: as NumPy draws them."""
        try:
            scratch = _own.generator
        except AttributeError:
            scratch = _own.generator = Generator()
        scratch.set_words(words)
        return self.draw.numbers(scratch._numpy, self.shape), scratch.words()

    def __repr__(self) -> str:
        return f"draw({self.draw.kind})"
