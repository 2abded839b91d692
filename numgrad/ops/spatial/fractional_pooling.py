"""Fractional pooling: greatest elements of windows whose distances are drawn at random."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.graph.tensor import Tensor, wrap
from numgrad.kernels.spatial.pooling import greatest_of_chosen
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.creation.random import rand
from numgrad.ops.signatures.declared import declare
from numgrad.ops.spatial.arguments import numbers, refuse
from numgrad.ops.spatial.places import put_at, values_of

__all__ = ["FRACTIONAL_POOLS"]

Array = np.ndarray[Any, Any]
Ints = tuple[int, ...]

FRACTIONAL_POOLS: dict[str, Callable[..., Any]] = {}
_SIZES = {2: "height, width", 3: "depth, height, width"}


# --- the primitives -------------------------------------------------------------------------------


def _starts(samples: Array, size: int, count: int, kernel: int) -> Array:
    """Return where windows begin, for a number of each plane; the last one ends with the plane.

    B. Graham, "Fractional max-pooling" (arXiv 1412.6071), section 2: floor(a (i + u)). Where u is
    not from [0, 1), rounding may put a window outside: it is moved to the nearest end.
    """
    dtype = samples.dtype.type
    starts = np.full((samples.size, count), size - kernel, np.int64)
    if count > 1:
        by = dtype(size - kernel) / dtype(count - 1)
        at = np.arange(count - 1).astype(dtype) + samples[:, None]
        starts[:, :-1] = _whole(at * by) - _whole(samples[:, None] * by)
    return starts.clip(0, size - kernel)


def _whole(values: Array) -> Array:
    """Return the numbers as PyTorch's int has them: what it can't hold is its least number."""
    least = np.float64(np.iinfo(np.int32).min)
    return np.where(np.abs(values) < -least, values, least).astype(np.int64)


def _chosen(
    input: Array, samples: Array, kernel: Ints, counts: Ints, order: Ints
) -> tuple[Array, Array]:
    dims = len(counts)
    sizes = input.shape[input.ndim - dims :]
    drawn = samples.reshape(-1, dims)[: math.prod(input.shape[: input.ndim - dims])]
    rows = zip(order, sizes, counts, kernel, strict=True)
    starts = [_starts(drawn[:, at], *row) for at, *row in rows]
    return greatest_of_chosen(input, starts, kernel)


def _make_primitive(dims: int) -> Primitive:
    def rule(g0: Tensor | None, result1: Tensor, input_shape: Ints) -> Tensor | None:
        return None if g0 is None else put_at(g0, result1, input_shape[len(input_shape) - dims :])

    def sample(make: Any) -> Any:
        drawn = wrap(np.linspace(0.1, 0.9, 2 * dims).reshape(1, 2, dims))
        keywords = {"kernel": (2,) * dims, "counts": (2,) * dims, "order": _ORDER[dims]}

        def values(input: Tensor, **keywords: Any) -> Tensor:
            return values_of(primitive.apply)(input, drawn, **keywords)

        return values, [make(2, *(4,) * dims, distinct=True)], keywords

    primitive: Primitive = Primitive(
        f"fractional_max_pool{dims}d",
        f"FractionalMaxPool{dims}DBackward0",
        _chosen,
        ["input", "samples"],
        [rule, None],
        outputs=("result0", "result1"),
        samples=[sample],
    )
    return primitive


# Which of the numbers that are drawn for a plane is that of a dim.
_ORDER = {2: (1, 0), 3: (0, 1, 2)}
_PRIMITIVES = {dims: _make_primitive(dims) for dims in (2, 3)}


# --- the functions --------------------------------------------------------------------------------


def _each(values: Sequence[Any], dims: int) -> tuple[Any, ...]:
    return tuple(values) * dims if len(values) == 1 else tuple(values)


def _pooled(
    dims: int, input: Tensor, kernel_size: Any, output_size: Any, ratio: Any, drawn: Any
) -> tuple[Tensor, Tensor]:
    name, shape = f"fractional_max_pool{dims}d", input._array.shape
    if output_size is None and ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if output_size is None:
        ratios = _each(ratio, dims)
        if len(ratios) > dims and dims == 2:
            raise ValueError(
                f"{name} requires output_ratio to either be a single Int or tuple of Ints."
            )
        sizes = shape[len(shape) - dims :]
        output_size = [int(size * part) for size, part in zip(sizes, ratios, strict=False)]
    kernel, counts = _each(kernel_size, dims), _each(output_size, dims)
    if len(shape) < dims + 1:
        wrap_dim(-dims - 1, len(shape))
    if drawn is None:
        refuse("check_uniform_bounds", input, "f")
        batch = 1 if len(shape) == dims + 1 else shape[0]
        drawn = rand((batch, shape[len(shape) - dims - 1], dims), dtype=input.dtype)
    _check(name, dims, input, kernel, counts, drawn)
    refuse(f"{name}_out_frame", input, "f")
    found: tuple[Tensor, Tensor] = _PRIMITIVES[dims].apply(
        input, drawn, kernel=kernel, counts=counts, order=_ORDER[dims]
    )
    return found


_DIMS = {2: ("height", "width"), 3: ("time", "height", "width")}


def _check(name: str, dims: int, input: Tensor, kernel: Ints, counts: Ints, drawn: Tensor) -> None:
    """Raise, in PyTorch's words, unless windows and numbers fit the input."""
    shape = input._array.shape
    where = name if dims == 2 else f"{name}_out"
    words = "a single Int or tuple of " + ("Ints" if dims == 2 else "three Ints")
    for what, each in (("kernel_size", kernel), ("output_size", counts)):
        if len(each) != dims:
            raise RuntimeError(f"{name}: {what} must either be {words}")
    if len(shape) not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"{where}(): Expected {dims + 1}D or {dims + 2}D tensor, but got: {numbers(shape)}"
        )
    for at in range(len(shape) - dims - 1, len(shape)):
        if not shape[at]:
            raise RuntimeError(
                f"{where}(): Expected input to have non-zero size for non-batch dimensions, but "
                f"got{numbers(shape)} with dimension {at} being empty."
            )
    for word, size, width, count in zip(
        _DIMS[dims], shape[len(shape) - dims :], kernel, counts, strict=True
    ):
        if count + width - (dims == 2) > size:  # PyTorch wants one more of volumes
            raise RuntimeError(
                f"{where}(): pool {word} {width} too large relative to input {word} {size}"
            )
    if min(counts) < 0:
        made = [*shape[: len(shape) - dims], *counts]
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {min(counts)}: {numbers(made)}"
        )
    given = drawn._array.shape
    if drawn._array.dtype != input._array.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    if len(given) != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {len(given)}")
    batch = shape[0] if len(shape) == dims + 2 else 1
    if given[0] < batch:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if given[1] != shape[len(shape) - dims - 1]:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if given[2] != dims:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {dims}; got {given[2]}.")


_DOC = """Return the greatest elements of windows at distances drawn at random{places}.

    There are as many windows as wanted, all of one width, which may overlap: window i begins
    at floor(a (i + u)) - floor(a u) for a number u of each plane and dim; the last ends with the
    plane. B. Graham, arXiv 1412.6071. The gradient is g, at the places of the greatest elements.

    Parameters
    ----------
    input : tensor of shape (n, channels, {sizes}) or (channels, {sizes})
        Floating point.
    kernel_size : int or tuple of int
        How large a window is.
    output_size : int or tuple of int, optional
        How many windows there are.
    output_ratio : tuple of float, optional
        That as a part of the sizes of the input, if it is not given.
    return_indices
        Whether to return where in their planes the elements are, too.
    _random_samples : tensor of shape (n, channels, {dims}), optional
        The numbers u, from [0, 1).

    Raises
    ------
    ValueError
        If neither is given.
    RuntimeError
        If shapes do not fit, or windows not into planes.

    >>> import numgrad as ng
    >>> x = ng.arange({length}.0).reshape({shape})
    >>> ng.nn.functional.{name}(x, 2, output_size=1){item}.flatten()
    tensor([{result}.])
    """


def _make(dims: int) -> None:
    def with_places(
        input: Tensor,
        kernel_size: Any,
        output_size: Any,
        output_ratio: Any,
        return_indices: bool,
        _random_samples: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        return _pooled(dims, input, kernel_size, output_size, output_ratio, _random_samples)

    def rule(
        input: Tensor,
        kernel_size: Any,
        output_size: Any,
        output_ratio: Any,
        return_indices: bool,
        _random_samples: Tensor | None,
    ) -> Any:
        found = _pooled(dims, input, kernel_size, output_size, output_ratio, _random_samples)
        return found if return_indices else found[0]

    name = f"fractional_max_pool{dims}d"
    for function, each in ((rule, name), (with_places, f"{name}_with_indices")):
        both = function is with_places
        function.__name__ = function.__qualname__ = each
        function.__doc__ = _DOC.format(
            name=each,
            dims=dims,
            places=", and where in their planes these are" if both else "",
            sizes=_SIZES[dims],
            shape=", ".join(["1", *["3"] * dims]),
            length=3**dims,
            item="[0]" if both else "",
            result=3**dims - 1,
        )
        FRACTIONAL_POOLS[each] = globals()[each] = declare(
            f"{each}(Tensor input, int[1] kernel_size, int[1]? output_size=None, "
            "float[1]? output_ratio=None, bool? return_indices=False, "
            "Tensor? _random_samples=None)",
            function=False,
            method=False,
        )(function)


for _dims in (2, 3):
    _make(_dims)
