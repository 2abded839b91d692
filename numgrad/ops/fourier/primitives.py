"""The three transforms that all others are made of, by what goes in and what comes out.

A transform F is linear, so its derivative along a tangent is the transform of that, and its
gradient the adjoint one: without normalisation F^H is the inverse transform times the length. Of
real numbers only the real part of a gradient counts; and of a half spectrum the elements that
stand for two count twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.graph.tensor import Tensor, fresh
from numgrad.kernels import fourier
from numgrad.kernels.move.memory_order import empty_by_order
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.movement.complex_views import real
from numgrad.ops.movement.padding import constant_pad_nd
from numgrad.ops.movement.slicing import slice_of
from numgrad.ops.pointwise.arithmetic import mul

__all__ = ["complex_to_complex", "complex_to_real", "real_to_complex", "resized"]

Array = np.ndarray[Any, Any]


def _complex_lies(input: Array, dims: tuple[int, ...]) -> Any:
    if not dims:
        return np.empty_like(input, order="K")
    return empty_by_order(input.shape, input.dtype, fourier.order_of(input, dims, 0))


def _half_lies(input: Array, dims: tuple[int, ...], onesided: bool) -> Any:
    shape = list(input.shape)
    if onesided:
        shape[dims[-1]] = shape[dims[-1]] // 2 + 1
    dtype = np.result_type(input.dtype, np.complex64)
    return empty_by_order(shape, dtype, fourier.order_of(input, dims, 1))


def _real_lies(input: Array, dims: tuple[int, ...], last_size: int) -> Any:
    shape = list(input.shape)
    shape[dims[-1]] = last_size
    dtype = np.float32 if input.dtype == np.complex64 else np.float64
    return empty_by_order(shape, dtype, fourier.orders_of_real(input, dims)[1])


complex_to_complex: Primitive = Primitive(
    "fft_c2c",
    "FftC2CBackward0",
    lambda input, dims, normalization, forward: fourier.complex_to_complex(
        input, dims, normalization, forward
    )(input),
    ["input"],
    [
        lambda g, dims, normalization, forward: complex_to_complex.apply(
            g, dims=dims, normalization=normalization, forward=not forward
        )
    ],
    quick=fourier.complex_to_complex,
    linear=True,
    lies=_complex_lies,
    samples=[
        lambda make: (_of_complex, [make(3), make(3)], {"dims": (0,), "normalization": 0}),
        lambda make: (_of_complex, [make(2, 3), make(2, 3)], {"dims": (1, 0), "normalization": 1}),
        lambda make: (_of_complex, [make(2, 4), make(2, 4)], {"dims": (1,), "normalization": 2}),
    ],
)


def _of_real_rule(
    g: Tensor, input_shape: Any, dims: tuple[int, ...], normalization: int, onesided: bool
) -> Any:
    """Return the real part of the adjoint transform, to which the missing half gives nothing."""
    if onesided:
        g = resized(g, {dims[-1]: input_shape[dims[-1]]})
    whole = complex_to_complex.apply(g, dims=dims, normalization=normalization, forward=False)
    return real(whole)


real_to_complex: Primitive = Primitive(
    "fft_r2c",
    "FftR2CBackward0",
    lambda input, dims, normalization, onesided: fourier.real_to_complex(
        input, dims, normalization, onesided
    )(input),
    ["input"],
    [_of_real_rule],
    quick=fourier.real_to_complex,
    linear=True,
    lies=_half_lies,
    samples=[
        lambda make: (_of_real, [make(4)], {"dims": (0,), "normalization": 0, "onesided": True}),
        lambda make: (_of_real, [make(2, 3)], {"dims": (0, 1), "normalization": 1}),
        lambda make: (_of_real, [make(2, 3)], {"dims": (1, 0), "normalization": 2}),
        lambda make: (_of_real, [make(3, 2)], {"dims": (0,), "normalization": 1, "onesided": True}),
    ],
)


def _to_real_rule(g: Tensor, dims: tuple[int, ...], normalization: int, last_size: int) -> Any:
    """Return the half transform, with those elements twice that stand for two."""
    half = real_to_complex.apply(g, dims=dims, normalization=normalization, onesided=True)
    kept, ndim = last_size // 2 + 1, g._array.ndim
    weights = np.ones(kept, g._array.dtype)
    weights[1 : 1 + last_size - kept] = 2
    return mul(half, fresh(weights.reshape((kept,) + (1,) * (ndim - 1 - dims[-1]))))


complex_to_real: Primitive = Primitive(
    "fft_c2r",
    "FftC2RBackward0",
    lambda input, dims, normalization, last_size: fourier.complex_to_real(
        input, dims, normalization, last_size
    )(input),
    ["input"],
    [_to_real_rule],
    quick=fourier.complex_to_real,
    linear=True,
    lies=_real_lies,
    samples=[
        lambda make: (_to_real, [make(3), make(3)], {"dims": (0,), "last_size": 4}),
        lambda make: (_to_real, [make(3), make(3)], {"dims": (0,), "last_size": 5}),
        lambda make: (_to_real, [make(3, 2), make(3, 2)], {"dims": (1, 0), "last_size": 4}),
        lambda make: (_to_real, [make(2, 2), make(2, 2)], {"dims": (0, 1), "last_size": 3}),
    ],
)


# --- what samples call: there are no complex numbers in them -----------------------------------


def _of_complex(a: Tensor, b: Tensor, dims: Any, normalization: int) -> Any:
    result = complex_to_complex.apply(
        a + b * 1j, dims=dims, normalization=normalization, forward=True
    )
    return result.real * 2 + result.imag


def _of_real(a: Tensor, dims: Any, normalization: int, onesided: bool = False) -> Any:
    result = real_to_complex.apply(a, dims=dims, normalization=normalization, onesided=onesided)
    return result.real * 2 + result.imag


def _to_real(a: Tensor, b: Tensor, dims: Any, last_size: int) -> Any:
    return complex_to_real.apply(a + b * 1j, dims=dims, normalization=1, last_size=last_size)


def resized(input: Tensor, sizes: dict[int, int]) -> Tensor:
    """Return a tensor whose dims end with zeros, or earlier, so that they have some sizes."""
    ndim = input._array.ndim
    pad, missing = [0] * (2 * ndim), False
    for dim, size in sizes.items():
        length = input._array.shape[dim]
        if size < length:
            input = slice_of(input, dim, 0, size, 1)
        elif size > length:
            pad[2 * (ndim - 1 - dim) + 1] = size - length
            missing = True
    if not missing:
        return input
    while not any(pad[-2:]):
        del pad[-2:]
    padded: Tensor = constant_pad_nd(input, pad, 0.0)
    return padded
