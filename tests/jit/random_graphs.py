"""Graphs at random: elementwise, broadcast, views, reductions, updates, gathers, dtypes mixed."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import numpy as np

from numgrad.jit.ir.graph import Graph, Value
from tests.jit.graphs import (
    BOOL,
    cast,
    checked,
    gather,
    join,
    keep,
    number,
    op,
    reduce,
    reshape,
    scatter,
    update,
    view,
)

__all__ = ["random_arrays", "random_graph"]

_DTYPES = [np.float64, np.float64, np.float32, np.int64, np.int32, np.bool_, np.complex128]
_LARGEST = 20_000


def random_graph(random: Random, largest: int = _LARGEST) -> Graph:
    """Return a graph of up to 14 operations on up to 3 inputs of about so many elements at most."""
    sizes = [random.choice([1, 2, 3, 4, 5, 7]) for _ in range(3)]
    if random.random() < 0.15:
        sizes[0] = 0
    if random.random() < 0.2:
        sizes[1] = random.choice([9, 300, 1030])
    inputs = []
    for position in range(random.randint(1, 3)):
        shape = [random.choice(sizes) for _ in range(random.randint(0, 3))]
        while math.prod(shape) > largest:
            shape.pop()
        dtype = np.dtype(random.choice(_DTYPES))
        inputs.append(Value("input", (), tuple(shape), dtype, position=position))
    values = list(inputs)
    for _ in range(random.randint(3, 14)):
        value = random.choice(values[-6:] if random.random() < 0.7 else values)
        step = random.choice(_STEPS)
        if math.prod(value.shape) > largest:
            step = _reduction
        values += step(random, value, values, sizes)
    outputs = [values[-1]]
    outputs += [random.choice(values[len(inputs) :] or values) for _ in range(random.randint(0, 2))]
    return Graph(inputs, list(dict.fromkeys(outputs)))


def random_arrays(graph: Graph, seed: int) -> list[np.ndarray]:
    """Return arguments for a graph, some of them not C-contiguous."""
    random = np.random.default_rng(seed)
    arrays = []
    for value in graph.inputs:
        array = random.normal(size=value.shape) * 3
        if value.dtype.kind == "c":
            array = array + 1j * random.normal(size=value.shape)
        if value.dtype.kind == "b":
            array = array > 0
        order = "F" if random.random() < 0.3 else "C"
        arrays.append(np.array(array, order=order).astype(value.dtype, order="K"))
    return arrays


def _same(value: Value, dtype: Any) -> Value:
    return value if value.dtype == dtype else cast(value, dtype)


def _fits(a: Value, b: Value) -> bool:
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return False
    return True


def _unary(random: Random, value: Value, values: list[Value], sizes: list[int]) -> list[Value]:
    kind = value.dtype.kind
    if kind == "f":
        return [op(random.choice(["neg", "abs", "exp", "sin", "tanh", "cos"]), value)]
    if kind == "b":
        return [op("logical_not", value)]
    if kind == "c":
        return [op(random.choice(["conj", "neg"]), value)]
    return [cast(value, random.choice([np.float64, np.float32, np.bool_]))]


def _binary(random: Random, value: Value, values: list[Value], sizes: list[int]) -> list[Value]:
    other, kind = random.choice(values), value.dtype.kind
    if random.random() < 0.3 or not _fits(value, other):
        choices = {"b": [True], "i": [1, 6], "f": [0.5, 1.0, -3.0, 7.25], "c": [2.5 + 1j]}
        other = number(random.choice(choices[kind]), value.dtype)
    if other.dtype.kind == "c" and kind != "c":
        return []
    other = _same(other, value.dtype)
    if kind == "b":
        return [op(random.choice(["bitwise_and", "bitwise_or", "bitwise_xor"]), value, other)]
    names = ["add", "sub", "mul"] + ["maximum", "lt"] * (kind != "c")
    return [op(random.choice(names), value, other)]


def _where(random: Random, value: Value, values: list[Value], sizes: list[int]) -> list[Value]:
    condition = random.choice(values)
    if not _fits(value, condition):
        return []
    return [op("where", _same(condition, BOOL), value, number(0, value.dtype))]


def _reduction(random: Random, value: Value, values: list[Value], sizes: list[int]) -> list[Value]:
    if not value.shape:
        return []
    rank = len(value.shape)
    dims = [dim for dim in range(rank) if random.random() < 0.5] or [random.randrange(rank)]
    kinds = {"b": ["any", "all"], "c": ["sum"]}
    kind = random.choice(kinds.get(value.dtype.kind, ["sum", "sum", "max", "min", "prod"]))
    if kind in ("max", "min") and 0 in value.shape:
        kind = "sum"
    if value.dtype.kind in "iu" and kind in ("sum", "prod"):
        value = _same(value, np.dtype(np.int64))
    result = reduce(kind, value, *dims)
    found = [result]
    if random.random() < 0.3:  # over other dims, by the same loops
        found.append(reduce(kind, value, random.randrange(rank)))
    if random.random() < 0.6:
        for dim in dims:
            result = keep(result, dim)
        found.append(result)
    return found


def _view(random: Random, value: Value, values: list[Value], sizes: list[int]) -> list[Value]:
    if not value.shape or 0 in value.shape:
        return []
    rank, shape = len(value.shape), list(value.shape)
    maps: list[Any] = [(0, ((dim, 1),)) for dim in range(rank)]
    dim = random.randrange(rank)
    size = shape[dim]
    kind = random.choice(
        ["flip", "slice", "steps", "select", "permute", "diagonal", "window", "all"]
    )
    if kind == "flip":
        maps[dim] = (size - 1, ((dim, -1),))
    elif kind == "slice":
        first = random.randint(0, size - 1)
        shape[dim] = random.randint(first + 1, size) - first
        maps[dim] = (first, ((dim, 1),))
    elif kind == "steps":
        shape[dim] = (size + 2) // 3
        maps[dim] = (0, ((dim, 3),))
    elif kind == "select":
        shape.pop(dim)
        maps = [(0, ((d - (d > dim), 1),)) for d in range(rank)]
        maps[dim] = (random.randrange(size), ())
    elif kind == "permute":
        order = random.sample(range(rank), rank)
        shape = [value.shape[d] for d in order]
        maps = [(0, ((order.index(d), 1),)) for d in range(rank)]
    elif kind == "diagonal" and rank > 1:
        shape = [min(shape[:2]), *shape[2:]]
        maps = [(0, ((max(0, d - 1), 1),)) for d in range(rank)]
    elif kind == "all":  # steps along all dims, in any order, some backwards
        order = random.sample(range(rank), rank)
        shape = [0] * rank
        for dim in range(rank):
            step = random.choice([1, 2, 3, 4, 5])
            count = shape[order[dim]] = (value.shape[dim] - 1) // step + 1
            back = random.random() < 0.3
            first = step * (count - 1) if back else value.shape[dim] - 1 - step * (count - 1)
            maps[dim] = (first, ((order[dim], -step if back else step),))
    elif kind == "window":
        width = min(2, size)
        shape[dim] = size - width + 1
        shape.append(width)
        maps[dim] = (0, ((dim, 1), (rank, 1)))
    return [view(value, tuple(shape), *maps)]


def _expand(random: Random, value: Value, values: list[Value], sizes: list[int]) -> list[Value]:
    maps = [(0, ((dim + 1, 1),)) for dim in range(len(value.shape))]
    return [view(value, (random.choice(sizes), *value.shape), *maps)]


def _reshape(random: Random, value: Value, values: list[Value], sizes: list[int]) -> list[Value]:
    size = math.prod(value.shape)
    kind = random.choice(["flat", "split", "merge", "keep"])
    if kind == "keep":
        return [keep(value, random.randint(0, len(value.shape)))]
    if kind == "flat":
        return [reshape(value, size)]
    if kind == "merge" and len(value.shape) > 1:
        dim = random.randrange(len(value.shape) - 1)
        before, (a, b), after = (
            value.shape[:dim],
            value.shape[dim : dim + 2],
            value.shape[dim + 2 :],
        )
        return [reshape(value, *before, a * b, *after)]
    factors = [factor for factor in (2, 3, 5) if size and size % factor == 0]
    return [reshape(value, factors[0], size // factors[0])] if factors else []


def _update(random: Random, value: Value, values: list[Value], sizes: list[int]) -> list[Value]:
    if not value.shape or 0 in value.shape:
        return []
    rank = len(value.shape)
    own = [math.prod(value.shape[dim + 1 :]) for dim in range(rank)]
    order = random.sample(range(rank), rank) if random.random() < 0.3 else list(range(rank))
    shape, strides, offset = [], [], 0
    for dim in order:
        start, step = random.randrange(value.shape[dim]), random.choice([1, 1, 2])
        shape.append(random.randint(1, (value.shape[dim] - 1 - start) // step + 1))
        strides.append(step * own[dim])
        offset += start * own[dim]
    if rank > 1 and random.random() < 0.15:  # a diagonal
        shape, strides, offset = [min(value.shape)], [sum(own)], 0
    other = random.choice(values)
    if other.dtype.kind == "c" and value.dtype.kind != "c":
        return []
    if len(other.shape) > len(shape) or any(
        size not in (1, wanted)
        for size, wanted in zip(other.shape[::-1], shape[::-1], strict=False)
    ):
        other = number(3, value.dtype)
    leading = len(shape) - len(other.shape)
    maps = [
        (0, ((leading + dim, 1),)) if size != 1 else (0, ()) for dim, size in enumerate(other.shape)
    ]
    part = view(_same(other, value.dtype), tuple(shape), *maps)
    return [update(value, part, offset, *strides)]


def _join(random: Random, value: Value, values: list[Value], sizes: list[int]) -> list[Value]:
    if not value.shape or 0 in value.shape:
        return []
    dim = random.randrange(len(value.shape))
    parts = []
    for _ in range(random.randint(2, 3)):
        shape = list(value.shape)
        shape[dim] = random.randint(1, shape[dim])
        maps = [(0, ((d, 1),)) for d in range(len(shape))]
        maps[dim] = (value.shape[dim] - shape[dim], ((dim, 1),))
        part = view(value, tuple(shape), *maps)
        parts.append(
            op("neg", part) if value.dtype.kind in "fc" and random.random() < 0.5 else part
        )
    return [join(dim, *parts)]


def _positions(random: Random, size: int, shape: tuple[int, ...], dim: int) -> tuple[Value, Any]:
    """Return positions in a dim, for each index along it, and the map that reads at them."""
    back, step = random.random() < 0.3, random.choice([1, 1, -1])
    if random.random() < 0.3:
        position = view(number(random.randrange(size), np.int64), shape)
        return position, (size - 1, ((len(shape), -1),)) if back else (0, ((len(shape), 1),))
    numbers = np.array([random.randrange(size) for _ in range(shape[dim])], np.int64)
    held = Value("array", (), numbers.shape, numbers.dtype, array=numbers, made=False)
    along = (0, ((dim, 1),)) if step > 0 else (shape[dim] - 1, ((dim, -1),))
    position = view(checked(held, size) if random.random() < 0.5 else held, shape, along)
    return position, (size - 1, ((len(shape), -1),)) if back else (0, ((len(shape), 1),))


def _gather(random: Random, value: Value, values: list[Value], sizes: list[int]) -> list[Value]:
    if not value.shape or 0 in value.shape:
        return []
    dim = random.randrange(len(value.shape))
    shape = (*value.shape[:dim], random.choice([1, 2, 6]), *value.shape[dim + 1 :])
    maps: list[Any] = [(0, ((d, 1),)) for d in range(len(shape))]
    position, maps[dim] = _positions(random, value.shape[dim], shape, dim)
    return [gather(value, shape, maps, position)]


def _scatter(random: Random, value: Value, values: list[Value], sizes: list[int]) -> list[Value]:
    if not value.shape or 0 in value.shape or value.dtype.kind == "b":
        return []
    dim = random.randrange(len(value.shape))
    size = random.choice([1, 2, value.shape[dim], 3 * value.shape[dim]])
    shape = (*value.shape[:dim], size, *value.shape[dim + 1 :])
    if math.prod(shape) > _LARGEST:
        return []
    maps: list[Any] = [(0, ((d, 1),)) for d in range(len(shape))]
    position, maps[dim] = _positions(random, size, value.shape, dim)
    base = view(number(0, value.dtype), shape)
    if random.random() < 0.3:
        base = op("add", base, number(2, value.dtype))
    return [scatter(base, value, maps, position, adds=random.random() < 0.7)]


def _matmul(random: Random, value: Value, values: list[Value], sizes: list[int]) -> list[Value]:
    if len(value.shape) != 2 or value.dtype.kind != "f":
        return []
    other = view(value, value.shape[::-1], (0, ((1, 1),)), (0, ((0, 1),)))
    if random.random() < 0.5:
        other = op("add", other, other)
    shape = (value.shape[0], value.shape[0])
    return [Value("matmul", (value, other), shape, value.dtype)]


_STEPS = [_unary, _binary, _binary, _binary, _where, _reduction, _reduction]
_STEPS += [_view, _view, _expand, _reshape, _reshape, _update, _join, _gather, _scatter, _matmul]
