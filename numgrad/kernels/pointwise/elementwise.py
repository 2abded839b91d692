"""Elementwise kernels: an expression becomes one loop over all of its operands.

An `Elementwise` computes one or several expressions of the same named inputs in one pass. Its loop
is emitted and compiled for each *pattern* of operands (see `numgrad.codegen.render`) and their
dtypes. What a call takes beyond that is found out for operands of given shapes and strides: once by
whoever makes calls like it (`function_for`), since nothing of calls is remembered here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from numba import from_dtype, types

from numgrad.base.tuning import (
    FEW_ELEMENTS,
    THREAD_BYTES_ARITHMETIC,
    THREAD_BYTES_FUNCTIONS,
)
from numgrad.codegen.compile.compile import compile_functions
from numgrad.codegen.expression import Symbol, emit
from numgrad.codegen.render import Formula, flat_loop, strided_loop
from numgrad.codegen.scalar_ops import QUICK
from numgrad.kernels.move.loop_order import NUMBER, ResultOrder, result_order
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
        self.is_quick: bool | None = None  # found out when it first matters
        # How many are operands: numbers behind them are no tensors without dims to PyTorch.
        self.operand_count = len(self.inputs)

    def loop(self, pattern: str, modes: str | None = None) -> Any:
        """Return the compiled loop for a pattern, such as ``"as"``: an array and a number.

        With `modes` it is the loop for operands of any strides.
        """
        key = pattern if modes is None else f"{pattern} {modes}"
        loop = self.loops.get(key)
        if loop is None:
            doc = f"{self.name}, for operands {pattern}"
            if modes is None:
                function = flat_loop(self.inputs, self.formula, pattern)
            else:
                function = strided_loop(self.inputs, self.formula, pattern, modes)
                doc += f" with strides {modes}"
            loop = self.loops[key] = compile_functions([function], doc=f"{doc}.", alone=True)
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
        shapes: Sequence[tuple[int, ...]] | None = None,
    ) -> list[Array]:
        """Compute the outputs for operands that broadcast to `shape`.

        What that takes is found out for this one call: see `function_for`.

        Parameters
        ----------
        shape : tuple of int
            The shape of every output.
        operands : sequence of array or number
            One for each input.
        dtypes : sequence of numpy.dtype
            The dtype of each output. They have the strides that PyTorch gives results: if the
            operands are transposed, these are too.
        shapes : sequence of tuple of int, optional
            For each output a shape that broadcasts to `shape`: the values are summed to it, as the
            gradient of an operand that was broadcast is, without being stored.
        """
        call, order = self._prepare(shape, shapes, operands, dtypes, operands)
        return _placed(call(operands), order.placer(shape))

    def prepared_once(self) -> Callable[..., list[Array]]:
        """Return what makes calls: the first one finds out what they take, for all that are alike.

        So it is for operands whose shapes, strides and dtypes are those of the first.
        """
        known: tuple[Any, Any] | None = None

        def call(
            shape: tuple[int, ...],
            operands: Sequence[Array | Number],
            dtypes: Sequence[np.dtype[Any]],
        ) -> list[Array]:
            nonlocal known
            if known is None:
                prepared, order = self._prepare(shape, None, operands, dtypes, operands)
                known = prepared, order.placer(shape)
            run, place = known
            return _placed(run(operands), place)

        return call

    def function_for(
        self,
        shape: tuple[int, ...],
        operands: Sequence[Array | Number],
        casts: Sequence[np.dtype[Any]],
        dtypes: Sequence[np.dtype[Any]],
        shapes: Sequence[tuple[int, ...]] | None = None,
        *,
        several: bool = True,
        lying: Sequence[Array | Number] | ResultOrder | None = None,
    ) -> Callable[..., Any]:
        """Return a function of operands that lie as these, which computes the outputs.

        It looks at nothing again: whoever makes calls keeps it, by what tells them apart.

        Parameters
        ----------
        shape, operands, dtypes, shapes
            Those of a call.
        casts : sequence of numpy.dtype
            What each operand is cast or converted to.
        several : bool
            Whether the function returns a list; otherwise the one output that there is.
        lying : sequence of array or number, or ResultOrder, optional
            What decides how outputs lie, if not the operands as they are cast; or how they do.
        """
        casters = _casters(operands, casts)
        given = [each(operand) for each, operand in zip(casters, operands, strict=True)]
        lying = given if lying is None else lying
        call, order = self._prepare(shape, shapes, given, dtypes, lying)
        on_one_thread = 0 < math.prod(shape) <= max(FEW_ELEMENTS, self._grain(dtypes))
        if on_one_thread and isinstance(call, (FlatCall, StridedCall)):
            return specialised_call(call, operands, casts, shape, order, several=several)
        place = order.placer(shape)

        def compute(*values: Any) -> Any:
            given = [each(value) for each, value in zip(casters, values, strict=True)]
            results = _placed(call(given), place)
            return results if several else results[0]

        return compute

    def _prepare(
        self,
        shape: tuple[int, ...],
        shapes: Sequence[tuple[int, ...]] | None,
        operands: Sequence[Array | Number],
        dtypes: Sequence[np.dtype[Any]],
        lying: Sequence[Array | Number] | ResultOrder,
    ) -> tuple[Any, ResultOrder]:
        """Find out what a call takes, and how its results lie."""
        if shapes is not None:
            orders = self._orders_of(shape, operands, len(dtypes))
            grain = self._grain(dtypes)
            call: Any = SummingCall(
                self._strided_loop, shape, operands, dtypes, shapes, orders, grain
            )
            return call, ResultOrder(None, None)
        if isinstance(lying, ResultOrder):
            order = lying
        else:
            order = result_order(shape, self.places_of(lying))
        return self._make_call(shape, order.dims, operands, dtypes), order

    def places_of(self, operands: Sequence[Array | Number]) -> list[Array]:
        """Return what decides how results lie: the arrays, and numbers that are operands."""
        return [
            operand if type(operand) is np.ndarray else NUMBER
            for position, operand in enumerate(operands)
            if type(operand) is np.ndarray or position < self.operand_count
        ]

    def _make_call(
        self,
        shape: tuple[int, ...],
        order: tuple[int, ...] | None,
        operands: Sequence[Array | Number],
        dtypes: Sequence[np.dtype[Any]],
    ) -> FlatCall | StridedCall:
        """Find out what a call takes that sums nothing."""
        ordered = shape if order is None else tuple([shape[dim] for dim in order])
        grain = self._grain(dtypes)
        if math.prod(shape) <= FEW_ELEMENTS or all(
            is_flat(_transpose(o, order), ordered) for o in operands
        ):
            return FlatCall(self._flat_loop, shape, order, operands, dtypes, grain)
        return StridedCall(self._strided_loop, shape, order, operands, dtypes, grain)

    def _orders_of(
        self, shape: tuple[int, ...], operands: Sequence[Array | Number], outputs: int
    ) -> list[tuple[int, ...]]:
        """Return for each output that is summed, or stands beside one, the order of its dims."""
        return [tuple(range(len(shape)))] * outputs

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


def _casters(
    operands: Sequence[Array | Number], dtypes: Sequence[np.dtype[Any]]
) -> list[Callable[[Any], Any]]:
    """Return what makes of operands like these what a loop takes.

    An array of the right dtype stays as it is: to cast may mean to copy, in another order.
    """
    return [
        converter(dtype)
        if type(operand) is not np.ndarray
        else _as_it_is
        if operand.dtype == dtype
        else partial(as_dtype, dtype=dtype)
        for operand, dtype in zip(operands, dtypes, strict=True)
    ]


def _as_it_is(array: Array) -> Array:
    return array


def _placed(results: list[Array], place: Callable[[Array], Array] | None) -> list[Array]:
    """Return results with their dims in order."""
    return results if place is None else [place(result) for result in results]


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


def _transpose(operand: Array | Number, order: tuple[int, ...] | None) -> Array | Number:
    """Return an operand with its dims in the order of the loops."""
    if order is None or type(operand) is not np.ndarray or operand.ndim != len(order):
        return operand
    return operand.transpose(order)
