"""Random tensors: rand, randn, randint, randperm, normal, bernoulli.

The numbers come from a `Generator`, and are not those that PyTorch draws for the same seed.
"""

from __future__ import annotations

from typing import Any

from numgrad.base import dtypes
from numgrad.base.layouts import contiguous_format
from numgrad.graph.modes.grad_modes import no_grad
from numgrad.graph.modes.state import modes
from numgrad.graph.recorder import at_hand, follow_strides, is_traced_array, place_of
from numgrad.graph.tensor import Tensor, wrap
from numgrad.ops.arguments.factories import (
    LIKE_OPTIONS,
    OPTIONS,
    Array,
    checked_number,
    finish,
)
from numgrad.ops.core.places import laid_out
from numgrad.ops.core.promotion import broadcast_shapes
from numgrad.ops.core.registry import FUNCTIONS
from numgrad.ops.creation import drawing
from numgrad.ops.creation.creation import strides_like
from numgrad.ops.creation.drawing import (
    Distribution,
    check_deviations,
    check_probability,
    checked,
    drawn_bernoulli,
    integers,
    permutation,
    random_node,
    uniform,
)
from numgrad.ops.creation.generator import (
    Generator,
    default_generator,
    drawn,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from numgrad.ops.movement.casts import cast
from numgrad.ops.pointwise.arithmetic import add, mul
from numgrad.ops.signatures.declared import declare
from numgrad.ops.signatures.kinds import check_storage

__all__ = [
    "Generator",
    "bernoulli",
    "default_generator",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "normal",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "seed",
    "set_rng_state",
]


Size = tuple[int, ...]
RANDOM = "generator? generator=None"


def _drawn(head: str, options: str = f"Tensor? out=None, {OPTIONS}") -> list[str]:
    """Return the signatures of a function with a generator, and without, as PyTorch has them."""
    return [f"{head}, *, generator? generator, {options})", f"{head}, *, {options})"]


@declare(*_drawn("rand(size size"), method=False, finish=finish, dispatched=True)
def rand(size: Size, generator: Any, dtype: Any) -> Array:
    """Return numbers drawn evenly from [0, 1).

    Parameters
    ----------
    dtype
        Floating point or complex; the default floating point dtype unless given.

    Raises
    ------
    NotImplementedError
        For bools and integers.

    >>> import numgrad as ng
    >>> _ = ng.manual_seed(0)
    >>> x = ng.rand(1000)
    >>> bool((0 <= x).all()), bool((x < 1).all())
    (True, True)
    """
    return drawn(uniform(dtype or dtypes.default_dtype()), generator, size)


@declare(*_drawn("randn(size size"), method=False, finish=finish, dispatched=True)
def randn(size: Size, generator: Any, dtype: Any) -> Array:
    """Return normally distributed numbers of mean 0 and variance 1.

    Parameters
    ----------
    dtype
        Floating point or complex; the default floating point dtype unless given.

    Raises
    ------
    NotImplementedError
        For bools and integers.

    >>> import numgrad as ng
    >>> _ = ng.manual_seed(0)
    >>> x = ng.randn(3, 2)
    >>> x.shape, x.dtype
    (torch.Size([3, 2]), torch.float32)
    """
    return drawn(drawing.normal(dtype or dtypes.default_dtype()), generator, size)


def _drawn_like(input: Tensor, draw: Distribution, generator: Any, memory_format: Any) -> Array:
    """Return random numbers in the shape of a tensor, which lie in memory as it does."""
    array = drawn(draw, generator, input._array.shape)
    placed = strides_like(input._array, draw.dtype, memory_format)
    if is_traced_array(array):
        if placed.strides != place_of(array).strides:
            array = modes.trace.laid_out(array, placed, input._array)
        if memory_format is not contiguous_format:
            follow_strides(input._array, array)
        return array
    if placed.strides == array.strides:
        return array
    placed[...] = array
    return placed


@declare(
    *_drawn("rand_like(Tensor input", LIKE_OPTIONS), method=False, finish=finish, dispatched=True
)
def rand_like(input: Tensor, generator: Any, dtype: Any, memory_format: Any) -> Array:
    """Return numbers drawn evenly from [0, 1) in the shape and dtype of a tensor; see `rand`.

    >>> import numgrad as ng
    >>> ng.rand_like(ng.ones(2, 3)).shape
    torch.Size([2, 3])
    """
    return _drawn_like(input, uniform(dtype or input.dtype), generator, memory_format)


@declare(
    *_drawn("randn_like(Tensor input", LIKE_OPTIONS), method=False, finish=finish, dispatched=True
)
def randn_like(input: Tensor, generator: Any, dtype: Any, memory_format: Any) -> Array:
    """Return normally distributed numbers in the shape and dtype of a tensor; see `randn`.

    >>> import numgrad as ng
    >>> ng.randn_like(ng.ones(2, 3)).shape
    torch.Size([2, 3])
    """
    return _drawn_like(input, drawing.normal(dtype or input.dtype), generator, memory_format)


@declare(
    *_drawn("randint(int high, size size"),
    *_drawn("randint(int low, int high, size size"),
    method=False,
    finish=finish,
    dispatched=True,
)
def randint(low: int | None, high: int, size: Size, generator: Any, dtype: Any) -> Array:
    """Return integers drawn evenly from [low, high): ``randint([low,] high, size)``.

    Parameters
    ----------
    low
        The least number; 0 unless given.
    high
        The number after the greatest.
    dtype
        int64 unless given; anything but complex.

    Raises
    ------
    RuntimeError
        If there is no integer in the range, or the dtype cannot hold one that is.

    >>> import numgrad as ng
    >>> _ = ng.manual_seed(0)
    >>> x = ng.randint(3, 10, (100,))
    >>> x.dtype, int(x.min()), int(x.max())
    (torch.int64, 3, 9)
    """
    return drawn(integers(low or 0, high, dtype or dtypes.int64), generator, size)


@declare(
    *_drawn("randint_like(Tensor input, int high", LIKE_OPTIONS),
    *_drawn("randint_like(Tensor input, Tensor high", LIKE_OPTIONS),
    *_drawn("randint_like(Tensor input, int low, int high", LIKE_OPTIONS),
    method=False,
    finish=finish,
)
def randint_like(
    input: Tensor, low: int | None, high: Any, generator: Any, dtype: Any, memory_format: Any
) -> Array:
    """Return integers from [low, high) in the shape and dtype of a tensor.

    ``randint_like(input, [low,] high)``; see `randint`.

    >>> import numgrad as ng
    >>> ng.randint_like(ng.ones(3), 1)
    tensor([0., 0., 0.])
    """
    wanted = dtype or input.dtype
    if isinstance(high, Tensor):
        if high._array.ndim:
            raise RuntimeError("high must be a scalar tensor and on CPU")
        high = int(high._array.item())
    return _drawn_like(input, integers(low or 0, high, wanted), generator, memory_format)


@declare(*_drawn("randperm(int n"), method=False, finish=finish, dispatched=True)
def randperm(n: int, generator: Any, dtype: Any) -> Array:
    """Return the integers from 0 to n - 1 in random order.

    Parameters
    ----------
    dtype
        int64 unless given.

    Raises
    ------
    RuntimeError
        If `n` is negative, or too large for the dtype.

    >>> import numgrad as ng
    >>> ng.randperm(5).sum()
    tensor(10)
    """
    wanted = dtype or dtypes.int64
    if wanted.category in (dtypes.BOOL, dtypes.COMPLEX):
        raise NotImplementedError(f"\"randperm\" not implemented for '{wanted.scalar_name}'")
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    checked_number(n, wanted)
    check_storage((n,))
    return drawn(permutation(wanted), generator, (n,))


def _check_std(std: Any) -> None:
    if isinstance(std, Tensor):
        if std._array.dtype.kind == "c":
            raise RuntimeError("normal expects standard deviation to be non-complex")
    elif not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


@declare(
    f"normal(Tensor mean, Tensor std, *, {RANDOM}, Tensor? out=None)",
    f"normal(Tensor mean, float std=1.0, *, {RANDOM}, Tensor? out=None)",
    f"normal(float mean, Tensor std, *, {RANDOM}, Tensor? out=None)",
    f"normal(float mean, float std, size size, *, {RANDOM}, Tensor? out=None, {OPTIONS})",
    method=False,
    in_step=("mean", "std"),
)
def normal(
    mean: Any, std: Any, size: Any, generator: Any, out: Any, dtype: Any, requires_grad: Any
) -> Tensor:
    """Return normally distributed numbers of given mean and standard deviation.

    No gradient flows to tensors `mean` and `std`: it is 0, as in PyTorch. For one that does,
    write ``mean + std * randn(...)``.

    Parameters
    ----------
    mean, std : float or tensor
        Tensors are broadcast, and the result takes the dtype of the first.
    size
        The shape, given where both are numbers.

    Raises
    ------
    RuntimeError
        If a standard deviation is negative or complex.

    >>> import numgrad as ng
    >>> ng.normal(ng.tensor([1.0, 2.0]), 0.0)
    tensor([1., 2.])
    """
    tensors = [value for value in (mean, std) if isinstance(value, Tensor)]
    _check_std(std)
    wanted = dtype
    if dtype is None:
        sources = [each for each in (out, *tensors) if each is not None]
        wanted = sources[0].dtype if sources else dtypes.default_dtype()
    if tensors:
        size = broadcast_shapes([tensor._array.shape for tensor in tensors])
    numbers = _drawn_normal(mean, std, generator, size, wanted)
    if out is not None or not tensors:
        array = numbers._array
        return finish("normal", array, requires_grad=requires_grad, out=out, dtype=dtype)
    name = "NormalBackward3"
    if len(tensors) == 1:
        name = "NormalBackward1" if isinstance(mean, Tensor) else "NormalBackward2"
    return random_node(name, numbers, *tensors)


def _drawn_normal(mean: Any, std: Any, generator: Any, shape: Size, dtype: dtypes.dtype) -> Tensor:
    with no_grad():
        beside = [value._array for value in (mean, std) if isinstance(value, Tensor)]
        mean, std = (wrap(at_hand(v._array)) if isinstance(v, Tensor) else v for v in (mean, std))
        if isinstance(std, Tensor):
            std = checked(std, FUNCTIONS["ge"](std, 0), check_deviations)
        noise = wrap(drawn(drawing.normal(dtype), generator, shape, beside))
        return laid_out(cast(add(mul(noise, std), mean), dtype.numpy))


@declare(
    f"bernoulli(Tensor input, *, {RANDOM}, Tensor? out=None)",
    f"bernoulli(Tensor input, float p, *, {RANDOM})",
    in_step=("input",),
    dispatched=True,
)
def bernoulli(input: Tensor, p: Any, generator: Any, out: Any) -> Tensor:
    """Return ones and zeros, ones with the probabilities in `input`.

    No gradient flows to the probabilities: it is 0, as in PyTorch.

    Parameters
    ----------
    input
        Probabilities, of a floating point dtype; the result has this dtype.
    p : float, optional
        One probability for all elements; then `input` gives shape and dtype only.

    Raises
    ------
    RuntimeError
        If a probability is not between 0 and 1.

    >>> import numgrad as ng
    >>> ng.bernoulli(ng.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    chance = input if p is None else check_probability(p)
    numbers = drawn_bernoulli(chance, generator, input._array.shape, input.dtype)
    if out is not None:
        return finish("bernoulli", numbers._array, out=out)
    return random_node("BernoulliBackward0" if p is None else "BernoulliBackward2", numbers, input)
