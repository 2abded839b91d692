"""Medians and modes beside PyTorch: ties, nan, nothing at all, wrong arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numgrad as ng
from tests.ops.statistics.calls import differences, operands_of, outcome
from tests.ops.statistics.ways import assert_all_ways_agree


def arrays() -> dict[str, Any]:
    random = np.random.default_rng(3)
    ties = random.integers(0, 3, (6, 7, 5)).astype(float)
    return {
        "x": random.normal(size=(4, 5)),
        "t": ties,
        "n": np.where(random.random((6, 7)) < 0.3, np.nan, ties[..., 0]),
        "a": np.where(random.random((2, 7)) < 2, np.nan, 0),
        "z": np.array(1.5),
        "e": np.zeros((3, 0)),
        "k": random.integers(0, 4, (6, 7)),
        "u": random.integers(0, 200, (4, 8)).astype(np.uint8),
        "s": random.integers(0, 200, (4, 8)).astype(np.uint16),
        "b": random.random((4, 5)) < 0.5,
    }


MEDIANS = [
    f"torch.{name}({call})"
    for name in ("median", "nanmedian")
    for call in (
        *("x", "x, 0", "x, -1, True", "t", "t, 0", "t, 1", "t, 2, True", "n", "n, 0", "n, 1"),
        *("a", "a, 0", "a, 1, True", "z", "z, 0", "z, -1, True", "e", "e, 0", "e, 1", "k", "k, 1"),
        *("u", "u, 0", "s", "s, 0", "b", "b, 0", "x, 3", "x, None", "x, (0,)", "t.mT, 1"),
        *("x.mT[1:, ::2], 0", "x[None].expand(2, 4, 5), 1", "x, dim=1, keepdim=True", "e[:0], 0"),
    )
]
MODES = [
    f"torch.mode({call})"
    for call in (
        *("x", "x, 0", "t", "t, 0", "t, 1, True", "z", "z, 0, True", "e", "e, 0", "e, 1", "k"),
        *("k, 0", "u", "s", "b", "b, 0, True", "x, 3", "t.mT, 1", "t[::2, 1:], -2", "e[:0], 0"),
    )
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "float16"])
def test_calls_are_as_in_pytorch(torch: Any, dtype):
    own, others = operands_of(ng, arrays(), dtype), operands_of(torch, arrays(), dtype)
    wrong = {}
    for call in MEDIANS + MODES:
        first = call.partition("(")[2].rstrip(")").partition(",")[0]
        if dtype == "complex64" and first in ("e", "z", "e[:0]"):
            continue  # of none or one it says something else there
        if call == "torch.nanmedian(a, 1, True)":
            continue  # of rows of nan it returns any place
        found = differences(outcome(ng, call, own), outcome(torch, call, others))
        if found:
            wrong[call] = found[:3]
    assert not wrong


def test_results_are_written_to_out():
    x = ng.tensor([[3.0, 1.0, 3.0], [2.0, 2.0, 5.0]])
    for function in (ng.median, ng.nanmedian, ng.mode):
        values, indices = ng.empty(0), ng.empty(0, dtype=ng.int64)
        found = function(x, 1, out=(values, indices))
        assert found.values is values
        assert found.indices is indices
        assert ng.equal(values, function(x, 1).values)


OF_ONE = {
    "median": lambda x: ng.median(x) * x.sum(),
    "nanmedian": lambda x: ng.nanmedian(x) * x.sum(),
    "median along": lambda x: ng.median(x, 1).values ** 2,
    "nanmedian along": lambda x: ng.nanmedian(x, 0, True).values ** 2,
    "mode": lambda x: ng.mode(x, 0).values ** 2,
}


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("name", OF_ONE)
def test_derivatives_batches_and_compiled_functions_agree(name):
    assert_all_ways_agree(OF_ONE[name], (3, 4))
    x = ng.from_numpy(np.random.default_rng(5).normal(size=(3, 4)))
    slope = ng.func.grad(lambda x: OF_ONE[name](x).sum())
    assert np.allclose(ng.jit(slope)(x).numpy(), slope(x).numpy())
