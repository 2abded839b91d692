"""Make the results of two branches, or of a loop's turns, alike: numbers become tensors."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import numpy as np

from numgrad.jit.advice.names import stored_in, surely_stored
from numgrad.jit.advice.scene import NoAdvice, Scene

__all__ = ["alike", "is_number", "kept", "number_dtype", "number_text"]


def is_number(scene: Scene, node: ast.AST) -> bool:
    """Whether an expression is a number of Python's, or one that a loop carries as a tensor."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            if not scene.is_number(part.id):
                return False
        elif isinstance(part, ast.Constant):
            if not isinstance(part.value, (int, float, complex)):
                return False
        elif not isinstance(
            part,
            (
                ast.BinOp,
                ast.UnaryOp,
                ast.operator,
                ast.unaryop,
                ast.expr_context,
                ast.Compare,
                ast.cmpop,
            ),
        ):
            return False
    return True


def alike(scene: Scene, first: ast.expr, second: ast.expr) -> tuple[str, str]:
    """Return the results of two branches as expressions of one dtype."""
    if isinstance(first, (ast.Tuple, ast.List)) or isinstance(second, (ast.Tuple, ast.List)):
        return _of_sequences(scene, first, second)
    for each in (first, second):
        if isinstance(each, (ast.JoinedStr, ast.Dict, ast.Set)) or (
            isinstance(each, ast.Constant) and not isinstance(each.value, (int, float, complex))
        ):
            raise NoAdvice(f"`{ast.unparse(each)}` is no tensor, which is all that branches return")
    numbers = is_number(scene, first), is_number(scene, second)
    texts = ast.unparse(first), ast.unparse(second)
    if numbers == (True, True):
        dtypes = {number_dtype(scene, each) for each in (first, second)}
        wide = dtypes if len(dtypes) == 1 else {"float64"} if "float64" in dtypes else {"int64"}
        (dtype,) = wide
        if dtype == "bool" or (dtype == "int64" and len(dtypes) == 1):
            return texts
        return (
            number_text(scene, first, dtype),
            number_text(scene, second, dtype),
        )
    if True in numbers:
        tensor, number = (second, first) if numbers[0] else (first, second)
        text = _like(scene, tensor, number)
        return (text, texts[1]) if numbers[0] else (texts[0], text)
    return texts


def _of_sequences(scene: Scene, first: ast.expr, second: ast.expr) -> tuple[str, str]:
    kinds = (ast.Tuple, ast.List)
    if not isinstance(first, kinds) or not isinstance(second, kinds):
        return ast.unparse(first), ast.unparse(second)
    if type(first) is not type(second) or len(first.elts) != len(second.elts):
        raise NoAdvice("the branches return different numbers of values")
    pairs = [alike(scene, a, b) for a, b in zip(first.elts, second.elts, strict=True)]
    ends = "()" if isinstance(first, ast.Tuple) else "[]"
    comma = "," if len(pairs) == 1 and ends == "()" else ""
    one, other = (
        f"{ends[0]}{', '.join([pair[k] for pair in pairs])}{comma}{ends[1]}" for k in (0, 1)
    )
    return one, other


def number_dtype(scene: Scene, node: ast.expr) -> str:
    """Return the dtype that holds a number of Python's."""
    names = {name: scene.known[name] for name in _names_in(node)}
    kinds = {type(part.value) for part in ast.walk(node) if isinstance(part, ast.Constant)}
    kinds |= {type(value) for value in names.values()}
    divides = any(isinstance(part, (ast.Div, ast.Pow)) for part in ast.walk(node))
    if complex in kinds:
        return "complex128"
    if float in kinds or np.float64 in kinds or divides:
        return "float64"
    return "bool" if kinds == {bool} and isinstance(node, (ast.Constant, ast.Name)) else "int64"


def _names_in(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def number_text(scene: Scene, node: ast.expr, dtype: str) -> str:
    """Return a number as a tensor of a dtype."""
    package = scene.package
    return f"{package}.tensor({ast.unparse(node)}, dtype={package}.{dtype})"


def _like(scene: Scene, tensor: ast.expr, number: ast.expr) -> str:
    """Return a number as a tensor like another one."""
    package, text = scene.package, ast.unparse(tensor)
    if not scene.repeats(tensor):
        raise NoAdvice(
            f"`{ast.unparse(number)}` is a number of Python's, and `{text}` may be a tensor: write "
            "it as a tensor of that shape and dtype"
        )
    value = ast.unparse(number)
    constant = number.value if isinstance(number, ast.Constant) else None
    if isinstance(constant, (int, float)) and constant == constant // 1:
        return f"{package}.full_like({text}, {value})"
    return f"{package}.full_like({text}, {value}, dtype={package}.result_type({text}, {value}))"


def kept(scene: Scene, bodies: Sequence[list[ast.stmt]], changed: Sequence[str]) -> None:
    """Raise if a variable is a number in one branch, and a tensor of unknown dtype in another."""
    for name in changed:
        found = set()
        for block in bodies:
            values = [
                is_number(scene, node.value)
                for part in block
                for node in ast.walk(part)
                if isinstance(node, ast.Assign)
                and name in stored_in(node.targets)
                and isinstance(node.targets[0], ast.Name)
            ]
            found |= set(values)
            if not surely_stored(name, block):
                found.add(scene.is_number(name))
        if len(found) > 1:
            raise NoAdvice(
                f"`{name}` is a number of Python's on one way, and may be a tensor on another: "
                "make it a tensor of that shape and dtype before"
            )
