"""Draws of random numbers that compiled code does without the interpreter."""

from __future__ import annotations

from typing import Any

from numgrad.codegen.loops import Name, Number, names
from numgrad.jit.lowering.draws import Drawing
from numgrad.kernels.random import FILLS

__all__ = ["native_draw"]


def native_draw(drawing: Drawing) -> tuple[Name, list[Number]] | None:
    """Return what fills an array with the numbers, and what else that is given; None if nothing."""
    draw, dtype = drawing.draw, drawing.draw.dtype.numpy
    fill = FILLS.get((draw.kind, dtype)) or FILLS.get((draw.kind, None))
    if fill is None or (draw.kind == "permutation" and len(drawing.shape) != 1):
        return None
    parameters: tuple[Any, ...] = draw.parameters
    if draw.kind == "integers":
        if dtype.kind in "iu" and dtype.itemsize < 4:  # which share the bits of a word
            return None
        low, high = parameters
        parameters = low, high - 1 - low
    (name,) = names("numgrad.kernels.random", fill)
    return name, [Number(parameter) for parameter in parameters]
