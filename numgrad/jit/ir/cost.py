"""Cost of a graph: floating point operations, bytes, and passes over memory."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from numgrad.codegen.scalar_ops import SCALAR_OPS
from numgrad.jit.ir.graph import Graph, Value

__all__ = ["Cost", "cost", "flops_of"]

# What only says where elements are found takes no pass over them.
_FREE = frozenset(("input", "array", "constant", "view", "reshape", "item"))


class Cost(NamedTuple):
    """What one call of a graph costs.

    Attributes
    ----------
    flops : int
        Floating point operations, weighted as in `numgrad.codegen.scalar_ops`; the inside of a
        ``call`` is not counted.
    read, written : int
        Bytes of the inputs and captured arrays, and of the outputs: less no execution can move.
    passes : int
        Loops that run without fusion: one for each operation that computes.
    traffic : int
        Bytes that these loops read and write.
    fused : int or None
        Loops that a schedule has, where there is one.
    """

    flops: int
    read: int
    written: int
    passes: int
    traffic: int
    fused: int | None = None

    def __str__(self) -> str:
        passes = f"{self.passes} passes"
        if self.fused is not None:
            passes = f"{self.fused} passes ({self.passes} without fusion)"
        return (
            f"{_short(self.flops)}flop, reads {_short(self.read)}B, writes "
            f"{_short(self.written)}B, {passes}, {_short(self.traffic)}B moved without fusion"
        )


def cost(graph: Graph, fused: int | None = None) -> Cost:
    """Return what one call of a graph costs.

    Parameters
    ----------
    graph : Graph
    fused : int, optional
        How many loops the schedule of the graph has.

    Examples
    --------
    >>> import numpy as np
    >>> x = Value("input", (), (1000,), np.dtype("float64"), position=0)
    >>> y = Value("exp", [Value("mul", [x, x], (1000,), x.dtype)], (1000,), x.dtype)
    >>> print(cost(Graph([x], [y]), fused=1))
    26 kflop, reads 8 kB, writes 8 kB, 1 passes (2 without fusion), 32 kB moved without fusion
    """
    flops = read = passes = traffic = 0
    for value in graph.values():
        operation = value.operation
        if operation in ("input", "array"):
            read += _bytes(value)
        if operation in _FREE:
            continue
        passes += 1
        traffic += _bytes(value) + sum(map(_bytes, dict.fromkeys(value.operands)))
        flops += flops_of(value)
    written = sum(map(_bytes, dict.fromkeys(graph.outputs)))
    return Cost(flops, read, written, passes, traffic, fused)


def flops_of(value: Value) -> int:
    """Return the floating point operations of a value; the inside of a ``call`` is not counted."""
    if value.operation == "reduce":
        return prod(value.operands[0].shape)
    if value.operation == "matmul":
        return 2 * prod(value.shape) * value.operands[0].shape[1]
    if value.is_elementwise:
        return SCALAR_OPS[value.operation].flops * prod(value.shape)
    return 0


def _bytes(value: Value) -> int:
    return prod(value.shape) * value.dtype.itemsize


def _short(number: float) -> str:
    """Return a number with three digits and a prefix: ``"1.23 M"``."""
    for prefix in ("", "k", "M", "G"):
        if number < 999.5:
            return f"{number:.3g} {prefix}"
        number /= 1000
    return f"{number:.3g} T"
