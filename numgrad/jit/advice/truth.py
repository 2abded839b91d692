"""Write tests, which ask for truth values, as expressions that are tensors of dtype bool."""

from __future__ import annotations

import ast
import copy
from typing import Any

from numgrad.jit.advice.names import called_name
from numgrad.jit.advice.scene import NoAdvice, Scene, parsed

__all__ = ["as_number", "as_test", "negated"]


def as_test(scene: Scene, test: ast.expr) -> ast.expr:
    """Return a test as an expression that `cond` and `while_loop` take."""
    written = _truth(scene, test)
    if scene.of_python(test) and not _is_truth_value(written):
        return _call("bool", written)
    return written


def negated(scene: Scene, test: ast.expr) -> ast.expr:
    """Return the test for the opposite."""
    return as_test(scene, ast.UnaryOp(ast.Not(), test))


def _is_truth_value(node: ast.expr) -> bool:
    if isinstance(node, ast.BoolOp):
        return all(map(_is_truth_value, node.values))
    if isinstance(node, ast.Constant):
        return isinstance(node.value, bool)
    if called_name(node) in ("isinstance", "bool", "hasattr", "callable"):
        return True
    is_not = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    return isinstance(node, ast.Compare) or is_not


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _method(node: ast.expr, name: str) -> ast.expr:
    return ast.Call(ast.Attribute(node, name, ast.Load()), [], [])


def _truth(scene: Scene, node: ast.expr) -> ast.expr:
    if scene.of_python(node):
        return node
    if isinstance(node, ast.Call) and called_name(node) == "bool" and len(node.args) == 1:
        return _truth(scene, node.args[0])
    if isinstance(node, ast.BoolOp):
        return _connected(scene, node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        operand = _truth(scene, node.operand)
        if isinstance(operand, ast.Name) and scene.is_number(operand.id):
            return ast.Compare(operand, [ast.Eq()], [ast.Constant(0)])
        return ast.UnaryOp(ast.Invert(), operand)
    if isinstance(node, ast.Compare):
        return _compared(scene, node)
    if isinstance(node, ast.NamedExpr) and scene.is_boolean(node.value):
        return node
    if scene.is_boolean(node):
        return node
    return ast.Compare(as_number(scene, node), [ast.NotEq()], [ast.Constant(0)])


def _connected(scene: Scene, node: ast.BoolOp) -> ast.expr:
    """Return what `and` or `or` connect: by these where Python's is first, else by & or |."""
    first, *rest = node.values
    remaining = rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
    left, right = _truth(scene, first), _truth(scene, remaining)
    if scene.of_python(first):
        left = left if _is_truth_value(left) else _call("bool", left)
        return ast.BoolOp(node.op, [left, right])
    is_and = isinstance(node.op, ast.And)
    if not scene.repeats(remaining):  # which may fail where the first decides, or cost much
        ends = ast.Constant(not is_and)
        branches = (right, ends) if is_and else (ends, right)
        given = sorted(scene.carried & {n.id for n in ast.walk(right) if isinstance(n, ast.Name)})
        head = f"lambda {', '.join(given)}:" if given else "lambda:"
        parts = [ast.unparse(left), *[f"{head} {ast.unparse(each)}" for each in branches], *given]
        return parsed(f"{scene.func}.cond({', '.join(parts)})")
    if scene.of_python(remaining) and not _is_truth_value(right):
        right = _call("bool", right)
    return ast.BinOp(left, ast.BitAnd() if is_and else ast.BitOr(), right)


def _compared(scene: Scene, node: ast.Compare) -> ast.expr:
    """Return a chain of comparisons, what stands between two of them computed once."""
    if any(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops):
        raise NoAdvice("write `in` as comparisons of its own, joined by `|`")
    sides = [as_number(scene, each) for each in (node.left, *node.comparators)]
    whole: ast.expr | None = None
    left = sides[0]
    for number, (op, right) in enumerate(zip(node.ops, sides[1:], strict=True)):
        again = right
        if number + 1 < len(node.ops) and not scene.repeats(right):
            name = _between(scene)
            right = ast.NamedExpr(ast.Name(name, ast.Store()), right)
            again = ast.Name(name, ast.Load())
        pair = ast.Compare(left, [op], [right])
        whole = pair if whole is None else ast.BinOp(whole, ast.BitAnd(), pair)
        left = again
    assert whole is not None
    return whole


def _between(scene: Scene) -> str:
    name = "between"
    while name in scene.taken:
        name += "_"
    scene.taken.add(name)
    return name


def as_number(scene: Scene, node: ast.expr) -> ast.expr:
    """Return an expression of numbers with tensors in their places.

    Python's floats have 64 bits: a tensor of fewer is widened, as it is compared with them.
    """
    if scene.of_python(node):
        return node
    if isinstance(node, ast.Call):
        return _called(scene, node)
    if isinstance(node, ast.BinOp):
        return ast.BinOp(as_number(scene, node.left), node.op, as_number(scene, node.right))
    if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
        return ast.UnaryOp(node.op, as_number(scene, node.operand))
    if isinstance(node, ast.NamedExpr):
        return ast.NamedExpr(node.target, as_number(scene, node.value))
    if isinstance(node, (ast.BoolOp, ast.UnaryOp)):
        return _truth(scene, node)
    return copy.deepcopy(node) if node is not scene.asked else node


def _called(scene: Scene, node: ast.Call) -> ast.expr:
    function = node.func
    if isinstance(function, ast.Attribute) and function.attr == "item" and not node.args:
        return _widened(scene, function.value, node)
    if not isinstance(function, ast.Name) or len(node.args) != 1 or node.keywords:
        _refuse_numbers(scene, node)
        return node
    (argument,) = node.args
    if function.id == "float":
        return _widened(scene, _without_item(argument), node, "double")
    if function.id == "int":
        inner = _without_item(argument)
        return inner if _is_whole(scene, inner, node) else _method(inner, "long")
    if function.id == "bool":
        return _truth(scene, argument)
    if function.id == "abs":
        return _call("abs", as_number(scene, argument))
    _refuse_numbers(scene, node)
    return node


def _refuse_numbers(scene: Scene, node: ast.Call) -> None:
    """Raise where what is asked for a number is an argument of a function that takes no tensors."""
    if scene.asked is None or not any(part is scene.asked for part in ast.walk(node)):
        return
    if node is not scene.asked or not scene.asks_truth:
        raise NoAdvice(f"`{ast.unparse(node)}` takes a number: write it with operations of tensors")


def _without_item(node: ast.expr) -> ast.expr:
    if not isinstance(node, ast.Call) or node.args or not isinstance(node.func, ast.Attribute):
        return node
    return node.func.value if node.func.attr == "item" else node


def _is_whole(scene: Scene, tensor: ast.expr, asks: Any) -> bool:
    found = scene.dtype_of(tensor) or scene.dtype_of(asks)
    return found is not None and not (found.is_floating_point or found.is_complex)


def _widened(scene: Scene, tensor: ast.expr, asks: Any, method: str = "") -> ast.expr:
    found = scene.dtype_of(tensor) or scene.dtype_of(asks)
    if found is not None and str(found) == "torch.float64":
        return tensor
    if not method and found is not None and not found.is_floating_point:
        return tensor
    return _method(tensor, "double")
