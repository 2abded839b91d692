"""Functions of small matrices written out: straight-line code, in a loop over the batch.

A formula (`numgrad.kernels.matrices.formulas`) is run once on symbols for each kind of call. The
same statements become kernels for batches, and parts of compiled functions that have such matrices
in their loops (`numgrad.jit.emit.native_calls`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import from_dtype, types

from numgrad.base.tuning import REMEMBERED_CALLS, UNROLLED_BATCH, UNROLLED_MATRIX
from numgrad.codegen.compile.compile import compile_functions
from numgrad.codegen.expression import SCALAR, Symbol, emit
from numgrad.codegen.loop_distribution import on_stack
from numgrad.codegen.loop_passes import names_in, rewritten
from numgrad.codegen.loops import (
    ZERO,
    Assign,
    Call,
    Choice,
    Do,
    Expression,
    For,
    Function,
    Load,
    Name,
    Number,
    Statement,
    Store,
    call,
    combine,
    names,
    plus,
    times,
    type_code,
)
from numgrad.kernels.matrices.failures import WORDS, refuse_failed

__all__ = ["Place", "Unrolled", "UnrolledCall"]

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
(_DISTINCT,) = names("numgrad.codegen.loop_runtime", "distinct")
_TOGETHER = 32  # matrices that are done side by side, in vectors
_SCATTERED = 4  # elements of a result from which on they are


class Place(NamedTuple):
    """Where the elements of an operand or a result are, for one matrix of a batch.

    Attributes
    ----------
    array : str
        What they are in.
    at : Expression
        The position of the first.
    strides : tuple of int
        From one element to the next along each dim, in elements.
    """

    array: str
    at: Expression
    strides: Shape


@dataclass(frozen=True)
class UnrolledCall:
    """What is done with matrices of some shapes.

    Attributes
    ----------
    batch : tuple of int
    dtype : numpy.dtype
        Of all but integers.
    operands, results : list of numpy.ndarray
        Symbols, of one matrix of the batch.
    integers : frozenset of int
        Which results are integers.
    failed : int or None
        Which result is looked at, for an error.
    checked : str or None
        The function that raises it.
    """

    batch: Shape
    dtype: np.dtype[Any]
    operands: list[Array]
    results: list[Array]
    integers: frozenset[int]
    failed: int | None
    checked: str | None

    def metas(self) -> list[tuple[Shape, np.dtype[Any]]]:
        """Return shape and dtype of the results."""
        return [
            (self.batch + each.shape, np.dtype(np.int32) if k in self.integers else self.dtype)
            for k, each in enumerate(self.results)
        ]

    def one(
        self, operands: Sequence[Place], results: Mapping[int, Place], prefix: str = ""
    ) -> list[Statement]:
        """Return what computes some of the results for one matrix of the batch.

        Names in it begin with the prefix.
        """
        code = emit([symbol for k in results for symbol in self.results[k].flat])
        of_type = type_code(self.dtype)

        def change(node: Any) -> Any:
            match node:
                case Name(name, ""):
                    return Name(prefix + name)
                case Assign(target):
                    return replace(node, target=prefix + target)
                case Call(Name("where", module), arguments) if module == SCALAR:
                    return Choice(*arguments)
            return node

        computed = rewritten([*code.typed(of_type), *code.lines], change)
        outcomes = iter([Name(prefix + name.id) for name in code.results])
        stores: list[Statement] = []
        for k, place in results.items():
            for at in np.ndindex(self.results[k].shape):
                stores.append(Store(Name(place.array), _position(place, at), next(outcomes)))
        used = names_in([*computed, *stores])
        loads: list[Statement] = []
        for symbols, place in zip(self.operands, operands, strict=True):
            for at in np.ndindex(symbols.shape):
                symbol: Any = symbols[at]
                name = prefix + symbol.arguments[0]
                if name in used:
                    element = Load(Name(place.array), _position(place, at))
                    loads.append(Assign(name, call(of_type, element)))
        return [*loads, *computed, *stores]


def _position(place: Place, at: Shape) -> Expression:
    steps = sum(index * stride for index, stride in zip(at, place.strides, strict=True))
    return plus(place.at, Number(steps))


class Unrolled:
    """A function of small matrices of real numbers that compiled code does by itself.

    Parameters
    ----------
    formula : callable
        Of arrays of symbols, and parameters by name: returns an array of symbols for each result.
    ndims : sequence of int
        How many dims each operand has, behind those of the batch. A last one that is a vector, as
        the parameter ``vector`` says, has one less.
    integers : sequence of int
        Which results are integers.
    failed : int, optional
        Which result says what failed: the parameter ``checked`` names the function that raises
        then, if there is one.
    fewest : int
        Matrices of a batch from which on it is called in eager mode, which has another way that
        gives the same bits.
    """

    def __init__(
        self,
        formula: Callable[..., Sequence[Array]],
        ndims: Sequence[int],
        integers: Sequence[int] = (),
        failed: int | None = None,
        fewest: int = UNROLLED_BATCH,
    ) -> None:
        self.formula, self.ndims, self.fewest = formula, tuple(ndims), fewest
        self.integers, self.failed = frozenset(integers), failed

    def call(
        self,
        shapes: Sequence[Shape],
        dtypes: Sequence[np.dtype[Any]],
        parameters: Mapping[str, Any],
    ) -> UnrolledCall | None:
        """Return what is done with operands; None if they are not what it is for."""
        given = dict(parameters)
        checked = given.pop("checked", None)
        ndims = [*self.ndims[:-1], self.ndims[-1] - bool(given.get("vector"))]
        starts = [len(shape) - ndim for shape, ndim in zip(shapes, ndims, strict=True)]
        batches = {shape[:start] for shape, start in zip(shapes, starts, strict=True)}
        cores = tuple([shape[start:] for shape, start in zip(shapes, starts, strict=True)])
        if dtypes[0] not in (np.float32, np.float64) or len(batches) != 1:
            return None
        (batch,) = batches
        most = UNROLLED_MATRIX**2
        if 0 in batch or max(cores[0]) > UNROLLED_MATRIX:
            return None
        if not all(0 < math.prod(core) <= most for core in cores):
            return None
        if checked is not None and checked not in WORDS:
            return None
        operands, results = _symbols(self.formula, cores, tuple(given.items()))
        return UnrolledCall(
            batch, dtypes[0], operands, results, self.integers, self.failed, checked
        )

    def __call__(
        self, arrays: Sequence[Array], orders: str, parameters: Mapping[str, Any]
    ) -> list[Array] | None:
        """Return the results for a batch; None for few matrices, or others than it is for.

        Parameters
        ----------
        arrays : sequence of numpy.ndarray
        orders : str
            For each result ``"F"`` if the columns of its matrices lie one behind the other; else
            ``"C"``.
        parameters : mapping
        """
        size = arrays[0].shape[-1] if arrays[0].ndim else 0
        if size > UNROLLED_MATRIX or arrays[0].size < self.fewest * size * size:
            return None
        found = self.call([a.shape for a in arrays], [a.dtype for a in arrays], parameters)
        if found is None:
            return None
        given, lies = [], ""
        for array, symbols in zip(arrays, found.operands, strict=True):
            turned = array.swapaxes(-2, -1) if symbols.ndim == 2 else array
            is_turned = turned.flags.c_contiguous and not array.flags.c_contiguous
            given.append(np.ascontiguousarray(turned if is_turned else array).reshape(-1))
            lies += "F" if is_turned else "C"
        results = [
            np.empty((*shape[:-2], shape[-1], shape[-2]) if order == "F" else shape, dtype)
            for (shape, dtype), order in zip(found.metas(), orders, strict=True)
        ]
        parts = tuple([(k, v) for k, v in parameters.items() if k != "checked"])
        cores = tuple([each.shape for each in found.operands])
        dtypes = tuple([array.dtype for array in arrays])
        run, _ = _kernel(self, cores, parts, found.dtype, dtypes, lies, orders)
        run(*given, *[each.reshape(-1) for each in results], math.prod(found.batch))
        if found.checked is not None and self.failed is not None:
            refuse_failed(found.checked, results[self.failed])
        return [
            each.swapaxes(-2, -1) if order == "F" else each
            for each, order in zip(results, orders, strict=True)
        ]


@lru_cache(REMEMBERED_CALLS)
def _symbols(
    formula: Callable[..., Sequence[Array]],
    cores: tuple[Shape, ...],
    parameters: tuple[tuple[str, Any], ...],
) -> tuple[list[Array], list[Array]]:
    """Return the symbols of operands, and those that a formula makes of them."""
    operands = []
    for letter, core in zip("pqrs", cores, strict=False):
        operand = np.empty(core, object)
        for position, at in enumerate(np.ndindex(core)):
            operand[at] = Symbol.input(f"{letter}{position}", False)
        operands.append(operand)
    return operands, list(formula(*operands, **dict(parameters)))


def _strides(shape: Shape, order: str) -> Shape:
    """Return the strides of a matrix, a vector or a number, in elements."""
    if order == "F":
        return (1, shape[0])
    return tuple([math.prod(shape[dim + 1 :]) for dim in range(len(shape))])


@lru_cache(REMEMBERED_CALLS)
def _kernel(
    unrolled: Unrolled,
    cores: tuple[Shape, ...],
    parameters: tuple[tuple[str, Any], ...],
    dtype: np.dtype[Any],
    dtypes: tuple[np.dtype[Any], ...],
    lies: str,
    orders: str,
) -> Any:
    """Return the compiled loop over a batch, of flat operands, results, and how many there are."""
    found = unrolled.call(cores, [dtype] * len(cores), dict(parameters))
    assert found is not None
    places = [
        Place(f"x{k}", times("one", math.prod(core)), _strides(core, order))
        for k, (core, order) in enumerate(zip(cores, lies, strict=True))
    ]
    targets, rooms, copies = {}, [], []
    for k, ((_, kind), each, order) in enumerate(
        zip(found.metas(), found.results, orders, strict=True)
    ):
        target = Place(f"y{k}", times("one", each.size), _strides(each.shape, order))
        if each.size < _SCATTERED:
            targets[k] = target
            continue
        # Side by side for all of a block: vectors can be stored there.
        steps = tuple([stride * _TOGETHER for stride in _strides(each.shape, "C")])
        targets[k] = beside = Place(f"block{k}", Name("lane"), steps)
        rooms.append(on_stack(beside.array, kind, each.size * _TOGETHER))
        for at in np.ndindex(each.shape):
            element = Load(Name(beside.array), _position(beside, at))
            copies.append(Store(Name(target.array), _position(target, at), element))
    lane = Assign("lane", combine("-", "one", "first"))
    loops = [
        For("one", Name("first"), Name("last"), [lane, *body])
        for body in (found.one(places, targets), copies)
        if body
    ]
    last = Assign("last", call(Name("min"), plus("first", _TOGETHER), "count"))
    blocks = For("first", ZERO, Name("count"), [last, *loops], Number(_TOGETHER))
    arrays = [f"x{k}" for k in range(len(places))] + [f"y{k}" for k in range(len(targets))]
    function = Function("matrices", [*arrays, "count"], [Do(call(_DISTINCT)), *rooms, blocks])
    compiled = compile_functions([function])
    kinds = [*dtypes, *[dtype for _, dtype in found.metas()]]
    signature = (*[types.Array(from_dtype(kind), 1, "C") for kind in kinds], types.intp)
    compiled.compile(signature)
    return compiled.overloads[signature].entry_point, compiled  # which holds the code
