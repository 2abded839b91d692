"""The derivatives of reductions to positions: sums, products, means and extrema, with ties shared.

An element gets of a sum g, of a mean g over the count, of a product g times the product of the
others, and of an extremum its share of g, if it is one; g is that of its position. What is at a
position before counts as one element more, or has the gradient 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from numgrad.graph.tensor import Tensor, fresh
from numgrad.ops.core.catalogue import CATALOGUE
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.run_time import at_run_time
from numgrad.ops.movement.casts import cast
from numgrad.ops.pointwise.selection import where

__all__ = ["REDUCTIONS", "Moves", "input_gradient", "samples_of", "source_gradient"]

Array = np.ndarray[Any, Any]

REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


class Moves(NamedTuple):
    """A reduction to positions, and how elements are read and written there: by which primitives.

    Attributes
    ----------
    reducing : str
        The reduction itself.
    source : str
        What it calls the elements that are reduced.
    taking, adding, filling : str
        What reads elements at positions, adds to them, and sets them to a number.
    """

    reducing: str
    source: str
    taking: str
    adding: str
    filling: str

    @property
    def words(self) -> str:
        """The beginning of an error."""
        several = f">1 zeros in {self.source}"
        return f"{self.reducing}(): Double backward is unsupported for {self.source} when {several}"

    def take(self, tensor: Tensor, dim: int, index: Array) -> Tensor:
        """Return what is at the positions."""
        return _apply(self.taking, tensor, dim=dim, index=index)

    def add(self, tensor: Tensor, source: Tensor, dim: int, index: Array) -> Tensor:
        """Return the tensor with a source added there."""
        return _apply(self.adding, tensor, source, dim=dim, index=index)

    def clear(self, tensor: Tensor, dim: int, index: Array) -> Tensor:
        """Return the tensor with 0 there."""
        value = np.zeros((), tensor._array.dtype)
        return _apply(self.filling, tensor, dim=dim, index=index, value=value)

    def reduce(
        self,
        tensor: Tensor,
        source: Tensor,
        dim: int,
        index: Array,
        reduce: str,
        include_self: bool,
    ) -> Tensor:
        """Return the reduction itself."""
        options = {"reduce": reduce, "include_self": include_self}
        return _apply(self.reducing, tensor, source, dim=dim, index=index, **options)


def _apply(primitive: str, *operands: Tensor, **parameters: Any) -> Tensor:
    result: Tensor = CATALOGUE[primitive].apply(*operands, **parameters)
    return result


def samples_of(
    function: Callable[..., Tensor], index: Callable[[], Tensor], *reductions: str
) -> Any:
    """Return the calls at which tests differentiate a reduction of 3 positions of 4."""

    def sample(reduce: str, include_self: bool) -> Any:
        return lambda make: (
            lambda x, s: function(x, 1, index(), s, reduce, include_self=include_self),
            [make(2, 4, distinct=True), make(2, 3, distinct=True)],
            {},
        )

    return [sample(reduce, each) for reduce in reductions for each in (True, False)]


@at_run_time
def _check_zeros(counts: Array, words: str) -> Array:
    """Return how many zeros there are for positions; raise if several are for one."""
    if (counts > 1).any():
        raise RuntimeError(words)
    return counts


# A gradient that can be differentiated once more only where each position has one zero at most: of
# several, the product of the others does not say what it depends on.
_ONCE: Primitive = Primitive(
    "checked_once",
    "CloneBackward0",
    lambda array, counts, words: array.copy(),
    ["input", "counts"],
    [
        lambda g, counts, words: g + 0 * fresh(_check_zeros(counts._array, words=words)),
        None,
    ],
    listed=False,
)


def _zeros(like: Tensor) -> Tensor:
    return fresh(np.zeros(like._array.shape, like._array.dtype))


def _ones(like: Tensor) -> Tensor:
    return fresh(np.ones(like._array.shape, like._array.dtype))


def _counts(
    moves: Moves, g: Tensor, source: Tensor, at: tuple[int, Array], include_self: bool
) -> Tensor:
    """Return how many elements each mean is of, 1 for none."""
    own = _ones(g) if include_self else _zeros(g)
    counts = moves.add(own, _ones(source), *at)
    return where(counts == 0, 1, counts)


def _shared(
    moves: Moves,
    g: Tensor,
    y: Tensor,
    input: Tensor,
    source: Tensor,
    at: tuple[int, Array],
    include_self: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return which elements are extrema, of both tensors, and the share of each."""
    dtype = g._array.dtype
    own = cast(input == y, dtype)
    if not include_self:
        own = moves.clear(own, *at)
    theirs = cast(source == moves.take(y, *at), dtype)
    ties = moves.add(own, theirs, *at)
    return own, theirs, g / ties


def input_gradient(
    moves: Moves,
    g: Tensor,
    y: Tensor,
    input: Tensor,
    source: Tensor,
    at: tuple[int, Array],
    reduce: str,
    include_self: bool,
) -> Tensor:
    """Return the gradient of the tensor that is written to; `at` are a dim and positions."""
    if reduce == "prod":
        base = where(input == 0, 1, input)
        g = g * moves.reduce(base, source, *at, "prod", include_self) / base
    elif reduce == "mean":
        g = g / _counts(moves, g, source, at, include_self)
    elif reduce != "sum":
        own, _, share = _shared(moves, g, y, input, source, at, include_self)
        g = own * share
    return g if include_self else moves.clear(g, *at)


def source_gradient(
    moves: Moves,
    g: Tensor,
    y: Tensor,
    input: Tensor,
    source: Tensor,
    at: tuple[int, Array],
    reduce: str,
    include_self: bool,
) -> Tensor:
    """Return the gradient of the elements that are reduced."""
    if reduce == "sum":
        return moves.take(g, *at)
    if reduce == "mean":
        return moves.take(g / _counts(moves, g, source, at, include_self), *at)
    if reduce == "prod":
        is_zero = source == 0
        counts = moves.take(moves.add(_zeros(input), cast(is_zero, g._array.dtype), *at), *at)
        single = is_zero & (counts == 1)
        others = moves.reduce(input, where(single, 1, source), *at, "prod", include_self)
        found = where(
            single,
            moves.take(g * others, *at),
            moves.take(g * y, *at) / where(is_zero, 1, source),
        )
        words = f"{moves.words} are scattered to the same position in self"
        return _ONCE.apply(found, counts, words=words)
    _, theirs, share = _shared(moves, g, y, input, source, at, include_self)
    return theirs * moves.take(share, *at)
