"""Random numbers written into a tensor: uniform_, normal_, bernoulli_, random_ and others.

They follow the rules of in-place operations: each gives what is written into a tensor, which it is
handed a stand-in for. The gradient of what was there before is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.modes.grad_modes import no_grad
from numgrad.graph.tensor import Tensor, wrap
from numgrad.ops.creation.drawing import (
    check_probability,
    drawn_bernoulli,
    exponential,
    geometric,
    integers,
    normal,
    random_node,
    uniform,
)
from numgrad.ops.creation.generator import Generator, drawn
from numgrad.ops.movement.casts import cast
from numgrad.ops.movement.unit_dims import expand
from numgrad.ops.pointwise.arithmetic import add, mul, sub
from numgrad.ops.pointwise.division import div
from numgrad.ops.pointwise.exponential import exp
from numgrad.ops.pointwise.selection import clamp_max
from numgrad.ops.pointwise.trigonometric import tan
from numgrad.ops.signatures.declared import declare

__all__ = [
    "bernoulli_",
    "cauchy_",
    "exponential_",
    "geometric_",
    "log_normal_",
    "normal_",
    "random_",
    "uniform_",
]


Size = tuple[int, ...]


def _fill(tensor: Tensor, node: str, draw: Callable[[Size], Tensor], *others: Tensor) -> Tensor:
    """Return what `draw` returns for the tensor's shape, in its dtype."""
    with no_grad():
        found = cast(draw(tensor._array.shape), tensor._array.dtype)
    return random_node(node, found, tensor, *others)


@declare(
    "uniform_(Tensor self, float from_=0.0, float to=1.0, *, generator? generator=None)",
    function=False,
    writes=True,
)
def uniform_(self: Tensor, from_: float, to: float, generator: Generator | None) -> Tensor:
    """Fill with numbers drawn evenly from [from, to).

    Parameters
    ----------
    from_, to
        The range; the first is also accepted as ``from``.

    Raises
    ------
    NotImplementedError
        For bools and integers.
    RuntimeError
        If `from_` is greater than `to`, or the range does not fit the dtype.

    >>> import numgrad as ng
    >>> ng.ones(3).uniform_(2, 2)
    tensor([2., 2., 2.])
    """
    low, high, dtype = from_, to, self.dtype

    def draw(shape: Size) -> Tensor:
        if dtype.is_floating_point:
            _check_uniform_range(low, high, dtype)
        found = wrap(drawn(uniform(dtype), generator, shape))
        if low == 0 and high == 1:
            return found
        found = add(mul(found, high - low), complex(low, low) if dtype.is_complex else low)
        if low < high and not dtype.is_complex:
            # Rounding may reach the upper end, which is not in the range.
            last = np.nextafter(dtype.numpy.type(high), dtype.numpy.type(low))
            found = clamp_max(found, float(last))
        return found

    return _fill(self, "UniformBackward0", draw)


def _check_uniform_range(low: float, high: float, dtype: dtypes.dtype) -> None:
    limit = float(np.finfo(dtype.numpy).max)
    for name, value in (("from", low), ("to", high)):
        if not abs(value) <= limit:
            raise RuntimeError(f"{name} is out of bounds for {dtype.cpp_name}")
    if low > high:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}"
        )
    if not high - low <= limit:
        raise RuntimeError(
            "uniform_ expects to-from <= std::numeric_limits<"
            f"{dtype.scalar_name}>::max(), but found to={high:g} and from={low:g} which result in "
            "to-from to exceed the limit"
        )


@declare(
    "normal_(Tensor self, float mean=0.0, float std=1.0, *, generator? generator=None)",
    function=False,
    writes=True,
)
def normal_(self: Tensor, mean: float, std: float, generator: Generator | None) -> Tensor:
    """Fill with normally distributed numbers.

    Raises
    ------
    NotImplementedError
        For bools and integers.
    RuntimeError
        If `std` is negative.

    >>> import numgrad as ng
    >>> ng.ones(2).normal_(3, 0)
    tensor([3., 3.])
    """
    dtype = self.dtype

    def draw(shape: Size) -> Tensor:
        if not std >= 0:
            raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
        found = wrap(drawn(normal(dtype), generator, shape))
        return found if std == 1 and mean == 0 else add(mul(found, std), mean)

    return _fill(self, "NormalBackward0", draw)


@declare(
    "bernoulli_(Tensor self, Tensor p, *, generator? generator=None)",
    "bernoulli_(Tensor self, float p=0.5, *, generator? generator=None)",
    function=False,
    writes=True,
)
def bernoulli_(self: Tensor, p: Any, generator: Generator | None) -> Tensor:
    """Fill with ones and zeros, ones with probability `p`.

    Parameters
    ----------
    p : float, or tensor of a shape that expands to this one

    Raises
    ------
    RuntimeError
        If a probability is not between 0 and 1.
    NotImplementedError
        For complex tensors.

    >>> import numgrad as ng
    >>> ng.zeros(2).bernoulli_(1)
    tensor([1., 1.])
    """
    if self.dtype.is_complex:
        raise NotImplementedError(
            f"\"bernoulli_scalar_cpu_\" not implemented for '{self.dtype.scalar_name}'"
        )
    dtype = self.dtype
    if isinstance(p, Tensor):
        expand(wrap(p._array), self._array.shape)  # or raise
    chance = p if isinstance(p, Tensor) else check_probability(p)
    name = f"BernoulliBackward{1 if isinstance(p, Tensor) else 2}"
    return _fill(
        self,
        name,
        lambda shape: drawn_bernoulli(chance, generator, shape, dtype),
        *[p] * isinstance(p, Tensor),
    )


@declare(
    "random_(Tensor self, *, generator? generator=None)",
    "random_(Tensor self, int from_, int? to, *, generator? generator=None)",
    "random_(Tensor self, int to, *, generator? generator=None)",
    function=False,
    writes=True,
)
def random_(self: Tensor, from_: int | None, to: int | None, generator: Generator | None) -> Tensor:
    """Fill with integers: ``random_()``, ``random_(to)`` or ``random_(from, to)``.

    Parameters
    ----------
    from_, to
        The range [from, to). Without `from_` it starts at 0; without `to`, it ends with the
        greatest integer that the dtype holds, and for floating point dtypes with the greatest
        below which all are held.

    Raises
    ------
    RuntimeError
        If there is no integer in the range, or the dtype cannot hold one that is.

    >>> import numgrad as ng
    >>> ng.ones(2).random_(7, 8)
    tensor([7., 7.])
    """
    dtype = self.dtype
    if dtype.is_complex:
        raise NotImplementedError(
            f"\"random_kernel_cpu\" not implemented for '{dtype.scalar_name}'"
        )
    name = f"RandomBackward{0 if from_ is not None else 1 if to is not None else 2}"
    first = from_ or 0
    stop = _integers_of(dtype) + 1 if to is None else to
    return _fill(
        self,
        name,
        lambda shape: wrap(drawn(integers(first, stop, dtype), generator, shape)),
    )


def _integers_of(dtype: dtypes.dtype) -> int:
    """Return the greatest integer up to which a dtype holds all."""
    if dtype.category == dtypes.BOOL:
        return 1
    if dtype.is_floating_point:
        return 2 ** (np.finfo(dtype.numpy).nmant + 1)
    return int(np.iinfo(dtype.numpy).max)


def _check_continuous(dtype: dtypes.dtype, distribution: str) -> None:
    if not dtype.is_floating_point:
        name = dtype.scalar_name if distribution == "Exponential" else dtype.cpp_name
        raise RuntimeError(
            f"{distribution} distribution is a continuous probability distribution. dtype must be "
            f"a floating point but you specified {name}"
        )


@declare(
    "exponential_(Tensor self, float lambd=1.0, *, generator? generator=None)",
    function=False,
    writes=True,
)
def exponential_(self: Tensor, lambd: float, generator: Generator | None) -> Tensor:
    """Fill with numbers of the exponential distribution ``lambd * exp(-lambd * x)``.

    Raises
    ------
    RuntimeError
        If `lambd` is not positive, or the dtype not real floating point.

    >>> import numgrad as ng
    >>> bool((ng.empty(100).exponential_() >= 0).all())
    True
    """
    dtype = self.dtype

    def draw(shape: Size) -> Tensor:
        _check_continuous(dtype, "Exponential")
        if not lambd > 0:
            raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
        found = wrap(drawn(exponential(dtype), generator, shape))
        return found if lambd == 1 else div(found, lambd)

    return _fill(self, "ExponentialBackward0", draw)


@declare(
    "log_normal_(Tensor self, float mean=1.0, float std=2.0, *, generator? generator=None)",
    function=False,
    writes=True,
)
def log_normal_(self: Tensor, mean: float, std: float, generator: Generator | None) -> Tensor:
    """Fill with numbers whose logarithms are normally distributed.

    Raises
    ------
    RuntimeError
        If `std` is not positive.

    >>> import numgrad as ng
    >>> bool((ng.empty(100).log_normal_() > 0).all())
    True
    """
    dtype = self.dtype

    def draw(shape: Size) -> Tensor:
        if not dtype.is_floating_point:
            raise NotImplementedError(
                f"\"log_normal_cpu\" not implemented for '{dtype.scalar_name}'"
            )
        if not std > 0:
            raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
        return exp(add(mul(wrap(drawn(normal(dtype), generator, shape)), std), mean))

    return _fill(self, "LogNormalBackward0", draw)


@declare(
    "cauchy_(Tensor self, float median=0.0, float sigma=1.0, *, generator? generator=None)",
    function=False,
    writes=True,
)
def cauchy_(self: Tensor, median: float, sigma: float, generator: Generator | None) -> Tensor:
    """Fill with numbers of the Cauchy distribution about `median` with scale `sigma`.

    Raises
    ------
    RuntimeError
        If `sigma` is not positive, or the dtype not real floating point.

    >>> import numgrad as ng
    >>> ng.empty(3).cauchy_().shape
    torch.Size([3])
    """
    dtype = self.dtype

    def draw(shape: Size) -> Tensor:
        _check_continuous(dtype, "Cauchy")
        if not sigma > 0:
            raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
        angle = mul(sub(wrap(drawn(uniform(dtype), generator, shape)), 0.5), math.pi)
        return add(mul(tan(angle), sigma), median)

    return _fill(self, "CauchyBackward0", draw)


@declare(
    "geometric_(Tensor self, float p, *, generator? generator=None)",
    function=False,
    writes=True,
)
def geometric_(self: Tensor, p: float, generator: Generator | None) -> Tensor:
    """Fill with the numbers of trials until the first success, each with probability `p`.

    Raises
    ------
    RuntimeError
        If `p` is not between 0 and 1.

    >>> import numgrad as ng
    >>> bool((ng.empty(100).geometric_(0.5) >= 1).all())
    True
    """
    dtype = self.dtype

    def draw(shape: Size) -> Tensor:
        if dtype.category in (dtypes.BOOL, dtypes.COMPLEX):
            raise NotImplementedError(
                f"\"geometric_cpu\" not implemented for '{dtype.scalar_name}'"
            )
        if not 0 < p < 1:
            raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
        return wrap(drawn(geometric(p), generator, shape))

    return _fill(self, "GeometricBackward0", draw)
