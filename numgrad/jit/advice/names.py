"""Which names statements give values to, which they read, and which of them are read later."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence

__all__ = [
    "called_name",
    "fresh",
    "leave",
    "leaves_of",
    "loaded_in",
    "outline",
    "own_parts",
    "reads_first",
    "stored_in",
    "surely_stored",
    "written_as_function",
]

_LEAVES = (ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_LOOPS = (ast.For, ast.While, ast.AsyncFor)


def called_name(node: ast.AST) -> str:
    """Return the name of the function that an expression calls; of others the empty text."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id
    return ""


def own_parts(block: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Yield all parts of a block, in order, but for what is in functions and classes in it."""
    for node in block:
        yield node
        if not isinstance(node, _SCOPES):
            yield from own_parts(list(ast.iter_child_nodes(node)))


def leave(block: Sequence[ast.stmt]) -> bool:
    """Whether a block may be left on the way."""
    return any(isinstance(node, _LEAVES) for node in own_parts(block))


def leaves_of(block: Sequence[ast.AST]) -> list[ast.AST]:
    """Return what leaves a block, without what only leaves a loop in it."""
    found: list[ast.AST] = []
    for node in block:
        if isinstance(node, _SCOPES):
            continue
        inner = leaves_of(list(ast.iter_child_nodes(node)))
        if isinstance(node, _LOOPS):
            inner = [each for each in inner if not isinstance(each, (ast.Break, ast.Continue))]
        found += [node, *inner] if isinstance(node, _LEAVES) else inner
    return found


def stored_in(block: Sequence[ast.AST]) -> list[str]:
    """Return the names that a block assigns to, or whose elements or attributes it does."""
    names: dict[str, None] = {}
    for node in own_parts(block):
        target = node
        if isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            while isinstance(target, (ast.Subscript, ast.Attribute)):
                target = target.value
        if isinstance(target, ast.Name) and (
            isinstance(target.ctx, ast.Store) or target is not node
        ):
            names[target.id] = None
    return list(names)


def loaded_in(block: Iterable[ast.AST]) -> set[str]:
    """Return the names that are read in a block, functions in it included."""
    found = set()
    for part in block:
        for node in ast.walk(part):
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                found.add(node.target.id)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found.add(node.id)
    return found


def surely_stored(name: str, block: Sequence[ast.stmt]) -> bool:
    """Whether a name has a value behind a block, whatever was before."""
    for statement in block:
        if isinstance(statement, ast.If):
            if surely_stored(name, statement.body) and surely_stored(name, statement.orelse):
                return True
        elif isinstance(statement, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
            return True  # what is behind the block is not reached
        elif isinstance(statement, ast.With):
            if surely_stored(name, statement.body):
                return True
        elif isinstance(statement, (*_LOOPS, ast.Try, *_SCOPES)):
            continue
        elif name in stored_in([statement]) and not _only_parts(name, statement):
            return True
    return False


def _only_parts(name: str, statement: ast.stmt) -> bool:
    """Whether a statement stores nothing but elements or attributes of what a name holds."""
    return not any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        for node in own_parts([statement])
    )


def reads_first(
    name: str, block: Sequence[ast.stmt], at_leave: Collection[str] | None = None
) -> bool | None:
    """Whether a block reads a name before it gives it a value; None if it does neither.

    Where that can't be told it reads it. `at_leave` are the names that are read behind a `break` or
    a `continue`, all if it is None.
    """
    for statement in block:
        found = _reads(name, statement, at_leave)
        if found is not None:
            return found
    return None


def _reads(name: str, statement: ast.stmt, at_leave: Collection[str] | None) -> bool | None:
    if isinstance(statement, (ast.Return, ast.Raise)):
        return name in loaded_in([statement])
    if isinstance(statement, (ast.Break, ast.Continue)):
        return at_leave is None or name in at_leave
    if isinstance(statement, ast.If):
        if name in loaded_in([statement.test]):
            return True
        if name in stored_in([statement.test]):
            return False
        found = [reads_first(name, b, at_leave) for b in (statement.body, statement.orelse)]
        return True if True in found else (False if None not in found else None)
    if isinstance(statement, _LOOPS):
        head = statement.test if isinstance(statement, ast.While) else statement.iter
        if name in loaded_in([head]):
            return True
        if isinstance(statement, ast.For) and name in stored_in([statement.target]):
            rest = name in loaded_in(statement.orelse)
            return rest or None
        found = [
            reads_first(name, statement.body, ()),
            reads_first(name, statement.orelse, at_leave),
        ]
        return True if True in found else None
    if isinstance(statement, ast.With):
        if name in loaded_in(statement.items):
            return True
        return reads_first(name, statement.body, at_leave)
    if name in loaded_in([statement]):
        return True
    if isinstance(statement, (ast.Try, *_SCOPES)):
        return None
    if name in stored_in([statement]):
        return _only_parts(name, statement)
    return None


def fresh(name: str, taken: set[str]) -> str:
    """Return a name that is not taken, and take it."""
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    taken.add(found)
    return found


def outline(name: str, parameters: Sequence[str], what: str) -> list[str]:
    """Return the lines of a function that is left to write."""
    return [f"def {name}({', '.join(parameters)}):", f"    ...  # {what}"]


def written_as_function(
    name: str, parameters: Sequence[str], block: Sequence[ast.stmt], results: Sequence[str]
) -> list[str]:
    """Return the lines of a function that does what a block does."""
    lines = [f"def {name}({', '.join(parameters)}):"]
    for statement in block:
        lines += [f"    {line}" for line in ast.unparse(statement).splitlines()]
    return [*lines, f"    return {', '.join(results)}"]
