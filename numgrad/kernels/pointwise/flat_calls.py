"""Elementwise calls whose operands are all contiguous: prepared once for dtypes and shapes.

An operand enters the loop flat, as a single number, or, where few elements make a copy the quicker
way, written out to the shape of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.codegen.render import ARRAYS
from numgrad.runtime.memory import empty
from numgrad.runtime.threads import parallel_for

__all__ = [
    "ARRAY",
    "ITEM",
    "SAME",
    "FlatCall",
    "Number",
    "converter",
    "is_flat",
    "letter_of",
    "number_letter",
]

Array = np.ndarray[Any, Any]
Number = bool | int | float | complex
Order = tuple[int, ...] | None

# What becomes of an operand: it stays a number; an array of its elements; its one element; the
# element that all are; or its elements written out to the shape of the result.
NUMBER, ARRAY, ITEM, SAME, WRITTEN = range(5)
# How an operand enters the loop: real array, complex array or bool array, and single numbers.
_ARRAY_LETTER = {"f": "a", "i": "a", "u": "a", "c": "A", "b": "b"}
_NUMBER_LETTER = {"a": "s", "A": "S", "b": "p"}
_CONVERTERS: dict[str, Callable[[Any], Any]] = {"f": float, "c": complex, "b": bool}


def letter_of(operand: Array | Number) -> str:
    """Return the letter of an operand in a pattern."""
    if type(operand) is np.ndarray:
        return _ARRAY_LETTER[operand.dtype.kind]
    if isinstance(operand, bool):
        return "p"
    return "S" if isinstance(operand, complex) else "s"


def number_letter(letter: str) -> str:
    """Return the letter of a number of the same kind as an array."""
    return _NUMBER_LETTER.get(letter, letter)


def converter(dtype: np.dtype[Any]) -> Callable[[Any], Any]:
    """Return what makes a Python number one of the category of a dtype."""
    return _CONVERTERS.get(dtype.kind, _whole)


def _whole(value: Any) -> int:
    whole = int(value)
    if not -(2**63) <= whole < 2**63:  # Numba would make a kernel for unsigned ones
        raise OverflowError("int too big to convert")
    return whole


def is_flat(operand: Array | Number, shape: tuple[int, ...]) -> bool:
    """Whether an operand is a number, or an array that lies in memory as the result will."""
    if type(operand) is not np.ndarray or operand.size == 1:
        return True
    return operand.shape == shape and (operand.flags.c_contiguous or not any(operand.strides))


class FlatCall:
    """What one call of a flat loop takes, for operands of given shapes, strides and dtypes.

    Parameters
    ----------
    find_loop : callable
        Returns the loop for a pattern and the arguments it will get.
    shape : tuple of int
        The shape of every output.
    order : tuple of int or None
        The order of the loops, if it is not that of the dims.
    operands : sequence of array or number
        Operands like those that the call is for.
    dtypes : sequence of numpy.dtype
        The dtype of each output.
    grain : int
        Elements a thread takes at a time.
    """

    __slots__ = ("dtypes", "grain", "kinds", "loop", "order", "readers", "shape")

    def __init__(
        self,
        find_loop: Callable[[str, Sequence[Any]], Any],
        shape: tuple[int, ...],
        order: Order,
        operands: Sequence[Array | Number],
        dtypes: Sequence[np.dtype[Any]],
        grain: int,
    ) -> None:
        self.shape = shape if order is None else tuple([shape[dim] for dim in order])
        self.order = order
        self.grain = grain
        self.dtypes = list(dtypes)
        pattern = ""
        self.kinds = []
        self.readers = []
        for operand in operands:
            letter, kind, reader = _reader(operand, self.shape, order)
            pattern += letter
            self.kinds.append(kind)
            self.readers.append(reader)
        if not any(letter in ARRAYS for letter in pattern):  # every operand is one number
            at = next(i for i, operand in enumerate(operands) if type(operand) is np.ndarray)
            pattern = pattern[:at] + letter_of(operands[at]) + pattern[at + 1 :]
            self.kinds[at], self.readers[at] = WRITTEN, _written_out(self.shape, order)
        flat = [read(operand) for read, operand in zip(self.readers, operands, strict=True)]
        self.loop = find_loop(pattern, [*flat, *(np.empty(0, dtype) for dtype in self.dtypes)])

    def __call__(self, operands: Sequence[Array | Number]) -> list[Array]:
        """Compute the outputs, their dims in the order of the loops."""
        outputs = [empty(self.shape, dtype) for dtype in self.dtypes]
        arguments = [read(operand) for read, operand in zip(self.readers, operands, strict=True)]
        arguments += [output if output.ndim == 1 else output.ravel() for output in outputs]
        loop, size = self.loop, outputs[0].size
        if size <= self.grain:
            loop(*arguments)
            return outputs
        is_array = [type(argument) is np.ndarray for argument in arguments]

        def task(start: int, stop: int) -> None:
            loop(
                *(
                    argument[start:stop] if sliced else argument
                    for argument, sliced in zip(arguments, is_array, strict=True)
                )
            )

        parallel_for(task, size, self.grain)
        return outputs


def _reader(
    operand: Array | Number, shape: tuple[int, ...], order: Order
) -> tuple[str, int, Callable[[Any], Any]]:
    """Return an operand's letter in the pattern, what becomes of it, and what does that."""
    letter = letter_of(operand)
    if type(operand) is not np.ndarray:
        return letter, NUMBER, lambda number: number
    if operand.size == 1:
        return _NUMBER_LETTER[letter], ITEM, np.ndarray.item
    if operand.ndim == len(shape) and operand.size == _size(shape):
        if operand.size > 1 and not any(operand.strides):
            return _NUMBER_LETTER[letter], SAME, lambda array: array[(0,) * array.ndim].item()
        if order is None:
            return letter, ARRAY, np.ndarray.ravel
        return letter, ARRAY, lambda array: array.transpose(order).ravel()
    return letter, WRITTEN, _written_out(shape, order)


def _written_out(shape: tuple[int, ...], order: Order) -> Callable[[Any], Any]:
    """Return what writes an array out to a shape."""

    def write(array: Array) -> Array:
        if order is not None and array.size != 1:
            missing = len(order) - array.ndim
            array = array.reshape((1,) * missing + array.shape).transpose(order)
        full = empty(shape, array.dtype)
        full[...] = array
        return full.ravel()

    return write


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size
