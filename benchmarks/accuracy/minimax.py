"""Derive the polynomials of the kernels: ``python benchmarks/accuracy/minimax.py [names]``.

Each is the polynomial, or the quotient of two, whose greatest weighted error on an interval is
least, found with Remez's exchange in mpmath and then rounded. Prints the coefficients, the highest
power first, and the binary logarithm of the error with the rounded ones. Of a denominator the first
coefficient is 1 and is not printed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
from mpmath import mp, mpf

Function = Callable[[Any], Any]
WORKING_DIGITS = 60
GRID = 600  # points at which extrema of the error are looked for


@dataclass(frozen=True)
class Problem:
    """What is approximated: `function` on `interval`, where an error counts `weight` times.

    `series` has the function's Taylor coefficients in closed form, used near 0 where the function
    as written loses its digits.
    """

    function: Function
    weight: Function
    interval: tuple[Any, Any]
    degrees: tuple[int, int]  # for float32 and float64
    denominators: tuple[int, int] = (0, 0)  # their degrees


def _exp_rest(r: Any) -> Any:
    return (mpmath.expm1(r) - r - r * r / 2) / r**3


def _sinh_rest(w: Any) -> Any:
    r = mpmath.sqrt(w)
    return (mpmath.sinh(r) - r) / r**3


def _cosh_rest(w: Any) -> Any:
    r = mpmath.sqrt(w)
    return (mpmath.cosh(r) - 1 - w / 2) / w**2


def _atanh_rest(w: Any) -> Any:
    s = mpmath.sqrt(w)
    return 2 * (mpmath.atanh(s) - s) / s**3


def _atanh_rest_2(w: Any) -> Any:
    s = mpmath.sqrt(w)
    return 2 * (mpmath.atanh(s) - s - s**3 / 3) / s**5 / mpmath.log(2)


def _tanh_rest(w: Any) -> Any:
    x = mpmath.sqrt(w)
    return (mpmath.tanh(x) - x) / x**3


def _stirling_rest(w: Any) -> Any:
    """Return what follows ln(2 pi)/2 in Stirling's series, times x, for w = 1/x**2."""
    x = 1 / mpmath.sqrt(w)
    with mpmath.workdps(80):
        start = (x - mpf("0.5")) * mpmath.log(x) - x + mpmath.log(2 * mpmath.pi) / 2
        return (mpmath.loggamma(x) - start) * x


def _digamma_rest(w: Any) -> Any:
    x = 1 / mpmath.sqrt(w)
    with mpmath.workdps(80):
        return (mpmath.log(x) - 1 / (2 * x) - mpmath.digamma(x)) * x * x


mp.dps = WORKING_DIGITS
ROOT = mpmath.findroot(mpmath.digamma, mpf("1.4616321449683623"))  # of digamma
HALF_LN_2 = mpmath.log(2) / 2 * mpf("1.0001")
LARGEST_S = (mpmath.sqrt(2) - 1) / (mpmath.sqrt(2) + 1) * mpf("1.0001")
PROBLEMS = {
    # (e**r - 1 - r - r**2/2) / r**3; the error is one of (e**r - 1) / r
    "exp": Problem(_exp_rest, lambda r: r * r, (-HALF_LN_2, HALF_LN_2), (3, 8)),
    # (2**r - 1) / r
    "exp2": Problem(
        lambda r: mpmath.expm1(r * mpmath.log(2)) / r, abs, (mpf("-0.5"), mpf("0.5")), (6, 11)
    ),
    # (sinh r - r) / r**3 and (cosh r - 1 - r**2/2) / r**4, in powers of r**2
    "sinh": Problem(_sinh_rest, lambda w: w, (mpf(0), HALF_LN_2**2), (1, 4)),
    "cosh": Problem(_cosh_rest, lambda w: w**2, (mpf(0), HALF_LN_2**2), (1, 4)),
    # (tanh x - x) / x**3 in powers of x**2, a quotient, where tanh x is up to 1/2
    "tanh": Problem(_tanh_rest, lambda w: w, (mpf(0), mpf("0.3025")), (1, 2), (1, 3)),
    # (2 atanh s - 2 s) / s**3 in powers of s**2
    "log": Problem(_atanh_rest, lambda w: w / 2, (mpf(0), LARGEST_S**2), (3, 6)),
    # the same where abs(s) is up to 0.201
    "atanh": Problem(_atanh_rest, lambda w: w / 2, (mpf(0), mpf("0.0405")), (3, 7)),
    # (2 atanh s - 2 s - 2/3 s**3) / s**5 / ln 2 in powers of s**2
    "pow": Problem(_atanh_rest_2, lambda w: w * w / 2, (mpf(0), LARGEST_S**2), (2, 6)),
    # lgamma(1 + t)/t and lgamma(2 + t)/t
    "lgamma_one": Problem(
        lambda t: mpmath.loggamma(1 + t) / t,
        lambda t: t / mpmath.loggamma(1 + t),
        (mpf("-0.25"), mpf("0.5")),
        (11, 23),
    ),
    "lgamma_two": Problem(
        lambda t: mpmath.loggamma(2 + t) / t,
        lambda t: t / mpmath.loggamma(2 + t),
        (mpf("-0.5"), mpf("0.5")),
        (9, 20),
    ),
    "lgamma_rest": Problem(_stirling_rest, lambda w: mpf(1), (mpf(0), mpf(1) / 64), (1, 6)),
    # digamma(3/2 + s) / (3/2 + s - its root)
    "digamma": Problem(
        lambda s: mpmath.digamma(s + mpf("1.5")) / (s + mpf("1.5") - ROOT),
        lambda s: (s + mpf("1.5") - ROOT) / mpmath.digamma(s + mpf("1.5")),
        (mpf("-0.5"), mpf("0.5")),
        (10, 23),
    ),
    "digamma_rest": Problem(_digamma_rest, lambda w: w, (mpf(0), mpf(1) / 64), (2, 7)),
    # m**(-1/3)
    "cbrt": Problem(lambda m: mpmath.cbrt(m) ** -1, mpmath.cbrt, (mpf(1), mpf(2)), (3, 5)),
}


def _points(interval: tuple[Any, Any], count: int) -> list[Any]:
    """Return the zeros of a Chebyshev polynomial on the interval, none of them at 0."""
    low, high = interval
    middle, half = (low + high) / 2, (high - low) / 2
    angles = [mpmath.pi * (i + mpf("0.5")) / count for i in range(count)]
    return [middle - half * mpmath.cos(angle - mpf(10) ** -3) for angle in angles]


def _solve(
    problem: Problem, points: list[Any], degree: int, denominator: list[Any]
) -> tuple[list[Any], list[Any], Any]:
    """Return both polynomials, and the error, that level the error at `points`.

    What multiplies the error in the equations is the denominator, so they are solved again with
    the one that was found until that does not change.
    """
    size = len(points)
    for _ in range(1 if len(denominator) == 1 else 30):
        system, right = mpmath.matrix(size, size), mpmath.matrix(size, 1)
        for row, x in enumerate(points):
            weight, value = problem.weight(x), problem.function(x)
            highest = x ** (len(denominator) - 1)
            for power in range(degree + 1):
                system[row, power] = weight * x**power
            for power in range(len(denominator) - 1):
                system[row, degree + 1 + power] = -weight * value * x**power
            system[row, size - 1] = (-1) ** row * mpmath.polyval(denominator[::-1], x)
            right[row] = weight * value * highest
        solution = list(mpmath.lu_solve(system, right))
        before, denominator = denominator, [*solution[degree + 1 : -1], mpf(1)]
        if max(abs(a - b) for a, b in zip(before, denominator, strict=True)) < mpf(10) ** -25:
            break
    return solution[: degree + 1], denominator, abs(solution[-1])


def _fit(problem: Problem, degree: int, below: int) -> tuple[list[Any], list[Any]]:
    """Return the minimax numerator and denominator, the lowest power first."""
    points = _points(problem.interval, degree + below + 2)
    grid = _points(problem.interval, GRID)
    values = [(problem.function(x), problem.weight(x)) for x in grid]
    denominator = [*[mpf(1)] * below, mpf(1)]
    for _ in range(12):
        numerator, denominator, level = _solve(problem, points, degree, denominator)
        errors = [
            weight
            * (mpmath.polyval(numerator[::-1], x) / mpmath.polyval(denominator[::-1], x) - value)
            for x, (value, weight) in zip(grid, values, strict=True)
        ]
        extrema = _alternating(grid, errors, len(points))
        if extrema is None or max(abs(error) for error in errors) < level * mpf("1.01"):
            break
        points = extrema
    return numerator, denominator


def _alternating(grid: list[Any], errors: list[Any], count: int) -> list[Any] | None:
    """Return `count` points where the error is extremal and changes sign, the largest of them."""
    best: list[int] = []
    for position, error in enumerate(errors):
        if best and (errors[best[-1]] > 0) == (error > 0):
            if abs(error) > abs(errors[best[-1]]):
                best[-1] = position
        else:
            best.append(position)
    while len(best) > count:
        best.pop(0 if abs(errors[best[0]]) < abs(errors[best[-1]]) else -1)
    return [grid[position] for position in best] if len(best) == count else None


def derive(name: str, number: Any) -> tuple[list[float], list[float], float]:
    """Return the rounded numerator and denominator, and log2 of the greatest error.

    The highest power is first; the denominator, the 1 in front of it left out, may be empty.
    """
    problem = PROBLEMS[name]
    is_double = number is np.float64
    exact = _fit(problem, problem.degrees[is_double], problem.denominators[is_double])
    numerator, denominator = ([float(number(float(c))) for c in part[::-1]] for part in exact)
    error = max(
        abs(
            problem.weight(x)
            * (mpmath.polyval(numerator, x) / mpmath.polyval(denominator, x) - problem.function(x))
        )
        for x in _points(problem.interval, 2 * GRID)
    )
    return numerator, denominator[1:], float(mpmath.log(error, 2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(PROBLEMS), metavar="name")
    for name in parser.parse_args().names:
        for number in (np.float32, np.float64):
            numerator, denominator, error = derive(name, number)
            print(f"{name} {number.__name__}: error 2**{error:.1f}")
            for coefficient in numerator:
                print(f"    {number(coefficient)!s},")
            if denominator:
                print("  over 1,")
            for coefficient in denominator:
                print(f"    {number(coefficient)!s},")


if __name__ == "__main__":
    main()
