"""Loop distribution: loops of few turns, in parts that LLVM makes vector instructions of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from numgrad.base.tuning import UNROLLED_LANES
from numgrad.codegen.expression import SCALAR
from numgrad.codegen.loop_passes import assigned, calls, names_in, walk
from numgrad.codegen.loops import (
    ZERO,
    Assign,
    Expression,
    For,
    Load,
    Name,
    Number,
    Statement,
    Store,
    call,
    names,
    type_code,
)

__all__ = ["distributed", "on_stack", "unseen"]

_STACK, _UNSEEN = names("numgrad.codegen.loop_runtime", "stack", "unseen")


def on_stack(name: str, dtype: np.dtype[Any], count: int | Name) -> Statement:
    """Return what makes an array that lives until the function returns."""
    return Assign(name, call(_STACK, type_code(dtype), count))


def unseen(turns: int) -> Expression:
    """Return a number of turns that LLVM cannot see.

    A loop of few turns it would unroll before it thinks of vectors, and then find none.
    """
    return call(_UNSEEN, turns)


def distributed(
    loop: For,
    turns: int,
    dtype_of: Callable[[str], np.dtype[Any] | None],
    head: Sequence[Statement] = (),
) -> list[Statement]:
    """Return a loop as several, if functions such as ``exp`` are computed once in each turn.

    First comes what leads to the function, in all turns; then the function, of several turns at a
    time; then what follows. What a loop hands on to later ones is in arrays in between.

    Parameters
    ----------
    loop : For
        From 0 on, without other arrays that hold something for one turn only.
    turns : int
        How many there are.
    dtype_of : callable
        Returns the dtype of a variable; None for what cannot be handed on: the loop stays as it is.
    head : sequence of Statement
        What each of the loops begins with: other indices, made of that of the loop.

    Examples
    --------
    >>> from numgrad.codegen.loops import Function
    >>> from numgrad.codegen.printer import print_module
    >>> i, power = Name("i"), Assign("y", call(Name("exp", SCALAR), "x"))
    >>> body = [Assign("x", Load(Name("a"), i)), power, Store(Name("b"), i, Name("y"))]
    >>> lines = distributed(For("i", ZERO, Number(2), body), 2, lambda name: np.dtype("float64"))
    >>> print(print_module([Function("f", ["a", "b"], lines)]).partition("def ")[2])
    f(a, b):
        xx = stack(np.float64, 4)
        for i in range(2, 4):
            store(xx, i, 0)
        xy = stack(np.float64, 4)
        for i in range(2, 4):
            store(xy, i, 0)
        for i in range(2):
            x = element(a, i)
            store(xx, i, x)
        for i in range(unseen(4)):
            x = element(xx, i)
            y = scalar.exp(x)
            store(xy, i, y)
        for i in range(2):
            y = element(xy, i)
            store(b, i, y)
    <BLANKLINE>
    """
    parts: list[tuple[list[Statement], bool]] = [([], False)]
    for line in loop.body:
        if type(line) is not For and calls(line, SCALAR):
            parts += [([line], True), ([], False)]
        else:
            parts[-1][0].append(line)
    handed = _handed_on([part for part, _ in parts], dtype_of) if len(parts) > 1 else None
    if handed is None:
        return [For(loop.index, ZERO, loop.last, [*head, *loop.body])]
    index = Name(loop.index)
    wide = -(-turns // UNROLLED_LANES) * UNROLLED_LANES if turns > 1 else turns
    lines: list[Statement] = []
    for name, dtype in handed.items():
        array = Name(f"x{name}")
        lines.append(on_stack(array.id, dtype, wide))
        if wide > turns:
            cleared = Store(array, index, ZERO)
            lines.append(For(index.id, Number(turns), Number(wide), [cleared]))
    for part, is_dear in parts:
        if not part:
            continue
        inside = _assigned(part)
        taken = [name for name in sorted(names_in(part).keys() - inside) if name in handed]
        body = [
            *head,
            *(Assign(name, Load(Name(f"x{name}"), index)) for name in taken),
            *part,
            *(Store(Name(f"x{n}"), index, Name(n)) for n in sorted(inside) if n in handed),
        ]
        is_alone = is_dear and not head and not any(type(node) is Load for node in walk(part))
        last = unseen(wide) if is_alone and wide > 1 else loop.last
        lines.append(For(index.id, ZERO, last, body))
    return lines


def _assigned(part: Sequence[Statement]) -> set[str]:
    return assigned(part) - {"far"}


def _handed_on(
    parts: Sequence[Sequence[Statement]], dtype_of: Callable[[str], np.dtype[Any] | None]
) -> Mapping[str, np.dtype[Any]] | None:
    """Return what parts hand on to later ones, with dtypes; None if there is more to it."""
    found: dict[str, np.dtype[Any]] = {}
    made: set[str] = set()
    for part in parts:
        inside = _assigned(part)
        for name in names_in(part):
            if name in made and name not in inside:
                dtype = dtype_of(name)
                if dtype is None:
                    return None
                found[name] = dtype
        made |= inside
    return found
