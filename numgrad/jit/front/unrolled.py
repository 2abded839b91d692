"""Say when a traced function is thousands of operations, and which loop to write instead.

A Python loop whose turns differ is unrolled, and the compiler takes long for that. The line that
recorded most of it is named, one in a loop rather than one that such a line calls.
"""

from __future__ import annotations

import ast
import linecache
import os
import textwrap
import warnings
from collections import Counter
from collections.abc import Iterable

from numgrad.jit.advice.names import leave, outline, stored_in, written_as_function
from numgrad.jit.ir.graph import Graph, Value

__all__ = ["UnrolledWarning", "warn_of_unrolled"]

TOO_MANY = 2_000  # operations, which take half a minute to compile
WRITTEN_LINES = 9  # of a loop's body that are written out

_NO_OPERATIONS = frozenset(("input", "array", "constant", "view", "reshape", "item"))

_told: set[str] = set()  # lines that were named


class UnrolledWarning(UserWarning):
    """A traced function is thousands of operations, which takes long to compile."""

    __module__ = "numgrad"


def warn_of_unrolled(graph: Graph, files: Iterable[str], caller: str) -> None:
    """Warn if there are thousands of operations in a graph, once for each line.

    Parameters
    ----------
    graph : Graph
        As it is compiled.
    files : iterable of str
        Those of the lines that recorded it.
    caller : str
        The line that called the traced function, as ``file:line``.
    """
    values = _operations(graph)
    if len(values) <= TOO_MANY:
        return
    lines = Counter(value.origin.partition(" at ")[2] for value in values)
    del lines[""]
    paths = {os.path.basename(file): file for file in files}
    ranked = [line for line, _ in lines.most_common() if line != caller] or [caller]
    loops = {line: _loop_around(paths, line) for line in ranked}
    line = next((each for each in ranked if loops[each] is not None), ranked[0])
    if line in _told:
        return
    _told.add(line)
    name, _, number = line.rpartition(":")
    count = lines[line]
    warnings.warn_explicit(
        f"jit: {len(values)} operations are left to compile one by one, {count} of them recorded "
        f"here, which takes minutes. The turns of a Python loop become one loop if they record the "
        f"same operations; write what differs with where, or the loop as a function:\n"
        f"{_advice(loops[line])}",
        UnrolledWarning,
        paths.get(name, name),
        int(number or 0),
    )


def _operations(graph: Graph) -> list[Value]:
    """Return all that is compiled, in the bodies of loops too."""
    found = []
    for value in graph.values():
        body = getattr(value.attributes.get("primitive"), "graph", None)
        if body is not None:
            found += _operations(body)
        elif value.operation not in _NO_OPERATIONS:
            found.append(value)
    return found


class _Loop:
    """A loop of the user's, with what is around it."""

    def __init__(self, statement: ast.For | ast.While, function: ast.AST, tree: ast.AST) -> None:
        self.statement, self.function, self.tree = statement, function, tree


def _loop_around(paths: dict[str, str], line: str) -> _Loop | None:
    """Return the innermost loop that a line is in; None if it is in none."""
    name, _, number = line.rpartition(":")
    if name not in paths:
        return None
    try:
        tree = ast.parse("".join(linecache.getlines(paths[name])))
    except SyntaxError:  # of a notebook's cell with magic commands, say
        return None
    found: _Loop | None = None
    function: ast.AST = tree
    at = int(number)
    for node in ast.walk(tree):  # from the outermost on
        if not isinstance(node, ast.stmt) or not node.lineno <= at <= (node.end_lineno or 0):
            continue
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function, found = node, None
        elif isinstance(node, (ast.For, ast.While)) and at >= node.body[0].lineno:
            found = _Loop(node, function, tree)
    return found


def _advice(loop: _Loop | None) -> str:
    """Return a loop as a call of `scan`, or how one is written."""
    func = "numgrad.func"
    if loop is None or not isinstance(loop.statement, ast.For):
        return textwrap.indent(
            f"def step(carry, x):\n    ...  # one turn\n    return carry, y\n"
            f"carry, ys = {func}.scan(step, carry, xs)",
            "    ",
        )
    func = f"{_package_in(loop.tree)}.func"
    statement, body = loop.statement, loop.statement.body
    target, source = ast.unparse(statement.target), _rows_of(statement.iter)
    own = stored_in([ast.Expr(statement.target)])
    before = _known_before(loop)
    carried = [name for name in stored_in(body) if name in before and name not in own]
    names = ", ".join(carried) or "carry"
    carry = names if len(carried) < 2 else f"({names})"
    given = ["carry" if len(carried) > 1 else carry, target if len(own) < 2 else "each"]
    step = written_as_function("step", given, body, [carry, "None"])
    if not carried or len(step) > WRITTEN_LINES or leave(body):
        step = [*outline("step", given, "one turn"), f"    return {carry}, None"]
    else:
        if len(own) > 1:
            step.insert(1, f"    {target.strip('()')} = each")
        if len(carried) > 1:
            step.insert(1, f"    {names} = carry")
    if source.startswith("range("):
        source = f"{_package_in(loop.tree)}.a{source}"
    step.append(f"{carry}, _ = {func}.scan(step, {carry}, {source})")
    return textwrap.indent("\n".join(step), "    ")


def _rows_of(source: ast.expr) -> str:
    """Return what a loop goes through as what a scan does."""
    if isinstance(source, ast.Call) and ast.unparse(source.func) == "zip":
        return f"({', '.join(map(ast.unparse, source.args))})"
    return ast.unparse(source)


def _known_before(loop: _Loop) -> set[str]:
    """Return the names that there are in front of a loop, in its function."""
    names = set()
    for node in ast.walk(loop.function):
        if isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name) and node.lineno < loop.statement.lineno:
            names.add(node.id)
    return names


def _package_in(tree: ast.AST) -> str:
    """Return what a file calls this package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                if each.name == "numgrad":
                    return each.asname or each.name
    return "numgrad"
