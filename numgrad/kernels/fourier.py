"""Discrete Fourier transforms of arrays: by SciPy's library where that is installed, else NumPy's.

Those of many complex numbers, a power of two, are our own: `long_fourier`.

A result lies so that the transformed dims come last in memory, and before them the others in the
order of the input's strides, as PyTorch's do: `order_of` and `orders_of_real` say in which.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from numgrad.base.tuning import PARALLEL_FOURIER_BYTES
from numgrad.kernels.long_fourier import is_long, transform
from numgrad.kernels.move.memory_order import empty_by_order
from numgrad.runtime.threads import get_num_threads

__all__ = ["complex_to_complex", "complex_to_real", "order_of", "orders_of_real", "real_to_complex"]

Array = np.ndarray[Any, Any]
Transform = Callable[[Array], Array]
# How the libraries name what is divided by: nothing, the root of the length, the length.
_FORWARD = ("backward", "ortho", "forward")
_INVERSE = ("forward", "ortho", "backward")
_NONE, _ROOT, _LENGTH = (lambda n: 1.0), (lambda n: n**-0.5), (lambda n: 1.0 / n)
_SCALES: dict[str, dict[str, Callable[[int], float]]] = {
    "fft": dict(zip(_FORWARD, (_NONE, _ROOT, _LENGTH), strict=True)),
    "ifft": dict(zip(_INVERSE, (_NONE, _ROOT, _LENGTH), strict=True)),
}


@functools.cache
def _library() -> ModuleType:
    found = importlib.util.find_spec("scipy") is not None
    return importlib.import_module("scipy.fft" if found else "numpy.fft")


def order_of(array: Any, dims: Sequence[int], fixed: int) -> list[int]:
    """Return all dims, the transformed ones last; the last `fixed` of these stay where they are."""
    steps, count = array.strides, len(dims) - fixed
    others = _others(array.ndim, dims)
    moved = [sorted(each, key=lambda dim: -steps[dim]) for each in (others, dims[:count])]
    return [*moved[0], *moved[1], *dims[count:]]


def _others(ndim: int, dims: Sequence[int]) -> list[int]:
    """Return the dims that are not transformed, in the order that PyTorch sorts them out in.

    It decides where strides are equal, as those of what is expanded. Each place of a dim that is
    transformed is taken by the last of the others.

    >>> _others(4, (0, 2))
    [3, 1]
    """
    order = list(range(ndim))
    for place in range(ndim - len(dims)):
        if order[place] in dims:
            last = max(at for at in range(ndim) if order[at] not in dims)
            order[place], order[last] = order[last], order[place]
    return order[: ndim - len(dims)]


def orders_of_real(array: Any, dims: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return in which order the two steps of a transform to real numbers leave the dims."""
    if len(dims) == 1:
        return [], order_of(array, dims, 1)
    first = order_of(array, dims[:-1], 0)
    between = [*[dim for dim in first if dim != dims[-1]], dims[-1]]
    return first, between


def _transform(
    name: str, array: Any, order: Sequence[int], count: int, norm: str, **options: Any
) -> Transform:
    """Return what transforms the last `count` dims of an order, and puts dims back."""
    length = array.shape[order[-1]]
    if count == 1 and name in _SCALES and is_long(length):
        function = _own(name == "fft", _SCALES[name][norm](length))
    else:
        function = _librarys(name, array, count, norm, **options)
    if list(order) == list(range(array.ndim)):
        return function
    back = np.argsort(order).tolist()
    return lambda array: function(array.transpose(order)).transpose(back)


def _own(forward: bool, scale: float) -> Transform:
    return lambda array: transform(array, forward, scale)


def _librarys(name: str, array: Any, count: int, norm: str, **options: Any) -> Transform:
    """Return the library's transform of the last `count` dims."""
    library, ndim = _library(), array.ndim
    function: Callable[..., Array]
    if count == 1:
        function = functools.partial(getattr(library, name), norm=norm, **options)
    else:
        axes = tuple(range(ndim - count, ndim))
        function = functools.partial(getattr(library, f"{name}n"), axes=axes, norm=norm)
    single = array.dtype in (np.float32, np.complex64)
    dtype: Any = None
    if single and library.__name__.startswith("numpy"):  # which once computed in double precision
        dtype = np.float32 if name == "irfft" else np.complex64
    if (
        library.__name__.startswith("scipy")
        and array.size * array.dtype.itemsize >= PARALLEL_FOURIER_BYTES
    ):
        function = _parallel(function)
    return lambda array: np.ascontiguousarray(function(array), dtype)


def _parallel(function: Callable[..., Array]) -> Transform:
    return lambda array: function(array, workers=get_num_threads())


def complex_to_complex(
    array: Any, dims: Sequence[int], normalization: int, forward: bool
) -> Transform:
    """Return what transforms complex numbers along dims, in arrays that lie as this one does."""
    if not dims or not array.size:
        return lambda array: np.array(array, order="K")
    norm = (_FORWARD if forward else _INVERSE)[normalization]
    order = order_of(array, dims, 0)
    return _transform("fft" if forward else "ifft", array, order, len(dims), norm)


def real_to_complex(
    array: Any, dims: Sequence[int], normalization: int, onesided: bool
) -> Transform:
    """Return what transforms real numbers along dims; of the last one, `onesided`, to a half.

    That is the half from which all follows: the rest is conjugate.
    """
    shape, last = list(array.shape), dims[-1]
    if onesided:
        shape[last] = shape[last] // 2 + 1
    order = order_of(array, dims, 1)
    if not array.size:
        dtype = np.result_type(array.dtype, np.complex64)
        return lambda array: empty_by_order(shape, dtype, order)
    half = _transform("rfft", array, order, len(dims), _FORWARD[normalization])
    if onesided:
        return half
    return lambda array: _mirrored(half(array), dims, shape[last], order)


def _mirrored(half: Array, dims: Sequence[int], length: int, order: Sequence[int]) -> Array:
    """Return all of a transform of real numbers, of which half is there: the rest is conjugate."""
    last = dims[-1]
    shape = [length if dim == last else size for dim, size in enumerate(half.shape)]
    whole = empty_by_order(shape, half.dtype, order)
    kept = half.shape[last]
    at = [slice(None)] * half.ndim
    at[last] = slice(0, kept)
    whole[tuple(at)] = half
    # Element k of a dim is the conjugate of element -k; in the last dim these are in the half.
    source: Any = half
    for dim in dims[:-1]:
        source = np.roll(np.flip(source, dim), 1, dim)
    at[last] = slice(length - kept, 0, -1)
    mirror = source[tuple(at)]
    at[last] = slice(kept, length)
    np.conjugate(mirror, out=whole[tuple(at)])
    return whole


def complex_to_real(
    array: Any, dims: Sequence[int], normalization: int, last_size: int
) -> Transform:
    """Return what transforms the half of a spectrum to real numbers, so many in the last dim."""
    first, last = orders_of_real(array, dims)
    if not array.size:
        shape = [last_size if dim == dims[-1] else size for dim, size in enumerate(array.shape)]
        dtype = np.float32 if array.dtype == np.complex64 else np.float64
        return lambda array: empty_by_order(shape, dtype, last)
    norm = _INVERSE[normalization]
    to_real = _transform("irfft", array, last, 1, norm, n=last_size)
    if not first:
        return to_real
    between = _transform("ifft", array, first, len(dims) - 1, norm)
    return lambda array: to_real(between(array))
