"""Functions of complex numbers: as accurate as they say, and C99's at infinities, nans and zeros.

Points are drawn over all magnitudes, and close to the branch points and to the unit circle, where
the logarithm and the inverse functions lose digits unless care is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import numgrad as ng
from tests.cases import thinned

# Functions, how many ulp of the absolute value they may be off, and how large their operands are.
ENTIRE = {
    "exp": (mpmath.exp, 3),
    "exp2": (lambda z: mpmath.power(2, z), 3),
    "expm1": (mpmath.expm1, 4),
    "sin": (mpmath.sin, 3),
    "cos": (mpmath.cos, 3),
    "tan": (mpmath.tan, 4),
    "sinh": (mpmath.sinh, 3),
    "cosh": (mpmath.cosh, 3),
    "tanh": (mpmath.tanh, 4),
}
OTHERS = {
    "log": (mpmath.log, 3),
    "log1p": (lambda z: mpmath.log(1 + z), 4),
    "log2": (lambda z: mpmath.log(z) / mpmath.log(2), 4),
    "log10": (lambda z: mpmath.log(z) / mpmath.log(10), 4),
    "sqrt": (mpmath.sqrt, 2),
    "rsqrt": (lambda z: 1 / mpmath.sqrt(z), 4),
    "reciprocal": (lambda z: 1 / z, 2),
    "asin": (mpmath.asin, 4),
    "acos": (mpmath.acos, 4),
    "atan": (mpmath.atan, 4),
    "asinh": (mpmath.asinh, 4),
    "acosh": (mpmath.acosh, 4),
    "atanh": (mpmath.atanh, 4),
    "abs": (abs, 1),
    "angle": (mpmath.arg, 1),
    "sgn": (lambda z: z / abs(z), 2),
}
FUNCTIONS = ENTIRE | OTHERS
DTYPES = [("complex128", name) for name in FUNCTIONS]
DTYPES += [("complex64", name) for name in ("exp", "log", "tanh", "acosh", "abs", "sgn")]


def points(name: str, dtype: str) -> np.ndarray:
    """Return operands, off the branch cuts."""
    random = np.random.default_rng(0)
    single = dtype == "complex64"
    sizes = [1e-30, 1e-9, 1e-3, 0.3, 1.0, 3.0, 20.0, 60.0]
    if name in OTHERS:
        sizes += [1e-37, 1e5, 1e18, 1e37] if single else [1e-300, 1e-160, 1e10, 1e160, 1e300]
    found = [s * (random.standard_normal(12) + 1j * random.standard_normal(12)) for s in sizes]
    near = 10.0 ** random.uniform(-7 if single else -16, -1, 12)
    turns = np.exp(2j * np.pi * random.random(12))
    found += [centre + near * turns for centre in (1, -1, 1j, -1j)]
    found.append(turns * (1 + near * random.choice([-1, 1], 12)))
    z = np.concatenate(found).astype(dtype)
    return z[(z.real != 0) & (z.imag != 0)]


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize(("dtype", "name"), DTYPES)
def test_error_is_a_few_ulp(dtype: str, name: str) -> None:
    exact, bound = FUNCTIONS[name]
    z = thinned(points(name, dtype), 4)
    values = getattr(ng, name)(ng.from_numpy(z)).numpy()
    limits = np.finfo(dtype)
    # Enough digits to tell 1 - 1e-300 from 1, which mpmath's own formulas have to.
    with mpmath.workprec(2200 if name in OTHERS else 300):
        for point, value in zip(z, values, strict=True):
            reference = exact(mpmath.mpmathify(point.item()))
            size = abs(reference)
            if limits.tiny < size < limits.max:
                error = abs(mpmath.mpmathify(value.item()) - reference) / size
                assert error <= bound * float(limits.eps), (point, value)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_logarithm_keeps_the_digits_of_its_real_part_near_the_unit_circle(dtype: str) -> None:
    z = np.array([complex(math.cos(t), math.sin(t)) for t in np.linspace(-3, 3, 60)]).astype(dtype)
    values = ng.from_numpy(z).log().numpy()
    with mpmath.workprec(200):
        for point, value in zip(z, values, strict=True):
            exact = mpmath.log(abs(mpmath.mpmathify(point.item())))
            error = abs(mpmath.mpf(float(value.real)) - exact)
            assert error <= 32 * float(np.finfo(dtype).eps) * abs(exact), (point, value)


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e200, 1.2e308])
def test_nothing_overflows_on_the_way(size: float) -> None:
    z = ng.tensor([complex(size, size / 2), complex(-size / 2, size)], dtype=ng.complex128)
    exact = size * math.sqrt(1.25)
    np.testing.assert_allclose(z.abs().numpy(), exact, rtol=1e-3 if size < 1e-300 else 1e-15)
    np.testing.assert_allclose((z / z).numpy(), 1, rtol=1e-15)
    np.testing.assert_allclose(z.log().real.numpy(), math.log(size) + math.log(1.25) / 2, rtol=1e-6)
    np.testing.assert_allclose(z.sgn().abs().numpy(), 1, rtol=1e-3 if size < 1e-300 else 1e-15)


@pytest.mark.parametrize("name", ["exp", "sinh", "cosh"])
def test_product_of_an_overflow_with_a_small_factor_is_finite(name: str) -> None:
    z = 710.2 + 1.57j
    value = getattr(ng, name)(ng.tensor(z, dtype=ng.complex128)).item()
    exact = complex(getattr(mpmath, name)(mpmath.mpmathify(z)))
    assert math.isfinite(value.real)
    assert abs(value.real - exact.real) <= 1e-12 * abs(exact.real)


def test_powers_of_numbers_and_of_zero() -> None:
    random = np.random.default_rng(1)
    base = 3 * (random.standard_normal(50) + 1j * random.standard_normal(50))
    power = random.standard_normal(50) + 1j * random.standard_normal(50)
    exact = [complex(mpmath.power(z, w)) for z, w in zip(base, power, strict=True)]
    found = ng.pow(ng.from_numpy(base), ng.from_numpy(power)).numpy()
    np.testing.assert_allclose(found, exact, rtol=4e-15)
    zero = ng.zeros(5, dtype=ng.complex128)
    powers = [0, 2, 1 + 1j, 0.5, -1]
    found = ng.pow(zero, ng.tensor(powers, dtype=ng.complex128)).numpy()
    np.testing.assert_array_equal(found[:4], [1, 0, 0, 0])
    assert math.isinf(found[4].real)


PARTS = [0.0, -0.0, 1.0, -2.5, 30.0, 400.0, -800.0]
POINTS = np.array([complex(x, y) for x in PARTS for y in PARTS])
EXTREMES = [0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan]
SPECIAL = np.array([complex(x, y) for x in EXTREMES for y in EXTREMES if not math.isfinite(x + y)])


@pytest.mark.parametrize("name", ["sin", "cos", "tan", "sinh", "cosh", "tanh", "exp2"])
def test_values_are_pytorchs(torch, name):
    ours = getattr(ng, name)(ng.from_numpy(POINTS)).numpy()
    theirs = getattr(torch, name)(torch.from_numpy(POINTS)).numpy()
    for part in ("real", "imag"):
        mine, reference = getattr(ours, part), getattr(theirs, part)
        np.testing.assert_allclose(mine, reference, rtol=1e-12, atol=1e-15)
        zeros = reference == 0
        np.testing.assert_array_equal(np.signbit(mine[zeros]), np.signbit(reference[zeros]))


C99: dict[str, Callable[[Any], Any]] = {
    name: getattr(ng, name)
    for name in (
        *("exp", "exp2", "log", "log2", "log10", "sqrt", "sin", "cos", "tan", "sinh", "cosh"),
        *("tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "expm1", "abs", "angle"),
        *("sgn", "reciprocal", "square"),
    )
}


@pytest.mark.parametrize("name", C99)
def test_infinities_and_nans_are_pytorchs(torch, name):
    """Each part is nan where PyTorch's is; the sign of an infinity beside a nan is unspecified."""
    ours = C99[name](ng.from_numpy(SPECIAL)).numpy()
    theirs = getattr(torch, name)(torch.from_numpy(SPECIAL)).numpy()
    for part, other in (("real", "imag"), ("imag", "real")):
        mine, reference = getattr(ours, part).copy(), getattr(theirs, part).copy()
        unsigned = np.isinf(reference) & np.isnan(getattr(theirs, other))
        mine[unsigned], reference[unsigned] = np.abs(mine[unsigned]), np.abs(reference[unsigned])
        np.testing.assert_allclose(mine, reference, rtol=1e-12)
