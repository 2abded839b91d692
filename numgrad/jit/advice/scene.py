"""What is known at a place in a traced function: of its variables, and of expressions."""

from __future__ import annotations

import ast
import builtins
from types import ModuleType, NoneType
from typing import Any

from numgrad.base import pytree
from numgrad.base.dtypes import dtype as Dtype
from numgrad.codegen.scalar_ops import SCALAR_OPS
from numgrad.graph.tensor import Tensor
from numgrad.jit.advice.names import called_name

__all__ = ["NoAdvice", "Scene", "parsed"]

# Methods that give truth values: scalar operations, other names of these, and compositions.
_BOOLEAN = frozenset([name for name, op in SCALAR_OPS.items() if op.is_truth]).union(
    ("greater", "greater_equal", "less", "less_equal", "not_equal"),
    ("all", "any", "bool", "isclose", "isneginf", "isposinf", "isreal"),
)
_DRAWING = frozenset(("bernoulli", "multinomial"))
_OF_PYTHON = frozenset(("len", "isinstance", "hasattr", "callable", "type", "id"))


class NoAdvice(Exception):
    """Code that does the same can't be derived; says why."""


class Scene:
    """The variables at a place, and what is known of them.

    Parameters
    ----------
    known : dict
        The variables of the frame that are there.
    package : str
        What the user calls this package.
    taken : set of str
        Names of the function's, which new ones may not be.
    """

    def __init__(self, known: dict[str, Any], package: str, taken: set[str]) -> None:
        self.known = known
        self.package = package
        self.func = f"{package}.func"
        self.taken = taken
        self.carried: set[str] = set()  # names that a loop makes tensors of
        self.cells: frozenset[str] = frozenset()  # variables that functions in it read
        self.read: set[str] = set()  # names that the function reads from here on
        self.outside: dict[str, str] = {}  # what variables are in the place of
        self.casts: dict[str, str] = {}  # what a loop hands on in the place of a variable
        self.asked: ast.AST | None = None
        self.asked_dtype: Dtype | None = None
        self.asks_truth = True  # rather than a number

    def dtype_of(self, node: ast.AST) -> Dtype | None:
        """Return the dtype of an expression's tensor, if it is known."""
        if node is self.asked:
            return self.asked_dtype
        if isinstance(node, ast.Name):
            value = self.known.get(node.id)
            if isinstance(value, Tensor):
                return value.dtype
        return None

    def is_python(self, node: ast.AST) -> bool:
        """Whether an expression is of Python's values alone."""
        if node is self.asked:
            return False
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                if part.id in self.carried:
                    return False
                if part.id in self.known:
                    if _has_tensor(self.known[part.id]):
                        return False
                elif not hasattr(builtins, part.id):
                    return False
            elif (isinstance(part, ast.Call) and not self._is_about_it(part)) or isinstance(
                part, (ast.Attribute, ast.Lambda, ast.NamedExpr, ast.Await)
            ):
                return False
        return True

    def _is_about_it(self, call: ast.Call) -> bool:
        return called_name(call) in _OF_PYTHON

    def of_python(self, node: ast.expr) -> bool:
        """Whether an expression is none of a tensor: it asks about an object, or is Python's."""
        if isinstance(node, ast.Call) and self._is_about_it(node):
            return True
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            return True
        return self.is_python(node)

    def is_number(self, name: str) -> bool:
        """Whether a variable is a number of Python's."""
        return isinstance(self.known.get(name), (int, float, complex))

    def is_boolean(self, node: ast.expr) -> bool:
        """Whether an expression is a tensor of dtype bool, or a truth value."""
        if isinstance(node, ast.Compare):
            return True
        if isinstance(node, ast.Name) and isinstance(self.known.get(node.id), bool):
            return True
        found = self.dtype_of(node)
        if found is not None:
            return str(found) == "torch.bool"
        if isinstance(node, ast.Call):
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else ""
            return name in _BOOLEAN
        if isinstance(node, ast.UnaryOp):
            return isinstance(node.op, ast.Invert) and self.is_boolean(node.operand)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.BitXor)):
            return self.is_boolean(node.left) and self.is_boolean(node.right)
        return False

    def repeats(self, node: ast.AST) -> bool:
        """Whether an expression may be computed again, or once more than it was: none would see."""
        if isinstance(node, (ast.Name, ast.Constant)):
            return True
        if isinstance(node, ast.Subscript):
            index = node.slice
            fixed = isinstance(index, ast.Constant) or (
                isinstance(index, ast.UnaryOp) and isinstance(index.operand, ast.Constant)
            )
            return fixed and self.repeats(node.value)
        if isinstance(node, ast.Call):
            return self._is_plain_call(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            return False
        kinds = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.Attribute, ast.IfExp)
        if not isinstance(node, kinds):
            return isinstance(
                node, (ast.operator, ast.unaryop, ast.cmpop, ast.boolop, ast.expr_context)
            )
        return all(map(self.repeats, ast.iter_child_nodes(node)))

    def _is_plain_call(self, node: ast.Call) -> bool:
        """Whether a call is one of an operation, which draws nothing and writes nowhere."""
        function = node.func
        if isinstance(function, ast.Name):
            known = function.id in ("abs", "len", "float", "int", "bool")
            return known and all(map(self.repeats, node.args))
        if not isinstance(function, ast.Attribute) or function.attr.endswith("_"):
            return False
        if function.attr in _DRAWING or not hasattr(Tensor, function.attr):
            return False
        root: ast.AST = function
        while isinstance(root, (ast.Attribute, ast.Subscript, ast.Call)):
            root = root.func if isinstance(root, ast.Call) else root.value
        held = self.known.get(root.id) if isinstance(root, ast.Name) else None
        if not isinstance(held, (Tensor, int, float, NoneType, ModuleType)):
            return False
        inner = [*node.args, *[each.value for each in node.keywords]]
        return self.repeats(function.value) and all(map(self.repeats, inner))

    def check_tensor(self, name: str, *, missing: str, other: str) -> None:
        """Raise for a variable that can't be handed on as tensors, with what is to be done.

        Parameters
        ----------
        name : str
        missing, other : str
            What follows the name where it has no value, and where it has one of another type.
        """
        kind = self.kind(name)
        if kind == "nothing":
            raise NoAdvice(f"`{name}` {missing}")
        if kind not in ("tensor", "number", "tree"):
            raise NoAdvice(f"`{name}` is {'None' if kind == 'None' else f'of type {kind}'} {other}")

    def kind(self, name: str) -> str:
        """Return what a variable holds: "tensor", "number", "tree" of these, or another type."""
        if name not in self.known:
            return "nothing"
        value = self.known[name]
        if isinstance(value, Tensor):
            return "tensor"
        if isinstance(value, (int, float, complex)):
            return "number"
        if isinstance(value, (tuple, list, dict)):
            leaves = pytree.flatten(value)[0]
            if all(isinstance(leaf, (Tensor, int, float, complex)) for leaf in leaves):
                return "tree"
        return "None" if value is None else type(value).__name__


def _has_tensor(value: Any) -> bool:
    if isinstance(value, (tuple, list, dict)):
        return any(isinstance(leaf, Tensor) for leaf in pytree.flatten(value)[0])
    return not isinstance(value, (int, float, complex, str, bytes, type(None), range, type))


def parsed(text: str) -> ast.expr:
    """Return the tree of an expression."""
    return ast.parse(text, mode="eval").body
