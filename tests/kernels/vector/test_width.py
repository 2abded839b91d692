"""Loops may use the widest vectors that the processor has."""

from __future__ import annotations

import numpy as np
import pytest
from llvmlite import binding
from numba import njit

from numgrad.kernels.vector.width import use_wide_vectors


@njit
def scaled(x, out):
    use_wide_vectors()
    for i in range(x.size):
        out[i] = x[i] * 3.0 + 1.0


def test_the_function_that_asks_for_it_has_the_attribute():
    scaled(np.ones(4), np.empty(4))
    assert '"prefer-vector-width"="512"' in scaled.inspect_llvm(scaled.signatures[0])


@pytest.mark.skipif(
    not binding.get_host_cpu_features().get("avx512f"), reason="the processor has no AVX-512"
)
def test_whole_registers_are_used():
    scaled(np.ones(4), np.empty(4))
    assert "zmm" in scaled.inspect_asm(scaled.signatures[0])
