"""Passes over the loop IR: what is used and assigned in it, and the same with parts replaced."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from numgrad.codegen.loops import (
    Assign,
    Attribute,
    Call,
    Choice,
    Do,
    Fold,
    For,
    Function,
    If,
    Infix,
    Interpreted,
    Load,
    Name,
    Prefix,
    Return,
    Statement,
    Store,
    Tuple,
    Unpack,
    While,
)

__all__ = [
    "assigned",
    "calls",
    "in_inner_loops",
    "in_order",
    "names_in",
    "read_arrays",
    "rewritten",
    "statement_count",
    "walk",
    "without_stores",
]

# What nodes are made of, in the order of the source.
_PARTS: dict[type, tuple[str, ...]] = {
    Infix: ("left", "right"),
    Prefix: ("operand",),
    Choice: ("yes", "condition", "no"),
    Attribute: ("value",),
    Tuple: ("items",),
    Call: ("function", "arguments"),
    Load: ("array", "index"),
    Assign: ("value",),
    Unpack: ("value",),
    Store: ("array", "index", "value"),
    Do: ("value",),
    For: ("first", "last", "step", "body"),
    Fold: ("value", "place", "each"),
    While: ("condition", "body"),
    If: ("condition", "then", "otherwise"),
    Interpreted: ("body",),
    Return: ("value",),
    Function: ("body",),
}
_REVERSED = {kind: parts[::-1] for kind, parts in _PARTS.items()}


def walk(nodes: Any) -> Iterator[Any]:
    """Yield nodes and all that they are made of, in the order of the source."""
    stack = [nodes]
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind is tuple or kind is list:
            stack.extend(reversed(node))
            continue
        yield node
        for part in _REVERSED.get(kind, ()):
            stack.append(getattr(node, part))


def rewritten(node: Any, change: Callable[[Any], Any]) -> Any:
    """Return a node, or a sequence of them, with what `change` gives for it and for its parts.

    Parts come first. For a statement `change` may return several in a list, or none.
    """
    if isinstance(node, tuple | list):
        changed: list[Any] = []
        for each in node:
            result = rewritten(each, change)
            changed.extend(result if isinstance(result, list) else (result,))
        if len(changed) == len(node) and all(map(operator.is_, changed, node)):
            return node
        return changed if isinstance(node, list) else tuple(changed)
    new = {}
    for part in _PARTS.get(type(node), ()):
        before = getattr(node, part)
        after = rewritten(before, change)
        if after is not before:
            new[part] = after
    return change(replace(node, **new) if new else node)


def statement_count(nodes: Any) -> int:
    """Return how many statements there are."""
    return sum(isinstance(node, Statement) for node in walk(nodes))


def names_in(nodes: Any) -> dict[str, None]:
    """Return the variables that are read, in the order in which they are met."""
    return {node.id: None for node in walk(nodes) if type(node) is Name and not node.module}


def in_order(
    statements: Sequence[Statement], given: Sequence[str]
) -> tuple[list[Statement], dict[str, str]]:
    """Return statements whose variables are named by the order in which they come.

    What does the same under other names becomes equal.

    Parameters
    ----------
    statements : sequence of Statement
        Without a `Fold` or `Interpreted` in them.
    given : sequence of str
        Variables that they are given, which come first.

    Returns
    -------
    statements : list of Statement
    names : dict
        The new names.
    """
    new = {name: f"a{k}" for k, name in enumerate(given)}
    for node in walk(statements):
        kind = type(node)
        targets = node.targets if kind is Unpack else ()
        if kind is Assign or kind is For:
            targets = (node.target if kind is Assign else node.index,)
        for target in targets:
            new.setdefault(target, f"v{len(new) - len(given)}")

    def change(node: Any) -> Any:
        match node:
            case Name(name, ""):
                return Name(new[name]) if name in new else node
            case Assign():
                return Assign(new[node.target], node.value)
            case Unpack():
                return Unpack(tuple([new[target] for target in node.targets]), node.value)
            case For():
                return replace(node, index=new[node.index])
            case Store() | Do() if node.origin:
                return replace(node, origin="")
        return node

    return rewritten(list(statements), change), new


def assigned(statements: Iterable[Statement]) -> set[str]:
    """Return the variables that statements give a value, not those of loops in them."""
    return {each.target for each in statements if type(each) is Assign}


def calls(nodes: Any, module: str) -> bool:
    """Whether a function of a module is called."""
    return any(type(node) is Name and node.module == module for node in walk(nodes))


def read_arrays(nodes: Any) -> set[str]:
    """Return the variables that are read otherwise than for a store to an array of that name."""
    read: set[str] = set()
    stack = [nodes]
    while stack:
        node = stack.pop()
        if isinstance(node, tuple | list):
            stack.extend(node)
        elif type(node) is Store:
            own = {node.array.id} if type(node.array) is Name else set()
            read |= names_in((node.array, node.index, node.value)).keys() - own
        elif type(node) is Name:
            read.add(node.id)
        else:
            stack.extend(getattr(node, part) for part in _PARTS.get(type(node), ()))
    return read


def in_inner_loops(
    statements: Sequence[Statement], change: Callable[[For], list[Statement]]
) -> list[Statement]:
    """Return statements with what `change` gives for each loop that has no loop in it."""
    lines: list[Statement] = []
    for line in statements:
        if type(line) is not For:
            lines.append(line)
        elif any(type(each) is For for each in line.body):
            lines.append(replace(line, body=in_inner_loops(line.body, change)))
        else:
            lines += change(line)
    return lines


def without_stores(statements: Sequence[Statement], arrays: set[str]) -> list[Statement]:
    """Return statements but for those that write to arrays of these names."""

    def change(node: Any) -> Any:
        unread = type(node) is Store and type(node.array) is Name and node.array.id in arrays
        return [] if unread else node

    return rewritten(list(statements), change) if arrays else list(statements)
