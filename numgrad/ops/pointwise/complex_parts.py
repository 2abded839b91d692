"""complex and polar: complex tensors from real ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from numgrad.codegen.expression import Symbol
from numgrad.graph.tensor import Tensor
from numgrad.kernels.move.memory_order import empty_for
from numgrad.kernels.pointwise.elementwise import Elementwise
from numgrad.ops.arguments.factories import Array
from numgrad.ops.core.out_argument import write_result
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.promotion import broadcast_shapes
from numgrad.ops.movement.complex_views import imag, real
from numgrad.ops.pointwise.complex import conj
from numgrad.ops.signatures.declared import declare

__all__ = ["complex_", "polar"]


def _complex_of(real: Symbol, imag: Symbol) -> Symbol:
    """Return a complex symbol; unlike ``real + 1j * imag`` it keeps infinities and signs of 0."""
    return Symbol("complex_of", (real, imag), is_complex=True)


_JOINED = Elementwise(
    "complex", ["real", "imag"], lambda given: [_complex_of(given["real"], given["imag"])]
)
_FROM_POLAR = Elementwise(
    "polar",
    ["abs", "angle"],
    lambda given: [
        _complex_of(*(given["abs"] * Symbol.apply(name, given["angle"]) for name in ("cos", "sin")))
    ],
)


def _joined(kernel: Callable[..., list[Array]], first: Array, second: Array) -> Array:
    """Return the complex array that a kernel makes of two real ones."""
    shape = broadcast_shapes([first.shape, second.shape])
    (joined,) = kernel(shape, [first, second], [_joined_dtype(first)])
    return joined


def _joined_dtype(array: Array) -> np.dtype[Any]:
    return np.result_type(array.dtype, np.complex64)


def _memory_of_joined(first: Array, second: Array) -> Array:
    shape = broadcast_shapes([first.shape, second.shape])
    return empty_for(shape, _joined_dtype(first), [first, second])


def _join(real: Array, imag: Array) -> Array:
    return _joined(_JOINED, real, imag)


def _from_polar(abs: Array, angle: Array) -> Array:
    return _joined(_FROM_POLAR, abs, angle)


_COMPLEX = Primitive(
    "complex",
    "ComplexBackward0",
    _join,
    ["real", "imag"],
    [lambda g: real(g), lambda g: imag(g)],
    quick=lambda real, imag: partial(_joined, _JOINED.prepared_once()),
    lies=lambda real, imag: _memory_of_joined(real, imag),
    samples=[
        lambda make: (complex_, [make(2, 3), make(3)], {}),
        lambda make: (complex_, [make(), make()], {}),
        lambda make: (complex_, [make(0, 2), make(2)], {}),
    ],
)
_POLAR = Primitive(
    "polar",
    "PolarBackward0",
    _from_polar,
    ["abs", "angle"],
    [
        lambda g, angle: real(conj(g) * polar(angle * 0 + 1, angle)),
        lambda g, y: real(conj(g) * (y * 1j)),
    ],
    quick=lambda abs, angle: partial(_joined, _FROM_POLAR.prepared_once()),
    lies=lambda abs, angle: _memory_of_joined(abs, angle),
    samples=[
        lambda make: (polar, [make(2, 3, low=0.5), make(3)], {}),
        lambda make: (polar, [make(), make()], {}),
        lambda make: (polar, [make(0, 2), make(2)], {}),
    ],
)


def _written(function: str, result: Tensor, out: Tensor | None) -> Any:
    """Return the result, or write it to `out`, which has to be of its dtype."""
    if isinstance(out, Tensor) and out._array.dtype != result._array.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {result.dtype.scalar_name} but got scalar type "
            f"{out.dtype.scalar_name} for argument 'out'"
        )
    return write_result(function, result, out)


def _check_parts(first: Tensor, second: Tensor) -> None:
    """Raise unless both parts are real floating point tensors of one dtype that broadcast."""
    kinds = (first.dtype.scalar_name, second.dtype.scalar_name)
    if not (first.dtype.is_floating_point and second.dtype.is_floating_point):
        raise RuntimeError(
            "Expected both inputs to be Half, Float or Double tensors but got "
            f"{kinds[0]} and {kinds[1]}"
        )
    if kinds[0] != kinds[1]:
        raise RuntimeError(
            f"Expected object of scalar type {kinds[0]} but got scalar type {kinds[1]} for second "
            "argument"
        )
    broadcast_shapes([first._array.shape, second._array.shape])


@declare("complex(Tensor real, Tensor imag, *, Tensor? out=None)", method=False, dispatched=True)
def complex_(real: Tensor, imag: Tensor, out: Tensor | None) -> Tensor:
    """Return a complex tensor of its real and its imaginary part.

    The gradients of the parts are the parts of g.

    Parameters
    ----------
    real, imag
        Real floating point tensors of one dtype; they are broadcast.
    out
        Where to put the result.

    Raises
    ------
    RuntimeError
        If the dtypes differ or are not real floating point ones.

    >>> import numgrad as ng
    >>> ng.complex(ng.tensor([1.0, 2.0]), ng.tensor([3.0, 4.0]))
    tensor([1.+3.j, 2.+4.j])
    """
    _check_parts(real, imag)
    return _written("complex", _COMPLEX.apply(real, imag), out)


@declare("polar(Tensor abs, Tensor angle, *, Tensor? out=None)", method=False, dispatched=True)
def polar(abs: Tensor, angle: Tensor, out: Tensor | None) -> Tensor:
    """Return the complex numbers of given lengths and angles, ``abs * exp(1j * angle)``.

    The gradient of `abs` is Re(g exp(-1j angle)), that of `angle` Re(g conj(1j y)).

    Parameters
    ----------
    abs, angle
        Real floating point tensors of one dtype; they are broadcast.
    out
        Where to put the result.

    Raises
    ------
    RuntimeError
        If the dtypes differ or are not real floating point ones.

    >>> import numgrad as ng
    >>> ng.polar(ng.tensor([1.0, 2.0]), ng.tensor([0.0, 0.0]))
    tensor([1.+0.j, 2.+0.j])
    """
    _check_parts(abs, angle)
    return _written("polar", _POLAR.apply(abs, angle), out)
