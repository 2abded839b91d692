"""The loop IR: what all generated kernels are built in, before `printer` writes them as Python.

A kernel is a `Function`: statements made of expressions. Loads and stores are of the elements of
arrays; everything that is called is a `Name` that knows which module it is from, so that what a
source has to import follows from it. Statements are never changed once they are made; passes
(`numgrad.codegen.loop_passes`) return others.
"""

from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "ONE",
    "PREFIXES",
    "SIGNS",
    "ZERO",
    "Assign",
    "Attribute",
    "Blank",
    "Break",
    "Call",
    "Choice",
    "Do",
    "Expression",
    "Fold",
    "For",
    "Function",
    "If",
    "Infix",
    "Interpreted",
    "Load",
    "Name",
    "Number",
    "Prefix",
    "Raise",
    "Return",
    "Statement",
    "Store",
    "Tuple",
    "Unpack",
    "While",
    "as_expression",
    "block",
    "call",
    "combine",
    "literal",
    "names",
    "plus",
    "times",
    "type_code",
]


class Sign(NamedTuple):
    """What a sign between two operands stands for.

    Attributes
    ----------
    operator : callable
        The operator of Python that it is.
    binds : int
        How close it binds; a comparison 2, the closest most.
    keeps_integers : bool
        Whether it gives integers, or truth values, of integers.
    """

    operator: Callable[[Any, Any], Any]
    binds: int
    keeps_integers: bool = True


#: The signs of `Infix`, but ``and`` and ``or``, which do not always look at both operands.
SIGNS = {
    "==": Sign(operator.eq, 2),
    "!=": Sign(operator.ne, 2),
    "<": Sign(operator.lt, 2),
    "<=": Sign(operator.le, 2),
    ">": Sign(operator.gt, 2),
    ">=": Sign(operator.ge, 2),
    "|": Sign(operator.or_, 3),
    "^": Sign(operator.xor, 4),
    "&": Sign(operator.and_, 5),
    "<<": Sign(operator.lshift, 6),
    ">>": Sign(operator.rshift, 6),
    "+": Sign(operator.add, 7),
    "-": Sign(operator.sub, 7),
    "*": Sign(operator.mul, 8),
    "/": Sign(operator.truediv, 8, keeps_integers=False),
    "//": Sign(operator.floordiv, 8),
    "%": Sign(operator.mod, 8),
}
#: What signs in front of an operand mean.
PREFIXES: dict[str, Callable[..., Any]] = {
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.invert,
    "not ": operator.not_,
}


# --- expressions ---------------------------------------------------------------------------------


@dataclass(slots=True, frozen=True)
class Name:
    """A variable; or what is defined elsewhere: then it says in which module."""

    id: str
    module: str = ""


@dataclass(slots=True, frozen=True)
class Number:
    """A number, truth value, text or tuple of these, written as Python writes it."""

    value: Any


@dataclass(slots=True, frozen=True)
class Infix:
    """Two operands with a sign between them."""

    sign: str
    left: Expression
    right: Expression


@dataclass(slots=True, frozen=True)
class Prefix:
    """A sign in front of an operand."""

    sign: str
    operand: Expression


@dataclass(slots=True, frozen=True)
class Choice:
    """One of two values."""

    condition: Expression
    yes: Expression
    no: Expression


@dataclass(slots=True, frozen=True)
class Attribute:
    """What a value has under a name."""

    value: Expression
    name: str


@dataclass(slots=True, frozen=True)
class Tuple:
    """Several values."""

    items: tuple[Expression, ...]


@dataclass(slots=True, frozen=True)
class Call:
    """A function of some values."""

    function: Expression
    arguments: tuple[Expression, ...]


@dataclass(slots=True, frozen=True)
class Load:
    """An element of an array: counted from its first one in memory, or a `subscript`."""

    array: Expression
    index: Expression
    subscript: bool = False


Expression = Name | Number | Infix | Prefix | Choice | Attribute | Tuple | Call | Load
_EXPRESSIONS = frozenset(Expression.__args__)


# --- statements ----------------------------------------------------------------------------------


@dataclass(slots=True, frozen=True)
class Assign:
    """Give a value a name. Its origin says where the line came from, in a comment."""

    target: str
    value: Expression
    origin: str = ""


@dataclass(slots=True, frozen=True)
class Unpack:
    """Give each of several values a name."""

    targets: tuple[str, ...]
    value: Expression


@dataclass(slots=True, frozen=True)
class Store:
    """Write an element of an array, counted as by `Load`."""

    array: Expression
    index: Expression
    value: Expression
    origin: str = ""
    subscript: bool = False


@dataclass(slots=True, frozen=True)
class Do:
    """Call something for what it does."""

    value: Expression
    origin: str = ""


@dataclass(slots=True, frozen=True)
class For:
    """Repeat statements for an index that counts from one number to another, excluded."""

    index: str
    first: Expression
    last: Expression
    body: Sequence[Statement]
    step: Expression = Number(1)


@dataclass(slots=True, frozen=True)
class Fold:
    """Combine a value of each turn of the loops around: a reduction of some kind, as of sums.

    All turns of the loop over `run` and of those in it are one run. They are combined in the order
    of `numgrad.kernels.reduce.order`, a block after the other: `target` is the result of a block,
    and `each` is done with it. Where `whole` is the index of a loop around, or of one that threads
    share, `target` is the result of all blocks of its turns, and `each` is done once, behind that
    loop. With a `place` each turn is a row of many runs side by side: a value is combined with the
    element there of the array `target`, in the lane that the row is dealt to.
    `numgrad.codegen.fold_passes` makes statements of it.
    """

    target: str
    kind: str
    value: Expression
    run: str
    each: Sequence[Statement] = ()
    dtype: Any = None
    origin: str = ""
    whole: str = ""
    place: Expression | None = None


@dataclass(slots=True, frozen=True)
class While:
    """Repeat statements while a condition holds."""

    condition: Expression
    body: Sequence[Statement]


@dataclass(slots=True, frozen=True)
class If:
    """Do one thing or another."""

    condition: Expression
    then: Sequence[Statement]
    otherwise: Sequence[Statement] = ()


@dataclass(slots=True, frozen=True)
class Interpreted:
    """Have the interpreter do something; `types` are those of the names that it assigns."""

    types: tuple[tuple[str, str], ...]
    body: Sequence[Statement]


@dataclass(slots=True, frozen=True)
class Raise:
    """Raise an error with a message."""

    error: str
    message: str


@dataclass(slots=True, frozen=True)
class Return:
    """Return a value."""

    value: Expression


@dataclass(slots=True, frozen=True)
class Break:
    """Leave the loop around."""


@dataclass(slots=True, frozen=True)
class Blank:
    """An empty line, between parts."""


Statement = (
    Assign
    | Unpack
    | Store
    | Do
    | For
    | Fold
    | While
    | If
    | Interpreted
    | Raise
    | Return
    | Break
    | Blank
)


@dataclass(slots=True, frozen=True)
class Function:
    """A function of arrays and numbers, which Numba compiles."""

    name: str
    parameters: Sequence[str]
    body: Sequence[Statement]


# --- making expressions --------------------------------------------------------------------------


def as_expression(value: Any) -> Expression:
    """Return an expression itself; of text, the variable of that name; else the number."""
    if type(value) in _EXPRESSIONS:
        return value
    return Name(value) if isinstance(value, str) else Number(value)


def names(module: str, *ids: str) -> list[Name]:
    """Return what a module defines."""
    return [Name(each, module) for each in ids]


def call(function: Expression, *arguments: Any) -> Call:
    """Return a call with expressions, names of variables and numbers."""
    return Call(function, tuple([as_expression(argument) for argument in arguments]))


def combine(sign: str, left: Any, right: Any) -> Infix:
    """Return two expressions, names of variables or numbers with a sign between them."""
    return Infix(sign, as_expression(left), as_expression(right))


def plus(*terms: Any) -> Expression:
    """Return a sum, without what is 0 in it."""
    total: Expression = ZERO
    for given in terms:
        term = as_expression(given)
        negative = _negated(term)
        if term == ZERO:
            continue
        if total == ZERO:
            total = term
        elif isinstance(term, Infix) and term.sign in "+-":
            total = Infix(term.sign, plus(total, term.left), term.right)
        elif negative is not None:
            total = Infix("-", total, negative)
        else:
            total = Infix("+", total, term)
    return total


def _negated(term: Expression) -> Expression | None:
    """Return minus a term that has a minus in front; None if it has none."""
    match term:
        case Prefix("-", operand):
            return operand
        case Number(value) if value < 0:
            return Number(-value)
        case Infix("*", left, right):
            negative = _negated(left)
            return None if negative is None else times(negative, right)
    return None


def times(*factors: Any) -> Expression:
    """Return a product, without what is 1 in it."""
    total: Expression = ONE
    for given in factors:
        factor = as_expression(given)
        if total == ONE:
            total = factor
        elif factor != ONE:
            total = Infix("*", total, factor)
    return total


def literal(value: Any) -> Expression:
    """Return a number as an expression; infinities and nan have no literal of their own."""
    if isinstance(value, complex) and not cmath.isfinite(value):
        return call(Name("complex"), literal(value.real), literal(value.imag))
    if isinstance(value, float) and not math.isfinite(value):
        special = Name("nan" if math.isnan(value) else "inf", "numpy")
        return Prefix("-", special) if value < 0 else special
    return Number(value)


@lru_cache(64)
def type_code(dtype: np.dtype[Any]) -> Name:
    """Return a dtype's type."""
    return Name("bool_" if dtype.kind == "b" else dtype.name, "numpy")


ZERO, ONE = Number(0), Number(1)


def block(*parts: Statement | Iterable[Statement]) -> list[Statement]:
    """Return statements and lists of statements as one list."""
    lines: list[Statement] = []
    for part in parts:
        lines.extend(part if isinstance(part, Iterable) else (part,))
    return lines
