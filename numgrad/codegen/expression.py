"""Symbolic expressions: what a formula written with ordinary operators computes, as a graph.

A scalar function or a derivative rule is run once on symbols. What it did to them is then
emitted as the body of a loop (`numgrad.kernels.pointwise.elementwise`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numgrad.codegen.scalar_ops import SCALAR_OPS

__all__ = ["Symbol", "emit", "literal"]


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
    return Symbol("constant", (value,), isinstance(value, complex))


def emit(outputs: Iterable[Symbol]) -> tuple[list[str], list[str], set[str], dict[str, str]]:
    """Write symbols as straight-line code, each different computation once.

    Returns
    -------
    lines : list of str
        Assignments ``t0 = ...`` in order.
    names : list of str
        The name that holds each output.
    functions : set of str
        The functions of `numgrad.math.scalar` that the lines call.
    constants : dict
        The name of every constant and the literal of its value; the caller gives it its dtype.
    """
    lines: list[str] = []
    names: dict[Any, str] = {}  # key of a computation -> the name that holds it
    functions: set[str] = set()
    constants: dict[str, str] = {}

    def visit(symbol: Symbol) -> str:
        if symbol.operation == "input":
            return str(symbol.arguments[0])
        if symbol.operation == "constant":
            value = symbol.arguments[0]
            key: Any = ("constant", repr(value))
            if key not in names:
                names[key] = f"c{len(constants)}"
                constants[names[key]] = _spell(value)
            return names[key]
        arguments = [visit(argument) for argument in symbol.arguments]
        key = (symbol.operation, *arguments)
        if key not in names:
            function = symbol.operation
            template = SCALAR_OPS[function].symbol
            if function == "true_divide" and symbol.is_complex:  # Numba's raises for 0
                template, function = None, "complex_divide"
            if template is None:
                functions.add(function)
                code = f"scalar.{function}({', '.join(arguments)})"
            else:
                code = template.format(*arguments)
            names[key] = f"t{len(lines)}"
            lines.append(f"{names[key]} = {code}")
        return names[key]

    results = [visit(output) for output in outputs]
    return lines, results, functions, constants


def _spell(value: Any) -> str:
    """Return Python source for a number; infinities and nan have no literal of their own."""
    text = repr(value)
    if isinstance(value, float) and text.lstrip("-") in ("inf", "nan"):
        return text.replace("inf", "np.inf").replace("nan", "np.nan")
    return text
