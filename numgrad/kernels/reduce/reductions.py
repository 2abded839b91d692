"""Reductions over any dims of any array: sums, products, extremes, truth, norms.

Each function takes an array, the dims to reduce (non-negative, distinct; all of them to reduce to
one number) and `keepdim`, and returns a new C-contiguous array. It leaves its argument alone, gives
the same bits with any number of threads, and adds float32 in float32; see `order` for the
order. Reducing nothing gives the identity of the operation; where there is none (`amax`, `amin`),
call `require_elements` first, whose words depend on the caller.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numgrad.base.dtypes import of_numpy
from numgrad.codegen.scalar_ops import REAL_OF
from numgrad.kernels.move.layout import Array
from numgrad.kernels.reduce import operations as folds
from numgrad.kernels.reduce import products
from numgrad.kernels.reduce.few_elements import (
    FewElements,
    SpecialisedCall,
    as_it_lies,
    few_elements,
)

__all__ = [
    "INT64",
    "UINT8",
    "all",
    "amax",
    "amin",
    "any",
    "as_bytes",
    "as_complex",
    "as_real",
    "count_nonzero",
    "mean",
    "nansum",
    "norm",
    "prod",
    "require_elements",
    "require_norm_elements",
    "require_ordered",
    "specialised",
    "specialised_as_it_lies",
    "specialised_mean",
    "specialised_norm",
    "sum",
]

Dims = tuple[int, ...]
INT64 = np.dtype(np.int64)
UINT8 = np.dtype(np.uint8)
_BOOL = np.dtype(bool)
_COMPLEX = {real: complex_ for complex_, real in REAL_OF.items()}


def as_real(array: Array) -> Array:
    """View a complex array as real numbers, with one more dim of size 2 at the end."""
    return array[..., None].view(REAL_OF[array.dtype])


def as_complex(array: Array) -> Array:
    """Undo `as_real` for an array that it fits: contiguous, the last dim of size 2."""
    return array.view(_COMPLEX[array.dtype])[..., 0]


def as_bytes(array: Array) -> Array:
    """View bools as the numbers 0 and 1."""
    return array.view(UINT8) if array.dtype.kind == "b" else array


def require_elements(name: str, array: Array, dims: Dims, *, all_dims: bool = False) -> None:
    """Raise what PyTorch raises if a reduction with no identity has nothing to reduce.

    Parameters
    ----------
    name : str
        The operation, for the message: ``"amax"``, ``"argmin"``, ...
    array : numpy.ndarray
        What is to be reduced.
    dims : tuple of int
        Over which dims; the message gives them as they are written here, negative ones too.
    all_dims : bool
        Whether the call named no dim.

    Raises
    ------
    IndexError
        If one of `dims` has size 0; for ``argmax`` and ``argmin`` also if no dim was named.
    RuntimeError
        If no dim was named and there are no elements.

    Examples
    --------
    >>> require_elements("amax", np.zeros((2, 0)), (1,))
    Traceback (most recent call last):
    IndexError: amax(): Expected reduction dim 1 to have non-zero size.
    """
    if array.size > 0:
        return
    if all_dims:
        message = f"{name}(): Expected reduction dim to be specified for input.numel() == 0."
        if name.startswith("arg"):
            raise IndexError(message)
        raise RuntimeError(f"{message} Specify the reduction dim with the 'dim' argument.")
    for dim in dims:
        if array.shape[dim] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")


def require_norm_elements(array: Array, p: float, dims: Dims, *, all_dims: bool = False) -> None:
    """Raise what PyTorch raises if a norm with ``p < 0`` or ``p == inf`` has nothing to reduce.

    Examples
    --------
    >>> require_norm_elements(np.zeros((2, 0)), math.inf, (0, 1), all_dims=True)
    Traceback (most recent call last):
    RuntimeError: linalg.vector_norm cannot compute the inf norm on an empty tensor because the \
operation does not have an identity
    """
    if array.size > 0 or 0 <= p < math.inf:
        return
    start = f"linalg.vector_norm cannot compute the {p:g} norm on"
    end = "and the operation does not have an identity"
    if all_dims:
        raise RuntimeError(
            f"{start} an empty tensor because the operation does not have an identity"
        )
    for dim in dims:
        if array.shape[dim] == 0:
            # PyTorch's message has no space after the number.
            raise RuntimeError(f"{start} the dimension {dim}because this dimension is empty {end}")


def sum(array: Array, dims: Dims, keepdim: bool = False) -> Array:
    """Add elements; bools and integers are added in int64. Mirrors ``torch.sum``.

    Examples
    --------
    >>> sum(np.array([[1.0, 2.0], [3.0, 4.0]], np.float32), (0,), False)
    array([4., 6.], dtype=float32)
    """
    dtype = array.dtype
    kind = dtype.kind
    if kind == "f":
        return folds.SUM(array, dims, keepdim, dtype)
    if kind == "c":
        return as_complex(folds.SUM(as_real(array), dims, keepdim, REAL_OF[dtype]))
    return folds.SUM_INTEGERS(as_bytes(array), dims, keepdim, INT64)


def nansum(array: Array, dims: Dims, keepdim: bool = False) -> Array:
    """Add the elements that are not nan; real ones. Mirrors ``torch.nansum``.

    Examples
    --------
    >>> nansum(np.array([1.0, np.nan, 2.0]), (0,))
    array(3.)
    """
    if array.dtype.kind == "f":
        return folds.SUM_NUMBERS(array, dims, keepdim, array.dtype)
    return sum(array, dims, keepdim)


def prod(array: Array, dims: Dims, keepdim: bool = False) -> Array:
    """Multiply elements; bools and integers are multiplied in int64. Mirrors ``torch.prod``.

    Examples
    --------
    >>> prod(np.array([[1, 2], [3, 4]]), (0, 1), False)
    array(24)
    """
    if array.dtype.kind in "fc":
        return products.prod(array, dims, keepdim)
    return folds.PROD_INTEGERS(as_bytes(array), dims, keepdim, INT64)


def mean(array: Array, dims: Dims, keepdim: bool = False) -> Array:
    """Average floating point or complex elements; nan over no elements. Mirrors ``torch.mean``.

    Examples
    --------
    >>> mean(np.array([1.0, 2.0, 6.0]), (0,), False)
    array(3.)
    """
    if array.dtype.kind == "c":  # as real numbers: dividing complex infinities would warn
        return as_complex(mean(as_real(array), dims, keepdim))
    total = sum(array, dims, keepdim)
    count = math.prod([array.shape[dim] for dim in dims])
    if count:
        total /= count
    else:
        total.fill(math.nan)
    return total


def amax(array: Array, dims: Dims, keepdim: bool = False) -> Array:
    """Return the greatest elements; nan where there is one. Mirrors ``torch.amax``.

    Raises
    ------
    NotImplementedError
        If the elements are complex.

    Examples
    --------
    >>> amax(np.array([[1.0, np.nan], [3.0, 4.0]]), (1,), False)
    array([nan,  4.])
    """
    return _extreme(folds.MAX, "max_values_cpu", array, dims, keepdim)


def amin(array: Array, dims: Dims, keepdim: bool = False) -> Array:
    """Return the least elements; nan where there is one. Mirrors ``torch.amin``.

    Raises
    ------
    NotImplementedError
        If the elements are complex.

    Examples
    --------
    >>> amin(np.array([[1, 2], [3, 4]]), (0,), True)
    array([[1, 2]])
    """
    return _extreme(folds.MIN, "min_values_cpu", array, dims, keepdim)


def require_ordered(kernel_name: str, array: Array) -> None:
    """Raise what PyTorch raises where complex numbers would have to be compared."""
    if array.dtype.kind == "c":
        name = of_numpy(array.dtype).scalar_name
        raise NotImplementedError(f"\"{kernel_name}\" not implemented for '{name}'")


def _extreme(fold: folds.Fold, kernel_name: str, array: Array, dims: Dims, keepdim: bool) -> Array:
    require_ordered(kernel_name, array)
    data = as_bytes(array)
    return fold(data, dims, keepdim, data.dtype).view(array.dtype)


def all(array: Array, dims: Dims, keepdim: bool = False) -> Array:
    """Return whether all elements are nonzero (nan is), as bool. Mirrors ``torch.all``.

    Examples
    --------
    >>> all(np.array([[1.0, 0.0], [3.0, 4.0]]), (1,), False)
    array([False,  True])
    """
    return folds.ALL(as_bytes(array), dims, keepdim, UINT8).view(np.bool_)


def any(array: Array, dims: Dims, keepdim: bool = False) -> Array:
    """Return whether any element is nonzero (nan is), as bool. Mirrors ``torch.any``.

    Examples
    --------
    >>> any(np.array([[0.0, 0.0], [3.0, 4.0]]), (1,), True)
    array([[False],
           [ True]])
    """
    return folds.ANY(as_bytes(array), dims, keepdim, UINT8).view(np.bool_)


def count_nonzero(array: Array, dims: Dims, keepdim: bool = False) -> Array:
    """Count elements that are not zero (nan is not), as int64. Mirrors ``torch.count_nonzero``.

    Examples
    --------
    >>> count_nonzero(np.array([0.0, np.nan, 2.0]), (0,), False)
    array(2)
    """
    return folds.COUNT(as_bytes(array), dims, keepdim, INT64)


def norm(array: Array, dims: Dims, keepdim: bool = False, p: float = 2.0) -> Array:
    """Return ``sum(abs(x) ** p) ** (1 / p)`` and its limits. Mirrors ``torch.linalg.vector_norm``.

    Parameters
    ----------
    array : numpy.ndarray
        Floating point or complex; the result is real.
    dims, keepdim
        As everywhere in this module.
    p : float
        Any number; 0 counts what is not zero, inf and -inf give the greatest and least magnitude.

    Examples
    --------
    >>> norm(np.array([[3.0, -4.0], [0.0, 1.0]]), (1,), False)
    array([5., 1.])
    >>> norm(np.array([3.0, -4.0]), (0,), False, p=math.inf)
    array(4.)
    """
    is_complex = array.dtype.kind == "c"
    dtype = REAL_OF[array.dtype] if is_complex else array.dtype
    if p == 2:
        fold = folds.SUM_SQUARED_MODULI if is_complex else folds.SUM_SQUARES
        total = fold(array, dims, keepdim, dtype)
        return np.sqrt(total, out=total)
    if p == 1:
        return folds.SUM_ABS(array, dims, keepdim, dtype)
    if p == 0:
        return count_nonzero(array, dims, keepdim).astype(dtype)
    if p == math.inf:
        return folds.MAX_ABS(array, dims, keepdim, dtype)
    if p == -math.inf:
        return folds.MIN_ABS(array, dims, keepdim, dtype)
    total = folds.SUM_POWERS(array, dims, keepdim, dtype, np.full(1, p, dtype))
    with np.errstate(all="ignore"):
        return np.power(total, 1.0 / p, out=total)


# What reduces floating point elements, what reduces others, and whether to their own dtype, to
# int64 or to bools.
_FOLDS = {
    "sum": (folds.SUM, folds.SUM_INTEGERS, INT64),
    "nansum": (folds.SUM_NUMBERS, folds.SUM_INTEGERS, INT64),
    "prod": (None, folds.PROD_INTEGERS, INT64),
    "amax": (folds.MAX, folds.MAX, None),
    "amin": (folds.MIN, folds.MIN, None),
}
_FOLDS_OF_TRUTH = {"all": folds.ALL, "any": folds.ANY}


def specialised(
    name: str, shape: tuple[int, ...], dtype: np.dtype[Any], dims: Dims, keepdim: bool = False
) -> SpecialisedCall | None:
    """Return what does a reduction of this module to a C-contiguous array of few elements.

    Parameters
    ----------
    name : str
        Which: ``"sum"``, ``"nansum"``, ``"prod"``, ``"amax"``, ``"amin"``, ``"all"`` or ``"any"``.
    shape, dtype
        Of the arrays that the function will get.
    dims, keepdim
        As everywhere in this module.

    Returns
    -------
    callable or None
        None where there is no fast path.

    Examples
    --------
    >>> array = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> specialised("sum", array.shape, array.dtype, (1,))(array)
    array([3., 7.])
    """
    blocks = few_elements(shape, dims, keepdim)
    if name == "prod" and dtype.kind == "f":  # whose order goes by the strides, too
        return None if blocks is None else products.specialised(blocks, dtype)
    return _specialised(name, blocks, dtype)


def specialised_as_it_lies(
    name: str, array: Array, dims: Dims, keepdim: bool = False
) -> SpecialisedCall | None:
    """Return what does the same reduction to arrays that lie as this one, whatever their strides.

    Examples
    --------
    >>> array = np.array([[1.0, 2.0], [3.0, 4.0]]).T
    >>> specialised_as_it_lies("sum", array, (1,))(array)
    array([4., 6.])
    """
    run = (
        specialised(name, array.shape, array.dtype, dims, keepdim)
        if array.flags.c_contiguous
        else None
    )
    return run or as_it_lies(
        array, dims, keepdim, lambda blocks: _specialised(name, blocks, array.dtype)
    )


def _specialised(
    name: str, blocks: FewElements | None, dtype: np.dtype[Any]
) -> SpecialisedCall | None:
    """Return what does a reduction to few elements."""
    kind = dtype.kind
    if blocks is None or kind == "c":
        return None
    source = UINT8 if kind == "b" else dtype
    if name in _FOLDS_OF_TRUTH:
        return _FOLDS_OF_TRUTH[name].specialised(blocks, source, UINT8, _BOOL)
    floats, others, of_others = _FOLDS[name]
    if kind == "f":
        return None if floats is None else floats.specialised(blocks, dtype, dtype, dtype)
    return others.specialised(blocks, source, of_others or source, of_others or dtype)


def specialised_mean(
    shape: tuple[int, ...], dtype: np.dtype[Any], dims: Dims, keepdim: bool = False
) -> SpecialisedCall | None:
    """Return what takes `mean` of a C-contiguous array of few floating point elements, or None.

    Examples
    --------
    >>> specialised_mean((3,), np.dtype(float), (0,))(np.array([1.0, 2.0, 6.0]))
    array(3.)
    """
    blocks = few_elements(shape, dims, keepdim)
    if blocks is None or dtype.kind != "f":
        return None
    total, count = folds.SUM.specialised(blocks, dtype, dtype, dtype), blocks.n

    def one(array: Array) -> Array:
        # A quotient of float32 numbers has the same bits if it is taken in float64 and rounded.
        out: Array = total(array)
        out.fill(out.item() / count)
        return out

    def many(array: Array) -> Array:
        out: Array = total(array)
        out /= count
        return out

    return one if blocks.outer * blocks.inner == 1 else many


def specialised_norm(
    shape: tuple[int, ...], dtype: np.dtype[Any], dims: Dims, keepdim: bool = False
) -> SpecialisedCall | None:
    """Return what takes the 2-norm of a C-contiguous array of few real elements, or None.

    Examples
    --------
    >>> specialised_norm((2,), np.dtype(float), (0,))(np.array([3.0, -4.0]))
    array(5.)
    """
    blocks = few_elements(shape, dims, keepdim)
    if blocks is None or dtype.kind != "f":
        return None
    total, root = folds.SUM_SQUARES.specialised(blocks, dtype, dtype, dtype), math.sqrt

    def one(array: Array) -> Array:
        # The root of a float32 number has the same bits if it is taken in float64 and rounded.
        out: Array = total(array)
        out.fill(root(out.item()))
        return out

    def many(array: Array) -> Array:
        out: Array = total(array)
        return np.sqrt(out, out=out)

    return one if blocks.outer * blocks.inner == 1 else many
