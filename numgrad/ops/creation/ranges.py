"""Ranges: arange, linspace, logspace, eye, scalar_tensor and triangle indices.

Floating point values have PyTorch's bits, as far as they do not depend on the processor: those on
processors with vectors of 32 bytes that multiply and add at once, as x86 has had them since 2013.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.base.float_errors import silent
from numgrad.base.halves import HALF
from numgrad.graph.tensor import Tensor
from numgrad.kernels.ranges import evenly, in_lanes, powers
from numgrad.ops.arguments.factories import OPTIONS, Array, finish, numpy_dtype
from numgrad.ops.arguments.scalar_arrays import check_fits, scalar_array
from numgrad.ops.signatures.declared import declare
from numgrad.ops.signatures.kinds import check_storage

__all__ = [
    "arange",
    "eye",
    "linspace",
    "logspace",
    "scalar_tensor",
    "tril_indices",
    "triu_indices",
]


@declare(
    f"arange(number end, *, Tensor? out=None, {OPTIONS})",
    f"arange(number start, number end, *, Tensor? out=None, {OPTIONS})",
    f"arange(number start, number end, number step=1, *, Tensor? out=None, {OPTIONS})",
    method=False,
    finish=finish,
    dispatched=True,
)
def arange(start: Any, end: Any, step: Any, dtype: Any) -> Array:
    """Return numbers from a start to before an end: ``arange([start,] end[, step])``.

    Parameters
    ----------
    start
        The first number; 0 unless given.
    end
        What the numbers stop before.
    step
        From one to the next; 1 unless given, and not 0.
    dtype
        int64 unless given, or the default floating point dtype if a number is floating point.

    Raises
    ------
    RuntimeError
        If the step is 0 or leads away from the end, or an end is not finite.

    >>> import numgrad as ng
    >>> ng.arange(5), ng.arange(1, 2, 0.25)
    (tensor([0, 1, 2, 3, 4]), tensor([1.0000, 1.2500, 1.5000, 1.7500]))
    """
    numbers = (0 if start is None else start, end, step)
    if dtype is None and {*map(type, numbers)} == {int} and step == 1 and _is_short(*numbers):
        return np.arange(numbers[0], end, dtype=np.int64)
    if any(isinstance(number, complex) for number in numbers):
        raise RuntimeError("value cannot be converted to type double without overflow")
    is_floating = any(isinstance(number, float) for number in numbers)
    wanted = dtype or (dtypes.default_dtype() if is_floating else dtypes.int64)
    if wanted.category in (dtypes.BOOL, dtypes.COMPLEX):
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{wanted.scalar_name}'")
    return _arange(*numbers, wanted)


def _is_short(start: int, end: int, step: int) -> bool:
    """Return whether to count from one to the other comes nowhere near the ends of int64."""
    return -(2**32) < start <= end < 2**32


def _arange(start: Any, end: Any, step: Any, dtype: dtypes.dtype) -> Array:
    if not (step > 0 or step < 0):
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start:g} -> {end:g}")
    if (end < start) if step > 0 else (end > start):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if dtype.category == dtypes.INTEGER:
        for number in (start, end, step):
            check_fits(number, dtypes.int64.numpy)
    if dtype is dtypes.int64:
        start, end, step = int(start), int(end), int(step)
        if not step:
            raise ValueError("step must be nonzero")
    if all(isinstance(number, int) for number in (start, end, step)):
        count = max(0, -((start - end) // step))
    else:
        count = math.ceil((end - start) / step)
    if count >= 2**63:
        raise RuntimeError("invalid size, possible overflow?")
    check_storage((count,))
    if dtype.category == dtypes.INTEGER:
        values = int(start) + int(step) * np.arange(count)  # which wraps around and back
        return values.astype(dtype.numpy)
    return in_lanes(start, step, count, dtype.numpy)


def _ends(
    function: str, start: Any, end: Any, steps: int, dtype: Any
) -> tuple[Any, Any, dtypes.dtype]:
    """Return what `linspace` and `logspace` share: the ends and the dtype."""
    ends = (start, end)
    ndims = [value._array.ndim if isinstance(value, Tensor) else 0 for value in ends]
    if any(ndims):
        named = [
            f"{name} with {ndim} dimension(s)"
            for name, ndim, value in zip(("start", "end"), ndims, ends, strict=True)
            if isinstance(value, Tensor)
        ]
        raise RuntimeError(
            f"{function} only supports 0-dimensional start and end tensors, but got "
            f"{' and '.join(named)}."
        )
    first, last = (each._array.item() if isinstance(each, Tensor) else each for each in ends)
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    check_storage((steps,))
    is_complex = isinstance(first, complex) or isinstance(last, complex)
    natural = dtypes.default_complex_dtype() if is_complex else dtypes.default_dtype()
    wanted = dtype or natural
    if is_complex and not wanted.is_complex:
        raise RuntimeError(
            f"torch.{function}(): inferred dtype {natural.cpp_name} can't be safely cast to "
            f"passed dtype {wanted.scalar_name}"
        )
    if wanted is dtypes.bool_:
        raise NotImplementedError(f"\"{function}_cpu\" not implemented for 'Bool'")
    if wanted.category == dtypes.INTEGER:  # the ends lose their fraction, not what lies between
        first, last = (int(scalar_array(each, wanted.numpy)) for each in (first, last))
    elif wanted.numpy in _NARROW:
        for number in (first, last):
            check_fits(number, wanted.numpy)
        first, last = (float(_rounded(each, wanted.numpy)) for each in (first, last))
    return first, last, wanted


_NARROW = (HALF, np.dtype(np.float32))


@silent
def _rounded(number: Any, dtype: Any) -> Any:
    return dtype.type(number)


@silent
def _in_narrow_steps(first: float, last: float, count: int, dtype: Any) -> Array:
    """Return `count` numbers in float16 or float32, a whole number of steps from the nearer end.

    PyTorch rounds the step, and in float16 everything that comes of it; in float32 it multiplies
    and adds at once.
    """
    wide = HALF if dtype == HALF else np.dtype(np.float64)
    start, end = dtype.type(first), dtype.type(last)
    if count < 2:
        return np.full(count, start)
    step: Any = wide.type((end - start) / dtype.type(count - 1))
    half = count // 2
    found = np.empty(count, dtype)
    found[:half] = start.astype(wide) + step * np.arange(half).astype(wide)
    found[half:] = end.astype(wide) - step * np.arange(count - half - 1, -1, -1).astype(wide)
    return found


def _between(name: str, more: str = "") -> list[str]:
    """Return the signatures of a function of two ends, each a tensor or a number."""
    rest = f"int steps{more}, *, Tensor? out=None, {OPTIONS}"
    kinds = [("Tensor", "Tensor"), ("number", "Tensor"), ("Tensor", "number"), ("number", "number")]
    return [f"{name}({first} start, {last} end, {rest})" for first, last in kinds]


@declare(*_between("linspace"), method=False, finish=finish, dispatched=True)
def linspace(start: Any, end: Any, steps: int, dtype: Any) -> Array:
    """Return evenly spaced numbers from `start` to `end`, both included.

    Parameters
    ----------
    start, end : number, or tensor without dims
        The ends. No gradient flows to them.
    steps
        How many numbers.
    dtype
        The default floating point (or complex) dtype unless given. Integers lose their fraction,
        and so do the ends.

    Raises
    ------
    RuntimeError
        If `steps` is negative, or an end is complex and the dtype is not.

    >>> import numgrad as ng
    >>> ng.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    first, last, wanted = _ends("linspace", start, end, steps, dtype)
    for number in (first, last):
        check_fits(number, wanted.numpy)
    if wanted.numpy in _NARROW:
        return _in_narrow_steps(first, last, steps, wanted.numpy)
    if wanted is dtypes.complex64:
        found = np.empty(steps, np.complex64)
        for part in ("real", "imag"):
            low, high = (getattr(complex(each), part) for each in (first, last))
            setattr(found, part, _in_narrow_steps(low, high, steps, np.dtype(np.float32)))
        return found
    return evenly(first, last, steps).astype(wanted.numpy)


@declare(*_between("logspace", ", float base=10.0"), method=False, finish=finish, dispatched=True)
def logspace(start: Any, end: Any, steps: int, base: float, dtype: Any) -> Array:
    """Return the powers of `base` with evenly spaced exponents from `start` to `end`.

    Parameters
    ----------
    start, end : number, or tensor without dims
        The first and the last exponent. No gradient flows to them.
    steps
        How many numbers.
    base
        What is raised to the exponents.
    dtype
        The default floating point (or complex) dtype unless given. Integers lose their fraction,
        and so do the ends.

    Raises
    ------
    RuntimeError
        If `steps` is negative, or an end is complex and the dtype is not.

    >>> import numgrad as ng
    >>> ng.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    first, last, wanted = _ends("logspace", start, end, steps, dtype)
    with np.errstate(all="ignore"):
        if wanted.is_complex:
            return np.power(base, evenly(first, last, steps)).astype(wanted.numpy)
        return powers(base, first, last, steps, wanted.numpy)


@declare(
    f"eye(int n, *, Tensor? out=None, {OPTIONS})",
    f"eye(int n, int m, *, Tensor? out=None, {OPTIONS})",
    method=False,
    finish=finish,
    dispatched=True,
)
def eye(n: int, m: int | None, dtype: Any) -> Array:
    """Return a matrix with ones on the diagonal and zeros elsewhere.

    Parameters
    ----------
    n
        The number of rows.
    m
        The number of columns; `n` unless given.

    Raises
    ------
    RuntimeError
        If a number is negative.

    >>> import numgrad as ng
    >>> ng.eye(2, 3)
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    columns = n if m is None else m
    for name, length in (("n", n), ("m", columns)):
        if length < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {length}")
    check_storage((n, columns))
    return np.eye(n, columns, dtype=numpy_dtype(dtype))


@declare(f"scalar_tensor(number s, *, {OPTIONS})", method=False, finish=finish)
def scalar_tensor(s: Any, dtype: Any) -> Array:
    """Return a number as a tensor without dims, in the default dtype unless told.

    Raises
    ------
    RuntimeError
        If the number is out of the range of the dtype, or complex where that is real.

    >>> import numgrad as ng
    >>> ng.scalar_tensor(3)
    tensor(3.)
    """
    return scalar_array(s, (dtype or dtypes.default_dtype()).numpy, checks_half=False)


def _triangle(function: str, row: int, col: int, offset: int, dtype: Any) -> Array:
    """Return the indices of the elements on one side of a diagonal, row by row."""
    for name, length in (("row", row), ("col", col)):
        if length < 0:
            raise RuntimeError(f"{name} must be non-negative, got{length}")
    wanted = dtype or dtypes.int64
    if wanted not in (dtypes.int64, dtypes.int32):
        raise NotImplementedError(f"\"{function}\" not implemented for '{wanted.scalar_name}'")
    is_lower = function == "tril_indices"
    offset = min(max(offset, -row), col)  # further away all is the same
    below = _count_below(row, col, offset if is_lower else offset - 1)
    check_storage((2, below if is_lower else row * col - below))
    indices = np.tril_indices if is_lower else np.triu_indices
    # Of a long matrix only what the triangle reaches: NumPy makes a mask of all that it is told of.
    if is_lower:
        col = min(col, max(row + offset, 0))
    else:
        row = min(row, max(col - offset, 0))
    return np.stack(indices(row, offset, col)).astype(wanted.numpy)


def _count_below(row: int, col: int, offset: int) -> int:
    """Return how many elements of a matrix are on a diagonal or below it."""

    def up_to(n: int) -> int:  # the sum of the numbers below n, of which none counts more than col
        n = max(n, 0)
        inner = min(n, col)
        return inner * (inner - 1) // 2 + (n - inner) * col

    return up_to(row + offset + 1) - up_to(offset + 1)


_TRIANGLE = f"(int row, int col, int offset=0, *, {OPTIONS})"


@declare(f"tril_indices{_TRIANGLE}", method=False, finish=finish, dispatched=True)
def tril_indices(row: int, col: int, offset: int, dtype: Any) -> Array:
    """Return the row and column indices of the lower triangle of a matrix.

    Parameters
    ----------
    row, col
        The shape of the matrix.
    offset
        How far above the main diagonal the triangle reaches.
    dtype : {int64, int32}
        Of the indices.

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
    return _triangle("tril_indices", row, col, offset, dtype)


@declare(f"triu_indices{_TRIANGLE}", method=False, finish=finish, dispatched=True)
def triu_indices(row: int, col: int, offset: int, dtype: Any) -> Array:
    """Return the row and column indices of the upper triangle of a matrix; see `tril_indices`.

    >>> import numgrad as ng
    >>> ng.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return _triangle("triu_indices", row, col, offset, dtype)
