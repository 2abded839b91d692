"""Where results of padding and joining lie whose operands have their dims in another order."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import pytest

import numgrad as ng

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "pad": lambda m, x: m.nn.functional.pad(x, (1, 1)),
    "crop": lambda m, x: m.nn.functional.pad(x, (-1, 0)),
    "crop and pad": lambda m, x: m.nn.functional.pad(x, (-1, 1)),
    "crop of two dims": lambda m, x: m.nn.functional.pad(x, (0, -1, -1, 0)),
    "cat": lambda m, x: m.cat((x, x)),
    "cat along the second": lambda m, x: m.cat((x, x), 1),
    "cat of two orders": lambda m, x: m.cat((x, x.contiguous())),
    "stack": lambda m, x: m.stack((x, x)),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_lie_as_pytorchs(torch: Any, name: str) -> None:
    for shape in ((2, 3), (2, 3, 4), (2, 3, 4, 5), (2, 3, 4, 5, 2)):
        orders = list(permutations(range(len(shape))))
        # The last is that of channels last.
        for order in [*orders[:: max(1, len(orders) // 5)], (0, *range(2, len(shape)), 1)]:
            found = []
            for m in (ng, torch):
                x = m.ones([shape[dim] for dim in order])
                x = x.permute([order.index(dim) for dim in range(len(shape))])
                y = CALLS[name](m, x)
                found.append([s for s, n in zip(y.stride(), y.shape, strict=True) if n > 1])
            assert found[0] == found[1], (shape, order)
