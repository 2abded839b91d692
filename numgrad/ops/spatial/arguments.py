"""What functions of spatial dims make of their arguments: one number for all dims, or one each."""

from __future__ import annotations

from collections.abc import Sequence

from numgrad.base.halves import HALF
from numgrad.graph.tensor import Tensor
from numgrad.ops.movement.unit_dims import unsqueeze

__all__ = ["batched", "each_dim", "numbers", "refuse", "spread"]


def numbers(values: Sequence[int]) -> str:
    """Return ints as PyTorch's messages write a list of them."""
    return f"[{', '.join(map(str, values))}]"


def spread(values: int | Sequence[int], dims: int, name: str) -> tuple[int, ...]:
    """Return a number for each dim.

    Raises
    ------
    RuntimeError
        If there are some, but not so many.
    """
    if isinstance(values, int):
        return (values,) * dims
    if len(values) == 1:
        return tuple(values) * dims
    if len(values) != dims:
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {dims} values to match "
            f"the convolution dimensions, but got {name}={numbers(values)}"
        )
    return tuple(values)


def each_dim(values: int | Sequence[int], dims: int, complaint: str) -> tuple[int, ...]:
    """Return a number for each dim, or raise a RuntimeError."""
    if isinstance(values, int):
        return (values,) * dims
    if len(values) == 1:
        return tuple(values) * dims
    if len(values) != dims:
        raise RuntimeError(complaint)
    return tuple(values)


def batched(function: str, input: Tensor, dims: int) -> tuple[Tensor, bool]:
    """Return the input with a dim of samples, and whether it has one.

    Raises
    ------
    RuntimeError
        If it has another number of dims.
    """
    ndim = input._array.ndim
    if ndim == dims + 2:
        return input, True
    if ndim != dims + 1:
        raise RuntimeError(
            f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to {function}, but "
            f"got input of size: {numbers(input._array.shape)}"
        )
    return unsqueeze(input, 0), False


def refuse(kernel: str, tensor: Tensor, kinds: str, *, wide: bool = False) -> None:
    """Raise, naming PyTorch's kernel, unless a dtype is of one of NumPy's kinds.

    If it has to be wide, it may not be float16.
    """
    dtype = tensor._array.dtype
    if dtype.kind not in kinds or (wide and dtype == HALF) or dtype.name in _BARE:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{tensor.dtype.scalar_name}'")


_BARE = frozenset(("uint16", "uint32", "uint64"))
