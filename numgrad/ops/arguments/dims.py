"""Reading arguments as PyTorch does: dims and sizes."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

from numgrad.base.dtypes import is_int64
from numgrad.graph.modes.grad_modes import is_grad_enabled
from numgrad.graph.tensor import Tensor
from numgrad.ops.signatures.numbers import BEYOND_INT64

__all__ = ["read_dims", "read_sizes", "require_tensors", "wrap_dim"]


def wrap_dim(dim: Any, ndim: int) -> int:
    """Return a dim counted from the front; a tensor without dims counts as having one.

    Raises
    ------
    IndexError
        If there is no such dim.
    ValueError
        If int64 does not hold it.

    Examples
    --------
    >>> wrap_dim(-1, 3)
    2
    """
    position = index(dim)
    length = ndim or 1
    if not -length <= position < length:
        if not is_int64(position):
            raise ValueError(BEYOND_INT64)
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-length}, {length - 1}], but "
            f"got {position})"
        )
    return position + length if position < 0 else position


def read_dims(dims: Any, ndim: int) -> tuple[int, ...]:
    """Return dims counted from the front, each at most once, from an int or a sequence.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If a dim is named twice.
    """
    if not isinstance(dims, (tuple, list)):
        return (wrap_dim(dims, ndim),)
    found: list[int] = []
    for dim in dims:
        position = wrap_dim(dim, ndim)
        if position in found:
            raise RuntimeError(f"dim {position} appears multiple times in the list of dims")
        found.append(position)
    return tuple(found)


def read_sizes(
    function: str, arguments: Sequence[Any], argument: str = "size", position: int = 1
) -> tuple[int, ...]:
    """Return sizes that were given one by one or as one sequence.

    Raises
    ------
    TypeError
        If they are missing or one of them is not an int.
    """
    is_sequence = len(arguments) == 1 and isinstance(arguments[0], (tuple, list))
    sizes: Sequence[Any] = arguments[0] if is_sequence else arguments
    for size in sizes:
        if type(size) is not int:
            break
    else:
        if sizes or is_sequence:
            return tuple(sizes)
    if is_sequence:
        for place, size in enumerate(sizes):
            if not _is_int(size):
                raise TypeError(
                    f"{function}(): argument '{argument}' (position {position}) must be tuple of "
                    f"ints, but found element of type {type(size).__name__} at pos {place}"
                )
        return tuple(map(index, sizes))
    if not arguments:
        raise TypeError(f'{function}() missing 1 required positional arguments: "{argument}"')
    for place, size in enumerate(arguments):
        if not _is_int(size):
            if place == 0:
                raise TypeError(
                    f"{function}(): argument '{argument}' (position {position}) must be tuple of "
                    f"ints, not {type(size).__name__}"
                )
            raise TypeError(
                f"{function}(): argument '{argument}' failed to unpack the object at pos "
                f'{place + 1} with error "type must be tuple of ints,but got '
                f'{type(size).__name__}"'
            )
    return tuple(map(index, arguments))


def _is_int(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value._array.ndim == 0 and value._array.dtype.kind in "iu"
    return hasattr(value, "__index__") and not isinstance(value, bool)


def require_tensors(tensors: Any, function: str) -> tuple[Tensor, ...]:
    """Return a sequence of tensors as a tuple.

    Raises
    ------
    TypeError
        If it is no sequence, or one of its elements is no tensor.
    """
    if not isinstance(tensors, (tuple, list)):
        raise TypeError(
            f"{function}(): argument 'tensors' (position 1) must be tuple of Tensors, not "
            f"{type(tensors).__name__}"
        )
    for position, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"expected Tensor as element {position} in argument 0, but got "
                f"{type(tensor).__name__}"
            )
    return tuple(tensors)


def refuse_complex_gradient(function: str, *tensors: Tensor) -> None:
    """Raise where PyTorch has no derivative of a complex result: that of the first tensor's dtype.

    Raises
    ------
    RuntimeError
        If the first tensor is complex, one of them requires grad, and grad mode is on.
    """
    if tensors[0]._array.dtype.kind != "c" or not is_grad_enabled():
        return
    if any(tensor.requires_grad for tensor in tensors):
        raise RuntimeError(
            f"{function} does not support automatic differentiation for outputs with complex dtype."
        )
