"""Elementwise operations at special values: PyTorch's results, and what PyTorch gets wrong.

Zeros of both signs, subnormal, tiny, huge and infinite numbers, nan and kinks meet in all
combinations. The second half needs no PyTorch.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from tests.ops.test_catalogue_torch import OWN_DERIVATIVES, PRIMITIVES, call, to_module
from tests.rows import rows_of

INF, NAN = float("inf"), float("nan")
REAL = [primitive for primitive in PRIMITIVES if "f" in primitive.accepts]


def numbers_of(dtype: str, operands: int) -> list[float]:
    """Return special numbers, fewer where more operands meet."""
    limits = np.finfo(dtype)
    small, tiny, large = map(float, (limits.smallest_subnormal, limits.tiny, limits.max))
    low = [0.0, -0.0, 1.0, -1.0, -0.5, 2.0, INF, -INF, NAN, large, -large]
    some = [*low, small, -3.0, 1e-20, 20.0, -20.0, 90.0, -90.0, large / 4, -large / 4]
    many = [*some, -small, tiny, -tiny, 1e-3, -1e-3, 0.5, 1 - float(limits.epsneg), 1.5, 3.0]
    many += [8.5, -8.5, 104.0, -104.0, 710.0, -710.0, 800.0, -800.0, 1e10, -1e10, 1e37, -1e37]
    return [many, some, low][operands - 1]


def operands_of(primitive: ElementwisePrimitive, dtype: str) -> list[Any]:
    """Return operands in which all special numbers meet."""
    tensors = [k for k, domain in enumerate(primitive.domains) if not domain.is_number]
    count = sum(not primitive.domains[k].is_mask for k in tensors)
    choices = [
        [0.0, 1.0] if primitive.domains[k].is_mask else numbers_of(dtype, count) for k in tensors
    ]
    columns = iter(np.array(list(itertools.product(*choices))).T)
    operands: list[Any] = []
    for domain in primitive.domains:
        if domain.is_number:
            operands.append(domain.intervals[0][0])
        else:
            column = next(columns)
            operands.append(column > 0 if domain.is_mask else column.astype(dtype))
    return operands


Where = Callable[..., Any]


def _at_zeros(*operands: Any) -> Any:
    zeros = [o == 0 for o in operands if isinstance(o, np.ndarray)]
    return np.sum(zeros, axis=0) >= min(2, len(zeros))


TIES = ("maximum", "minimum", "clamp", "clamp_min_tensor", "clamp_max_tensor")
TIES = (*TIES, "clampmin_min_tensor", "clampmax_max_tensor")
# (operation, what) -> where results may differ from PyTorch's, and why; ``value``, or ``gradient``.
DIFFER: dict[tuple[str, str], tuple[Where, str]] = {
    **{
        (name, "value"): (_at_zeros, "PyTorch's vectors take the second of two zeros")
        for name in TIES
    },
    ("logaddexp2", "value"): (lambda a, b: a == b, "log2(2**-1 + 2**-1) is 0, not a rounding"),
    ("logit", "gradient"): (_at_zeros, "PyTorch's vectors have the sign of -0.0, its loop not"),
    ("logit_clamped", "gradient"): (
        lambda x, eps: np.isnan(x),
        "nan in PyTorch's loop, 0 in its vectors",
    ),
    **{
        (name, "value"): (
            lambda a, b: np.isfinite(a) & (b != 0) & (abs(a) > abs(b)),
            "PyTorch subtracts a rounded product, and loses the remainder of distant numbers",
        )
        for name in ("fmod", "remainder", "fmod_number", "remainder_number")
    },
    ("sigmoid", "value"): (lambda x: x < -80, "PyTorch has 0 where the result is subnormal"),
    ("logistic", "value"): (lambda x: x < -80, "as for sigmoid"),
    ("sigmoid", "gradient"): (
        lambda x: abs(x) > 8,
        "1 - y, of which PyTorch's y is a rounding off",
    ),
    ("logistic", "gradient"): (lambda x: abs(x) > 8, "as for sigmoid, which is what is called"),
    ("expm1", "gradient"): (lambda x: x < -1, "y + 1, of which few digits are left"),
    ("tanh", "gradient"): (lambda x: abs(x) > 2, "1 - y**2, likewise"),
    ("sinc", "gradient"): (
        lambda x: (abs(x) < 0.5) | (abs(x) > 1e18),
        "PyTorch's terms cancel near 0, and its x**2 overflows",
    ),
    **{
        (name, "gradient"): (lambda x, *_: np.isnan(x), "PyTorch's vectors and its loop differ")
        for name in ("hardtanh", "hardshrink", "softshrink", "hardswish", "elu", "celu")
    },
    ("softshrink", "value"): (lambda x, lambd: abs(x) <= lambd, "PyTorch's vectors lose the sign"),
    ("hardsigmoid", "gradient"): (lambda x: abs(x) < 3, "PyTorch's sixth is one of float32"),
    ("gelu", "value"): (lambda x: (x < -1) | np.isinf(x), "1 + erf(x), where that is near -1"),
    ("gelu", "gradient"): (lambda x: x < -1, "1 + erf(x), likewise"),
    ("gelu_tanh", "value"): (lambda x: x < -1, "1 + tanh(u), likewise"),
    ("gelu_tanh", "gradient"): (lambda x: x < -1, "1 + tanh(u), likewise"),
    ("silu", "value"): (lambda x: x < -80, "PyTorch has 0 where the result is subnormal"),
    ("silu", "gradient"): (lambda x: x < -80, "PyTorch has 0 where the result is subnormal"),
    ("mish", "value"): (lambda x: x < -80, "as for silu"),
    ("mish", "gradient"): (lambda x: x < -80, "as for silu"),
    ("asinh", "gradient"): (lambda x: abs(x) > 1e18, "PyTorch's square overflows"),
    ("acosh", "gradient"): (lambda x: abs(x) > 1e18, "PyTorch's square overflows"),
    **rows_of("DIFFER"),
}


def results(module: Any, primitive: ElementwisePrimitive, operands: list[Any]) -> Any:
    """Return the value and the gradients, None where there are none."""
    inputs = to_module(module, operands, requires_grad=True)
    output = call(module, primitive, inputs)
    leaves = [t for t in inputs if isinstance(t, module.Tensor) and t.requires_grad]
    if not output.requires_grad or not leaves or "NotImpl" in output.grad_fn.name():
        return output.detach().numpy(), []
    found = module.autograd.grad(output, leaves, module.ones_like(output), allow_unused=True)
    return output.detach().numpy(), [None if g is None else g.numpy(force=True) for g in found]


def assert_same(
    ours: Any, theirs: Any, operands: list[Any], differ: Any, dtype: str, signs: bool = True
) -> None:
    """Compare numbers to some roundings, and the signs of zeros."""
    if theirs.dtype.kind != "f":
        np.testing.assert_array_equal(ours, theirs)
        return
    limits = np.finfo(dtype)
    with np.errstate(all="ignore"):
        near = abs(ours - theirs) <= np.maximum(
            32 * limits.eps * abs(theirs), 4 * float(limits.smallest_subnormal)
        )
    same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs)) | near
    if signs:
        same &= (ours != 0) | (theirs != 0) | (np.signbit(ours) == np.signbit(theirs))
    if differ is not None:
        same |= np.broadcast_to(differ[0](*operands), same.shape)
    for index in np.flatnonzero(~same)[:5]:
        at = [o[index] if isinstance(o, np.ndarray) else o for o in operands]
        pytest.fail(f"at {at}: {ours[index]!r}, in PyTorch {theirs[index]!r}")


@pytest.mark.sampled(0.18, by="primitive")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("primitive", REAL, ids=[primitive.name for primitive in REAL])
def test_values_and_gradients_are_pytorchs(
    torch: Any, primitive: ElementwisePrimitive, dtype: str
) -> None:
    operands = operands_of(primitive, dtype)
    theirs, their_gradients = results(torch, primitive, operands)
    ours, our_gradients = results(ng, primitive, operands)
    assert_same(ours, theirs, operands, DIFFER.get((primitive.name, "value")), dtype)
    if primitive.name in OWN_DERIVATIVES:
        return
    for mine, reference in zip(our_gradients, their_gradients, strict=True):
        assert (mine is None) == (reference is None)
        if mine is not None:
            differ = DIFFER.get((primitive.name, "gradient"))
            assert_same(mine, reference, operands, differ, dtype, signs=False)


def test_every_difference_is_that_of_an_operation() -> None:
    assert {name for name, _ in DIFFER} <= {primitive.name for primitive in REAL}


EXPONENTS = [0, 1, 2, 3, 4, -1, -2, 0.5, 1.5, 2.5, -0.5, -1.5, 0.1, INF, -INF, NAN]


@pytest.mark.parametrize("count", [1, 40])
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_powers_by_numbers_are_pytorchs(torch: Any, exponent: float, count: int) -> None:
    bases = np.repeat([0.0, -0.0, 1.0, -1.0, 2.0, INF, -INF, NAN], count)
    found = []
    for module in (ng, torch):
        x = module.from_numpy(bases).requires_grad_()
        (slope,) = module.autograd.grad((x**exponent).sum(), x)
        found.append([(x**exponent).numpy(force=True), slope.numpy(force=True)])
    for ours, theirs in zip(*found, strict=True):
        assert_same(ours, theirs, [bases], None, "float64")


# --- without PyTorch ------------------------------------------------------------------------------

ZEROS_AND_NAN = [0.0, -0.0, 1.0, NAN, INF, -INF]


def bits(number: float) -> str:
    return "nan" if math.isnan(number) else repr(number)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [1, 5000])
@pytest.mark.parametrize("traced", [False, True], ids=["eager", "jit"])
def test_extremes_at_ties_bounds_and_nan(dtype: str, count: int, traced: bool) -> None:
    """Of equal numbers, such as 0.0 and -0.0, the first; nan wins, but not in fmax and fmin."""
    pairs = list(itertools.product(ZEROS_AND_NAN, repeat=2))
    a, b = (np.tile(np.array(side, dtype), count) for side in zip(*pairs, strict=True))

    def ours(a: Any, b: Any) -> Any:
        return (
            *(ng.maximum(a, b), ng.minimum(a, b), ng.fmax(a, b), ng.fmin(a, b)),
            *(a.clamp(min=b), a.clamp(max=b), ng.clamp_min(a, b), ng.clamp_max(a, b)),
        )

    tensors = [ng.from_numpy(a), ng.from_numpy(b)]
    larger, smaller, fmax, fmin, *clamped = (ng.jit(ours) if traced else ours)(*tensors)
    for k, (x, y) in enumerate(pairs):
        nan = math.isnan(x) or math.isnan(y)
        upper, lower = (x if x >= y else y), (x if x <= y else y)
        for result, expected in (
            (larger, NAN if nan else upper),
            (smaller, NAN if nan else lower),
            (fmax, x if math.isnan(y) else y if math.isnan(x) else upper),
            (fmin, x if math.isnan(y) else y if math.isnan(x) else lower),
            *((each, NAN if nan else upper) for each in clamped[::2]),
            *((each, NAN if nan else lower) for each in clamped[1::2]),
        ):
            assert {bits(float(v)) for v in result.numpy()[k :: len(pairs)]} == {bits(expected)}


@pytest.mark.parametrize("bound", [0.0, -0.0, 1.5])
def test_an_element_at_its_bound_gets_the_gradient(bound: float) -> None:
    for limits in ({"min": bound}, {"max": bound}, {"min": bound, "max": bound}):
        x = ng.tensor([bound, -bound if bound == 0 else bound], requires_grad=True)
        x.clamp(**limits).sum().backward()
        assert x.grad.tolist() == [1.0, 1.0]
        assert [bits(v) for v in x.clamp(**limits).tolist()] == [bits(v) for v in x.tolist()]


@given(
    a=st.floats(width=32, allow_nan=False, allow_infinity=False),
    b=st.floats(width=32, allow_nan=False, allow_infinity=False),
    c=st.floats(width=32, allow_nan=False, allow_infinity=False),
)
def test_products_are_added_with_one_rounding(a: float, b: float, c: float) -> None:
    """What is added to a product, and a point between two numbers, is rounded once, as there."""
    x, y, z = (ng.tensor(v, dtype=ng.float32) for v in (a, b, c))
    exact = Fraction(a) + Fraction(b) * Fraction(c)
    assert ng.addcmul(x, y, z).item() == as_float32(exact)
    assert ng.add(x, y, alpha=1.5).item() == as_float32(Fraction(a) + Fraction(b) * Fraction(3, 2))
    assert ng.sub(x, y, alpha=1.5).item() == as_float32(Fraction(a) - Fraction(b) * Fraction(3, 2))
    distance = float(np.float32(b) - np.float32(a)) if abs(b - a) < 3e38 else None
    if distance is not None:
        between = ng.lerp(x, y, 0.25).item()
        assert between == as_float32(Fraction(a) + Fraction(distance) / 4)
    assert ng.lerp(x, y, 0.0).item() == a
    assert ng.lerp(x, y, 1.0).item() == b or distance is None


def as_float32(number: Fraction) -> float:
    """Round a rational number to float32: to odd in float64 first, so that it is rounded once."""
    with np.errstate(over="ignore"):
        try:
            nearest = float(number)
        except OverflowError:
            return math.copysign(INF, number)
        rest = number - Fraction(nearest)
        if rest and not np.float64(nearest).view(np.int64) & 1:
            nearest = float(np.nextafter(nearest, math.copysign(INF, rest)))
        return float(np.float32(nearest))


@pytest.mark.parametrize("y", [INF, -INF, NAN])
@pytest.mark.parametrize("x", [0.5, 25.0, 800.0, -800.0, INF, -INF])
def test_complex_tanh_of_a_number_without_direction(x: float, y: float) -> None:
    """As in C: nan, but at infinite real parts, where the direction does not matter."""
    found = ng.tanh(ng.tensor(complex(x, y), dtype=ng.complex128)).item()
    if math.isinf(x):
        assert found == complex(math.copysign(1, x), 0)
    else:
        assert math.isnan(found.real) and math.isnan(found.imag)


DTYPES = ["bool", "uint8", "int32", "int64", "float32", "float64", "complex64"]
# The category decides, and in it the widest of those that have dims.
_CATEGORY = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


@pytest.mark.parametrize(("one", "other"), list(itertools.product(DTYPES, repeat=2)))
def test_one_element_promotes_as_a_tensor_and_no_dims_as_a_number(one: str, other: str) -> None:
    single = ng.ones(1, dtype=getattr(ng, one))
    scalar = ng.ones((), dtype=getattr(ng, one))
    tensor = ng.ones(3, dtype=getattr(ng, other))
    both = ng.promote_types(single.dtype, tensor.dtype)
    assert (single + tensor).dtype is both
    kinds = [_CATEGORY[np.dtype(name).kind] for name in (one, other)]
    expected = both if kinds[0] > kinds[1] else tensor.dtype
    assert (scalar + tensor).dtype is (tensor + scalar).dtype
    if one == "float64" and other == "complex64":
        expected = tensor.dtype
    if kinds[0] > kinds[1] and one == "complex64" and other == "float64":
        expected = ng.complex128
    assert (scalar + tensor).dtype is expected
