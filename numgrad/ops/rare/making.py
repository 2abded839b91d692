"""Tensors of ranges with their end, of dims in an order, of buffers and files."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.recorder import note_given
from numgrad.graph.tensor import Tensor, wrap
from numgrad.graph.warned import warn
from numgrad.ops.arguments.factories import OPTIONS, Array, finish, numpy_dtype, require_grad
from numgrad.ops.signatures.declared import declare

__all__ = ["empty_permuted", "from_file", "frombuffer", "range"]


@declare(
    f"range(number start, number end, number step=1, *, Tensor? out=None, {OPTIONS})",
    method=False,
    finish=finish,
)
def range(start: Any, end: Any, step: Any, dtype: Any) -> Array:
    """Return numbers from a start up to an end, which is one of them if a step leads there.

    As in PyTorch it is deprecated: `arange` stops before the end, as Python's range does.

    Parameters
    ----------
    dtype
        The default floating point dtype unless given.

    Raises
    ------
    RuntimeError
        If the step is 0 or leads away from the end, or an end is not finite.

    >>> import warnings
    >>> import numgrad as ng
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     ng.range(0, 2)
    tensor([0., 1., 2.])
    """
    warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is "
        "inconsistent with Python's range builtin. Instead, use torch.arange, which produces "
        "values in [start, end)."
    )
    if not step:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start:g} -> {end:g}")
    if (end < start) if step > 0 else (end > start):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    wanted = dtypes.default_dtype() if dtype is None else dtype
    found = start + step * np.arange(int((end - start) / step) + 1)
    return found.astype(wanted.numpy)


@declare(
    f"empty_permuted(size size, int[] physical_layout, *, {OPTIONS})", method=False, finish=finish
)
def empty_permuted(size: tuple[int, ...], physical_layout: tuple[int, ...], dtype: Any) -> Array:
    """Return a tensor yet to be set, whose dims lie in memory in an order.

    Parameters
    ----------
    physical_layout
        The dims, the outermost first: (0, 2, 3, 1) for channels last.

    Raises
    ------
    RuntimeError
        If that are not all dims, each once.

    >>> import numgrad as ng
    >>> ng.empty_permuted((2, 3, 4), (1, 2, 0)).stride()
    (1, 8, 2)
    """
    ndim = len(size)
    if len(physical_layout) != ndim:
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. "
            f"len(size) = {ndim} is not equal to len(physical_layout) = {len(physical_layout)}"
        )
    for at, dim in enumerate(physical_layout):
        if not 0 <= dim < ndim:
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {ndim - 1}, but got {dim} "
                f"at index {at}).  NB: negative dims not currently supported; file an issue if you "
                "want it."
            )
        if dim in physical_layout[:at]:
            raise RuntimeError("Duplicate dim not allowed")
    array = np.empty([size[dim] for dim in physical_layout], numpy_dtype(dtype))
    return array.transpose(np.argsort(physical_layout)) if ndim else array


@declare(
    "frombuffer(object buffer, *, dtype dtype, int count=-1, int offset=0, "
    "bool requires_grad=False)",
    method=False,
)
def frombuffer(buffer: Any, dtype: Any, count: int, offset: int, requires_grad: bool) -> Tensor:
    """Return a tensor of one dim over the memory of a buffer, such as a bytearray.

    Parameters
    ----------
    count
        How many elements; all that there are unless given.
    offset
        How many bytes before the first.

    Raises
    ------
    ValueError
        If it is no buffer, or there are not so many bytes.

    >>> import numgrad as ng
    >>> ng.frombuffer(bytearray([1, 0, 2, 0]), dtype=ng.int16)
    tensor([1, 2], dtype=torch.int16)
    """
    try:
        memory = memoryview(buffer)
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    length, width = memory.nbytes, dtype.itemsize
    if not length or not count:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length "
            f"({length} bytes) minus 1"
        )
    if count < 0 and (length - offset) % width:
        raise ValueError(
            f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a "
            f"multiple of element size ({width})"
        )
    if count > 0 and offset + count * width > length:
        raise ValueError(
            f"requested buffer length ({count} * {width} bytes) after offset ({offset} bytes) must "
            f"not be greater than actual buffer length ({length} bytes)"
        )
    if memory.readonly:
        warn(
            "The given buffer is not writable, and PyTorch does not support non-writable tensors. "
            "This means you can write to the underlying (supposedly non-writable) buffer using the "
            "tensor. You may want to copy the buffer to protect its data or make it writable "
            "before converting it to a tensor. This type of warning will be suppressed for the "
            "rest of this program."
        )
    found = wrap(np.frombuffer(memory, dtype.numpy, count, offset))
    note_given(found._array)
    if requires_grad:
        require_grad(found)
    return found


@declare(
    f"from_file(str filename, bool? shared=None, int? size=0, *, {OPTIONS})",
    method=False,
)
def from_file(
    filename: str, shared: bool | None, size: int | None, dtype: Any, requires_grad: Any
) -> Tensor:
    """Return a tensor of one dim over the memory of a file, which is read as it is needed.

    Parameters
    ----------
    shared
        Whether what is written to the tensor is written to the file, which is made if need be.
    size
        How many elements; of none no file is asked for.

    Raises
    ------
    RuntimeError
        If there is no such file, or it is too short.

    >>> import os, tempfile
    >>> import numgrad as ng
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     name = os.path.join(folder, "numbers")
    ...     ng.from_file(name, True, 2).fill_(1.0)
    tensor([1., 1.])
    """
    kind, mode = numpy_dtype(dtype), "read-write" if shared else "read-only"
    array: Any = np.empty(0, kind)  # of no elements no file is opened
    try:
        if size and shared and not os.path.exists(filename):
            with open(filename, "wb") as new:
                new.truncate(size * kind.itemsize)
        if size:
            array = np.memmap(filename, kind, "r+" if shared else "c", shape=(size,))
    except OSError as error:
        raise RuntimeError(
            f"unable to open file <{filename}> in {mode} mode: {error.strerror} ({error.errno})"
        ) from None
    except ValueError as error:
        raise RuntimeError(
            f"file <{filename}> size is smaller than the required mapping"
        ) from error
    found = wrap(np.asarray(array))
    if requires_grad:
        require_grad(found)
    return found
