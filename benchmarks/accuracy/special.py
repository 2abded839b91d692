"""Errors of special functions: ``python benchmarks/accuracy/special.py [names] [--points 400]``.

Prints a Markdown table: for each function the largest error on a sample of float64 and of float32,
against mpmath, in units in the last place. That of J and Y is in those of their envelope,
sqrt(2/(pi x)), where it is larger than they are: they have zeros.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf
from numba import njit

import numgrad.special  # noqa: F401 - declares the functions
from numgrad import math

Array = np.ndarray[Any, Any]
Exact = Callable[[Any], Any]
LARGEST = 1000  # arguments from where mpmath would take long


def _ndtr(x: Any) -> Any:
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def _log_ndtr(x: Any) -> Any:
    return mpmath.log(_ndtr(x)) if x < 0 else mpmath.log1p(-_ndtr(-x))


def _ndtri(p: Any) -> Any:
    """Return the quantile, by Newton's method in the logarithm of the smaller tail."""
    smaller = min(p, 1 - p)
    x = mpmath.sqrt(-2 * mpmath.log(smaller))
    for _ in range(40):
        tail = _ndtr(-x)
        density = mpmath.exp(-x * x / 2) / mpmath.sqrt(2 * mpmath.pi)
        step = (mpmath.log(tail) - mpmath.log(smaller)) * tail / density
        x += step
        if abs(step) < mpf(10) ** -35:
            break
    return -x if 2 * p < 1 else x


def _of(function: Any, order: int, scale: int = 0) -> Exact:
    return lambda x: function(order, x) * mpmath.exp(scale * abs(x))


# name: (exact, lowest and highest argument, whether it is a wave).
FUNCTIONS: dict[str, tuple[Exact, float, float, bool]] = {
    "erfcx": (lambda x: mpmath.exp(x * x) * mpmath.erfc(x), -26, LARGEST, False),
    "ndtr": (_ndtr, -37, 38, False),
    "log_ndtr": (_log_ndtr, -LARGEST, 38, False),
    "ndtri": (_ndtri, 0, 1, False),
    "erfinv": (mpmath.erfinv, -1, 1, False),
    "i0": (_of(mpmath.besseli, 0), -710, 710, False),
    "i1": (_of(mpmath.besseli, 1), -710, 710, False),
    "i0e": (_of(mpmath.besseli, 0, -1), -LARGEST, LARGEST, False),
    "i1e": (_of(mpmath.besseli, 1, -1), -LARGEST, LARGEST, False),
    "modified_bessel_k0": (_of(mpmath.besselk, 0), 0, 700, False),
    "modified_bessel_k1": (_of(mpmath.besselk, 1), 0, 700, False),
    "scaled_modified_bessel_k0": (_of(mpmath.besselk, 0, 1), 0, LARGEST, False),
    "scaled_modified_bessel_k1": (_of(mpmath.besselk, 1, 1), 0, LARGEST, False),
    "bessel_j0": (_of(mpmath.besselj, 0), -LARGEST, LARGEST, True),
    "bessel_j1": (_of(mpmath.besselj, 1), -LARGEST, LARGEST, True),
    "bessel_y0": (_of(mpmath.bessely, 0), 0, LARGEST, True),
    "bessel_y1": (_of(mpmath.bessely, 1), 0, LARGEST, True),
    "spherical_bessel_j0": (lambda x: mpmath.sinc(x), -LARGEST, LARGEST, True),
}


def sample(dtype: Any, low: float, high: float, points: int) -> Array:
    """Return arguments of a range: of all of it, near 0, and of every size."""
    random = np.random.default_rng(0)
    sizes = 10.0 ** random.uniform(-30, np.log10(max(abs(low), high)), points // 4)
    parts = [random.uniform(max(low, -a), min(high, a), points // 4) for a in (3, 30, 1e9)]
    parts.append(sizes if low == 0 else sizes * random.choice([-1, 1], sizes.size))
    x = np.concatenate(parts).astype(dtype)
    info = np.finfo(dtype)
    limit = float(np.log(info.max)) - 6  # where exponentials stay in the range of either type
    squares = low == -26
    x = x[(x > low) & (x < high)]
    if dtype is np.float32:
        x = x[abs(x) < limit] if not squares else x[x > -9]
        x = x[x > -12] if high == 38 and low == -37 else x
    return x[x != 0]


def largest_error(name: str, dtype: Any, points: int) -> tuple[float, float]:
    """Return the largest error in ulp on the sample, and its place."""
    exact_function, low, high, is_wave = FUNCTIONS[name]
    function, x = getattr(math, name), sample(dtype, low, high, points)

    @njit(error_model="numpy")
    def evaluate(x, out):  # type: ignore[no-untyped-def]
        for i in range(x.size):
            out[i] = function(x[i])

    values = np.empty_like(x)
    evaluate(x, values)
    worst = (-1.0, np.nan)
    with mpmath.workdps(40):
        for point, value in zip(x.tolist(), values.tolist(), strict=True):
            exact = exact_function(mpf(point))
            scale = abs(exact)
            if is_wave and abs(point) > 0.5:
                power = 1 if name.startswith("spherical") else 0.5
                scale = max(scale, (2 / (mpmath.pi * abs(point))) ** power)
            exponent = max(mpmath.frexp(scale)[1] - 1, int(np.finfo(dtype).minexp))
            unit = mpf(2) ** (exponent - int(np.finfo(dtype).nmant))
            error = float(abs(mpf(value) - exact) / unit)
            if not error <= worst[0]:
                worst = (error, point)
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(FUNCTIONS), metavar="name")
    parser.add_argument("--points", type=int, default=400)
    arguments = parser.parse_args()
    print("| function | float64 (ulp) | at | float32 (ulp) | at |")
    print("| --- | ---: | --- | ---: | --- |")
    for name in arguments.names:
        cells = [largest_error(name, dtype, arguments.points) for dtype in (np.float64, np.float32)]
        written = " | ".join(f"{error:.2f} | {place:.9g}" for error, place in cells)
        print(f"| {name} | {written} |", flush=True)


if __name__ == "__main__":
    main()
