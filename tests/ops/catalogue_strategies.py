"""Operands for the tests that come from the catalogue: shapes, layouts and values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import numgrad as ng
from numgrad.ops.core.domains import Domain
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.core.primitive import CATALOGUE, Primitive


def elementwise_primitives() -> list[ElementwisePrimitive]:
    """Return the elementwise primitives with a derivative; one without a domain is an error."""
    found = []
    for primitive in CATALOGUE.values():
        if not isinstance(primitive, ElementwisePrimitive):
            continue
        if len(primitive.domains) != len(primitive.inputs):
            raise RuntimeError(f"{primitive.name}: an operand has no domain to draw from")
        if any(rule is not None for rule in primitive.rules) and "f" in primitive.accepts:
            found.append(primitive)
    return found


def array_primitives() -> list[Primitive]:
    """Return the other primitives with a derivative; one without samples is an error."""
    found = []
    for primitive in CATALOGUE.values():
        if isinstance(primitive, ElementwisePrimitive) or all(
            rule is None for rule in primitive.rules
        ):
            continue
        if not primitive.samples:
            raise RuntimeError(f"{primitive.name}: no samples to differentiate it at")
        found.append(primitive)
    return found


@dataclass
class Operands:
    """Arrays (or numbers) for the inputs of an elementwise primitive, in float64."""

    values: list[Any]
    shape: tuple[int, ...]

    def __repr__(self) -> str:
        described = [
            f"array(shape={v.shape}, strides={v.strides})" if isinstance(v, np.ndarray) else repr(v)
            for v in self.values
        ]
        return f"Operands({', '.join(described)})"


_SHAPES = [(), (1,), (5,), (0,), (3, 4), (2, 1, 3), (1, 1), (2, 0, 3)]


@st.composite
def operands_of(draw: st.DrawFn, primitive: ElementwisePrimitive) -> Operands:
    """Draw operands: broadcasting shapes, any layout, values from the primitive's domains."""
    shape = draw(st.sampled_from(_SHAPES))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values: list[Any] = []
    first: np.ndarray | None = None
    for position, domain in enumerate(primitive.domains):
        if domain.is_number:
            values.append(domain.intervals[0][0])
            continue
        own_shape = shape if position == 0 else draw(_broadcastable(shape))
        if domain.is_mask:
            values.append(random.random(own_shape) < 0.5)
            continue
        if domain.apart and first is not None:
            array = _apart_from(first, own_shape, domain, random)
        else:
            array = domain.draw(own_shape, random)
        if first is None:
            first = array
        values.append(draw(_laid_out(array)))
    result_shape = np.broadcast_shapes(*[np.shape(value) for value in values])
    return Operands(values, result_shape)


def _apart_from(
    first: np.ndarray, shape: tuple[int, ...], domain: Domain, random: np.random.Generator
) -> np.ndarray:
    """Return numbers that stay away from every element of `first` they will meet."""
    if shape == first.shape:
        step = domain.apart + random.random(shape)
        return np.asarray(first + np.where(random.random(shape) < 0.5, step, -step))
    above = (first.max() if first.size else 0.0) + domain.apart + random.random(shape)
    return np.asarray(above)


@st.composite
def _broadcastable(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Draw a shape that broadcasts to `shape`: some lengths 1, some leading dimensions left out."""
    lengths = [1 if length and draw(st.booleans()) else length for length in shape]
    keep = draw(st.integers(0, len(lengths)))
    if any(length == 0 for length in lengths[:keep]):
        keep = 0
    return tuple(lengths[keep:])


@st.composite
def _laid_out(draw: st.DrawFn, array: np.ndarray) -> np.ndarray:
    """Draw a memory layout: contiguous, transposed, every second element, or reversed."""
    layout = draw(st.sampled_from(["contiguous", "transposed", "strided", "reversed"]))
    if layout == "transposed":
        return np.asarray(np.asfortranarray(array))
    if layout == "strided" and array.ndim:
        wide = np.empty((*array.shape[:-1], 2 * array.shape[-1]))
        wide[..., ::2] = array
        return wide[..., ::2]
    if layout == "reversed" and array.ndim:
        return np.ascontiguousarray(array[..., ::-1])[..., ::-1]
    return array


def as_tensors(values: list[Any], *, requires_grad: bool = True) -> list[Any]:
    """Return operands as tensors that share the arrays' memory, numbers and masks as they are."""
    tensors = []
    for value in values:
        if not isinstance(value, np.ndarray):
            tensors.append(value)
            continue
        tensor = ng.from_numpy(value)
        if requires_grad and value.dtype.kind in "fc":
            tensor.requires_grad_()
        tensors.append(tensor)
    return tensors
