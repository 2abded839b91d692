"""Loop order: in which order to walk arrays of any strides together, and which dims to merge.

Positions and steps count elements. The order is PyTorch's, so that a result has the strides that it
has there: the dims are sorted by the strides of the first operand that tells them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Walk", "contiguous_steps", "loop_order", "steps_of", "walk"]

Array = np.ndarray[Any, Any]


def loop_order(shape: tuple[int, ...], arrays: Sequence[Array]) -> tuple[int, ...]:
    """Return the dims of a shape in the order of the loops, the innermost last.

    Parameters
    ----------
    shape : tuple of int
        What the arrays broadcast to.
    arrays : sequence of array
        The operands, in the order in which they decide.

    Examples
    --------
    >>> a = np.zeros((3, 2)).T
    >>> loop_order((2, 3), [a])
    (1, 0)
    >>> loop_order((2, 3), [np.zeros((2, 3)), a])
    (0, 1)
    """
    strides = [_strides_of(shape, array) for array in arrays]
    order = list(range(len(shape)))[::-1]  # the innermost first while we sort
    for i in range(1, len(order)):
        here = i
        for before in range(i - 1, -1, -1):
            verdict = _compare(order[before], order[here], shape, strides)
            if verdict > 0:
                order[before], order[here] = order[here], order[before]
                here = before
            elif verdict < 0:
                break
    return tuple(order[::-1])


def _strides_of(shape: tuple[int, ...], array: Array) -> list[int]:
    """Return the strides of an array broadcast to a shape, also those along dims of length 1.

    These lead nowhere, but where dims have no stride to compare they decide between the others.
    """
    own = shape[len(shape) - array.ndim :]
    return [0] * (len(shape) - array.ndim) + [
        stride if length == wanted else 0
        for length, wanted, stride in zip(array.shape, own, array.strides, strict=True)
    ]


def _compare(
    inner: int, outer: int, shape: tuple[int, ...], strides: Sequence[Sequence[int]]
) -> int:
    """Return a positive number if two dims should change places, a negative one if not."""
    for steps in strides:
        one, other = abs(steps[inner]), abs(steps[outer])
        if one == 0 or other == 0:
            continue
        if one != other:
            return 1 if one > other else -1
        if shape[inner] > shape[outer]:
            return 1
    return 0


def steps_of(shape: tuple[int, ...], array: Array) -> list[int]:
    """Return how far a step along each dim leads in the memory of an array broadcast to a shape.

    Examples
    --------
    >>> steps_of((4, 2, 3), np.zeros((2, 1)))
    [0, 1, 0]
    """
    itemsize = array.itemsize
    own = [
        0 if length == 1 else stride // itemsize
        for length, stride in zip(array.shape, array.strides, strict=True)
    ]
    return [0] * (len(shape) - array.ndim) + own


def contiguous_steps(shape: Sequence[int]) -> list[int]:
    """Return the steps of a C-contiguous array of a shape, 0 along dims of length 1.

    Examples
    --------
    >>> contiguous_steps((4, 2, 3))
    [6, 3, 1]
    """
    steps, step = [], 1
    for length in reversed(shape):
        steps.append(step if length != 1 else 0)
        step *= length
    return steps[::-1]


class Walk(NamedTuple):
    """Nested loops over arrays: the fewest that visit every element.

    Attributes
    ----------
    lengths : list of int
        The length of each loop, the innermost last.
    steps : list of list of int
        For each array, how far a step of each loop leads in its memory.
    """

    lengths: list[int]
    steps: list[list[int]]


def walk(lengths: Sequence[int], steps: Sequence[Sequence[int]]) -> Walk:
    """Merge loops over several arrays that are one loop for all of them.

    Parameters
    ----------
    lengths : sequence of int
        The length of each loop, the innermost last.
    steps : sequence of sequence of int
        For each array, how far a step of each loop leads in its memory.

    Examples
    --------
    >>> walk((4, 5, 6), [[30, 6, 1], [0, 0, 1]])
    Walk(lengths=[20, 6], steps=[[6, 1], [0, 1]])
    """
    merged = Walk([], [[] for _ in steps])
    for loop, length in enumerate(lengths):
        if length == 1:
            continue
        here = [of_array[loop] for of_array in steps]
        if merged.lengths and all(
            done[-1] == length * step for done, step in zip(merged.steps, here, strict=True)
        ):
            merged.lengths[-1] *= length
            for done, step in zip(merged.steps, here, strict=True):
                done[-1] = step
        else:
            merged.lengths.append(length)
            for done, step in zip(merged.steps, here, strict=True):
                done.append(step)
    return merged if merged.lengths else Walk([1], [[1] for _ in steps])
