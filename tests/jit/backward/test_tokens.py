"""Which nodes of a backward pass count as alike, and as a part of another."""

from __future__ import annotations

import functools
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

import numgrad as ng
from numgrad.jit.backward import tokens
from numgrad.jit.backward.tokens import metas_of

pytestmark = pytest.mark.usefixtures("traced")

Binary = Callable[[Any, Any], Any]
BINARY: dict[str, Binary] = {
    "mul": ng.mul,
    "div": ng.div,
    "hypot": ng.hypot,
    "dot": ng.dot,
    "maximum": ng.maximum,
    "where": lambda x, y: ng.where(x.detach() > 0, x, y),
}


def token_of(node: Any) -> Any:
    """Return what is equal for nodes that record the same."""
    return tokens.token_of(node, metas_of([node]))


def is_alike_in_part(node: Any, like: Any) -> bool:
    """Whether a node records a part of what another one does."""
    return tokens.is_alike_in_part(node, like, metas_of([node, like]))


def in_a_trace(check: Callable[..., None]) -> Callable[..., None]:
    """Have a test run while a function is traced: what is remembered of calls has no part there."""
    done: list[bool] = []

    @functools.wraps(check)
    def test(**given: Any) -> None:
        def function(x: Any) -> Any:
            check(**given)
            done.append(True)
            return x * 2

        ng.jit(function)(ng.ones(2))
        assert done

    return test


def _node(function: Binary, takes: frozenset[int]) -> Any:
    """Return the node of an operation of which some operands require gradients."""
    operands = [
        ng.full((3,), 0.5 + at, dtype=ng.float64, requires_grad=at in takes) for at in range(2)
    ]
    return function(*operands).grad_fn


BOTH, LEFT, RIGHT = frozenset({0, 1}), frozenset({0}), frozenset({1})


@pytest.mark.parametrize("name", BINARY)
@in_a_trace
def test_a_part_has_gradients_of_no_more_operands(name: str) -> None:
    function = BINARY[name]
    for own, other in product((BOTH, LEFT, RIGHT), repeat=2):
        node, like = _node(function, own), _node(function, other)
        assert is_alike_in_part(node, like) == (own <= other)
        assert (token_of(node) == token_of(like)) == (own == other)


UNLIKE: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = [
    (lambda m: m.sum(0), lambda m: m.sum(1)),
    (lambda m: m.sum(0), lambda m: m.sum(0, keepdim=True)),
    (lambda m: m.clamp(min=0.5), lambda m: m.clamp(min=0.25)),
    (lambda m: m.transpose(0, 1), lambda m: m.transpose(0, 1).contiguous()),
    (lambda m: m.roll(1, 0), lambda m: m.roll(2, 0)),
    (lambda m: m.sin(), lambda m: m.t().sin()),
]


@pytest.mark.parametrize("pair", UNLIKE)
@in_a_trace
def test_other_parameters_and_layouts_are_told_apart(pair: Any) -> None:
    m = ng.ones(3, 3, dtype=ng.float64, requires_grad=True) * 1
    nodes = [function(m).grad_fn for function in pair]
    again = [function(m).grad_fn for function in pair]
    for node, like in product(range(2), repeat=2):
        assert (token_of(nodes[node]) == token_of(again[like])) == (node == like)


@pytest.mark.parametrize("function", [lambda m: -m, lambda m: 1 - m * 2, lambda m: m + m])
@in_a_trace
def test_shapes_and_dtypes_are_told_apart_where_nothing_is_saved(function: Any) -> None:
    made = [
        function(ng.ones(shape, dtype=dtype, requires_grad=True)).grad_fn
        for shape in ((2,), (1,), (2, 1), (1, 2))
        for dtype in (ng.float32, ng.float64)
    ]
    for node, like in product(made, repeat=2):
        assert (token_of(node) == token_of(like)) == (node is like)
        assert is_alike_in_part(node, like) == (node is like)


@in_a_trace
def test_what_somebody_sees_or_has_written_to_is_like_nothing() -> None:
    def made() -> Any:
        x = ng.ones(3, requires_grad=True)
        return x, (x * 1).sin()

    (_, y), (_, z) = made(), made()
    assert is_alike_in_part(y.grad_fn, z.grad_fn)
    y.grad_fn.register_hook(lambda *_: None)
    assert token_of(y.grad_fn) is None and not is_alike_in_part(y.grad_fn, z.grad_fn)
    x = ng.ones(3, requires_grad=True)
    kept = x * 1
    node = kept.sin().grad_fn
    kept.add_(1)
    assert not is_alike_in_part(node, z.grad_fn)
    x = ng.ones(3, requires_grad=True)
    leaf = (x * 2).grad_fn
    assert token_of(leaf) is not None and token_of(leaf) != token_of((x * 1 * 2).grad_fn)
    x.grad = ng.ones(3)
    assert token_of(leaf) is None
