"""Where the numbers of sample calls come from: ranges, margins, zeros, masks and kinds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.base.tuning import FEW_ELEMENTS
from numgrad.ops.core.domains import MASK, NONZERO, REAL, UNIT, Domain, apart, away_from, number
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.core.primitive import CATALOGUE
from numgrad.ops.core.sample_calls import _maker, sample_calls
from numgrad.ops.core.samples import operation, sample

KINDS = ["float32", "float64", "complex64", "complex128", "int64"]


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("bounds", [{}, {"low": 1, "high": 2}, {"high": 0}, {"low": 2.5}])
def test_tensors_of_samples_fill_their_range(dtype: str, bounds: dict[str, float]) -> None:
    low, high = bounds.get("low", -3), bounds.get("high", 3)
    made = _maker(np.dtype(dtype))(20, 50, **bounds)
    assert made.shape == (20, 50) and made.dtype is getattr(ng, dtype)
    assert made.requires_grad == (dtype != "int64")
    values = made.detach().numpy()
    if dtype == "int64":
        assert np.abs(values).max() <= 3
        return
    parts = [values.real, values.imag] if "complex" in dtype else [values]
    for part in parts:
        assert low <= part.min() < low + 0.1 * (high - low)
        assert high - 0.1 * (high - low) < part.max() <= high


def test_distinct_numbers_are_steps_of_the_range() -> None:
    make = _maker(np.dtype(float))
    values = make(4, 5, low=1, high=3, distinct=True).detach().numpy()
    np.testing.assert_allclose(np.sort(values, None), 1.05 + 0.1 * np.arange(20), rtol=1e-13)
    assert (np.diff(values.ravel()) < 0).any()
    assert make(0, distinct=True).shape == (0,)


@pytest.mark.parametrize("zeros", [(), (0,), (1, 5)])
@pytest.mark.parametrize("function", ["sum", "cumsum", lambda input, dim: input.sum(dim)])
def test_a_sample_calls_a_function_of_a_tensor_with_zeros(function: Any, zeros: Any) -> None:
    seen: list[Any] = []

    def make(*shape: int, **options: Any) -> Any:
        seen.append((shape, options))
        return ng.arange(1.0, 7.0).reshape(shape)

    called, (tensor,), keywords = sample(function, (2, 3), low=1, high=4, zeros=zeros, dim=1)(make)
    assert seen == [((2, 3), {"low": 1, "high": 4, "distinct": False})]
    assert keywords == {"dim": 1}
    expected = np.arange(1.0, 7.0)
    expected[list(zeros)] = 0
    kept = ng.from_numpy(expected.reshape(2, 3))
    found = called(tensor, **keywords)
    assert found.tolist() == operation(function)(kept, dim=1).tolist()


def test_domains_are_drawn_from_all_over() -> None:
    random = np.random.default_rng(0)
    for domain in (REAL, UNIT, NONZERO, away_from(-1, 0, 1, within=2.0, gap=0.25), MASK):
        values = domain.draw((40, 50), random)
        assert values.shape == (40, 50) and values.dtype == float
        inside = np.zeros(values.shape, int)
        for low, high in domain.intervals:
            within = (low <= values) & (values <= high)
            inside += within
            assert values[within].min() < low + 0.1 * (high - low)
            assert values[within].max() > high - 0.1 * (high - low)
        assert (inside == 1).all()
        beside = domain.draw((40, 50), random, is_complex=True)
        assert 0.25 <= np.abs(beside.imag).min() < 0.35 and 1.15 < np.abs(beside.imag).max() <= 1.25
        assert 0.4 < (beside.imag > 0).mean() < 0.6
    gaps = away_from(-1, 0, 1, within=2.0, gap=0.25).intervals
    assert gaps == ((-2.0, -1.25), (-0.75, -0.25), (0.25, 0.75), (1.25, 2.0))
    assert away_from(2.0, within=2.0, gap=0.5).intervals == ((-2.0, 1.5),)
    assert number(0.5) == Domain(((0.5, 0.5),), is_number=True)
    assert apart(UNIT, 0.3) == (UNIT, Domain(UNIT.intervals, apart=0.3))
    assert apart(UNIT)[1].apart == 0.1


@pytest.mark.parametrize("dtype", ["float32", "complex64", "int64"])
def test_operands_of_sample_calls_are_what_their_domains_say(dtype: str) -> None:
    for name, primitive in CATALOGUE.items():
        if not isinstance(primitive, ElementwisePrimitive):
            continue
        for call in sample_calls(name, getattr(ng, dtype)):
            leaves = [x for x in call.operands if isinstance(x, ng.Tensor) and x.requires_grad]
            assert leaves or not call.spread
            assert dtype != "int64" or not leaves
            first: Any = None
            for position, domain in enumerate(primitive.domains):
                operand = call.operands[position]
                if domain.is_number:
                    assert operand == domain.intervals[0][0]
                elif isinstance(operand, ng.Tensor):
                    values = operand.detach().numpy()
                    if dtype == "complex64" and not domain.is_mask:
                        assert np.abs(values.imag).min() > 0.24
                    assert values.shape == ((FEW_ELEMENTS + 1,) if call.spread else (4,))
                    assert (operand.dtype is ng.bool) or position not in primitive.masks
                    if position in primitive.masks:
                        assert 0 < values.sum() < values.size
                    elif domain.apart and first is not None and dtype == "float32":
                        assert (values - first).min() >= domain.apart * 0.999
                    first = values if first is None else first
