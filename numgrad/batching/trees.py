"""Dims of batches, given for parts of a pytree."""

from __future__ import annotations

from typing import Any

from numgrad.base import pytree

__all__ = ["spread"]


def spread(dims: Any, spec: pytree.TreeSpec) -> list[Any] | None:
    """Return the dim of each leaf of a pytree, given one for each leaf or each subtree.

    None if the structures differ.

    Examples
    --------
    >>> from numgrad.base.pytree import flatten
    >>> spread((0, None), flatten(({"w": 1, "b": 2}, 3))[1])
    [0, 0, None]
    """
    found, own = pytree.flatten(dims)
    rest = iter(found)

    def walk(own: pytree.TreeSpec, spec: pytree.TreeSpec) -> list[Any] | None:
        if own.type is None:
            return [next(rest)] * spec.num_leaves
        same = own.type is spec.type and own.context == spec.context
        if not same or len(own.children) != len(spec.children):
            return None
        found: list[Any] = []
        for pair in zip(own.children, spec.children, strict=True):
            part = walk(*pair)
            if part is None:
                return None
            found += part
        return found

    return walk(own, spec)
