"""Calls of every operation of the catalogue, with a batch of examples for each operand."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import numgrad as ng
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.registry import FUNCTIONS

EXAMPLES = 3


@dataclass
class BatchedCall:
    """A function of tensors, and a batch of arguments for it."""

    function: Callable[..., Any]
    batches: list[np.ndarray]

    def loss(self, *tensors: ng.Tensor) -> ng.Tensor:
        """Return a number that depends on all elements of all results."""
        total = ng.zeros((), dtype=ng.float64)
        for number, result in enumerate(self.results(*tensors)):
            if result.dtype.is_complex:
                result = ng.view_as_real(result.resolve_conj())
            if result.dtype.is_floating_point:
                total = total + (result * result * 0.3 + result).mul(_weights(result, number)).sum()
        return total

    def slope(self, *tensors: ng.Tensor) -> ng.Tensor:
        """Return a number that depends on all elements of the gradients of the loss."""
        positions = self.differentiable()
        total = ng.zeros((), dtype=ng.float64)
        for gradient in ng.func.grad(self.loss, positions)(*tensors):
            if gradient.dtype.is_complex:
                gradient = ng.view_as_real(gradient)
            total = total + gradient.mul(_weights(gradient, 0)).sum()
        return total

    def differentiable(self) -> tuple[int, ...]:
        """Return which arguments have a derivative."""
        return tuple(i for i, batch in enumerate(self.batches) if batch.dtype.kind in "fc")

    def results(self, *tensors: ng.Tensor) -> list[ng.Tensor]:
        """Return the results that are tensors."""
        found = self.function(*tensors)
        if isinstance(found, ng.Tensor):
            return [found]
        return [each for each in found if isinstance(each, ng.Tensor)]

    def choices(self) -> list[tuple[int | None, ...]]:
        """Return the `in_dims` to try: all arguments are a batch, and each of several alone."""
        count = len(self.batches)
        found: list[tuple[int | None, ...]] = [(0,) * count]
        if count > 1:
            found += [tuple(0 if i == j else None for j in range(count)) for i in range(count)]
        return found

    def arguments(self, in_dims: Sequence[int | None]) -> list[ng.Tensor]:
        """Return the arguments, those that are no batch with their first example."""
        return [
            ng.from_numpy(np.array(batch if dim == 0 else batch[0]))
            for batch, dim in zip(self.batches, in_dims, strict=True)
        ]

    def each(self, in_dims: Sequence[int | None]) -> Iterator[list[ng.Tensor]]:
        """Yield the arguments of each example."""
        for number in range(EXAMPLES):
            yield [
                ng.from_numpy(np.array(batch[number if dim == 0 else 0]))
                for batch, dim in zip(self.batches, in_dims, strict=True)
            ]


def _weights(tensor: ng.Tensor, number: int) -> ng.Tensor:
    """Return a constant of a tensor's shape, of different numbers."""
    weights = 1 + 0.1 * np.arange(tensor.numel()) + number
    return ng.from_numpy(weights.reshape(tensor.shape))


def calls_of(primitive: Primitive) -> list[BatchedCall]:
    """Return calls of an operation of the catalogue."""
    if isinstance(primitive, ElementwisePrimitive):
        return list(_elementwise_calls(primitive))
    samples = primitive.samples
    if not samples:
        function = FUNCTIONS[primitive.name]
        samples = (lambda make: (function, [make(2, 3)], {}), lambda make: (function, [make()], {}))
    return [_sampled(sample) for sample in samples]


def _sampled(sample: Callable[..., Any]) -> BatchedCall:
    random = np.random.default_rng(0)

    def make(*shape: int, low: float = -3, high: float = 3, distinct: bool = False) -> Any:
        count = math.prod(shape)
        values = random.uniform(low, high, count)
        if distinct:
            values = low + (high - low) * (random.permutation(count) + 0.5) / max(count, 1)
        return ng.from_numpy(values.reshape(shape))

    found = [sample(make) for _ in range(EXAMPLES)]
    function, _, keywords = found[0]
    columns = zip(*[tensors for _, tensors, _ in found], strict=True)
    batches = [np.stack([tensor.numpy() for tensor in column]) for column in columns]
    return BatchedCall(lambda *tensors: function(*tensors, **keywords), batches)


def _elementwise_calls(primitive: ElementwisePrimitive) -> Iterator[BatchedCall]:
    random = np.random.default_rng(1)
    kind = next(kind for kind in "fciub" if kind in primitive.accepts)
    for shapes in (((2, 3), (3,), (2, 1)), ((), (2,), ()), ((3,), (2, 3), (1,))):
        batches, numbers = [], {}
        tensors = []
        for position, domain in enumerate(primitive.domains):
            if domain.is_number:
                numbers[position] = domain.intervals[0][0]
                continue
            shape = (EXAMPLES, *shapes[len(tensors)])
            values = domain.draw(shape, random, is_complex=kind == "c")
            if domain.apart and batches:
                size = max(np.abs(batch).max() for batch in batches)
                values = np.where(values > 0, 1, -1) * (size + domain.apart + np.abs(values))
            if domain.is_mask:
                values = values > values.mean()
            elif kind == "b":
                values = values > 0
            elif kind not in "fc":
                values = np.abs(values).astype(np.int64)
            tensors.append(position)
            batches.append(np.asarray(values))

        def function(*given: ng.Tensor, tensors: Any = tensors, numbers: Any = numbers) -> Any:
            operands = {**numbers, **dict(zip(tensors, given, strict=True))}
            return primitive(*[operands[position] for position in sorted(operands)])

        yield BatchedCall(function, batches)
