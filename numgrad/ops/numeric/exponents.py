"""Mantissas, exponents and neighbours of floating point numbers: frexp, ldexp, nextafter."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.graph.tensor import Tensor
from numgrad.kernels.move.memory_order import empty_like
from numgrad.ops.core.declare import binary
from numgrad.ops.core.domains import POSITIVE, REAL, apart
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.core.out_argument import check_outs, write_result
from numgrad.ops.core.places import like_input
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.promotion import result_dtype
from numgrad.ops.core.return_types import return_type
from numgrad.ops.pointwise.complex import conj
from numgrad.ops.pointwise.exponential import exp2
from numgrad.ops.pointwise.selection import where
from numgrad.ops.signatures.declared import declare

__all__ = ["frexp", "ldexp", "nextafter"]

Array = np.ndarray[Any, Any]


# --- times a power of two ------------------------------------------------------------------------


def _with_powers(arrays: list[Array]) -> list[Array]:
    """Return what decides how a result lies: PyTorch's powers of two lie row by row."""
    base, *exponents = arrays
    return [base, *[np.empty(each.shape, each.dtype) for each in exponents]]


def _without_gaps(arrays: list[Array]) -> list[Array]:
    """Return what decides how a result lies: PyTorch's exponents are cast to new memory."""
    base, *exponents = arrays
    return [base, *map(like_input, exponents)]


_LDEXP: ElementwisePrimitive = binary(
    "ldexp",
    (lambda g, y, other: _LDEXP(g, other), None),
    (REAL, REAL),
    kind="float",
    accepts="f",
    kernel_name="ldexp_cpu_exp",
    deciding=_without_gaps,
    gradients_lie={"input": lambda g: g * 1},
    doc="Return input * 2**other for whole numbers `other`, rounded once.",
)
_LDEXP.node_class._derived = None  # PyTorch's has an edge for exponents, whole ones too
_LDEXP_OF_POWER = binary(
    "ldexp_of_power",
    (
        lambda g, other: g * conj(exp2(other)),
        lambda g, y: g * conj(y) * math.log(2),
    ),
    (REAL, REAL),
    formula=lambda input, other: input * exp2(other),
    kind="float",
    accepts="fc",
    node="LdexpBackward0",
    function_name="ldexp",
    deciding=_with_powers,
    gradients_lie={"input": lambda g: g * 1},
    doc="Return input * 2**other.",
)


@declare(
    "ldexp(Tensor input, Tensor other, *, Tensor? out=None)",
    inplace=True,
    dispatched=True,
)
def ldexp(input: Tensor, other: Tensor, out: Tensor | None) -> Tensor:
    """Return ``input * 2**other``.

    Derivative: 2**other for `input`, and y ln 2 for `other`, unless that is of integers. (PyTorch's
    2**other is one of integers then, 0 for negative ones.) Mirrors ``torch.ldexp``.

    Parameters
    ----------
    input : tensor
        Integers and bools become the default floating point dtype.
    other : tensor
        With integers, floating point numbers are rounded once, whatever 2**other alone would be.
        Other numbers are exponents as well.

    Raises
    ------
    NotImplementedError
        If floating point numbers have bools for exponents.
    RuntimeError
        If `out` is of integers.

    >>> import numgrad as ng
    >>> ng.ldexp(ng.tensor([1.0, 3.0]), ng.tensor([3, -1]))
    tensor([8.0000, 1.5000])
    """
    whole = other._array.dtype.kind in "iub" and input._array.dtype.kind == "f"
    if whole and other._array.dtype.kind == "b":
        raise NotImplementedError("\"ldexp_cpu_exp\" not implemented for 'Bool'")
    if out is not None and out._array.dtype.kind in "iub":
        raise RuntimeError(
            f"ldexp can't be cast to the desired output type {out.dtype.scalar_name}"
        )
    result: Tensor = (_LDEXP if whole else _LDEXP_OF_POWER)(input, other, out=out)
    return result


# --- mantissa and exponent -----------------------------------------------------------------------


@silent
def _frexp(array: Array) -> tuple[Array, Array]:
    mantissa, exponent = like_input(array), empty_like(array, np.int32)
    np.frexp(array, mantissa, exponent)
    exponent[~np.isfinite(array)] = 0  # C leaves open what it is
    return mantissa, exponent


_FREXP_RESULT: Any = return_type("frexp", "mantissa", "exponent")
_FREXP: Primitive = Primitive(
    "frexp",
    "FrexpBackward0",
    _frexp,
    ["input"],
    [lambda g0, exponent: _LDEXP(g0, -exponent)],
    outputs=("mantissa", "exponent"),
    constant=("exponent",),
    lies=like_input,
    takes_half=True,
    samples=[
        lambda make: (
            lambda x: frexp(x).mantissa,
            [make(2, 3, low=1.1, high=1.9)],
            {},
        )
    ],
)


@declare("frexp(Tensor input, *, Tensor[]? out=None)", dispatched=True)
def frexp(input: Tensor, out: Any) -> Any:
    """Return mantissas, in size from 1/2 to 1, and exponents such that x = mantissa * 2**exponent.

    The exponent of 0, infinity and nan is 0. The gradient is that of the mantissa times
    2**-exponent. Mirrors ``torch.frexp``.

    Parameters
    ----------
    input : floating point tensor

    Returns
    -------
    mantissa : tensor
        Of the input's dtype.
    exponent : int32 tensor

    Raises
    ------
    RuntimeError
        If the input is not floating point, or `out` of other dtypes.

    >>> import numgrad as ng
    >>> ng.frexp(ng.tensor([5.0, 0.25]))
    torch.return_types.frexp(
    mantissa=tensor([0.6250, 0.5000]),
    exponent=tensor([ 3, -1], dtype=torch.int32))
    """
    if input._array.dtype.kind != "f":
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    found = _FREXP_RESULT(*_FREXP.apply(input))
    if out is not None:
        check_outs("frexp", out, 2)
        for name, result, target in zip(found._fields, found, out, strict=True):
            if target._array.dtype != result._array.dtype:
                verb = (
                    "to have int dtype"
                    if name == "exponent"
                    else f"to have dtype {result.dtype.cpp_name}"
                )
                raise RuntimeError(
                    f"torch.frexp() expects {name} {verb} but got {target.dtype.cpp_name}"
                )
    return write_result("frexp", found, out)


# --- the number beside ---------------------------------------------------------------------------


def _beside(name: str) -> ElementwisePrimitive:
    return binary(
        name,
        (
            lambda g, input, other: where(input == other, 0, g),
            lambda g, input, other: g * 0,
        ),
        apart(POSITIVE),
        accepts="f",
        node="NextafterBackward0",
        function_name="nextafter",
        kernel_name="nextafter_cpu",
        doc="Return the number beside `input` in the direction of `other`.",
    )


_NEXTAFTER, _NEXTAFTER_HALF = _beside("nextafter"), _beside("nextafter_half")
_HALF = np.dtype(np.float16)


@declare(
    "nextafter(Tensor input, Tensor other, *, Tensor? out=None)", inplace=True, dispatched=True
)
def nextafter(input: Tensor, other: Tensor, out: Tensor | None) -> Tensor:
    """Return the numbers of the dtype beside `input`, in the direction of `other`.

    Where both are equal it is `other`. The gradient of `input` is g, and 0 where both are equal;
    that of `other` is 0. Mirrors ``torch.nextafter``.

    Parameters
    ----------
    input, other : floating point tensor
        They broadcast and promote.

    Raises
    ------
    NotImplementedError
        If they are not floating point.

    >>> import numgrad as ng
    >>> ng.nextafter(ng.tensor([1.0]), ng.tensor([2.0])) - 1
    tensor([1.1921e-07])
    """
    is_half = result_dtype([input, other]).numpy == _HALF
    result: Tensor = (_NEXTAFTER_HALF if is_half else _NEXTAFTER)(input, other, out=out)
    return result
