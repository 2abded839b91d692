"""Every elementwise operation of the catalogue against PyTorch: values, dtypes, gradients, nodes.

At ordinary points, at kinks and ties, and at the special values of floating point.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.ops.elementwise import ElementwisePrimitive
from numgrad.ops.primitive import CATALOGUE

INF, NAN = float("inf"), float("nan")
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, 1e-30, -7.25, 30.0, INF, -INF, NAN]
INTEGERS = [0, 1, -1, 2, 5, -7, 100]

# How PyTorch spells the calls whose operands do not stand in the order of the primitive's.
CALLS: dict[str, Any] = {
    "add_scaled": lambda m, a, b, alpha: m.add(a, b, alpha=alpha),
    "sub_scaled": lambda m, a, b, alpha: m.sub(a, b, alpha=alpha),
    "rsub_tensor": lambda m, a, b: m.rsub(a, b),
    "true_divide": lambda m, a, b: m.div(a, b),
    "floor_divide": lambda m, a, b: m.div(a, b, rounding_mode="floor"),
    "trunc_divide": lambda m, a, b: m.div(a, b, rounding_mode="trunc"),
    "pow_of_number": lambda m, exponent, base: m.pow(base, exponent),
    "addcmul": lambda m, a, b, c, value: m.addcmul(a, b, c, value=value),
    "addcdiv": lambda m, a, b, c, value: m.addcdiv(a, b, c, value=value),
    "softplus": lambda m, a, beta, threshold: softplus_of(m)(a, beta, threshold),
    "clamp_min_tensor": lambda m, a, bound: m.clamp(a, min=bound),
    "clamp_min_number": lambda m, a, bound: m.clamp(a, min=bound),
    "clamp_max_tensor": lambda m, a, bound: m.clamp(a, max=bound),
    "clamp_max_number": lambda m, a, bound: m.clamp(a, max=bound),
    "clampmin_min_tensor": lambda m, a, bound: m.clamp_min(a, bound),
    "clampmin_min_number": lambda m, a, bound: m.clamp_min(a, bound),
    "clampmax_max_tensor": lambda m, a, bound: m.clamp_max(a, bound),
    "clampmax_max_number": lambda m, a, bound: m.clamp_max(a, bound),
    "round_decimals": lambda m, a, scale: m.round(a, decimals=1),
    "floor_divide_": lambda m, a, b: m.floor_divide(a, b),
}

PRIMITIVES = [p for p in CATALOGUE.values() if isinstance(p, ElementwisePrimitive)]
every_primitive = pytest.mark.parametrize("primitive", PRIMITIVES, ids=[p.name for p in PRIMITIVES])


def softplus_of(module: Any) -> Any:
    return module.softplus if module is ng else module.nn.functional.softplus


def call(module: Any, primitive: ElementwisePrimitive, operands: list[Any]) -> Any:
    spelled = CALLS.get(primitive.name)
    if spelled is not None:
        return spelled(module, *operands)
    return getattr(module, primitive.function_name)(*operands)


def grid(primitive: ElementwisePrimitive, values: list[Any], dtype: str) -> list[Any]:
    """Return operands that meet in every combination of `values`."""
    tensors = [position for position, d in enumerate(primitive.domains) if not d.is_number]
    chosen = values if len(tensors) < 3 else values[:8]
    columns = np.array(list(itertools.product(chosen, repeat=len(tensors)))).T
    operands: list[Any] = []
    for position, domain in enumerate(primitive.domains):
        if domain.is_number:
            operands.append(domain.intervals[0][0])
        elif domain.is_mask:
            operands.append(columns[tensors.index(position)] > 0)
        else:
            operands.append(columns[tensors.index(position)].astype(dtype))
    return operands


def to_module(module: Any, operands: list[Any], requires_grad: bool) -> list[Any]:
    made = []
    for operand in operands:
        if isinstance(operand, np.ndarray):
            tensor = module.from_numpy(operand.copy())
            if requires_grad and operand.dtype.kind in "fc":
                tensor.requires_grad_()
            made.append(tensor)
        else:
            made.append(operand)
    return made


def compare(torch: Any, primitive: ElementwisePrimitive, operands: list[Any]) -> None:
    """Run both libraries; compare what they return or that both refuse."""
    theirs_in = to_module(torch, operands, requires_grad=True)
    ours_in = to_module(ng, operands, requires_grad=True)
    try:
        theirs = call(torch, primitive, theirs_in)
    except (RuntimeError, TypeError, ValueError) as error:
        with pytest.raises(type(error)):
            call(ng, primitive, ours_in)
        return
    ours = call(ng, primitive, ours_in)
    assert repr(ours.dtype) == repr(theirs.dtype)
    rtol = 4e-6 if theirs.dtype in (torch.float32, torch.complex64) else 1e-12
    np.testing.assert_allclose(
        ours.numpy(force=True), theirs.detach().numpy(), rtol=rtol, atol=1e-38, equal_nan=True
    )
    if not theirs.requires_grad:
        assert not ours.requires_grad
        return
    assert ours.grad_fn.name() == theirs.grad_fn.name()
    if theirs.grad_fn.name() == "NotImplemented":
        return
    ours.backward(ng.ones_like(ours))
    theirs.backward(torch.ones_like(theirs))
    for mine, reference in zip(ours_in, theirs_in, strict=True):
        if not isinstance(reference, torch.Tensor) or not reference.requires_grad:
            continue
        if reference.grad is None:
            assert mine.grad is None
            continue
        np.testing.assert_allclose(
            mine.grad.numpy(), reference.grad.numpy(), rtol=rtol, atol=1e-38, equal_nan=True
        )


@every_primitive
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_real_values_and_gradients_equal_pytorch(torch, primitive, dtype):
    compare(torch, primitive, grid(primitive, SPECIAL, dtype))


@every_primitive
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool"])
def test_integers_equal_pytorch(torch, primitive, dtype):
    values = [0, 1] if dtype == "bool" else INTEGERS
    if "divide" in primitive.name or primitive.function_name in ("remainder", "fmod", "pow"):
        values = [value for value in values if value > 0]
    compare(torch, primitive, grid(primitive, values, dtype))


@every_primitive
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_values_and_gradients_equal_pytorch(torch, primitive, dtype):
    values = [1 + 2j, 0.5 - 1j, -2 + 0.25j]
    compare(torch, primitive, grid(primitive, values, dtype))


@every_primitive
@pytest.mark.parametrize("shape", [(), (0,), (2, 0)])
def test_empty_and_zero_dimensional_operands_equal_pytorch(torch, primitive, shape):
    operands = [
        domain.intervals[0][0]
        if domain.is_number
        else np.ones(shape, bool)
        if domain.is_mask
        else np.full(shape, 0.5, "float32")
        for domain in primitive.domains
    ]
    compare(torch, primitive, operands)
