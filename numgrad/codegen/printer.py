"""The printer of the loop IR: functions become the source of a Python module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numgrad.codegen.loop_passes import walk
from numgrad.codegen.loops import (
    ONE,
    ZERO,
    Assign,
    Attribute,
    Blank,
    Break,
    Call,
    Choice,
    Do,
    Expression,
    For,
    Function,
    If,
    Infix,
    Interpreted,
    Load,
    Name,
    Number,
    Prefix,
    Raise,
    Return,
    Statement,
    Store,
    Tuple,
    Unpack,
    While,
)

__all__ = ["print_module", "spell"]

# How close signs bind, the closest last.
_LEVELS = [["|"], ["^"], ["&"], ["+", "-"], ["*", "/", "//", "%"]]
_BINDS = {sign: level for level, signs in enumerate(_LEVELS, 3) for sign in signs}
_CHOICE, _COMPARISON, _PREFIX, _ATOM = 1, 2, 8, 9
# Modules whose names are written with that of the module in front, and how it is imported.
_WHOLE = {
    "numpy": ("np", "import numpy as np"),
    "numgrad.math.scalar": ("scalar", "from numgrad.math import scalar"),
}
_POINTERS = "numgrad.codegen.llvm.pointers"
_WIDTH = 100


def print_module(functions: Sequence[Function], *, origins: bool = False, doc: str = "") -> str:
    """Return functions, and the imports of what they use, as the source of a module.

    Parameters
    ----------
    functions : sequence of Function
        Those that others call first.
    origins : bool
        Whether to write behind each line what it came from, where that is known.
    doc : str
        The docstring.
    """
    lines = [f'"""{doc}"""'] if doc else []
    imports = _imports(functions)
    lines += ["", *imports] if doc and imports else imports
    for function in functions:
        lines += ["", ""]
        if function.decorator is not None:
            lines.append(f"@{spell(function.decorator)}")
        lines.append(f"def {function.name}({', '.join(function.parameters)}):")
        _print(function.body, "    ", lines, origins)
    return "\n".join(lines) + "\n"


def _imports(functions: Sequence[Function]) -> list[str]:
    """Return the lines that import what functions use."""
    wanted: dict[str, set[str]] = {}
    for node in walk(functions):
        kind = type(node)
        if kind is Name and node.module:
            wanted.setdefault(node.module, set()).add(node.id)
        elif kind is Load and not node.subscript:
            wanted.setdefault(_POINTERS, set()).add("element")
        elif kind is Store and not node.subscript:
            wanted.setdefault(_POINTERS, set()).add("store")
        elif kind is Interpreted:
            wanted.setdefault("numba", set()).add("objmode")
        elif kind is Function and node.decorator is not None:
            wanted.setdefault(node.decorator.module, set()).add(node.decorator.id)
    lines = []
    for module, ids in sorted(wanted.items(), key=lambda item: (item[0] != "numpy", item[0])):
        if module in _WHOLE:
            lines.append(_WHOLE[module][1])
            continue
        line = f"from {module} import {', '.join(sorted(ids))}"
        if len(line) > _WIDTH:
            line = "\n".join([f"from {module} import (", *(f"    {i}," for i in sorted(ids)), ")"])
        lines.append(line)
    return lines


def _print(body: Sequence[Statement], margin: str, lines: list[str], origins: bool) -> None:
    """Write statements."""
    inside = margin + "    "
    for line in body:
        kind = type(line)
        if kind is Blank:
            lines.append("")
            continue
        lines.append(margin + _head(line))
        if origins and kind in (Assign, Store, Do) and line.origin:  # type: ignore[union-attr]
            lines[-1] += f"  # {line.origin}"  # type: ignore[union-attr]
        if isinstance(line, For | While | Interpreted):
            _print(line.body, inside, lines, origins)
        elif isinstance(line, If):
            _print(line.then, inside, lines, origins)
            if line.otherwise:
                lines.append(f"{margin}else:")
                _print(line.otherwise, inside, lines, origins)


def _head(line: Statement) -> str:
    """Return a statement as text; of one with others in it, its first line."""
    match line:
        case Assign(target, value):
            return f"{target} = {spell(value)}"
        case Unpack(targets, value):
            return f"{', '.join(targets)} = {spell(value)}"
        case Store(array, index, value, _, subscript):
            if subscript:
                return f"{spell(array)}[{spell(index)}] = {spell(value)}"
            return f"store({spell(array)}, {spell(index)}, {spell(value)})"
        case Do(value):
            return spell(value)
        case For(index, first, last, _, step):
            bounds = [first, last, step]
            if step == ONE:
                bounds = [last] if first == ZERO else [first, last]
            return f"for {index} in range({_listed(bounds)}):"
        case While(condition, _):
            return f"while {spell(condition)}:"
        case If(condition, _, _):
            return f"if {spell(condition)}:"
        case Interpreted(types, _):
            return f"with objmode({', '.join(f'{name}={kind!r}' for name, kind in types)}):"
        case Raise(error, message):
            return f"raise {error}({message!r})"
        case Return(value):
            return f"return {spell(value)}"
        case Break():
            return "break"
    raise TypeError(f"no statement: {line!r}")


def _listed(items: Sequence[Expression]) -> str:
    return ", ".join([spell(item) for item in items])


def spell(node: Expression, around: int = 0) -> str:
    """Return an expression as text, in parentheses if what is `around` it binds closer."""
    kind = type(node)
    if kind is Name:
        name: Any = node
        whole = _WHOLE.get(name.module)
        return name.id if whole is None else f"{whole[0]}.{name.id}"
    text, binds = _spelled(node)
    return f"({text})" if binds < around else text


def _spelled(node: Expression) -> tuple[str, int]:
    """Return an expression as text, and how close it binds."""
    match node:
        case Load(array, index, subscript):
            if subscript:
                return f"{spell(array, _ATOM)}[{_subscript(index)}]", _ATOM
            return f"element({spell(array)}, {spell(index)})", _ATOM
        case Infix(sign, left, right):
            binds = _BINDS.get(sign, _COMPARISON)
            first = spell(left, binds + (binds == _COMPARISON))
            return f"{first} {sign} {spell(right, binds + 1)}", binds
        case Call(function, arguments):
            return f"{spell(function, _ATOM)}({_listed(arguments)})", _ATOM
        case Number(value):
            text = repr(value)
            return text, _PREFIX if text.startswith("-") else _ATOM
        case Prefix(sign, operand):
            return f"{sign}{spell(operand, _PREFIX)}", _PREFIX
        case Choice(condition, yes, no):
            condition_ = spell(condition, _CHOICE + 1)
            return f"{spell(yes, _CHOICE + 1)} if {condition_} else {spell(no, _CHOICE)}", _CHOICE
        case Attribute(value, name):
            return f"{spell(value, _ATOM)}.{name}", _ATOM
        case Tuple(items):
            return f"({_listed(items)}{',' if len(items) == 1 else ''})", _ATOM
    raise TypeError(f"no expression: {node!r}")


def _subscript(index: Expression) -> str:
    """Return a subscript as text; one of several dims without parentheses."""
    return _listed(index.items) if isinstance(index, Tuple) else spell(index)
