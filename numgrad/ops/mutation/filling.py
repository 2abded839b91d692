"""Fill and copy: copy_, fill_, zero_, masked_fill."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.graph.modes.state import modes
from numgrad.graph.recorder import at_hand
from numgrad.graph.tensor import Tensor, fresh, wrap
from numgrad.kernels.move.accumulate import private_copy
from numgrad.ops.arguments.scalar_arrays import overflow_error, scalar_array
from numgrad.ops.calls.steps import forget_steps, read_array
from numgrad.ops.core.places import laid_out, like_input
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.promotion import broadcast_shapes
from numgrad.ops.pointwise.complex import zero_of
from numgrad.ops.pointwise.selection import where
from numgrad.ops.signatures.declared import declare

__all__ = ["check_number", "copy", "fill", "frozen", "masked_fill", "zero"]

Array = np.ndarray[Any, Any]
_copy_into = silent(np.copyto)


def frozen(array: Array, *tensors: Tensor, counts: bool = False) -> Array:
    """Return a copy of an array that a graph will keep, so that no later write reaches it.

    `counts` says whether the shape of a result follows from the numbers.
    """
    keeps = modes.grad and any(tensor.requires_grad for tensor in tensors)
    found: Array = read_array(_copied if keeps else _same, at_hand(array), counts=counts)
    return found


def _copied(array: Array) -> Array:
    return array.copy()


def _same(array: Array) -> Array:
    return array


def _copy(array: Array, source: Array) -> Array:
    result = like_input(array)
    _write(result, source)
    return result


def _write(array: Array, source: Array) -> None:
    """Write an array or a number into another array."""
    if source.dtype is array.dtype:
        array[...] = source
        return
    if source.dtype.kind == "c" and array.dtype.kind not in "cb":
        source = source.real
    _copy_into(array, source, casting="unsafe")


_COPY: Primitive = Primitive(
    "copy",
    "CopyBackwards",
    _copy,
    ["input", "source"],
    [lambda g: zero_of(g), lambda g: g],
    linear=True,
    lies=like_input,
    takes_half=True,
    writes=_write,
    samples=[
        lambda make: (copy, [make(2, 3), make(3)], {}),
        lambda make: (copy, [make(2), make()], {}),
        lambda make: (copy, [make(), make()], {}),
        lambda make: (copy, [make(0), make(1)], {}),
    ],
)


@declare(
    "copy(Tensor input, operand other, bool non_blocking=False)",
    function=False,
    method=False,
    inplace=True,
    dispatched=True,
)
def copy(input: Tensor, other: Any) -> Tensor:
    """Return `other` in the shape and dtype of `input`: what ``input.copy_(other)`` writes.

    The gradient of the input is 0, that of `other` is g, summed to its shape.

    Parameters
    ----------
    other
        Broadcasts to the input.
    non_blocking
        Changes nothing.

    Raises
    ------
    RuntimeError
        If `other` does not broadcast to the input.

    >>> import numgrad as ng
    >>> ng.zeros(2, 2).copy_(ng.tensor([1.0, 2.0]))
    tensor([[1., 2.],
            [1., 2.]])
    """
    if not isinstance(other, Tensor):
        other = fresh(scalar_array(other, input._array.dtype, checks_half=False))
    shape = broadcast_shapes([input._array.shape, other._array.shape])
    if shape != input._array.shape:
        raise RuntimeError(
            f"output with shape {list(input.shape)} doesn't match the broadcast shape {list(shape)}"
        )
    result: Tensor = _COPY.apply(input, other)
    return result


def _filled(array: Array, value: Array) -> Array:
    result = like_input(array)
    result[...] = value
    return result


def _write_number(array: Array, value: Array) -> None:
    array.fill(value)


def _declare_fills(suffix: str, nodes: tuple[str, str]) -> tuple[Primitive, Primitive]:
    """Declare filling with a number and with a tensor; in place PyTorch's nodes are others."""

    def filled(input: Tensor, value: Any) -> Tensor:
        return _fill((by_number, by_tensor), input, value)

    by_number = Primitive(
        f"fill_number{suffix}",
        nodes[0],
        _filled,
        ["input"],
        [lambda g: zero_of(g)],
        lies=like_input,
        takes_half=True,
        writes=_write_number,
        samples=[
            lambda make: (filled, [make(2, 3)], {"value": 2.0}),
            lambda make: (filled, [make()], {"value": 2.0}),
            lambda make: (filled, [make(0)], {"value": 2.0}),
        ],
    )
    by_tensor = Primitive(
        f"fill_tensor{suffix}",
        nodes[1],
        _copy,
        ["input", "value"],
        [lambda g: zero_of(g), lambda g: g],
        linear=True,
        lies=like_input,
        takes_half=True,
        writes=_write,
        samples=[
            lambda make: (filled, [make(2, 3), make()], {}),
            lambda make: (filled, [make(0), make()], {}),
            lambda make: (filled, [make(), make()], {}),
        ],
    )
    return by_number, by_tensor


_FILLS = _declare_fills("", ("FillBackward0", "FillBackward1"))
_FILLS_IN_PLACE = _declare_fills("_in_place", ("FillBackward2", "FillBackward3"))


def _fill(primitives: tuple[Primitive, Primitive], input: Tensor, value: Any) -> Tensor:
    by_number, by_tensor = primitives
    result: Tensor
    if isinstance(value, Tensor):
        if value._array.ndim:
            raise RuntimeError(
                "fill_ only supports 0-dimension value tensor but got tensor with "
                f"{value._array.ndim} dimensions."
            )
        result = by_tensor.apply(input, value)
    else:
        result = by_number.apply(input, value=scalar_array(value, input._array.dtype))
    return result


@declare(
    "fill(Tensor input, Tensor value)",
    "fill(Tensor input, number value)",
    method=False,
    dispatched=True,
)
def fill(input: Tensor, value: Any) -> Tensor:
    """Return a tensor of the input's shape and dtype, filled with one value.

    The gradient of the input is 0, that of a tensor `value` is the sum of g.

    Parameters
    ----------
    value : number or 0-d tensor

    Raises
    ------
    RuntimeError
        If `value` has dims, or does not fit the dtype.

    >>> import numgrad as ng
    >>> ng.fill(ng.zeros(2), 3)
    tensor([3., 3.])
    """
    return _fill(_FILLS, input, value)


@declare(
    "fill(Tensor input, Tensor value)",
    "fill(Tensor input, number value)",
    function=False,
    method=False,
    inplace=True,
    dispatched=True,
)
def fill_in_place(input: Tensor, value: Any) -> Tensor:
    """Return what ``input.fill_(value)`` writes; see `fill`.

    >>> import numgrad as ng
    >>> ng.zeros(2).fill_(3)
    tensor([3., 3.])
    """
    return _fill(_FILLS_IN_PLACE, input, value)


_ZERO: Primitive = Primitive(
    "zero",
    "ZeroBackward0",
    np.zeros_like,
    ["input"],
    [lambda g: zero_of(g)],
    linear=True,
    lies=like_input,
    takes_half=True,
    writes=lambda array: array.fill(0),
    samples=[
        lambda make: (zero, [make(2, 3)], {}),
        lambda make: (zero, [make()], {}),
        lambda make: (zero, [make(0)], {}),
    ],
)


@declare("zero(Tensor input)", function=False, method=False, inplace=True, dispatched=True)
def zero(input: Tensor) -> Tensor:
    """Return zeros of the input's shape and dtype: what ``input.zero_()`` writes.

    The gradient is 0.

    >>> import numgrad as ng
    >>> ng.ones(2).zero_()
    tensor([0., 0.])
    """
    result: Tensor = _ZERO.apply(input)
    return result


def _masked_fill(array: Array, mask: Array, value: Array) -> Array:
    if array.shape != mask.shape:
        array = np.broadcast_to(array, broadcast_shapes([array.shape, mask.shape]))
    result = private_copy(array)
    if value.dtype == result.dtype:  # nothing is converted, which could warn
        np.copyto(result, value, where=mask)
        return result
    _copy_into(result, value, where=mask, casting="unsafe")
    return result


_MASKED_FILL: Primitive = Primitive(
    "masked_fill_number",
    "MaskedFillBackward0",
    _masked_fill,
    ["input"],
    [lambda g, mask: _outside(g, mask)],
    takes_half=True,
    named=lambda own, mask, value: (own[np.broadcast_to(mask, own.shape)], value),
    samples=[
        lambda make: (masked_fill, [make(2, 3)], {"mask": _mask(True, False, True), "value": 2.0}),
        lambda make: (masked_fill, [make(3)], {"mask": wrap(np.eye(3) > 0), "value": 2.0}),
        lambda make: (masked_fill, [make()], {"mask": wrap(np.array(True)), "value": 2.0}),
        lambda make: (masked_fill, [make(0)], {"mask": _mask(), "value": 2.0}),
    ],
)
_MASKED_FILL_TENSOR: Primitive = Primitive(
    "masked_fill_tensor",
    "MaskedFillBackward1",
    lambda array, value, mask: _masked_fill(array, mask, value),
    ["input", "value"],
    [lambda g, mask: _outside(g, mask), lambda g, mask: _inside(g, mask)],
    linear=True,
    takes_half=True,
    named=lambda own, value, mask: (own[np.broadcast_to(mask, own.shape)], value),
    samples=[
        lambda make: (
            lambda x, v: masked_fill(x, _mask(True, False, True), v),
            [make(2, 3), make()],
            {},
        ),
        lambda make: (lambda x, v: masked_fill(x, _mask(), v), [make(0), make()], {}),
    ],
)


def check_number(value: Tensor, dtype: np.dtype[Any]) -> None:
    """Raise unless a dtype holds the one number of a tensor; what is traced has none yet."""
    if np.can_cast(value._array.dtype, dtype):  # whatever the number is
        return
    forget_steps()  # it goes by the number
    if type(value._array) is np.ndarray and modes.trace is None:
        scalar_array(value._array.item(), dtype)
    elif value._array.dtype.kind == "c" and dtype.kind != "c":
        raise overflow_error(dtype)


def _mask(*values: bool) -> Tensor:
    return wrap(np.array(values, bool))


def _outside(g: Tensor, mask: Array) -> Tensor:
    return laid_out(where(wrap(mask), 0, g))  # a copy row by row, filled


def _inside(g: Tensor, mask: Array) -> Tensor:
    result: Tensor = where(wrap(mask), g, 0)
    return result


@declare(
    "masked_fill(Tensor input, Tensor mask, Tensor value)",
    "masked_fill(Tensor input, Tensor mask, number value)",
    inplace=True,
    dispatched=True,
)
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Return the input with one value where the mask is True.

    The gradient of the input is g where the mask is False, else 0; that of a tensor `value` is the
    sum of g where it is True.

    Parameters
    ----------
    mask : bool tensor
        Broadcasts with the input.
    value : number or 0-d tensor

    Raises
    ------
    RuntimeError
        If the mask is not bool, the shapes do not broadcast, or `value` has dims or does not fit
        the dtype.

    >>> import numgrad as ng
    >>> x = ng.tensor([1.0, -2.0])
    >>> x.masked_fill(x < 0, 0)
    tensor([1., 0.])
    """
    if mask._array.dtype.kind != "b":
        raise RuntimeError(
            f"masked_fill_ only supports boolean masks, but got mask with dtype "
            f"{mask.dtype.cpp_name}"
        )
    broadcast_shapes([mask._array.shape, input._array.shape])
    result: Tensor
    if isinstance(value, Tensor):
        if value._array.ndim:
            raise RuntimeError(
                "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{value._array.ndim} dimension(s)."
            )
        if value.dtype is not input.dtype:
            check_number(value, input._array.dtype)
        result = _MASKED_FILL_TENSOR.apply(
            input, value, mask=frozen(mask._array, input, value), held=(mask,)
        )
    else:
        result = _MASKED_FILL.apply(
            input,
            mask=frozen(mask._array, input),
            value=scalar_array(value, input._array.dtype),
            held=(mask,),
        )
    return result
