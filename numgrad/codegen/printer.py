"""The printer of the loop IR: functions become the source of a Python module."""

from __future__ import annotations

from collections.abc import Sequence

from numgrad.codegen.loops import (
    ONE,
    SIGNS,
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

__all__ = ["print_expression", "print_module"]

_CHOICE, _COMPARISON, _PREFIX, _ATOM = 1, 2, 9, 10
# Modules whose names are written with that of the module in front, and how it is imported.
_WHOLE = {
    "numpy": ("np", "import numpy as np"),
    "numgrad.math.scalar": ("scalar", "from numgrad.math import scalar"),
}
_ELEMENT = Name("element", "numgrad.codegen.llvm.pointers")
_STORE = Name("store", "numgrad.codegen.llvm.pointers")
_OBJMODE = Name("objmode", "numba")
_LINE_LENGTH = 100
# What functions are compiled by: division by zero raises nothing. Without the GIL, but for those
# that call the interpreter: of these Numba warns.
_NJIT, _OPTIONS = Name("njit", "numba"), 'error_model="numpy"'


def print_module(functions: Sequence[Function], *, origins: bool = False, doc: str = "") -> str:
    """Return functions, and the imports of what they use, as the source of a module.

    It runs as it stands, wherever it is pasted: functions are under ``@njit``.

    Parameters
    ----------
    functions : sequence of Function
        Those that others call first.
    origins : bool
        Whether to write behind each line what it came from, where that is known.
    doc : str
        The docstring.
    """
    printer = _Printer(origins)
    for function in functions:
        printer.function(function)
    head = [f'"""{doc}"""'] if doc else []
    imports = printer.imports()
    head += ["", *imports] if doc and imports else imports
    return "\n".join([*head, *printer.lines]) + "\n"


def print_expression(expression: Expression) -> str:
    """Return an expression as text."""
    return _Printer().text(expression)


class _Printer:
    """Writes lines, and notes which names are from other modules."""

    def __init__(self, origins: bool = False) -> None:
        self.origins = origins
        self.lines: list[str] = []
        self.wanted: dict[str, set[str]] = {}  # names by module

    def function(self, function: Function) -> None:
        """Write a function."""
        self.lines += ["", ""]
        calls_back = any(isinstance(line, Interpreted) for line in function.body)
        options = _OPTIONS + ", nogil=True" * (not calls_back)
        self.lines.append(f"@{self._name(_NJIT)}({options})")
        self.lines.append(f"def {function.name}({', '.join(function.parameters)}):")
        self._body(function.body, "    ")

    def imports(self) -> list[str]:
        """Return the lines that import what was used."""
        lines = []
        for module, ids in sorted(
            self.wanted.items(), key=lambda item: (item[0] != "numpy", item[0])
        ):
            if module in _WHOLE:
                lines.append(_WHOLE[module][1])
                continue
            line = f"from {module} import {', '.join(sorted(ids))}"
            if len(line) <= _LINE_LENGTH:
                lines.append(line)
            else:
                lines += [f"from {module} import (", *(f"    {i}," for i in sorted(ids)), ")"]
        return lines

    def _name(self, name: Name) -> str:
        """Return a name as text; note which module it is from."""
        if not name.module:
            return name.id
        self.wanted.setdefault(name.module, set()).add(name.id)
        whole = _WHOLE.get(name.module)
        return name.id if whole is None else f"{whole[0]}.{name.id}"

    # --- statements ---

    def _body(self, body: Sequence[Statement], margin: str) -> None:
        inside = margin + "    "
        for line in body:
            if type(line) is Blank:
                self.lines.append("")
                continue
            text = margin + self._head(line)
            if self.origins and isinstance(line, Assign | Store | Do) and line.origin:
                text += f"  # {line.origin}"
            self.lines.append(text)
            if isinstance(line, For | While | Interpreted):
                self._body(line.body, inside)
            elif isinstance(line, If):
                self._body(line.then, inside)
                if line.otherwise:
                    self.lines.append(f"{margin}else:")
                    self._body(line.otherwise, inside)

    def _head(self, line: Statement) -> str:
        """Return a statement as text; of one with others in it, its first line."""
        match line:
            case Assign(target, value):
                return f"{target} = {self.text(value)}"
            case Store(array, index, value, _, True):
                return f"{self._item(array, index)} = {self.text(value)}"
            case Store(array, index, value):
                return f"{self._name(_STORE)}({self._listed((array, index, value))})"
            case Do(value):
                return self.text(value)
            case For(index, first, last, _, step):
                bounds = [first, last, step]
                if step == ONE:
                    bounds = [last] if first == ZERO else [first, last]
                return f"for {index} in range({self._listed(bounds)}):"
            case If(condition, _, _):
                return f"if {self.text(condition)}:"
            case While(condition, _):
                return f"while {self.text(condition)}:"
            case Unpack(targets, value):
                comma = "," if len(targets) == 1 else ""
                return f"{', '.join(targets)}{comma} = {self.text(value)}"
            case Interpreted(types, _):
                declared = ", ".join([f"{name}={kind!r}" for name, kind in types])
                return f"with {self._name(_OBJMODE)}({declared}):"
            case Raise(error, message):
                return f"raise {error}({message!r})"
            case Return(value):
                return f"return {self.text(value)}"
            case Break():
                return "break"
        raise TypeError(f"no statement: {line!r}")

    # --- expressions ---

    def text(self, node: Expression, around: int = 0) -> str:
        """Return an expression as text, in parentheses if what is `around` it binds closer."""
        if type(node) is Name:
            return self._name(node)
        text, binds = self._spelled(node)
        return f"({text})" if binds < around else text

    def _spelled(self, node: Expression) -> tuple[str, int]:
        """Return an expression as text, and how close it binds."""
        match node:
            case Load(array, index, True):
                return self._item(array, index), _ATOM
            case Load(array, index):
                return f"{self._name(_ELEMENT)}({self._listed((array, index))})", _ATOM
            case Infix(sign, left, right):
                binds = SIGNS[sign].binds if sign in SIGNS else _COMPARISON
                first = self.text(left, binds + (binds == _COMPARISON))
                return f"{first} {sign} {self.text(right, binds + 1)}", binds
            case Call(function, arguments):
                return f"{self.text(function, _ATOM)}({self._listed(arguments)})", _ATOM
            case Number(value):
                text = repr(value)
                return text, _PREFIX if text.startswith("-") else _ATOM
            case Prefix(sign, operand):
                return f"{sign}{self.text(operand, _PREFIX)}", _PREFIX
            case Choice(condition, yes, no):
                either = f"{self.text(yes, _CHOICE + 1)} if {self.text(condition, _CHOICE + 1)}"
                return f"{either} else {self.text(no, _CHOICE)}", _CHOICE
            case Attribute(value, name):
                # Of a number the point would be read as part of it.
                around = _ATOM + (type(value) is Number)
                return f"{self.text(value, around)}.{name}", _ATOM
            case Tuple(items):
                return f"({self._listed(items)}{',' if len(items) == 1 else ''})", _ATOM
        raise TypeError(f"no expression: {node!r}")

    def _listed(self, items: Sequence[Expression]) -> str:
        return ", ".join([self.text(item) for item in items])

    def _item(self, array: Expression, index: Expression) -> str:
        """Return a subscript as text; one of several dims without parentheses."""
        dims = self._listed(index.items) if isinstance(index, Tuple) else self.text(index)
        return f"{self.text(array, _ATOM)}[{dims}]"
