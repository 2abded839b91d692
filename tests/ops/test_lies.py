"""Results of array primitives lie as is said of them before, and as those of their quick ways."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.jit.ir.memory_order import place_like
from numgrad.ops.calls.dispatch import forget_calls
from numgrad.ops.core.primitive import CATALOGUE, Primitive


@pytest.fixture(autouse=True)
def nothing_is_remembered() -> Iterator[None]:
    """Have no call run by what was made of the forward that a test changes, nor afterwards."""
    forget_calls()
    yield
    forget_calls()


ARRAYS = [p for p in CATALOGUE.values() if isinstance(p, Primitive) and p.samples]


def _steps(array: Any) -> list[int | None]:
    """Return the strides that say something."""
    if not array.size:
        return []
    pairs = zip(array.shape, array.strides, strict=True)
    return [step if length > 1 else None for length, step in pairs]


def _compare(way: Any, arrays: Any, parameters: dict[str, Any], result: Any) -> None:
    """Compare what a quick way gives, if there is one for such arrays."""
    if way is None:
        return
    taken = inspect.signature(way).parameters if inspect.isroutine(way) else ()
    found = way(*arrays, **{name: parameters[name] for name in parameters if name in taken})
    assert isinstance(found, tuple) == isinstance(result, tuple)
    pairs = zip(found, result, strict=True) if isinstance(result, tuple) else [(found, result)]
    for one, other in pairs:
        assert one.dtype == other.dtype
        assert _steps(one) == _steps(other)
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("primitive", ARRAYS, ids=[each.name for each in ARRAYS])
def test_a_result_lies_as_is_said_before_and_is_that_of_the_quick_ways(
    primitive: Primitive, monkeypatch: pytest.MonkeyPatch
) -> None:
    forward, calls = primitive.forward, itertools.count()
    quick, few = primitive.quick, primitive.few

    def compared(*arrays: Any, **parameters: Any) -> Any:
        result = forward(*arrays, **parameters)
        first = result[0] if isinstance(result, tuple) else result
        if primitive.lies:
            place, _ = place_like(primitive, arrays, parameters)
            assert place is None or place.shape == first.shape
            rows = np.empty(first.shape, first.dtype)
            assert _steps(first) == _steps(rows if place is None else place)
        if quick:
            _compare(quick(*arrays, **parameters), arrays, parameters, result)
        if few and all(each.flags.c_contiguous and each.size for each in arrays):
            _compare(few(*arrays, **parameters), arrays, parameters, result)
        next(calls)
        return result

    # Parts of complex numbers that do not lie side by side are refused, and nothing is made.
    refused_by_strides = suppress(RuntimeError) if primitive.view else nullcontext()
    monkeypatch.setattr(primitive, "forward", compared)
    monkeypatch.setattr(primitive, "few", None)
    monkeypatch.setattr(primitive, "quick", None)
    for turn, step in ((0, 1), (1, 1), (-1, 1), (-1, 2)):
        generator = np.random.default_rng(0)

        def make(
            *shape: int, dtype: Any = None, turn: int = turn, step: int = step, **_: Any
        ) -> Any:
            order = sorted(range(len(shape)), reverse=turn < 0)
            order = order[turn:] + order[:turn] if turn > 0 else order
            wide = [shape[dim] * (step if dim == order[-1] else 1) for dim in order]
            numbers = generator.uniform(0.5, 3, wide)[..., ::step] if shape else generator.uniform()
            array = np.asarray(numbers).transpose(np.argsort(order)) if shape else np.array(numbers)
            tensor = ng.from_numpy(array)
            assert tensor.shape == shape
            return tensor if dtype is None else tensor * ng.ones((), dtype=dtype)

        for sample in primitive.samples:
            function, tensors, keywords = sample(make)
            with refused_by_strides:
                function(*tensors, **keywords)
    assert next(calls)
