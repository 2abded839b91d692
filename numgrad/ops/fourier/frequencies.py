"""What goes with transforms: the frequencies of their elements, and the order of these."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.tensor import Tensor
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.arguments.factories import OPTIONS, Array, finish
from numgrad.ops.indexing.rearranging import roll
from numgrad.ops.signatures.declared import declare

__all__ = ["fft_fftfreq", "fft_fftshift", "fft_ifftshift", "fft_rfftfreq"]


def _frequencies(name: str, numbers: Array, n: int, d: float, dtype: Any) -> Array:
    wanted = dtype or dtypes.default_dtype()
    if not (wanted.is_floating_point or wanted.is_complex):
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    if wanted.is_complex:
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{wanted.scalar_name}'")
    step = np.asarray(1.0 / (n * d) if n else 0.0, wanted.numpy)
    return numbers.astype(wanted.numpy) * step


@declare(
    f"fft_fftfreq(int n, float d=1.0, *, Tensor? out=None, {OPTIONS})",
    function=False,
    method=False,
    finish=finish,
)
def fft_fftfreq(n: int, d: float, dtype: Any) -> Array:
    """Return the frequencies of the elements that `fft` gives, in cycles by unit of the spacing.

    They go up to half of the sampling frequency, and from its negative to 0. Mirrors
    ``torch.fft.fftfreq``.

    Parameters
    ----------
    n
        How many points there are.
    d
        The spacing of the samples.

    Raises
    ------
    RuntimeError
        If the dtype is not a floating point one.

    >>> import numgrad as ng
    >>> ng.fft.fftfreq(4, 0.5)
    tensor([ 0.0000,  0.5000, -1.0000, -0.5000])
    """
    numbers = np.arange(n)
    numbers[(n + 1) // 2 :] -= n
    return _frequencies("fftfreq", numbers, n, d, dtype)


@declare(
    f"fft_rfftfreq(int n, float d=1.0, *, Tensor? out=None, {OPTIONS})",
    function=False,
    method=False,
    finish=finish,
)
def fft_rfftfreq(n: int, d: float, dtype: Any) -> Array:
    """Return the frequencies of the elements that `rfft` gives, in cycles by unit of the spacing.

    They go from 0 up to half of the sampling frequency. Mirrors ``torch.fft.rfftfreq``.

    Parameters
    ----------
    n
        How many points there are in the signal.
    d
        The spacing of the samples.

    Raises
    ------
    RuntimeError
        If the dtype is not a floating point one.

    >>> import numgrad as ng
    >>> ng.fft.rfftfreq(4, 0.5)
    tensor([0.0000, 0.5000, 1.0000])
    """
    return _frequencies("rfftfreq", np.arange(n // 2 + 1), n, d, dtype)


@declare(
    "fft_fftshift(Tensor input, int[1]? dim=None)", function=False, method=False, dispatched=True
)
def fft_fftshift(input: Tensor, dim: Any) -> Tensor:
    """Return elements in the order of their frequencies, with frequency 0 in the middle.

    The gradient is g, rolled back. Mirrors ``torch.fft.fftshift``.

    Parameters
    ----------
    dim
        The dims in which they are, all unless given.

    Raises
    ------
    IndexError
        If there is no such dim.

    >>> import numgrad as ng
    >>> ng.fft.fftshift(ng.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    return _shifted(input, dim, lambda size: size // 2)


@declare(
    "fft_ifftshift(Tensor input, int[1]? dim=None)", function=False, method=False, dispatched=True
)
def fft_ifftshift(input: Tensor, dim: Any) -> Tensor:
    """Return elements in the order in which `fft` gives them: `fftshift`, undone.

    The gradient is g, rolled back. Mirrors ``torch.fft.ifftshift``.

    Parameters
    ----------
    dim
        The dims in which they are, all unless given.

    Raises
    ------
    IndexError
        If there is no such dim.

    >>> import numgrad as ng
    >>> ng.fft.ifftshift(ng.tensor([-2, -1, 0, 1]))
    tensor([ 0,  1, -2, -1])
    """
    return _shifted(input, dim, lambda size: (size + 1) // 2)


def _shifted(input: Tensor, dim: Any, by: Any) -> Tensor:
    shape = input._array.shape
    dims = tuple(range(len(shape)) if dim is None else [wrap_dim(each, len(shape)) for each in dim])
    result: Tensor = roll(input, tuple([by(shape[each]) for each in dims]), dims)
    return result
