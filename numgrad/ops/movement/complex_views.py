"""Complex tensors as views of real ones, with a last dim of the two parts, and the reverse."""

from __future__ import annotations

import numpy as np

from numgrad.graph.tensor import Tensor
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.movement.copies import contiguous
from numgrad.ops.movement.slicing import select
from numgrad.ops.signatures.declared import declare

__all__ = [
    "REAL_DTYPES",
    "VIEW_AS_COMPLEX",
    "VIEW_AS_REAL",
    "imag",
    "real",
    "view_as_complex",
    "view_as_real",
]

_COMPLEX = {np.dtype("f4"): np.dtype("c8"), np.dtype("f8"): np.dtype("c16")}
REAL_DTYPES = {dtype: real for real, dtype in _COMPLEX.items()}

VIEW_AS_REAL: Primitive = Primitive(
    "view_as_real",
    "ViewAsRealBackward0",
    lambda array: array[..., None].view(REAL_DTYPES[array.dtype]),
    ["input"],
    [lambda g: view_as_complex(contiguous(g))],
    view=True,
    linear=True,
    samples=[
        lambda make: (lambda x: view_as_real(x * (1 + 2j)), [make(2)], {}),
        lambda make: (lambda x: view_as_real(x * (1 + 2j)), [make()], {}),
        lambda make: (lambda x: view_as_real(x * (1 + 2j)), [make(0)], {}),
    ],
)
VIEW_AS_COMPLEX: Primitive = Primitive(
    "view_as_complex",
    "ViewAsComplexBackward0",
    lambda array: array.view(_COMPLEX[array.dtype])[..., 0],
    ["input"],
    [lambda g: view_as_real(contiguous(g))],
    view=True,
    linear=True,
    samples=[
        lambda make: (view_as_complex, [make(3, 2)], {}),
        lambda make: (view_as_complex, [make(2)], {}),
        lambda make: (view_as_complex, [make(0, 2)], {}),
    ],
)


@declare("view_as_real(Tensor input)", method=False, dispatched=True)
def view_as_real(input: Tensor) -> Tensor:
    """Return a complex tensor as a view of real numbers, with a last dim (real, imaginary).

    The gradient of the input is g, viewed as complex.

    Raises
    ------
    RuntimeError
        If the tensor is not complex.

    >>> import numgrad as ng
    >>> ng.view_as_real(ng.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    if input._array.dtype.kind != "c":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    result: Tensor = VIEW_AS_REAL.apply(input)
    return result


@declare("view_as_complex(Tensor input)", method=False, dispatched=True)
def view_as_complex(input: Tensor) -> Tensor:
    """Return a real tensor with a last dim of size 2 as a view of complex numbers.

    The gradient of the input is g, viewed as real.

    Raises
    ------
    RuntimeError
        If the tensor is not floating point, or its last dim does not have size 2 and stride 1.

    >>> import numgrad as ng
    >>> ng.view_as_complex(ng.tensor([[1.0, 2.0]]))
    tensor([1.+2.j])
    """
    array = input._array
    if array.dtype not in _COMPLEX:
        if array.dtype.kind == "f":
            raise RuntimeError(
                "view_as_complex: there are no complex numbers of two float16, because NumPy has "
                "none: view input.float()"
            )
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a "
            f"tensor of scalar type: {input.dtype.scalar_name}"
        )
    if array.ndim == 0:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if array.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if array.size and array.strides[-1] != array.itemsize:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if array.size and any(step % (2 * array.itemsize) for step in array.strides[:-1]):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    result: Tensor = VIEW_AS_COMPLEX.apply(input)
    return result


@declare("real(Tensor input)", method=False)
def real(input: Tensor) -> Tensor:
    """Return the real part as a view; a real tensor is returned as it is.

    The gradient of the input is g.

    >>> import numgrad as ng
    >>> ng.real(ng.tensor([1 + 2j]))
    tensor([1.])
    """
    if input._array.dtype.kind != "c":
        return input
    result: Tensor = select(VIEW_AS_REAL.apply(input), -1, 0)
    return result


@declare("imag(Tensor input)", method=False, dispatched=True)
def imag(input: Tensor) -> Tensor:
    """Return the imaginary part of a complex tensor as a view.

    The gradient of the input is i g.

    Raises
    ------
    RuntimeError
        If the tensor is real.

    >>> import numgrad as ng
    >>> ng.imag(ng.tensor([1 + 2j]))
    tensor([2.])
    """
    if input._array.dtype.kind != "c":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    result: Tensor = select(VIEW_AS_REAL.apply(input), -1, 1)
    return result
