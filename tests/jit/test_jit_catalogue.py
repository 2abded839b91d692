"""Every operation of the catalogue under jit: value, first and second derivative as eagerly.

Nothing here names an operation: whatever enters the catalogue is tested.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.autograd import grad
from numgrad.graph.recorder import TraceError
from numgrad.graph.tensor import Tensor
from numgrad.jit.front.decorator import jit
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from tests.jit.run_graph import run_traced
from tests.ops.catalogue_strategies import (
    array_primitives,
    as_tensors,
    elementwise_primitives,
)
from tests.ops.test_catalogue_derivatives import make_samples
from tests.rows import names_of

ELEMENTWISE = elementwise_primitives()
SAMPLES = [
    pytest.param(primitive, sample, id=f"{primitive.name}-{number}")
    for primitive in array_primitives()
    for number, sample in enumerate(primitive.samples)
]
# While a function is traced there are no values.
SHAPE_DEPENDS_ON_VALUES = {"masked_select"} | names_of("SHAPE_DEPENDS_ON_VALUES")


def with_derivatives(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that returns values, first and second derivatives of another one."""

    def derived(*tensors: Any) -> list[Any]:
        inputs = [t for t in tensors if isinstance(t, Tensor) and t.requires_grad]
        result = function(*tensors)
        values = list(result) if isinstance(result, (tuple, list)) else [result]
        results = list(values)
        for order in (1, 2):
            moving = [v for v in values if isinstance(v, Tensor) and v.requires_grad]
            if not moving or not inputs:
                break
            cotangents = [
                (ng.arange(v.numel(), dtype=ng.float64).reshape(v.shape) * 0.3 + order).to(v.dtype)
                for v in moving
            ]
            found = grad(moving, inputs, cotangents, create_graph=order == 1, allow_unused=True)
            values = [g for g in found if g is not None]
            results += values
        return results

    return derived


def assert_same(compiled: list[Any], eager: list[Any]) -> None:
    assert len(compiled) == len(eager)
    for ours, expected in zip(compiled, eager, strict=True):
        if not isinstance(expected, Tensor):
            assert ours == expected
            continue
        assert ours.dtype is expected.dtype
        assert ours.shape == expected.shape
        assert ours.requires_grad == expected.requires_grad
        np.testing.assert_allclose(
            ours.numpy(force=True), expected.numpy(force=True), rtol=1e-13, atol=1e-14
        )


def detached(values: list[Any]) -> list[Any]:
    return [value.detach() if isinstance(value, Tensor) else value for value in values]


def elementwise_case(primitive: ElementwisePrimitive) -> tuple[Callable[..., Any], list[Any]]:
    """Return a function that applies an operation to tensors and numbers, and the tensors."""
    random = np.random.default_rng(3)
    values: list[Any] = []
    for domain, shape in zip(primitive.domains, cycle([(2, 3), (3,), (2, 1)]), strict=False):
        if domain.is_number:
            values.append(domain.intervals[0][0])
        elif domain.is_mask:
            values.append(random.random(shape) < 0.5)
        else:
            values.append(domain.draw(shape, random))
    tensors = as_tensors(values)
    numbers = {k: v for k, v in enumerate(tensors) if not isinstance(v, Tensor)}

    def function(*given: Any) -> Any:
        rest = iter(given)
        return primitive(*[numbers[k] if k in numbers else next(rest) for k in range(len(tensors))])

    return with_derivatives(function), [v for v in tensors if isinstance(v, Tensor)]


def sample_case(sample: Any) -> tuple[Callable[..., Any], list[Any]]:
    """Return a function that applies an operation as a sample of it does, and the tensors."""
    function, tensors, keywords = sample(make_samples())
    return with_derivatives(lambda *given: function(*given, **keywords)), tensors


@pytest.mark.sampled(0.12)
@pytest.mark.parametrize("primitive", ELEMENTWISE, ids=[p.name for p in ELEMENTWISE])
def test_traces_of_elementwise_operations(primitive: ElementwisePrimitive) -> None:
    derived, tensors = elementwise_case(primitive)
    assert_same(run_traced(derived, *tensors), detached(derived(*tensors)))


@pytest.mark.sampled(0.11, by="primitive")
@pytest.mark.parametrize(("primitive", "sample"), SAMPLES)
def test_traces_of_other_operations(primitive: Any, sample: Any) -> None:
    derived, tensors = sample_case(sample)
    if primitive.name in SHAPE_DEPENDS_ON_VALUES:
        with pytest.raises(TraceError, match=f"shape of what {primitive.name} returns depends on"):
            run_traced(derived, *tensors)
        return
    assert_same(run_traced(derived, *tensors), detached(derived(*tensors)))


@pytest.mark.sampled(0.022)
@pytest.mark.parametrize("primitive", ELEMENTWISE, ids=[p.name for p in ELEMENTWISE])
def test_elementwise_operations(primitive: ElementwisePrimitive) -> None:
    """Compiled, which takes a hundred times as long as to trace."""
    derived, tensors = elementwise_case(primitive)
    assert_same(jit(derived)(*tensors), derived(*tensors))


@pytest.mark.sampled(0.012)
@pytest.mark.parametrize(
    ("primitive", "sample"), [c for c in SAMPLES if c.values[0].name not in SHAPE_DEPENDS_ON_VALUES]
)
def test_other_operations(primitive: Any, sample: Any) -> None:
    derived, tensors = sample_case(sample)
    assert_same(jit(derived)(*tensors), derived(*tensors))


@pytest.mark.sampled(0.3)
@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("other", [-1.5, 0, 3, 0.25, True])
@pytest.mark.parametrize("number", [2, 2.5, -3, False])
def test_numbers_chosen_by_a_mask_are_of_their_own_dtype(number: Any, other: Any) -> None:
    def chosen(mask: ng.Tensor) -> ng.Tensor:
        return ng.where(mask > 0.3, number, other)

    for x in (ng.tensor([0.1, 0.625]), ng.tensor(0.625), ng.tensor(0.1)):
        eager, compiled = chosen(x), ng.jit(chosen)(x)
        assert eager.dtype is compiled.dtype
        assert eager.tolist() == compiled.tolist()
