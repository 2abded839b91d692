"""Padding with a number, of any widths: against slices and numpy.pad."""

from __future__ import annotations

from random import Random
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from tests.cases import examples


def drawn(seed: int) -> tuple[Any, list[tuple[int, int]]]:
    """Return an array, and how much to add before and behind its last dims, the last one first."""
    random = Random(seed)
    shape = [random.randint(0, 3) for _ in range(random.randint(0, 3))]
    dims = random.randint(0, len(shape))
    widths = [(random.randint(-3, 3), random.randint(-3, 3)) for _ in range(dims)]
    return np.arange(1.0, 1 + np.prod(shape)).reshape(shape), widths


def padded(array: Any, widths: list[tuple[int, int]], value: float) -> Any:
    """Return what is left of an array, and numbers around it; None if too much is taken away."""
    for at, (before, behind) in enumerate(widths):
        dim = array.ndim - 1 - at
        first, last = max(-before, 0), array.shape[dim] - max(-behind, 0)
        if last < first:
            return None
        array = np.moveaxis(np.moveaxis(array, dim, 0)[first:last], 0, dim)
        around = [(0, 0)] * array.ndim
        around[dim] = (max(before, 0), max(behind, 0))
        array = np.pad(array, around, constant_values=value)
    return array


def test_any_widths_add_and_take_away() -> None:
    refused = 0
    for seed in range(examples(300)):
        array, widths = drawn(seed)
        pad = [each for pair in widths for each in pair]
        wanted = padded(array, widths, 7.5)
        x = ng.from_numpy(array.copy()).requires_grad_()
        if wanted is None:
            refused += 1
            with pytest.raises(RuntimeError, match=r"^narrow\(\): length must be non-negative\.$"):
                ng.constant_pad_nd(x, pad, 7.5)
            continue
        result = ng.constant_pad_nd(x, pad, 7.5)
        np.testing.assert_array_equal(result.detach().numpy(), wanted)
        if not widths:
            continue
        weights = np.arange(1.0, 1 + result.numel()).reshape(wanted.shape)
        (result * ng.from_numpy(weights)).sum().backward()
        back = padded(weights, [(-before, -behind) for before, behind in widths], 0.0)
        assert x.grad is not None
        np.testing.assert_array_equal(x.grad.numpy(), back)
    assert refused > 5


@pytest.mark.parametrize("dim", range(2))
def test_what_is_too_much_is_refused_in_pytorchs_words(torch: ModuleType, dim: int) -> None:
    for pair in ((-3, 1), (1, -3), (-2, -1), (-3, 0), (0, -3), (-2, 0), (-1, -1), (2, -2), (-2, 2)):
        for other in ((0, 0), (1, 0), (0, -1)):
            pad = (*pair, *other) if dim else (*other, *pair)
            found: list[Any] = []
            for module in (torch, ng):
                try:
                    found.append(module.constant_pad_nd(module.ones(2, 2), pad).tolist())
                except RuntimeError as error:
                    found.append(str(error))
            assert found[0] == found[1]
    for wrong in ((1,), (1, 2, 3), (0,) * 6):
        words = []
        for module in (torch, ng):
            with pytest.raises(RuntimeError) as caught:
                module.constant_pad_nd(module.ones(2, 2), wrong)
            words.append(str(caught.value))
        assert words[0] == words[1]
