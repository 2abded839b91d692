"""The other way of pooling with greatest elements: each back to where it was, zeros elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.base.layouts import channels_last_of
from numgrad.graph.tensor import Tensor, fresh
from numgrad.ops.core.run_time import at_run_time
from numgrad.ops.indexing.scattering import scatter
from numgrad.ops.movement.shape import reshape, unsafe_view
from numgrad.ops.movement.unit_dims import squeeze, unsqueeze
from numgrad.ops.signatures.declared import declare
from numgrad.ops.spatial.arguments import numbers, refuse

__all__ = ["UNPOOLS"]

Array = np.ndarray[Any, Any]
Ints = tuple[int, ...]

UNPOOLS: dict[str, Callable[..., Any]] = {}


@at_run_time
def _check_places(places: Array, sizes: Ints) -> Array:
    """Return places in planes; raise unless all are in one."""
    outside = (places < 0) | (places >= math.prod(sizes))
    if outside.any():
        volume = "x".join(map(str, sizes))
        raise RuntimeError(
            f"Found an invalid max index: {places[outside].flat[0]} (output volumes are of size "
            f"{volume})"
        )
    return places


def _sizes_of(
    input: Tensor, dims: int, kernel: Ints, stride: Ints, padding: Ints, output_size: Any
) -> Ints:
    """Return how large planes are: as given, if pooling could have started from that."""
    shape = input._array.shape
    given = shape[len(shape) - dims :]
    default = tuple(
        [
            (size - 1) * step + width - 2 * pad
            for size, step, width, pad in zip(given, stride, kernel, padding, strict=False)
        ]
    )
    if output_size is None:
        return default
    sizes = list(output_size)
    if len(sizes) == dims + 2:
        sizes = sizes[2:]
    if len(sizes) != dims:
        raise ValueError(
            f"output_size should be a sequence containing {dims} or {dims + 2} elements, but it "
            f"has a length of '{len(sizes)}'"
        )
    for dim, (size, usual, step) in enumerate(zip(sizes, default, stride, strict=True)):
        if not usual - step < size < usual + step:
            raise ValueError(
                f'invalid output_size "{tuple(sizes)}" (dim {dim} must be between '
                f"{usual - step} and {usual + step})"
            )
    return tuple([int(size) for size in sizes])


def _unpooled(input: Tensor, indices: Tensor, sizes: Ints) -> Tensor:
    dims, shape = len(sizes), input._array.shape
    if indices._array.dtype != np.int64:
        raise RuntimeError(
            f"elements in indices should be type int64 but got: {indices.dtype.scalar_name}"
        )
    if len(shape) not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"Input to max_unpooling{dims}d should be a {dims + 1}d or {dims + 2}d Tensor, but got "
            f"a tensor with {len(shape)} dimensions."
        )
    if indices._array.shape != shape:
        raise RuntimeError(
            "Expected shape of indices to be same as that of the input tensor "
            f"({numbers(shape)}) but got indices tensor with shape: "
            f"{numbers(indices._array.shape)}"
        )
    empty = [at for at in range(1, len(shape)) if not shape[at]]
    if empty:
        raise RuntimeError(
            f"max_unpooling{dims}d_forward_out_cpu(): Expected input to have non-zero size for "
            f"non-batch dimensions, but got {numbers(shape)} with dimension {empty[0]} being empty."
        )
    refuse(f"max_unpool{dims}d", input, "f")
    lead = shape[: len(shape) - dims]
    rest = math.prod(shape[len(shape) - dims :])
    places = reshape(indices, (*lead, rest))
    _check_places(places._array, sizes=sizes)
    plane = fresh(np.zeros((*lead, math.prod(sizes)), input._array.dtype))
    found: Tensor = scatter(plane, len(lead), places, reshape(input, (*lead, rest)))
    result = unsafe_view(found, (*lead, *sizes))
    images: Any = channels_last_of(shape, input.stride()) if dims == 2 else None
    return result if images is None else result.contiguous(memory_format=images)


def _each(values: int | Sequence[int], dims: int) -> Ints:
    return (values,) * dims if isinstance(values, int) else tuple(values)


def _make(dims: int) -> None:
    name = f"max_unpool{dims}d"

    def rule(
        input: Tensor,
        indices: Tensor,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        output_size: Any,
    ) -> Tensor:
        kernel = _each(kernel_size, dims)
        step = kernel if stride is None else _each(stride, dims)
        sizes = _sizes_of(input, dims, kernel, step, _each(padding, dims), output_size)
        if dims == 1:
            plane = _unpooled(unsqueeze(input, -1), unsqueeze(indices, -1), (*sizes, 1))
            return squeeze(plane, -1)
        if dims == 3 and min(step) < 1:
            raise RuntimeError(
                f"strides should be greater than zero, but got stride: {numbers(step)}"
            )
        return _unpooled(input, indices, sizes)

    shape = ", ".join(["1", *["4"] * dims])
    rule.__name__ = rule.__qualname__ = name
    rule.__doc__ = f"""Return elements put back to where `max_pool{dims}d` found them, among zeros.

    The gradient is g at these places.

    Parameters
    ----------
    input, indices
        What `max_pool{dims}d` returned, `return_indices` being True, or others of those shapes.
    kernel_size, stride, padding : int or tuple of int
        As they were there.
    output_size : sequence of int, optional
        The sizes of the result, where several would have been pooled to those of the input.

    Raises
    ------
    RuntimeError
        If there is no such place, or shapes and dtypes do not fit.
    ValueError
        If an output of that size would not have been pooled to the input.

    >>> import numgrad as ng
    >>> values, places = ng.nn.functional.max_pool{dims}d(ng.ones({shape}), 2, return_indices=True)
    >>> ng.nn.functional.{name}(values, places, 2).sum()
    tensor({2**dims}.)
    """
    UNPOOLS[name] = globals()[name] = declare(
        f"{name}(Tensor input, Tensor indices, object kernel_size, object stride=None, "
        "object padding=0, object output_size=None)",
        function=False,
        method=False,
    )(rule)


for _dims in (1, 2, 3):
    _make(_dims)
