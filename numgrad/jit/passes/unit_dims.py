"""Elementwise operations without dims of length 1: one form for what is computed as rows, columns.

What one part of a graph computes as a column another may compute as a vector. Without dims of
length 1 they are the same operation.
"""

from __future__ import annotations

from numgrad.jit.ir.constructors import view
from numgrad.jit.ir.graph import Affine, Graph, Value

__all__ = ["without_unit_dims"]


def without_unit_dims(graph: Graph) -> Graph:
    """Return the graph in which no elementwise operation has a dim of length 1.

    Views lead there and back, which `numgrad.jit.passes.simplify` takes together.

    Examples
    --------
    >>> import numpy as np
    >>> x = Value("input", (), (3, 1), np.dtype("float64"), position=0)
    >>> print(without_unit_dims(Graph([x], [Value("exp", [x], (3, 1), x.dtype)])))
    function(x0: f64[3, 1]):
        v0: f64[3] = view(x0, maps=[i0, 0])
        v1: f64[3] = exp(v0)
        v2: f64[3, 1] = view(v1, maps=[i0])
        return v2
    """
    new: dict[Value, Value] = {}
    for value in graph.values():
        operands = [new.get(operand, operand) for operand in value.operands]
        if value.is_elementwise and 1 in value.shape:
            kept = [dim for dim, length in enumerate(value.shape) if length != 1]
            shape = tuple([value.shape[dim] for dim in kept])
            short = [_without(operand, value.shape) for operand in operands]
            found = Value(value.operation, short, shape, value.dtype, value.origin)
            maps = [Affine(0, ((dim, 1),)) for dim in kept]
            new[value] = view(found, maps, value.shape)
        elif any(a is not b for a, b in zip(operands, value.operands, strict=True)):
            new[value] = Value(
                value.operation,
                operands,
                value.shape,
                value.dtype,
                value.origin,
                **value.attributes,
            )
    return Graph(graph.inputs, [new.get(output, output) for output in graph.outputs])


def _without(operand: Value, shape: tuple[int, ...]) -> Value:
    """Return an operand without the dims that have length 1 in the result."""
    lead = len(shape) - len(operand.shape)
    maps: list[Affine] = []
    lengths: list[int] = []
    for dim, length in enumerate(operand.shape):
        if shape[lead + dim] == 1:
            maps.append(Affine(0, ()))
        else:
            maps.append(Affine(0, ((len(lengths), 1),) if length != 1 else ()))
            lengths.append(length)
    return operand if len(lengths) == len(operand.shape) else view(operand, maps, tuple(lengths))
