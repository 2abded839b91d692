"""Whether two arrays share memory, and whether element for element: against sets of addresses."""

from __future__ import annotations

from random import Random

import numpy as np

from numgrad.graph.overlap import overlaps
from tests.cases import examples

WHOLE = np.zeros(24)


def drawn(random: Random) -> np.ndarray:
    """Return a view of some memory: dims in any order and direction, with or without gaps."""
    shape = random.choice([(24,), (4, 6), (2, 3, 4), (6, 1, 4)])
    array = WHOLE.reshape(shape)
    for dim in range(array.ndim):
        length = array.shape[dim]
        if random.random() < 0.5:
            start = random.randrange(length)
            keys = slice(start, random.randint(start, length), random.choice([1, 1, 1, 2]))
            array = array[(slice(None),) * dim + (keys,)]
        if random.random() < 0.3:
            array = np.flip(array, dim)
    return array.transpose(random.sample(range(array.ndim), array.ndim))


def addresses(array: np.ndarray) -> list[int]:
    """Return where in memory each element lies, in units of an element."""
    start = array.__array_interface__["data"][0] - WHOLE.__array_interface__["data"][0]
    at = [sum(map(int.__mul__, place, array.strides)) for place in np.ndindex(array.shape)]
    return [(start + each) // array.itemsize for each in at]


def test_arrays_without_gaps_overlap_where_their_addresses_meet() -> None:
    """Where one has gaps nobody looks, as in PyTorch."""
    random = Random(0)
    met = {(False, False): 0, (True, False): 0, (True, True): 0}
    for _ in range(examples(4000)):
        left, right = drawn(random), drawn(random)
        if random.random() < 0.3:
            right = left[...]
        there, here = addresses(left), addresses(right)
        expected = (False, False)
        if left.size and all(max(at) - min(at) + 1 == len({*at}) for at in (there, here) if at):
            together = bool({*there} & {*here})
            expected = (together, left.shape == right.shape and there == here)
        found = overlaps(left, right)
        assert found == expected, (left.shape, left.strides, right.shape, right.strides)
        met[found] += 1
    assert min(met.values()) >= 3
