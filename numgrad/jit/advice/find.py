"""Find what a frame is at: the branch or loop, or the expression, that asks for a number."""

from __future__ import annotations

import ast
import linecache
from types import FrameType
from typing import Any, NamedTuple

from numgrad.jit.advice.names import called_name

__all__ = ["Block", "Found", "find", "is_tested"]

Place = tuple[int, int, int, int]  # line, last line, column, last column
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SCOPES = (*_FUNCTIONS, ast.ClassDef)
_CONVERSIONS = ("bool", "float", "int", "abs", "complex")
_ASKING_CALLS = ("max", "min", "sorted", "any", "all")


class Block(NamedTuple):
    """Statements one after another, the part of what they are, and where in it we are."""

    parent: Any
    field: str
    statements: list[ast.stmt]
    position: int


class Found(NamedTuple):
    """What asks, and what is around it."""

    construct: Any  # a statement or an expression
    asked: ast.AST  # the part of it that is asked for a number
    blocks: list[Block]  # from the function's own to the innermost
    function: ast.AST
    tree: ast.AST


def find(frame: FrameType) -> Found | None:
    """Return what a frame is at; None if that can't be told, or asks for nothing of its own."""
    source = "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))
    try:
        tree = ast.parse(source)
    except SyntaxError:  # of a notebook's cell with magic commands, say
        return None
    path = _path_to(tree, _place_of(frame))
    if len(path) < 2:
        return None
    construct = _construct(path)
    if construct is None:
        return None
    del path[_index(path, construct) + 1 :]
    start = max((k for k, node in enumerate(path[:-1]) if isinstance(node, _SCOPES)), default=0)
    blocks = []
    for node, inner in zip(path[start:], path[start + 1 :], strict=False):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list) and any(each is inner for each in block):
                blocks.append(Block(node, field, block, _index(block, inner)))
    return Found(construct, _asked_of(tree, frame), blocks, path[start], tree)


def _index(nodes: Any, wanted: ast.AST) -> int:
    return next(k for k, node in enumerate(nodes) if node is wanted)


def _asked_of(tree: ast.AST, frame: FrameType) -> ast.AST:
    node = _path_to(tree, _place_of(frame))[-1]
    while isinstance(node, (ast.If, ast.While, ast.IfExp, ast.Assert)):
        node = node.test  # where a name or a call is tested, the place is the whole
    while isinstance(node, (ast.UnaryOp, ast.NamedExpr)):
        node = node.operand if isinstance(node, ast.UnaryOp) else node.value
    return node


def _place_of(frame: FrameType) -> Place:
    """Return what part of the source a frame runs."""
    line, last, column, end = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    if line is None or last is None or column is None or end is None:
        return frame.f_lineno, frame.f_lineno, -1, -1
    return line, last, column, end


def _path_to(tree: ast.AST, place: Place) -> list[ast.AST]:
    """Return the nodes around a place, from the outermost to the innermost."""
    path = [tree]
    while True:
        inner = next((node for node in _parts(path[-1]) if _contains(node, place)), None)
        if inner is None:
            return path
        path.append(inner)


def _parts(node: ast.AST) -> list[ast.AST]:
    """Return the parts that have places; those of what has none in the place of that."""
    found: list[ast.AST] = []
    for part in ast.iter_child_nodes(node):
        found += [part] if hasattr(part, "lineno") else _parts(part)
    return found


def _contains(node: Any, place: Place) -> bool:
    line, last, column, end = place
    if column < 0:
        return bool(node.lineno <= line <= node.end_lineno)
    inside = (node.lineno, node.col_offset) <= (line, column)
    return inside and (last, end) <= (node.end_lineno, node.end_col_offset)


def _construct(path: list[ast.AST]) -> Any:
    """Return what is to be written anew, of the nodes around what asks."""
    node = path[-1]
    if isinstance(node, (ast.If, ast.While, ast.IfExp, ast.Assert)):
        return node
    if called_name(node) in _ASKING_CALLS:
        return node
    wanted: Any = None  # the outermost of `and`, `or`, `not` and chains so far
    for outer, inner in zip(path[-2::-1], path[:0:-1], strict=False):
        if isinstance(inner, (ast.BoolOp, ast.Compare)) or _is_not(inner):
            wanted = inner
        if is_tested(outer, inner):
            return outer
        if isinstance(outer, ast.For) and inner is outer.iter:
            return outer
        if isinstance(outer, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            is_filter = any(inner in each.ifs for each in outer.generators)
            return outer if is_filter else wanted
        if not _hands_on(outer, inner):
            return wanted
    return wanted


def is_tested(outer: Any, inner: ast.AST) -> bool:
    """Whether a part is the test of what it is a part of."""
    tests = (ast.If, ast.While, ast.IfExp, ast.Assert)
    return isinstance(outer, tests) and inner is outer.test


def _is_not(node: ast.AST) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _hands_on(outer: Any, inner: ast.AST) -> bool:
    """Whether what is made of a number may be written with tensors, up to a test."""
    if isinstance(outer, ast.Call):
        function = outer.func
        if function is inner or (isinstance(function, ast.Attribute) and function.value is inner):
            return True
        return isinstance(function, ast.Name) and function.id in (*_CONVERSIONS, "range")
    kinds = (ast.BoolOp, ast.UnaryOp, ast.Compare, ast.BinOp, ast.NamedExpr, ast.Attribute)
    return isinstance(outer, kinds)
