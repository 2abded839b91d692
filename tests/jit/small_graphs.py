"""Graphs for tests: short ways to write them, and random ones."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from hypothesis import strategies as st

from numgrad.codegen.scalar_ops import SCALAR_OPS
from numgrad.jit.ir.graph import Affine, Graph, Value

__all__ = [
    "apply",
    "arguments_of",
    "constant",
    "expand",
    "graphs",
    "inputs",
    "join",
    "reduce",
    "reshape",
    "slice_of",
    "update",
    "view",
]

F8, F4, BOOL = np.dtype("float64"), np.dtype("float32"), np.dtype(bool)
SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -3.0, np.inf, -np.inf, np.nan, 1e-300, -1e-40, 1e300]


def inputs(*types: tuple[Any, tuple[int, ...]]) -> list[Value]:
    return [
        Value("input", (), shape, np.dtype(dtype), position=position)
        for position, (dtype, shape) in enumerate(types)
    ]


def constant(number: Any, dtype: Any = F8) -> Value:
    return Value("constant", (), (), np.dtype(dtype), value=number)


def apply(operation: str, *operands: Value, dtype: Any = None) -> Value:
    own = operands[-1].dtype
    op = SCALAR_OPS[operation]
    result = np.dtype(dtype) if op.result == "cast" else op.result_dtype(own)
    shape = np.broadcast_shapes(*(operand.shape for operand in operands))
    return Value(operation, operands, shape, result)


def view(operand: Value, shape: tuple[int, ...], *maps: tuple[int, dict[int, int]]) -> Value:
    affine = tuple(Affine(offset, tuple(sorted(terms.items()))) for offset, terms in maps)
    return Value("view", (operand,), shape, operand.dtype, maps=affine)


def slice_of(operand: Value, start: int, stop: int) -> Value:
    rest = [(0, {dim: 1}) for dim in range(1, len(operand.shape))]
    return view(operand, (stop - start, *operand.shape[1:]), (start, {0: 1}), *rest)


def expand(operand: Value, shape: tuple[int, ...]) -> Value:
    lead = len(shape) - len(operand.shape)
    maps = [(0, {} if n == 1 else {lead + dim: 1}) for dim, n in enumerate(operand.shape)]
    return view(operand, shape, *maps)


def reshape(operand: Value, *shape: int) -> Value:
    return Value("reshape", (operand,), shape, operand.dtype)


def reduce(kind: str, operand: Value, *dims: int) -> Value:
    shape = tuple(n for dim, n in enumerate(operand.shape) if dim not in dims)
    dtype = BOOL if kind in ("any", "all") else operand.dtype
    return Value("reduce", (operand,), shape, dtype, kind=kind, dims=dims)


def update(whole: Value, part: Value, offset: int, *strides: int) -> Value:
    shape, dtype = whole.shape, whole.dtype
    return Value("update", (whole, part), shape, dtype, offset=offset, strides=strides)


def join(dim: int, *parts: Value) -> Value:
    starts, length = [], 0
    for part in parts:
        starts.append(tuple(length if d == dim else 0 for d in range(len(part.shape))))
        length += part.shape[dim]
    shape = (*parts[0].shape[:dim], length, *parts[0].shape[dim + 1 :])
    return Value("join", parts, shape, parts[0].dtype, starts=tuple(starts))


# --- random graphs ----------------------------------------------------------------------------

_DTYPES = [F8, F8, F4, np.dtype("int8"), np.dtype("int64"), BOOL, np.dtype("complex128")]
_UNARY = {
    "f": ["neg", "neg", "abs", "sqrt", "exp", "sin", "cosh", "floor", "round", "isnan"],
    "i": ["neg", "abs"],
    "b": ["logical_not", "logical_not"],
    "c": ["neg", "conj", "real", "imag", "abs"],
}
_COMPARE = ["lt", "le", "gt", "ge", "eq", "ne"]
_BINARY = {
    "f": ["add", "sub", "mul", "mul", "true_divide", "maximum", "minimum", *_COMPARE],
    "i": ["add", "sub", "mul", "bitwise_and", "bitwise_or", "bitwise_xor", *_COMPARE],
    "b": ["add", "mul", "logical_and", "logical_or", "bitwise_xor", "eq", "ne"],
    "c": ["add", "sub", "mul", "eq"],
}
_REDUCE = {
    "f": ["sum", "max", "min", "prod", "any"],
    "i": ["sum", "prod", "max", "min", "all"],
    "b": ["any", "all", "max"],
    "c": ["sum"],
}
_SHAPES = [(), (1,), (2,), (3,), (1, 3), (2, 1), (2, 3), (3, 2), (4,), (2, 2), (1, 1), (0,), (0, 2)]


@st.composite
def _views(draw: Any, operand: Value) -> Value:
    """Draw a view: dims are sliced, reversed, indexed or repeated, then permuted."""
    shape: list[int] = []
    maps = []
    for n in operand.shape:
        kind = draw(st.sampled_from(["whole", "whole", "slice", "index", "flip"])) if n else "whole"
        if kind == "index":
            maps.append((draw(st.integers(0, n - 1)), {}))
            continue
        start, step, length = 0, 1, n
        if kind == "slice":
            start = draw(st.integers(0, n - 1))
            step = draw(st.integers(1, 2))
            length = draw(st.integers(1, (n - 1 - start) // step + 1))
        elif kind == "flip":
            start, step = n - 1, -1
        maps.append((start, {len(shape): step}))
        shape.append(length)
    if draw(st.booleans()):
        shape.append(draw(st.sampled_from([1, 2, 3])))
    order = draw(st.permutations(range(len(shape))))
    place = {dim: position for position, dim in enumerate(order)}
    maps = [(start, {place[dim]: step for dim, step in terms.items()}) for start, terms in maps]
    return view(operand, tuple(shape[dim] for dim in order), *maps)


@st.composite
def _updates(draw: Any, whole: Value, values: list[Value]) -> Value | None:
    parts = [v for v in values if v.dtype == whole.dtype and prod(v.shape) <= prod(whole.shape)]
    part = draw(st.sampled_from(parts))
    size = prod(part.shape)
    step = draw(st.integers(1, 2)) if 2 * size <= prod(whole.shape) else 1
    room = prod(whole.shape) - step * max(size - 1, 0) - 1
    strides, stride = [], step
    for n in reversed(part.shape):
        strides.append(stride)
        stride *= n
    return update(whole, part, draw(st.integers(0, max(room, 0))), *reversed(strides))


def _joins(a: Value, b: Value, dim: int) -> bool:
    """Whether two values differ in the length of a dim only."""
    if len(a.shape) != len(b.shape):
        return False
    return all(
        m == n or d == dim for d, (m, n) in enumerate(zip(a.shape, b.shape, strict=True))
    ) and bool(a.shape[dim])


def _fits(a: Value, b: Value) -> bool:
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return False
    return True


@st.composite
def graphs(draw: Any, most: int = 14) -> Graph:
    """Draw a graph of a few operations."""
    types = draw(
        st.lists(
            st.tuples(st.sampled_from(_DTYPES), st.sampled_from(_SHAPES)), min_size=1, max_size=3
        )
    )
    arguments = inputs(*types)
    values = list(arguments)
    for _ in range(draw(st.integers(1, most))):
        values.append(draw(_operations(values)))
    outputs = draw(st.lists(st.sampled_from(values[-4:]), min_size=1, max_size=3))
    return Graph(arguments, outputs)


@st.composite
def _operations(draw: Any, values: list[Value]) -> Value:
    # The latest values most often: operations on operations are what rules are about.
    x = draw(st.sampled_from(values + values[-3:] * 2))
    kind = x.dtype.kind
    choice = draw(
        st.sampled_from(["unary", "binary", "binary", "constant", "structure", "cast", "where"])
    )
    if choice == "constant":
        number = constant(draw(_numbers(x.dtype)), x.dtype)
        if draw(st.booleans()) and x.shape:
            return expand(number, x.shape)
        operands = (x, number) if draw(st.booleans()) else (number, x)
        return apply(draw(st.sampled_from(_BINARY[kind])), *operands)
    if choice == "binary":
        others = [v for v in values if v.dtype == x.dtype and _fits(v, x)]
        other = draw(st.sampled_from(others))
        return apply(draw(st.sampled_from(_BINARY[kind])), x, other)
    if choice == "where":
        conditions = [v for v in values if v.dtype.kind == "b" and _fits(v, x)]
        others = [v for v in values if v.dtype == x.dtype and v.shape in (x.shape, ())]
        if conditions:
            other = draw(st.sampled_from(others))
            pair = (x, other) if draw(st.booleans()) else (other, x)
            return apply("where", draw(st.sampled_from(conditions)), *pair)
    if choice == "cast":
        dtype = draw(st.sampled_from(_DTYPES))
        # What NumPy makes of nan as an integer depends on where it is in an array.
        if not (kind in "fc" and dtype.kind in "iu"):
            return apply("cast", x, dtype=dtype)
    if choice == "structure":
        return draw(_structures(x, values))
    return apply(draw(st.sampled_from(_UNARY[kind])), x)


@st.composite
def _structures(draw: Any, x: Value, values: list[Value]) -> Value:
    choice = draw(st.sampled_from(["view", "view", "reshape", "reduce", "update", "join"]))
    if choice == "join" and x.shape and 0 not in x.shape:
        dim = draw(st.integers(0, len(x.shape) - 1))
        others = [v for v in values if v.dtype == x.dtype and _joins(v, x, dim)]
        parts = draw(st.lists(st.sampled_from(others), min_size=1, max_size=3))
        return join(dim, *parts)
    if choice == "reshape":
        shapes = [shape for shape in _SHAPES if prod(shape) == prod(x.shape)]
        if shapes:
            return reshape(x, *draw(st.sampled_from(shapes)))
    if choice == "reduce" and 0 not in x.shape:
        dims = [dim for dim in range(len(x.shape)) if draw(st.booleans())]
        return reduce(draw(st.sampled_from(_REDUCE[x.dtype.kind])), x, *dims)
    if choice == "update":
        return draw(_updates(x, values))
    return draw(_views(x))


def _numbers(dtype: np.dtype[Any]) -> st.SearchStrategy[Any]:
    if dtype.kind == "b":
        return st.booleans()
    if dtype.kind == "i":
        return st.sampled_from([0, 1, -1, 2, 3, 127])
    if dtype.kind == "c":
        return st.sampled_from([0j, complex(-0.0, -0.0), 1 + 0j, -1 + 2j])
    return st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -4.0, 3.0, np.inf, np.nan])


def arguments_of(graph: Graph, seed: int) -> list[np.ndarray[Any, Any]]:
    """Return arguments full of special values."""
    rng = np.random.default_rng(seed)
    arrays = []
    for value in graph.inputs:
        with np.errstate(all="ignore"):
            numbers = rng.choice(SPECIAL, value.shape)
            mixed = np.where(rng.random(value.shape) < 0.5, numbers, rng.normal(size=value.shape))
            if value.dtype.kind == "c":
                array = np.empty(value.shape, value.dtype)
                array.real, array.imag = mixed, rng.choice(SPECIAL, value.shape)
            elif value.dtype.kind in "iu":
                array = rng.integers(-128, 128, value.shape).astype(value.dtype)
            elif value.dtype.kind == "b":
                array = np.asarray(rng.random(value.shape) < 0.5)
            else:
                array = np.asarray(mixed).astype(value.dtype)
        arrays.append(np.asarray(array))
    return arrays
