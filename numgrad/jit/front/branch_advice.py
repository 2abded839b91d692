"""What to write in place of a Python branch or loop on a traced value, with the user's names.

Such a statement asks a traced tensor for its truth, or for the number of rounds. From the frame in
which that happens the statement is found in the source, and written again as a call of
`numgrad.func.cond`, `numgrad.func.while_loop` or `numgrad.func.fori_loop`.
"""

from __future__ import annotations

import ast
import copy
import linecache
import sys
import textwrap
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any, NamedTuple

__all__ = ["advice_for", "leave", "outline", "stored_in", "written_as_function"]

Place = tuple[int, int, int, int]  # line, last line, column, last column
_LEAVES = (ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


class _Found(NamedTuple):
    """A branch or loop, the statement that follows it, and the loop around it."""

    statement: Any
    following: ast.stmt | None
    loop: ast.While | None


def advice_for(frame: FrameType | None, asked: str) -> str:
    """Return what to write in place of the branch or loop that a frame is at.

    Parameters
    ----------
    frame : frame or None
    asked : {"a truth value", "a Python number"}
        What it asks a traced tensor for: only rounds of a loop are numbers.

    Returns
    -------
    str
        Code, indented; nothing if the frame is at no such statement, or its source is not known.
    """
    if frame is None:
        return ""
    source = "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))
    try:
        tree = ast.parse(source)
    except SyntaxError:  # of a notebook's cell with magic commands, say
        return ""
    found = _statement_at(tree, _place_of(frame))
    if found is None:
        return ""
    statement, following, loop = found
    if isinstance(statement, ast.For) != (asked == "a Python number"):
        return ""
    func = f"{_name_of_package(frame)}.func"
    if isinstance(statement, ast.IfExp):
        parts = ast.unparse(statement.body), ast.unparse(statement.orelse)
        test = _test(statement.test, frame.f_locals)
        lines = [_cond(func, test, *[f"lambda: {part}" for part in parts])]
    elif isinstance(statement, ast.While):
        lines = _loop(func, statement, frame.f_locals)
    elif isinstance(statement, ast.For):
        lines = _counted_loop(func, statement, frame.f_locals)
    elif loop is not None and any(isinstance(node, ast.Break) for node in _own(statement.body)):
        lines = _broken_loop(func, loop, statement, frame.f_locals)
    elif any(isinstance(node, ast.Raise) for node in _own([statement])):
        return ""  # what raises is recorded in neither branch
    else:
        lines = _branch(func, statement, following, frame.f_locals)
    return textwrap.indent("\n".join(lines), "    ")


def _place_of(frame: FrameType) -> Place:
    """Return what part of the source a frame runs."""
    positions = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    if None in positions:
        return frame.f_lineno, frame.f_lineno, -1, -1
    return positions  # type: ignore[return-value]


def _name_of_package(frame: FrameType) -> str:
    """Return what the user calls this package."""
    package = sys.modules["numgrad"]
    for names in (frame.f_globals, frame.f_locals):
        for name, value in names.items():
            if value is package:
                return name
    return "numgrad"


def _statement_at(tree: ast.AST, place: Place) -> _Found | None:
    """Return the innermost branch or loop whose test contains a place."""
    found: _Found | None = None
    loop: ast.While | None = None
    for node in ast.walk(tree):  # from the outermost on
        if isinstance(node, ast.While) and _spans(node, place):
            loop = node
        if isinstance(node, ast.IfExp) and _asks_at(node, place):
            found = _Found(node, None, None)
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if not isinstance(block, list):
                continue
            for number, each in enumerate(block):
                if isinstance(each, ast.For):
                    is_it = _is_range(each.iter) and _contains(each.iter, place)
                else:
                    is_it = isinstance(each, (ast.If, ast.While)) and _asks_at(each, place)
                if is_it:
                    following = block[number + 1] if number + 1 < len(block) else None
                    found = _Found(each, following, loop)
    return found


def _spans(node: ast.stmt, place: Place) -> bool:
    return node.lineno <= place[0] and place[1] <= (node.end_lineno or node.lineno)


def _asks_at(node: ast.If | ast.While | ast.IfExp, place: Place) -> bool:
    """Whether the test of a branch or loop contains a place.

    Where a name, a call or an attribute is tested, the place is the whole of it.
    """
    whole = node.lineno, node.end_lineno, node.col_offset, node.end_col_offset
    return place == whole or _contains(node.test, place)


def _contains(node: ast.expr, place: Place) -> bool:
    line, last, column, end = place
    first_line, last_line = node.lineno, node.end_lineno or node.lineno
    if column < 0:
        return first_line <= line <= last_line
    inside = (first_line, node.col_offset) <= (line, column)
    return inside and (last, end) <= (last_line, node.end_col_offset or 0)


class _Elementwise(ast.NodeTransformer):
    """Writes ``and``, ``or``, ``not`` and chains of comparisons with operators of tensors."""

    def __init__(self, known: Any) -> None:
        self._known = known

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        operator = ast.BitAnd() if isinstance(node.op, ast.And) else ast.BitOr()
        return _joined([self.visit(value) for value in node.values], operator)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        operand = self.visit(node.operand)
        if isinstance(operand, ast.Name) and isinstance(self._known.get(operand.id), int):
            return ast.UnaryOp(node.op, operand)  # a truth value of Python's
        return ast.UnaryOp(ast.Invert() if isinstance(node.op, ast.Not) else node.op, operand)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        sides = [node.left, *node.comparators]
        pairs = zip(sides, node.ops, sides[1:], strict=False)
        return _joined([ast.Compare(a, [op], [b]) for a, op, b in pairs], ast.BitAnd())


def _joined(parts: list[ast.expr], operator: ast.operator) -> ast.expr:
    whole = parts[0]
    for part in parts[1:]:
        whole = ast.BinOp(whole, operator, part)
    return whole


def _test(test: ast.expr, known: Any) -> str:
    """Return a test as an expression that is a tensor; `known` are the frame's variables."""
    return ast.unparse(_Elementwise(known).visit(copy.deepcopy(test)))


def _cond(func: str, test: str, *rest: str) -> str:
    return f"{func}.cond({', '.join([test, *rest])})"


def _branch(func: str, statement: ast.If, following: ast.stmt | None, known: Any) -> list[str]:
    """Return an `if` as a call of `cond`."""
    test = _test(statement.test, known)
    body, other = statement.body, statement.orelse
    if not other and isinstance(body[-1], ast.Return) and isinstance(following, ast.Return):
        other = [following]
    values = _values(body, ast.Return), _values(other, ast.Return)
    if None not in values:
        return [f"return {_cond(func, test, *[f'lambda: {value}' for value in values])}"]
    changed = [
        name
        for name in stored_in([*body, *other])
        if name in known or (name in stored_in(body) and name in stored_in(other))
    ]
    if not changed or leave([*body, *other]):
        return [
            *outline("true_fn", [], "what to do if it holds, up to a return"),
            *outline("false_fn", [], "and if it does not"),
            _cond(func, test, "true_fn", "false_fn"),
        ]
    assigned = [_values(block, ast.Assign) for block in (body, other)]
    if len(changed) == 1 and assigned[0] and (assigned[1] or not other):
        parts = [f"lambda: {value or changed[0]}" for value in assigned]
        return [f"{changed[0]} = {_cond(func, test, *parts)}"]
    given = [name for name in changed if name in known]
    lines: list[str] = []
    for name, block in (("true_fn", body), ("false_fn", other)):
        lines += written_as_function(name, given, block, changed)
    results = ", ".join(changed)
    return [*lines, f"{results} = {_cond(func, test, 'true_fn', 'false_fn', *given)}"]


def _loop(func: str, statement: ast.While, known: Any) -> list[str]:
    """Return a `while` as a call of `while_loop`."""
    carried = [name for name in stored_in(statement.body) if name in known]
    named = [node for node in ast.walk(statement.test) if isinstance(node, ast.NamedExpr)]
    body = [*[ast.Assign([each.target], each.value, lineno=0) for each in named], *statement.body]
    step = written_as_function("body_fn", carried, body, carried)
    if not carried or leave(statement.body):
        step = outline("body_fn", carried, "one step; what would leave the loop is its condition")
    return [*step, _while_loop(func, carried, _test(statement.test, known))]


def _is_range(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    return node.func.id == "range" and 1 <= len(node.args) <= 2


def _counted_loop(func: str, statement: ast.For, known: Any) -> list[str]:
    """Return a `for` over a range as a call of `fori_loop`."""
    counter = ast.unparse(statement.target)
    carried = [name for name in stored_in(statement.body) if name in known and name != counter]
    bounds = ", ".join([_tensor_in(bound) for bound in statement.iter.args])  # type: ignore[attr-defined]
    if "," not in bounds:
        bounds = f"0, {bounds}"
    names = ", ".join(carried) or "..."
    carry = names if len(carried) == 1 else f"({names})"
    if not carried or leave(statement.body):
        step = outline("body_fn", [counter, "carry"], "one step; what leaves the loop is no part")
    else:
        single = len(carried) == 1
        step = written_as_function(
            "body_fn", [counter, names if single else "carry"], statement.body, carried
        )
        if not single:
            step.insert(1, f"    {names} = carry")
    return [*step, f"{names} = {func}.fori_loop({bounds}, body_fn, {carry})"]


def _tensor_in(node: ast.expr) -> str:
    """Return the tensor whose number is asked for by ``int(n)`` or ``n.item()``."""
    if isinstance(node, ast.Call):
        function = node.func
        if isinstance(function, ast.Name) and function.id == "int" and len(node.args) == 1:
            return ast.unparse(node.args[0])
        if isinstance(function, ast.Attribute) and function.attr == "item" and not node.args:
            return ast.unparse(function.value)
    return ast.unparse(node)


def _broken_loop(func: str, loop: ast.While, statement: ast.If, known: Any) -> list[str]:
    """Return a `while` that breaks at a test as the outline of a `while_loop`."""
    carried = [name for name in stored_in(loop.body) if name in known]
    stop: ast.expr = ast.UnaryOp(ast.Not(), statement.test)
    if not isinstance(loop.test, ast.Constant):
        stop = ast.BoolOp(ast.And(), [loop.test, stop])
    lines = outline("body_fn", carried, "one step, without the break")
    return [*lines, _while_loop(func, carried, _test(stop, known))]


def _while_loop(func: str, carried: list[str], test: str) -> str:
    names = ", ".join(carried) or "..."
    carry = names if len(carried) == 1 else f"({names})"
    return f"{names} = {func}.while_loop(lambda {names}: {test}, body_fn, {carry})"


def outline(name: str, parameters: Sequence[str], what: str) -> list[str]:
    """Return the lines of a function that is left to write."""
    return [f"def {name}({', '.join(parameters)}):", f"    ...  # {what}"]


def written_as_function(
    name: str, parameters: Sequence[str], block: Sequence[ast.stmt], results: Sequence[str]
) -> list[str]:
    """Return the lines of a function that does what a block does."""
    lines = [f"def {name}({', '.join(parameters)}):"]
    for statement in block:
        lines += textwrap.indent(ast.unparse(statement), "    ").splitlines()
    return [*lines, f"    return {', '.join(results)}"]


def _values(block: Sequence[ast.stmt], kind: type[ast.stmt]) -> str | None:
    """Return what a block returns or assigns to a name, if it does nothing but that."""
    if len(block) != 1 or not isinstance(block[0], kind):
        return None
    (only,) = block
    if isinstance(only, ast.Assign) and not (
        len(only.targets) == 1 and isinstance(only.targets[0], ast.Name)
    ):
        return None
    value: ast.expr | None = only.value  # type: ignore[attr-defined]
    return None if value is None else ast.unparse(value)


def stored_in(block: Sequence[ast.stmt]) -> list[str]:
    """Return the names that a block assigns to, or whose elements or attributes it does."""
    names: dict[str, None] = {}
    for node in _own(block):
        target = node
        while isinstance(target, (ast.Subscript, ast.Attribute)) and isinstance(
            node, (ast.Subscript, ast.Attribute)
        ):
            if not isinstance(node.ctx, ast.Store):
                break
            target = target.value
        if isinstance(target, ast.Name) and (
            isinstance(target.ctx, ast.Store) or target is not node
        ):
            names[target.id] = None
    return list(names)


def leave(block: Sequence[ast.stmt]) -> bool:
    """Whether a block may be left on the way."""
    return any(isinstance(node, _LEAVES) for node in _own(block))


def _own(block: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Yield all parts of a block, in order, but for what is in functions and classes in it."""
    for node in block:
        yield node
        if not isinstance(node, _SCOPES):
            yield from _own(list(ast.iter_child_nodes(node)))
