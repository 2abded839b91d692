"""What matrices have to be, and PyTorch's words where they are not."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.halves import HALF
from numgrad.graph.tensor import Tensor
from numgrad.kernels.matrices.failures import LinAlgError
from numgrad.ops.core.promotion import broadcast_shapes
from numgrad.ops.movement.casts import expand_to

__all__ = [
    "LinAlgError",
    "broadcast_batches",
    "element",
    "refuse_dtype",
    "require_floating",
    "require_matrix",
    "require_square",
    "require_wide",
]

Array = np.ndarray[Any, Any]


def require_matrix(function: str, tensor: Tensor, name: str = "A") -> None:
    """Raise unless a tensor has two dims."""
    if tensor._array.ndim < 2:
        raise RuntimeError(f"{function}: The input tensor {name} must have at least 2 dimensions.")


def require_square(function: str, tensor: Tensor, name: str = "A") -> None:
    """Raise unless a tensor is a batch of square matrices."""
    require_matrix(function, tensor, name)
    rows, columns = tensor._array.shape[-2:]
    if rows != columns:
        raise RuntimeError(
            f"{function}: {name} must be batches of square matrices, but they are {rows} by "
            f"{columns} matrices"
        )


def require_floating(function: str, tensor: Tensor, wide: bool = True) -> None:
    """Raise unless a tensor is floating point or complex, and not float16 if it has to be wide."""
    if tensor._array.dtype.kind not in "fc":
        raise RuntimeError(
            f"{function}: Expected a floating point or complex tensor as input. Got "
            f"{tensor.dtype.scalar_name}"
        )
    if wide:
        require_wide(function, tensor)


def require_wide(function: str, tensor: Tensor) -> None:
    """Raise for float16."""
    if tensor._array.dtype == HALF:
        raise RuntimeError(
            f"{function}: Low precision dtypes not supported. Got {tensor.dtype.scalar_name}"
        )


def refuse_dtype(kernel: str, tensor: Tensor, empty: bool = True) -> None:
    """Raise, naming PyTorch's kernel, for what it does not compute with.

    Where a function asks no kernel if there are no elements, empty tensors may be of float16.
    """
    if not empty and not tensor._array.size and tensor._array.dtype == HALF:
        return
    if tensor._array.dtype.kind not in "fc" or tensor._array.dtype == HALF:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{tensor.dtype.scalar_name}'")


def broadcast_batches(*tensors: Tensor) -> list[Tensor]:
    """Return matrices with the dims before the last two broadcast."""
    batches = [tensor._array.shape[:-2] for tensor in tensors]
    if all(batch == batches[0] for batch in batches):
        return list(tensors)
    batch = tuple(broadcast_shapes(batches))
    return [expand_to(tensor, (*batch, *tensor._array.shape[-2:])) for tensor in tensors]


def element(failed: Array) -> tuple[str, int]:
    """Return what says which matrix of a batch failed first, and the number that it failed with."""
    if not failed.ndim:
        return "", int(failed)
    first = int(np.flatnonzero(failed)[0])
    return f"(Batch element {first}): ", int(failed.reshape(-1)[first])
