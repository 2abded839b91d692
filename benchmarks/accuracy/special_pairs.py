"""Errors of functions of two numbers: ``python benchmarks/accuracy/special_pairs.py [names]``.

Prints a Markdown table: for each function and range of its first argument the largest relative
error, in units of the machine epsilon of float64, against mpmath, and where it is. Where the result
is an exponential of something large, its error grows with that: the last column has the largest
error divided by 1 + abs(ln(result)).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf
from numba import njit

from numgrad.math import scalar

POINTS = 60
BITS = 220
EPSILON = mpf(2) ** -52
RANGES = {"0.001 to 2": (-3.0, 0.3), "2 to 30": (0.3, 1.5), "30 to 10,000": (1.5, 4.0)}


def _loop_of(function: Any, order: int = 0) -> Any:
    if order:

        @njit(error_model="numpy")
        def loop(a: Any, x: Any, out: Any) -> None:
            for i in range(a.size):
                out[i] = function(a[i], x[i], float(order))

        return loop

    @njit(error_model="numpy")
    def loop_of_two(a: Any, x: Any, out: Any) -> None:
        for i in range(a.size):
            out[i] = function(a[i], x[i])

    return loop_of_two


def _lower(a: Any, x: Any) -> Any:
    return mpmath.gammainc(a, 0, x, regularized=True)


def _upper(a: Any, x: Any) -> Any:
    return mpmath.gammainc(a, x, mpmath.inf, regularized=True)


def _differences(order: int) -> Callable[[Any, Any], Any]:
    """Return a derivative of the lower function for a, from the smaller of the two."""

    def derivative(a: Any, x: Any) -> Any:
        step = a * mpf(2) ** -40
        sign, of = (1, _lower) if x < a else (-1, _upper)
        f = {k: sign * of(a + k * step, x) for k in (-2, -1, 0, 1, 2)}
        if order == 1:
            return (8 * (f[1] - f[-1]) - (f[2] - f[-2])) / (12 * step)
        return (-f[2] + 16 * f[1] - 30 * f[0] + 16 * f[-1] - f[-2]) / (12 * step**2)

    return derivative


FUNCTIONS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {
    "gammainc": (_loop_of(scalar.gammainc), _lower),
    "gammaincc": (_loop_of(scalar.gammaincc), _upper),
    "gammainc, first derivative for a": (_loop_of(scalar.gammainc_slope, 1), _differences(1)),
    "gammainc, second derivative for a": (_loop_of(scalar.gammainc_slope, 2), _differences(2)),
    "density": (
        _loop_of(scalar.gamma_density),
        lambda a, x: mpmath.exp((a - 1) * mpmath.log(x) - x - mpmath.loggamma(a)),
    ),
    "beta": (_loop_of(scalar.beta), mpmath.beta),
    "betaln": (
        _loop_of(scalar.betaln),
        lambda a, b: mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b),
    ),
}


def _points() -> Iterator[tuple[str, Any, Any]]:
    random = np.random.default_rng(0)
    for title, (low, high) in RANGES.items():
        a = 10.0 ** random.uniform(low, high, POINTS)
        near = a * (1 + random.uniform(-1, 1, POINTS) * np.minimum(0.9, 4 / np.sqrt(a)))
        wide = a * 10.0 ** random.uniform(-1.0, 0.7, POINTS)
        yield title, a, np.where(random.random(POINTS) < 0.6, near, wide)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measure errors of functions of two numbers.")
    parser.add_argument("functions", nargs="*", default=list(FUNCTIONS), metavar="function")
    print("| function | first argument | error | at | beside the exponent |")
    print("| --- | --- | ---: | --- | ---: |")
    for name in parser.parse_args().functions:
        loop, exact_function = FUNCTIONS[name]
        for title, a, x in _points():
            found = np.empty(a.size)
            loop(a, x, found)
            worst, place, scaled = mpf(0), (0.0, 0.0), mpf(0)
            with mpmath.workprec(BITS):
                for p, q, value in zip(a.tolist(), x.tolist(), found.tolist(), strict=True):
                    exact = exact_function(mpf(p), mpf(q))
                    if not mpf(10) ** -290 < abs(exact) < mpf(10) ** 290:
                        continue
                    error = abs(mpf(value) / exact - 1) / EPSILON
                    scaled = max(scaled, error / (1 + abs(mpmath.log(abs(exact)))))
                    worst, place = max((worst, place), (error, (p, q)))
            at = f"{place[0]:.6g}, {place[1]:.6g}"
            print(f"| {name} | {title} | {float(worst):.1f} | {at} | {float(scaled):.1f} |")


if __name__ == "__main__":
    main()
