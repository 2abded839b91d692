"""Range reduction of large angles, exactly (Payne and Hanek): for sin, cos and tan.

Method: abs(x) is an integer of at most 53 bits times a power of two. Of the binary digits of 2/pi,
those whose product with x is a multiple of 4 change nothing, so a window of them behind those is
multiplied with the integer, modulo 4, in integer arithmetic. Its integer part is the quadrant; its
fraction, of which at least 64 significant bits are right (no float64 is closer than 2**-62 to a
multiple of pi/2), becomes the sum of two floating point numbers and is multiplied by pi/2.

It takes three times as long as all else: it is for the few numbers that
`numgrad.math.real.trigonometry` cannot bring near in floating point arithmetic.

Sources: M. Payne and R. Hanek, "Radian reduction for trigonometric functions", SIGNUM Newsletter 18
(1983); the digits of pi are computed below by Machin's formula.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from numgrad.codegen.llvm.scalar_ir import cast, leading_zeros, pick, upper_half, where
from numgrad.math.real.bits import fma, from_bits, to_bits
from numgrad.math.real.double_word import fast_two_sum

__all__ = ["HALF_PI", "make_far_reduction"]

_DIGITS = 1344  # binary, of 2/pi: the largest float64 needs 971, and the window is 224 wide
_PADDING = 64  # zeros in front of them, for numbers with fractional bits
_LOG_WORD = 5
_WORD = 1 << _LOG_WORD


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
_PAIRS = (_WORDS[:-1] << np.uint64(_WORD)) | _WORDS[1:]  # 64 digits from each word on


def make_far_reduction(number: Any, integer: Any, mantissa: int, window: int) -> Any:
    """Return the branch-free function that reduces far angles of a floating point type.

    Parameters
    ----------
    number, integer : numpy scalar types
        The type, and the integer of its size.
    mantissa : int
        Stored bits of the significand.
    window : int
        Words of 32 binary digits of 2/pi that are multiplied: 4 or 7.
    """
    u = np.uint64
    bias = int(np.finfo(number).maxexp) - 1
    precision = mantissa + 1
    first = number(float(HALF_PI))
    second = number(float(HALF_PI - Fraction(float(first))))
    u32, u62, u63, u1 = u(_WORD), u(62), u(63), u(1)
    significant, unused = u(precision), u(64 - precision)
    fraction_mask, implicit = u((1 << mantissa) - 1), u(1 << mantissa)
    exponent_mask = np.int64(2 * bias + 1)
    head_scale, tail_scale = number(2.0**-precision), number(2.0 ** (-2 * precision))

    def reduce_far(x):  # type: ignore[no-untyped-def]
        """Return r, a correction of r, and k, for x = k pi/2 + r modulo 2 pi; x finite, over 1."""
        bits = cast(np.int64, to_bits(abs(x)))
        significand = (cast(u, bits) & fraction_mask) | implicit
        exponent = ((bits >> mantissa) & exponent_mask) - (bias + mantissa)
        # Digits before this one give multiples of 4.
        start = exponent + (_PADDING - 2)
        position, shift = start >> _LOG_WORD, cast(u, start & (_WORD - 1))

        def digits(place):  # type: ignore[no-untyped-def]
            """Return 64 digits, from a word on."""
            after = pick(_WORDS, position + (place + 2)) >> (u32 - shift)
            return (pick(_PAIRS, position + place) << shift) | after

        # The product of the significand and the digits, modulo 2**128: 64 digits give the upper
        # half, the next 64 the lower one, and what follows is carried.
        first_digits, next_digits = digits(0), digits(2)
        lower = significand * next_digits
        upper = significand * first_digits + upper_half(significand, next_digits)
        if window > 4:
            third_digits = digits(4)
            last_digits = pick(_PAIRS, position + 6) >> (u32 - shift) << u32
            part = significand * third_digits
            lost = part + upper_half(significand, last_digits)
            more = upper_half(significand, third_digits) + cast(u, lost < part)
            lower = lower + more
            upper = upper + cast(u, lower < more)
        turns = upper >> u62
        upper, lower = (upper << u(2)) | (lower >> u62), lower << u(2)
        # A fraction above one half: count from the next quadrant, down.
        negative = upper >> u63 == u1
        turns = where(negative, turns + u1, turns)
        # Less by one unit of 2**-126 than the negative.
        upper, lower = where(negative, (~upper, ~lower), (upper, lower))
        zeros = leading_zeros(upper)
        # In two steps: nothing may be shifted by 64.
        upper = (upper << zeros) | (lower >> u1 >> (u63 - zeros))
        lower = lower << zeros
        scale = cast(integer, bias - cast(np.int64, zeros))
        rest = (upper << significant) | (lower >> unused)
        unit = from_bits(scale << integer(mantissa))
        head = cast(number, upper >> unused) * head_scale * unit
        tail = cast(number, rest >> unused) * tail_scale * unit
        product = head * first
        r, correction = fast_two_sum(
            product, fma(head, first, -product) + (head * second + tail * first)
        )
        k, is_mirrored = cast(integer, turns), x < number(0)
        r, correction = where(negative == is_mirrored, (r, correction), (-r, -correction))
        return r, correction, where(is_mirrored, -k, k)

    return reduce_far
