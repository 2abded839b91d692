"""Write loops that go by traced values as calls of `while_loop` and `fori_loop`."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.jit.advice.branches import Ends, block_lines, branch, indented
from numgrad.jit.advice.carries import Carries
from numgrad.jit.advice.names import called_name, fresh, leaves_of, loaded_in, stored_in
from numgrad.jit.advice.rewriting import check_block, clones, out_of_place
from numgrad.jit.advice.scene import NoAdvice, Scene, parsed
from numgrad.jit.advice.truth import as_number, as_test

__all__ = ["loop"]


def loop(
    scene: Scene, statement: ast.For | ast.While, live: set[str], tail: list[ast.stmt]
) -> list[str]:
    """Return a loop as a call of `while_loop` or `fori_loop`.

    Parameters
    ----------
    scene : Scene
    statement : For or While
    live : set of str
        What is read behind it.
    tail : list of stmt
        What is behind it in the function, which is a part of it if the loop returns.
    """
    leaves = leaves_of(statement.body)
    returns = [node for node in leaves if isinstance(node, ast.Return)]
    breaks = any(isinstance(node, ast.Break) for node in leaves)
    if returns and (breaks or len(returns) > 1):
        raise NoAdvice("it is left in several ways: leave it by one `break`, and return behind it")
    if returns:
        return _with_return(scene, statement, live, tail, returns[0])
    if isinstance(statement, ast.For):
        if not breaks:
            return [*_counted(scene, statement, live), *_lines(statement.orelse)]
        before, statement = _as_while(scene, statement, live)
    else:
        before = []
    lines, flag = _while(scene, statement, live, breaks)
    if breaks and statement.orelse:
        chosen = ast.If(ast.Name(flag, ast.Load()), statement.orelse, [])
        return [*before, *lines, *branch(scene, chosen, live, None)]
    return [*before, *lines, *_lines(statement.orelse)]


def _lines(block: Sequence[ast.stmt]) -> list[str]:
    return [line for statement in block for line in ast.unparse(statement).splitlines()]


class _Breaking(ast.NodeTransformer):
    """Puts a `break` in the place of a `return`."""

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        return ast.Break()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        return node


def _with_return(
    scene: Scene,
    statement: ast.For | ast.While,
    live: set[str],
    tail: list[ast.stmt],
    returned: Any,
) -> list[str]:
    """Return a loop that is left by one `return`: it breaks, and what is behind it returns."""
    if returned.value is None:
        raise NoAdvice("it returns nothing on one way, which is no tensor")
    live = {*live, *loaded_in([returned.value])}
    statement.body = [_Breaking().visit(each) for each in statement.body]
    before: list[str] = []
    orelse, statement.orelse = statement.orelse, []
    if isinstance(statement, ast.For):
        before, statement = _as_while(scene, statement, live)
    lines, flag = _while(scene, statement, live, True)
    lines = [*before, *lines]
    if isinstance(statement.test, ast.Constant):
        return [*lines, f"return {ast.unparse(returned.value)}"]
    chosen = ast.If(ast.Name(flag, ast.Load()), [*orelse, *tail], [ast.Return(returned.value)])
    return [*lines, *branch(scene, chosen, set(), Ends(None, returns=True))]


def _while(
    scene: Scene, statement: ast.While, live: set[str], breaks: bool
) -> tuple[list[str], str]:
    """Return a call of `while_loop`, and the name of the flag that it goes by, if it breaks."""
    test = statement.test
    named = [node for node in ast.walk(test) if isinstance(node, ast.NamedExpr)]
    for node in named:
        if node.target.id in live:
            raise NoAdvice(f"`{node.target.id}` is read behind the loop, and is of its last test")
    given: list[ast.stmt] = [ast.Assign([each.target], each.value, lineno=0) for each in named]
    block = out_of_place(scene, [*given, *statement.body])
    check_block(scene, block, [test])
    carries = Carries(scene, block, live, test)
    flag = ""
    names = carries.names
    if breaks:
        flag = fresh("goes_on", scene.taken)
        scene.known[flag] = True
        scene.carried.add(flag)
    block = [*clones(scene, block, names), *carries.adapted(block)]
    if len(names) == 1 and not breaks and isinstance(scene.known[names[0]], (tuple, list)):
        scene.casts[names[0]] = f"({names[0]},)"
    body_fn = fresh("body_fn", scene.taken)
    extra = (["True"], ["False"]) if breaks else ([], [])
    ends = Ends([*names, *extra[0]], [*names, *extra[0]], [*names, *extra[1]])
    whole = [*names, flag] if breaks else names
    (test,) = carries.adapted([test])
    condition = ast.unparse(as_test(scene, _with_flag(flag, test)))
    lines = [
        *carries.before,
        f"def {body_fn}({', '.join(whole)}):",
        *indented(block_lines(scene, block, ends)),
    ]
    start = [*map(carries.start, names), *extra[0]]
    carry = start[0] if len(start) == 1 else f"({', '.join(start)})"
    target = ", ".join(whole)
    if len(whole) == 1 and isinstance(scene.known[target], (tuple, list)):
        carry = target = f"({target},)"  # or each item would be an argument
    call = f"{scene.func}.while_loop(lambda {', '.join(whole)}: {condition}, {body_fn}, {carry})"
    return [*lines, f"{target} = {call}"], flag


def _with_flag(flag: str, test: ast.expr) -> ast.expr:
    if not flag:
        return test
    name = ast.Name(flag, ast.Load())
    if isinstance(test, ast.Constant) and test.value:
        return name
    return ast.BoolOp(ast.And(), [name, test])


def _range(scene: Scene, statement: ast.For) -> tuple[ast.expr, ast.expr, int]:
    """Return where a loop over a range starts and stops, and its step."""
    call = statement.iter
    if not isinstance(call, ast.Call) or called_name(call) != "range" or call.keywords:
        raise NoAdvice(
            f"it goes through `{ast.unparse(call)}`: stack what it goes through, and write it as a "
            "scan, or go through a range"
        )
    bounds = call.args
    start = bounds[0] if len(bounds) > 1 else ast.Constant(0)
    step = ast.literal_eval(bounds[2]) if len(bounds) > 2 and _is_literal(bounds[2]) else 1
    if len(bounds) > 2 and (not _is_literal(bounds[2]) or not step):
        raise NoAdvice("the step of its range is not written as a number")
    return start, bounds[-1 if len(bounds) == 1 else 1], step


def _is_literal(node: ast.expr) -> bool:
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant) and isinstance(inner.value, int)


def _over_rows(scene: Scene, statement: ast.For) -> ast.For:
    """Return a loop over the rows of a tensor as one over a range."""
    rows = statement.iter
    if not isinstance(rows, ast.Name) or not isinstance(scene.known.get(rows.id), Tensor):
        return statement
    if rows.id in stored_in(statement.body):
        return statement
    name = fresh("k", scene.taken)
    taken = parsed(f"{rows.id}[{name}]")
    first = ast.Assign([statement.target], taken, lineno=0)
    scene.known[name] = 0
    target = ast.Name(name, ast.Store())
    call = parsed(f"range(len({rows.id}))")
    return ast.For(target, call, [first, *statement.body], statement.orelse)


def _as_while(scene: Scene, statement: ast.For, live: set[str]) -> tuple[list[str], ast.While]:
    """Return a `for` as a `while` that counts, and what is before it."""
    statement = _over_rows(scene, statement)
    start, stop, step = _range(scene, statement)
    counter = _counter(statement, live)
    lines = [f"{counter} = {ast.unparse(as_number(scene, start))}"]
    scene.known[counter] = 0
    stop = as_number(scene, stop)
    if loaded_in([stop]) & set(stored_in([*statement.body, statement.target])):
        name = fresh("stop", scene.taken)
        lines.append(f"{name} = {ast.unparse(stop)}")
        stop = ast.Name(name, ast.Load())
    sign = "<" if step > 0 else ">"
    test = parsed(f"{counter} {sign} {ast.unparse(stop)}")
    following = ast.parse(f"{counter} = {counter} + {step}".replace("+ -", "- ")).body
    body = _Counting(following).visit(ast.Module(statement.body, [])).body
    return lines, ast.While(test, [*body, *following], statement.orelse)


class _Counting(ast.NodeTransformer):
    """Counts before each `continue`."""

    def __init__(self, following: list[ast.stmt]) -> None:
        self._following = following

    def visit_Continue(self, node: ast.Continue) -> Any:
        return [*self._following, node]

    def visit_For(self, node: Any) -> Any:
        return node

    visit_While = visit_FunctionDef = visit_For


def _counter(statement: ast.For, live: set[str]) -> str:
    target = statement.target
    if not isinstance(target, ast.Name):
        raise NoAdvice("it counts with more than one variable")
    if target.id in live:
        raise NoAdvice(f"`{target.id}` is read behind the loop: keep it in a variable of its own")
    if target.id in stored_in(statement.body):
        raise NoAdvice(f"it gives `{target.id}`, which counts its turns, another value")
    return target.id


def _counted(scene: Scene, statement: ast.For, live: set[str]) -> list[str]:
    """Return a `for` over a range as a call of `fori_loop`."""
    statement = _over_rows(scene, statement)
    start, stop, step = _range(scene, statement)
    if step != 1:
        before, loop = _as_while(scene, statement, live)
        return [*before, *_while(scene, loop, live, False)[0]]
    counter = _counter(statement, live)
    bounds = [ast.unparse(as_number(scene, each)) for each in (start, stop)]
    scene.known[counter] = 0
    block = out_of_place(scene, statement.body)
    check_block(scene, block)
    carries = Carries(scene, block, live, None, counter)
    names = carries.names
    one = len(names) == 1
    carry = fresh("carry", scene.taken) if not one else names[0]
    block = [*clones(scene, block, names), *carries.adapted(block)]
    body_fn = fresh("body_fn", scene.taken)
    lines = [*carries.before, f"def {body_fn}({counter}, {carry}):"]
    if not one:
        lines.append(f"    {', '.join(names)} = {carry}")
    lines += indented(block_lines(scene, block, Ends(names, names)))
    given = [carries.start(name) for name in names]
    whole = given[0] if one else f"({', '.join(given)})"
    call = f"{scene.func}.fori_loop({bounds[0]}, {bounds[1]}, {body_fn}, {whole})"
    return [*lines, f"{', '.join(names)} = {call}"]
