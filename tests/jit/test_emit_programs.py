"""Programs give what their graphs mean."""

from __future__ import annotations

import numpy as np
import pytest

from numgrad.jit.program import build
from tests.jit.graphs import *  # noqa: F403
from tests.jit.interpreter import interpret


def check(program_graph: Graph, *arrays: np.ndarray, rtol: float = 1e-12) -> list[np.ndarray]:  # noqa: F405
    results = build(program_graph)(list(arrays))
    expected = interpret(program_graph, list(arrays))
    for result, wanted in zip(results, expected, strict=True):
        assert result.shape == wanted.shape and result.dtype == wanted.dtype
        np.testing.assert_allclose(result, wanted, rtol=rtol, atol=rtol)
    return results


@pytest.fixture
def random():
    return np.random.default_rng(3)
