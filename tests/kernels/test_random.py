"""Random numbers that compiled code draws: NumPy's, to the bit, and the state behind them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng
from numgrad.kernels import random as kernels

_ALL = 2**64 - 1
# Draws of NumPy's generators, and what compiled code is given for the same.
DRAWS = {
    "uniform": lambda source, n: source.random(n),
    "uniform_f": lambda source, n: source.random(n, np.float32),
    "normal": lambda source, n: source.standard_normal(n),
    "normal_f": lambda source, n: source.standard_normal(n, np.float32),
    "exponential": lambda source, n: source.standard_exponential(n),
    "exponential_f": lambda source, n: source.standard_exponential(n, np.float32),
    "permutation": lambda source, n: source.permutation(n),
}


def assert_alike(
    name: str, generator: ng.Generator, wanted: Any, given_: tuple[Any, ...] = ()
) -> None:
    """Compare what a kernel draws from a generator with what NumPy does, and the states."""
    words = generator.words()
    numbers = np.atleast_1d(wanted(generator.numpy))
    found = np.empty_like(numbers)
    getattr(kernels, name)(words, found, len(found), *given_)
    np.testing.assert_array_equal(found.view(np.uint8), numbers.view(np.uint8))
    np.testing.assert_array_equal(words, generator.words())


def generator_of(seed: int, halves: int) -> ng.Generator:
    """Return a generator, which has used a half of a word if the number of halves is odd."""
    generator = ng.Generator().manual_seed(seed)
    generator.numpy.random(halves, np.float32)
    return generator


@pytest.mark.parametrize("name", DRAWS)
@given(seed=st.integers(0, _ALL), halves=st.integers(0, 3), count=st.integers(1, 300))
def test_numbers_are_those_of_numpy(name: str, seed: int, halves: int, count: int) -> None:
    generator = generator_of(seed, halves)
    assert_alike(name, generator, lambda source: DRAWS[name](source, count))


@pytest.mark.parametrize("name", [name for name in DRAWS if name != "permutation"])
def test_many_numbers_are_those_of_numpy(name: str) -> None:
    # So many that the tails of the distributions and all that is rejected are among them.
    generator = generator_of(3, 1)
    assert_alike(name, generator, lambda source: DRAWS[name](source, 200_000))


@given(
    st.integers(0, _ALL),
    st.integers(0, 3),
    st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1)),
    st.sampled_from([0, 2**31, 2**62, 2**63 - 8]),
)
def test_integers_are_those_of_numpy(
    seed: int, halves: int, ends: tuple[int, int], less: int
) -> None:
    low, last = sorted(ends)
    last = max(low, last - less)
    low, most = np.int64(low), np.uint64(last - low)
    wanted = lambda source: source.integers(low, last, 20, endpoint=True)  # noqa: E731
    assert_alike("integers", generator_of(seed, halves), wanted, (low, most))


@pytest.mark.parametrize("most", [0, 1, 6, 2**31, 2**32 - 2, 2**32 - 1, 2**32, 3 << 61, _ALL])
def test_integers_of_ranges_at_the_ends_of_words(most: int) -> None:
    low = -(2**63) if most >= 2**63 else 0
    wanted = lambda source: source.integers(low, low + most, 500, endpoint=True)  # noqa: E731
    assert_alike("integers", generator_of(5, 1), wanted, (np.int64(low), np.uint64(most)))


@given(st.integers(0, _ALL), st.floats(1e-12, 1, exclude_max=True))
def test_geometric_numbers_are_those_of_numpy(seed: int, p: float) -> None:
    assert_alike("geometric", generator_of(seed, 0), lambda source: source.geometric(p, 50), (p,))


@given(st.integers(0, _ALL), st.integers(0, 3))
def test_words_are_the_state(seed: int, halves: int) -> None:
    generator = generator_of(seed, halves)
    assert generator.words().tobytes() == bytes(generator.get_state().tolist())
    other = ng.Generator()
    other.set_words(generator.words())
    assert other.get_state().tolist() == generator.get_state().tolist()
    assert other.initial_seed() == seed
