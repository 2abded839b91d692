"""Sample calls of every operation of the catalogue, to fill the kernel cache.

An elementwise operation gets operands from its domains and is called in every way that users are
likely to meet and that has a kernel of its own: an operand may be a number, some operands may need
no gradient, and the cotangent of a large result may be one number spread out. Any other operation
is called at its samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.base.tuning import FEW_ELEMENTS
from numgrad.graph.backward.backward import grad
from numgrad.graph.tensor import Tensor, wrap
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.core.primitive import CATALOGUE, Primitive
from numgrad.ops.core.registry import FUNCTIONS

__all__ = ["SampleCall", "sample_calls"]

FEW = 4
# What an operation raises for a dtype that it does not compute with (NotImplementedError is a
# RuntimeError), and what stands in for the samples of one without may raise.
REFUSALS = (RuntimeError, TypeError, ValueError, IndexError)


@dataclass(frozen=True)
class SampleCall:
    """A function and its arguments.

    Attributes
    ----------
    function : callable
        What is called.
    operands : list
        Its positional arguments: tensors, and numbers where the operation takes them.
    keywords : dict
        Its other arguments.
    spread : bool
        Whether the cotangents are one number spread over the shape of the result, as those of
        ``result.sum()`` are.
    """

    function: Callable[..., Any]
    operands: Sequence[Any]
    keywords: dict[str, Any] = field(default_factory=dict)
    spread: bool = False

    def run(self) -> None:
        """Make the call, and run back from its results to the operands that require grad."""
        result = self.function(*self.operands, **self.keywords)
        results = [result] if isinstance(result, Tensor) else list(result)
        roots = [y for y in results if isinstance(y, Tensor) and y.requires_grad]
        leaves = [x for x in self.operands if isinstance(x, Tensor) and x.requires_grad]
        if roots and leaves:
            grad(roots, leaves, [self._cotangent(root) for root in roots], allow_unused=True)

    def _cotangent(self, root: Tensor) -> Tensor:
        array = root._array
        if self.spread:
            return wrap(np.broadcast_to(np.ones((), array.dtype), array.shape))
        return wrap(np.ones(array.shape, array.dtype))


def sample_calls(name: str, dtype: dtypes.dtype) -> Iterator[SampleCall]:
    """Yield calls of an operation on tensors of a dtype; none if it does not take that dtype.

    Parameters
    ----------
    name : str
        Its name in the catalogue.
    dtype : dtype
        The dtype of its operands. Gradients are asked for where it is floating point or complex.

    Examples
    --------
    >>> from numgrad.base.dtypes import float32
    >>> [len(call.operands) for call in sample_calls("mul", float32)]
    [2, 2, 2, 2, 2, 2, 2, 2, 2, 2]
    """
    primitive = CATALOGUE[name]
    if isinstance(primitive, ElementwisePrimitive):
        if dtype.numpy.kind in primitive.accepts:
            yield from _elementwise_calls(primitive, dtype.numpy)
    else:
        yield from _array_calls(primitive, dtype.numpy)


# --- elementwise operations ----------------------------------------------------------------------


def _elementwise_calls(
    primitive: ElementwisePrimitive, dtype: np.dtype[Any]
) -> Iterator[SampleCall]:
    tensors = [p for p in range(primitive.tensor_count) if not primitive.domains[p].is_number]
    numeric = [p for p in tensors if p not in primitive.masks]
    # All of them tensors, then each of them a number among tensors.
    for number in [None, *(numeric if len(numeric) > 1 else [])]:
        ruled = [p for p in numeric if p != number and primitive.rules[p] is not None]
        if dtype.kind not in "fc":
            ruled = []
        choices = (
            [ruled] if len(ruled) < 2 or number is not None else [ruled, *([p] for p in ruled)]
        )
        for leaves in choices:
            yield SampleCall(primitive, _operands(primitive, dtype, FEW, number, leaves))
            if leaves:  # small cotangents are written out, and meet no other kernel when spread
                large = _operands(primitive, dtype, FEW_ELEMENTS + 1, number, leaves)
                yield SampleCall(primitive, large, spread=True)


def _operands(
    primitive: ElementwisePrimitive,
    dtype: np.dtype[Any],
    count: int,
    number: int | None,
    leaves: Sequence[int],
) -> list[Any]:
    """Return operands of `count` elements, one of them a number; `leaves` require grad."""
    random = np.random.default_rng(0)
    operands: list[Any] = []
    first: np.ndarray[Any, Any] | None = None
    for position, domain in enumerate(primitive.domains):
        if domain.is_number:
            operands.append(domain.intervals[0][0])
            continue
        is_complex = dtype.kind == "c" and not domain.is_mask
        values = domain.draw((count,), random, is_complex=is_complex)
        if domain.is_mask:
            operands.append(wrap(values > values.mean()))
            continue
        if domain.apart and first is not None:
            values = first + domain.apart + np.abs(values)
        if first is None:
            first = values
        if position == number:
            operands.append(values[0].astype(dtype).item())
            continue
        tensor = wrap(values.astype(dtype))
        operands.append(tensor.requires_grad_() if position in leaves else tensor)
    return operands


# --- operations with samples ---------------------------------------------------------------------


def _array_calls(primitive: Primitive, dtype: np.dtype[Any]) -> Iterator[SampleCall]:
    make = _maker(dtype)
    samples = primitive.samples
    if not samples:  # without a derivative it needs none; a small matrix will do
        function = FUNCTIONS[primitive.name]
        yield SampleCall(function, [make(2, 3) for _ in primitive.inputs])
        return
    for sample in samples:
        yield SampleCall(*sample(make))


def _maker(dtype: np.dtype[Any]) -> Callable[..., Tensor]:
    """Return what samples make their tensors with."""
    random = np.random.default_rng(0)

    def make(*shape: int, low: float = -3, high: float = 3, distinct: bool = False) -> Tensor:
        count = math.prod(shape)
        if distinct:
            steps = (random.permutation(count) + 0.5) / max(count, 1)
            values = low + (high - low) * steps
        else:
            values = random.uniform(low, high, count)
        if dtype.kind == "c":
            values = values + 1j * random.uniform(low, high, count)
        tensor = wrap(values.astype(dtype).reshape(shape))
        return tensor.requires_grad_() if dtype.kind in "fc" else tensor

    return make
