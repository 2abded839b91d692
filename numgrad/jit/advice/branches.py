"""Write branches on traced values as calls of `cond`."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from numgrad.jit.advice.names import (
    fresh,
    leaves_of,
    reads_first,
    stored_in,
    surely_stored,
)
from numgrad.jit.advice.results import alike, kept
from numgrad.jit.advice.rewriting import check_block, clones, out_of_place
from numgrad.jit.advice.scene import NoAdvice, Scene
from numgrad.jit.advice.truth import as_test

__all__ = ["Ends", "block_lines", "branch", "indented"]


class Ends(NamedTuple):
    """What a function returns at the ends of the block that it does.

    Attributes
    ----------
    falls : list of str or None
        Names, where the block falls through; None if it may not.
    continues, breaks : list of str or None
        The same at a `continue` and a `break`.
    returns : bool
        Whether a `return` is one of the function's.
    """

    falls: list[str] | None
    continues: list[str] | None = None
    breaks: list[str] | None = None
    returns: bool = False

    def all_names(self) -> list[str]:
        """Return all names that are returned somewhere."""
        parts = [*(self.falls or ()), *(self.continues or ()), *(self.breaks or ())]
        return list(dict.fromkeys(parts))


def indented(lines: Sequence[str]) -> list[str]:
    """Return lines that are the body of something."""
    return [f"    {line}" for line in lines]


def block_lines(scene: Scene, block: Sequence[ast.stmt], ends: Ends) -> list[str]:
    """Return the lines of the body of a function that does a block."""
    lines: list[str] = []
    for number, statement in enumerate(block):
        following = block[number + 1 :]
        if isinstance(statement, ast.Return):
            if not ends.returns:
                raise NoAdvice("it returns from within a loop")
            if statement.value is None:
                raise NoAdvice("it returns nothing on one way, which is no tensor")
            return [*lines, f"return {ast.unparse(statement.value)}"]
        if isinstance(statement, (ast.Break, ast.Continue)):
            names = ends.breaks if isinstance(statement, ast.Break) else ends.continues
            if names is None:
                raise NoAdvice("it leaves a loop that is around it")
            return [*lines, _return(scene, names)]
        if leaves_of([statement]):
            if not isinstance(statement, ast.If):
                raise NoAdvice("it leaves more than one loop at once")
            blocks = [*statement.body, *following], [*statement.orelse, *following]
            return [*lines, *_cond_lines(scene, statement.test, blocks, ends, "return ")]
        lines += ast.unparse(statement).splitlines()
    if ends.falls is None:
        raise NoAdvice("it returns something on some ways, and nothing on others")
    return [*lines, _return(scene, ends.falls)]


def _return(scene: Scene, names: list[str]) -> str:
    return f"return {', '.join([scene.casts.get(name, name) for name in names])}"


def _cond_lines(
    scene: Scene,
    test: ast.expr,
    blocks: tuple[list[ast.stmt], list[ast.stmt]],
    ends: Ends,
    target: str,
) -> list[str]:
    """Return the definitions of two functions and the call of `cond` for them."""
    after = [ast.Return(ast.Tuple([ast.Name(n, ast.Load()) for n in ends.all_names()], ast.Load()))]
    stored = list(dict.fromkeys([*stored_in(blocks[0]), *stored_in(blocks[1])]))
    given = [
        name
        for name in stored
        if any(
            name in stored_in(block) and reads_first(name, [*_cut(block), *after])
            for block in blocks
        )
    ]
    lines: list[str] = []
    names = [fresh(name, scene.taken) for name in ("true_fn", "false_fn")]
    for name, block in zip(names, blocks, strict=True):
        body = [*clones(scene, block, given), *block]
        lines += [f"def {name}({', '.join(given)}):"]
        lines += indented(block_lines(scene, body, ends))
    call = [ast.unparse(as_test(scene, test)), *names, *given]
    return [*lines, f"{target}{scene.func}.cond({', '.join(call)})"]


def _cut(block: list[ast.stmt]) -> list[ast.stmt]:
    """Return a block without what leaves it at its end: its values are read then."""
    return [each for each in block if not isinstance(each, (ast.Break, ast.Continue))]


def branch(scene: Scene, statement: ast.If, live: set[str], ends: Ends | None) -> list[str]:
    """Return an `if` as a call of `cond`.

    Parameters
    ----------
    scene : Scene
    statement : If
        With all that follows in its branches, if these are left on the way.
    live : set of str
        What is read behind it.
    ends : Ends or None
        How its branches end; None if they fall through, and hand on what they changed.
    """
    bodies = [out_of_place(scene, block) for block in (statement.body, statement.orelse)]
    check_block(scene, [*bodies[0], *bodies[1]])
    if ends is not None and ends.returns:
        values = [_returned(block) for block in bodies]
        if values[0] is not None and values[1] is not None:
            parts = alike(scene, values[0], values[1])
            return [f"return {_of_lambdas(scene, statement.test, parts)}"]
        return _cond_lines(scene, statement.test, (bodies[0], bodies[1]), ends, "return ")
    changed = [name for name in stored_in([*bodies[0], *bodies[1]]) if name in live]
    if not changed:
        raise NoAdvice("it changes nothing that is read behind it")
    for name in changed:
        _check_result(scene, name, bodies)
    if len(changed) == 1 and not any(map(leaves_of, bodies)):
        found = _assigned(scene, bodies, changed[0])
        if found is not None:
            return [f"{changed[0]} = {_of_lambdas(scene, statement.test, found)}"]
    kept(scene, bodies, changed)
    results = Ends(changed, changed)
    target = f"{', '.join(changed)} = "
    return _cond_lines(scene, statement.test, (bodies[0], bodies[1]), results, target)


def _of_lambdas(scene: Scene, test: ast.expr, parts: Sequence[str]) -> str:
    written = ast.unparse(as_test(scene, test))
    return f"{scene.func}.cond({written}, {', '.join(f'lambda: {part}' for part in parts)})"


def _returned(block: Sequence[ast.stmt]) -> ast.expr | None:
    if len(block) == 1 and isinstance(block[0], ast.Return):
        return block[0].value
    return None


def _assigned(scene: Scene, bodies: Sequence[list[ast.stmt]], name: str) -> tuple[str, str] | None:
    """Return what a name is in both branches, if they do nothing but giving it a value."""
    values: list[ast.expr] = []
    for block in bodies:
        value: ast.expr = ast.Name(name, ast.Load())
        if block:
            (only, *more) = block
            if more or not isinstance(only, ast.Assign) or len(only.targets) != 1:
                return None
            if not isinstance(only.targets[0], ast.Name):
                return None
            value = only.value
        values.append(value)
    return alike(scene, *values)


def _check_result(scene: Scene, name: str, bodies: Sequence[list[ast.stmt]]) -> None:
    """Raise for a variable that is no tensor in both branches."""
    if all(surely_stored(name, block) for block in bodies):
        return
    scene.check_tensor(
        name,
        missing="gets a value in one branch alone: give it one before, of the same shape and dtype",
        other="where the branch is not taken: begin with a tensor of the shape and dtype that it "
        "gets",
    )
