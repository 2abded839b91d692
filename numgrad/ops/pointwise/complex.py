"""Complex numbers: conj, and what the rules of other families need of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.codegen.expression import Symbol, literal
from numgrad.graph.inplace import bump_version
from numgrad.graph.tensor import Tensor, fresh
from numgrad.graph.upward import upward
from numgrad.kernels.move.loop_order import copy_order
from numgrad.kernels.move.memory_order import is_by_rows
from numgrad.ops.core.declare import unary
from numgrad.ops.core.domains import NONZERO, REAL
from numgrad.ops.core.out_argument import (
    SAME_DTYPE,
    check_out,
    check_out_dtype,
    check_out_overlap,
    write,
)
from numgrad.ops.core.places import laid_out
from numgrad.ops.movement.complex_views import real as real_view
from numgrad.ops.pointwise.selection import where
from numgrad.ops.signatures.declared import declare
from numgrad.ops.signatures.published import publish

__all__ = ["absolute", "angle", "conj", "is_complex", "real", "sgn", "zero_of"]


def _declare_conj(name: str, node: str, accepts: str = "c") -> Any:
    return unary(
        name,
        lambda g: conj(g),
        REAL,
        formula=lambda input: conj(input),
        kind="same",
        accepts=accepts,
        node=node,
        out_differs=SAME_DTYPE,
        deciding=lambda arrays: copy_order(arrays[0]),
        deciding_out=lambda arrays: arrays,
        function_name=name.removesuffix("_in_place"),
        doc="Return the complex conjugate in new memory. The cotangent is conjugated.",
    )


_conj = _declare_conj("conj", "ConjBackward0")
_conj_physical = _declare_conj("conj_physical", "ConjPhysicalBackward0")
_conj_physical_in_place = _declare_conj("conj_physical_in_place", "ConjPhysicalBackward1", "fc")


@declare("conj(operand input)")
def conj(input: Any) -> Any:
    """Return the complex conjugate; a real tensor is returned as it is.

    The cotangent is conjugated.

    Notes
    -----
    PyTorch returns a view with a conjugate bit; here the conjugate is new memory.

    >>> import numgrad as ng
    >>> ng.conj(ng.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    if isinstance(input, Symbol):
        return Symbol.apply("conj", input) if input.is_complex else input
    if isinstance(input, Tensor):
        return _conj(input) if input._array.dtype.kind == "c" else input
    return input.conjugate()


@declare("conj_physical(Tensor input, *, Tensor? out=None)")
def conj_physical(input: Tensor, out: Tensor | None) -> Tensor:
    """Return the complex conjugate in new memory; a real tensor is returned as it is.

    The cotangent is conjugated.

    >>> import numgrad as ng
    >>> ng.conj_physical(ng.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    return _conjugated(_conj_physical, input, out)


@declare(
    "conj_physical(Tensor input, *, Tensor? out=None)",
    function=False,
    method=False,
    inplace=True,
    dispatched=True,
)
def conj_physical_in_place(input: Tensor, out: Tensor | None) -> Tensor:
    """Return what ``input.conj_physical_()`` writes; see `conj_physical`.

    >>> import numgrad as ng
    >>> ng.tensor([1 + 2j]).conj_physical_()
    tensor([1.-2.j])
    """
    return _conjugated(_conj_physical_in_place, input, out)


def _conjugated(primitive: Any, input: Tensor, out: Tensor | None) -> Tensor:
    if input._array.dtype.kind not in primitive.accepts:
        if out is None:
            return input
        if out is input:
            bump_version(out)
            return out
        check_out("conj_physical", out)
        check_out_overlap(out, (), (input,))
        check_out_dtype(SAME_DTYPE, out, input.dtype)
        return write(input._array, out, [input._array], warns=False)
    result: Tensor = primitive(input, out=out)
    return result


@declare("resolve_conj(Tensor input)")
def resolve_conj(input: Tensor) -> Tensor:
    """Return the tensor itself: no tensor is the conjugate of others' memory.

    >>> import numgrad as ng
    >>> ng.resolve_conj(ng.tensor([1 + 2j]).conj())
    tensor([1.-2.j])
    """
    return input


@declare("resolve_neg(Tensor input)")
def resolve_neg(input: Tensor) -> Tensor:
    """Return the tensor itself: no tensor is the negative of others' memory.

    >>> import numgrad as ng
    >>> ng.resolve_neg(ng.tensor([1 + 2j]).conj().imag)
    tensor([-2.])
    """
    return input


@declare("is_conj(Tensor input)")
def is_conj(input: Tensor) -> bool:
    """Return False: conjugates are in memory of their own, see `conj`.

    >>> import numgrad as ng
    >>> ng.is_conj(ng.tensor([1 + 2j]).conj())
    False
    """
    return False


@declare("is_neg(Tensor input)")
def is_neg(input: Tensor) -> bool:
    """Return False: negatives are in memory of their own.

    >>> import numgrad as ng
    >>> ng.is_neg(ng.tensor([1 + 2j]).conj().imag)
    False
    """
    return False


def zero_of(g: Any) -> Any:
    """Return 0 in the shape and dtype of `g`: the gradient of a piecewise constant operation."""
    if isinstance(g, Symbol):
        return literal(0.0)
    array = g._array
    zeros = fresh(np.zeros(array.shape, array.dtype))
    lies_so = type(array) is np.ndarray and is_by_rows(array.shape, (array,))
    return zeros if lies_so else laid_out(zeros, g)


def is_complex(value: Any) -> bool:
    """Whether a symbol or tensor has complex values."""
    return value.is_complex if isinstance(value, Symbol) else value._array.dtype.kind == "c"


def real(value: Any) -> Any:
    """Return the real part of a symbol, or that of a tensor as a view."""
    if isinstance(value, Symbol):
        return Symbol.apply("real", value) if value.is_complex else value
    return real_view(value)


def _sgn_rule(g: Any, y: Any, input: Any) -> Any:
    if not is_complex(input):
        return zero_of(g)
    size = absolute(input)
    tangential = (g - real(g * conj(y)) * y) / where(size == 0, 1, size)
    return where(size == 0, zero_of(g), tangential)


sgn = publish(
    unary(
        "sgn",
        _sgn_rule,
        NONZERO,
        gradients_lie={"input": lambda g, input: g * input if is_complex(input) else 0},
        formula=lambda input: Symbol.apply("sgn" if input.is_complex else "sign", input),
        kind="same",
        accepts="fciub",
        out_differs=SAME_DTYPE,
        doc="Return x / abs(x), 0 at 0: the sign, and for complex numbers the direction.\n\n"
        "Derivative: 0 for real x; (g - Re(conj(y) g) y) / abs(x) for complex x, 0 at 0.",
        example="ng.sgn(ng.tensor([3 + 4j, 0j]))\ntensor([0.6000+0.8000j, 0.0000+0.0000j])",
    )
)

absolute = publish(
    unary(
        "abs",
        lambda g, input: g * sgn(input),
        NONZERO,
        # A real cotangent is made complex first, row by row where it is one number for all.
        gradients_lie={"input": lambda g, input: g * 1 * input if is_complex(input) else g * input},
        kind="real",
        accepts="fciu",
        out_differs=SAME_DTYPE,
        deciding=lambda arrays: copy_order(arrays[0]) if arrays[0].dtype.kind == "c" else arrays,
        doc="Return the absolute value, real for complex x.\n\nDerivative: sgn(x), 0 at 0.",
        example="ng.abs(ng.tensor([-1.5, 2.0]))\ntensor([1.5000, 2.0000])",
    ),
    "absolute",
    inplace=False,
)


@declare(
    "abs(Tensor input, *, Tensor? out=None)",
    function=False,
    method=False,
    inplace=True,
    aliases=("absolute",),
    dispatched=True,
)
def absolute_in_place(input: Tensor, out: Tensor | None) -> Tensor:
    """Return what ``input.abs_()`` writes; see `abs`.

    Raises
    ------
    RuntimeError
        If the tensor is complex: its absolute values are real.

    >>> import numgrad as ng
    >>> ng.tensor([-1.5, 2.0]).abs_()
    tensor([1.5000, 2.0000])
    """
    if input._array.dtype.kind == "c":
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    result: Tensor = absolute(input, out=out)
    return result


def _angle_rule(g: Any, input: Any) -> Any:
    if not is_complex(input):
        return zero_of(g)
    size = absolute(input)
    nothing = size == 0
    size = where(nothing, 1, size)
    return where(nothing, 0, g * _times_i(input / size) / size)


def _times_i(z: Any) -> Any:
    """Return i z; a formula over a real cotangent has no complex constants."""
    if isinstance(z, Symbol):
        return Symbol("complex_of", (-Symbol.apply("imag", z), real(z)), is_complex=True)
    return z * 1j


_ANGLE = unary(
    "angle",
    _angle_rule,
    NONZERO,
    gradients_lie={"input": lambda g, input: input * 1},
    formula=lambda input: (
        Symbol.apply("angle", input)
        if input.is_complex
        else where(input < 0, math.pi, where(input == input, 0, input))
    ),
    kind="real",
    deciding=lambda arrays: [array for array in arrays if array.dtype.kind != "c"],
    doc="Return the angle.",
)


@declare("angle(Tensor input, *, Tensor? out=None)")
def angle(input: Tensor, out: Tensor | None) -> Tensor:
    """Return the angle of a complex number, from -pi to pi; 0 or pi for a real one.

    The gradient of a complex input is i g x / abs(x)**2, of a real one 0.

    >>> import numgrad as ng
    >>> ng.angle(ng.tensor([1j, -1 + 0j]))
    tensor([1.5708, 3.1416])
    """
    if input._array.dtype.kind in "iub":
        input = upward.cast(input, dtypes.default_dtype().numpy)
    result: Tensor = _ANGLE(input, out=out)
    return result
