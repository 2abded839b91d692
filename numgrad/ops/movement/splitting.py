"""Split tensors into views: split, chunk, unbind and their relatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.graph.tensor import Tensor, fresh
from numgrad.kernels.move.strides import sliced
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.calls.steps import forget_steps
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.movement.joining import cat, stack
from numgrad.ops.movement.slicing import slice_of
from numgrad.ops.signatures.declared import declare

__all__ = ["chunk", "split", "tensor_split", "unbind"]

Array = np.ndarray[Any, Any]
_MOST_SECTIONS = 2**60  # that an address reaches
Gradients = Any  # the gradient of the only output, or a list with None where nothing arrived


def _complete(g: Gradients, shapes: Sequence[tuple[int, ...]]) -> list[Tensor]:
    """Return the gradient of every output, zeros where nothing arrived."""
    given = g if isinstance(g, list) else [g]
    dtype = next(each._array.dtype for each in given if each is not None)
    return [
        fresh(np.zeros(shape, dtype)) if each is None else each
        for each, shape in zip(given, shapes, strict=True)
    ]


def _split_arrays(array: Array, dim: int, sizes: tuple[int, ...]) -> list[Array]:
    parts, start = [], 0
    for size in sizes:
        parts.append(sliced(array, dim, start, start + size, 1))
        start += size
    return parts


def _split_rule(
    g: Gradients, input_shape: tuple[int, ...], dim: int, sizes: tuple[int, ...]
) -> Tensor:
    shapes = [(*input_shape[:dim], size, *input_shape[dim + 1 :]) for size in sizes]
    # A part of shape (0,) would be passed over by `cat`, which is right here.
    return cat(_complete(g, shapes), dim)


def _unbind_rule(g: Gradients, input_shape: tuple[int, ...], dim: int) -> Tensor:
    shapes = [input_shape[:dim] + input_shape[dim + 1 :]] * input_shape[dim]
    return stack(_complete(g, shapes), dim)


_SPLIT, _SPLIT_SIZES = (
    Primitive(
        name,
        node,
        _split_arrays,
        ["input"],
        [_split_rule],
        view=True,
        linear=True,
        multiple_views=True,
        variable_outputs=True,
        samples=[
            lambda make, sizes=sizes: (lambda x: split(x, sizes, 1), [make(2, 3)], {}),
            lambda make, sizes=empty: (lambda x: split(x, sizes), [make(0)], {}),
        ],
    )
    for name, node, sizes, empty in (
        ("split", "SplitBackward0", 2, 1),
        ("split_with_sizes", "SplitWithSizesBackward0", [1, 2], [0, 0]),
    )
)
_UNBIND: Primitive = Primitive(
    "unbind",
    "UnbindBackward0",
    lambda array, dim: [
        array[(*(slice(None),) * dim, position, ...)] for position in range(array.shape[dim])
    ],
    ["input"],
    [_unbind_rule],
    view=True,
    linear=True,
    multiple_views=True,
    variable_outputs=True,
    samples=[
        lambda make: (unbind, [make(2, 3)], {"dim": 1}),
        lambda make: (unbind, [make(1)], {}),
        lambda make: (unbind, [make(2, 0)], {}),
    ],
)


def _require_dims(input: Tensor, function: str) -> None:
    """Raise if the tensor has no dims."""
    if not input._array.ndim:
        raise RuntimeError(f"{function} expects at least a 1-dimensional tensor")


@declare(
    "split(Tensor tensor, int split_size_or_sections, int dim=0)",
    "split(Tensor tensor, int[] split_size_or_sections, int dim=0)",
    method=False,
    dispatched=True,
)
def split(tensor: Tensor, split_size_or_sections: Any, dim: int) -> tuple[Tensor, ...]:
    """Return views of consecutive parts of a dim.

    The gradient is the parts' gradients, joined.

    Parameters
    ----------
    split_size_or_sections
        The size of every part (the last one may be smaller), or the sizes one by one. The method
        calls it ``split_size``.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If a size is negative, or the sizes do not add up to that of the dim.

    >>> import numgrad as ng
    >>> ng.arange(3.0).split(2)
    (tensor([0., 1.]), tensor([2.]))
    """
    return _split(tensor, split_size_or_sections, dim)


@declare(
    "split(Tensor input, int split_size, int dim=0)",
    "split(Tensor input, int[] split_size, int dim=0)",
    function=False,
    dispatched=True,
)
def split_method(input: Tensor, split_size: Any, dim: int) -> tuple[Tensor, ...]:
    """Return views of consecutive parts of a dim; see `numgrad.split`.

    >>> import numgrad as ng
    >>> ng.arange(3.0).split([1, 2])
    (tensor([0.]), tensor([1., 2.]))
    """
    return _split(input, split_size, dim)


def _split(input: Tensor, length: int | tuple[int, ...], dim: int) -> tuple[Tensor, ...]:
    if isinstance(length, tuple):
        return split_with_sizes(input, length, dim)
    _require_dims(input, "split")
    shape = input._array.shape
    _require_length(length)
    at = wrap_dim(dim, len(shape))
    whole = shape[at]
    if length == 0 and whole:
        raise RuntimeError(
            f"split_size can only be 0 if dimension size is 0, but got dimension size of {whole}"
        )
    count = max(-(-whole // length), 1) if length else 1
    sizes = (length,) * (count - 1) + (whole - length * (count - 1),)
    return tuple(_SPLIT.apply(input, dim=at, sizes=sizes))


def _require_length(length: int) -> None:
    if length < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={length}")


@declare("split_with_sizes(Tensor input, int[] split_sizes, int dim=0)", dispatched=True)
def split_with_sizes(input: Tensor, split_sizes: tuple[int, ...], dim: int) -> tuple[Tensor, ...]:
    """Return views of consecutive parts of a dim, of the given sizes; see `split`.

    >>> import numgrad as ng
    >>> ng.arange(3.0).split_with_sizes([1, 2])
    (tensor([0.]), tensor([1., 2.]))
    """
    _require_dims(input, "split")
    shape = input._array.shape
    sizes = split_sizes
    at = wrap_dim(dim, len(shape))
    if any(size < 0 for size in sizes):
        raise RuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries, but got "
            f"split_sizes={list(sizes)}"
        )
    if sum(sizes) != shape[at]:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {shape[at]} (input tensor's "
            f"size at dimension {at}), but got split_sizes={list(sizes)}"
        )
    return tuple(_SPLIT_SIZES.apply(input, dim=at, sizes=sizes))


@declare("chunk(Tensor input, int chunks, int dim=0)", dispatched=True)
def chunk(input: Tensor, chunks: int, dim: int) -> tuple[Tensor, ...]:
    """Return views of at most `chunks` parts of a dim, all but the last of one size.

    The gradient is the parts' gradients, joined.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If `chunks` is not positive.

    >>> import numgrad as ng
    >>> [part.shape for part in ng.ones(5).chunk(2)]
    [torch.Size([3]), torch.Size([2])]
    """
    _require_dims(input, "chunk")
    if chunks < 1:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    shape = input._array.shape
    at = wrap_dim(dim, len(shape))
    size = -(-shape[at] // chunks)
    if shape[at] + chunks > 2**63:  # which int64 does not hold
        _require_length(-((2**64 - shape[at] - chunks + 1) // chunks))
    if size == 0:
        return split_with_sizes(input, (0,) * chunks, at)
    return split(input, size, at)


@declare("unbind(Tensor input, int dim=0)", dispatched=True)
def unbind(input: Tensor, dim: int) -> tuple[Tensor, ...]:
    """Return views of all positions of a dim; the dim goes.

    The gradient is the views' gradients, stacked.

    Raises
    ------
    IndexError
        If there is no such dim.

    >>> import numgrad as ng
    >>> ng.tensor([1.0, 2.0]).unbind()
    (tensor(1.), tensor(2.))
    """
    ndim = input._array.ndim
    if not ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return tuple(_UNBIND.apply(input, dim=wrap_dim(dim, ndim)))


@declare(
    "tensor_split(Tensor input, int[] indices, int dim=0)",
    "tensor_split(Tensor input, Tensor tensor_indices_or_sections, int dim=0)",
    "tensor_split(Tensor input, int sections, int dim=0)",
    dispatched=True,
)
def tensor_split(
    input: Tensor,
    indices: tuple[int, ...] | None,
    tensor_indices_or_sections: Tensor | None,
    sections: int | None,
    dim: int,
) -> tuple[Tensor, ...]:
    """Return views of a dim cut into equal sections, or at the given positions.

    Sections whose number does not divide the size differ by one, the longer ones first.

    Parameters
    ----------
    indices
        Where to cut.
    tensor_indices_or_sections : int64 tensor
        The same, or with no dims how many sections.
    sections
        How many.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If the number of sections is not positive, the tensor has no dims, or that of the positions
        is not int64 or has more dims than one.

    >>> import numgrad as ng
    >>> ng.arange(3.0).tensor_split(2)
    (tensor([0., 1.]), tensor([2.]))
    """
    shape = input._array.shape
    if not shape:
        raise RuntimeError(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        )
    given: Any = indices if sections is None else sections
    if tensor_indices_or_sections is not None:
        given = _cuts(tensor_indices_or_sections)
    at = wrap_dim(dim, len(shape))
    size = shape[at]
    if isinstance(given, (tuple, list)):
        starts, stops = [0, *given], [*given, size]
    else:
        sections = int(given)
        if sections < 1:
            raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
        if sections >= _MOST_SECTIONS:
            raise RuntimeError("cannot create std::vector larger than max_size()")
        short, longer = divmod(size, sections)
        cuts = [part * short + min(part, longer) for part in range(sections + 1)]
        starts, stops = cuts[:-1], cuts[1:]
    parts = []
    for start, stop in zip(starts, stops, strict=True):
        first, last, _ = slice(start, stop).indices(size)
        parts.append(slice_of(input, at, first, max(first, last), 1))
    return tuple(parts)


def _cuts(positions: Tensor) -> Any:
    """Return positions to cut at, or how many sections, as numbers."""
    forget_steps()  # which may be others in the next call
    array = positions._array
    if array.dtype != np.int64:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
            f"{positions.dtype.scalar_name}"
        )
    if array.ndim > 1:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or "
            f"one-dimensional tensor, but got a tensor with {array.ndim} dims"
        )
    return array.tolist()


def _split_along(input: Tensor, parts: Any, name: str, least: int, dim: int) -> tuple[Tensor, ...]:
    """Cut a dim that is fixed by the function's name into equal parts, or at positions."""
    ndim = input._array.ndim
    if ndim < least:
        raise RuntimeError(
            f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor "
            f"with {ndim} dimensions!"
        )
    if not isinstance(parts, tuple):
        sections, size = parts, input._array.shape[dim]
        if sections == 0 or size % sections:
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {dim}, but the size of the "
                f"dimension {size} is not divisible by the split_size {sections}!"
            )
    return tensor_split(input, parts, dim)


@declare(
    "hsplit(Tensor input, int sections)", "hsplit(Tensor input, int[] indices)", dispatched=True
)
def hsplit(
    input: Tensor, indices: tuple[int, ...] | None, sections: int | None
) -> tuple[Tensor, ...]:
    """Return views of the second dim, or the only one, in equal parts or cut at positions.

    >>> import numgrad as ng
    >>> ng.arange(4.0).hsplit(2)
    (tensor([0., 1.]), tensor([2., 3.]))
    """
    dim = 0 if input._array.ndim == 1 else 1
    return _split_along(input, indices if sections is None else sections, "hsplit", 1, dim)


@declare(
    "vsplit(Tensor input, int sections)", "vsplit(Tensor input, int[] indices)", dispatched=True
)
def vsplit(
    input: Tensor, indices: tuple[int, ...] | None, sections: int | None
) -> tuple[Tensor, ...]:
    """Return views of the first dim of at least two, in equal parts or cut at positions.

    >>> import numgrad as ng
    >>> ng.ones(2, 3).vsplit(2)
    (tensor([[1., 1., 1.]]), tensor([[1., 1., 1.]]))
    """
    return _split_along(input, indices if sections is None else sections, "vsplit", 2, 0)


@declare(
    "dsplit(Tensor input, int sections)", "dsplit(Tensor input, int[] indices)", dispatched=True
)
def dsplit(
    input: Tensor, indices: tuple[int, ...] | None, sections: int | None
) -> tuple[Tensor, ...]:
    """Return views of the third dim, in equal parts or cut at positions.

    >>> import numgrad as ng
    >>> [part.shape for part in ng.ones(1, 2, 4).dsplit(2)]
    [torch.Size([1, 2, 2]), torch.Size([1, 2, 2])]
    """
    return _split_along(input, indices if sections is None else sections, "dsplit", 3, 2)
