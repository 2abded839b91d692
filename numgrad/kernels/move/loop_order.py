"""Loop order: in which order to walk arrays of any strides together, and which dims to merge.

Positions and steps count elements. The order is PyTorch's, so that a result has the strides that it
has there: the dims are sorted by the strides of the first operand that tells them apart. Operands
of one shape that are all contiguous, or have the same dense strides, are not sorted: results lie as
they do, also along dims of length 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "BY_ROWS",
    "NUMBER",
    "ResultOrder",
    "Walk",
    "beside_number",
    "contiguous_steps",
    "copy_order",
    "loop_order",
    "result_order",
    "steps_of",
    "walk",
]

Array = np.ndarray[Any, Any]

# What a number counts as that PyTorch makes a tensor without dims of.
NUMBER: Array = np.zeros(())
NUMBER.flags.writeable = False


def beside_number(arrays: list[Array]) -> list[Array]:
    """Return what decides how a result lies where a parameter is a tensor without dims to PyTorch.

    >>> len(beside_number([np.zeros(2)]))
    2
    """
    return [*arrays, NUMBER]


class _Place(NamedTuple):
    """Where an array lies, in as far as a result goes by it."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    ndim: int
    itemsize: int


class ResultOrder(NamedTuple):
    """How the result of a loop lies in memory, which has no gaps.

    Attributes
    ----------
    dims : tuple of int or None
        The dims in the order of memory, the innermost last; None if that is theirs.
    strides : tuple of int or None
        In elements, where dims of length 1 have others than those of new memory in that order.
    """

    dims: tuple[int, ...] | None
    strides: tuple[int, ...] | None

    def shape_in_memory(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return a shape with its dims in the order of memory."""
        return shape if self.dims is None else tuple([shape[dim] for dim in self.dims])

    def placer(self, shape: tuple[int, ...]) -> Callable[[Array], Array] | None:
        """Return what makes a result of a shape of memory that has its dims in their order.

        None if that is the memory itself.

        >>> ResultOrder((1, 0), None).placer((2, 3))(np.zeros((3, 2))).strides
        (8, 16)
        >>> ResultOrder(None, (1, 7)).placer((2, 1))(np.zeros((2, 1))).strides
        (8, 56)
        """
        steps = self.strides
        if steps is not None:

            def with_strides(memory: Array) -> Array:
                itemsize = memory.itemsize
                strides = tuple([step * itemsize for step in steps])
                return np.ndarray(shape, memory.dtype, memory, 0, strides)

            return with_strides
        if self.dims is None:
            return None
        back = tuple(np.argsort(self.dims).tolist())
        return lambda memory: memory.transpose(back)


BY_ROWS = ResultOrder(None, None)


def result_order(shape: tuple[int, ...], places: Sequence[Any]) -> ResultOrder:
    """Return how PyTorch lays out what a loop over some operands makes.

    Parameters
    ----------
    shape : tuple of int
        What the operands broadcast to.
    places : sequence
        What has a shape, strides and a number of dims, for each operand, in the order in which they
        decide: arrays, and `NUMBER` for a number that PyTorch makes a tensor of.

    Examples
    --------
    >>> column = np.zeros((1, 3)).T
    >>> result_order((3, 1), [column]), result_order((3, 1), [column, NUMBER])
    (ResultOrder(dims=None, strides=None), ResultOrder(dims=(1, 0), strides=None))
    """
    if len(shape) < 2 or not places:
        return BY_ROWS
    if all(place.shape == shape for place in places):
        steps = [_own_steps(place) for place in places]
        dims: Sequence[int]
        for dims in _CONTIGUOUS_ORDERS.get(len(shape), [range(len(shape))]):
            if all(_goes_in_order(shape, own, dims) for own in steps):
                return ResultOrder(_unless_rows(dims), None)
        first = steps[0]
        dims = _by_stride(shape, first)
        if all(own == first for own in steps) and _goes_in_order(shape, first, dims):
            return ResultOrder(_unless_rows(dims), first)
    dims = loop_order(shape, places)
    return ResultOrder(_unless_rows(dims), None)


def copy_order(place: Any) -> ResultOrder:
    """Return how PyTorch lays out a copy: as it lies without gaps; else as the result of a loop.

    >>> copy_order(np.zeros((1, 3)).T)
    ResultOrder(dims=(1, 0), strides=(1, 3))
    >>> copy_order(np.zeros((1, 6))[:, ::2].T)
    ResultOrder(dims=(1, 0), strides=None)
    """
    return _copy_order(place.shape, place.strides, place.itemsize)


@lru_cache(1 << 10)
def _copy_order(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> ResultOrder:
    place = _Place(shape, strides, len(shape), itemsize)
    own = _own_steps(place)
    dims = _by_stride(shape, own)
    if _goes_in_order(shape, own, dims):
        return ResultOrder(_unless_rows(dims), own)
    return result_order(shape, [place])


# In which orders of their dims tensors are contiguous to PyTorch: row by row, or channels last.
_CONTIGUOUS_ORDERS = {4: [(0, 1, 2, 3), (0, 2, 3, 1)]}


def _own_steps(place: Any) -> tuple[int, ...]:
    """Return the strides of a place in elements."""
    itemsize = place.itemsize
    return tuple([step // itemsize for step in place.strides])


def _by_stride(shape: tuple[int, ...], steps: Sequence[int]) -> list[int]:
    """Return the dims, those of length 1 first, then the one of the longest steps."""
    return sorted(range(len(shape)), key=lambda dim: (shape[dim] != 1, -steps[dim]))


def _goes_in_order(shape: tuple[int, ...], steps: Sequence[int], dims: Sequence[int]) -> bool:
    """Whether elements lie without gaps, with dims in an order; those of length 1 don't count."""
    if 0 in shape:
        return True
    expected = 1
    for dim in reversed(dims):
        if shape[dim] != 1:
            if steps[dim] != expected:
                return False
            expected *= shape[dim]
    return True


def _unless_rows(dims: Sequence[int]) -> tuple[int, ...] | None:
    """Return an order of dims; None if it is theirs."""
    return None if list(dims) == [*range(len(dims))] else tuple(dims)


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
