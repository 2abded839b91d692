"""What a formula or a rule of a user's own operation may call, and how it comes to call it.

Formulas run on symbols, rules on symbols and on tensors. Functions of NumPy, of `math` and of
numgrad, and a program's own helpers (`@njit` ones, too) know neither both; so in a copy of the
function, the names it uses stand for functions that do. What there is no such function of is
refused when the operation is declared.

The copy has the names' values of that moment. So a formula means the same however and whenever it
is run: tensor by tensor, in a traced function, or in a user's own compiled code.
"""

from __future__ import annotations

import builtins
import copy
import functools
import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from numbers import Number
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba.extending import is_jitted

from numgrad.codegen.expression import Symbol, literal
from numgrad.codegen.numba_private import DUFunc
from numgrad.graph.tensor import Tensor
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.core.primitive import CATALOGUE
from numgrad.ops.core.registry import FUNCTIONS
from numgrad.ops.core.ufunc_names import UFUNCS
from numgrad.runtime.frames import is_of_package

__all__ = ["rebound", "try_out"]

_MAY_CALL = (
    "It may use + - * / ** and comparisons; call elementwise functions of numgrad, and those of "
    "NumPy and math that are the same (np.exp, math.atan2, np.where); and call functions of its "
    "own, @njit ones too, that do no more than that: no if, no loop over a value"
)
_COMPLEX = (
    "with real operands it gives complex numbers. An operation that takes complex ones only says "
    'so: accepts="c"'
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


def _clamp(x: Any, min: Any = None, max: Any = None) -> Any:
    if min is None or max is None:
        side, bound = ("min", min) if max is None else ("max", max)
        return CATALOGUE[f"clamp_{side}_tensor"](x, bound)
    return CATALOGUE["clamp"](x, min, max)


# Operations that are made of others.
_MADE: dict[str, Callable[..., Any]] = {
    "square": lambda x: x * x,
    "positive": lambda x: x,
    "rsqrt": lambda x: 1 / FUNCTIONS["sqrt"](x),
    "clamp": _clamp,
}
# What changes by being written to, and is copied as it is.
_CONTAINERS = (dict, list, set, bytearray, np.ndarray)
# What has attributes that can be given other values.
_PLAIN = (bool, int, float, complex, str, bytes, type(None), tuple, frozenset, slice)


def _refuse(what: str) -> TypeError:
    return TypeError(f"{what} is not among what there is for single elements")


def _on_symbols(name: str, operands: Sequence[Any], options: dict[str, Any]) -> Any:
    """Return what an operation does to symbols and numbers; None if there is none of such operands.

    Operands that were given by their names go where they belong.
    """
    name = _ALIASES.get(name, name)
    parameters = _parameters(_MADE[name] if name in _MADE else FUNCTIONS[name])
    given = [*parameters[: len(operands)], *options]
    if len(operands) > len(parameters) or len({*given}) < len(given):
        return None
    values = dict(zip(given, [*operands, *options.values()], strict=True))
    values = {key: literal(value) for key, value in values.items() if value is not None}
    if name in _MADE:
        return _MADE[name](**values) if {*values} <= {*parameters} else None
    function = FUNCTIONS[name]
    own = CATALOGUE.get(name)  # first, because several may share a function
    for known in (values, _defaults(function) | values):
        for primitive in (own, *CATALOGUE.values()):
            if (
                isinstance(primitive, ElementwisePrimitive)
                and {*primitive.inputs} == {*known}
                and (
                    name in (primitive.name, primitive.function_name)
                    or _is_alias(function, primitive.function_name)
                )
            ):
                return primitive(*[known[key] for key in primitive.inputs])
    return None


def _is_alias(function: Callable[..., Any], name: str) -> bool:
    """Whether a function is one of that name, by another name."""
    named = FUNCTIONS.get(name)
    return named is not None and inspect.unwrap(named) is inspect.unwrap(function)


@functools.cache
def _parameters(function: Callable[..., Any]) -> list[str]:
    """Return the names of what a function takes, `out` left aside."""
    return [name for name in inspect.signature(function).parameters if name != "out"]


@functools.cache
def _defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the numbers that a function takes unless it is given others."""
    found = {name: p.default for name, p in inspect.signature(function).parameters.items()}
    return {name: literal(value) for name, value in found.items() if isinstance(value, Number)}


def _by_position(
    original: Any, operands: Sequence[Any], options: dict[str, Any]
) -> tuple[Any, ...] | None:
    """Return the operands of a call of a function of NumPy; None where options are not operands."""
    try:
        bound = inspect.signature(original).bind(*operands, **options)
    except (TypeError, ValueError):  # nobody knows what it takes
        return None
    return bound.args if len(bound.args) == len(bound.arguments) and not bound.kwargs else None


def _any(kind: type, values: Sequence[Any]) -> bool:
    return any(isinstance(value, kind) for value in values)


def _counterpart(original: Any, name: str | None, title: str) -> Callable[..., Any]:
    """Return a function of symbols, tensors and numbers in the place of one of numbers."""

    @functools.wraps(original, updated=())
    def function(*operands: Any, **options: Any) -> Any:
        values = [*operands, *options.values()]
        if _any(Symbol, values):
            found = None
            if name is not None and options and not title.startswith("numgrad."):
                placed = _by_position(original, operands, options)
                found = None if placed is None else _on_symbols(name, placed, {})
            elif name is not None:
                found = _on_symbols(name, operands, options)
            if found is None:
                raise _refuse(f"{title}({', '.join(f'{each}=' for each in options)})")
            return found
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


class _Attributes:
    """A module, a class or an object whose attributes have been replaced, each when first read."""

    def __init__(self, owner: Any) -> None:
        self._owner = owner

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__[name] = _stand_in(getattr(self._owner, name), {})
        return found

    def __call__(self, *operands: Any, **options: Any) -> Any:
        return self._owner(*operands, **options)


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
            ours = ours if ours is not None and FUNCTIONS.has(ours) else None
            found[id(value)] = _counterpart(value, ours, f"math.{name}")
    found[id(math.log)] = _log
    found[id(builtins.abs)] = _counterpart(builtins.abs, "abs", "abs")
    return found


def _stand_in(value: Any, known: dict[int, Any]) -> Any:
    """Return what takes the place of what a name means; the same thing if nothing has to."""
    if isinstance(value, ModuleType):
        return _Attributes(value)
    if is_jitted(value) or isinstance(value, DUFunc):
        inner = rebound(value, known)

        def helper(*operands: Any, **options: Any) -> Any:
            given = [*operands, *options.values()]
            on_numbers = not _any(Symbol, given) and not _any(Tensor, given)
            return (value if on_numbers else inner)(*operands, **options)

        return helper
    if not callable(value):
        return _as_it_is(value)
    counterpart = _functions().get(id(value))
    if counterpart is not None:
        return counterpart
    name = getattr(value, "__name__", "")
    if FUNCTIONS.get(name) is value:
        return _counterpart(value, name, f"numgrad.{name}")
    of_module = (getattr(value, "__module__", None) or "").partition(".")[0]
    is_function = not isinstance(value, type)
    if is_function and (isinstance(value, np.ufunc) or of_module in ("numpy", "math", "scipy")):
        return _counterpart(value, None, f"{of_module}.{name}")
    if isinstance(value, type):
        is_plain = of_module in ("builtins", "numgrad") or issubclass(value, (np.generic, Number))
        return value if is_plain else _Attributes(value)
    return rebound(value, known)


def _as_it_is(value: Any) -> Any:
    """Return what keeps the contents that a value has now."""
    if isinstance(value, _CONTAINERS):
        return copy.deepcopy(value)
    if isinstance(value, (*_PLAIN, Number, np.generic, Tensor)) or not hasattr(value, "__dict__"):
        return value
    return _Attributes(value)


class _Names(dict[str, Any]):
    """The global names of a function as they were; those that came later, when first read."""

    def __init__(self, names: dict[str, Any]) -> None:
        super().__init__()
        self["__builtins__"] = names.get("__builtins__", builtins)
        self._names = names

    def __missing__(self, name: str) -> Any:
        found = self[name] = _stand_in(self._names[name], {})
        return found


def _names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


def rebound(function: Any, known: dict[int, Any] | None = None) -> Any:
    """Return a copy of a function that calls what takes symbols and tensors, whatever happens.

    What its names stand for, and its defaults, stay what they are now. Functions of numgrad's own
    are returned as they are.
    """
    known = {} if known is None else known
    if is_jitted(function) or isinstance(function, DUFunc):
        compiled: Any = getattr(function, "_dispatcher", function)  # the one of a ufunc
        return rebound(compiled.py_func, known)
    if not isinstance(function, FunctionType) or is_of_package(function.__code__.co_filename):
        return function
    if id(function) in known:
        return known[id(function)]
    # A name of an enclosing function that has no value yet is read when it has.
    closure = function.__closure__ or ()
    cells = tuple([CellType() if _is_bound(cell) else cell for cell in closure])
    names = _Names(function.__globals__)
    made = FunctionType(function.__code__, names, function.__name__, None, cells or None)
    known[id(function)] = made  # which may call itself
    if function.__defaults__ is not None:
        made.__defaults__ = tuple([_stand_in(value, known) for value in function.__defaults__])
    made.__kwdefaults__ = {
        name: _stand_in(value, known) for name, value in (function.__kwdefaults__ or {}).items()
    }
    for name in set(_names_in(function.__code__)):
        if name in function.__globals__:
            names[name] = _stand_in(function.__globals__[name], known)
        elif name == "abs":
            names[name] = _stand_in(builtins.abs, known)
    for cell, own in zip(cells, closure, strict=True):
        if cell is not own:
            cell.cell_contents = _stand_in(own.cell_contents, known)
    return made


def _is_bound(cell: CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


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
            for part in _parts(result):
                if part.operation == "constant" and not isinstance(
                    part.arguments[0], (bool, int, float, complex, np.number)
                ):
                    raise TypeError(f"it gives a {type(part.arguments[0]).__name__}")
                if part.is_complex and not is_complex:
                    raise TypeError(_COMPLEX)
        except NameError:
            return  # of something that is declared later
        except Exception as error:
            raise TypeError(
                f"{operation}: {what} can't be computed element by element: {error}. {_MAY_CALL}"
            ) from error


def _parts(symbol: Symbol) -> Iterator[Symbol]:
    """Yield a symbol and all that it is computed from, each once."""
    stack, seen = [symbol], set()
    while stack:
        each = stack.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        if each.operation not in ("constant", "input"):
            stack += each.arguments
