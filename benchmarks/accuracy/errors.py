"""Errors of elementary functions: ``python benchmarks/accuracy/errors.py [names] [--exhaustive]``.

Prints a Markdown table: for each function of one number, the largest error in units in the last
place and where it is. Without ``--exhaustive`` that is of a sample of float64 and of float32,
against mpmath. With it, of all 2**32 numbers of float32, against a float64 function of NumPy or of
the C library, whose own error is below 2**-26 of these units; it takes one to five minutes of one
core a function, shared among ``--threads``.

A result of inf counts as the power of two that follows the largest number. An error of inf is nan
where there should be none, or the other way round, or a finite number in place of inf. Zeros of the
wrong sign are counted apart: that of a result too small for float32 is the sign of the exact one.

`FUNCTIONS` names the functions; one added there is measured with the others.
"""

from __future__ import annotations

import argparse
import math
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import mpmath
import numpy as np
from mpmath import mpf
from numba import njit

from numgrad.math import scalar
from numgrad.math.real.bits import from_bits, to_bits

Array = np.ndarray[Any, Any]

POINTS = 20_000
EXACT_BITS = 200
PART = 1 << 27  # numbers that a thread takes at a time
BLOCK = 1 << 14  # numbers whose results stay in the cache
EXPONENT = 0x7FF << 52  # the bits of a float64 that hold it
SIGN = 1 << 31  # the bit of a float32 that holds it
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


def _with_pole(function: Any, sign: int = 1) -> Any:
    """Return a function that is infinite at 0, where mpmath raises."""
    return lambda x: function(x) if x else sign * mpmath.inf


def _loop_of(function: Any) -> Any:
    """Return a compiled loop over numbers and an output."""

    @njit(nogil=True, error_model="numpy")
    def loop(x, out):  # type: ignore[no-untyped-def]
        for i in range(x.size):
            out[i] = function(x[i])

    return loop


def _sigmoid(x: Array, out: Array) -> None:
    np.reciprocal(1 + np.exp(-x), out)


def _softplus(x: Array, out: Array) -> None:
    np.add(np.maximum(x, 0), np.log1p(np.exp(-abs(x))), out)


def _logsigmoid(x: Array, out: Array) -> None:
    _softplus(-x, out)
    np.negative(out, out)


# name: (ours, exact, float64 function of an array and an output, domain). In compiled code `math`
# is the C library; NumPy has functions of its own, with vectors, for some processors.
FUNCTIONS: dict[str, tuple[Any, Any, Any, tuple[float, float]]] = {
    "sqrt": (scalar.sqrt, mpmath.sqrt, np.sqrt, (0.0, math.inf)),
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
    "sin": (scalar.sin, _of_angle(mpmath.sin), _loop_of(math.sin), EVERYWHERE),
    "cos": (scalar.cos, _of_angle(mpmath.cos), _loop_of(math.cos), EVERYWHERE),
    "tan": (scalar.tan, _of_angle(mpmath.tan), np.tan, EVERYWHERE),
    "asin": (scalar.asin, mpmath.asin, np.arcsin, (-1.0, 1.0)),
    "acos": (scalar.acos, mpmath.acos, np.arccos, (-1.0, 1.0)),
    "atan": (scalar.atan, mpmath.atan, np.arctan, EVERYWHERE),
    "erf": (scalar.erf, mpmath.erf, _loop_of(math.erf), EVERYWHERE),
    "erfc": (
        scalar.erfc,
        lambda x: mpmath.erfc(min(x, mpf(200))),
        _loop_of(math.erfc),
        EVERYWHERE,
    ),
    "sinh": (scalar.sinh, _saturated(mpmath.sinh), _loop_of(math.sinh), EVERYWHERE),
    "cosh": (scalar.cosh, _saturated(mpmath.cosh), np.cosh, EVERYWHERE),
    "tanh": (scalar.tanh, _saturated(mpmath.tanh), np.tanh, EVERYWHERE),
    "asinh": (scalar.asinh, mpmath.asinh, np.arcsinh, EVERYWHERE),
    "acosh": (scalar.acosh, mpmath.acosh, _loop_of(math.acosh), (1.0, math.inf)),
    "atanh": (scalar.atanh, mpmath.atanh, _loop_of(math.atanh), (-1.0, 1.0)),
    "lgamma": (scalar.lgamma, _with_pole(mpmath.loggamma), _loop_of(math.lgamma), (0.0, math.inf)),
    # Nobody else has it: the errors of float32 are those beside ours in float64.
    "digamma": (
        scalar.digamma,
        _with_pole(mpmath.digamma, -1),
        _loop_of(scalar.digamma),
        (0.0, math.inf),
    ),
    "sigmoid": (
        scalar.sigmoid,
        _saturated(lambda x: 1 / (1 + mpmath.exp(-x))),
        _sigmoid,
        EVERYWHERE,
    ),
    "softplus": (scalar.softplus, _exact_softplus, _softplus, EVERYWHERE),
    "logsigmoid": (
        scalar.logsigmoid,
        lambda x: -_exact_softplus(-x),
        _logsigmoid,
        EVERYWHERE,
    ),
}

# What is known of negative numbers, and need not be computed in float64 for them.
ODD = {"cbrt", "sin", "tan", "asin", "atan", "erf", "sinh", "tanh", "asinh", "atanh"}
EVEN = {"cos", "cosh"}


def evaluate(function: Any, x: Array) -> Array:
    """Return a scalar function of each number, in a compiled loop."""
    out = np.empty_like(x)
    _loop_of(function)(x, out)
    return out


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
                got = mpf(value)
                if math.isinf(value):
                    got = math.copysign(1, value) * beyond
                    exact = min(max(exact, -beyond), beyond)
                exponent = mpmath.frexp(exact)[1] - 1
                exponent = min(max(exponent, int(info.minexp)), int(info.maxexp) - 1)
                error = float(abs(got - exact) * mpf(2) ** (int(info.nmant) - exponent))
            if not error <= worst[0]:
                worst = (math.inf if math.isnan(error) else error, point)
    return worst


@njit(nogil=True, error_model="numpy")
def _compare(values, exact, errors):  # type: ignore[no-untyped-def]
    """Write the errors of float32 values in ulp; return how many zeros have the wrong sign.

    Without branches, so that it takes less time than what it compares.
    """
    wrong_signs = 0
    for i in range(values.size):
        value, right = float(values[i]), exact[i]
        # The power of two next below, within those of normal numbers, times the bits after it.
        unit = from_bits(to_bits(right) & EXPONENT)
        unit = 2.0**127 if unit > 2.0**127 else unit
        unit = (2.0**-126 if unit < 2.0**-126 else unit) * 2.0**-23
        is_infinite = abs(value) == np.inf
        limit = 2.0**128 if is_infinite else np.inf
        nearest = -limit if right < -limit else (limit if right > limit else right)
        value = math.copysign(limit, value) if is_infinite else value
        error = abs(value - nearest) / unit
        is_nan, right_is_nan = value != value, right != right
        error = (0.0 if is_nan & right_is_nan else np.inf) if is_nan | right_is_nan else error
        errors[i] = error
        wrong_signs += (
            (value == 0.0) & (not right_is_nan) & ((to_bits(value) < 0) != (to_bits(right) < 0))
        )
    return wrong_signs


class Finding(NamedTuple):
    """The largest error in ulp, the number it is at, and how many zeros have the wrong sign."""

    error: float
    place: float
    wrong_signs: int


def _finding_of_part(name: str, loop: Any, first: int) -> Finding:
    """Return what there is to say about the float32 of `PART` bits from the first on.

    And, of an odd or even function, about their negatives.
    """
    reference = FUNCTIONS[name][2]
    steps = np.arange(BLOCK, dtype=np.uint32)
    bits, values = np.empty_like(steps), np.empty(BLOCK, np.float32)
    x = bits.view(np.float32)
    double, exact, errors = np.empty((3, BLOCK))
    worst, place, wrong_signs = -1.0, math.nan, 0
    for start in range(first, first + PART, BLOCK):
        np.add(steps, np.uint32(start), out=bits)
        with np.errstate(all="ignore"):
            np.copyto(double, x)
            reference(double, exact)
        for _ in range(2 if name in ODD | EVEN else 1):
            loop(x, values)
            wrong_signs += _compare(values, exact, errors)
            at = int(errors.argmax())
            if errors[at] > worst:
                worst, place = float(errors[at]), float(x[at])
            np.bitwise_xor(bits, np.uint32(SIGN), out=bits)
            if name in ODD:
                np.negative(exact, out=exact)
    return Finding(worst, place, wrong_signs)


def exhaustive_error(name: str, threads: int) -> Finding:
    """Return what there is to say about all of float32."""
    loop = _loop_of(FUNCTIONS[name][0])
    loop(np.ones(1, np.float32), np.ones(1, np.float32))  # compiled here, not in every thread
    starts = range(0, SIGN if name in ODD | EVEN else 2 * SIGN, PART)
    with ThreadPoolExecutor(threads) as pool:
        parts = list(pool.map(lambda first: _finding_of_part(name, loop, first), starts))
    worst = max(parts, key=lambda part: part.error)
    return worst._replace(wrong_signs=sum(part.wrong_signs for part in parts))


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the errors of the elementary functions.")
    parser.add_argument("functions", nargs="*", default=list(FUNCTIONS), metavar="function")
    parser.add_argument("--exhaustive", action="store_true", help="every float32 (minutes)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of --exhaustive")
    arguments = parser.parse_args()
    if arguments.exhaustive:
        print("| function | all of float32 (ulp) | at | zeros of the wrong sign |")
        print("| --- | ---: | --- | ---: |", flush=True)
        for name in arguments.functions:
            found = exhaustive_error(name, arguments.threads)
            cells = f"{found.error:.3f} | {found.place:.9g} | {found.wrong_signs:,}"
            print(f"| {name} | {cells} |", flush=True)
        return
    print("| function | float64 (ulp) | at | float32 (ulp) | at |")
    print("| --- | ---: | --- | ---: | --- |", flush=True)
    for name in arguments.functions:
        errors = [sampled_error(name, dtype) for dtype in (np.float64, np.float32)]
        cells = " | ".join(f"{error:.3f} | {place:.9g}" for error, place in errors)
        print(f"| {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
