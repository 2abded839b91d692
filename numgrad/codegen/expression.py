"""Symbolic expressions: what a formula written with ordinary operators computes, as a graph.

A scalar function or a derivative rule is run once on symbols. What it did to them is then
emitted as the body of a loop (`numgrad.kernels.pointwise.elementwise`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from numgrad.codegen import loops
from numgrad.codegen.loops import Assign, Call, Expression, Infix, Name, Number, Prefix, Statement
from numgrad.codegen.scalar_ops import SCALAR_OPS

__all__ = ["SCALAR", "Straight", "Symbol", "emit", "literal", "operation", "scalar"]

SCALAR = "numgrad.math.scalar"


class Symbol:
    """A scalar that is not known yet: an input of a formula, a constant, or an operation on others.

    Parameters
    ----------
    operation : str
        ``"input"``, ``"constant"``, or the name of a scalar operation.
    arguments : tuple
        The input's name, the constant's value, or the symbols operated on.
    is_complex : bool
        Whether its values are complex numbers.
    """

    __slots__ = ("arguments", "is_complex", "operation")

    def __init__(
        self, operation: str, arguments: tuple[Any, ...], is_complex: bool = False
    ) -> None:
        self.operation = operation
        self.arguments = arguments
        self.is_complex = is_complex

    @classmethod
    def input(cls, name: str, is_complex: bool) -> Symbol:
        """Return the symbol of a named input."""
        return cls("input", (name,), is_complex)

    @classmethod
    def apply(cls, operation: str, *arguments: Any) -> Symbol:
        """Return the symbol of `operation` done to symbols and numbers."""
        symbols = tuple(literal(argument) for argument in arguments)
        op = SCALAR_OPS.get(operation)
        is_real = op is not None and op.is_real
        is_complex = not is_real and any(symbol.is_complex for symbol in symbols)
        return cls(operation, symbols, is_complex)

    def __add__(self, other: Any) -> Symbol:
        return Symbol.apply("add", self, other)

    def __radd__(self, other: Any) -> Symbol:
        return Symbol.apply("add", other, self)

    def __sub__(self, other: Any) -> Symbol:
        return Symbol.apply("sub", self, other)

    def __rsub__(self, other: Any) -> Symbol:
        return Symbol.apply("sub", other, self)

    def __mul__(self, other: Any) -> Symbol:
        return Symbol.apply("mul", self, other)

    def __rmul__(self, other: Any) -> Symbol:
        return Symbol.apply("mul", other, self)

    def __truediv__(self, other: Any) -> Symbol:
        return Symbol.apply("true_divide", self, other)

    def __rtruediv__(self, other: Any) -> Symbol:
        return Symbol.apply("true_divide", other, self)

    def __pow__(self, other: Any) -> Symbol:
        return Symbol.apply("pow", self, other)

    def __pos__(self) -> Symbol:
        return self

    def __neg__(self) -> Symbol:
        return Symbol.apply("neg", self)

    def __eq__(self, other: Any) -> Any:
        return Symbol.apply("eq", self, other)

    def __ne__(self, other: Any) -> Any:
        return Symbol.apply("ne", self, other)

    def __lt__(self, other: Any) -> Symbol:
        return Symbol.apply("lt", self, other)

    def __le__(self, other: Any) -> Symbol:
        return Symbol.apply("le", self, other)

    def __gt__(self, other: Any) -> Symbol:
        return Symbol.apply("gt", self, other)

    def __ge__(self, other: Any) -> Symbol:
        return Symbol.apply("ge", self, other)

    def __and__(self, other: Any) -> Symbol:
        return Symbol.apply("bitwise_and", self, other)

    def __or__(self, other: Any) -> Symbol:
        return Symbol.apply("bitwise_or", self, other)

    def __xor__(self, other: Any) -> Symbol:
        return Symbol.apply("bitwise_xor", self, other)

    def __invert__(self) -> Symbol:
        return Symbol.apply("logical_not", self)

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        raise TypeError("a formula may not branch on a value: use where(condition, a, b)")


def literal(value: Any) -> Symbol:
    """Return `value` itself if it is a symbol, else the constant symbol of a number."""
    if isinstance(value, Symbol):
        return value
    number = value.item() if isinstance(value, np.generic) else value
    return Symbol("constant", (number,), isinstance(number, complex))


class Straight(NamedTuple):
    """Straight-line code for some symbols.

    Attributes
    ----------
    lines : list of Assign
        ``t0 = ...`` in order, each different computation once.
    results : list of Name
        The variable that holds each output.
    functions : set of str
        The functions of `numgrad.math.scalar` that the lines call.
    constants : dict
        The value of each variable ``c0`` that stands for a constant.
    """

    lines: list[Statement]
    results: list[Name]
    functions: set[str]
    constants: dict[str, Any]

    def typed(self, of_type: Expression) -> list[Statement]:
        """Return the assignments of the constants, in the type of what they meet.

        Numba would silently compute numpy.float32 with a Python number in float64.
        """
        return [
            Assign(
                name,
                Number(value)
                if isinstance(value, bool)
                else loops.call(of_type, loops.literal(value)),
            )
            for name, value in self.constants.items()
        ]


def emit(outputs: Iterable[Symbol]) -> Straight:
    """Write symbols as straight-line code, each different computation once."""
    code = Straight([], [], set(), {})
    known: dict[Any, Name] = {}  # key of a computation -> the variable that holds it
    seen: dict[int, Name] = {}  # of symbols, by identity: on many ways the same is met

    def visit(symbol: Symbol) -> Name:
        found = seen.get(id(symbol))
        if found is None:
            found = seen[id(symbol)] = computed(symbol)
        return found

    def computed(symbol: Symbol) -> Name:
        if symbol.operation == "input":
            return Name(symbol.arguments[0])
        if symbol.operation == "constant":
            value = symbol.arguments[0]
            key: Any = ("constant", repr(value))
            if key not in known:
                known[key] = Name(f"c{len(code.constants)}")
                code.constants[known[key].id] = value
            return known[key]
        arguments = [visit(argument) for argument in symbol.arguments]
        key = (symbol.operation, *arguments)
        if key not in known:
            done = operation(symbol.operation, arguments, symbol.is_complex)
            if isinstance(done, Call):
                code.functions.add(done.function.id)  # type: ignore[union-attr]
            known[key] = Name(f"t{len(code.lines)}")
            code.lines.append(Assign(known[key].id, done))
        return known[key]

    code.results.extend([visit(output) for output in outputs])
    return code


def operation(name: str, arguments: Sequence[Expression], is_complex: bool = False) -> Expression:
    """Return a scalar operation on expressions; `is_complex` says whether its result is."""
    if name == "true_divide" and is_complex:
        name = "complex_divide"  # Numba's raises for 0
    symbol = SCALAR_OPS[name].symbol
    if symbol is None:
        return Call(scalar(name), tuple(arguments))
    return Infix(symbol, *arguments) if len(arguments) == 2 else Prefix(symbol, *arguments)


def scalar(name: str) -> Name:
    """Return a function of `numgrad.math.scalar`."""
    return Name(name, SCALAR)
