"""Python functions read as functions of the loop IR: `printer` the other way round.

Kernels, and the small functions that generated loops call, are written in Python. They become
functions of the loop IR: Numba's way, through their bytecode, took a third of the time of first
calls of programs with sums, and more than half of that of a kernel. Numba still goes it for what is
not read (slices, arrays that get another name, results of several numbers): both mean the same.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable, Sequence
from functools import cache
from itertools import count
from types import CodeType
from typing import Any

from numgrad.codegen.loops import (
    Assign,
    Attribute,
    Break,
    Call,
    Choice,
    Do,
    Expression,
    For,
    Function,
    If,
    Infix,
    Load,
    Name,
    Number,
    Prefix,
    Return,
    Statement,
    Store,
    Tuple,
    Unpack,
    While,
)

__all__ = ["Unreadable", "read_function", "scope_of"]

_SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.And: "and",
    ast.Or: "or",
    ast.USub: "-",
    ast.UAdd: "+",
    ast.Invert: "~",
    ast.Not: "not ",
}


class Unreadable(Exception):
    """A function has what the loop IR has not."""


@cache
def read_function(function: Callable[..., Any]) -> Function:
    """Return a Python function as one of the loop IR.

    Parameters
    ----------
    function : callable
        Plain Python: assignments, ``if``, ``while``, ``for`` over a range, calls of functions that
        are named, arithmetic.

    Raises
    ------
    Unreadable
        If it consists of something else, or its source is not there.

    Examples
    --------
    >>> from numgrad.math.arithmetic import sign
    >>> read_function(sign.py_func).parameters
    ('x',)
    """
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError) as error:  # SyntaxError: a lambda in the middle of something
        raise Unreadable("its source is not there") from error
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise Unreadable("no def")
    given = definition.args
    if given.vararg or given.kwarg or given.kwonlyargs or given.defaults:
        raise Unreadable("arguments that are not by position")
    body = definition.body[ast.get_docstring(definition, clean=False) is not None :]
    parameters = tuple([each.arg for each in given.args])
    return Function(definition.name, parameters, _Reader(function.__code__).block(body))


def scope_of(function: Any) -> dict[str, Any]:
    """Return what the names in a function stand for that are no variables of its own."""
    names = inspect.getclosurevars(function)
    return {**vars(builtins), **names.globals, **names.nonlocals}


class _Reader:
    """Reads statements and expressions of a function."""

    def __init__(self, code: CodeType) -> None:
        self.variables = frozenset(code.co_varnames + code.co_cellvars)

    # --- statements ---

    def block(self, body: Sequence[ast.stmt]) -> list[Statement]:
        """Read statements; what stands behind a branch that goes on with the next turn is else."""
        lines: list[Statement] = []
        for position, each in enumerate(body):
            match each:
                case ast.If(test=test, body=[*then, ast.Continue()], orelse=[]):
                    rest = self.block(body[position + 1 :])
                    lines.append(If(self.value(test), self.block(then), rest))
                    return lines
            lines += self._statement(each)
        return lines

    def _statement(self, node: ast.stmt) -> list[Statement]:
        match node:
            case ast.Pass():
                return []
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                return self._together(targets, values)
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value):
                return self._unpacked(targets, value)
            case ast.Assign(targets=[target], value=value):
                return [self._assigned(target, self.value(value))]
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                return [Assign(name, Infix(_sign(op), Name(name), self.value(value)))]
            case ast.AugAssign(target=ast.Subscript() as target, op=op, value=value):
                before = self.value(target)
                if any(isinstance(each, ast.Call) for each in ast.walk(target)):
                    raise Unreadable("a call that would be made twice")
                return [self._assigned(target, Infix(_sign(op), before, self.value(value)))]
            case ast.Break():
                return [Break()]
            case ast.Expr(value=value):
                return [Do(self.value(value))]
            case ast.Return(value=value):
                return [Return(Number(None) if value is None else self.value(value))]
            case ast.If(test=test, body=then, orelse=otherwise):
                return [If(self.value(test), self.block(then), self.block(otherwise))]
            case ast.While(test=test, body=body, orelse=[]):
                return [While(self.value(test), self.block(body))]
            case ast.For(
                target=ast.Name(id=index),
                iter=ast.Call(func=ast.Name(id="range"), args=limits, keywords=[]),
                body=body,
                orelse=[],
            ):
                first, last, step = self._limits(limits)
                return [For(index, first, last, self.block(body), step)]
        raise Unreadable(ast.dump(node))

    def _together(self, targets: list[ast.expr], values: list[ast.expr]) -> list[Statement]:
        """Read ``a, b = x, y``; where a target is among the values, they are known before."""
        if len(targets) != len(values):
            raise Unreadable("as many targets as values")
        read = [self.value(each) for each in values]
        named = {each.id for value in values for each in ast.walk(value) if type(each) is ast.Name}
        if any(isinstance(each, ast.Name) and each.id in named for each in targets):
            return [Unpack(tuple([_name(each) for each in targets]), Tuple(tuple(read)))]
        pairs = zip(targets, read, strict=True)
        return [self._assigned(target, value) for target, value in pairs]

    def _unpacked(self, targets: list[ast.expr], value: ast.expr) -> list[Statement]:
        """Read ``a[i], b = f()``: what goes to elements of arrays has a name first."""
        elements = [each for each in targets if isinstance(each, ast.Subscript)]
        used = {n.id for each in elements for n in ast.walk(each) if isinstance(n, ast.Name)}
        if any(isinstance(each, ast.Name) and each.id in used for each in targets):
            raise Unreadable("an index that is assigned beside its element")
        names = {each: self._fresh() for each in elements}
        named = tuple([names[t] if isinstance(t, ast.Subscript) else _name(t) for t in targets])
        stores = [self._assigned(each, Name(name)) for each, name in names.items()]
        return [Unpack(named, self.value(value)), *stores]

    def _fresh(self) -> str:
        """Return a name that no variable has."""
        name = next(name for k in count() if (name := f"given{k}") not in self.variables)
        self.variables |= {name}
        return name

    def _assigned(self, target: ast.expr, value: Expression) -> Statement:
        if isinstance(target, ast.Subscript):
            array, index = self.value(target.value), self.value(target.slice)
            return Store(array, index, value, subscript=True)
        return Assign(_name(target), value)

    def _limits(self, limits: list[ast.expr]) -> tuple[Expression, ...]:
        given = [self.value(each) for each in limits]
        if len(given) == 1:
            return Number(0), given[0], Number(1)
        return (*given, Number(1))[:3]

    # --- expressions ---

    def value(self, node: ast.expr) -> Expression:
        match node:
            case ast.Name(id=name):
                return Name(name)
            case ast.Constant(value=bool() | int() | float() | None as number):
                return Number(number)
            case ast.BinOp(left=left, op=op, right=right):
                return Infix(_sign(op), self.value(left), self.value(right))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return Infix(_sign(op), self.value(left), self.value(right))
            case ast.BoolOp(op=op, values=[left, *others]):
                found = self.value(left)
                for each in others:
                    found = Infix(_sign(op), found, self.value(each))
                return found
            case ast.UnaryOp(op=op, operand=operand):
                return Prefix(_sign(op), self.value(operand))
            case ast.IfExp(test=test, body=yes, orelse=no):
                return Choice(self.value(test), self.value(yes), self.value(no))
            case ast.Tuple(elts=items):
                return Tuple(tuple([self.value(item) for item in items]))
            case ast.Attribute(value=value, attr=name):
                return Attribute(self.value(value), name)
            case ast.Subscript(value=value, slice=index):
                return Load(self.value(value), self.value(index), subscript=True)
            case ast.Call(func=ast.Name() | ast.Attribute() as func, args=given, keywords=[]):
                if isinstance(func, ast.Name) and func.id in self.variables:
                    raise Unreadable("a function that is an argument")
                return Call(self.value(func), tuple([self.value(each) for each in given]))
        raise Unreadable(ast.dump(node))


def _name(node: ast.expr) -> str:
    if not isinstance(node, ast.Name):
        raise Unreadable("a target that is no variable")
    return node.id


def _sign(op: ast.AST) -> str:
    sign = _SIGNS.get(type(op))
    if sign is None:
        raise Unreadable(f"no {type(op).__name__} in the loop IR")
    return sign
