"""Cost of a graph: floating point operations, bytes, and passes over memory."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from numgrad.jit.ir.graph import Graph, Value

__all__ = ["FLOPS", "Cost", "cost"]

# Flops that an evaluation of a scalar operation counts for; any other counts for 1. A polynomial of
# degree n has 2 n, and a division takes as long as about 4 products.
FLOPS = {
    "cast": 0,
    "real": 0,
    "imag": 0,
    "conj": 0,
    "complex_of": 0,
    "true_divide": 4,
    "complex_divide": 20,
    "sqrt": 4,
    "remainder": 8,
    "fmod": 8,
    "floor_divide": 8,
    "trunc_divide": 8,
    "fma": 2,
    "hypot": 12,
    "atan2": 30,
    "pow": 60,
    "erfinv": 150,
    **dict.fromkeys(("exp", "exp2", "log", "log2", "log10", "sigmoid"), 25),
    **dict.fromkeys(("sin", "cos", "expm1", "log1p", "tanh", "cbrt"), 30),
    **dict.fromkeys(("tan", "sinh", "cosh", "asinh", "acosh", "atanh"), 40),
    **dict.fromkeys(("asin", "acos", "atan", "angle", "softplus", "logsigmoid"), 40),
    **dict.fromkeys(("erf", "erfc"), 60),
}
# What only says where elements are found takes no pass over them.
_FREE = frozenset(("input", "array", "constant", "view", "reshape", "item"))


class Cost(NamedTuple):
    """What one call of a graph costs.

    Attributes
    ----------
    flops : int
        Floating point operations, weighted by `FLOPS`; the inside of a ``call`` is not counted.
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
        flops += _flops(value)
    written = sum(map(_bytes, dict.fromkeys(graph.outputs)))
    return Cost(flops, read, written, passes, traffic, fused)


def _flops(value: Value) -> int:
    if value.operation == "reduce":
        return prod(value.operands[0].shape)
    if value.operation == "matmul":
        return 2 * prod(value.shape) * value.operands[0].shape[1]
    if value.is_elementwise:
        return FLOPS.get(value.operation, 1) * prod(value.shape)
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
