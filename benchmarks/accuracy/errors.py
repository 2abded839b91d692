"""Errors of elementary functions: ``python benchmarks/accuracy/errors.py [names] [--exhaustive]``.

Prints a Markdown table: for each function of one number, the largest error in units in the last
place and where it is, for float64 and float32 on a sample against mpmath, and with ``--exhaustive``
for all 2**32 numbers of float32 against a float64 function of NumPy or SciPy (whose own error is
below 2**-28 of these units). A result of inf counts as the power of two that follows the largest
number; nan where there should be none, or the other way round, is an error of inf.

`FUNCTIONS` names the functions; one added there is measured with the others.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import scipy.special
from mpmath import mpf
from numba import njit

from numgrad.kernels import scalar
from numgrad.kernels.vector.bits import to_bits

Array = np.ndarray[Any, Any]

POINTS = 20_000
BLOCK = 1 << 24
EXACT_BITS = 200
EVERYWHERE = (-math.inf, math.inf)


def _saturated(function: Any) -> Any:
    """Return a function of a limited argument: mpmath would write out e**1e300 in full."""
    return lambda x: function(min(max(x, mpf(-5000)), mpf(5000)))


def _exact_softplus(x: Any) -> Any:
    """Return log(1 + e**x), with all its digits where e**x is small."""
    return x if x > 5000 else mpmath.log1p(mpmath.exp(max(x, mpf(-5000))))


def _of_angle(function: Any) -> Any:
    """Return a function of an angle of any size: 1,100 bits of it may be whole turns."""

    def exact(x: Any) -> Any:
        with mpmath.workprec(1300):
            return function(x)

    return exact


# name: (ours, exact, float64 function, domain)
FUNCTIONS: dict[str, tuple[Any, Any, Callable[[Array], Array], tuple[float, float]]] = {
    "exp": (scalar.exp, _saturated(mpmath.exp), np.exp, EVERYWHERE),
    "exp2": (scalar.exp2, _saturated(lambda x: mpf(2) ** x), np.exp2, EVERYWHERE),
    "expm1": (scalar.expm1, _saturated(mpmath.expm1), np.expm1, EVERYWHERE),
    "log": (scalar.log, mpmath.log, np.log, (0.0, math.inf)),
    "log1p": (scalar.log1p, mpmath.log1p, np.log1p, (-1.0, math.inf)),
    "log2": (scalar.log2, lambda x: mpmath.log(x, 2), np.log2, (0.0, math.inf)),
    "log10": (scalar.log10, mpmath.log10, np.log10, (0.0, math.inf)),
    "cbrt": (
        scalar.cbrt,
        lambda x: mpmath.cbrt(x) if x >= 0 else -mpmath.cbrt(-x),
        np.cbrt,
        EVERYWHERE,
    ),
    "sin": (scalar.sin, _of_angle(mpmath.sin), np.sin, EVERYWHERE),
    "cos": (scalar.cos, _of_angle(mpmath.cos), np.cos, EVERYWHERE),
    "tan": (scalar.tan, _of_angle(mpmath.tan), np.tan, EVERYWHERE),
    "asin": (scalar.asin, mpmath.asin, np.arcsin, (-1.0, 1.0)),
    "acos": (scalar.acos, mpmath.acos, np.arccos, (-1.0, 1.0)),
    "atan": (scalar.atan, mpmath.atan, np.arctan, EVERYWHERE),
    "erf": (scalar.erf, mpmath.erf, scipy.special.erf, EVERYWHERE),
    "erfc": (scalar.erfc, lambda x: mpmath.erfc(min(x, mpf(200))), scipy.special.erfc, EVERYWHERE),
    "sinh": (scalar.sinh, _saturated(mpmath.sinh), np.sinh, EVERYWHERE),
    "cosh": (scalar.cosh, _saturated(mpmath.cosh), np.cosh, EVERYWHERE),
    "tanh": (scalar.tanh, _saturated(mpmath.tanh), np.tanh, EVERYWHERE),
    "asinh": (scalar.asinh, mpmath.asinh, np.arcsinh, EVERYWHERE),
    "acosh": (scalar.acosh, mpmath.acosh, np.arccosh, (1.0, math.inf)),
    "atanh": (scalar.atanh, mpmath.atanh, np.arctanh, (-1.0, 1.0)),
    "sigmoid": (
        scalar.sigmoid,
        _saturated(lambda x: 1 / (1 + mpmath.exp(-x))),
        scipy.special.expit,
        EVERYWHERE,
    ),
    "softplus": (scalar.softplus, _exact_softplus, lambda x: np.logaddexp(0.0, x), EVERYWHERE),
    "logsigmoid": (
        scalar.logsigmoid,
        lambda x: -_exact_softplus(-x),
        scipy.special.log_expit,
        EVERYWHERE,
    ),
}


def evaluate(function: Any, x: Array) -> Array:
    """Return a scalar function of each number, in a compiled loop."""
    out = np.empty_like(x)
    _loop_of(function)(x, out)
    return out


def _loop_of(function: Any) -> Any:
    @njit(nogil=True, error_model="numpy")
    def loop(x, out):  # type: ignore[no-untyped-def]
        for i in range(x.size):
            out[i] = function(x[i])

    return loop


def sample(dtype: Any, domain: tuple[float, float]) -> Array:
    """Return numbers of every size in a domain, more of them near 0 and 1 and near its ends."""
    random = np.random.default_rng(0)
    info = np.finfo(dtype)
    low, high = (float(np.clip(end, info.min, info.max)) for end in domain)
    integer = np.dtype(f"i{info.bits // 8}")

    def ordered(x: float) -> int:
        """Return a number's place in the order of all numbers of its type."""
        place = int(np.asarray(x, dtype).view(integer))
        return place if place >= 0 else int(np.iinfo(integer).min) - place

    def numbers(places: Array) -> Array:
        bits = np.where(places >= 0, places, np.iinfo(integer).min - places)
        return bits.astype(integer).view(dtype)

    places = random.integers(ordered(low), ordered(high), POINTS // 4, integer, endpoint=True)
    marks = [low, high, 0.0, 1.0, -1.0, math.log(float(info.max)), math.log(float(info.tiny))]
    marks += [math.log(float(info.smallest_subnormal)), math.log2(float(info.max))]
    near = np.array([ordered(mark) for mark in marks if low <= mark <= high])
    neighbours = np.unique(near[:, None] + np.arange(-25, 26))
    neighbours = neighbours[(neighbours >= ordered(low)) & (neighbours <= ordered(high))]
    spread = [random.uniform(max(low, -a), min(high, a), POINTS // 4) for a in (1, 25, 1000)]
    return np.concatenate(
        [numbers(places), numbers(neighbours), *(part.astype(dtype) for part in spread)]
    )


def sampled_error(name: str, dtype: Any) -> tuple[float, float]:
    """Return the largest error in ulp on the sample, and its place."""
    ours, exact_function, _, domain = FUNCTIONS[name]
    info = np.finfo(dtype)
    x = sample(dtype, domain)
    worst = (-1.0, math.nan)
    with mpmath.workprec(EXACT_BITS):
        beyond = mpf(2) ** int(info.maxexp)
        for point, value in zip(x.tolist(), evaluate(ours, x).tolist(), strict=True):
            exact = exact_function(mpf(point))
            if not mpmath.isfinite(exact):
                error = 0.0 if value == float(exact) else math.inf
            else:
                exact = min(max(exact, -beyond), beyond)
                got = math.copysign(1, value) * beyond if math.isinf(value) else mpf(value)
                exponent = mpmath.frexp(exact)[1] - 1
                exponent = min(max(exponent, int(info.minexp)), int(info.maxexp) - 1)
                error = float(abs(got - exact) * mpf(2) ** (int(info.nmant) - exponent))
            if not error <= worst[0]:
                worst = (math.inf if math.isnan(error) else error, point)
    return worst


@njit(nogil=True, error_model="numpy")
def _worst_of_block(x, values, exact):  # type: ignore[no-untyped-def]
    """Return the largest error of float32 values in ulp, and the number it is at."""
    worst, place = -1.0, np.float32(0)
    beyond = 2.0**128
    for i in range(x.size):
        value, right = float(values[i]), exact[i]
        if np.isnan(value) or np.isnan(right):
            error = 0.0 if np.isnan(value) and np.isnan(right) else np.inf
        else:
            value, right = min(max(value, -beyond), beyond), min(max(right, -beyond), beyond)
            exponent = ((to_bits(right) >> 52) & 2047) - 1023
            exponent = min(max(exponent, -126), 127)
            error = abs(value - right) * 2.0 ** (23 - exponent)
        if error > worst:
            worst, place = error, x[i]
    return worst, place


def exhaustive_error(name: str) -> tuple[float, float]:
    """Return the largest error in ulp of any float32, and its place."""
    ours, _, reference, _ = FUNCTIONS[name]
    loop, values = _loop_of(ours), np.empty(BLOCK, np.float32)
    worst = (-1.0, math.nan)
    for start in range(0, 1 << 32, BLOCK):
        x = np.arange(start, start + BLOCK, dtype=np.uint32).view(np.float32)
        loop(x, values)
        with np.errstate(all="ignore"):
            exact = reference(x.astype(np.float64))
        error, place = _worst_of_block(x, values, exact)
        if error > worst[0]:
            worst = (error, float(place))
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the errors of the elementary functions.")
    parser.add_argument("functions", nargs="*", default=list(FUNCTIONS), metavar="function")
    parser.add_argument("--exhaustive", action="store_true", help="every float32, too (minutes)")
    arguments = parser.parse_args()
    columns = ["float64", "float32"] + ["all of float32"] * arguments.exhaustive
    print("| function |", " | ".join(f"{column} (ulp) | at" for column in columns), "|")
    print("| --- |", " | ".join(["---: | ---"] * len(columns)), "|")
    for name in arguments.functions:
        errors = [sampled_error(name, np.float64), sampled_error(name, np.float32)]
        if arguments.exhaustive:
            errors.append(exhaustive_error(name))
        cells = " | ".join(f"{error:.3f} | {place:.9g}" for error, place in errors)
        print(f"| {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
