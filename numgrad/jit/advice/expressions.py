"""Write expressions that go by traced values, such as conditional ones, with operations."""

from __future__ import annotations

import ast
from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.jit.advice.names import called_name
from numgrad.jit.advice.results import alike, is_number
from numgrad.jit.advice.scene import NoAdvice, Scene
from numgrad.jit.advice.truth import as_number, as_test

__all__ = ["expression"]


def expression(scene: Scene, node: ast.expr) -> str:
    """Return an expression that asks for no number."""
    if isinstance(node, ast.IfExp):
        return _conditional(scene, node)
    if isinstance(node, ast.Call):
        name = called_name(node)
        if name in scene.known:
            raise NoAdvice(f"`{name}` asks for numbers")
        return _CALLS[name](scene, node)
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        raise NoAdvice(
            "how much a comprehension takes may not go by numbers: take all, and choose with where"
        )
    if isinstance(node, ast.BoolOp) and not all(map(scene.is_boolean, node.values)):
        return _chosen(scene, node)
    return ast.unparse(as_test(scene, node))


def _conditional(scene: Scene, node: ast.IfExp) -> str:
    test = as_test(scene, node.test)
    parts = alike(scene, node.body, node.orelse)
    return f"{scene.func}.cond({ast.unparse(test)}, {', '.join(f'lambda: {p}' for p in parts)})"


def _chosen(scene: Scene, node: ast.BoolOp) -> str:
    """Return `or` and `and` of values, which give the one of them that decides."""
    first, *rest = node.values
    other = rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
    if not scene.repeats(first) or len(rest) > 1:
        raise NoAdvice("give its parts names, and choose among them with where")
    both = (first, other) if isinstance(node.op, ast.Or) else (other, first)
    return _conditional(scene, ast.IfExp(first, *both))


def _extreme(scene: Scene, node: ast.Call) -> str:
    """Return `max` or `min` of some values: the first of those that no other exceeds."""
    if node.keywords or any(isinstance(each, ast.Starred) for each in node.args):
        raise NoAdvice("compare with the operations of tensors: stack the values, and take argmax")
    is_max = called_name(node) == "max"
    if len(node.args) == 1:
        return _extreme_of(scene, node, "argmax" if is_max else "argmin")
    sign = ">" if is_max else "<"
    found = ast.unparse(as_number(scene, node.args[0]))
    for argument in node.args[1:]:
        text = ast.unparse(as_number(scene, argument))
        if len(node.args) == 2 and all(map(scene.repeats, node.args)):
            return f"{scene.package}.where({text} {sign} {found}, {text}, {found})"
        choose = f"lambda a, b: {scene.package}.where(b {sign} a, b, a)"
        found = f"({choose})({found}, {text})"
    return found


def _extreme_of(scene: Scene, node: ast.Call, operation: str) -> str:
    stacked = _stacked(scene, node.args[0])
    name = "amax" if operation == "argmax" else "amin"
    return f"{stacked}.{name}()"


def _stacked(scene: Scene, values: Any) -> str:
    """Return a sequence of tensors as one."""
    text = ast.unparse(values)
    held = scene.known.get(text) if isinstance(values, ast.Name) else None
    if isinstance(held, Tensor) and held.ndim == 1:
        return text
    if isinstance(held, (list, tuple)) and all(isinstance(each, Tensor) for each in held):
        return f"{scene.package}.stack({text})"
    if isinstance(values, (ast.List, ast.Tuple)) and not any(
        is_number(scene, each) or isinstance(each, ast.Starred) for each in values.elts
    ):
        return f"{scene.package}.stack({text})"
    raise NoAdvice(f"stack the values of `{text}`, and use the operations of tensors")


def _sorted(scene: Scene, node: ast.Call) -> str:
    arguments = ["stable=True"]
    for each in node.keywords:
        if each.arg != "reverse" or not isinstance(each.value, ast.Constant):
            raise NoAdvice(
                "stack the values, and take them by the argsort of what they are sorted by"
            )
        arguments.append(f"descending={ast.unparse(each.value)}")
    return f"list({_stacked(scene, node.args[0])}.sort({', '.join(arguments)}).values)"


def _any_or_all(scene: Scene, node: ast.Call) -> str:
    name = called_name(node)
    values: Any = node.args[0]
    held = scene.known.get(values.id) if isinstance(values, ast.Name) else None
    if isinstance(held, Tensor) and held.ndim == 1:
        return f"{values.id}.{name}()"
    package = scene.package
    if isinstance(values, (ast.GeneratorExp, ast.ListComp)):
        each = f"{package}.as_tensor({ast.unparse(as_test(scene, values.elt))})"
        rest = "".join(f" {ast.unparse(clause).strip()}" for clause in values.generators)
        return f"{package}.stack([{each}{rest}]).{name}()"
    if isinstance(values, (ast.List, ast.Tuple)):
        parts = [f"{package}.as_tensor({ast.unparse(as_test(scene, v))})" for v in values.elts]
        return f"{package}.stack([{', '.join(parts)}]).{name}()"
    return f"{_stacked(scene, values)}.{name}()"


_CALLS = {
    "max": _extreme,
    "min": _extreme,
    "sorted": _sorted,
    "any": _any_or_all,
    "all": _any_or_all,
}
