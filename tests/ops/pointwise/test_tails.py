"""Values and gradients of elementwise functions against mpmath where numbers are extreme.

Near 0, at subnormal and huge numbers, and in the tails, where a formula that is right on paper
overflows or cancels. No PyTorch is needed: a gradient has to be as accurate as the function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mp

import numgrad as ng
from numgrad.base.tuning import FEW_ELEMENTS

with mp.workdps(60):
    HALF, LN_2, LN_10 = mpmath.mpf(1) / 2, mpmath.log(2), mpmath.log(10)


@pytest.fixture(autouse=True)
def many_digits() -> Iterator[None]:
    """Compute the references with 60 digits."""
    with mp.workdps(60):
        yield


def _sinc_slope(x: Any) -> Any:
    if abs(x) < 1e-30:
        return -(mp.pi**2) * x / 3
    with mp.workdps(200):  # the two terms cancel
        u = mp.pi * x
        return (mp.cos(u) - mp.sin(u) / u) / x


def _logistic(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


# The function and its derivative.
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "exp": (mp.exp, mp.exp),
    "exp2": (lambda x: mpmath.mpf(2) ** x, lambda x: mpmath.mpf(2) ** x * LN_2),
    "expm1": (mp.expm1, mp.exp),
    "log": (mp.log, lambda x: 1 / x),
    "log1p": (mp.log1p, lambda x: 1 / (1 + x)),
    "log2": (lambda x: mp.log(x) / LN_2, lambda x: 1 / (x * LN_2)),
    "log10": (mp.log10, lambda x: 1 / (x * LN_10)),
    "sqrt": (mp.sqrt, lambda x: HALF / mp.sqrt(x)),
    "rsqrt": (lambda x: 1 / mp.sqrt(x), lambda x: -HALF / (x * mp.sqrt(x))),
    "reciprocal": (lambda x: 1 / x, lambda x: -1 / x**2),
    "square": (lambda x: x * x, lambda x: 2 * x),
    "sigmoid": (_logistic, lambda x: _logistic(x) * _logistic(-x)),
    "softplus": (
        lambda x: mp.log1p(mp.exp(x)) if x <= 20 else x,  # PyTorch's threshold
        lambda x: _logistic(x) if x <= 20 else mpmath.mpf(1),
    ),
    "logsigmoid": (lambda x: -mp.log1p(mp.exp(-x)), lambda x: _logistic(-x)),
    "tanh": (mp.tanh, lambda x: mp.sech(x) ** 2),
    "sinh": (mp.sinh, mp.cosh),
    "cosh": (mp.cosh, mp.sinh),
    "asinh": (mp.asinh, lambda x: 1 / mp.sqrt(x * x + 1)),
    "acosh": (mp.acosh, lambda x: 1 / mp.sqrt(x * x - 1)),
    "atanh": (mp.atanh, lambda x: 1 / (1 - x * x)),
    "asin": (mp.asin, lambda x: 1 / mp.sqrt(1 - x * x)),
    "acos": (mp.acos, lambda x: -1 / mp.sqrt(1 - x * x)),
    "atan": (mp.atan, lambda x: 1 / (1 + x * x)),
    "sin": (mp.sin, mp.cos),
    "cos": (mp.cos, lambda x: -mp.sin(x)),
    "tan": (mp.tan, lambda x: mp.sec(x) ** 2),
    "erf": (mp.erf, lambda x: 2 / mp.sqrt(mp.pi) * mp.exp(-x * x)),
    "erfc": (mp.erfc, lambda x: -2 / mp.sqrt(mp.pi) * mp.exp(-x * x)),
    "sinc": (mp.sincpi, _sinc_slope),
    "logit": (lambda x: mp.log(x / (1 - x)), lambda x: 1 / (x * (1 - x))),
    "deg2rad": (mp.radians, lambda x: mp.pi / 180),
    "rad2deg": (mp.degrees, lambda x: 180 / mp.pi),
}

SIZES = [0, 1e-300, 1e-150, 1e-20, 1e-8, 1e-3, 0.1, 0.3, 0.5, 0.75, 1, 1.5, 3, 8.5, 12.75, 20, 30]
SIZES += [90, 104, 300, 708, 710, 745, 800, 1e4, 1e10, 1e150, 1e300]
ULPS = 6  # of the function, or of what its derivative is a product of

# How far a gradient may be off, in roundings of 1, beyond its own: why.
ABSOLUTE = {
    "tanh": 1,  # 1 - y**2 from the output, all that PyTorch saves: it may be overwritten by then
    "sinc": 16,  # it is 0 where pi x, which is rounded, is the tangent of itself
}
# Where a gradient is 0 or nan although its limit is not; PyTorch's is the same.
LOST = {
    "log2": "x ln 2 may overflow",
    "log10": "x ln 10 overflows at the greatest numbers",
    "sinc": "pi x overflows at the greatest numbers",
}


def points(dtype: Any) -> np.ndarray[Any, Any]:
    """Return numbers of all sizes that the type has, and their negatives."""
    limits = np.finfo(dtype)
    ends = [limits.smallest_subnormal, limits.tiny, limits.max, 1 - limits.epsneg, 1 + limits.eps]
    with np.errstate(over="ignore"):
        sizes = np.array([*SIZES, *ends]).astype(dtype)
    sizes = sizes[np.isfinite(sizes)]
    return np.concatenate([sizes, -sizes])


def exact(function: Callable[[Any], Any], x: float) -> Any:
    """Return what mpmath says; None where the function has a pole or no real value."""
    try:
        value = function(mpmath.mpf(x))
    except (ZeroDivisionError, ValueError, OverflowError):
        return None
    return value if isinstance(value, mpmath.mpf) and mpmath.isfinite(value) else None


def assert_near(found: float, expected: Any, dtype: Any, absolute: float, where: str) -> None:
    """Compare with a number that may be too large, or too small, for the type."""
    limits = np.finfo(dtype)
    if abs(expected) > mpmath.mpf(float(limits.max)) * (1 + ULPS * float(limits.eps)):
        assert np.isinf(found) and found * mpmath.sign(expected) > 0, where
        return
    if np.isinf(found):  # within the last roundings of the greatest number
        found = float(np.copysign(float(limits.max), found))
    unit = max(abs(expected) * float(limits.eps), mpmath.mpf(float(limits.smallest_subnormal)))
    error = abs(mpmath.mpf(float(found)) - expected)
    assert error <= ULPS * unit + absolute * float(limits.eps), (
        f"{where} is {found!r}, not {mpmath.nstr(expected, 17)}: {mpmath.nstr(error / unit, 3)} ulp"
    )


@pytest.mark.sampled(0.18, by="name")
@pytest.mark.parametrize("count", [None, FEW_ELEMENTS + 1], ids=["few", "many"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients_are_those_of_mpmath(name: str, dtype: Any, count: int | None) -> None:
    numbers = points(dtype)
    x = ng.from_numpy(numbers if count is None else np.resize(numbers, count)).requires_grad_()
    y = getattr(ng, name)(x)
    (gradient,) = ng.autograd.grad(y, x, ng.ones_like(y))
    values, slopes = y.numpy(force=True), gradient.numpy()
    assert np.array_equal(values, np.resize(values[: numbers.size], values.shape), equal_nan=True)
    assert np.array_equal(slopes, np.resize(slopes[: numbers.size], slopes.shape), equal_nan=True)
    function, derivative = FUNCTIONS[name]
    for number, value, slope in zip(numbers.tolist(), values, slopes, strict=False):
        lost = name in LOST and abs(number) > float(np.finfo(dtype).max) / 4
        expected = None if lost and name == "sinc" else exact(function, number)
        if expected is None:
            continue
        rounding = 1 if name == "sinc" else 0  # at whole numbers, the sine of a rounded angle
        assert_near(value, expected, dtype, rounding, f"{name}({number!r})")
        expected = exact(derivative, number)
        if expected is None or lost:
            continue
        absolute = ABSOLUTE.get(name, 0)
        assert_near(slope, expected, dtype, absolute, f"the derivative of {name} at {number!r}")


def second_derivative(function: Callable[[Any], Any], number: float, dtype: Any) -> float:
    x = ng.from_numpy(np.array([number], dtype)).requires_grad_()
    (first,) = ng.autograd.grad(function(x), x, ng.ones_like(x), create_graph=True)
    (second,) = ng.autograd.grad(first, x, ng.ones_like(x))
    return float(second.item())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("number", [-90.0, -20.0, -8.5, -0.5, 0.0, 0.5, 8.5, 19.0, 20.0, 90.0])
def test_second_derivatives_in_the_tails_of_logsigmoid_and_softplus(
    number: float, dtype: Any
) -> None:
    bend = _logistic(mpmath.mpf(number)) * _logistic(-mpmath.mpf(number))
    found = second_derivative(ng.logsigmoid, number, dtype)
    assert_near(found, -bend, dtype, 0, f"the second derivative of logsigmoid at {number}")
    if number <= 20:
        found = second_derivative(ng.softplus, number, dtype)
        assert_near(found, bend, dtype, 0, f"the second derivative of softplus at {number}")


@pytest.mark.sampled(0.14)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("number", [0.0, -0.0, 1e-30, 1e-5, 0.01, 0.02, 0.1, 0.3, 0.49])
def test_second_derivative_of_sinc_near_0(number: float, dtype: Any) -> None:
    number = float(dtype(number))
    with mp.workdps(200):
        u = mp.pi * mpmath.mpf(max(number, 1e-60))
        expected = mp.pi**2 * ((2 / u**2 - 1) * mp.sin(u) - 2 * mp.cos(u) / u) / u
    found = second_derivative(ng.sinc, number, dtype)
    assert_near(found, expected, dtype, 8, f"the second derivative of sinc at {number}")
    z = ng.tensor(complex(number, 0), dtype=ng.complex128, requires_grad=True)
    (slope,) = ng.autograd.grad(ng.sinc(z), z, ng.ones_like(z))
    slope_expected = exact(_sinc_slope, number)
    assert_near(slope.item().real, slope_expected, np.float64, 0, f"complex sinc at {number}")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_second_derivatives_of_log_ndtr_in_both_tails(dtype: Any) -> None:
    numbers = [-1e30, -1e4, -150.0, -60.0, -30.5, -8.0, -0.5, 0.0, 3.0, 8.0, 38.0, 90.0, 1e30]
    for number in numbers:
        found = second_derivative(ng.special.log_ndtr, number, dtype)
        if abs(number) < 200:
            exact_number = mpmath.mpf(number)
            ratio = mp.npdf(exact_number) / mp.ncdf(exact_number)
            expected = float(-ratio * (exact_number + ratio))
        else:
            expected = 1 / number**2 - 1 if number < 0 else 0.0
        limits = np.finfo(dtype)
        near = (50 + number * number if abs(number) < 30 else 50) * float(limits.eps)
        assert abs(found - expected) <= near * abs(expected) + float(limits.tiny), number
