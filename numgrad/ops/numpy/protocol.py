"""NumPy's functions on tensors: `__array_ufunc__` and `__array_function__`, read from one table.

A call of NumPy's with a tensor among its operands is the call of ours that
`numgrad.ops.numpy.names` gives, so that it is recorded and traced as any other. What is not there
raises TypeError.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.recorder import place_of
from numgrad.graph.tensor import Tensor
from numgrad.graph.upward import upward
from numgrad.math.functions import operation_of
from numgrad.ops.arguments.nested import is_foreign
from numgrad.ops.core.primitive import CATALOGUE
from numgrad.ops.core.promotion import result_dtype
from numgrad.ops.core.registry import FUNCTIONS, INPLACE, METHODS, OPERANDS
from numgrad.ops.numpy.functions import alike
from numgrad.ops.numpy.names import (
    FACTS,
    NAMES,
    OF_TENSORS,
    REDUCTIONS,
    UFUNCS,
    WRITERS,
    Target,
)
from numgrad.ops.numpy.reductions import REDUCED, axes_of

__all__ = ["array_function", "array_ufunc", "operand_of"]

_MISSING = object()
_NOT_GIVEN = (None, getattr(np, "_NoValue", None))


class Parameter(NamedTuple):
    """One parameter of a function of NumPy."""

    name: str
    kind: str  # "operand", "sequence", "variadic", "option", "row" or "refused"
    ours: str
    default: Any


_KINDS = {"***": "variadic", "**": "sequence", "*": "operand", "-": "refused"}


def _parameter(text: str) -> Parameter:
    """Read how `numgrad.ops.numpy.names` writes a parameter."""
    kind = "option"
    for prefix, meaning in _KINDS.items():
        if text.startswith(prefix):
            kind, text = meaning, text[len(prefix) :]
            break
    text, equals, written = text.partition("=")
    default: Any = _MISSING
    if equals:
        constants = {"None": None, "True": True, "False": False}
        number = int(written) if written.lstrip("-").isdigit() else written
        default = constants.get(written, number)
    if "~" in text:
        kind, text = "row", text.replace("~", ":")
    name, _, ours = text.partition(":")
    return Parameter(name, kind, ours or name, default)


class Reading(NamedTuple):
    """How the calls of a function of NumPy are read."""

    name: str
    parameters: tuple[Parameter, ...]
    target: Target

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call ours as NumPy's was called."""
        operands: list[Any] = []
        options: dict[str, Any] = {}
        for parameter, value in self._pair(args, kwargs):
            kind, name, ours, default = parameter.kind, parameter.name, *parameter[2:]
            if kind in ("operand", "sequence", "variadic"):
                if value is not _MISSING:
                    operands += _operands(kind, value)
            elif kind == "refused":
                if value is not _MISSING and not _is_default(value, default):
                    raise _missing(f"numpy.{self.name}({name}=)")
            elif kind == "row":
                dim = default if value is _MISSING else value
                if dim is None:
                    operands, dim = [_in_one_row(operand) for operand in operands], 0
                options[ours] = dim
            else:
                given = default if value is _MISSING else value
                if given is not _MISSING and not any(given is each for each in _NOT_GIVEN):
                    options[ours] = _option(name, given)
        return _target(self.target)(*operands, **options)

    def _pair(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[Parameter, Any]]:
        """Return the parameters, and what each is given."""
        pairs: list[tuple[Parameter, Any]] = []
        left = list(args)
        unknown = dict(kwargs)
        for parameter in self.parameters:
            if parameter.kind == "variadic":
                value: Any = tuple(left)
                left = []
            elif left:
                value = left.pop(0)
            else:
                value = unknown.pop(parameter.name, _MISSING)
            pairs.append((parameter, value))
        if left or unknown:
            raise _missing(f"numpy.{self.name}({', '.join(f'{name}=' for name in unknown)})")
        return pairs


def _is_default(value: Any, default: Any) -> bool:
    """Whether an option was not given, or as it is if it is not; ``*`` stands for anything."""
    if any(value is each for each in _NOT_GIVEN) or default == "*":
        return True
    return isinstance(value, (bool, str)) and value == default


def _operands(kind: str, value: Any) -> list[Any]:
    if kind == "operand":
        return [operand_of(value)]
    found = [_tensor_of(operand_of(each)) for each in value]
    return found if kind == "variadic" else [found]


def _in_one_row(operand: Any) -> Any:
    if isinstance(operand, list):
        return [each.reshape(-1) for each in operand]
    return operand.reshape(-1)


def _option(name: str, value: Any) -> Any:
    """Return what is given for an option as ours takes it."""
    if name == "dtype" and not isinstance(value, dtypes.dtype):
        return dtypes.of_numpy(np.dtype(value))
    if name == "out":
        (value,) = value if isinstance(value, tuple) else (value,)
        return operand_of(value)
    if isinstance(value, np.ndarray):
        return operand_of(value)
    return value


def operand_of(value: Any) -> Any:
    """Return an operand of a NumPy call as one of ours: a tensor, or a number as it is."""
    if isinstance(value, OPERANDS):
        return value
    if isinstance(value, (list, tuple)) and any(isinstance(each, Tensor) for each in value):
        return FUNCTIONS["stack"]([_tensor_of(operand_of(each)) for each in value])
    if isinstance(value, (np.ndarray, list, tuple)) or is_foreign(type(value)):
        return upward.as_tensor(value)
    raise TypeError(f"a tensor can't be combined with {type(value).__name__}")


def _tensor_of(operand: Any) -> Tensor:
    if isinstance(operand, Tensor):
        return operand
    made: Tensor = FUNCTIONS["scalar_tensor"](operand, dtype=result_dtype([operand]))
    return made


def _missing(what: str) -> TypeError:
    return TypeError(
        f"numgrad has no {what} for tensors. For NumPy's, which has no gradient, give it "
        "np.asarray(tensor), of tensor.detach() if it requires grad"
    )


def _find(name: str) -> Any:
    """Return a function of NumPy's, None where this version has none of that name."""
    found: Any = np
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _target(target: Target) -> Callable[..., Any]:
    if not isinstance(target, str):
        return target
    found: Callable[..., Any] = FUNCTIONS.find(target) or METHODS[target]
    return found


@functools.cache
def _readings() -> dict[Any, Reading]:
    """Return how to read the calls of each function of NumPy's that is here."""
    return {
        function: Reading(name, tuple(map(_parameter, parameters.split())), target)
        for name, (parameters, target) in NAMES.items()
        if (function := _find(name)) is not None
    }


@functools.cache
def _ufuncs() -> dict[np.ufunc, str]:
    return {getattr(np, name): target for name, target in UFUNCS.items()}


@functools.cache
def _functions(names: str) -> frozenset[Any]:
    return frozenset(filter(None, map(_find, names.split())))


def array_function(
    tensor: Tensor,
    function: Callable[..., Any],
    types: Sequence[type],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Do what a function of NumPy does, on tensors (NumPy's ``__array_function__`` protocol).

    Raises
    ------
    TypeError
        If there is no such function for tensors.
    """
    if not all(issubclass(kind, (Tensor, np.ndarray)) for kind in types):
        return NotImplemented
    reading = _readings().get(function)
    if reading is not None:
        return reading(args, kwargs)
    array = _place if function in _functions(FACTS) else np.asarray
    if array is _place or function in _functions(WRITERS):
        given = [array(each) if isinstance(each, Tensor) else each for each in args]
        options = {k: array(v) if isinstance(v, Tensor) else v for k, v in kwargs.items()}
        return function(*given, **options)
    module = getattr(function, "__module__", "numpy")
    raise _missing(f"{module}.{getattr(function, '__name__', function)}")


def _place(tensor: Tensor) -> Any:
    return place_of(tensor._array)


def array_ufunc(
    tensor: Tensor, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = (), **options: Any
) -> Any:
    """Do what a ufunc of NumPy does, on tensors (NumPy's ``__array_ufunc__`` protocol).

    An array given as ``out``, the left operand of ``array += tensor`` above all, is written to, and
    what is returned is a tensor over its memory, with the history of the result.

    Raises
    ------
    TypeError
        If there is no such operation for tensors, or it is told to compute in another way.
    """
    name = ufunc.__name__
    target = _ufuncs().get(ufunc)
    if target is None:
        return _call_other_ufunc(ufunc, method, inputs, out, options)
    if method == "__call__":
        return _call_ufunc(name, target, inputs, out, options)
    where = f"numpy.{name}.{method}"
    if method == "outer":
        _refuse(where, options)
        one, other = [_tensor_of(operand_of(each)) for each in inputs]
        inputs = (one.reshape(*one.shape, *[1] * other.ndim), other)
        return _call_ufunc(name, target, inputs, out, {})
    along = REDUCTIONS.get((name, method))
    if along is None:
        raise _missing(where)
    more = " keepdims initial where" if method == "reduce" else ""
    read = tuple(map(_parameter, f"*array axis dtype out{more}".split()))
    options = {"axis": 0, **options} if len(inputs) < 2 else options
    axis = options.get("axis", 0)
    if method == "accumulate" and axis in (0, -1, None) and not inputs[0].ndim:
        raise TypeError("cannot accumulate on a scalar")
    if method == "accumulate" and not isinstance(axis, int):
        axes = axes_of(axis, inputs[0].ndim)
        if len(axes) != 1:
            raise ValueError("accumulate does not allow multiple axes")
        options["axis"] = axes[0]
    if out:
        options["out"] = out
    return Reading(f"{name}.{method}", read, REDUCED[along])(inputs, options)


def _call_other_ufunc(
    ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], out: Any, options: dict[str, Any]
) -> Any:
    """Call the operation that a ufunc of `numgrad.math` is of; refuse all other ones."""
    name = operation_of(ufunc)
    if name is None:
        is_numpys = getattr(np, ufunc.__name__, None) is ufunc
        raise _missing(f"numpy.{ufunc.__name__}" if is_numpys else f"ufunc {ufunc.__name__!r}")
    where = f"numgrad.math.ufunc({name!r})"
    if method != "__call__":
        raise _missing(f"{where}.{method}")
    if options or not (isinstance(out, tuple) and not out):
        given = [*options, *["out"] * (not options)]
        raise _missing(f"{where}({', '.join(f'{each}=' for each in given)})")
    return CATALOGUE[name](*map(operand_of, inputs))


def _call_ufunc(
    name: str, target: str, inputs: tuple[Any, ...], out: Any, options: dict[str, Any]
) -> Any:
    """Call ours as a ufunc was called."""
    if options:
        _refuse(f"numpy.{name}", options)
    operands = [operand_of(each) for each in inputs]
    if target in OF_TENSORS:
        operands = alike(*operands)
    if not out or out[0] is None:
        return FUNCTIONS[target](*operands)
    (out,) = out
    written = operand_of(out)
    in_place = INPLACE.find(f"{target}_") if out is inputs[0] else None
    if in_place is not None:
        return in_place(written, *operands[1:])
    return FUNCTIONS[target](*operands, out=written)


# How ufuncs may be told to compute, with their defaults.
_DEFAULTS = {"casting": "same_kind", "order": "K", "subok": True, "where": True}


def _refuse(where: str, options: dict[str, Any]) -> None:
    """Raise for an option of a ufunc that is not its default."""
    for name, value in options.items():
        if not _is_default(value, _DEFAULTS.get(name)):
            raise _missing(f"{where}({name}=)")
