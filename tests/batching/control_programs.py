"""Drawn functions of one example with branches and loops, of which each example goes its own way.

A program is a list of statements that change ``x``, of three elements; conditions, numbers of turns
and positions follow from x, so that they differ between examples. Some branches are traps: of an
example that does not take them they would take the logarithm or the root of what is negative,
divide by zero, or look behind the end of a table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

import numgrad as ng
from numgrad.func import associative_scan, cond, fori_loop, map, scan, switch, while_loop

TABLE = ng.tensor([0.3, -0.8, 1.1, 0.6], dtype=ng.float64)

Program = tuple[Any, ...]

_plain = st.sampled_from(["sine", "product", "closure", "rows", "mapped"])
_nesting = st.sampled_from(["cond", "trap", "while", "fori", "switch", "lookup", "scan"])
_levels = st.sampled_from([-0.6, -0.1, 0.3, 0.9])


def programs(depth: int = 2) -> Any:
    """Draw programs with branches and loops as deep as that."""
    statement: Any = st.tuples(_plain)
    if depth:
        body = programs(depth - 1)
        statement = st.one_of(
            statement, st.tuples(_nesting, _levels, body, body), st.tuples(_nesting, _levels, body)
        )
    return st.lists(statement, min_size=1, max_size=2).map(tuple)


def nesting_programs(depth: int = 1) -> Any:
    """Draw programs that begin with a branch or a loop, and what nests in that as deep."""
    body = programs(depth)
    return st.tuples(st.tuples(_nesting, _levels, body, body), st.tuples(_plain))


def function_of(program: Program, weight: Any) -> Callable[[Any], Any]:
    """Return a program as a function of an example, and of a weight that is one for all."""

    def function(a: Any) -> Any:
        return _run(program, a, a, weight)

    return function


def _run(program: Program, x: Any, a: Any, w: Any) -> Any:
    for statement in program:
        x = _STATEMENTS[statement[0]](x, a, w, *statement[1:])
    return x


def _turns(x: Any) -> Any:
    """Return a number of turns, of 0 to 3."""
    return (x.detach()[0] * 5).abs().clamp(0, 3).to(ng.int64)


def _cond(x: Any, a: Any, w: Any, level: float, first: Any, second: Any = ()) -> Any:
    return cond(x.sum() > level, lambda x: _run(first, x, a, w), lambda x: _run(second, x, x, w), x)


def _trap(x: Any, a: Any, w: Any, level: float, first: Any, second: Any = ()) -> Any:
    top = (x[0] - level).reshape(())

    def above() -> Any:
        return _run(first, x * top.log() + top.sqrt(), a, w).tanh()

    def below() -> Any:
        return _run(second, x + (-top).sqrt() * w, a, w) / (1 - top)

    return cond(top > 0.01, above, lambda: cond(top < -0.01, below, lambda: x * w))


def _while(x: Any, a: Any, w: Any, level: float, body: Any, other: Any = ()) -> Any:
    turns = _turns(x)

    def goes_on(k: Any, x: Any) -> Any:
        return (k < turns).logical_and(x[1] > level - 2)

    def step(k: Any, x: Any) -> Any:
        # The distance to the last turn: of an example that is done it is not positive.
        return k + 1, _run(body, x, a, w) * (turns - k).to(ng.float64).log() * 0.5 + 0.1

    return _run(other, while_loop(goes_on, step, (ng.tensor(0), x))[1], a, w)


def _fori(x: Any, a: Any, w: Any, level: float, body: Any, other: Any = ()) -> Any:
    return fori_loop(
        1, _turns(x) + 1, lambda i, x: _run(body, x, a, w) / i + _run(other, a * level, a, w), x
    )


def _switch(x: Any, a: Any, w: Any, level: float, first: Any, second: Any = ()) -> Any:
    branches = [
        lambda x: _run(first, x, a, w),
        lambda x: _run(second, x, x, w).sin(),
        lambda x: x * level + w,
    ]
    return switch(_turns(x) - 1, branches, x)


def _lookup(x: Any, a: Any, w: Any, level: float, body: Any, other: Any = ()) -> Any:
    """Add up the first entries of a table: whoever is done would look further."""
    turns = 1 + _turns(x)

    def step(k: Any, x: Any) -> Any:
        return k + 1, _run(body, x, a, w).tanh() + TABLE[k] * a

    start = cond(turns > 2, lambda: x * TABLE[turns - 1], lambda: _run(other, x, a, w) * level)
    return while_loop(lambda k, x: k < turns, step, (turns * 0, start))[1]


def _scan(x: Any, a: Any, w: Any, level: float, body: Any, other: Any = ()) -> Any:
    def step(carry: Any, row: Any) -> Any:
        carry = _run(body, carry * row.cos(), a, w).tanh()
        return carry, carry * level + w

    # The first carry is one for all examples, the next ones are not.
    carry, stacked = scan(step, ng.zeros(3, dtype=ng.float64), x)
    return _run(other, carry + stacked.sum(0), a, w)


_STATEMENTS: dict[str, Callable[..., Any]] = {
    "sine": lambda x, a, w: (x * 1.3).sin() + 0.2,
    "product": lambda x, a, w: x * w + x.roll(1, 0) * 0.5,
    "closure": lambda x, a, w: (x - a).cos() * a,
    "rows": lambda x, a, w: associative_scan(lambda p, q: p * q + q, x),
    "mapped": lambda x, a, w: map(lambda r: (r * a).sum().sin() + w[0], x),
    "cond": _cond,
    "trap": _trap,
    "while": _while,
    "fori": _fori,
    "switch": _switch,
    "lookup": _lookup,
    "scan": _scan,
}
