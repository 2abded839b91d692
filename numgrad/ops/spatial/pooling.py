"""Pooling with windows of one size: means, greatest elements, norms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.graph.tensor import Tensor
from numgrad.ops.movement.unit_dims import squeeze, unsqueeze
from numgrad.ops.signatures.declared import declare
from numgrad.ops.spatial.arguments import numbers, refuse
from numgrad.ops.spatial.pooling_arguments import (
    Windows,
    count_of,
    counts_of,
    require_planes,
    windows_of,
)
from numgrad.ops.spatial.pooling_primitives import GREATEST, MEANS

__all__ = ["POOLS"]

Ints = tuple[int, ...]

POOLS: dict[str, Callable[..., Any]] = {}

# --- means ----------------------------------------------------------------------------------------

_AVERAGE = """Return the means of windows of {count}.

    The gradient is g, of which each window gives its share to every element in it.

    Parameters
    ----------
    input : tensor of shape (n, channels, {sizes}) or (channels, {sizes})
        Floating point or int64.
    kernel_size
        How large a window is.
    stride
        How far windows are apart; if not given, they touch.
    padding
        How many zeros there are on both sides, at most half a window.
    ceil_mode
        Whether windows that reach over the end count, as long as they begin before it.
    count_include_pad
        Whether the padding counts as elements in the means.{divisor}

    Raises
    ------
    RuntimeError
        If windows are larger than the padded input, or arguments make no sense.

    >>> import numgrad as ng
    >>> ng.nn.functional.{name}(ng.arange({length}.0).reshape({shape}), 2).flatten()
    tensor([{result}])
    """
_DIVISOR = """
    divisor_override
        What sums are divided by, in place of the number of elements."""


def _mean(
    name: str,
    input: Tensor,
    by: Windows,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    dims = len(by.kernel)
    if dims == 3:
        require_planes(input, dims)
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    counts = counts_of(name, input, by, ceil_mode)
    if input._array.dtype != np.int64:
        kernel = "avg_pool2d" if dims == 2 else "avg_pool3d_out_frame"
        refuse(kernel, input, "f", wide=dims == 3)
    result: Tensor = MEANS[dims].apply(
        input,
        counts=counts,
        windows=tuple(by),
        padded=count_include_pad,
        by=divisor_override or 0,
    )
    return result


def _make_average(dims: int) -> None:
    name = f"avg_pool{dims}d"

    def rule(
        input: Tensor,
        kernel_size: Ints,
        stride: Ints | None,
        padding: Ints,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> Tensor:
        by = windows_of(name, dims, kernel_size, stride, padding)
        return _mean(name, input, by, ceil_mode, count_include_pad, divisor_override)

    _enter(
        name,
        rule,
        f"{name}(Tensor input, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, "
        "bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None, "
        "*, Tensor? out=None)",
        _AVERAGE,
        dims,
        result="1.5000" if dims == 2 else "3.5000",
        divisor=_DIVISOR,
        functional=True,
    )


def _one(name: str, argument: str, values: int | Sequence[int]) -> int:
    if isinstance(values, int):
        return values
    if len(values) != 1:
        raise RuntimeError(
            f"{name}() argument '{argument}' should contain one int (got {len(values)})"
        )
    return values[0]


def _average_1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
) -> Tensor:
    name, ndim = "avg_pool1d", input._array.ndim
    if ndim not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {ndim}-dimensional tensor for argument #1 "
            f"'self' (while checking arguments for {name})"
        )
    kernel = _one(name, "kernel_size", kernel_size)
    by = Windows(
        (1, kernel),
        (1, _one(name, "stride", stride) if stride else kernel),
        (0, _one(name, "padding", padding)),
        (1, 1),
    )
    plane = unsqueeze(input, -2)
    return squeeze(_mean("avg_pool2d", plane, by, ceil_mode, count_include_pad, None), -2)


# --- greatest elements ----------------------------------------------------------------------------

_WINDOWS = (
    "(Tensor input, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, int[1] dilation=1, "
    "bool ceil_mode=False"
)
_PLACES_TOO = ", bool? return_indices=False)"
_RETURNED = """
    return_indices
        Whether to return where in their planes the elements are, too."""
_MAXIMUM = """Return the greatest elements of windows of {count}{places}.

    nan is greater than all. The gradient is g, at the places of the greatest elements.

    Parameters
    ----------
    input : tensor of shape (n, channels, {sizes}) or (channels, {sizes})
        Not complex, not bool.
    kernel_size
        How large a window is.
    stride
        How far windows are apart; if not given, they touch.
    padding
        How much windows reach over both sides, at most half of them.
    dilation
        How far the elements of a window are apart.
    ceil_mode
        Whether windows that reach over the end count, as long as they begin before it.{returned}

    Raises
    ------
    RuntimeError
        If windows are larger than the padded input, or arguments make no sense.

    >>> import numgrad as ng
    >>> ng.nn.functional.{name}(ng.arange({length}.0).reshape({shape}), 2){item}.flatten()
    tensor([{result}])
    """


def _maximum(name: str, input: Tensor, by: Windows, ceil_mode: bool) -> tuple[Tensor, Tensor]:
    dims = len(by.kernel)
    require_planes(input, dims)
    words = "max_pool3d_with_indices_out_cpu_template"
    counts = counts_of(name, input, by, ceil_mode, words)
    refuse(f"max_pool{dims}d", input, "fiu")
    found: tuple[Tensor, Tensor] = GREATEST[dims].apply(input, counts=counts, windows=tuple(by))
    return found


def _make_maximum(dims: int) -> None:
    name = f"max_pool{dims}d"

    def with_places(
        input: Tensor,
        kernel_size: Ints,
        stride: Ints | None,
        padding: Ints,
        dilation: Ints,
        ceil_mode: bool,
    ) -> tuple[Tensor, Tensor]:
        by = windows_of(name, dims, kernel_size, stride, padding, dilation)
        return _maximum(name, input, by, ceil_mode)

    def rule(
        input: Tensor,
        kernel_size: Ints,
        stride: Ints | None,
        padding: Ints,
        dilation: Ints,
        ceil_mode: bool,
        return_indices: bool,
    ) -> Any:
        found = with_places(input, kernel_size, stride, padding, dilation, ceil_mode)
        return found if return_indices else found[0]

    _enter_all(name, rule, with_places, dims)


_LINES = {
    "kernel_size": "must be an int, list of ints or tuple of ints of size 1",
    "stride": "must be None, an int, list of ints, or tuple of ints of size 1",
    "padding": "must be an int, list of ints, or tuple of ints of size 1",
    "dilation": "must be an int, list of ints or tuple of ints of size 1",
}


def _line(name: str, values: int | Sequence[int]) -> int:
    if isinstance(values, int):
        return values
    if len(values) != 1:
        raise RuntimeError(f"max_pool1d() {name} {_LINES[name]} but got size {len(values)}")
    return values[0]


def _windows_of_line(
    kernel_size: Ints, stride: Ints | None, padding: Ints, dilation: Ints
) -> Windows:
    kernel = _line("kernel_size", kernel_size)
    step = _line("stride", stride) if stride else kernel
    pad, spacing = _line("padding", padding), _line("dilation", dilation)
    return Windows((1, kernel), (1, step), (0, pad), (1, spacing))


def _check_line(input: Tensor, by: Windows, ceil_mode: bool) -> None:
    """Raise in the words of the function of one dim, if arguments make no sense."""
    shape = input._array.shape
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for "
            f"input, but got:{numbers(shape)}"
        )
    kernel, step, pad, spacing = (each[1] for each in by)
    for what, value in (("kernel_size", kernel), ("stride", step)):
        if value <= 0:
            raise RuntimeError(f"max_pool1d() {what} must be greater than zero, but got {value}")
    if pad < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {pad}")
    if pad > kernel // 2:
        raise RuntimeError(
            "max_pool1d() padding should be at most half of kernel size, but got "
            f"padding={pad} and kernel_size={kernel}"
        )
    if spacing <= 0:
        raise RuntimeError(f"max_pool1d() dilation must be greater than zero, but got {spacing}")
    count = count_of(shape[-1], kernel, step, pad, spacing, ceil_mode)
    if count <= 0:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {count}")
    # PyTorch has a quicker kernel where no gradient is asked for.
    refuse("max_pool2d" if input.requires_grad else "max_pool1d_impl", input, "f")


def _maximum_1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None,
    padding: Ints,
    dilation: Ints,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    if return_indices:
        return _maximum_1d_with_places(input, kernel_size, stride, padding, dilation, ceil_mode)
    by = _windows_of_line(kernel_size, stride, padding, dilation)
    _check_line(input, by, ceil_mode)
    return squeeze(_maximum("max_pool2d", unsqueeze(input, -2), by, ceil_mode)[0], -2)


def _maximum_1d_with_places(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None,
    padding: Ints,
    dilation: Ints,
    ceil_mode: bool,
) -> tuple[Tensor, Tensor]:
    ndim = input._array.ndim
    if ndim not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {ndim}-dimensional tensor for argument #1 "
            "'self' (while checking arguments for max_pool1d)"
        )
    given = {
        "kernel_size": kernel_size,
        "stride": stride or (1,),
        "padding": padding,
        "dilation": dilation,
    }
    for argument, each in given.items():
        _one("max_pool1d", argument, each)
    by = _windows_of_line(kernel_size, stride, padding, dilation)
    values, places = _maximum("max_pool2d", unsqueeze(input, -2), by, ceil_mode)
    return squeeze(values, -2), squeeze(places, -2)


# --- the functions --------------------------------------------------------------------------------

_COUNTS = {1: "one dim", 2: "two dims", 3: "three dims"}
_SIZES = {1: "length", 2: "height, width", 3: "depth, height, width"}


def _enter(
    name: str,
    rule: Callable[..., Any],
    signature: str,
    doc: str,
    dims: int,
    result: str,
    *,
    divisor: str = "",
    functional: bool = False,
) -> None:
    both = name.endswith("_with_indices")
    rule.__name__ = rule.__qualname__ = name
    rule.__doc__ = doc.format(
        name=name,
        count=_COUNTS[dims],
        sizes=_SIZES[dims],
        shape=", ".join(["1", *["2"] * dims]),
        length=2**dims,
        result=result,
        divisor=divisor,
        places=", and where in their planes these are" if both else "",
        item="[0]" if both else "",
        returned=_RETURNED if functional and _PLACES_TOO in signature else "",
    )
    if functional:  # where pickles find it
        rule.__module__ = "numgrad.nn.functional"
    POOLS[name] = declare(
        signature,
        function=not functional and (dims == 1 or not both),
        method=False,
        dispatched=True,
    )(rule)
    if not functional:
        globals()[name] = POOLS[name]


def _enter_all(
    name: str, rule: Callable[..., Any], with_places: Callable[..., Any], dims: int
) -> None:
    """Enter a function as PyTorch has it without `nn.functional`, as there, and of both."""

    def values(
        input: Tensor,
        kernel_size: Ints,
        stride: Ints | None,
        padding: Ints,
        dilation: Ints,
        ceil_mode: bool,
    ) -> Tensor:
        found: Tensor = rule(input, kernel_size, stride, padding, dilation, ceil_mode, False)
        return found

    def places(
        input: Tensor,
        kernel_size: Ints,
        stride: Ints | None,
        padding: Ints,
        dilation: Ints,
        ceil_mode: bool,
        return_indices: bool,
    ) -> tuple[Tensor, Tensor]:
        found: tuple[Tensor, Tensor] = with_places(
            input, kernel_size, stride, padding, dilation, ceil_mode
        )
        return found

    greatest, both = f"{2**dims - 1}.", f"{name}_with_indices"
    _enter(name, values, f"{name}{_WINDOWS})", _MAXIMUM, dims, greatest)
    _enter(name, rule, f"{name}{_WINDOWS}{_PLACES_TOO}", _MAXIMUM, dims, greatest, functional=True)
    if dims == 1:
        _enter(both, with_places, f"{both}{_WINDOWS})", _MAXIMUM, dims, greatest)
    _enter(
        both, places, f"{both}{_WINDOWS}{_PLACES_TOO}", _MAXIMUM, dims, greatest, functional=True
    )


for _dims in (2, 3):
    _make_average(_dims)
    _make_maximum(_dims)
_enter(
    "avg_pool1d",
    _average_1d,
    "avg_pool1d(Tensor input, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, "
    "bool ceil_mode=False, bool count_include_pad=True)",
    _AVERAGE,
    1,
    "0.5000",
)
_enter_all("max_pool1d", _maximum_1d, _maximum_1d_with_places, 1)
