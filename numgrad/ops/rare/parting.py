"""Parts that are no views: unsafe_split and relatives."""

from __future__ import annotations

from collections.abc import Sequence

from numgrad.graph.tensor import Tensor
from numgrad.ops.core.registry import FUNCTIONS
from numgrad.ops.movement.splitting import chunk
from numgrad.ops.signatures.declared import declare

__all__ = ["unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes"]


@declare("unsafe_chunk(Tensor input, int chunks, int dim=0)")
def unsafe_chunk(input: Tensor, chunks: int, dim: int) -> tuple[Tensor, ...]:
    """Return `chunk` in memory of its own: parts can be written to one by one.

    The gradient is that of `chunk`. (In PyTorch they share memory that autograd does not know of.)

    >>> import numgrad as ng
    >>> ng.arange(4).unsafe_chunk(2)
    (tensor([0, 1]), tensor([2, 3]))
    """
    sizes = [part._array.shape[dim] for part in chunk(input.detach(), chunks, dim)]
    found: tuple[Tensor, ...] = FUNCTIONS["split_with_sizes_copy"](input, sizes, dim)
    return found


@declare("unsafe_split(Tensor input, int split_size, int dim=0)")
def unsafe_split(input: Tensor, split_size: int, dim: int) -> tuple[Tensor, ...]:
    """Return `split` in memory of its own: parts can be written to one by one.

    The gradient is that of `split`. (In PyTorch they share memory that autograd does not know of.)

    >>> import numgrad as ng
    >>> ng.arange(3).unsafe_split(2)
    (tensor([0, 1]), tensor([2]))
    """
    found: tuple[Tensor, ...] = FUNCTIONS["split_copy"](input, split_size, dim)
    return found


@declare("unsafe_split_with_sizes(Tensor input, int[] split_sizes, int dim=0)")
def unsafe_split_with_sizes(
    input: Tensor, split_sizes: Sequence[int], dim: int
) -> tuple[Tensor, ...]:
    """Return `split_with_sizes` in memory of its own: parts can be written to one by one.

    The gradient is that of `split`. (In PyTorch they share memory that autograd does not know of.)

    >>> import numgrad as ng
    >>> ng.arange(3).unsafe_split_with_sizes((1, 2))
    (tensor([0]), tensor([1, 2]))
    """
    found: tuple[Tensor, ...] = FUNCTIONS["split_with_sizes_copy"](input, split_sizes, dim)
    return found
