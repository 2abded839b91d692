"""What a loop carries: the variables, what they begin with, and numbers of Python's among them."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.jit.advice.names import loaded_in, own_parts, reads_first, stored_in
from numgrad.jit.advice.results import is_number, number_dtype
from numgrad.jit.advice.scene import NoAdvice, Scene

__all__ = ["Carries"]


class Carries:
    """The variables that a loop hands from one turn to the next.

    Numbers of Python's become tensors, floats of them of 64 bits, as they have in Python. Tensors
    without dims that are computed with them would have as many bits then: they are cast back.

    Attributes
    ----------
    names : list of str
    before : list of str
        Lines in front of the loop.
    """

    def __init__(
        self,
        scene: Scene,
        block: list[ast.stmt],
        live: set[str],
        test: ast.expr | None,
        counter: str = "",
    ) -> None:
        self._scene = scene
        self.before: list[str] = []
        tested = loaded_in([test]) if test is not None else set()
        self.names = [
            name
            for name in stored_in(block)
            if name in live or name in tested or reads_first(name, block, {*live, *tested})
        ]
        if not self.names:
            raise NoAdvice("nothing that it changes is read behind it, or in another turn")
        for name in self.names:
            self._check(name)
        scene.carried.update(self.names)
        scene.carried.update([counter] if counter else [])
        self._numbers = {name for name in (*self.names, counter) if scene.is_number(name)}
        self._dtypes = _dtypes_of(scene, self.names, block)
        self._wide = _Wide(
            scene, self._numbers - {n for n, d in self._dtypes.items() if d != "int64"}
        )
        _check_numbers(scene, block, self._numbers)
        widened = [self._wide.visit(copy.deepcopy(statement)) for statement in block]
        is_wide = "float64" in self._dtypes.values() or ast.unparse(
            ast.Module(widened, [])
        ) != ast.unparse(ast.Module(block, []))
        for name in self.names if is_wide else ():
            held = scene.known[name]
            if not isinstance(held, Tensor) or held.ndim or not held.dtype.is_floating_point:
                continue
            dtype = str(held.dtype).removeprefix("torch.")
            if dtype != "float64":
                scene.casts[name] = f"{name}.to({scene.package}.{dtype})"

    def _check(self, name: str) -> None:
        self._scene.check_tensor(
            name,
            missing="first gets a value in the loop: give it one before, of the shape and dtype "
            "that it gets there",
            other="before the loop, which carries tensors and numbers: begin with a tensor of the "
            "shape and dtype that it gets",
        )

    def start(self, name: str) -> str:
        """Return what a variable begins with."""
        dtype = self._dtypes.get(name)
        if dtype in (None, "bool", "int64"):
            return name
        package = self._scene.package
        return f"{package}.tensor({name}, dtype={package}.{dtype})"

    def adapted(self, parts: Sequence[Any]) -> list[Any]:
        """Return parts of the loop with numbers as wide as Python's."""
        return [self._wide.visit(part) for part in parts]


def _dtypes_of(scene: Scene, names: list[str], block: Sequence[ast.stmt]) -> dict[str, str]:
    """Return the dtypes of the numbers that a loop carries.

    Raises
    ------
    NoAdvice
        If one of them gets a tensor in the loop, whose dtype is not known.
    """
    found = {name: _dtype(scene.known[name]) for name in names if scene.is_number(name)}
    for _ in range(len(found) + 1):
        for node in own_parts(block):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    _follow(scene, found, target, node.value)
    return found


def _dtype(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    return {int: "int64", complex: "complex128"}.get(type(value), "float64")


_ORDER = ("bool", "int64", "float64", "complex128")


def _follow(scene: Scene, found: dict[str, str], target: ast.expr, value: ast.expr) -> None:
    """Note the dtype of a number that is assigned to a variable."""
    if isinstance(target, (ast.Tuple, ast.List)):
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
            for one, other in zip(target.elts, value.elts, strict=True):
                _follow(scene, found, one, other)
            return
        for each in target.elts:
            if isinstance(each, ast.Name) and each.id in found:
                _refuse(scene, each.id)
        return
    if not isinstance(target, ast.Name) or target.id not in found:
        return
    name = target.id
    if found[name] == "bool" and scene.is_boolean(value):
        return
    if not is_number(scene, value):
        _refuse(scene, name)
    held = {part.id for part in ast.walk(value) if isinstance(part, ast.Name)}
    dtypes = [found[name], number_dtype(scene, value), *[found[n] for n in held if n in found]]
    found[name] = max(dtypes, key=_ORDER.index)


def _refuse(scene: Scene, name: str) -> None:
    raise NoAdvice(
        f"`{name}` is a number of Python's before the loop, and gets what may be a tensor in it: "
        "begin with a tensor of the shape and dtype that it gets, such as "
        f"{scene.package}.zeros(())"
    )


class _Wide(ast.NodeTransformer):
    """Computes with whole numbers that are tensors in 64 bits where Python would, with floats."""

    def __init__(self, scene: Scene, names: set[str]) -> None:
        self._scene = scene
        self._names = names

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        if not is_number(self._scene, node):
            return self.generic_visit(node)
        if number_dtype(self._scene, node) != "float64":
            return node
        return _Doubled(self._names).visit(node)


class _Doubled(ast.NodeTransformer):
    def __init__(self, names: set[str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self._names:
            return node
        return ast.Call(ast.Attribute(node, "double", ast.Load()), [], [])


def _check_numbers(scene: Scene, block: Sequence[ast.stmt], numbers: set[str]) -> None:
    """Raise where a number, which the loop makes a tensor, is needed as one of Python's."""
    for node in own_parts(block):
        if isinstance(node, ast.Subscript):
            held = scene.known.get(node.value.id) if isinstance(node.value, ast.Name) else None
            if isinstance(held, (list, tuple, dict, str)) and loaded_in([node.slice]) & numbers:
                raise NoAdvice(
                    f"`{ast.unparse(node)}` takes an item by a number that is a tensor in a loop: "
                    f"stack {ast.unparse(node.value)}, and take from that"
                )
        if not isinstance(node, ast.Call) or not loaded_in(node.args) & numbers:
            continue
        root: ast.AST = node.func
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and root.id in _OF_NUMBERS and root.id not in scene.known:
            raise NoAdvice(
                f"`{ast.unparse(node)}` takes a number, which is a tensor in a loop: write it with "
                "operations of tensors"
            )


# What takes no tensors, by the first name.
_OF_NUMBERS = frozenset(
    (
        "math",
        "cmath",
        "np",
        "numpy",
        "range",
        "float",
        "int",
        "round",
        "pow",
        "divmod",
        "max",
        "min",
    )
)
