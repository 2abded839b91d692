"""Elementwise kernels: an expression becomes one loop over all of its operands.

An `Elementwise` computes one or several expressions of the same named inputs in one pass. Its loop
is emitted and compiled for each *pattern* of operands (see `numgrad.codegen.render`) and their
dtypes. What a call takes beyond that is found out once for operands of given shapes and strides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numba import from_dtype, types

from numgrad.base.tuning import (
    FEW_ELEMENTS,
    REMEMBERED_CALLS,
    THREAD_BYTES_ARITHMETIC,
    THREAD_BYTES_FUNCTIONS,
)
from numgrad.codegen.compile.compile import compile_functions
from numgrad.codegen.expression import Symbol, emit
from numgrad.codegen.render import Formula, flat_loop, strided_loop
from numgrad.codegen.scalar_ops import QUICK
from numgrad.kernels.move.loop_order import loop_order
from numgrad.kernels.move.memory_order import as_dtype
from numgrad.kernels.pointwise.flat_calls import FlatCall, Number, converter, is_flat
from numgrad.kernels.pointwise.specialised_calls import specialised_call
from numgrad.kernels.pointwise.strided_calls import StridedCall
from numgrad.kernels.pointwise.summing_calls import SummingCall

__all__ = ["FLOATING", "Elementwise"]

Array = np.ndarray[Any, Any]


FLOATING = frozenset((np.dtype("float32"), np.dtype("float64")))

_POSITIONS = types.Array(types.int64, 1, "C")
_STRIDED_HEAD = (
    _POSITIONS,
    types.Array(types.int64, 2, "C"),
    _POSITIONS,
    *(types.int64,) * 5,
)
_NUMBERS = {bool: types.boolean, float: types.float64, complex: types.complex128}


class Elementwise:
    """Expressions over named inputs, compiled on first use to one loop that computes them all.

    Parameters
    ----------
    name : str
        What the emitted source is called after.
    inputs : sequence of str
        The names of the operands, in the order of a call.
    formula : callable
        Given a symbol for each name, returns the symbols of the outputs.
    """

    def __init__(self, name: str, inputs: Sequence[str], formula: Formula) -> None:
        self.name = name
        self.inputs = tuple(inputs)
        self.formula = formula
        self.loops: dict[str, Any] = {}  # by pattern; of strided loops, with the modes
        self.entries: dict[Any, Any] = {}
        self.calls: dict[Any, tuple[Any, Any]] = {}
        self.is_quick: bool | None = None  # found out when it first matters

    def loop(self, pattern: str, modes: str | None = None) -> Any:
        """Return the compiled loop for a pattern, such as ``"as"``: an array and a number.

        With `modes` it is the loop for operands of any strides.
        """
        key = pattern if modes is None else f"{pattern} {modes}"
        loop = self.loops.get(key)
        if loop is None:
            if modes is None:
                function = flat_loop(self.inputs, self.formula, pattern)
            else:
                function = strided_loop(self.inputs, self.formula, pattern, modes)
            loop = self.loops[key] = compile_functions(
                [function], doc=f"{self.name}, for operands {pattern}."
            )
        return loop

    def entry(self, pattern: str, dtype: np.dtype[Any], count: int) -> Any:
        """Return what calls the loop for flat contiguous arrays of one floating point dtype.

        It is the loop's compiled entry point: unlike the dispatcher it does not look at the types
        of its arguments, which takes longer than the work where they have a few elements. So
        arrays in all places of `pattern` that say so, and in those of the `count` outputs, must be
        C-contiguous with exactly one dimension and that dtype; numbers must be Python floats.
        """
        found = self.entries.get((pattern, dtype, count))
        if found is None:
            array = types.Array(from_dtype(dtype), 1, "C")
            mask = types.Array(types.boolean, 1, "C")
            of_letter = {"a": array, "b": mask, "s": types.float64, "p": types.boolean}
            signature = (*(of_letter[n] for n in pattern), *(array,) * count)
            found = self._entry(pattern, None, signature)
            self.entries[pattern, dtype, count] = found
        return found

    def _entry(self, pattern: str, modes: str | None, signature: tuple[Any, ...]) -> Any:
        """Return the compiled entry point of a loop for arguments of these types."""
        key = (pattern, modes, signature)
        found = self.entries.get(key)
        if found is None:
            loop = self.loop(pattern, modes)
            loop.compile(signature)
            found = self.entries[key] = loop.overloads[signature].entry_point
        return found

    def __call__(
        self,
        shape: tuple[int, ...],
        operands: Sequence[Array | Number],
        dtypes: Sequence[np.dtype[Any]],
        outputs: Sequence[Array] | None = None,
        shapes: Sequence[tuple[int, ...]] | None = None,
    ) -> list[Array]:
        """Compute the outputs for operands that broadcast to `shape`.

        Parameters
        ----------
        shape : tuple of int
            The shape of every output.
        operands : sequence of array or number
            One for each input.
        dtypes : sequence of numpy.dtype
            The dtype of each output.
        outputs : sequence of array, optional
            C-contiguous arrays to write to. New ones have the strides that PyTorch gives the
            result: if the operands are transposed, it is too.
        shapes : sequence of tuple of int, optional
            For each output a shape that broadcasts to `shape`: the values are summed to it, as the
            gradient of an operand that was broadcast is, without being stored. Not with `outputs`.
        """
        call, back = self.prepared(shape, operands, dtypes, outputs is None, shapes)
        results: list[Array] = call(operands, outputs)
        return results if back is None else [result.transpose(back) for result in results]

    def prepared(
        self,
        shape: tuple[int, ...],
        operands: Sequence[Array | Number],
        dtypes: Sequence[np.dtype[Any]],
        is_new: bool = True,
        shapes: Sequence[tuple[int, ...]] | None = None,
    ) -> tuple[Any, Any]:
        """Return what computes such a call, and the order of the dims that its results get."""
        key = (shape, is_new, shapes, *dtypes, *map(_description, operands))
        found = self.calls.get(key)
        if found is None:
            found = self._prepare(shape, is_new, shapes, operands, dtypes)
            if len(self.calls) >= REMEMBERED_CALLS:
                self.calls.clear()
            self.calls[key] = found
        return found

    def specialised(
        self,
        shape: tuple[int, ...],
        operands: Sequence[Array | Number],
        dtypes: Sequence[np.dtype[Any]],
        result: np.dtype[Any],
    ) -> Callable[..., Array] | None:
        """Return a function that is the quickest to compute one output on one thread.

        It is for no other shapes, strides and dtypes than those of `operands`; `dtypes` are what
        these are cast to. None where threads share the work, and where there is none.
        """
        size, grain = math.prod(shape), self._grain([result])
        if not 0 < size <= max(FEW_ELEMENTS, grain):
            return None
        converted: list[Any] = []
        for operand, dtype in zip(operands, dtypes, strict=True):
            if type(operand) is not np.ndarray:
                converted.append(converter(dtype)(operand))
            elif operand.dtype == dtype:  # as it is: to cast may mean to copy, in another order
                converted.append(operand)
            else:
                converted.append(as_dtype(operand, dtype))
        order, back = _orders(shape, converted)
        call = self._make_call(shape, order, converted, [result], grain)
        found: Callable[..., Array] = specialised_call(call, operands, dtypes, back)
        return found

    def _make_call(
        self,
        shape: tuple[int, ...],
        order: tuple[int, ...] | None,
        operands: Sequence[Array | Number],
        dtypes: Sequence[np.dtype[Any]],
        grain: int,
    ) -> FlatCall | StridedCall:
        """Find out what a call takes that sums nothing."""
        ordered = shape if order is None else tuple([shape[dim] for dim in order])
        if math.prod(shape) <= FEW_ELEMENTS or all(
            is_flat(_transpose(o, order), ordered) for o in operands
        ):
            return FlatCall(self._flat_loop, shape, order, operands, dtypes, grain)
        return StridedCall(self._strided_loop, shape, order, operands, dtypes, grain)

    def _prepare(
        self,
        shape: tuple[int, ...],
        is_new: bool,
        shapes: Sequence[tuple[int, ...]] | None,
        operands: Sequence[Array | Number],
        dtypes: Sequence[np.dtype[Any]],
    ) -> tuple[Any, Any]:
        """Find out what a call takes."""
        order = back = None
        if is_new and shapes is None:
            order, back = _orders(shape, operands)
        grain = self._grain(dtypes)
        if shapes is not None:
            orders = self._orders_of(shape, operands)
            call: Any = SummingCall(
                self._strided_loop, shape, operands, dtypes, shapes, orders, grain
            )
        else:
            call = self._make_call(shape, order, operands, dtypes, grain)
        return call, back

    def _orders_of(
        self, shape: tuple[int, ...], operands: Sequence[Array | Number]
    ) -> list[tuple[int, ...]]:
        """Return for each output that is summed, or stands beside one, the order of its dims."""
        symbols = {name: Symbol.input(name, False) for name in self.inputs}
        return [tuple(range(len(shape)))] * len(self.formula(symbols))

    def _grain(self, dtypes: Sequence[np.dtype[Any]]) -> int:
        """Return how many elements a thread takes at least."""
        if self.is_quick is None:
            symbols = {name: Symbol.input(name, False) for name in self.inputs}
            self.is_quick = emit(self.formula(symbols)).functions <= QUICK
        widest = max(4, *[dtype.itemsize for dtype in dtypes])
        return (THREAD_BYTES_ARITHMETIC if self.is_quick else THREAD_BYTES_FUNCTIONS) // widest

    def _flat_loop(self, pattern: str, arguments: Sequence[Any]) -> Any:
        """Return what computes flat arrays like these."""
        signature = _signature(arguments, "C")
        return self.loop(pattern) if signature is None else self._entry(pattern, None, signature)

    def _strided_loop(
        self, pattern: str, modes: str, arguments: Sequence[Any], room: Sequence[Any] = ()
    ) -> Any:
        """Return what computes arrays of any strides, known by their first elements.

        `room` is what the loop has as room for values of a row.
        """
        signature = _signature(arguments, "A")
        if signature is None:
            return self.loop(pattern, modes)
        of_room = _signature(room, "C") or ()
        return self._entry(pattern, modes, (*_STRIDED_HEAD, *signature, *of_room))


def _description(operand: Array | Number) -> Any:
    """Return what a call depends on: for an array all but its place and its values."""
    if type(operand) is np.ndarray:
        return (operand.shape, operand.strides, operand.dtype)
    return type(operand)


def _signature(arguments: Sequence[Any], layout: Literal["A", "C"]) -> tuple[Any, ...] | None:
    """Return the Numba types of arguments; None if they depend on a value, as an int's does."""
    signature: list[Any] = []
    for argument in arguments:
        if type(argument) is np.ndarray:
            signature.append(types.Array(from_dtype(argument.dtype), 1, layout))
        elif type(argument) in _NUMBERS:
            signature.append(_NUMBERS[type(argument)])
        else:
            return None
    return tuple(signature)


def _orders(
    shape: tuple[int, ...], operands: Sequence[Array | Number]
) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    """Return the order in which to walk the dims, and its inverse; None if that is theirs."""
    arrays = [operand for operand in operands if type(operand) is np.ndarray]
    if len(shape) < 2 or all(array.flags.c_contiguous for array in arrays):
        return None, None
    order = loop_order(shape, arrays)
    if order == tuple(range(len(shape))):
        return None, None
    return order, tuple(np.argsort(order).tolist())


def _transpose(operand: Array | Number, order: tuple[int, ...] | None) -> Array | Number:
    """Return an operand with its dims in the order of the loops."""
    if order is None or type(operand) is not np.ndarray or operand.ndim != len(order):
        return operand
    return operand.transpose(order)
