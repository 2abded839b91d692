"""Mapped operations that are made of others: each example gives what it gives by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import numgrad as ng

Call = Callable[..., Any]
POSITIONS = ng.tensor([0, 2, 0])
MASK = ng.tensor([[True, False, True, True], [False] * 4, [True] * 4])

# What is called, and the shapes of what it is called with.
CALLS: dict[str, tuple[Call, list[tuple[int, ...]]]] = {
    "block_diag": (lambda a, b, c: ng.block_diag(a, b, c), [(2, 3), (4,), ()]),
    "block_diag of rows": (lambda a, b: ng.block_diag(a, b), [(1, 2), (3, 1)]),
    "index_fill": (lambda x, v: x.index_fill(0, POSITIONS, v), [(3, 4), ()]),
    "index_fill of columns": (lambda x, v: x.index_fill(1, POSITIONS, v), [(3, 4), ()]),
    "index_fill in the middle": (lambda x, v: x.index_fill(1, POSITIONS, v), [(2, 3, 4), ()]),
    "index_fill of the first": (lambda x, v: x.index_fill(0, POSITIONS, v), [(3, 2, 4), ()]),
    "index_fill of a number": (lambda x, v: x.index_fill(0, POSITIONS[:1], v), [(), ()]),
    "masked_fill": (lambda x, v: x.masked_fill(MASK, v), [(3, 4), ()]),
    "masked_select": (lambda x: x.masked_select(MASK), [(3, 4)]),
    "masked_select of a row": (lambda x: x.masked_select(MASK), [(4,)]),
    "fill": (lambda x, v: x.clone().fill_(v), [(3, 4), ()]),
    "take": (lambda x: x.take(POSITIONS), [(2, 2)]),
    "trace": (lambda x: x.trace(), [(3, 4)]),
    "addr": (lambda x, a, b: x.addr(a, b), [(2, 3), (2,), (3,)]),
}


@pytest.mark.parametrize("name", CALLS)
def test_each_example_gives_what_it_gives_alone(name: str) -> None:
    call, shapes = CALLS[name]
    given = [ng.randn((5, *shape), dtype=ng.float64) for shape in shapes]
    alone = [[each[k] for each in given] for k in range(5)]
    expected = ng.stack([call(*each) for each in alone])
    assert ng.allclose(ng.func.vmap(call)(*given), expected, 1e-12, 1e-12)

    def slope(*operands: Any) -> Any:
        return ng.func.grad(lambda *given: call(*given).sin().sum(), argnums=0)(*operands)

    found, expected = ng.func.vmap(slope)(*given), ng.stack([slope(*each) for each in alone])
    assert ng.allclose(found, expected, 1e-12, 1e-12)
