"""Formats of tensors inside of mapped functions, and masks of each example."""

from __future__ import annotations

from typing import Any

import pytest

import numgrad as ng
from numgrad import func


def test_formats_are_pytorchs_inside() -> None:
    def f(x: Any) -> Any:
        assert f"{x}" == str(x) == repr(x)
        with pytest.raises(TypeError, match=r"format string passed to Tensor.__format__"):
            f"{x:>10}"
        with pytest.raises(RuntimeError, match=r"It looks like you're calling .item\(\)"):
            f"{x.sum()}"
        return x

    func.vmap(f)(ng.ones(2, 2))


def test_a_mask_of_each_example_takes_from_the_beginning_of_the_source() -> None:
    masks = ng.tensor([[True, False], [True, True]])
    source, x = ng.arange(4.0), ng.full((2, 2), 9.0)
    found = func.vmap(lambda mask: x.masked_scatter(mask, source))(masks)
    assert found.tolist() == [[[0.0, 9.0], [1.0, 9.0]], [[0.0, 1.0], [2.0, 3.0]]]
    with pytest.raises(RuntimeError, match="Number of elements of source < number of ones"):
        func.vmap(lambda mask: x.masked_scatter(mask, source[:3]))(masks)
