"""Elements one by one: diagonals filled, Python's functions applied, positions, hashes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.graph.modes.grad_modes import no_grad
from numgrad.graph.tensor import Tensor, fresh, wrap
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.registry import public
from numgrad.ops.movement.shape import reshape
from numgrad.ops.mutation.filling import masked_fill
from numgrad.ops.signatures.declared import declare

__all__ = ["apply_", "hash_tensor", "map2_", "map_", "nonzero_static"]


@declare(
    "fill_diagonal(Tensor input, number fill_value, bool wrap=False)",
    function=False,
    method=False,
    inplace=True,
)
def fill_diagonal(input: Tensor, fill_value: Any, wrap: bool) -> Tensor:
    """Write a number to the diagonal of a matrix, or of a tensor whose dims have one length.

    The gradient is g with zeros there.

    Parameters
    ----------
    wrap
        Whether a tall matrix has the diagonal again, a row behind where it ended.

    Raises
    ------
    RuntimeError
        If there is no second dim, or more than two of them differ in length.

    >>> import numgrad as ng
    >>> ng.zeros(2, 2).fill_diagonal_(1)
    tensor([[1., 0.],
            [0., 1.]])
    """
    shape = input._array.shape
    if len(shape) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(shape) > 2 and len({*shape}) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    mask = np.zeros(shape, np.bool_)
    if mask.size:
        rows, width = shape[0], shape[-1]
        at = np.arange(rows if len(shape) == 2 and wrap else min(shape))
        if len(shape) == 2:
            at = at[at % (width + 1) < width]
            mask[at, at % (width + 1)] = True
        else:
            mask[(at,) * len(shape)] = True
    result: Tensor = masked_fill(input, fresh(mask), fill_value)
    return result


# --- functions of Python's numbers ----------------------------------------------------------------


def _applied(
    name: str, tensor: Tensor, others: tuple[Any, ...], function: Callable[..., Any]
) -> Tensor:
    """Write what a function gives of each element, and of those of others in its place."""
    if tensor.requires_grad or any(isinstance(o, Tensor) and o.requires_grad for o in others):
        raise RuntimeError(
            f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() "
            "instead."
        )
    tensors = [tensor]
    for at, other in enumerate(others):
        word = "other" if len(others) == 1 else "xy"[at]
        if not isinstance(other, Tensor) or other.dtype != tensor.dtype:
            kind = f"torch.{tensor.dtype.scalar_name}Tensor"
            given = (
                f"torch.{other.dtype.scalar_name}Tensor"
                if isinstance(other, Tensor)
                else type(other).__name__
            )
            raise TypeError(f"{name}: expected {kind} for '{word}' (got {given})")
        tensors.append(other.expand(tensor._array.shape))
    rows = zip(*[reshape(each, (-1,)).tolist() for each in tensors], strict=True)
    values = np.array([function(*row) for row in rows], tensor._array.dtype)
    with no_grad():
        tensor.copy_(wrap(values.reshape(tensor._array.shape)))
    return tensor


@public(function=False)
def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Write what a function of Python's numbers gives of each element: slow, for what is small.

    Raises
    ------
    RuntimeError
        If the tensor requires grad.

    >>> import numgrad as ng
    >>> ng.tensor([1.0, 2.0]).apply_(lambda x: 10 * x)
    tensor([10., 20.])
    """
    return _applied("apply_", self, (), callable)


@declare("map_(Tensor input, Tensor other, object callable)", function=False)
def map_(input: Tensor, other: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Write what a function gives of each element and that of another tensor; see `apply_`.

    Raises
    ------
    RuntimeError
        If a tensor requires grad.
    TypeError
        If the other tensor is of another dtype.

    >>> import numgrad as ng
    >>> ng.tensor([1.0, 2.0]).map_(ng.tensor([3.0, 4.0]), lambda x, y: x * y)
    tensor([3., 8.])
    """
    return _applied("map_", input, (other,), callable)


@declare("map2_(Tensor input, Tensor x, Tensor y, object callable)", function=False)
def map2_(input: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Write what a function gives of each element and those of two tensors; see `apply_`.

    Raises
    ------
    RuntimeError
        If a tensor requires grad.
    TypeError
        If another tensor is of another dtype.

    >>> import numgrad as ng
    >>> one = ng.ones(2)
    >>> one.map2_(2 * one, 3 * one, lambda a, b, c: a + b + c)
    tensor([6., 6.])
    """
    return _applied("map2_", input, (x, y), callable)


# --- positions and hashes -------------------------------------------------------------------------


def _positions(array: Any, size: int, fill_value: int) -> Any:
    found = np.full((size, array.ndim), fill_value, np.int64)
    rows = np.argwhere(array)[:size]
    found[: len(rows)] = rows
    return found


_POSITIONS = Primitive(
    "nonzero_static", "NotImplemented", _positions, ["input"], [None], listed=False
)


@declare(
    "nonzero_static(Tensor input, *, int size, int fill_value=-1, Tensor? out=None)",
    dispatched=True,
)
def nonzero_static(input: Tensor, size: int, fill_value: int) -> Tensor:
    """Return the positions of the first elements that are not 0, as many as are asked for.

    Unlike `nonzero` it can be traced. No gradient flows.

    Parameters
    ----------
    size
        How many rows.
    fill_value
        What stands in rows that are left.

    Raises
    ------
    RuntimeError
        If the size is negative.

    >>> import numgrad as ng
    >>> ng.nonzero_static(ng.tensor([0.0, 2.0, 3.0]), size=3).flatten()
    tensor([ 1,  2, -1])
    """
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    result: Tensor = _POSITIONS.apply(input, size=size, fill_value=fill_value)
    return result


def _hashes(array: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
    wide = array.astype(np.float64) if array.dtype.kind == "f" else array.astype(np.int64)
    bits = wide.view(np.uint64)
    joined: Any = np.bitwise_xor.reduce
    axis = (dims or None) if array.ndim else None  # PyTorch takes a number for a vector of one
    return np.array(joined(bits, axis=axis, keepdims=keepdim), order="C")


_HASHES = Primitive("hash_tensor", "NotImplemented", _hashes, ["input"], [None], listed=False)


@declare(
    "hash_tensor(Tensor input, int[1]? dim=(), *, bool keepdim=False, int mode=0, "
    "Tensor? out=None)",
    dispatched=True,
)
def hash_tensor(input: Tensor, dim: tuple[int, ...] | None, keepdim: bool, mode: int) -> Tensor:
    """Return the bits of all elements, as float64 or int64, joined by exclusive or.

    No gradient flows.

    Parameters
    ----------
    dim
        Along which dims; all of them unless given.
    mode
        0 alone.

    Returns
    -------
    tensor of uint64

    Raises
    ------
    RuntimeError
        If the mode is another one, or if there are no elements and no dims are given.

    >>> import numgrad as ng
    >>> ng.hash_tensor(ng.tensor([1, 2, 4]))
    tensor(7, dtype=torch.uint64)
    """
    if mode:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    if not dim and not input._array.size:
        raise RuntimeError(
            "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify "
            "the reduction dim with the 'dim' argument."
        )
    if input.dtype.is_complex:
        raise NotImplementedError(
            f"\"xor_sum_cpu\" not implemented for '{input.dtype.scalar_name}'"
        )
    dims = tuple([wrap_dim(each, input._array.ndim) for each in dim or ()])
    result: Tensor = _HASHES.apply(input, dims=dims, keepdim=keepdim)
    return result
