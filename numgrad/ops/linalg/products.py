"""Products of matrices and vectors, each one BLAS call: dot, vdot, mv, mm and bmm.

The rules are those of M. B. Giles, "An extended collection of matrix derivative results for
forward and reverse mode algorithmic differentiation" (2008), with adjoints for his transposes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.base.float_errors import restore, silence
from numgrad.graph.tensor import Tensor
from numgrad.ops.arguments.factories import Array
from numgrad.ops.core.out_argument import write_result
from numgrad.ops.core.places import by_columns
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.linalg.permuting import transpose
from numgrad.ops.movement.shape import reshape
from numgrad.ops.pointwise.arithmetic import mul
from numgrad.ops.pointwise.complex import conj
from numgrad.ops.signatures.declared import declare

__all__ = [
    "adjoint_of",
    "bmm",
    "check_batches",
    "check_matrices",
    "check_matrix_vector",
    "dot",
    "matrix_product",
    "mm",
    "mv",
    "outer_product",
    "vdot",
    "vector_product",
]


def adjoint_of(input: Tensor) -> Tensor:
    """Return the conjugate transpose of matrices."""
    return transpose(conj(input), -2, -1)


def outer_product(input: Tensor, other: Tensor) -> Tensor:
    """Return the matrix of the products of two vectors' elements."""
    product: Tensor = mul(reshape(input, (input._array.size, 1)), other)
    return product


def vector_product(input: Array, tensor: Array) -> Array:
    """Return the product of two vectors, which NumPy gives as a number."""
    before = silence()
    try:
        return np.asarray(input.dot(tensor))
    finally:
        restore(before)


def _quick_vector_product(input: Array, tensor: Array) -> Callable[..., Array] | None:
    """Return what multiplies vectors like these into memory that is there."""
    dtype, empty = input.dtype, np.empty
    if tensor.dtype != dtype:
        return None

    def run(input: Array, tensor: Array) -> Array:
        result = empty((), dtype)
        before = silence()
        try:
            input.dot(tensor, result)  # which returns a number
        finally:
            restore(before)
        return result

    return run


def _quick_matrix_product(input: Array, other: Array) -> Callable[..., Array] | None:
    """Return what multiplies matrices that lie as these do."""
    if input.ndim == 2 and other.ndim <= 2:
        function: Callable[..., Array] = np.ndarray.dot
    elif _for_blas(input) is input and _for_blas(other) is other:
        function = np.matmul
    else:
        return None

    def run(input: Array, other: Array) -> Array:
        before = silence()
        try:
            return function(input, other)
        finally:
            restore(before)

    return run


def _for_blas(array: Array) -> Array:
    """Return matrices whose memory BLAS can read; NumPy would multiply others in a slow loop."""
    size = array.itemsize
    rows, columns = array.strides[-2:]
    height, width = array.shape[-2:]
    by_rows = columns == size and rows >= width * size
    by_columns = rows == size and columns >= height * size
    return array if by_rows or by_columns else np.ascontiguousarray(array)


def matrix_product(input: Array, other: Array) -> Array:
    """Return the products of matrices, of which there may be any number, or of one and a vector."""
    before = silence()
    try:
        if input.ndim == 2 and other.ndim <= 2:
            # It copies where BLAS needs that. The function of that name would first ask what else
            # than arrays it was given.
            product: Array = input.dot(other)
            return product
        return np.matmul(_for_blas(input), _for_blas(other))
    finally:
        restore(before)


_DOT = Primitive(
    "dot",
    "DotBackward0",
    vector_product,
    ["input", "tensor"],
    [lambda g, tensor: g * conj(tensor), lambda g, input: g * conj(input)],
    quick=_quick_vector_product,
    samples=[
        lambda make: (dot, [make(3), make(3)], {}),
        lambda make: (dot, [make(0), make(0)], {}),
    ],
)
_VDOT = Primitive(
    "vdot",
    "VdotBackward0",
    lambda input, other: np.asarray(np.vdot(input, other)),  # which has nothing to say of numbers
    ["input", "other"],
    [lambda g, other: conj(g) * other, lambda g, input: g * input],
    samples=[
        lambda make: (vdot, [make(3), make(3)], {}),
        lambda make: (vdot, [make(0), make(0)], {}),
    ],
)
_MV = Primitive(
    "mv",
    "MvBackward0",
    matrix_product,
    ["input", "vec"],
    [
        lambda g, vec: outer_product(g, conj(vec)),
        lambda g, input: mv(adjoint_of(input), g),
    ],
    quick=_quick_matrix_product,
    samples=[
        lambda make: (mv, [make(2, 3), make(3)], {}),
        lambda make: (mv, [make(2, 0), make(0)], {}),
        lambda make: (mv, [make(0, 2), make(2)], {}),
    ],
)
_MM = Primitive(
    "mm",
    "MmBackward0",
    matrix_product,
    ["input", "mat2"],
    [
        lambda g, mat2, input_lies: by_columns(mm(g, adjoint_of(mat2)), input_lies),
        lambda g, input, mat2_lies: by_columns(mm(adjoint_of(input), g), mat2_lies),
    ],
    quick=_quick_matrix_product,
    samples=[
        lambda make: (mm, [make(2, 3), make(3, 4)], {}),
        lambda make: (mm, [make(2, 0), make(0, 3)], {}),
        lambda make: (mm, [make(0, 2), make(2, 3)], {}),
    ],
)
_BMM = Primitive(
    "bmm",
    "BmmBackward0",
    matrix_product,
    ["input", "mat2"],
    [
        lambda g, mat2: bmm(g, adjoint_of(mat2)),
        lambda g, input: bmm(adjoint_of(input), g),
    ],
    quick=_quick_matrix_product,
    samples=[
        lambda make: (bmm, [make(2, 2, 3), make(2, 3, 2)], {}),
        lambda make: (bmm, [make(0, 2, 3), make(0, 3, 2)], {}),
        lambda make: (bmm, [make(2, 2, 0), make(2, 0, 3)], {}),
    ],
)
# What PyTorch's kernels multiply; bools and the wider unsigned integers are not among it.
_REFUSED = frozenset(map(np.dtype, ("bool", "uint16", "uint32", "uint64")))


def check_multiplies(kernel: str, tensor: Tensor) -> None:
    """Raise for dtypes that there is no product of, naming PyTorch's kernel."""
    if tensor._array.dtype in _REFUSED:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{tensor.dtype.scalar_name}'")


def _check_vectors(input: Tensor, other: Tensor) -> None:
    first, second = input._array, other._array
    if first.ndim != 1 or second.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {first.ndim}D and {second.ndim}D tensors")
    if first.dtype != second.dtype:
        raise RuntimeError(
            "dot : expected both vectors to have same dtype, but found "
            f"{input.dtype.scalar_name} and {other.dtype.scalar_name}"
        )
    if first.size != second.size:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{first.size}] and src [{second.size}] to "
            f"have the same number of elements, but got {first.size} and {second.size} elements "
            "respectively"
        )


@declare("dot(Tensor input, Tensor tensor, *, Tensor? out=None)", dispatched=True)
def dot(input: Tensor, tensor: Tensor, out: Tensor | None) -> Tensor:
    """Return the sum of the products of two vectors' elements; neither is conjugated.

    Derivative: g conj(tensor) and g conj(input).

    Parameters
    ----------
    input, tensor : tensor of shape (n,)
        Of one dtype, not bool.
    out
        Where to put the result.

    Raises
    ------
    RuntimeError
        If they are no vectors, or their lengths or dtypes differ.

    >>> import numgrad as ng
    >>> ng.dot(ng.tensor([1.0, 2.0]), ng.tensor([3.0, 4.0]))
    tensor(11.)
    """
    _check_vectors(input, tensor)
    check_multiplies("dot", input)
    return write_result("dot", _DOT.apply(input, tensor), out)


@declare("vdot(Tensor input, Tensor other, *, Tensor? out=None)", dispatched=True)
def vdot(input: Tensor, other: Tensor, out: Tensor | None) -> Tensor:
    """Return the sum of the products of two vectors' elements, the first ones conjugated.

    Derivative: conj(g) other and g input.

    Parameters
    ----------
    input, other : tensor of shape (n,)
        Of one dtype, not bool.
    out
        Where to put the result.

    Raises
    ------
    RuntimeError
        If they are no vectors, or their lengths or dtypes differ.

    >>> import numgrad as ng
    >>> x = ng.tensor([1 + 1j, 2])
    >>> ng.vdot(x, x)
    tensor(6.+0.j)
    """
    _check_vectors(input, other)
    check_multiplies("dot", input)
    return write_result("vdot", _VDOT.apply(input, other), out)


def check_matrix_vector(mat: Tensor, vec: Tensor, input: Tensor | None = None) -> None:
    """Raise unless a matrix can be multiplied with a vector (and `input` added)."""
    matrix, vector = mat._array, vec._array
    added = vec if input is None else input
    if matrix.ndim != 2 or vector.ndim != 1 or added._array.ndim > 1:
        ndims = (1 if input is None else input._array.ndim, matrix.ndim, vector.ndim)
        raise RuntimeError("vector + matrix @ vector expected, got {}, {}, {}".format(*ndims))
    length = matrix.shape[0] if input is None else added._array.size
    if matrix.shape[1] != vector.size or (length != matrix.shape[0] and length != 1):
        raise RuntimeError(
            f"size mismatch, got input ({length}), mat ({matrix.shape[0]}x{matrix.shape[1]}), vec "
            f"({vector.size})"
        )
    if not added._array.dtype == matrix.dtype == vector.dtype:
        names = ", ".join(tensor.dtype.scalar_name for tensor in (added, mat))
        raise RuntimeError(
            f"addmv input tensors must have the same dtype, but got {names}, and "
            f"{vec.dtype.scalar_name}"
        )
    check_multiplies("addmv_impl_cpu", mat)


@declare("mv(Tensor input, Tensor vec, *, Tensor? out=None)", dispatched=True)
def mv(input: Tensor, vec: Tensor, out: Tensor | None) -> Tensor:
    """Return the product of a matrix and a vector.

    Derivative: the outer product of g and conj(vec) for the matrix; for the vector, the adjoint
    of the matrix times g.

    Parameters
    ----------
    input : tensor of shape (n, m)
    vec : tensor of shape (m,)
        Of the same dtype, not bool.
    out
        Where to put the result, of shape (n,).

    Raises
    ------
    RuntimeError
        If the shapes do not fit, or the dtypes differ.

    >>> import numgrad as ng
    >>> ng.mv(ng.tensor([[1.0, 2.0], [3.0, 4.0]]), ng.tensor([1.0, 1.0]))
    tensor([3., 7.])
    """
    check_matrix_vector(input, vec)
    return write_result("mv", _MV.apply(input, vec), out)


def check_matrices(first: Tensor, second: Tensor) -> None:
    """Raise unless two matrices can be multiplied."""
    left, right = first._array, second._array
    if left.shape[1] != right.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({left.shape[0]}x{left.shape[1]} and "
            f"{right.shape[0]}x{right.shape[1]})"
        )
    if left.dtype != right.dtype:
        raise RuntimeError(
            "expected m1 and m2 to have the same dtype, but got: "
            f"{first.dtype.cpp_name} != {second.dtype.cpp_name}"
        )
    check_multiplies("addmm_impl_cpu_", first)


def _fit(first: Any, second: Any) -> bool:
    """Return whether two operands are floating point matrices that can be multiplied."""
    if type(first) is not Tensor or type(second) is not Tensor:
        return False
    left, right = first._array, second._array
    return bool(
        left.ndim == right.ndim == 2
        and left.dtype is right.dtype
        and left.dtype.kind in "fc"
        and left.shape[1] == right.shape[0]
    )


@declare("mm(Tensor input, Tensor mat2, *, Tensor? out=None)", dispatched=True)
def mm(input: Tensor, mat2: Tensor, out: Tensor | None) -> Tensor:
    """Return the product of two matrices.

    Derivative: g times the adjoint of `mat2`, and the adjoint of `input` times g.

    Parameters
    ----------
    input : tensor of shape (n, m)
    mat2 : tensor of shape (m, p)
        Of the same dtype, not bool.
    out
        Where to put the result, of shape (n, p).

    Raises
    ------
    RuntimeError
        If they are no matrices, their shapes do not fit, or their dtypes differ.

    >>> import numgrad as ng
    >>> ng.mm(ng.tensor([[1.0, 2.0]]), ng.tensor([[3.0], [4.0]]))
    tensor([[11.]])
    """
    if out is None and _fit(input, mat2):
        product: Tensor = _MM.apply(input, mat2)
        return product
    for name, tensor in (("self", input), ("mat2", mat2)):
        if tensor._array.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix")
    check_matrices(input, mat2)
    return write_result("mm", _MM.apply(input, mat2), out)


def check_batches(batch1: Tensor, batch2: Tensor) -> None:
    """Raise unless two batches of matrices can be multiplied pair by pair."""
    for name, tensor in (("batch1", batch1), ("batch2", batch2)):
        if tensor._array.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    left, right = batch1._array.shape, batch2._array.shape
    if (left[0], left[2]) != right[:2]:
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{left[0]}, {left[2]}] but got: [{right[0]}, {right[1]}]."
        )
    if batch1._array.dtype != batch2._array.dtype:
        raise RuntimeError(
            f"expected scalar type {batch1.dtype.scalar_name} but found {batch2.dtype.scalar_name}"
        )


@declare("bmm(Tensor input, Tensor mat2, *, Tensor? out=None)", dispatched=True)
def bmm(input: Tensor, mat2: Tensor, out: Tensor | None) -> Tensor:
    """Return the products of two batches of matrices, pair by pair.

    Derivative: g times the adjoint of `mat2`, and the adjoint of `input` times g.

    Parameters
    ----------
    input : tensor of shape (b, n, m)
    mat2 : tensor of shape (b, m, p)
        Of the same dtype, not bool.
    out
        Where to put the result, of shape (b, n, p).

    Raises
    ------
    RuntimeError
        If they are no such batches, or their dtypes differ.

    >>> import numgrad as ng
    >>> ng.bmm(ng.ones(3, 1, 2), ng.ones(3, 2, 1)).shape
    torch.Size([3, 1, 1])
    """
    check_batches(input, mat2)
    check_multiplies("bmm", input)
    return write_result("bmm", _BMM.apply(input, mat2), out)
