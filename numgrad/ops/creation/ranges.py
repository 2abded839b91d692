"""Ranges: arange, linspace, logspace, eye, scalar_tensor and triangle indices.

Floating point values are computed in double precision and rounded once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.tensor import Tensor
from numgrad.ops.arguments.factories import (
    Array,
    check_device,
    check_layout,
    default_dtype_of,
    finish,
    read_dtype,
    read_integer,
    read_number,
    type_name,
)
from numgrad.ops.arguments.scalar_arrays import check_fits, scalar_array
from numgrad.ops.core.registry import public

__all__ = [
    "arange",
    "eye",
    "linspace",
    "logspace",
    "scalar_tensor",
    "tril_indices",
    "triu_indices",
]


@public(method=False)
def arange(
    *arguments: Any,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool | None = False,
    **keywords: Any,
) -> Tensor:
    """Return numbers from a start to before an end: ``arange([start,] end[, step])``.

    Parameters
    ----------
    start : number
        The first number; 0 unless given.
    end : number
        What the numbers stop before.
    step : number
        From one to the next; 1 unless given, and not 0.
    out : tensor, optional
        Fill this tensor instead of a new one; it takes the shape.
    dtype : dtype, optional
        int64 unless given, or the default floating point dtype if a number is floating point.
    layout, device, pin_memory : optional
        Accepted where they ask for what there is: strided memory of the CPU.
    requires_grad : bool
        Whether gradients are to be accumulated for it.

    Raises
    ------
    RuntimeError
        If the step is 0 or leads away from the end, or an end is not finite.

    >>> import numgrad as ng
    >>> ng.arange(5), ng.arange(1, 2, 0.25)
    (tensor([0, 1, 2, 3, 4]), tensor([1.0000, 1.2500, 1.5000, 1.7500]))
    """
    check_device("arange", device)
    check_layout("arange", layout)
    start, end, step = _read_range(arguments, keywords)
    numbers = (start, end, step)
    if any(isinstance(number, complex) for number in numbers):
        raise RuntimeError("value cannot be converted to type double without overflow")
    is_floating = any(isinstance(number, float) for number in numbers)
    default = default_dtype_of(out, dtypes.default_dtype() if is_floating else dtypes.int64)
    wanted = read_dtype("arange", dtype, default)
    if wanted.category in (dtypes.BOOL, dtypes.COMPLEX):
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{wanted.scalar_name}'")
    array = _arange(start, end, step, wanted)
    return finish("arange", array, requires_grad=requires_grad, out=out, dtype=dtype)


def _read_range(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Return start, end and step, given by position or by name."""
    names = ("end",) if len(arguments) == 1 and "end" not in keywords else ("start", "end", "step")
    given = dict(zip(names, arguments, strict=False))
    is_known = set(keywords) <= {"start", "end", "step"} and not set(given) & set(keywords)
    given.update(keywords)
    if len(arguments) > 3 or not is_known or "end" not in given or {*given} == {"end", "step"}:
        kinds = [type_name(value) for value in arguments]
        kinds += [f"{name}={type_name(value)}" for name, value in keywords.items()]
        raise TypeError(
            f"arange() received an invalid combination of arguments - got ({', '.join(kinds)}); it "
            "takes the numbers end; start and end; or start, end and step"
        )
    start, end, step = (given.get(name, value) for name, value in _RANGE_DEFAULTS)
    position = 1 if len(given) == 1 else 2
    return (
        read_number("arange", "start", 1, start),
        read_number("arange", "end", position, end),
        read_number("arange", "step", 3, step),
    )


_RANGE_DEFAULTS = (("start", 0), ("end", None), ("step", 1))


def _arange(start: Any, end: Any, step: Any, dtype: dtypes.dtype) -> Array:
    if not (step > 0 or step < 0):
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start:g} -> {end:g}")
    if (end < start) if step > 0 else (end > start):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if dtype is dtypes.int64:
        start, end, step = int(start), int(end), int(step)
        if not step:
            raise ValueError("step must be nonzero")
    if all(isinstance(number, int) for number in (start, end, step)):
        count = max(0, -((start - end) // step))
    else:
        count = math.ceil((end - start) / step)
    if dtype.category == dtypes.INTEGER:
        values = int(start) + int(step) * np.arange(count)
    else:
        values = start + step * np.arange(count, dtype=np.float64)
    return values.astype(dtype.numpy)


def _read_end(function: str, name: str, position: int, value: Any) -> Any:
    """Return one end of a range, which may be a tensor that requires grad."""
    if isinstance(value, Tensor) and not value._array.ndim:
        return value._array.item()
    return read_number(function, name, position, value)


def _read_ends(
    function: str, start: Any, end: Any, steps: Any, dtype: Any, out: Any
) -> tuple[Any, Any, int, dtypes.dtype]:
    """Return what `linspace` and `logspace` share: the ends, the number of steps, the dtype."""
    tensors = [value for value in (start, end) if isinstance(value, Tensor)]
    if any(tensor._array.ndim for tensor in tensors):
        ndims = [value._array.ndim if isinstance(value, Tensor) else 0 for value in (start, end)]
        raise RuntimeError(
            f"{function} only supports 0-dimensional start and end tensors, but got start with "
            f"{ndims[0]} dimension(s) and end with {ndims[1]} dimension(s)."
        )
    first = _read_end(function, "start", 1, start)
    last = _read_end(function, "end", 2, end)
    count = read_integer(function, "steps", 3, steps)
    if count < 0:
        raise RuntimeError("number of steps must be non-negative")
    is_complex = isinstance(first, complex) or isinstance(last, complex)
    natural = dtypes.default_complex_dtype() if is_complex else dtypes.default_dtype()
    wanted = read_dtype(function, dtype, default_dtype_of(out, natural))
    if is_complex and not wanted.is_complex:
        raise RuntimeError(
            f"torch.{function}(): inferred dtype {natural.cpp_name} can't be safely cast to "
            f"passed dtype {wanted.scalar_name}"
        )
    if wanted is dtypes.bool_:
        raise NotImplementedError(f"\"{function}_cpu\" not implemented for 'Bool'")
    return first, last, count, wanted


def _evenly(first: Any, last: Any, count: int) -> Array:
    """Return `count` numbers, counted from the nearer end, so that both ends are met exactly."""
    kind = np.complex128 if isinstance(first, complex) or isinstance(last, complex) else np.float64
    if count < 2:
        return np.full(count, first, kind)
    positions = np.arange(count, dtype=np.float64)
    with np.errstate(all="ignore"):
        step = kind(last) / (count - 1) - kind(first) / (count - 1)
        return np.where(
            positions < count // 2,
            kind(first) + step * positions,
            kind(last) - step * (count - 1 - positions),
        )


@public(method=False)
def linspace(
    start: Any,
    end: Any,
    steps: Any,
    *,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool | None = False,
) -> Tensor:
    """Return evenly spaced numbers from `start` to `end`, both included.

    Parameters
    ----------
    start, end : number, or tensor without dims
        The ends. No gradient flows to them.
    steps : int
        How many numbers.
    dtype : dtype, optional
        The default floating point (or complex) dtype unless given. Integers lose their fraction.
    out, layout, device, pin_memory, requires_grad : optional
        As for `arange`.

    Raises
    ------
    RuntimeError
        If `steps` is negative, or an end is complex and the dtype is not.

    >>> import numgrad as ng
    >>> ng.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    check_device("linspace", device)
    check_layout("linspace", layout)
    first, last, count, wanted = _read_ends("linspace", start, end, steps, dtype, out)
    for number in (first, last):
        check_fits(number, wanted.numpy)
    array = _evenly(first, last, count).astype(wanted.numpy)
    return finish("linspace", array, requires_grad=requires_grad, out=out, dtype=dtype)


@public(method=False)
def logspace(
    start: Any,
    end: Any,
    steps: Any,
    base: float = 10.0,
    *,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool | None = False,
) -> Tensor:
    """Return the powers of `base` with evenly spaced exponents from `start` to `end`.

    Parameters
    ----------
    start, end : number, or tensor without dims
        The first and the last exponent. No gradient flows to them.
    steps : int
        How many numbers.
    base : float
        What is raised to the exponents.
    dtype : dtype, optional
        The default floating point (or complex) dtype unless given. Integers lose their fraction.
    out, layout, device, pin_memory, requires_grad : optional
        As for `arange`.

    Raises
    ------
    RuntimeError
        If `steps` is negative, or an end is complex and the dtype is not.

    >>> import numgrad as ng
    >>> ng.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    check_device("logspace", device)
    check_layout("logspace", layout)
    first, last, count, wanted = _read_ends("logspace", start, end, steps, dtype, out)
    with np.errstate(all="ignore"):
        array = np.power(float(base), _evenly(first, last, count)).astype(wanted.numpy)
    return finish("logspace", array, requires_grad=requires_grad, out=out, dtype=dtype)


@public(method=False)
def eye(
    n: Any,
    m: Any = None,
    *,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool | None = False,
) -> Tensor:
    """Return a matrix with ones on the diagonal and zeros elsewhere.

    Parameters
    ----------
    n : int
        The number of rows.
    m : int, optional
        The number of columns; `n` unless given.
    out, dtype, layout, device, pin_memory, requires_grad : optional
        As for `zeros`.

    Raises
    ------
    RuntimeError
        If a number is negative.

    >>> import numgrad as ng
    >>> ng.eye(2, 3)
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    check_device("eye", device)
    check_layout("eye", layout)
    rows = read_integer("eye", "n", 1, n)
    columns = rows if m is None else read_integer("eye", "m", 2, m)
    for name, length in (("n", rows), ("m", columns)):
        if length < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {length}")
    wanted = read_dtype("eye", dtype, default_dtype_of(out, dtypes.default_dtype()))
    array = np.eye(rows, columns, dtype=wanted.numpy)
    return finish("eye", array, requires_grad=requires_grad, out=out, dtype=dtype)


@public(method=False)
def scalar_tensor(
    s: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool | None = False,
) -> Tensor:
    """Return a number as a tensor without dims, in the default dtype unless told.

    Parameters
    ----------
    s : number, or tensor without dims
    dtype, layout, device, pin_memory, requires_grad : optional
        As for `zeros`.

    Raises
    ------
    RuntimeError
        If the number is out of the range of the dtype, or complex where that is real.

    >>> import numgrad as ng
    >>> ng.scalar_tensor(3)
    tensor(3.)
    """
    check_device("scalar_tensor", device)
    check_layout("scalar_tensor", layout)
    value = read_number("scalar_tensor", "s", 1, s)
    wanted = read_dtype("scalar_tensor", dtype, dtypes.default_dtype())
    array = scalar_array(value, wanted.numpy, checks_half=False)
    return finish("scalar_tensor", array, requires_grad=requires_grad)


def _triangle(
    function: str, row: Any, col: Any, offset: Any, dtype: Any, layout: Any, device: Any
) -> Tensor:
    """Return the indices of the elements on one side of a diagonal, row by row."""
    check_device(function, device)
    check_layout(function, layout)
    rows = read_integer(function, "row", 1, row)
    columns = read_integer(function, "col", 2, col)
    shift = read_integer(function, "offset", 3, offset)
    for name, length in (("row", rows), ("col", columns)):
        if length < 0:
            raise RuntimeError(f"{name} must be non-negative, got{length}")
    wanted = read_dtype(function, dtype, dtypes.int64)
    if wanted not in (dtypes.int64, dtypes.int32):
        raise NotImplementedError(f"\"{function}\" not implemented for '{wanted.scalar_name}'")
    indices = np.tril_indices if function == "tril_indices" else np.triu_indices
    array = np.stack(indices(rows, shift, columns)).astype(wanted.numpy)
    return finish(function, array)


@public(method=False)
def tril_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
) -> Tensor:
    """Return the row and column indices of the lower triangle of a matrix.

    Parameters
    ----------
    row, col : int
        The shape of the matrix.
    offset : int
        How far above the main diagonal the triangle reaches.
    dtype : {int64, int32}
        Of the indices.
    layout, device : optional
        As for `zeros`.

    Returns
    -------
    tensor of shape (2, n)

    Raises
    ------
    RuntimeError
        If a length is negative.

    >>> import numgrad as ng
    >>> ng.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return _triangle("tril_indices", row, col, offset, dtype, layout, device)


@public(method=False)
def triu_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
) -> Tensor:
    """Return the row and column indices of the upper triangle of a matrix; see `tril_indices`.

    >>> import numgrad as ng
    >>> ng.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return _triangle("triu_indices", row, col, offset, dtype, layout, device)
