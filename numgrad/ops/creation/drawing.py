"""Draw random numbers: arrays of the distributions, and the node of what was drawn."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

import numpy as np

from numgrad.base import dtypes
from numgrad.base.halves import HALF, WIDE, narrowed
from numgrad.graph.backward.accumulate import gradient_edge
from numgrad.graph.modes.grad_modes import no_grad
from numgrad.graph.modes.state import modes
from numgrad.graph.node import Node
from numgrad.graph.recorder import at_hand, is_traced_array, place_of
from numgrad.graph.tensor import Tensor, wrap
from numgrad.kernels.move.bounds import BOUNDS
from numgrad.kernels.move.memory_order import empty_like
from numgrad.ops.arguments.factories import Array
from numgrad.ops.calls.steps import forget_steps
from numgrad.ops.core.nodes import make_node_class
from numgrad.ops.core.places import laid_out
from numgrad.ops.core.registry import FUNCTIONS
from numgrad.ops.core.run_time import at_run_time
from numgrad.ops.creation.generator import drawn
from numgrad.ops.movement.casts import cast
from numgrad.ops.pointwise.arithmetic import sub
from numgrad.ops.pointwise.selection import where

__all__ = [
    "Distribution",
    "check_deviations",
    "check_probability",
    "checked",
    "drawn_bernoulli",
    "exponential",
    "geometric",
    "integers",
    "normal",
    "permutation",
    "random_node",
    "uniform",
]

Size = tuple[int, ...]


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


def random_node(name: str, numbers: Tensor, *inputs: Tensor) -> Tensor:
    """Return drawn numbers, with a node if one of `inputs` requires grad."""
    result, kind = numbers, numbers._array.dtype.kind
    if modes.grad and kind in "fc" and any(t.requires_grad for t in inputs):
        forget_steps()  # none of them makes that node
        result = wrap(numbers._array)
        if name not in _node_classes:
            like_gradient = name.startswith("Bernoulli")
            _node_classes[name] = make_node_class(name, RandomNode, like_gradient=like_gradient)
        node = _node_classes[name](tuple(gradient_edge(tensor) for tensor in inputs))
        node.metas = tuple((tensor._array.shape, tensor._array.dtype) for tensor in inputs)
        result._edge = (node, 0)
    return result


@dataclasses.dataclass(frozen=True)
class Distribution:
    """Numbers to draw, of a kind and in a dtype (a `Draw` of `numgrad.ops.creation.generator`)."""

    kind: str
    dtype: dtypes.dtype
    parameters: tuple[Any, ...] = ()

    def numbers(self, source: np.random.Generator, shape: Size) -> Array:
        """Return an array of them, from NumPy's generator."""
        return _NUMBERS[self.kind](source, shape, self.dtype, *self.parameters)

    def maker(self, generator: Any, shape: Size) -> Callable[[], Array]:
        """Return what draws an array of them each time, from the generator as it is then."""
        kind, method = self.dtype.numpy, _OF_FLOATS.get(self.kind)
        if method is None or kind.kind != "f" or kind == HALF:
            return lambda: self.numbers(generator._numpy, shape)
        draw: Callable[..., Any] = getattr(np.random.Generator, method)
        return lambda: np.asarray(draw(generator._numpy, shape, kind))


@cache
def uniform(dtype: dtypes.dtype) -> Distribution:
    """Return numbers from [0, 1); for complex dtypes, both parts are."""
    if dtype.category < dtypes.FLOATING:
        raise NotImplementedError(
            f"\"check_uniform_bounds\" not implemented for '{dtype.scalar_name}'"
        )
    return Distribution("uniform", dtype)


@cache
def normal(dtype: dtypes.dtype) -> Distribution:
    """Return normally distributed numbers of variance 1 (half of it in each part if complex)."""
    if dtype.category < dtypes.FLOATING:
        raise NotImplementedError(
            f"\"normal_kernel_cpu\" not implemented for '{dtype.scalar_name}'"
        )
    return Distribution("normal", dtype)


def integers(low: int, high: int, dtype: dtypes.dtype) -> Distribution:
    """Return integers from [low, high) in any dtype but a complex one."""
    _check_integer_range(low, high, dtype)
    return Distribution("integers", dtype, (low, high))


def exponential(dtype: dtypes.dtype) -> Distribution:
    """Return exponentially distributed numbers of mean 1."""
    return Distribution("exponential", dtype)


def geometric(p: float) -> Distribution:
    """Return numbers of trials until the first success."""
    return Distribution("geometric", dtypes.int64, (p,))


def permutation(dtype: dtypes.dtype) -> Distribution:
    """Return the integers below the last length in random order, for each of the others anew."""
    return Distribution("permutation", dtype)


def _uniform(source: np.random.Generator, shape: Size, dtype: dtypes.dtype) -> Array:
    if dtype.numpy == HALF:  # rounded to the nearest, the greatest would be 1
        steps = _in_dtype(source.random, shape, dtypes.float32) * 2048
        return narrowed(np.asarray(np.floor(steps) / 2048))
    return _in_dtype(source.random, shape, dtype)


def _normal(source: np.random.Generator, shape: Size, dtype: dtypes.dtype) -> Array:
    array = _in_dtype(source.standard_normal, shape, dtype)
    if dtype.is_complex:
        array *= np.sqrt(0.5)
    return array


def _in_dtype(draw: Any, shape: Size, dtype: dtypes.dtype) -> Array:
    """Draw in the dtype itself: float32 numbers are not rounded from float64 ones."""
    if dtype.numpy == HALF:
        return narrowed(np.asarray(draw(shape, WIDE)))
    if not dtype.is_complex:
        return np.asarray(draw(shape, dtype.numpy))
    pairs: Array = np.asarray(draw((*shape, 2), dtype.to_real().numpy))
    return pairs.view(dtype.numpy)[..., 0]


def _integers(
    source: np.random.Generator, shape: Size, dtype: dtypes.dtype, low: int, high: int
) -> Array:
    kind: Any = dtype.numpy
    if dtype.category != dtypes.INTEGER:
        kind = np.dtype(np.int64)
    return np.asarray(source.integers(low, high, shape, kind)).astype(dtype.numpy, copy=False)


def _exponential(source: np.random.Generator, shape: Size, dtype: dtypes.dtype) -> Array:
    return _in_dtype(source.standard_exponential, shape, dtype)


def _geometric(source: np.random.Generator, shape: Size, dtype: dtypes.dtype, p: float) -> Array:
    return np.asarray(source.geometric(p, shape), np.int64)


def _permutation(source: np.random.Generator, shape: Size, dtype: dtypes.dtype) -> Array:
    *others, n = shape
    if not others:
        return source.permutation(n).astype(dtype.numpy)
    rows = np.empty(shape, np.int64)
    rows[...] = np.arange(n)
    return source.permuted(rows, axis=-1).astype(dtype.numpy)


_NUMBERS: dict[str, Callable[..., Array]] = {
    "uniform": _uniform,
    "normal": _normal,
    "integers": _integers,
    "exponential": _exponential,
    "geometric": _geometric,
    "permutation": _permutation,
}


# What draws them in the dtype itself.
_OF_FLOATS = {"uniform": "random", "normal": "standard_normal"}


def _check_integer_range(low: int, high: int, dtype: dtypes.dtype) -> None:
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


def check_probability(p: float) -> float:
    """Return a probability; raise if it is none."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    return p


@at_run_time
def check_probabilities(faults: Array, size: int) -> Array:
    """Raise if a number is 1, which says that a probability is none."""
    return _checked("check_probabilities", faults)


@at_run_time
def check_deviations(faults: Array, size: int) -> Array:
    """Raise if a number is 1, which says that a standard deviation is none."""
    return _checked("check_deviations", faults)


def _checked(name: str, faults: Array) -> Array:
    if faults.any():
        error, words = BOUNDS[name]
        raise error(words)
    return faults


def checked(tensor: Tensor, is_valid: Tensor, check: Callable[..., Any]) -> Tensor:
    """Return a tensor, all of whose elements are valid: a check raises if not."""
    if not is_traced_array(is_valid._array):
        check(FUNCTIONS["logical_not"](is_valid)._array, size=1)
        return tensor
    faults: Any = cast(is_valid, np.dtype(np.int64))._array
    faults = check(sub(1, wrap(faults))._array, size=1)
    return where(
        FUNCTIONS["eq"](wrap(faults), 0), tensor, math.nan
    )  # so that it does depend on the check


def _is_probability(p: Tensor) -> Tensor:
    lowest, highest = FUNCTIONS["ge"](p, 0), FUNCTIONS["le"](p, 1)
    found: Tensor = FUNCTIONS["logical_and"](lowest, highest)
    return found


def drawn_bernoulli(p: Any, generator: Any, shape: Size, dtype: dtypes.dtype) -> Tensor:
    """Return ones with probability `p`, a number or a tensor, and zeros."""
    beside = []
    if isinstance(p, Tensor):
        if p._array.dtype.kind != "f":
            raise NotImplementedError(
                f"\"bernoulli_tensor_cpu_p_\" not implemented for '{p.dtype.scalar_name}'"
            )
        p = wrap(at_hand(p._array))
        beside.append(p._array)
    with no_grad():
        if isinstance(p, Tensor):
            p = checked(p, _is_probability(p), check_probabilities)
        array = drawn(uniform(dtypes.float64), generator, shape, beside)
        return laid_out(cast(FUNCTIONS["lt"](wrap(array), p), dtype.numpy))
