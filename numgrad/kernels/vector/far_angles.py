"""Angles of any size brought to within a quarter of pi, exactly: for sin, cos and tan far from 0.

Method: abs(x) is an integer of at most 53 bits times a power of two. Of the binary digits of 2/pi,
those whose product with x is a multiple of 4 change nothing, so a window of them behind those is
multiplied with the integer, modulo 4, in integer arithmetic. Its integer part is the quadrant; its
fraction, of which at least 64 significant bits are right (no float64 is closer than 2**-62 to a
multiple of pi/2), becomes the sum of two floating point numbers and is multiplied by pi/2.

It has branches and loops: it is for the few numbers that `numgrad.kernels.vector.trigonometry`
cannot bring near in floating point arithmetic.

Sources: M. Payne and R. Hanek, "Radian reduction for trigonometric functions", SIGNUM Newsletter 18
(1983); the digits of pi are computed below by Machin's formula.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from numgrad.kernels.pipeline import part
from numgrad.kernels.vector.bits import fma, from_bits, to_bits
from numgrad.kernels.vector.double_word import fast_two_sum

__all__ = ["HALF_PI", "make_far_reduction"]

_DIGITS = 1344  # binary, of 2/pi: the largest float64 needs 971, and the window is 224 wide
_PADDING = 64  # zeros in front of them, for numbers with fractional bits
_WORD = 32


def _arccot(n: int, scale: int) -> int:
    """Return the angle whose cotangent is n, times `scale`: 1/n - 1/(3 n**3) + ..."""
    power = total = scale // n
    divisor = 1
    while power:
        power //= -n * n
        divisor += 2
        total += power // divisor
    return total


def _pi(digits: int) -> Fraction:
    """Return pi to a number of binary digits: 16 arccot 5 - 4 arccot 239."""
    guarded = 1 << (digits + 32)
    return Fraction(16 * _arccot(5, guarded) - 4 * _arccot(239, guarded), guarded)


HALF_PI = _pi(_DIGITS + _WORD) / 2
_TWO_OVER_PI = int(2**_DIGITS / HALF_PI)
_WORDS = np.array(
    [
        _TWO_OVER_PI >> (_DIGITS + _PADDING - _WORD * (position + 1)) & 0xFFFFFFFF
        for position in range((_DIGITS + _PADDING) // _WORD)
    ],
    np.uint64,
)


def make_far_reduction(number: Any, integer: Any, mantissa: int, window: int) -> Any:
    """Return the function that reduces far angles of a floating point type.

    Parameters
    ----------
    number, integer : numpy scalar types
        The type, and the integer of its size.
    mantissa : int
        Stored bits of the significand.
    window : int
        Words of 32 binary digits of 2/pi that are multiplied.
    """
    u = np.uint64
    bias = int(np.finfo(number).maxexp) - 1
    precision = mantissa + 1
    first = number(float(HALF_PI))
    second = number(float(HALF_PI - Fraction(float(first))))
    mask, half_word, quadrant = u(0xFFFFFFFF), u(32), u(62)
    zero, one, two, top = u(0), u(1), u(2), u(63)
    significant = u(precision)
    unused = u(64 - precision)
    fraction_mask, implicit = u((1 << mantissa) - 1), u(1 << mantissa)
    exponent_mask = 2 * bias + 1
    head_scale, tail_scale = number(2.0**-precision), number(2.0 ** (-2 * precision))

    @partial(part, inlined=False)
    def digits(position, shift):  # type: ignore[no-untyped-def]
        """Return 32 binary digits of 2/pi from a word and a shift in it."""
        pair = (_WORDS[position] << half_word) | _WORDS[position + 1]
        return (pair >> (half_word - shift)) & mask

    @partial(part, inlined=False)
    def reduce_far(x):  # type: ignore[no-untyped-def]
        """Return r, a correction of r, and k, for x = k pi/2 + r modulo 2 pi; x finite, over 1."""
        bits = to_bits(abs(x))
        significand = (u(bits) & fraction_mask) | implicit
        exponent = (np.int64(bits) >> mantissa & exponent_mask) - bias - mantissa
        # Digits before this one give multiples of 4.
        start = exponent - 2 + _PADDING
        position, shift = start // _WORD, u(start % _WORD)
        low, high = significand & mask, significand >> half_word
        carry = one_right = two_right = zero
        upper = lower = zero  # the last 128 bits
        for place in range(position + window - 1, position - 1, -1):
            here = digits(place, shift)
            column = (low * here & mask) + (low * one_right >> half_word)
            column += (high * one_right & mask) + (high * two_right >> half_word) + carry
            carry = column >> half_word
            lower = (lower >> half_word) | (upper << half_word)
            upper = (upper >> half_word) | ((column & mask) << half_word)
            one_right, two_right = here, one_right
        turns = upper >> quadrant
        upper = (upper << two) | (lower >> quadrant)
        lower = lower << two
        negative = upper >> top == one
        if negative:  # a fraction above one half: count from the next quadrant, down
            turns += one
            upper, lower = ~upper, ~lower  # less by one unit of 2**-126 than the negative
        scale = bias
        while upper >> top == zero:
            upper = (upper << one) | (lower >> top)
            lower = lower << one
            scale -= 1
        rest = (upper << significant) | (lower >> unused)
        unit = from_bits(integer(scale << mantissa))
        head = number(upper >> unused) * head_scale * unit
        tail = number(rest >> unused) * tail_scale * unit
        product = head * first
        r, correction = fast_two_sum(
            product, fma(head, first, -product) + (head * second + tail * first)
        )
        k = integer(turns)
        if negative:
            r, correction = -r, -correction
        return (-r, -correction, integer(-k)) if x < number(0) else (r, correction, k)

    return reduce_far
