"""Arguments of pooling: windows, how many there are along each dim, and PyTorch's errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from numgrad.graph.tensor import Tensor
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.spatial.arguments import each_dim, numbers

__all__ = ["Windows", "check_planes", "count_of", "counts_of", "require_planes", "windows_of"]

Ints = tuple[int, ...]
# What messages call the dims: the last ones of these.
_LETTERS = "THW"


class Windows(NamedTuple):
    """How windows lie, a number for each dim."""

    kernel: Ints
    stride: Ints
    padding: Ints
    dilation: Ints


def windows_of(
    name: str,
    dims: int,
    kernel_size: Sequence[int],
    stride: Sequence[int] | None,
    padding: Sequence[int],
    dilation: Sequence[int] = (1,),
) -> Windows:
    """Return what windows are like; raise where there is not a number for each dim."""
    either = "must be" if name == "avg_pool3d" else "must either be"
    some = f"a single int, or a tuple of {'two' if dims == 2 else 'three'} ints"
    kernel = each_dim(kernel_size, dims, f"{name}: kernel_size {either} {some}")
    omitted = f"{name}: stride {either} omitted, {some}"
    return Windows(
        kernel,
        each_dim(stride, dims, omitted) if stride else kernel,
        each_dim(padding, dims, f"{name}: padding {either} {some}"),
        each_dim(dilation, dims, f"{name}: dilation must be either {some}"),
    )


def _named(prefix: str, values: Sequence[int]) -> str:
    letters = _LETTERS[-len(values) :]
    return " ".join([f"{prefix}{a}: {b}" for a, b in zip(letters, values, strict=True)])


def count_of(
    size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool
) -> int:
    """Return how many windows there are along a dim; none begins in the padding behind."""
    if not stride:
        raise RuntimeError("stride should not be zero")
    if padding < 0:
        raise RuntimeError(f"pad must be non-negative, but got pad: {padding}")
    reach = (kernel - 1) * dilation + 1
    if padding > int(reach / 2):
        raise RuntimeError(
            f"pad should be at most half of effective kernel size, but got pad={padding}, "
            f"kernel_size={kernel} and dilation={dilation}"
        )
    count = (size + 2 * padding - reach + (stride - 1 if ceil_mode else 0)) // stride + 1
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1
    return count


def counts_of(
    name: str, input: Tensor, by: Windows, ceil_mode: bool, words: str | None = None
) -> Ints:
    """Return how many windows there are along each dim, or raise in PyTorch's words and order."""
    shape, dims = input._array.shape, len(by.kernel)
    if len(shape) < dims + 1:
        wrap_dim(-dims - 1, len(shape))
    sizes, planes = shape[len(shape) - dims :], shape[len(shape) - dims - 1]
    rows = zip(sizes, *by, strict=True)
    counts = tuple([count_of(*row, ceil_mode) for row in rows])
    for what, prefix, values in (
        ("kernel size", "k", by.kernel),
        ("stride", "d", by.stride),
        ("dilation", "dilation", by.dilation),
    ):
        if min(values) <= 0:
            said = _named(prefix, values)
            raise RuntimeError(f"{what} should be greater than zero, but got {said}")
    check_planes(words or name, input, dims)
    if name == "avg_pool3d" and any(a < b for a, b in zip(sizes, by.kernel, strict=True)):
        raise RuntimeError(
            f"input image ({_named('', sizes)}) smaller than kernel size ({_named('k', by.kernel)})"
        )
    if any(pad > kernel // 2 for pad, kernel in zip(by.padding, by.kernel, strict=True)):
        letters, table = _LETTERS[-dims:], [("pad", by.padding), ("k", by.kernel)]
        said = ", ".join(
            [
                f"{prefix}{letter} = {value}"
                for prefix, values in table
                for letter, value in reversed([*zip(letters, values, strict=True)])
            ]
        )
        raise RuntimeError(
            f"pad should be smaller than or equal to half of kernel size, but got {said}"
        )
    if min(counts) < 1:
        before, behind = ("x".join(map(str, (planes, *each))) for each in (sizes, counts))
        raise RuntimeError(
            f"Given input size: ({before}). Calculated output size: ({behind}). Output size is too "
            "small"
        )
    return counts


def require_planes(input: Tensor, dims: int) -> None:
    """Raise unless the input has a dim of channels, and perhaps one of samples."""
    if input._array.ndim not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"non-empty {dims + 1}D or {dims + 2}D (batch mode) tensor expected for input"
        )


def check_planes(name: str, input: Tensor, dims: int) -> None:
    """Raise unless the input has samples, perhaps none, of channels, all of them with elements."""
    shape = input._array.shape
    first = len(shape) - dims - 1
    if dims == 3 and 0 in shape[first:]:
        raise RuntimeError(
            f"{name}(): Expected input's non-batch dimensions to have positive length, but "
            f"input has a shape of {numbers(shape)} and non-batch dimension 0 has length zero!"
        )
    if first > 1 or 0 in shape[first:]:
        raise RuntimeError(
            f"Expected {dims + 1}D or {dims + 2}D (batch mode) tensor with optional 0 dim batch "
            f"size for input, but got:{numbers(shape)}"
        )
