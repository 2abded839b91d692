"""Loops over drawn pytrees, and what they compute in plain Python."""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from typing import Any

import numpy as np
from hypothesis import strategies as st

import numgrad as ng
from numgrad.base import pytree

State = namedtuple("State", "first second")


@dataclasses.dataclass
class Box:
    content: Any


SHAPES = [(), (2,), (2, 3), (1, 0)]


def trees(leaves: Any, least: int = 1) -> Any:
    """Draw nested containers around drawn leaves."""
    tree = st.recursive(
        leaves,
        lambda child: st.one_of(
            st.lists(child, min_size=1, max_size=2),
            st.tuples(child, child),
            st.builds(State, child, child),
            st.builds(Box, child),
            st.dictionaries(st.sampled_from("abc"), child, min_size=1, max_size=2),
        ),
        max_leaves=3,
    )
    return tree if least else st.one_of(st.none(), tree)


def tensor_of(shape: tuple[int, ...], seed: int) -> Any:
    return ng.from_numpy(np.random.default_rng(seed).uniform(-1, 1, shape))


numbers = st.integers(0, 1000)
carries = trees(st.builds(tensor_of, st.sampled_from(SHAPES), numbers))


def columns(count: int) -> Any:
    """Draw what has `count` rows; None stands for no rows at all."""
    shapes = st.sampled_from(SHAPES).map(lambda shape: (count, *shape))
    return trees(st.builds(tensor_of, shapes, numbers), least=0)


def mixed(carry: Any, row: Any, weight: Any) -> tuple[Any, Any]:
    """Return a step's results, in which everything depends on everything."""
    leaves = [leaf for leaf in pytree.leaves((carry, row)) if leaf is not None]
    total = sum([leaf.sum() for leaf in leaves]) * weight
    after = pytree.map_tree(lambda leaf: (leaf * 0.7 + total).sin(), carry)
    return after, {"y": after, "more": [total * total]}


def written_out(step: Any, carry: Any, xs: Any, count: int, reverse: bool, dim: int) -> Any:
    """Return what a scan does, in plain Python."""
    ys = []
    for k in reversed(range(count)) if reverse else range(count):
        row = pytree.map_tree(lambda x, k=k: None if x is None else x.select(dim, k), xs)
        carry, y = step(carry, row)
        ys.append(y)
    if reverse:
        ys.reverse()
    spec = pytree.flatten(ys[0])[1]
    found = [
        ng.stack(parts, min(dim, parts[0].ndim))
        for parts in zip(*[pytree.leaves(y) for y in ys], strict=True)
    ]
    return carry, pytree.unflatten(spec, found)


def total(tree: Any) -> Any:
    """Return a number that depends on all that is in a tree, each element in its own way."""
    found = ng.zeros((), dtype=ng.float64)
    for number, leaf in enumerate(pytree.leaves(tree)):
        if leaf is not None and leaf.numel():
            weights = ng.from_numpy(np.cos(np.arange(leaf.numel()) + number))
            found = found + (leaf.reshape(-1).sin() * weights).sum()
    return found


def assert_close(first: Any, second: Any, tolerance: float = 1e-9) -> None:
    """Compare structure, shapes, dtypes and numbers."""
    (leaves, spec), (others, other_spec) = pytree.flatten(first), pytree.flatten(second)
    assert spec == other_spec
    for one, other in zip(leaves, others, strict=True):
        if one is None or other is None:
            assert one is other
            continue
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(
            one.detach().numpy(), other.detach().numpy(), rtol=tolerance, atol=tolerance
        )
