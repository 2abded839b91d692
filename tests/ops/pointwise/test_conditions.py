"""Conditions that are bytes, and derivatives at 0 of what is chosen there."""

from __future__ import annotations

import warnings
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng


@given(st.lists(st.integers(0, 255), min_size=1, max_size=5))
def test_a_byte_is_true_where_it_is_not_0(numbers: list[int]) -> None:
    condition = ng.tensor(numbers, dtype=ng.uint8)
    count = len(numbers)
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        found = ng.where(condition, ng.ones(count), ng.zeros(count))
    assert found.tolist() == [float(number != 0) for number in numbers]
    assert "uint8 condition tensor" in str(raised[-1].message)


@pytest.mark.parametrize("name", ["sgn", "abs", "angle"])
def test_second_derivatives_are_pytorchs_and_0_at_0(torch: ModuleType, name: str) -> None:
    numbers = [0j, 1 + 0j, 0.6 - 0.8j, -2 + 1j]
    found = []
    for library in (ng, torch):
        x = library.tensor(numbers, dtype=library.complex128, requires_grad=True)
        y = getattr(library, name)(x)
        weights = library.tensor([1.0, 2.0, 3.0, -1.0], dtype=y.dtype)
        (first,) = library.autograd.grad(y, x, weights, create_graph=True)
        along = library.tensor([1 + 1j, 2.0, -1j, 0.5], dtype=library.complex128)
        (second,) = library.autograd.grad(first, x, along)
        found.append((first.detach().numpy(), second.numpy()))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours[1:], theirs[1:], rtol=1e-12, atol=1e-12)
        assert ours[0] == 0  # where PyTorch has nan in the second order
