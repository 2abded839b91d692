"""Pooling to a size: as many windows as results are wanted, each as large as that takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.ops.movement.unit_dims import squeeze, unsqueeze
from numgrad.ops.reduction.reductions import mean
from numgrad.ops.signatures.declared import declare
from numgrad.ops.spatial.arguments import numbers, refuse
from numgrad.ops.spatial.pooling_primitives import ADAPTIVE_GREATEST, ADAPTIVE_MEANS

__all__ = ["ADAPTIVE_POOLS", "adaptive_mean"]

Ints = tuple[int, ...]

ADAPTIVE_POOLS: dict[str, Callable[..., Any]] = {}
_COUNTS = {1: "one dim", 2: "two dims", 3: "three dims"}
_SIZES = {1: "length", 2: "height, width", 3: "depth, height, width"}


def _completed(output_size: Any, shape: Sequence[int], dims: int, complaint: str) -> Ints:
    """Return how many windows each dim has: None stands for as many as there are elements."""
    if isinstance(output_size, int):
        return (output_size,) * dims
    if len(shape) <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    if len(output_size) != dims:
        raise RuntimeError(complaint)
    return tuple(
        [
            size if wanted is None else int(wanted)
            for wanted, size in zip(output_size, shape[len(shape) - dims :], strict=True)
        ]
    )


def _check(name: str, input: Tensor, dims: int, colon: str = "") -> None:
    shape = input._array.shape
    if len(shape) not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"{name}(): Expected {dims + 1}D or {dims + 2}D tensor, but got{colon} {numbers(shape)}"
        )


def _check_sizes(name: str, shape: Sequence[int], first: int) -> None:
    empty = [at for at in range(first, len(shape)) if not shape[at]]
    if empty:
        raise RuntimeError(
            f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input "
            f"has sizes {numbers(shape)} with dimension {empty[0]} being empty"
        )


def _check_line(name: str, input: Tensor, output_size: Sequence[int]) -> None:
    ndim = input._array.ndim
    if ndim not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {ndim}-dimensional tensor for argument #1 'self' "
            f"(while checking arguments for {name})"
        )
    if len(output_size) != 1:
        raise RuntimeError(
            f"{name}() argument 'output_size' should contain one int (got {len(output_size)})"
        )


# --- means ----------------------------------------------------------------------------------------


def adaptive_mean(input: Tensor, counts: Ints) -> Tensor:
    """Return the means of so many windows of the last dims: one of all elements is their mean."""
    dims = len(counts)
    name = f"adaptive_avg_pool{dims}d"
    if min(counts) < 0:
        said = f"{counts[0]}, " + ",".join(map(str, counts[1:]))
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received "
            f"{{{said}}}"
        )
    if all(count == 1 for count in counts):
        found: Tensor = mean(input, tuple(range(-dims, 0)), keepdim=True)
        return found
    _check(name, input, dims)
    shape = input._array.shape
    _check_sizes(name, shape, len(shape) - dims)
    if input._array.size:  # of nothing, PyTorch asks for no dtype
        refuse(name if dims == 2 else f"{name}_cpu", input, "f")
    result: Tensor = ADAPTIVE_MEANS[dims].apply(input, counts=counts)
    return result


@declare("adaptive_avg_pool1d(Tensor input, int[1] output_size)", method=False, dispatched=True)
def adaptive_avg_pool1d(input: Tensor, output_size: Ints) -> Tensor:
    """Return the means of so many windows along the last dim.

    Window k of m is from floor(k n / m) to ceil((k + 1) n / m), of n elements. The gradient is g,
    of which each window gives its share to every element in it.

    Parameters
    ----------
    input : tensor of shape (n, channels, length) or (channels, length)
    output_size
        How many windows there are.

    >>> import numgrad as ng
    >>> ng.nn.functional.adaptive_avg_pool1d(ng.arange(5.0).reshape(1, 5), 2)
    tensor([[1., 3.]])
    """
    _check_line("adaptive_avg_pool1d", input, output_size)
    plane = unsqueeze(input, -2)
    return squeeze(adaptive_mean(plane, (1, output_size[0])), -2)


def _make_mean(dims: int) -> None:
    name = f"adaptive_avg_pool{dims}d"

    def rule(input: Tensor, output_size: Any) -> Tensor:
        shape = input._array.shape
        complaint = f"{name}: output_size must be {dims}"
        return adaptive_mean(input, _completed(output_size, shape, dims, complaint))

    _enter(
        name,
        rule,
        f"""Return the means of so many windows of {_COUNTS[dims]}.

    Along a dim of n elements, window k of m is from floor(k n / m) to ceil((k + 1) n / m). The
    gradient is g, of which each window gives its share to every element in it.

    Parameters
    ----------
    input : tensor of shape (n, channels, {_SIZES[dims]}) or (channels, {_SIZES[dims]})
    output_size : int or tuple of int or None
        How many windows there are along each dim; None for as many as elements.

    Raises
    ------
    RuntimeError
        If the input has other dims.

    >>> import numgrad as ng
    >>> ng.nn.functional.{name}(ng.ones({", ".join(["1"] + ["5"] * dims)}), 2).shape
    torch.Size([{", ".join(["1"] + ["2"] * dims)}])
    """,
    )


# --- greatest elements ----------------------------------------------------------------------------


def _greatest(name: str, input: Tensor, counts: Ints, first: int) -> tuple[Tensor, Tensor]:
    dims = len(counts)
    shape = input._array.shape
    _check_sizes(name, shape[:-2] + shape[-1:] if name[-2] == "1" else shape, first)
    if min(counts) < 0:
        whole = (*shape[: len(shape) - dims], *counts)
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {min(counts)}: {numbers(whole)}"
        )
    refuse(f"adaptive_max_pool{'2d' if dims == 2 else '3d_cpu'}", input, "f")
    found: tuple[Tensor, Tensor] = ADAPTIVE_GREATEST[dims].apply(input, counts=counts)
    return found


def _line(input: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    name = "adaptive_max_pool1d"
    if isinstance(output_size, int):
        output_size = (output_size,)
    _check_line(name, input, output_size)
    first = input._array.ndim - 2 + (input._array.ndim == 2)
    counts = (1, output_size[0])
    values, places = _greatest(name, unsqueeze(input, -2), counts, first)
    return squeeze(values, -2), squeeze(places, -2)


@declare("adaptive_max_pool1d(Tensor input, int[1] output_size)", method=False, dispatched=True)
def adaptive_max_pool1d(input: Tensor, output_size: Ints) -> tuple[Tensor, Tensor]:
    """Return the greatest elements of so many windows along the last dim, and where they are.

    Window k of m is from floor(k n / m) to ceil((k + 1) n / m), of n elements. The gradient is g,
    at the places of the greatest elements; nan is greater than all.

    Parameters
    ----------
    input : tensor of shape (n, channels, length) or (channels, length)
    output_size
        How many windows there are.

    >>> import numgrad as ng
    >>> ng.adaptive_max_pool1d(ng.arange(5.0).reshape(1, 5), 2)[0]
    tensor([[2., 4.]])
    """
    return _line(input, output_size)


def _planes(name: str, dims: int) -> Callable[..., tuple[Tensor, Tensor]]:
    def with_places(input: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
        shape = input._array.shape
        complaint = f"{name}(): internal error: output_size.size() must be {dims}"
        counts = _completed(output_size, shape, dims, complaint)
        _check(name, input, dims, ":")
        return _greatest(name, input, counts, len(shape) - dims - (len(shape) == dims + 2))

    return with_places


def _make_maximum(dims: int) -> None:
    name = f"adaptive_max_pool{dims}d"
    with_places = _line if dims == 1 else _planes(name, dims)
    module = "numgrad.nn.functional"  # where pickles find it: without, there is another of the name

    def rule(input: Tensor, output_size: Any, return_indices: bool) -> Any:
        found = with_places(input, output_size)
        return found if return_indices else found[0]

    def both(input: Tensor, output_size: Any, return_indices: bool) -> tuple[Tensor, Tensor]:
        return with_places(input, output_size)

    for named, function in ((name, rule), (f"{name}_with_indices", both)):
        function.__module__ = module
        returned = named == name
        _enter(
            named,
            function,
            f"""Return the greatest elements of so many windows{"" if returned else ", and where"}.

    Along a dim of n elements, window k of m is from floor(k n / m) to ceil((k + 1) n / m). The
    gradient is g, at the places of the greatest elements; nan is greater than all.

    Parameters
    ----------
    input : tensor of shape (n, channels, {_SIZES[dims]}) or (channels, {_SIZES[dims]})
    output_size : int or tuple of int or None
        How many windows there are along each dim; None for as many as elements.
    return_indices
        Whether to return where in their planes the elements are, too.

    Raises
    ------
    RuntimeError
        If the input has other dims.

    >>> import numgrad as ng
    >>> x = ng.ones({", ".join(["1"] + ["5"] * dims)})
    >>> ng.nn.functional.{named}(x, 2){"" if returned else "[0]"}.shape
    torch.Size([{", ".join(["1"] + ["2"] * dims)}])
    """,
            f"{named}(Tensor input, object output_size, bool? return_indices=False)",
        )


def _enter(name: str, rule: Callable[..., Any], doc: str, signature: str = "") -> None:
    rule.__name__ = rule.__qualname__ = name
    rule.__doc__ = doc
    signature = signature or f"{name}(Tensor input, object output_size)"
    declared = declare(signature, function=False, method=False)(rule)
    ADAPTIVE_POOLS[name] = declared
    if rule.__module__ == __name__:
        globals()[name] = declared


ADAPTIVE_POOLS["adaptive_avg_pool1d"] = adaptive_avg_pool1d
for _dims in (1, 2, 3):
    if _dims > 1:
        _make_mean(_dims)
    _make_maximum(_dims)
