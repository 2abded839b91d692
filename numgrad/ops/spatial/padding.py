"""Padding in all modes: with a number, or what is inside, mirrored, repeated or going round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.ops.movement.padding import constant_pad_nd
from numgrad.ops.signatures.declared import declare
from numgrad.ops.spatial.arguments import numbers, refuse
from numgrad.ops.spatial.resampling import RESAMPLING

__all__ = ["pad"]

_NAMES = {"reflect": "reflection_pad", "replicate": "replication_pad", "circular": "circular_pad"}
_COMBINATIONS = """\
Supported combinations for non-constant padding:
  - 2D or 3D input: padding size = 2 (pads last dimension)
  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)
  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"""


def _check_elements(input: Tensor, dims: int) -> None:
    shape = input._array.shape
    if 0 in shape[len(shape) - dims - 1 :]:
        raise RuntimeError(
            f"Expected {dims + 1}D or {dims + 2}D (batch mode) tensor with possibly 0 batch size "
            f"and other non-zero dimensions for input, but got: {numbers(shape)}"
        )


def _check_reflection(shape: Sequence[int], widths: Sequence[tuple[int, int]]) -> None:
    first = len(shape) - len(widths)
    for number, (at, pair) in enumerate(
        reversed([*zip(range(first, len(shape)), widths, strict=True)])
    ):
        if max(pair) >= shape[at]:
            raise RuntimeError(
                f"Argument #{4 + 2 * number}: Padding size should be less than the corresponding "
                f"input dimension, but got: padding {pair} at dimension {at} of input "
                f"{numbers(shape)}"
            )


def _check_results(mode: str, shape: Sequence[int], widths: Sequence[tuple[int, int]]) -> None:
    lead, sizes = shape[: len(shape) - len(widths)], shape[len(shape) - len(widths) :]
    found = [size + sum(pair) for size, pair in zip(sizes, widths, strict=True)]
    if max(found) >= 1:
        if min(found) < 0:
            raise RuntimeError(
                "Trying to create tensor with negative dimension "
                f"{next(each for each in found if each < 0)}: {numbers([*lead, *found])}"
            )
        return
    letters = "DHW"[-len(sizes) :]
    given = ", ".join([f"{a}: {b}" for a, b in zip(letters, sizes, strict=True)])
    behind = " ".join([f"{a}: {b}" for a, b in zip(letters, found, strict=True)])
    space = " " * (len(sizes) == 2 and mode == "replicate")
    raise RuntimeError(f"input ({given}{space}) is too small. Calculated output {behind}")


def _check_round(sizes: Sequence[int], widths: Sequence[tuple[int, int]]) -> None:
    for size, pair in zip(sizes, widths, strict=True):
        if max(pair) > size:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if size + sum(pair) < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")


@declare(
    "pad(Tensor input, int[] pad, str mode='constant', float? value=None)",
    function=False,
    method=False,
    dispatched=True,
)
def pad(input: Tensor, pad: Sequence[int], mode: str, value: Any) -> Tensor:
    """Return the input with more elements around it.

    The gradient is g, where an element of the result is one of the input; each of these adds up
    what all the elements got that are made of it.

    Parameters
    ----------
    pad
        How many elements to add before and behind the last dim, then the one before it, and so on;
        negative ones take away.
    mode : {"constant", "reflect", "replicate", "circular"}
        A number; or what is inside: mirrored at the element at the border, that element again and
        again, or from the other side. Those three are for one, two or three dims behind channels.
    value
        The number, 0 if it is not given.

    Raises
    ------
    RuntimeError
        If a dim would have no length, or there is not enough inside.
    NotImplementedError
        If there is no such mode, or none for so many dims.

    >>> import numgrad as ng
    >>> ng.nn.functional.pad(ng.tensor([[1.0, 2.0, 3.0]]), (2, 1), mode="reflect")
    tensor([[3., 2., 1., 2., 3., 2.]])
    """
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    shape, dims = input._array.shape, len(pad) // 2
    if dims > len(shape):
        raise RuntimeError(
            f"Padding length should be less than or equal to two times the input dimension but got "
            f"padding length {len(pad)} and input of dimension {len(shape)}"
        )
    if mode == "constant":
        result: Tensor = constant_pad_nd(input, pad, 0.0 if value is None else value)
        return result
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if mode not in _NAMES or not 1 <= dims <= 3 or len(shape) - dims not in (1, 2):
        if mode not in _NAMES:
            raise NotImplementedError(f"Unrecognised padding mode {mode}")
        raise NotImplementedError(
            f"Padding size {len(pad)} is not supported for {len(shape)}D input tensor.\n"
            f"{_COMBINATIONS}"
        )
    widths = [(pad[2 * at], pad[2 * at + 1]) for at in reversed(range(dims))]
    sizes = shape[len(shape) - dims :]
    if mode == "circular":
        _check_round(sizes, widths)
    else:
        _check_elements(input, dims)
        if mode == "reflect":
            _check_reflection(shape, widths)
        _check_results(mode, shape, widths)
        kernel = f"{_NAMES[mode]}{dims}d"
        refuse(kernel, input, "fciu")
    tables = tuple([(mode, size, *pair) for size, pair in zip(sizes, widths, strict=True)])
    found: Tensor = RESAMPLING[f"{_NAMES[mode]}{dims}d"].apply(input, tables=tables)
    return found
