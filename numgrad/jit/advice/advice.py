"""What to write in place of a Python branch or loop on a traced value, with the user's names.

Such a statement asks a traced tensor for its truth, or for the number of rounds. From the frame in
which that happens the statement is found in the source (`find`), and written again as a call of
`numgrad.func.cond`, `numgrad.func.while_loop` or `numgrad.func.fori_loop`. What is shown computes
what the statement did; where none such is known, it is said why.
"""

from __future__ import annotations

import ast
import copy
import sys
import textwrap
from types import FrameType
from typing import Any

from numgrad.base.dtypes import dtype as Dtype
from numgrad.jit.advice.branches import Ends, branch, indented
from numgrad.jit.advice.expressions import expression
from numgrad.jit.advice.find import Block, Found, find
from numgrad.jit.advice.loops import loop
from numgrad.jit.advice.names import leaves_of, loaded_in, reads_first, stored_in
from numgrad.jit.advice.rewriting import Places
from numgrad.jit.advice.scene import NoAdvice, Scene

__all__ = ["advice_for"]

_LOOPS = (ast.For, ast.While)


def advice_for(
    frame: FrameType | None, asked_dtype: Dtype | None = None, asks_truth: bool = True
) -> str:
    """Return what to write in place of the branch or loop that a frame is at.

    Parameters
    ----------
    frame : frame or None
    asked_dtype : dtype, optional
        That of the tensor that it asks.
    asks_truth : bool
        Whether it asks for a truth value; for a number if not.

    Returns
    -------
    str
        The end of a message; nothing if the frame is at no such statement, or its source is not
        known.
    """
    found = None if frame is None else find(frame)
    if frame is None or found is None:
        return ""
    scene = _scene_of(frame, found)
    scene.asked_dtype, scene.asks_truth = asked_dtype, asks_truth
    try:
        if isinstance(found.construct, ast.expr):
            place = f"`{ast.unparse(found.construct)}`"
            scene.asked = found.asked
            lines = [expression(scene, found.construct)]
        else:
            place, lines = _Statement(scene, found).written()
    except NoAdvice as why:
        return f"; as a function it can't be shown here: {why}"
    return f"; or write {place} as a function:\n" + textwrap.indent("\n".join(lines), "    ")


def _scene_of(frame: FrameType, found: Found) -> Scene:
    taken = {part.id for part in ast.walk(found.function) if isinstance(part, ast.Name)}
    taken |= {part.arg for part in ast.walk(found.function) if isinstance(part, ast.arg)}
    taken |= set(frame.f_locals)
    scene = Scene(dict(frame.f_locals), _name_of_package(frame), taken)
    scene.cells = frozenset((*frame.f_code.co_cellvars, *frame.f_code.co_freevars))
    scene.read = loaded_in([found.function])
    return scene


def _name_of_package(frame: FrameType) -> str:
    """Return what the user calls this package."""
    package = sys.modules["numgrad"]
    for names in (frame.f_globals, frame.f_locals):
        for name, value in names.items():
            if value is package:
                return name
    return "numgrad"


class _Statement:
    """A statement that asks for a number, and what of the function is to be replaced with it."""

    def __init__(self, scene: Scene, found: Found) -> None:
        self._scene = scene
        self._blocks = list(found.blocks)
        self._statement: Any = found.construct
        self._asked = found.asked
        if isinstance(self._statement, ast.Assert):
            raise NoAdvice(
                "an assertion is not recorded: check outside of the function, or return what says "
                "whether it holds"
            )
        leaves = leaves_of([self._statement])
        loops = [k for k, block in enumerate(self._blocks) if isinstance(block.parent, _LOOPS)]
        if isinstance(self._statement, ast.If) and loops and leaves:
            around = leaves_of(self._blocks[loops[-1]].statements)
            if any(isinstance(node, (ast.Break, ast.Return)) for node in around):
                self._climb(loops[-1])
        self._heads: list[ast.If] = []  # tests of an `elif` that come before
        while self._is_elif():
            self._heads.insert(0, self._blocks[-1].parent)
            self._statement_below(len(self._blocks) - 1)

    def _climb(self, level: int) -> None:
        """Take the loop around a statement in its place."""
        self._statement = self._blocks[level].parent
        del self._blocks[level:]

    def _statement_below(self, level: int) -> None:
        del self._blocks[level:]

    def _is_elif(self) -> bool:
        if not isinstance(self._statement, ast.If) or not self._blocks:
            return False
        block = self._blocks[-1]
        inner = self._heads[0] if self._heads else self._statement
        return (
            isinstance(block.parent, ast.If)
            and block.field == "orelse"
            and len(block.statements) == 1
            and inner.col_offset == block.parent.col_offset
        )

    def written(self) -> tuple[str, list[str]]:
        """Return which lines are to be replaced, and with what."""
        first = self._heads[0] if self._heads else self._statement
        last, tail, ends = first.end_lineno, [], None
        leaves = leaves_of([*self._heads, self._statement])
        returns = any(isinstance(node, ast.Return) for node in leaves)
        if returns or any(isinstance(node, ast.Continue) for node in leaves):
            tail = self._tail(through_loops=not returns)
            ends = Ends(None, returns=True) if returns else None
            last = self._blocks[-1].statements[-1].end_lineno
        live = self._live(bool(tail))
        lines = self._lines(live, tail, ends)
        lines = self._with_heads(lines, tail)
        where = (
            f"line {first.lineno}" if first.lineno == last else f"lines {first.lineno} to {last}"
        )
        return where, lines

    def _lines(self, live: set[str], tail: list[ast.stmt], ends: Ends | None) -> list[str]:
        scene = self._scene
        statement = self._copied(self._statement)
        parts = [statement, *tail] if ends is not None else [statement]
        places = Places(scene, parts)
        statement = places.visit(statement)
        if places.outside and ends is not None:
            raise NoAdvice(
                "it stores attributes or items, and returns: store them before or behind"
            )
        scene.asked = self._asked
        live = {*live, *places.outside}
        if isinstance(statement, _LOOPS):
            lines = loop(scene, statement, live, [self._copied(each) for each in tail])
        else:
            if tail:
                statement.body += [self._copied(each) for each in tail]
                statement.orelse += [self._copied(each) for each in tail]
                statement.body = _reachable(statement.body)
                statement.orelse = _reachable(statement.orelse)
            lines = branch(scene, statement, live, ends)
        before = [
            f"{name} = {text}" for name, text in places.outside.items() if name in scene.known
        ]
        after = [f"{text} = {name}" for name, text in places.outside.items()]
        return [*before, *lines, *after]

    def _copied(self, node: Any) -> Any:
        return copy.deepcopy(node, {id(self._asked): self._asked})

    def _with_heads(self, lines: list[str], tail: list[ast.stmt]) -> list[str]:
        if not self._heads:
            return lines
        found: list[str] = []
        for number, head in enumerate(self._heads):
            found.append(f"{'elif' if number else 'if'} {ast.unparse(head.test)}:")
            for each in _reachable([*head.body, *tail]):
                found += indented(ast.unparse(each).splitlines())
        return [*found, "else:", *indented(lines)]

    def _tail(self, through_loops: bool) -> list[ast.stmt]:
        """Return what is done behind the statement, up to the end of the function or loop."""
        tail: list[ast.stmt] = []
        for block in reversed(self._blocks):
            tail += block.statements[block.position + 1 :]
            if isinstance(block.parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return tail
            if isinstance(block.parent, _LOOPS) and through_loops:
                return tail
            if not isinstance(block.parent, ast.If):
                raise NoAdvice("it leaves what is around it: a loop, `with` or `try`")
        raise NoAdvice("it leaves what is around it")

    def _live(self, tail_is_part: bool) -> set[str]:
        """Return the names that are read behind the statement."""
        return {name for name in self._scene.read if self._is_read(name, tail_is_part)}

    def _is_read(self, name: str, skips: bool) -> bool:
        for number, block in enumerate(reversed(self._blocks)):
            rest = [] if skips and not number else block.statements[block.position + 1 :]
            found = reads_first(name, rest)
            if found is not None:
                return found
            in_loop = isinstance(block.parent, _LOOPS) and block.field == "body"
            if in_loop and _is_read_by_loop(name, block):
                return True
        return not self._blocks or isinstance(self._blocks[0].parent, ast.Module)


def _is_read_by_loop(name: str, block: Block) -> bool:
    """Whether a name is read by a next turn of a loop, or what it goes by."""
    parent = block.parent
    if isinstance(parent, ast.While) and name in loaded_in([parent.test]):
        return True
    if isinstance(parent, ast.For) and name in stored_in([parent.target]):
        return False
    return bool(reads_first(name, block.statements))


def _reachable(block: list[ast.stmt]) -> list[ast.stmt]:
    """Return a block without what is behind what surely leaves it."""
    for number, statement in enumerate(block):
        if isinstance(statement, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
            return block[: number + 1]
    return block
