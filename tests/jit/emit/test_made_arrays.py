"""Arrays that a traced function makes, or captures, are read as they are: written out or held."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad.jit.emit.native_steps import IN_REGISTERS
from tests.cases import examples

DTYPES = ("float64", "float32", "int64", "bool", "complex128")
sizes = st.sampled_from([0, 1, 3, IN_REGISTERS, IN_REGISTERS + 1, 300])


def numbers(seed: int, size: int, dtype: str) -> np.ndarray:
    random = np.random.default_rng(seed)
    found = random.normal(size=size) * 3
    found[random.random(size) < 0.1] = random.choice([np.inf, -0.0])
    if dtype in ("int64", "bool"):
        found = np.where(np.isfinite(found), found, 1)
    return found.astype(dtype)


@settings(max_examples=examples(8, in_sample=2))
@given(st.lists(st.tuples(sizes, st.sampled_from(DTYPES), st.booleans()), min_size=1, max_size=3))
def test_dispatchers_have_the_numbers_of_each_trace(drawn: list[tuple[int, str, bool]]) -> None:
    """The same function, traced again for other temporaries, has theirs: alone and in a loop."""
    turns: list[Any] = []
    for seed, (size, dtype, is_made) in enumerate(drawn):
        array = numbers(seed, size, dtype)

        def function(
            x: Any, array: np.ndarray = array, is_made: bool = is_made
        ) -> tuple[Any, Any, Any]:
            weights = ng.tensor(array.tolist()) if is_made else ng.from_numpy(array)
            weights = weights.to(ng.from_numpy(array).dtype)

            def step(total: Any, row: Any) -> tuple[Any, Any]:
                return total + weights, row * weights

            return x + weights, weights * 1, *ng.func.scan(step, x + weights, x.expand(2))

        x = np.array(0.5)
        turns.append((ng.jit(function).lower(ng.from_numpy(x)).dispatcher, function, x))
    for dispatcher, function, x in turns * 2:
        wanted = [each.numpy() for each in function(ng.from_numpy(x))]
        for found, other in zip(dispatcher(x), wanted, strict=True):
            assert found.dtype == other.dtype
            assert found.tobytes() == other.tobytes()


@settings(max_examples=examples(8, in_sample=2))
@given(sizes.filter(bool), st.floats(-4, 4))
def test_what_was_captured_is_read_anew(size: int, number: float) -> None:
    held = ng.from_numpy(numbers(1, size, "float64"))
    dispatcher = ng.jit(lambda x: x * held).lower(ng.tensor(1.0).double()).dispatcher
    for each in (number, number + 1):
        held.fill_(each)
        (found,) = dispatcher(np.array(2.0))
        assert (found == 2 * each).all()
