"""Writes to memory that is read as well: which are refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numgrad.graph.backward.accumulate import OVERLAPS_ITSELF
from numgrad.graph.recorder import address_of
from numgrad.graph.tensor import Tensor
from numgrad.graph.warned import warn
from numgrad.kernels.move.strides import extent, layout_of, may_overlap, repeats_elements

__all__ = ["OVERLAPS_PARTLY", "check_overlap", "overlaps", "warn_of_repeats"]

OVERLAPS_PARTLY = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
    "single memory location. Please clone() the tensor before performing the operation."
)


def check_overlap(
    tensor: Tensor, operands: Sequence[Any], apart: bool = False, repeats: bool = False
) -> None:
    """Raise, in PyTorch's words, if a write to `tensor` could read what it has just written.

    Parameters
    ----------
    tensor : Tensor
        What is written to.
    operands : sequence
        What is read; what is not a tensor, nor a sequence of some, does not matter.
    apart : bool
        Whether an element may be written before another one is read, so that not even the same
        elements may be read.
    repeats : bool
        Whether elements may be shown several times.
    """
    array = tensor._array
    if not repeats and repeats_elements(array):
        raise RuntimeError(OVERLAPS_ITSELF)
    for operand in operands:
        if isinstance(operand, (tuple, list)):
            check_overlap(tensor, operand, apart, repeats)
        elif isinstance(operand, Tensor) and operand._counter is tensor._counter:
            is_partly, is_same = overlaps(array, operand._array)
            if apart if operand is tensor or is_same else is_partly:
                raise RuntimeError(OVERLAPS_PARTLY)


def warn_of_repeats(tensor: Tensor, function: str) -> None:
    """Warn, as PyTorch does, of writes by an index or a mask to elements shown several times."""
    if repeats_elements(tensor._array):
        like = "[indices] = tensor" if function == "index_put" else "[mask] = scalar"
        warn(
            f"Use of {function}_ on expanded tensors is deprecated. Please clone() the tensor "
            "before performing this operation. This also applies to advanced indexing e.g. "
            f"tensor{like}"
        )


def overlaps(left: Any, right: Any) -> tuple[bool, bool]:
    """Whether two dense arrays share memory, and whether they are element for element the same."""
    if not left.size or not right.size or not (_is_dense(left) and _is_dense(right)):
        return False, False
    start, other = (_lowest(array) for array in (left, right))
    if start == other and left.nbytes == right.nbytes:
        steps = [
            [step for length, step in zip(array.shape, array.strides, strict=True) if length > 1]
            for array in (left, right)
        ]
        return True, left.shape == right.shape and steps[0] == steps[1]
    return bool(start < other + right.nbytes and other < start + left.nbytes), False


def _lowest(array: Any) -> int:
    """Return where the memory of an array begins, which is its last element's if it goes back."""
    return address_of(array) + extent(layout_of(array))[0] * int(array.itemsize)


def _is_dense(array: Any) -> bool:
    """Whether the elements lie in memory without gaps, in any order of the dims."""
    low, high = extent(layout_of(array))
    return high - low == array.size and not may_overlap(layout_of(array))
