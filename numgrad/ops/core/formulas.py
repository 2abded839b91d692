"""What a formula or a rule of a user's own operation may call, and how it comes to call it.

Formulas run on symbols, rules on symbols and on tensors. Functions of NumPy, of `math` and of
numgrad, and a program's own helpers (`@njit` ones, too) know neither both; so in a copy of the
function, the names it uses stand for functions that do. What there is no such function of is
refused when the operation is declared.
"""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba.core.registry import CPUDispatcher
from numba.np.ufunc.dufunc import DUFunc

from numgrad.codegen.expression import Symbol, literal
from numgrad.codegen.scalar_ops import SCALAR_OPS
from numgrad.graph.frames import is_of_package
from numgrad.graph.tensor import Tensor
from numgrad.ops.core.elementwise import ElementwisePrimitive
from numgrad.ops.core.primitive import CATALOGUE
from numgrad.ops.core.registry import FUNCTIONS
from numgrad.ops.core.ufunc_names import UFUNCS

__all__ = ["rebound", "try_out"]

_MAY_CALL = (
    "It may use + - * / ** and comparisons; call elementwise functions of numgrad, and those of "
    "NumPy and math that are the same (np.exp, math.atan2, np.where); and call functions of its "
    "own, @njit ones too, that do no more than that: no if, no loop over a value"
)
# Functions of math that are not what numgrad calls so, and those that have another name here.
_OTHER = {"remainder", "isclose"}
_MATH = {"fabs": "abs", "degrees": "rad2deg", "radians": "deg2rad"}
# Functions of NumPy beside its ufuncs.
_NUMPY = {"where": "where", "clip": "clamp", "sinc": "sinc", "round": "round", "angle": "angle"}
_NUMPY |= {"isposinf": "isposinf", "isneginf": "isneginf", "fix": "trunc"}
# Other names of operations whose functions are written by hand, and what works on integers only.
_ALIASES = {"divide": "div", "true_divide": "div", "conjugate": "conj_physical"}
_ALIASES |= {f"arc{name}": f"a{name}" for name in ("cos", "cosh", "sin", "sinh", "tan", "tanh")}
_ALIASES |= {"arctan2": "atan2"}
_OF_BITS = {"bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"}
_OF_BITS |= {"bitwise_left_shift", "bitwise_right_shift"}
_MODULES = ("math", "numpy", "numgrad", "scipy")
# Operations that are made of others.
_MADE: dict[str, Callable[..., Any]] = {
    "square": lambda x: x * x,
    "positive": lambda x: x,
    "rsqrt": lambda x: 1 / FUNCTIONS["sqrt"](x),
}


def _refuse(what: str) -> TypeError:
    return TypeError(f"{what} is not among what there is for single elements")


def _on_symbols(name: str, count: int) -> Callable[..., Any] | None:
    """Return what an operation of so many operands does to symbols; None if there is none."""
    if name in _MADE:
        return _MADE[name]
    name = _ALIASES.get(name, name)
    function = FUNCTIONS.get(name)
    own = CATALOGUE.get(name)  # first, because several may share a function
    for primitive in (own, *CATALOGUE.values()):
        if (
            isinstance(primitive, ElementwisePrimitive)
            and len(primitive.inputs) == count
            and (
                name in (primitive.name, primitive.function_name)
                or (function is not None and function is FUNCTIONS.get(primitive.function_name))
            )
        ):
            return primitive
    return None


def _any(kind: type, values: Sequence[Any]) -> bool:
    return any(isinstance(value, kind) for value in values)


def _counterpart(original: Any, name: str | None, title: str) -> Callable[..., Any]:
    """Return a function of symbols, tensors and numbers in the place of one of numbers."""

    @functools.wraps(original, updated=())
    def function(*operands: Any, **options: Any) -> Any:
        values = [*operands, *options.values()]
        if _any(Symbol, values):
            known = None if name is None or options else _on_symbols(name, len(operands))
            if known is None:
                raise _refuse(f"{title}({', '.join(f'{each}=' for each in options)})")
            return known(*operands)
        if _any(Tensor, values):
            if name is None:
                raise _refuse(title)
            return FUNCTIONS[name](*operands, **options)
        return original(*operands, **options)

    return function


def _log(value: Any, *base: Any) -> Any:
    """Return the logarithm, as of math, which may be given a base."""
    log = _counterpart(math.log, "log", "math.log")
    return log(value) / log(base[0]) if base else log(value)


class _Module:
    """A module whose functions have been replaced."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return _stand_in(getattr(self._module, name), {})


@functools.cache
def _functions() -> dict[int, Callable[..., Any]]:
    """Return the counterparts of functions of NumPy and of math, by the functions' ids."""
    found: dict[int, Callable[..., Any]] = {}
    for name, value in vars(np).items():
        if isinstance(value, np.ufunc):
            ours = UFUNCS.get(value.__name__)
            ours = None if ours in _OF_BITS else ours
            found[id(value)] = _counterpart(value, ours, f"numpy.{name}")
        elif callable(value) and not isinstance(value, type):
            found.setdefault(id(value), _counterpart(value, _NUMPY.get(name), f"numpy.{name}"))
    for name, value in vars(math).items():
        if callable(value):
            ours = _MATH.get(name, name if name not in _OTHER else None)
            ours = ours if ours in FUNCTIONS else None
            found[id(value)] = _counterpart(value, ours, f"math.{name}")
    found[id(math.log)] = _log
    found[id(builtins.abs)] = _counterpart(builtins.abs, "abs", "abs")
    return found


def _stand_in(value: Any, known: dict[int, Any]) -> Any:
    """Return what takes the place of what a name means; the same thing if nothing has to."""
    if isinstance(value, ModuleType):
        return _Module(value) if value.__name__.partition(".")[0] in _MODULES else value
    if isinstance(value, (CPUDispatcher, DUFunc)):
        inner = rebound(value, known)

        def helper(*operands: Any) -> Any:
            on_numbers = not _any(Symbol, operands) and not _any(Tensor, operands)
            return value(*operands) if on_numbers else inner(*operands)

        return helper
    if not callable(value):
        return value
    counterpart = _functions().get(id(value))
    if counterpart is not None:
        return counterpart
    name = getattr(value, "__name__", "")
    if FUNCTIONS.get(name) is value:
        return _counterpart(value, name, f"numgrad.{name}")
    of_module = (getattr(value, "__module__", None) or "").partition(".")[0]
    is_number = isinstance(value, type)
    if not is_number and (isinstance(value, np.ufunc) or of_module in ("numpy", "math", "scipy")):
        return _counterpart(value, None, f"{of_module}.{name}")
    return rebound(value, known)


class _Names(dict[str, Any]):
    """The global names of a function, some with another meaning; the rest are looked up."""

    def __init__(self, names: dict[str, Any], changed: dict[str, Any]) -> None:
        super().__init__(changed)
        self["__builtins__"] = names.get("__builtins__", builtins)
        self._names = names

    def __missing__(self, name: str) -> Any:
        return self._names[name]


def _names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


def rebound(function: Any, known: dict[int, Any] | None = None) -> Any:
    """Return a function that calls what takes symbols and tensors in the place of what does not.

    Functions of numgrad's own, and those that call nothing else, are returned as they are.
    """
    known = {} if known is None else known
    if isinstance(function, (CPUDispatcher, DUFunc)):
        compiled: Any = getattr(function, "_dispatcher", function)  # the one of a ufunc
        return rebound(compiled.py_func, known)
    if not isinstance(function, FunctionType) or is_of_package(function.__code__.co_filename):
        return function
    if id(function) in known:
        return known[id(function)]
    changed: dict[str, Any] = {}
    cells = tuple([CellType() for _ in function.__closure__ or ()])
    names = _Names(function.__globals__, changed)
    made = FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, cells or None
    )
    made.__kwdefaults__ = function.__kwdefaults__
    known[id(function)] = made  # which may call itself
    differs = False
    for name in set(_names_in(function.__code__)):
        if name in function.__globals__:
            value = function.__globals__[name]
        elif name == "abs":
            value = builtins.abs
        else:
            continue
        stand_in = _stand_in(value, known)
        if stand_in is not value:
            names[name] = stand_in
            differs = True
    for cell, own in zip(cells, function.__closure__ or (), strict=True):
        try:
            value = own.cell_contents
        except ValueError:  # bound later
            continue
        cell.cell_contents = _stand_in(value, known)
        differs = differs or cell.cell_contents is not value
    if not differs:
        known[id(function)] = function
    return known[id(function)]


def try_out(
    operation: str, what: str, function: Callable[..., Any], names: Sequence[str], kinds: str
) -> None:
    """Raise unless a formula or a rule can be computed element by element.

    Parameters
    ----------
    operation, what : str
        The name of the operation, and whether this is its formula or a rule.
    function : callable
    names : sequence of str
        Of the operands.
    kinds : str
        The kinds of dtypes that the operation takes.

    Raises
    ------
    TypeError
        If it calls what there is not for elements.
    """
    for is_complex in [False] * (kinds != "c") + [True] * ("c" in kinds):
        try:
            result = literal(function(*[Symbol.input(name, is_complex) for name in names]))
            for operation_called in _operations(result):
                if operation_called not in SCALAR_OPS:
                    raise _refuse(operation_called)
        except NameError:
            return  # of something that is declared later
        except Exception as error:
            raise TypeError(
                f"{operation}: {what} can't be computed element by element: {error}. {_MAY_CALL}"
            ) from error


def _operations(symbol: Symbol) -> set[str]:
    found: set[str] = set()
    stack, seen = [symbol], set()
    while stack:
        each = stack.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if each.operation == "constant":
            if not isinstance(each.arguments[0], (bool, int, float, complex, np.number)):
                raise TypeError(f"it gives a {type(each.arguments[0]).__name__}")
        elif each.operation != "input":
            found.add(each.operation)
            stack += each.arguments
    return found
