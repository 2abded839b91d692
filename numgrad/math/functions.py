"""Operations and their derivative rules as functions of numbers, for users' own ``@njit`` code.

What was declared once, as a formula and a rule for each input, is printed here as the source of a
function of numbers, for the types it is called with, and compiled like any kernel. So results have
the bits of the operation on tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import from_dtype, types

from numgrad.base.declared import Declared
from numgrad.codegen.compile.compile import compile_functions, kernel
from numgrad.codegen.define import define
from numgrad.codegen.expression import Symbol, emit
from numgrad.codegen.loops import (
    Assign,
    Expression,
    Function,
    Name,
    Return,
    Statement,
    Tuple,
    call,
)
from numgrad.codegen.numba_private import DUFunc, as_dtype
from numgrad.codegen.scalar_ops import SCALAR_OPS
from numgrad.math.by_type import stands_in

__all__ = [
    "FORMULAS",
    "OTHER_NAMES",
    "Formula",
    "has_function",
    "operation_of",
    "scalar_function",
    "ufunc",
]


class Formula(NamedTuple):
    """An elementwise operation, as the catalogue declares it.

    Attributes
    ----------
    inputs : tuple of str
        The names of its operands.
    compute : callable
        Takes a dict of symbols by those names, returns the symbol of the result.
    rules : tuple
        For each operand a rule and the names of its parameters, or None.
    kind : str
        How the dtype of the result follows from that of the operands, as of `ElementwisePrimitive`.
    accepts : str
        The kinds of dtypes that there is a result for.
    doc : str
        The first line of its documentation.
    """

    inputs: tuple[str, ...]
    compute: Callable[[dict[str, Symbol]], Symbol]
    rules: tuple[tuple[Callable[..., Any], tuple[str, ...]] | None, ...]
    kind: str
    accepts: str
    doc: str


#: The formulas by name; elementwise primitives enter themselves.
FORMULAS = Declared()
#: Other public names of operations, and what these are called in `FORMULAS`.
OTHER_NAMES: dict[str, str] = {}

_VJP = "_vjp"
# The dtypes that a ufunc has loops for, in the order in which NumPy looks for one.
_LOOPS = ("?", "b", "B", "h", "i", "q", "f", "d", "F", "D")
_NUMBERS = (types.Number, types.Boolean)
_FLOATING = str.maketrans("", "", "biu")

_functions: dict[str, tuple[Formula, Any]] = {}
_ufuncs: dict[str, tuple[Formula, Any]] = {}


def has_function(name: str) -> bool:
    """Whether there is an operation of that name, or one whose rule has it."""
    name = _entered_as(name)
    if name in FORMULAS:
        return True
    formula = FORMULAS.get(name.removesuffix(_VJP))
    return name.endswith(_VJP) and formula is not None and any(formula.rules)


def _entered_as(name: str) -> str:
    """Return what the operation of a name, or whose rule has it, is called in `FORMULAS`.

    It is declared, where that has been put off.
    """
    if name in FORMULAS:
        return name
    operation, is_rule = name.removesuffix(_VJP), name.endswith(_VJP)
    load = FORMULAS.later.get(operation)
    if load is not None and operation not in FORMULAS and operation not in OTHER_NAMES:
        load()
    if operation not in FORMULAS:
        operation = OTHER_NAMES.get(operation, operation)
    return operation + _VJP if is_rule else operation


def scalar_function(name: str) -> Any:
    """Return an operation, or ``<name>_vjp``, as a compiled function of numbers.

    Parameters
    ----------
    name : str
        The operation's name in the catalogue; with ``_vjp``, that of its derivative rule: a
        function of the cotangent and the operands, which returns the gradient of the operand, or
        a tuple of those of the operands that have one.

    Returns
    -------
    numba.core.dispatcher.Dispatcher
    """
    name = _entered_as(name)
    formula = FORMULAS[name.removesuffix(_VJP)]
    known = _functions.get(name)
    if known is None or known[0] is not formula:
        known = _functions[name] = formula, _compiled(name, formula, name.endswith(_VJP))
    return known[1]


def ufunc(name: str) -> Any:
    """Return an elementwise operation as a NumPy ufunc.

    It takes what NumPy's ufuncs take (``out=``, ``where=``, ``dtype=``, operands of any strides
    that broadcast) and has their methods (``reduce``, ``accumulate``, ``outer``, ``at``). It is
    ``numba.vectorize`` of the function in `numgrad.math` of that name, so it gives the bits that
    the operation gives on tensors. Dtypes are NumPy's business: where there is no loop for integers
    they are cast to floating point numbers. Its loops, one for each dtype, are compiled when it is
    asked for first in a process.

    Parameters
    ----------
    name : str
        That of an elementwise operation: ``"tanh"``.

    Raises
    ------
    AttributeError
        If there is no such operation.

    Examples
    --------
    >>> import numpy as np
    >>> ufunc("hypot")(np.array([3.0, 5.0]), [[4.0], [12.0]])
    array([[ 5.        ,  6.40312424],
           [12.36931688, 13.        ]])
    >>> float(ufunc("hypot").reduce(np.array([2.0, 3.0, 6.0])))
    7.0
    """
    given, name = name, _entered_as(name)
    if name not in FORMULAS or not name.isidentifier():
        raise AttributeError(f"there is no elementwise operation {given!r}")
    formula = FORMULAS[name]
    known = _ufuncs.get(name)
    if known is None or known[0] is not formula:
        count = len(formula.inputs)
        kinds = formula.accepts if formula.kind != "float" else formula.accepts.translate(_FLOATING)
        # All loops at once: whoever has some takes the first that operands can be cast to.
        signatures = [
            (from_dtype(np.dtype(code)),) * count for code in _LOOPS if np.dtype(code).kind in kinds
        ]
        known_op = SCALAR_OPS.get(name)
        begins = None if known_op is None else known_op.identity
        vectorise = numba.vectorize(signatures, identity=begins)
        made: Any = vectorise(scalar_function(name).py_func)
        made.__class__ = _Ufunc
        made.__doc__ = formula.doc
        known = _ufuncs[name] = formula, made
    return known[1]


class _Ufunc(DUFunc):
    """A ufunc of Numba's that can be called with ``where=``.

    Numba has outputs read as well as written. That takes the place of what NumPy notes about
    masked ones, so it refuses the call. Methods such as `reduce` know ``where=`` themselves.

    Logical operations reduce numbers of all dtypes to truth values, as those of NumPy's do.
    """

    def __call__(self, *operands: Any, **options: Any) -> Any:
        """Compute elements, all or those that ``where`` says."""
        if options.get("where", True) is True or any(map(_is_foreign, operands)):
            return super().__call__(*operands, **options)
        return _called_where(super().__call__, self.ufunc.nin, operands, **options)

    def reduce(
        self, array: Any, axis: Any = 0, dtype: Any = None, *rest: Any, **options: Any
    ) -> Any:
        """Combine the elements along an axis."""
        return super().reduce(array, axis, self._combines_in(dtype), *rest, **options)

    def accumulate(
        self, array: Any, axis: Any = 0, dtype: Any = None, *rest: Any, **options: Any
    ) -> Any:
        """Combine the elements up to each along an axis."""
        return super().accumulate(array, axis, self._combines_in(dtype), *rest, **options)

    def reduceat(
        self,
        array: Any,
        indices: Any,
        axis: Any = 0,
        dtype: Any = None,
        *rest: Any,
        **options: Any,
    ) -> Any:
        """Combine the elements from each index up to the next along an axis."""
        return super().reduceat(array, indices, axis, self._combines_in(dtype), *rest, **options)

    def _combines_in(self, dtype: Any) -> Any:
        """Return the dtype in which elements are combined: what was asked for, mostly."""
        op = SCALAR_OPS.get(self.__name__)
        is_logical = op is not None and op.is_truth and op.identity is not None
        return np.bool_ if dtype is None and is_logical else dtype


def _is_foreign(operand: Any) -> bool:
    """Whether an operand has a say in what ufuncs do to it, as a tensor has."""
    own = getattr(type(operand), "__array_ufunc__", None)
    return own is not None and own is not np.ndarray.__array_ufunc__


def _called_where(
    call: Callable[..., Any],
    count: int,
    operands: Sequence[Any],
    *,
    where: Any,
    out: Any = None,
    **options: Any,
) -> Any:
    """Call a ufunc of `count` operands on those elements that a mask chooses."""
    *given, out = (*operands, out) if len(operands) == count else operands
    (out,) = out if isinstance(out, tuple) else (out,)
    mask = np.asarray(where).astype(bool, casting="safe")
    written = () if out is None else np.shape(out)
    shape = np.broadcast_shapes(mask.shape, written, *map(np.shape, given))
    if out is not None and written != shape:
        raise ValueError(
            f"non-broadcastable output operand with shape {written} doesn't match the broadcast "
            f"shape {shape}"
        )
    chosen = np.broadcast_to(mask, shape)
    taken = [np.broadcast_to(each, shape)[chosen] if np.ndim(each) else each for each in given]
    if out is not None:
        values = out[chosen]
        call(*taken, out=values, **options)
    else:
        values = np.asarray(call(*taken, **options))
        out = np.empty(shape, values.dtype)
    out[chosen] = values
    return out


def operation_of(function: Any) -> str | None:
    """Return the operation that a ufunc is of, None where `ufunc` did not make it."""
    for name, (_, made) in _ufuncs.items():
        if function in (made, made.ufunc):  # Numba's, and NumPy's in it, which has the methods
            return name
    return None


def _compiled(name: str, formula: Formula, is_rule: bool) -> Any:
    """Return a dispatcher that has a function of its own for each combination of types."""
    inputs = ("g", *formula.inputs) if is_rule else formula.inputs

    def chosen(*given: Any) -> Any:
        if len(given) != len(inputs):
            return None
        common = _common_type(given, formula.kind == "float" or is_rule)
        if common is None or as_dtype(common).kind not in formula.accepts:
            raise TypeError(_refusal(name, formula, given, common))
        return _of_type(name, inputs, formula, is_rule, given, common)

    by_type = _ByType(name)
    stands_in(by_type, chosen)
    given = ", ".join(inputs)
    source = f"def {name}({given}):\n    return by_type({given})\n"
    function = define(name, source, f"function {name}", {"by_type": by_type})
    function.__module__ = "numgrad.math"
    function.__doc__ = (
        f"Return the gradients of `{name[: -len(_VJP)]}`." if is_rule else formula.doc
    )
    # What it calls is in the cache, and does not follow from it.
    return kernel(function, cached=False)


def _refusal(name: str, formula: Formula, given: Sequence[Any], common: Any) -> str:
    """Return why there is no function for values of some types."""
    if common is not None:
        kinds = {"b": "bools", "i": "integers", "u": "integers", "f": "floats", "c": "complex"}
        taken = ", ".join(dict.fromkeys(kinds[each] for each in formula.accepts))
        return f"{name} takes numbers of these kinds: {taken}; not {as_dtype(common).name}"
    wrong = next(each for each in given if not isinstance(each, _NUMBERS))
    operation = name.removesuffix(_VJP)
    words = f"{name} is a function of numbers, which was given a value of Numba's type {wrong}"
    if isinstance(wrong, types.Array):
        words += f". Of arrays, math.ufunc({operation!r}) is one, or an operation on tensors"
    return words


class _ByType:
    """What compiled code calls in the place of a function, by types; another process makes it anew.

    Parameters
    ----------
    name : str
        That of the function.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __reduce__(self) -> tuple[Any, ...]:
        return _by_type, (self.name,)


def _by_type(name: str) -> Any:
    """Return what stands in for the function of that name in this process."""
    return scalar_function(name).py_func.__globals__["by_type"]


def _common_type(given: Sequence[Any], promotes: bool) -> Any:
    """Return the type that numbers are computed in; None if one is no number.

    It is NumPy's for arrays of those types. With `promotes`, integers become float64.
    """
    if not all(isinstance(each, _NUMBERS) for each in given):
        return None
    dtype = np.result_type(*[as_dtype(types.unliteral(each)) for each in given])
    if promotes and dtype.kind in "biu":
        dtype = np.dtype(np.float64)
    return from_dtype(dtype)


def _of_type(
    name: str,
    inputs: Sequence[str],
    formula: Formula,
    is_rule: bool,
    given: Sequence[Any],
    common: Any,
) -> Any:
    """Compile an operation for numbers that are computed in one type."""
    is_complex = isinstance(common, types.Complex)
    # A condition is a truth value whatever the others are.
    as_they_are = {n for n, kind in zip(inputs, given, strict=True) if kind == types.boolean}
    if common == types.boolean:
        as_they_are = set()
    symbols = {n: Symbol.input(n, is_complex and n not in as_they_are) for n in inputs}
    value = formula.compute(symbols)
    outputs = [value]
    if is_rule:
        meanings = symbols | {"y": value}
        outputs = [
            rule(*(meanings[parameter] for parameter in parameters))
            for rule, parameters in (declared for declared in formula.rules if declared)
        ]
    code = emit(outputs)
    is_bool = common == types.boolean
    of_type = Name("bool") if is_bool else Name(as_dtype(common).name, "numpy")
    body: list[Statement] = [Assign(n, call(of_type, n)) for n in inputs if n not in as_they_are]
    body += code.typed(of_type)
    body += code.lines
    result: Expression = Tuple(tuple(code.results))
    if len(code.results) == 1:
        # Numba computes small integers as int64.
        is_common = formula.kind in ("same", "float") and not is_rule
        result = call(of_type, code.results[0]) if is_common else code.results[0]
    function = Function(name, inputs, [*body, Return(result)])
    return compile_functions([function], doc=f"{name}, of numbers in {common}.", for_loops=True)
