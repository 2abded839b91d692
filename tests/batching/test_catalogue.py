"""vmap of every operation of the catalogue against a loop over the examples, to second order.

Nothing here names an operation: whatever enters the catalogue is tested.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.batching.rules import LOOPED, RULES, is_derived
from numgrad.batching.taken_apart import INSIDE
from numgrad.func import grad, jvp, vmap
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.core.primitive import CATALOGUE
from tests.batching.batched_calls import BatchedCall, calls_of
from tests.rows import names_of

CALLS = [
    pytest.param(name, number, id=f"{name}-{number}")
    for name, primitive in CATALOGUE.items()
    for number in range(
        3 if isinstance(primitive, ElementwisePrimitive) else len(primitive.samples) or 2
    )
]
every_call = pytest.mark.parametrize(("name", "number"), CALLS)
ELEMENTWISE = {name for name, each in CATALOGUE.items() if isinstance(each, ElementwisePrimitive)}
# Their results have a shape that follows from numbers.
UNBATCHED = {"masked_select": (1,), "masked_select_backward": ()}


def call_of(name: str, number: int) -> BatchedCall:
    return calls_of(CATALOGUE[name])[number]


def flat(result: Any) -> list[np.ndarray]:
    """Return all tensors in a result as arrays."""
    if isinstance(result, ng.Tensor):
        return [result.detach().resolve_conj().numpy()]
    return [array for each in result for array in flat(each)]


def same_as_a_loop(
    function: Callable[..., Any], batched: list[np.ndarray], call: BatchedCall, in_dims: Any
) -> None:
    """Check arrays against what a function gives for one example after the other."""
    rows = [flat(function(*arguments)) for arguments in call.each(in_dims)]
    for found, row in zip(batched, zip(*rows, strict=True), strict=True):
        wanted = np.stack(row)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11)


@pytest.mark.sampled(0.048)
@pytest.mark.parametrize(
    ("name", "number"), [each for each in CALLS if each.values[0] in ELEMENTWISE]
)
def test_results_of_elementwise_operations(name, number):
    """One rule is all of theirs."""
    check_results(name, number)


@pytest.mark.sampled(0.054, by="name")
@pytest.mark.parametrize(
    ("name", "number"), [each for each in CALLS if each.values[0] not in ELEMENTWISE]
)
def test_results(name, number):
    check_results(name, number)


def check_results(name: str, number: int) -> None:
    call = call_of(name, number)
    for in_dims in call.choices():
        mapped = vmap(lambda *x: tuple(call.results(*x)), in_dims)
        found = flat(mapped(*call.arguments(in_dims)))
        same_as_a_loop(call.results, found, call, in_dims)


def has_derivative(call: BatchedCall) -> bool:
    tensors = next(call.each([0] * len(call.batches)))
    for tensor in tensors:
        if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
            tensor.requires_grad_()
    loss = call.loss(*tensors)
    if not loss.requires_grad:
        return False
    try:
        loss.backward()
    except RuntimeError as error:  # as PyTorch's, for what is constant in pieces
        return "is not implemented" not in str(error)
    return True


@pytest.mark.sampled(0.024)
@every_call
def test_derivatives_inside(name, number):
    call = call_of(name, number)
    if not has_derivative(call):
        return
    positions = call.differentiable()
    for in_dims in call.choices():
        arguments = call.arguments(in_dims)
        for function in (call.loss, call.slope):
            gradient = grad(function, positions)
            found = flat(vmap(gradient, in_dims)(*arguments))
            same_as_a_loop(gradient, found, call, in_dims)


@pytest.mark.sampled(0.048)
@every_call
def test_derivatives_outside(name, number):
    call = call_of(name, number)
    if not has_derivative(call):
        return
    positions = call.differentiable()
    in_dims = call.choices()[0]
    arguments = call.arguments(in_dims)
    for function in (call.loss, call.slope):
        mapped = vmap(function, in_dims)
        found = flat(grad(lambda *x, mapped=mapped: mapped(*x).sum(), positions)(*arguments))
        same_as_a_loop(grad(function, positions), found, call, in_dims)


@pytest.mark.sampled(0.036)
@every_call
def test_tangents(name, number):
    call = call_of(name, number)
    if not has_derivative(call):
        return

    def tangent(*tensors: ng.Tensor) -> Any:
        moving = call.differentiable()

        def function(*given: ng.Tensor) -> Any:
            own = dict(zip(moving, given, strict=True))
            return call.loss(*[own.get(i, tensor) for i, tensor in enumerate(tensors)])

        primals = tuple(tensors[i] for i in moving)
        return jvp(function, primals, tuple(primal * 0.5 + 1 for primal in primals))

    for in_dims in call.choices():
        found = flat(vmap(tangent, in_dims)(*call.arguments(in_dims)))
        same_as_a_loop(tangent, found, call, in_dims)


@pytest.mark.sampled(0.036)
@every_call
def test_nested(name, number):
    call = call_of(name, number)
    for in_dims in call.choices():
        # Outside, the last argument is the same for all.
        outer = tuple(None if i and i == len(in_dims) - 1 else dim for i, dim in enumerate(in_dims))
        if not any(dim == 0 for dim in outer):
            continue
        arguments = call.arguments(in_dims)
        others = [
            argument if dim is None else ng.stack((argument, argument.flip(0)))
            for argument, dim in zip(arguments, outer, strict=True)
        ]
        mapped = vmap(lambda *x: tuple(call.results(*x)), in_dims)
        found = vmap(mapped, outer)(*others)
        for half in (0, 1):
            own = [
                argument if dim is None else argument[half]
                for argument, dim in zip(others, outer, strict=True)
            ]
            for whole, wanted in zip(found, mapped(*own), strict=True):
                np.testing.assert_allclose(flat(whole)[0][half], flat(wanted)[0], rtol=1e-9)


@pytest.mark.sampled(0.01)
@every_call
def test_compiled(name, number):
    call = call_of(name, number)
    in_dims = call.choices()[-1]
    arguments = call.arguments(in_dims)
    mapped = vmap(lambda *x: tuple(call.results(*x)), in_dims)
    if name == "masked_select" or name in names_of(
        "SHAPE_DEPENDS_ON_VALUES"
    ):  # of a shape that follows from numbers
        with pytest.raises(ng.TraceError, match="asks a traced tensor for"):
            ng.jit(mapped)(*arguments)
        return
    found = ng.jit(mapped)(*arguments)
    for one, wanted in zip(found, mapped(*arguments), strict=True):
        np.testing.assert_allclose(flat(one)[0], flat(wanted)[0], rtol=1e-9, atol=1e-12)


def test_every_operation_has_a_rule():
    for name, primitive in CATALOGUE.items():
        if isinstance(primitive, ElementwisePrimitive) or primitive.view:
            continue
        has = name in RULES or name in INSIDE or name in LOOPED or is_derived(primitive)
        assert has, f"{name}: write a batching rule, or name its parameters as others do"
