"""Running the source of a program as plain Python: slow, checked, and nothing is compiled for it.

So hundreds of programs can be tried in the time that compiling a few takes. Reading or writing past
the end of an array, which compiled code does without a word, is an error here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CellType, FunctionType, SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from numgrad.codegen import fold_runtime
from numgrad.codegen.llvm.combine_ir import COMBINES
from numgrad.codegen.loops import Function
from numgrad.codegen.printer import print_module
from numgrad.jit.ir.graph import Graph
from numgrad.jit.run import program
from numgrad.jit.run.program import build
from tests.jit.interpreter import UFUNCS

__all__ = ["Uncompiled", "run_source"]

Array = np.ndarray[Any, Any]


def run_source(graph: Graph, arrays: Sequence[Array]) -> list[Array]:
    """Return what the program of a graph computes, run in Python.

    Parameters
    ----------
    graph : Graph
    arrays : sequence of numpy.ndarray
        The inputs.

    Raises
    ------
    IndexError
        If it reads or writes where its arrays are not.
    """
    built = build(graph)
    with mock.patch.object(program, "compile_functions", Uncompiled), np.errstate(all="ignore"):
        return built(arrays)


class Uncompiled:
    """What stands in for a dispatcher: the function, whatever the types of its arguments."""

    def __init__(self, functions: Sequence[Function], alone: bool = False) -> None:
        name, source = functions[-1].name, print_module(functions)
        namespace: dict[str, Any] = {"__name__": __name__}
        exec(compile(source, f"<{name}>", "exec"), namespace)
        namespace.update({each.name: namespace[each.name].py_func for each in functions})
        namespace.update(_PYTHON)
        self.overloads = _Overloads(namespace[name])

    def compile(self, signature: Any) -> None:
        """Do nothing."""


class _Overloads:
    def __init__(self, function: Callable[..., Any]) -> None:
        self._entry = SimpleNamespace(entry_point=function)

    def __getitem__(self, signature: Any) -> Any:
        return self._entry


# --- what the source calls ------------------------------------------------------------------------


class _Number:
    """A type of NumPy's that takes any number, nan to integers too, as a cast of arrays does."""

    def __init__(self, kind: Any) -> None:
        self.dtype = np.dtype(kind)

    def __call__(self, number: Any) -> Any:
        return np.asarray(number).astype(self.dtype)[()]


_TYPES = ("bool_", "int8", "int16", "int32", "int64", "uint8", "float32", "float64")
_NUMPY = SimpleNamespace(
    **{name: getattr(np, name) for name in ("inf", "nan", "complex64", "complex128")},
    **{name: _Number(getattr(np, name)) for name in _TYPES},
    uintp=int,  # of indices: an int that is never negative
    intp=int,
    empty=lambda shape, kind: _stack(kind, shape),
)


def _place(array: Array, position: Any) -> int:
    if not 0 <= position < array.size:
        raise IndexError(f"element {position} of {array.size}")
    return int(position)


def _element(array: Array, position: Any) -> Any:
    return array.reshape(-1)[_place(array, position)]


def _store(array: Array, position: Any, value: Any) -> None:
    array.reshape(-1)[_place(array, position)] = value


def _part(room: Array, start: int, count: int, kind: Any) -> Array:
    dtype = np.dtype(kind)
    return room.view(np.uint8)[start : start + count * dtype.itemsize].view(dtype)


def _stack(kind: Any, count: int) -> Array:
    return np.full(count, 77, np.dtype(kind))  # what nobody should read before it is written


def _in_python(function: FunctionType) -> FunctionType:
    """Return a function that calls the Python functions of this module, within others too."""
    names = {"element": _element, "store": _store, "lesser": min}
    cells = [
        CellType(_in_python(cell.cell_contents))
        if isinstance(cell.cell_contents, FunctionType)
        else cell
        for cell in function.__closure__ or ()
    ]
    namespace = {**function.__globals__, **names}
    return FunctionType(
        function.__code__, namespace, function.__name__, function.__defaults__, tuple(cells)
    )


def _wave(function: Callable[..., Any]) -> Callable[..., None]:
    def fill(angles: Array, start: int, count: int, out: Array) -> None:
        for i in range(count):
            out[i] = function(_element(angles, start + i))

    return fill


def _near_sin_cos(angles: Array, start: int, count: int, sines: Array, cosines: Array) -> None:
    _wave(np.sin)(angles, start, count, sines)
    _wave(np.cos)(angles, start, count, cosines)


_SCALAR = {**UFUNCS, "where": lambda c, a, b: a if c else b}
_SCALAR |= {f"to_{name}": _Number(name) for name in ("int32", "int64", "uint32", "uint64")}

_PYTHON: dict[str, Any] = {
    "np": _NUMPY,
    "scalar": SimpleNamespace(**_SCALAR),
    "element": _element,
    "store": _store,
    "part": _part,
    "stack": _stack,
    "unseen": lambda number: number,
    "stride": lambda number: number,
    "distinct": lambda: None,
    "use_wide_vectors": lambda: None,
    "near_sin": _wave(np.sin),
    "near_cos": _wave(np.cos),
    "near_tan": _wave(np.tan),
    "near_sin_cos": _near_sin_cos,
    "shifted": _in_python(fold_runtime.shifted),
    **{
        f"{name}_{kind}": _in_python(getattr(fold_runtime, f"{name}_{kind}"))
        for name in (
            *("run", "fold", "total", "merge", "merged", "combine_lanes", "fold_rows", "join"),
        )
        for kind in COMBINES
    },
}
