"""Distances and bounded lengths beside PyTorch: orders, equal rows, batches, wrong arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numgrad as ng
from tests.ops.statistics.calls import differences, operands_of, outcome
from tests.ops.statistics.ways import assert_all_ways_agree

ORDERS = ("0", "0.5", "1", "1.5", "2", "3.5", "inf")


def arrays() -> dict[str, Any]:
    random = np.random.default_rng(2)
    x = random.normal(size=(4, 5))
    return {
        "x": x,
        "y": np.concatenate([x[:2], random.normal(size=(1, 5)), np.zeros((1, 5))]),
        "c": random.normal(size=(3, 1, 4, 5)),
        "d": random.normal(size=(2, 3, 5)),
        "v": random.normal(size=5),
        "z": np.array(1.5),
        "e": np.zeros((3, 0)),
        "k": random.integers(0, 9, (4, 5)),
    }


DISTANCES = [
    *(f"torch.cdist({pair}, {p})" for pair in ("x, y", "c, d", "x.mT, y.mT") for p in ORDERS),
    *(f"torch.cdist({call})" for call in ("x[:0], y", "e, e", "x, x", "x, c", "d, d[:1]")),
    *(f"torch.cdist({call})" for call in ("x, y, -1", "x, y, 2, 'a'", "x, v", "v, x", "x, e")),
    *(f"torch.cdist({call})" for call in ("k, k", "x, k", "x, y, nan", "c, torch.cat([d, d])")),
    "torch.cdist(x, y, compute_mode='donot_use_mm_for_euclid_dist')",
    *(f"torch.pdist({x}, {p})" for x in ("x", "x.mT", "d[0]") for p in ORDERS),
    *(f"torch.pdist({call})" for call in ("x[:1]", "e", "x, -1", "v", "c", "k")),
    *(f"torch.dist(x, {y}, {p})" for y in ("y", "v", "x", "z") for p in (*ORDERS, "-1")),
    *(f"torch.dist({call})" for call in ("k, k", "x, k", "k, x, 3", "x, y, 1j", "e, e", "x, e")),
    "torch.dist(e, e, inf)",
]
RENORMS = [
    *(
        f"torch.renorm({x}, {p}, {dim}, {bound})"
        for x in ("x", "y", "c")
        for p in ORDERS[1:]
        for dim, bound in ((0, 1.0), (1, 2), (-1, 0.5))
    ),
    *(f"torch.renorm({call})" for call in ("x, 2, 0, -1", "x, -2, 0, 1", "e, 2, 0, 1")),
    *(f"torch.renorm({call})" for call in ("x, 1j, 0, 1", "x, 2, 3, 1", "v, 2, 0, 1")),
    *(
        f"torch.renorm({call})"
        for call in ("k, 2, 0, 1", "x, 2, 0, nan", "x, 2.0, 0, 1j", "x.mT, 2, 0, 1")
    ),
    "(x + 0).renorm_(2, 1, 1)",
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "float16"])
def test_calls_are_as_in_pytorch(torch: Any, dtype):
    own, others = operands_of(ng, arrays(), dtype), operands_of(torch, arrays(), dtype)
    wrong = {}
    for call in DISTANCES + RENORMS:
        if "torch.dist(" in call and call.endswith(", 0)"):
            continue  # it counts there, and can't go back
        if dtype == "float16" and any(part in call for part in ("e, e", "[:0]", "[:1]", "st(e")):
            continue  # PyTorch refuses halves where there are elements
        tolerance = 2e-2 if dtype == "float16" else 1e-4
        found = differences(outcome(ng, call, own), outcome(torch, call, others), tolerance)
        if found:
            wrong[call] = found[:3]
    assert not wrong


OF_ONE = {
    **{f"cdist, {p}": lambda x, p=p: ng.cdist(x, x[:2] + 1, p) for p in (1.5, 2.0, 3.0)},
    "cdist of batches": lambda x: ng.cdist(x[None], ng.stack([x + 1, 2 * x + 3])),
    "pdist": lambda x: ng.pdist(x, 2),
    "dist": lambda x: ng.dist(x, x[0] * x[1], 3),
    "renorm": lambda x: ng.renorm(x, 2, 1, 1.0),
    "renorm, 1.5": lambda x: ng.renorm(x, 1.5, 0, 2.0),
}


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("name", OF_ONE)
def test_derivatives_batches_and_compiled_functions_agree(name):
    assert_all_ways_agree(OF_ONE[name], (3, 4))


def test_derivatives_of_equal_rows_are_numbers_of_any_order():
    x = ng.zeros(3, 2, dtype=ng.float64, requires_grad=True)
    for p in (1.0, 1.5, 2.0, 3.0, float("inf")):
        (first,) = ng.autograd.grad(ng.cdist(x, x, p).sum(), x, create_graph=True)
        assert not first.detach().any()
        (second,) = ng.autograd.grad(first.sum(), x, allow_unused=True)
        assert second is None or not second.isnan().any()
