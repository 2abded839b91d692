"""Draw random numbers: arrays of the distributions, and the node of what was drawn."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from numgrad.base import dtypes
from numgrad.base.halves import HALF, WIDE, narrowed
from numgrad.graph.accumulate import gradient_edge
from numgrad.graph.modes import modes
from numgrad.graph.node import Node
from numgrad.graph.recorder import place_of
from numgrad.graph.tensor import Tensor, wrap
from numgrad.kernels.move.memory_order import empty_like
from numgrad.ops.arguments.factories import Array
from numgrad.ops.core.nodes import make_node_class

__all__ = [
    "check_integer_range",
    "check_probability",
    "draw_bernoulli",
    "draw_integers",
    "draw_normal",
    "draw_uniform",
    "random_node",
]


class RandomNode(Node):
    """The node of an operation that draws numbers: nothing of the gradient goes on."""

    __slots__ = ("metas",)

    like_gradient: ClassVar[bool]  # whether the zeros lie in memory as it does
    metas: tuple[tuple[tuple[int, ...], Any], ...]  # (shape, dtype) of each input

    def run_arrays(self, gradients: Any) -> tuple[list[Any], list[bool]]:
        """Return zeros for the inputs."""
        zeros = [
            None
            if target is None
            else np.zeros(shape, dtype)
            if not self.like_gradient
            else _zeros_like(gradients[0], shape, dtype)
            for target, (shape, dtype) in zip(self.targets, self.metas, strict=True)
        ]
        return zeros, [True] * len(zeros)

    def run_tensors(self, gradients: Any) -> list[Tensor | None]:
        """Return zeros for the inputs."""
        places = [None if g is None else place_of(g._array) for g in gradients]
        return [None if array is None else wrap(array) for array in self.run_arrays(places)[0]]


def _zeros_like(gradient: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    if gradient is None or gradient.shape != shape:
        return np.zeros(shape, dtype)
    zeros = empty_like(gradient, dtype)
    zeros[...] = 0
    return zeros


_node_classes: dict[str, Any] = {}


def random_node(name: str, array: Array, *inputs: Tensor) -> Tensor:
    """Return drawn numbers as a tensor, with a node if one of `inputs` requires grad."""
    result = wrap(array)
    if modes.grad and array.dtype.kind in "fc" and any(t.requires_grad for t in inputs):
        if name not in _node_classes:
            like_gradient = name.startswith("Bernoulli")
            _node_classes[name] = make_node_class(name, RandomNode, like_gradient=like_gradient)
        node = _node_classes[name](tuple(gradient_edge(tensor) for tensor in inputs))
        node.metas = tuple((tensor._array.shape, tensor._array.dtype) for tensor in inputs)
        result._edge = (node, 0)
    return result


def draw_uniform(generator: np.random.Generator, shape: Any, dtype: dtypes.dtype) -> Array:
    """Return numbers from [0, 1); for complex dtypes, both parts are."""
    if dtype.category < dtypes.FLOATING:
        raise NotImplementedError(
            f"\"check_uniform_bounds\" not implemented for '{dtype.scalar_name}'"
        )
    if dtype.numpy == HALF:  # rounded to the nearest, the greatest would be 1
        steps = _draw_real(generator.random, shape, dtypes.float32) * 2048
        return narrowed(np.asarray(np.floor(steps) / 2048))
    return _draw_real(generator.random, shape, dtype)


def draw_normal(generator: np.random.Generator, shape: Any, dtype: dtypes.dtype) -> Array:
    """Return normally distributed numbers of variance 1 (half of it in each part if complex)."""
    if dtype.category < dtypes.FLOATING:
        raise NotImplementedError(
            f"\"normal_kernel_cpu\" not implemented for '{dtype.scalar_name}'"
        )
    array = _draw_real(generator.standard_normal, shape, dtype)
    if dtype.is_complex:
        array *= np.sqrt(0.5)
    return array


def _draw_real(draw: Any, shape: Any, dtype: dtypes.dtype) -> Array:
    """Draw in the dtype itself: float32 numbers are not rounded from float64 ones."""
    if dtype.numpy == HALF:
        return narrowed(np.asarray(draw(shape, WIDE)))
    if not dtype.is_complex:
        return np.asarray(draw(shape, dtype.numpy))
    pairs: Array = np.asarray(draw((*shape, 2), dtype.to_real().numpy))
    return pairs.view(dtype.numpy)[..., 0]


def check_integer_range(low: int, high: int, dtype: dtypes.dtype) -> None:
    """Raise unless there are integers in [low, high) and `dtype` can hold them."""
    if low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    if dtype.is_complex:
        raise RuntimeError(
            "check_random_bounds handles only integral, floating-point and boolean types"
        )
    if dtype.is_floating_point:
        info = np.finfo(dtype.numpy)
        least, most = -float(info.max), float(info.max)
    elif dtype.category == dtypes.BOOL:
        least, most = 0, 1
    else:
        limits = np.iinfo(dtype.numpy)
        least, most = int(limits.min), int(limits.max)
    for name, value in (("from", low), ("to - 1", high - 1)):
        if not least <= value <= most:
            raise RuntimeError(f"{name} is out of bounds for {dtype.cpp_name}")


def draw_integers(
    generator: np.random.Generator, shape: Any, low: int, high: int, dtype: dtypes.dtype
) -> Array:
    """Return integers from [low, high) in any dtype but a complex one."""
    check_integer_range(low, high, dtype)
    kind: Any = dtype.numpy
    if dtype.category != dtypes.INTEGER:
        kind = np.dtype(np.int64)
    return np.asarray(generator.integers(low, high, shape, kind)).astype(dtype.numpy, copy=False)


def check_probability(p: float) -> float:
    """Return a probability; raise if it is none."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    return p


def draw_bernoulli(
    generator: np.random.Generator, shape: Any, p: Any, dtype: dtypes.dtype
) -> Array:
    """Return ones with probability `p`, a number or an array of `shape`, and zeros."""
    if isinstance(p, np.ndarray):
        if p.dtype.kind != "f":
            raise NotImplementedError(
                '"bernoulli_tensor_cpu_p_" not implemented for '
                f"'{dtypes.of_numpy(p.dtype).scalar_name}'"
            )
        if not ((p >= 0) & (p <= 1)).all():
            raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
    return np.asarray(generator.random(shape) < p).astype(dtype.numpy, "C", copy=False)
