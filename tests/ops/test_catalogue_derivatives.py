"""Every differentiable operation of the catalogue against finite differences, to second order.

Nothing here names an operation: whatever enters the catalogue is tested.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad.autograd import forward_ad, grad, gradcheck, gradgradcheck
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.core.primitive import Primitive
from tests.cases import examples
from tests.ops.catalogue_strategies import (
    Operands,
    array_primitives,
    as_tensors,
    elementwise_primitives,
    operands_of,
)

STEP = 1e-6
ELEMENTWISE = elementwise_primitives()
ARRAY = array_primitives()
SAMPLES = [
    pytest.param(primitive, sample, id=f"{primitive.name}-{number}")
    for primitive in ARRAY
    for number, sample in enumerate(primitive.samples)
]

all_elementwise = pytest.mark.parametrize(
    "primitive", ELEMENTWISE, ids=[primitive.name for primitive in ELEMENTWISE]
)

drawn = settings(max_examples=examples(100, in_sample=5))


def jvp(primitive: ElementwisePrimitive, values: list[Any], tangents: list[Any]) -> Any:
    """Return the output and its derivative in the direction of tangents; None is a constant's."""
    moving = [position for position, tangent in enumerate(tangents) if tangent is not None]

    def function(*arguments: ng.Tensor) -> ng.Tensor:
        operands = dict(enumerate(values)) | dict(zip(moving, arguments, strict=True))
        return primitive(*operands.values())

    return ng.func.jvp(
        function, tuple(values[p] for p in moving), tuple(tangents[p] for p in moving)
    )


def differentiable(primitive: ElementwisePrimitive, operands: Operands) -> list[int]:
    """Return the positions of operands that have a rule and are tensors."""
    return [
        position
        for position, value in enumerate(operands.values)
        if primitive.rules[position] is not None and isinstance(value, np.ndarray)
    ]


def evaluate(primitive: ElementwisePrimitive, values: list[Any]) -> np.ndarray:
    result: np.ndarray = primitive(*as_tensors(values, requires_grad=False)).numpy()
    return result


def summed_to(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sum broadcast dimensions away."""
    extra = array.ndim - len(shape)
    array = array.sum(axis=tuple(range(extra))) if extra else array
    axes = tuple(i for i, length in enumerate(shape) if length == 1 and array.shape[i] != 1)
    return np.asarray(array.sum(axis=axes, keepdims=True) if axes else array)


def moved(values: list[Any], position: int, step: Any) -> list[Any]:
    """Return the operands with one of them displaced."""
    return [np.asarray(v + step) if i == position else v for i, v in enumerate(values)]


@all_elementwise
@drawn
@given(data=st.data())
def test_first_derivative_is_the_central_difference(primitive, data):
    operands = data.draw(operands_of(primitive))
    cotangent = np.random.default_rng(0).standard_normal(operands.shape)
    tensors = as_tensors(operands.values)
    output = primitive(*tensors)
    positions = differentiable(primitive, operands)
    gradients = grad(output, [tensors[p] for p in positions], ng.from_numpy(cotangent))
    for position, gradient in zip(positions, gradients, strict=True):
        upper = evaluate(primitive, moved(operands.values, position, STEP))
        lower = evaluate(primitive, moved(operands.values, position, -STEP))
        slope = (upper - lower) / (2 * STEP)
        expected = summed_to(cotangent * slope, operands.values[position].shape)
        np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-5, atol=1e-6)


@all_elementwise
@drawn
@given(data=st.data())
def test_second_derivative_is_the_central_difference_of_the_first(primitive, data):
    operands = data.draw(operands_of(primitive))
    random = np.random.default_rng(1)
    cotangent = random.standard_normal(operands.shape)
    positions = differentiable(primitive, operands)
    directions = {p: random.standard_normal(operands.values[p].shape) for p in positions}

    def first(values: list[Any]) -> list[np.ndarray]:
        tensors = as_tensors(values)
        output = primitive(*tensors)
        gradients = grad(output, [tensors[p] for p in positions], ng.from_numpy(cotangent))
        return [gradient.numpy() for gradient in gradients]

    tensors = as_tensors(operands.values)
    inputs = [tensors[p] for p in positions]
    gradients = grad(primitive(*tensors), inputs, ng.from_numpy(cotangent), create_graph=True)
    # The derivative of <gradients, directions> is the Hessian times the directions.
    product = sum(
        (g * ng.from_numpy(directions[p])).sum() for g, p in zip(gradients, positions, strict=True)
    )
    if product.requires_grad:
        seconds = grad(product, inputs, allow_unused=True, materialize_grads=True)
    else:  # a derivative that is constant, such as that of a sum
        seconds = [ng.zeros_like(tensor) for tensor in inputs]

    def displaced(sign: int) -> list[np.ndarray]:
        values = list(operands.values)
        for position in positions:
            values[position] = np.asarray(values[position] + sign * STEP * directions[position])
        return first(values)

    for second, upper, lower in zip(seconds, displaced(1), displaced(-1), strict=True):
        np.testing.assert_allclose(
            second.numpy(), (upper - lower) / (2 * STEP), rtol=1e-4, atol=1e-5
        )


@pytest.mark.sampled(0.11)
@all_elementwise
@drawn
@given(data=st.data())
def test_forward_mode_is_the_transpose_of_backward_mode(primitive, data):
    operands = data.draw(operands_of(primitive))
    random = np.random.default_rng(2)
    cotangent = random.standard_normal(operands.shape)
    positions = differentiable(primitive, operands)
    tangents: list[Any] = [None] * len(operands.values)
    for position in positions:
        tangents[position] = ng.from_numpy(random.standard_normal(operands.values[position].shape))
    output, tangent = jvp(primitive, as_tensors(operands.values, requires_grad=False), tangents)
    tensors = as_tensors(operands.values)
    gradients = grad(primitive(*tensors), [tensors[p] for p in positions], ng.from_numpy(cotangent))
    forward = (tangent.numpy() * cotangent).sum()
    backward = sum(
        (g.numpy() * tangents[p].numpy()).sum() for g, p in zip(gradients, positions, strict=True)
    )
    np.testing.assert_allclose(output.numpy(), evaluate(primitive, operands.values))
    np.testing.assert_allclose(forward, backward, rtol=1e-9, atol=1e-9)


@pytest.mark.sampled(0.054)
@all_elementwise
@drawn
@given(data=st.data())
def test_float32_agrees_with_float64(primitive, data):
    """Values and gradients in float32 are those in float64 to 32 roundings of their scale."""
    operands = data.draw(operands_of(primitive))
    positions = differentiable(primitive, operands)
    results = {}
    for dtype in (np.float32, np.float64):
        # float64 starts from the float32 numbers, so that only the computation differs.
        values = [
            value.astype(np.float32).astype(dtype)
            if isinstance(value, np.ndarray) and value.dtype.kind == "f"
            else value
            for value in operands.values
        ]
        tensors = as_tensors(values)
        output = primitive(*tensors)
        assert output.numpy(force=True).dtype == dtype
        gradients = grad(output, [tensors[p] for p in positions], ng.ones_like(output))
        results[dtype] = [output.numpy(force=True), *(gradient.numpy() for gradient in gradients)]
    tolerance = 32 * np.finfo(np.float32).eps
    for single, double in zip(results[np.float32], results[np.float64], strict=True):
        scale = max(1.0, float(np.abs(double).max(initial=0.0)))
        np.testing.assert_allclose(single, double, rtol=tolerance, atol=tolerance * scale)


def make_samples(seed: int = 0):
    """Return what samples make their tensors with."""
    random = np.random.default_rng(seed)

    def make(*shape: int, low: float = -3, high: float = 3, distinct: bool = False) -> Any:
        if distinct:
            count = int(np.prod(shape, dtype=int))
            values = low + (high - low) * (random.permutation(count) + 0.5) / max(count, 1)
            array = values.reshape(shape)
        else:
            array = np.asarray(random.uniform(low, high, shape))
        return ng.from_numpy(array).requires_grad_()

    return make


@pytest.mark.parametrize(("primitive", "sample"), SAMPLES)
def test_array_operation_passes_gradcheck_and_gradgradcheck(primitive: Primitive, sample):
    function, tensors, keywords = sample(make_samples())

    def bound(*arguments: Any) -> Any:
        return function(*arguments, **keywords)

    results = bound(*tensors)
    for result in results if isinstance(results, (tuple, list)) else (results,):
        if isinstance(result, ng.Tensor):  # a number of NumPy's could not be written to
            assert type(result._array) is np.ndarray
    assert gradcheck(bound, tensors)
    assert gradgradcheck(bound, tensors, fast_mode=True)


@pytest.mark.sampled(0.036, by="primitive")
@pytest.mark.parametrize(("primitive", "sample"), SAMPLES)
def test_array_operation_has_forward_mode(primitive: Primitive, sample):
    function, tensors, keywords = sample(make_samples())
    random = np.random.default_rng(3)
    tangents = [ng.from_numpy(np.asarray(random.standard_normal(t.shape))) for t in tensors]

    def bound(*arguments: Any) -> Any:
        result = function(*arguments, **keywords)
        parts = result if isinstance(result, tuple) else (result,)
        return tuple(part for part in parts if part.is_floating_point() or part.is_complex())

    _, derivatives = ng.func.jvp(bound, tuple(tensors), tuple(tangents))
    steps = [t.detach() for t in tensors]
    upper = bound(*[s + STEP * d for s, d in zip(steps, tangents, strict=True)])
    lower = bound(*[s - STEP * d for s, d in zip(steps, tangents, strict=True)])
    for derivative, above, below in zip(derivatives, upper, lower, strict=True):
        slope = (above.numpy() - below.numpy()) / (2 * STEP)
        np.testing.assert_allclose(derivative.numpy(force=True), slope, rtol=1e-5, atol=1e-6)


@pytest.mark.sampled(0.09)
@all_elementwise
@drawn
@given(data=st.data())
def test_batched_gradients_are_those_of_each_cotangent(primitive, data):
    operands = data.draw(operands_of(primitive))
    tensors = as_tensors(operands.values)
    output = primitive(*tensors)
    assert_batched_alike(output, [tensors[p] for p in differentiable(primitive, operands)])


@pytest.mark.sampled(0.036, by="primitive")
@pytest.mark.parametrize(("primitive", "sample"), SAMPLES)
def test_batched_gradients_of_a_sample_are_those_of_each_cotangent(primitive, sample):
    function, tensors, keywords = sample(make_samples())
    results = function(*tensors, **keywords)
    for output in results if isinstance(results, (tuple, list)) else (results,):
        if isinstance(output, ng.Tensor) and output.requires_grad:
            assert_batched_alike(output, tensors)


def assert_batched_alike(output: ng.Tensor, tensors: list[ng.Tensor]) -> None:
    """Assert that three cotangents at once give what each of them gives."""
    drawn = np.random.default_rng(1).standard_normal((3, *output.shape))
    cotangents = ng.from_numpy(drawn.astype(output.numpy(force=True).dtype))
    options = {"retain_graph": True, "allow_unused": True}
    batched = grad(output, tensors, cotangents, is_grads_batched=True, **options)
    rows = [grad(output, tensors, cotangent, **options) for cotangent in cotangents]
    for found, *alone in zip(batched, *rows, strict=True):
        if found is None:
            assert alone == [None] * 3
        else:
            expected = np.stack([gradient.numpy() for gradient in alone])
            np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.sampled(0.09)
@all_elementwise
@drawn
@given(data=st.data())
def test_dual_tensors_have_the_tangents_of_forward_mode(primitive, data):
    operands = data.draw(operands_of(primitive))
    values = as_tensors(operands.values, requires_grad=False)
    moving = differentiable(primitive, operands)
    random = np.random.default_rng(2)
    tangents = {p: ng.from_numpy(random.standard_normal(values[p].shape)) for p in moving}
    _, expected = jvp(primitive, values, [tangents.get(p) for p in range(len(values))])
    with forward_ad.dual_level(), ng.no_grad():
        duals = [
            forward_ad.make_dual(value, tangents[p]) if p in tangents else value
            for p, value in enumerate(values)
        ]
        found = forward_ad.unpack_dual(primitive(*duals)).tangent
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-9, atol=1e-12)
