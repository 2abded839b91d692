"""Contraction order of einsum: the one that takes least work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from numgrad.base.tuning import EINSUM_EVERY_ORDER

__all__ = ["Path", "contraction_path"]

Labels = frozenset[str]
Path = tuple[tuple[int, int], ...]


def contraction_path(
    terms: Sequence[Iterable[str]], output: Iterable[str], lengths: dict[str, int]
) -> Path:
    """Return which two operands to multiply in each step.

    They are told by their places in the list of what there still is, in which the product takes the
    place of the first. Of orders that take as much work, it is that from left to right.

    Parameters
    ----------
    terms : sequence of labels
        Those of the dims of every operand, none of them twice.
    output : labels
    lengths : dict
        How long the dim of each label is.

    Examples
    --------
    >>> contraction_path(["ij", "jk", "kl"], "il", {"i": 9, "j": 9, "k": 9, "l": 1})
    ((1, 2), (0, 1))
    """
    given = tuple([frozenset(term) for term in terms])
    if len(given) <= EINSUM_EVERY_ORDER:
        return _cheapest(given, frozenset(output), lengths)[1]
    return _greedy(given, frozenset(output), lengths)


def _contract(
    operands: tuple[Labels, ...], pair: tuple[int, int], output: Labels
) -> tuple[tuple[Labels, ...], Labels]:
    """Return what there is after a step, and the labels that its loops run over."""
    left, right = operands[pair[0]], operands[pair[1]]
    others = [term for place, term in enumerate(operands) if place not in pair]
    later = output.union(*others)
    # What only one of the two has and nobody needs later is summed before they are multiplied.
    loops = (left & right) | ((left | right) & later)
    product = loops & later
    after = list(operands)
    after[pair[0]] = product
    del after[pair[1]]
    return tuple(after), loops


def _size(labels: Labels, lengths: dict[str, int]) -> int:
    return prod([lengths[label] for label in labels])


def _pairs(count: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(count) for j in range(i + 1, count)]


def _cheapest(
    operands: tuple[Labels, ...], output: Labels, lengths: dict[str, int]
) -> tuple[int, Path]:
    """Return the least number of multiplications, and the first path that takes no more."""
    if len(operands) < 2:
        return 0, ()
    best: tuple[int, Path] | None = None
    for pair in _pairs(len(operands)):
        after, loops = _contract(operands, pair, output)
        work, path = _cheapest(after, output, lengths)
        work += _size(loops, lengths)
        if best is None or work < best[0]:
            best = work, (pair, *path)
    assert best is not None
    return best


def _greedy(operands: tuple[Labels, ...], output: Labels, lengths: dict[str, int]) -> Path:
    """Return a path whose every step leaves as little as one can, with as little work."""
    path: list[tuple[int, int]] = []
    while len(operands) > 1:
        best: tuple[tuple[int, int], tuple[int, int], tuple[Labels, ...]] | None = None
        for pair in _pairs(len(operands)):
            after, loops = _contract(operands, pair, output)
            gone = sum([_size(operands[place], lengths) for place in pair])
            cost = _size(after[pair[0]], lengths) - gone, _size(loops, lengths)
            if best is None or cost < best[0]:
                best = cost, pair, after
        assert best is not None
        path.append(best[1])
        operands = best[2]
    return tuple(path)
