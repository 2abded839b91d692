"""Reductions of few elements, made once for how they lie: the bits of those that look each time."""

from __future__ import annotations

import itertools

import numpy as np

from numgrad.kernels.reduce import reductions

_RANDOM = np.random.default_rng(5)


def _arrays() -> list[np.ndarray]:
    """Return arrays that lie in many ways."""
    found = []
    for shape in [(4,), (3, 5), (1, 5), (2, 3, 4), (17, 40), (2, 1, 3, 2)]:
        base = _RANDOM.normal(size=shape).astype(np.float32)
        for order in itertools.islice(itertools.permutations(range(len(shape))), 6):
            found.append(base.transpose(order))
        found.append(np.broadcast_to(np.float32(0.1), shape))
        found.append(np.broadcast_to(base[..., :1], shape))
        found.append(np.broadcast_to(base[:1], (3, *shape[1:])))
        found.append(np.repeat(base, 2, -1)[..., ::2])
        found.append(base[::-1])
    return found


def test_specialised_reductions_have_the_same_bits() -> None:
    met = 0
    for array in _arrays():
        for count in range(1, array.ndim + 1):
            for dims in itertools.combinations(range(array.ndim), count):
                for keepdim in (False, True):
                    run = reductions.specialised_as_it_lies("sum", array, dims, keepdim)
                    if run is None:
                        continue
                    met += 1
                    found, wanted = run(array), reductions.sum(array, dims, keepdim)
                    assert found.shape == wanted.shape
                    assert found.strides == wanted.strides
                    assert found.tobytes() == wanted.tobytes(), (array.shape, array.strides, dims)
    assert met > 300
