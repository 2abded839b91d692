"""Prepare statements for being the body of a function: what they write to becomes variables.

A body writes to nothing that it did not make, but returns what there is to be. So ``y += x``
becomes ``y = y + x``, ``x[0] = 1`` writes to a copy, and ``self.w`` a variable, which is handed
over and stored behind the call.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from typing import Any

from numgrad.graph.recorder import is_traced_array
from numgrad.graph.tensor import Tensor
from numgrad.jit.advice.names import fresh, loaded_in, own_parts, reads_first, stored_in
from numgrad.jit.advice.scene import NoAdvice, Scene

__all__ = ["Places", "check_block", "clones", "out_of_place"]


class Places(ast.NodeTransformer):
    """Puts variables in the place of attributes and items that a statement stores.

    Attributes
    ----------
    outside : dict of str to str
        What each such variable is outside.
    """

    def __init__(self, scene: Scene, block: Sequence[ast.AST]) -> None:
        self.outside: dict[str, str] = {}
        self._names: dict[str, str] = {}
        bases = set()
        for node in own_parts(block):
            if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
                base = node.value
                if not isinstance(base, ast.Name) or isinstance(scene.known.get(base.id), Tensor):
                    if _is_tensors(scene, base):
                        continue
                    raise NoAdvice(f"it stores `{ast.unparse(node)}`: store that behind it")
                if base.id not in scene.known or base.id in _rebound(block):
                    continue  # what the block makes itself
                if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant):
                    raise NoAdvice(f"it stores `{ast.unparse(node)}`, by a key that may change")
                self._take(scene, node, base.id)
                bases.add(base.id)
        for node in own_parts(block):
            if isinstance(node, ast.Call) and loaded_in([node]) & bases:
                used = self.visit(copy.deepcopy(node))
                if loaded_in([used]) & bases:
                    raise NoAdvice(
                        f"`{ast.unparse(node)}` may read what is stored in it: hand over what it "
                        "reads as arguments"
                    )

    def _take(self, scene: Scene, node: ast.Attribute | ast.Subscript, name: str) -> None:
        text = ast.unparse(node)
        if text in self._names:
            return
        base = scene.known[name]
        if isinstance(node, ast.Attribute):
            name, held = node.attr, vars(base) if hasattr(base, "__dict__") else {}
            key: Any = name
            if hasattr(type(base), name) and isinstance(getattr(type(base), name), property):
                raise NoAdvice(f"`{text}` is a property")
        else:
            key, held = ast.literal_eval(node.slice), base
            name = key if isinstance(key, str) and key.isidentifier() else "item"
        name = fresh(name, scene.taken)
        self._names[text] = name
        self.outside[name] = text
        if (isinstance(held, dict) and key in held) or (
            isinstance(held, list) and isinstance(key, int) and -len(held) <= key < len(held)
        ):
            scene.known[name] = held[key]

    def _visit_place(self, node: Any) -> Any:
        name = self._names.get(ast.unparse(node))
        if name is not None:
            return ast.Name(name, node.ctx)
        return self.generic_visit(node)

    visit_Attribute = visit_Subscript = _visit_place


def _rebound(block: Sequence[ast.AST]) -> set[str]:
    return {
        node.id
        for node in own_parts(block)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _is_tensors(scene: Scene, node: ast.AST) -> bool:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return isinstance(node, ast.Name) and isinstance(scene.known.get(node.id), Tensor)


class _OutOfPlace(ast.NodeTransformer):
    """Writes augmented assignments to names, and methods that write, without writing."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        if not isinstance(node.target, ast.Name):
            return node
        name = node.target.id
        if self._scene.kind(name) == "tree":
            raise NoAdvice(f"`{name}` grows: how long it is would be another type of carry")
        value = ast.BinOp(ast.Name(name, ast.Load()), node.op, node.value)
        return _assign(name, value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is None or not isinstance(node.target, ast.Name):
            return node
        return _assign(node.target.id, node.value)

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        root = _root_of_writes(node.value)
        if root is None:
            return node
        return _assign(root.id, _without_writes(node.value))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        return node


def _root_of_writes(node: ast.expr) -> ast.Name | None:
    """Return whose methods are called one after another, each of which writes to it."""
    while isinstance(node, ast.Call):
        function = node.func
        if not isinstance(function, ast.Attribute) or not function.attr.endswith("_"):
            return None
        if not hasattr(Tensor, function.attr.removesuffix("_")):
            return None
        node = function.value
        if isinstance(node, ast.Name):
            return node
    return None


def _without_writes(node: Any) -> ast.expr:
    """Return the same calls of methods that write to nothing."""
    if isinstance(node, ast.Name):
        return ast.Name(node.id, ast.Load())
    owner, name = _without_writes(node.func.value), node.func.attr.removesuffix("_")
    return ast.Call(ast.Attribute(owner, name, ast.Load()), node.args, node.keywords)


def _assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value, lineno=0)


def out_of_place(scene: Scene, block: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return statements that write to no tensor that has a name before them.

    Raises
    ------
    NoAdvice
        If what they wrote to has another name, too, under which it would be read.
    """
    written = [name for name in _written_in_place(block) if scene.kind(name) == "tensor"]
    for name in written:
        _check_alias(scene, name)
    _check_renamed(scene, block)
    changer = _OutOfPlace(scene)
    found = [changer.visit(statement) for statement in block]
    for name in _element_stores(block):
        _check_alias(scene, name)
    return found


def _written_in_place(block: Sequence[ast.AST]) -> Iterator[str]:
    for node in own_parts(block):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.Expr):
            root = _root_of_writes(node.value)
            if root is not None:
                yield root.id


def _element_stores(block: Sequence[ast.AST]) -> list[str]:
    found: dict[str, None] = {}
    for node in own_parts(block):
        if isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            base: ast.AST = node
            while isinstance(base, (ast.Subscript, ast.Attribute)):
                base = base.value
            if isinstance(base, ast.Name):
                found[base.id] = None
    return list(found)


def _check_alias(scene: Scene, name: str) -> None:
    mine = _memory_of(scene.known.get(name))
    if mine is None:
        return
    for other, value in scene.known.items():
        if other != name and other in scene.read and _memory_of(value) is mine:
            raise NoAdvice(
                f"it writes to `{name}`, whose memory is that of `{other}`, too: begin with "
                f"{name}.clone(), or compute both"
            )


def _check_renamed(scene: Scene, block: Sequence[ast.stmt]) -> None:
    """Raise if a block gives what it writes to a second name."""
    written = {*_written_in_place(block), *_element_stores(block)}
    for node in own_parts(block):
        if not isinstance(node, ast.Assign):
            continue
        value: ast.AST = node.value
        while isinstance(value, (ast.Subscript, ast.Attribute)):
            value = value.value
        if not isinstance(value, ast.Name) or scene.kind(value.id) == "number":
            continue
        for name in {value.id, *stored_in(node.targets)} & written:
            raise NoAdvice(
                f"it writes to `{name}`, which `{ast.unparse(node)}` gives a second name: compute "
                "what is new instead of writing to it"
            )


def _memory_of(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return None
    array: Any = value._array
    if is_traced_array(array):
        return array.storage
    while array.base is not None and hasattr(array.base, "base"):
        array = array.base
    return array


def clones(scene: Scene, block: Sequence[ast.stmt], parameters: Sequence[str]) -> list[ast.stmt]:
    """Return what copies the parameters to whose elements a block writes."""
    return [
        ast.parse(f"{name} = {name}.clone()").body[0]
        for name in _element_stores(block)
        if name in parameters and scene.kind(name) == "tensor" and reads_first(name, block)
    ]


def check_block(
    scene: Scene, block: Sequence[ast.stmt], also_read: Sequence[ast.expr] = ()
) -> None:
    """Raise `NoAdvice` for what may not stand in a body that is recorded once."""
    stored = set(stored_in(block))
    for node in own_parts(block):
        if isinstance(node, (ast.Raise, ast.Assert)):
            what = "raises" if isinstance(node, ast.Raise) else "asserts"
            raise NoAdvice(
                f"it {what}, which is recorded in no branch: check numbers outside of the "
                "function, or return a flag that says it"
            )
        if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant):
            raise NoAdvice(
                f"`{ast.unparse(node)}` would be done once, while the function is traced, and not "
                "whenever it is its turn: return what it is to keep"
            )
        if isinstance(node, (ast.Global, ast.Nonlocal, ast.Delete, ast.Yield, ast.YieldFrom)):
            raise NoAdvice(f"`{ast.unparse(node)}` can't be a part of it")
        if isinstance(node, ast.Try):
            raise NoAdvice("`try` can't be a part of it")
    for name in loaded_in([*block, *also_read]):
        code = getattr(scene.known.get(name), "__code__", None)
        both = stored.intersection(getattr(code, "co_freevars", ())) & scene.cells
        if both:
            raise NoAdvice(
                f"`{name}` reads the variable `{min(both)}`, which changes: hand it over as an "
                "argument"
            )
