"""Windows: bartlett, blackman, hamming, hann and kaiser.

They are computed in double precision and rounded once. A periodic window of n numbers is the
symmetric one of n + 1 without its last, which is the first of the next period.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.ops.arguments.factories import OPTIONS, Array, finish
from numgrad.ops.signatures.declared import declare

__all__ = [
    "bartlett_window",
    "blackman_window",
    "hamming_window",
    "hann_window",
    "kaiser_window",
]


def _window(
    name: str, length: int, periodic: bool, dtype: Any, shape: Callable[[Array], Array]
) -> Array:
    """Return a window, whose `shape` is a function of places from 0 to 1."""
    wanted = dtype or dtypes.default_dtype()
    if wanted.is_complex:
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{wanted.scalar_name}'")
    if not wanted.is_floating_point:
        raise RuntimeError(
            f"{name} expects floating point dtypes, got: TensorOptions(dtype={wanted.cpp_name}, "
            "device=cpu, layout=Strided (default), requires_grad=false (default), "
            "pinned_memory=false, memory_format=(nullopt))"
        )
    if length < 0:
        raise RuntimeError(
            f"{name} requires non-negative window_length, got window_length={length}"
        )
    if length <= 1:
        return np.ones(length, wanted.numpy)
    places = np.arange(length) / (length if periodic else length - 1)
    return shape(places).astype(wanted.numpy)


def _cosines(places: Array, *weights: float) -> Array:
    """Return the sum of ``weights[k] * cos(2 pi k x)``, whose signs alternate."""
    return sum(
        (-1) ** k * weight * np.cos(2 * math.pi * k * places) for k, weight in enumerate(weights)
    )


@declare(
    f"bartlett_window(int window_length, *, {OPTIONS})",
    f"bartlett_window(int window_length, bool periodic, *, {OPTIONS})",
    method=False,
    finish=finish,
)
def bartlett_window(window_length: int, periodic: bool | None, dtype: Any) -> Array:
    """Return Bartlett's window, a triangle: ``1 - |2 x - 1|`` for x from 0 to 1.

    Raises
    ------
    RuntimeError
        If the length is negative, or the dtype not a floating point one.

    >>> import numgrad as ng
    >>> ng.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window(
        "bartlett_window", window_length, periodic is not False, dtype, lambda x: 1 - abs(2 * x - 1)
    )


@declare(
    f"blackman_window(int window_length, *, {OPTIONS})",
    f"blackman_window(int window_length, bool periodic, *, {OPTIONS})",
    method=False,
    finish=finish,
)
def blackman_window(window_length: int, periodic: bool | None, dtype: Any) -> Array:
    """Return Blackman's window: ``0.42 - 0.5 cos(2 pi x) + 0.08 cos(4 pi x)`` for x from 0 to 1.

    Raises
    ------
    RuntimeError
        If the length is negative, or the dtype not a floating point one.

    >>> import numgrad as ng
    >>> ng.blackman_window(4)[1:]
    tensor([0.3400, 1.0000, 0.3400])
    """
    return _window(
        "blackman_window",
        window_length,
        periodic is not False,
        dtype,
        lambda x: _cosines(x, 0.42, 0.5, 0.08),
    )


@declare(
    f"hamming_window(int window_length, *, {OPTIONS})",
    f"hamming_window(int window_length, bool periodic, *, {OPTIONS})",
    f"hamming_window(int window_length, bool periodic, float alpha, *, {OPTIONS})",
    f"hamming_window(int window_length, bool periodic, float alpha, float beta, *, {OPTIONS})",
    method=False,
    finish=finish,
)
def hamming_window(
    window_length: int, periodic: bool | None, alpha: float | None, beta: float | None, dtype: Any
) -> Array:
    """Return Hamming's window: ``alpha - beta cos(2 pi x)`` for x from 0 to 1.

    Parameters
    ----------
    alpha, beta
        0.54 and 0.46 unless given.

    Raises
    ------
    RuntimeError
        If the length is negative, or the dtype not a floating point one.

    >>> import numgrad as ng
    >>> ng.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    mean, swing = 0.54 if alpha is None else alpha, 0.46 if beta is None else beta
    return _window(
        "hamming_window",
        window_length,
        periodic is not False,
        dtype,
        lambda x: _cosines(x, mean, swing),
    )


@declare(
    f"hann_window(int window_length, *, {OPTIONS})",
    f"hann_window(int window_length, bool periodic, *, {OPTIONS})",
    method=False,
    finish=finish,
)
def hann_window(window_length: int, periodic: bool | None, dtype: Any) -> Array:
    """Return Hann's window: ``sin(pi x)**2`` for x from 0 to 1.

    Raises
    ------
    RuntimeError
        If the length is negative, or the dtype not a floating point one.

    >>> import numgrad as ng
    >>> ng.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window(
        "hann_window",
        window_length,
        periodic is not False,
        dtype,
        lambda x: _cosines(x, 0.5, 0.5),
    )


@declare(
    f"kaiser_window(int window_length, *, {OPTIONS})",
    f"kaiser_window(int window_length, bool periodic, *, {OPTIONS})",
    f"kaiser_window(int window_length, bool periodic, float beta, *, {OPTIONS})",
    method=False,
    finish=finish,
)
def kaiser_window(
    window_length: int, periodic: bool | None, beta: float | None, dtype: Any
) -> Array:
    """Return Kaiser's window: ``I0(beta sqrt(1 - (2 x - 1)**2)) / I0(beta)`` for x from 0 to 1.

    I0 is the modified Bessel function of order 0.

    Parameters
    ----------
    beta
        How steep it is; 12 unless given.

    Raises
    ------
    RuntimeError
        If the length is negative, or the dtype not a floating point one.

    >>> import numgrad as ng
    >>> ng.kaiser_window(4, True, 1.0)
    tensor([0.7898, 0.9450, 1.0000, 0.9450])
    """
    steepness = 12.0 if beta is None else beta
    return _window(
        "kaiser_window",
        window_length,
        periodic is not False,
        dtype,
        lambda x: np.i0(steepness * np.sqrt(1 - (2 * x - 1) ** 2)) / np.i0(steepness),
    )
