"""Every elementwise operation of the catalogue against PyTorch: values, dtypes, gradients, nodes.

At ordinary points, at kinks and ties, and at the special values of floating point.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.core.primitive import CATALOGUE
from tests.rows import names_of, rows_of

INF, NAN = float("inf"), float("nan")
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, 1e-30, -7.25, 30.0, INF, -INF, NAN]
INTEGERS = [0, 1, -1, 2, 5, -7, 100]

# How PyTorch spells the calls whose operands do not stand in the order of the primitive's.
CALLS: dict[str, Any] = {
    "threshold_backward": lambda m, a, b: (
        CATALOGUE["threshold_backward"](a, b)
        if m is ng
        else m.ops.aten.threshold_backward(a, b, 0.0)
    ),
    "add_scaled": lambda m, a, b, alpha: m.add(a, b, alpha=alpha),
    "sub_scaled": lambda m, a, b, alpha: m.sub(a, b, alpha=alpha),
    "rsub_scaled": lambda m, a, b, alpha: m.rsub(a, b, alpha=alpha),
    "rsub_tensor_scaled": lambda m, a, b, alpha: m.rsub(a, b, alpha=alpha),
    "true_divide": lambda m, a, b: m.div(a, b),
    "floor_divide": lambda m, a, b: m.div(a, b, rounding_mode="floor"),
    "trunc_divide": lambda m, a, b: m.div(a, b, rounding_mode="trunc"),
    "pow_of_number": lambda m, exponent, base: m.pow(base, exponent),
    "addcmul": lambda m, a, b, c, value: m.addcmul(a, b, c, value=value),
    "addcdiv": lambda m, a, b, c, value: m.addcdiv(a, b, c, value=value),
    "softplus": lambda m, a, beta, threshold: m.nn.functional.softplus(a, beta, threshold),
    "logsigmoid": lambda m, a: m.nn.functional.logsigmoid(a),
    "xlogy_of_number": lambda m, other, a: m.xlogy(a, other),
    "isclose": lambda m, a, b, rtol, atol, nan: m.isclose(a, b, rtol, atol, bool(nan)),
    "clamp_min_tensor": lambda m, a, bound: m.clamp(a, min=bound),
    "clamp_min_number": lambda m, a, bound: m.clamp(a, min=bound),
    "clamp_max_tensor": lambda m, a, bound: m.clamp(a, max=bound),
    "clamp_max_number": lambda m, a, bound: m.clamp(a, max=bound),
    "clampmin_min_tensor": lambda m, a, bound: m.clamp_min(a, bound),
    "clampmin_min_number": lambda m, a, bound: m.clamp_min(a, bound),
    "clampmax_max_tensor": lambda m, a, bound: m.clamp_max(a, bound),
    "clampmax_max_number": lambda m, a, bound: m.clamp_max(a, bound),
    "round_decimals": lambda m, a, scale: m.round(a, decimals=1),
    "conj_physical_in_place": lambda m, a: a.clone().conj_physical_(),
    "floor_divide_": lambda m, a, b: m.floor_divide(a, b),
    **rows_of("TORCH"),
}

# What PyTorch has no derivatives of, and what it records more than one node for.
OWN_DERIVATIVES, OWN_NODES = names_of("OWN_DERIVATIVES"), names_of("OWN_NODES")
# The error that PyTorch's values have, in float32 and float64.
LESS_ACCURATE: dict[str, tuple[float, float]] = rows_of("LESS_ACCURATE")

PRIMITIVES = [
    p
    for p in CATALOGUE.values()
    if isinstance(p, ElementwisePrimitive) and p.name not in names_of("NOT_PYTORCHS")
]
every_primitive = pytest.mark.parametrize("primitive", PRIMITIVES, ids=[p.name for p in PRIMITIVES])


# Compared with an absolute tolerance of a few roundings too, and why. The libraries may differ in
# an ulp of what goes into a subtraction of nearly equal numbers.
CANCELLING_VALUES = {
    "gelu": "1 + erf(x) where that is near -1",
    "logaddexp2": "log2(2**-1 + 2**-1) is 0 here, -1e-8 in PyTorch's float32",
}
CANCELLING_GRADIENTS = {
    "gelu": "1 + erf(x) where that is near -1",
    "gelu_tanh": "1 + tanh(u) where that is near -1",
    "sinc": "-pi**2 * x / 3 near 0, where PyTorch's two terms cancel to 0",
    "tanh": "1 - y**2 where y is near 1",
    "expm1": "y + 1 where y is near -1",
    "logistic": "sigmoid, by which name it is called here",
    "sigmoid": "1 - y where y is near 1; at 30 PyTorch's y is an ulp off, ours is not",
    **rows_of("CANCELLING"),
}

# Gradients of which PyTorch has fewer digits.
FEW_DIGITS = {
    "hardsigmoid": 1e-7,  # its sixth is one of float32
    "ndtri": 2e-5,  # e**(y*y/2): half an ulp of -11.5, which PyTorch's quantile is off
}

# Special values at which PyTorch's gradient depends on where a number stands: its loop of vectors
# returns one, its loop of single numbers, for what remains, another. Here it is the latter's.
UNDECIDED: dict[str, list[float]] = {
    "logit": [-0.0],  # a -inf among vectors, an inf alone
    **{name: [NAN] for name in ("hardtanh", "hardshrink", "softshrink")},
    **{name: [NAN] for name in ("hardswish", "elu", "celu")},
    "gelu": [INF],  # nan among vectors of float32
    **rows_of("UNDECIDED"),
}


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


def words(error: BaseException) -> str:
    """Return an error's message without the lists of overloads that PyTorch's parser adds."""
    return str(error).split(" but expected one of:")[0]


def assert_refused_alike(theirs: BaseException, ours: Callable[[], Any]) -> None:
    """Check that a call raises the class that PyTorch raised, with its words."""
    with pytest.raises(type(theirs)) as caught:
        ours()
    assert type(caught.value) is type(theirs)
    assert words(caught.value) == words(theirs)


def compare(torch: Any, primitive: ElementwisePrimitive, operands: list[Any]) -> None:
    """Run both libraries; compare what they return, or that both refuse and how."""
    theirs_in = to_module(torch, operands, requires_grad=True)
    ours_in = to_module(ng, operands, requires_grad=True)
    try:
        theirs = call(torch, primitive, theirs_in)
    except (RuntimeError, TypeError, ValueError) as error:
        assert_refused_alike(error, lambda: call(ng, primitive, ours_in))
        return
    ours = call(ng, primitive, ours_in)
    assert repr(ours.dtype) == repr(theirs.dtype)
    is_single = theirs.dtype in (torch.float32, torch.complex64)
    rtol, eps = (4e-6, 1.2e-7) if is_single else (1e-12, 2.3e-16)
    atol = 4 * eps if primitive.name in CANCELLING_VALUES else 1e-38
    np.testing.assert_allclose(
        ours.numpy(force=True),
        theirs.numpy(force=True),
        rtol=rtol,
        atol=LESS_ACCURATE.get(primitive.name, (atol, atol))[not is_single],
        equal_nan=True,
    )
    if not theirs.requires_grad:
        assert not ours.requires_grad or primitive.name in OWN_DERIVATIVES
        return
    assert ours.requires_grad
    if theirs.grad_fn is None:  # an operand, returned as it is
        assert ours.grad_fn is None
        return
    assert ours.grad_fn.name() == theirs.grad_fn.name() or primitive.name in OWN_NODES
    try:
        theirs.backward(torch.ones_like(theirs))
    except RuntimeError as error:
        assert_refused_alike(error, lambda: ours.backward(ng.ones_like(ours)))
        return
    ours.backward(ng.ones_like(ours))
    rtol = max(rtol, FEW_DIGITS.get(primitive.name, 0))
    atol = 4 * eps if primitive.name in CANCELLING_GRADIENTS else 1e-38
    for mine, reference in zip(ours_in, theirs_in, strict=True):
        if not isinstance(reference, torch.Tensor) or not reference.requires_grad:
            continue
        if reference.grad is None:
            assert mine.grad is None
            continue
        np.testing.assert_allclose(
            mine.grad.numpy(),
            reference.grad.numpy(force=True),
            rtol=rtol,
            atol=atol,
            equal_nan=True,
        )


@pytest.mark.sampled(0.18, by="primitive")
@every_primitive
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_real_values_and_gradients_equal_pytorch(torch, primitive, dtype):
    undecided = [str(each) for each in UNDECIDED.get(primitive.name, [])]
    values = [each for each in SPECIAL if str(each) not in undecided]
    compare(torch, primitive, grid(primitive, values, dtype))


@pytest.mark.sampled(0.09, by="primitive")
@every_primitive
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool"])
def test_integers_equal_pytorch(torch, primitive, dtype):
    values = [0, 1] if dtype == "bool" else INTEGERS
    if "divide" in primitive.name or primitive.function_name in ("remainder", "fmod", "pow"):
        values = [value for value in values if value > 0]
    compare(torch, primitive, grid(primitive, values, dtype))


@pytest.mark.sampled(0.18, by="primitive")
@every_primitive
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_values_and_gradients_equal_pytorch(torch, primitive, dtype):
    values = [1 + 2j, 0.5 - 1j, -2 + 0.25j]
    compare(torch, primitive, grid(primitive, values, dtype))


@pytest.mark.sampled(0.11, by="primitive")
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


# Second derivatives that lose all their digits in both libraries, or differ.
LOST_SECOND_DERIVATIVES = {
    "sinc": "x cos(x) - sin(x) near 0",
    "hardsigmoid": "PyTorch has none",
    "gelu_tanh": "1 - tanh(u)**2 where that is near 0",
    "prelu_kernel": "at 0, PyTorch's second derivatives take the other side than its first",
    **rows_of("LOST_SECOND_DERIVATIVES"),
}


def second_derivatives(module: Any, primitive: ElementwisePrimitive, operands: list[Any]) -> Any:
    """Return the gradient of the sum of every gradient; None if an operation has none."""
    inputs = to_module(module, operands, requires_grad=True)
    output = call(module, primitive, inputs)
    if output.grad_fn is None or output.grad_fn.name() == "torch::autograd::NotImplemented":
        return None
    leaves = [t for t in inputs if isinstance(t, module.Tensor) and t.requires_grad]
    found = []
    for gradient in module.autograd.grad(output.sum(), leaves, create_graph=True):
        if not gradient.requires_grad:
            found += [np.zeros(leaf.shape) for leaf in leaves]
            continue
        seconds = module.autograd.grad(
            gradient.sum(), leaves, allow_unused=True, materialize_grads=True, retain_graph=True
        )
        found += [second.numpy(force=True) for second in seconds]
    return found


@every_primitive
def test_second_derivatives_at_special_values_equal_pytorch(torch, primitive):
    """Where PyTorch's is nan, which a masked 0 times infinity often is, ours may be a number."""
    if "f" not in primitive.accepts:
        return
    if primitive.name in LOST_SECOND_DERIVATIVES:
        return
    operands = grid(primitive, SPECIAL, "float64")
    theirs = second_derivatives(torch, primitive, operands)
    if theirs is None:
        return
    ours = second_derivatives(ng, primitive, operands)
    for mine, reference in zip(ours, theirs, strict=True):
        known = ~np.isnan(reference)
        np.testing.assert_allclose(mine[known], reference[known], rtol=1e-9, atol=1e-14)
