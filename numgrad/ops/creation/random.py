"""Random tensors: rand, randn, randint, randperm, normal, bernoulli.

The numbers come from a `Generator`, and are not those that PyTorch draws for the same seed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.tensor import Tensor
from numgrad.ops.arguments.factories import (
    Array,
    check_device,
    check_layout,
    check_memory_format,
    checked_number,
    default_dtype_of,
    finish,
    is_integer,
    read_dtype,
    read_integer,
    read_shape,
    type_name,
)
from numgrad.ops.core.primitive import require_tensor
from numgrad.ops.core.promotion import broadcast_shapes
from numgrad.ops.core.registry import public
from numgrad.ops.creation.creation import strides_like
from numgrad.ops.creation.drawing import (
    check_probability,
    draw_bernoulli,
    draw_integers,
    draw_normal,
    draw_uniform,
    random_node,
)
from numgrad.ops.creation.generator import (
    Generator,
    default_generator,
    generator_of,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

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


def _options(function: str, layout: Any, device: Any, memory_format: Any = None) -> None:
    check_device(function, device)
    check_layout(function, layout)
    check_memory_format(function, memory_format)


@public(method=False)
def rand(
    *sizes: Any,
    size: Any = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return numbers drawn evenly from [0, 1).

    Parameters
    ----------
    *sizes : int, or one sequence of ints
        The shape; also accepted as the keyword ``size``.
    size : sequence of int, optional
        The shape.
    generator : Generator, optional
        Where the numbers come from; the default generator unless given.
    out : tensor, optional
        Fill this tensor instead of a new one; it takes the shape.
    dtype : dtype, optional
        Floating point or complex; the default floating point dtype unless given.
    layout, device, pin_memory : optional
        Accepted where they ask for what there is: strided memory of the CPU.
    requires_grad : bool
        Whether gradients are to be accumulated for it.

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
    _options("rand", layout, device)
    shape = read_shape("rand", sizes, size)
    default = default_dtype_of(out, dtypes.default_dtype())
    array = draw_uniform(generator_of("rand", generator), shape, read_dtype("rand", dtype, default))
    return finish("rand", array, requires_grad=requires_grad, out=out, dtype=dtype)


@public(method=False)
def randn(
    *sizes: Any,
    size: Any = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return normally distributed numbers of mean 0 and variance 1; parameters as of `rand`.

    >>> import numgrad as ng
    >>> _ = ng.manual_seed(0)
    >>> x = ng.randn(3, 2)
    >>> x.shape, x.dtype
    (torch.Size([3, 2]), torch.float32)
    """
    _options("randn", layout, device)
    shape = read_shape("randn", sizes, size)
    default = default_dtype_of(out, dtypes.default_dtype())
    array = draw_normal(
        generator_of("randn", generator), shape, read_dtype("randn", dtype, default)
    )
    return finish("randn", array, requires_grad=requires_grad, out=out, dtype=dtype)


def _place_like(input: Tensor, array: Array, dtype: dtypes.dtype, memory_format: Any) -> Array:
    placed = strides_like(input._array, dtype, memory_format)
    placed[...] = array
    return placed


@public(method=False)
def rand_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return numbers drawn evenly from [0, 1) in the shape and dtype of a tensor; see `rand`.

    >>> import numgrad as ng
    >>> ng.rand_like(ng.ones(2, 3)).shape
    torch.Size([2, 3])
    """
    require_tensor(input, "rand_like", "input", 1)
    _options("rand_like", layout, device, memory_format)
    wanted = read_dtype("rand_like", dtype, input.dtype)
    drawn = draw_uniform(generator_of("rand_like", generator), input._array.shape, wanted)
    array = _place_like(input, drawn, wanted, memory_format)
    return finish("rand_like", array, requires_grad=requires_grad)


@public(method=False)
def randn_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return normally distributed numbers in the shape and dtype of a tensor; see `randn`.

    >>> import numgrad as ng
    >>> ng.randn_like(ng.ones(2, 3)).shape
    torch.Size([2, 3])
    """
    require_tensor(input, "randn_like", "input", 1)
    _options("randn_like", layout, device, memory_format)
    wanted = read_dtype("randn_like", dtype, input.dtype)
    drawn = draw_normal(generator_of("randn_like", generator), input._array.shape, wanted)
    array = _place_like(input, drawn, wanted, memory_format)
    return finish("randn_like", array, requires_grad=requires_grad)


def _read_range(function: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> list[Any]:
    """Return the values of ``([low,] high[, size])``, given by position or by name."""
    names = ("low", "high", "size")
    values = list(arguments)
    starts_at_zero = "high" not in keywords and (
        len(values) == 1 or (len(values) == 2 and not is_integer(values[1]))
    )
    if starts_at_zero:
        values.insert(0, 0)
    elif not values and "low" not in keywords:
        values = [0]
    found = dict(zip(names, values, strict=False))
    if len(values) > 3 or set(found) & set(keywords) or not set(keywords) <= set(names):
        raise TypeError(_range_complaint(function, arguments, keywords))
    found.update(keywords)
    if not all(is_integer(found.get(name)) for name in ("low", "high")):
        raise TypeError(_range_complaint(function, arguments, keywords))
    return [found[name] for name in names if name in found]


def _range_complaint(function: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> str:
    given = [type_name(value) for value in arguments]
    given += [f"{name}={type_name(value)}" for name, value in keywords.items()]
    return (
        f"{function}() received an invalid combination of arguments - got ({', '.join(given)}); it "
        "takes the ints high or low and high, then the shape as a tuple of ints"
    )


@public(method=False)
def randint(
    *arguments: Any,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    **keywords: Any,
) -> Tensor:
    """Return integers drawn evenly from [low, high): ``randint([low,] high, size)``.

    Parameters
    ----------
    low : int
        The least number; 0 unless given.
    high : int
        The number after the greatest.
    size : sequence of int
        The shape.
    dtype : dtype, optional
        int64 unless given; anything but complex.

    The other parameters are those of `rand`.

    Raises
    ------
    RuntimeError
        If there is no integer in the range, or the dtype cannot hold one that is.
    TypeError
        If the arguments are not of these kinds.

    >>> import numgrad as ng
    >>> _ = ng.manual_seed(0)
    >>> x = ng.randint(3, 10, (100,))
    >>> x.dtype, int(x.min()), int(x.max())
    (torch.int64, 3, 9)
    """
    _options("randint", layout, device)
    values = _read_range("randint", arguments, keywords)
    if len(values) < 3 or not isinstance(values[2], (tuple, list)):
        raise TypeError(_range_complaint("randint", arguments, keywords))
    shape = read_shape("randint", (), values[2])
    default = default_dtype_of(out, dtypes.int64)
    array = draw_integers(
        generator_of("randint", generator),
        int(values[0]),
        int(values[1]),
        shape,
        read_dtype("randint", dtype, default),
    )
    return finish("randint", array, requires_grad=requires_grad, out=out, dtype=dtype)


@public(method=False)
def randint_like(
    input: Tensor,
    *arguments: Any,
    generator: Generator | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = None,
    **keywords: Any,
) -> Tensor:
    """Return integers from [low, high) in the shape and dtype of a tensor.

    ``randint_like(input, [low,] high)``; see `randint`.

    >>> import numgrad as ng
    >>> ng.randint_like(ng.ones(3), 1)
    tensor([0., 0., 0.])
    """
    require_tensor(input, "randint_like", "input", 1)
    _options("randint_like", layout, device, memory_format)
    values = _read_range("randint_like", arguments, keywords)
    if len(values) > 2:
        raise TypeError(_range_complaint("randint_like", arguments, keywords))
    wanted = read_dtype("randint_like", dtype, input.dtype)
    numbers = generator_of("randint_like", generator)
    low, high = map(int, values)
    drawn = draw_integers(numbers, low, high, input._array.shape, wanted)
    array = _place_like(input, drawn, wanted, memory_format)
    return finish("randint_like", array, requires_grad=requires_grad)


@public(method=False)
def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return the integers from 0 to n - 1 in random order; parameters as of `rand`.

    The dtype is int64 unless given.

    Raises
    ------
    RuntimeError
        If `n` is negative, or too large for the dtype.

    >>> import numgrad as ng
    >>> ng.randperm(5).sum()
    tensor(10)
    """
    _options("randperm", layout, device)
    length = read_integer("randperm", "n", 1, n)
    default = default_dtype_of(out, dtypes.int64)
    wanted = read_dtype("randperm", dtype, default)
    if wanted.category in (dtypes.BOOL, dtypes.COMPLEX):
        raise NotImplementedError(f"\"randperm\" not implemented for '{wanted.scalar_name}'")
    if length < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {length}: [{length}]")
    checked_number(length, wanted)
    array = generator_of("randperm", generator).permutation(length).astype(wanted.numpy)
    return finish("randperm", array, requires_grad=requires_grad, out=out, dtype=dtype)


def _check_std(std: Any) -> None:
    if isinstance(std, Tensor):
        if std._array.dtype.kind == "c":
            raise RuntimeError("normal expects standard deviation to be non-complex")
        if not (std._array >= 0).all():
            raise RuntimeError("normal expects all elements of std >= 0.0")
    elif not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


@public(method=False)
def normal(
    mean: Any,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return normally distributed numbers of given mean and standard deviation.

    No gradient flows to tensors `mean` and `std`: it is 0, as in PyTorch. For one that does,
    write ``mean + std * randn(...)``.

    Parameters
    ----------
    mean, std : number or tensor
        Tensors are broadcast, and the result takes the dtype of the first.
    size : sequence of int, optional
        The shape, given where both are numbers.
    generator, out, dtype, layout, device, pin_memory, requires_grad : optional
        As for `rand`.

    Raises
    ------
    RuntimeError
        If a standard deviation is negative or complex.

    >>> import numgrad as ng
    >>> ng.normal(ng.tensor([1.0, 2.0]), 0.0)
    tensor([1., 2.])
    """
    _options("normal", layout, device)
    tensors = [value for value in (mean, std) if isinstance(value, Tensor)]
    numbers = [value for value in (mean, std) if isinstance(value, (int, float))]
    sized = isinstance(size, (tuple, list))
    known = len(tensors) + len(numbers) == 2 and (size is None or sized)
    if not known or sized == bool(tensors):
        given = ", ".join(type_name(value) for value in (mean, std, size) if value is not None)
        raise TypeError(
            f"normal() received an invalid combination of arguments - got ({given}); it takes two "
            "tensors, a tensor and a number, or two numbers and the shape as a tuple of ints"
        )
    _check_std(std)
    default = tensors[0].dtype if tensors else dtypes.default_dtype()
    wanted = read_dtype("normal", dtype, default_dtype_of(out, default))
    if tensors:
        shape = broadcast_shapes([tensor._array.shape for tensor in tensors])
    else:
        shape = read_shape("normal", (), size)
    array = draw_normal(generator_of("normal", generator), shape, wanted)
    array = np.asarray(array * _operand(std) + _operand(mean)).astype(wanted.numpy, copy=False)
    if out is not None or not tensors:
        return finish("normal", array, requires_grad=requires_grad, out=out, dtype=dtype)
    name = "NormalBackward3"
    if len(tensors) == 1:
        name = "NormalBackward1" if isinstance(mean, Tensor) else "NormalBackward2"
    return random_node(name, array, *tensors)


def _operand(value: Any) -> Any:
    return value._array if isinstance(value, Tensor) else value


@public()
def bernoulli(
    input: Tensor,
    p: float | None = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return ones and zeros, ones with the probabilities in `input`.

    No gradient flows to the probabilities: it is 0, as in PyTorch.

    Parameters
    ----------
    input : tensor
        Probabilities, of a floating point dtype; the result has this dtype.
    p : float, optional
        One probability for all elements; then `input` gives shape and dtype only.
    generator : Generator, optional
        Where the numbers come from.
    out : tensor, optional
        Fill this tensor instead of a new one.

    Raises
    ------
    RuntimeError
        If a probability is not between 0 and 1.

    >>> import numgrad as ng
    >>> ng.bernoulli(ng.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    require_tensor(input, "bernoulli", "input", 1)
    source = input._array
    chance = source if p is None else check_probability(p)
    drawn = draw_bernoulli(generator_of("bernoulli", generator), chance, source.shape)
    array = drawn.astype(input.dtype.numpy, "C", copy=False)
    if out is not None:
        return finish("bernoulli", array, out=out)
    return random_node("BernoulliBackward0" if p is None else "BernoulliBackward2", array, input)
