"""The source of a kernel says @njit, and gives the kernel's bits wherever it is copied to."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest
from numba.extending import is_jitted

import numgrad as ng
from numgrad.codegen.render import CONTIGUOUS, STEPS
from numgrad.math.functions import FORMULAS
from numgrad.ops.core.primitive import CATALOGUE

NAMES = sorted(
    name
    for name, formula in FORMULAS.items()
    if "f" in formula.accepts and CATALOGUE[name].tensor_count == len(formula.inputs)
    if not CATALOGUE[name].masks
)[::4]  # each takes a second, in which Numba compiles it


def run_as_it_stands(kernel: Any, name: str) -> tuple[str, Any]:
    """Return a kernel's source, and what its module has by a name."""
    source = "".join(linecache.getlines(kernel.py_func.__code__.co_filename))
    namespace: dict[str, Any] = {}
    exec(compile(source, f"<copy of {name}>", "exec"), namespace)
    return source, namespace[name]


@pytest.mark.sampled(3 / len(NAMES))
@pytest.mark.parametrize("name", NAMES)
def test_the_source_of_a_kernel_is_an_njit_function(name: str) -> None:
    primitive, random = CATALOGUE[name], np.random.default_rng(3)
    arrays = [random.uniform(0.5, 0.9, 100) for _ in primitive.inputs]
    expected = primitive(*map(ng.from_numpy, arrays)).numpy()
    source, copied = run_as_it_stands(primitive.kernel.loop("a" * len(arrays)), "loop")
    assert '@njit(error_model="numpy", nogil=True)\ndef loop(' in source and is_jitted(copied)
    out = np.empty_like(expected)
    copied(*arrays, out)
    assert out.tobytes() == expected.tobytes()


@pytest.mark.sampled(3 / len(NAMES))
@pytest.mark.parametrize("name", NAMES)
def test_the_source_of_a_loop_over_strides_is_an_njit_function(name: str) -> None:
    primitive, random = CATALOGUE[name], np.random.default_rng(4)
    arrays = [random.uniform(0.5, 0.9, 200)[::2] for _ in primitive.inputs]
    expected = primitive(*map(ng.from_numpy, arrays)).numpy()
    count = len(arrays)
    loop = primitive.kernel.loop("a" * count, STEPS * count + CONTIGUOUS)
    source, copied = run_as_it_stands(loop, "loop")
    assert '@njit(error_model="numpy", nogil=True)\ndef loop(' in source and is_jitted(copied)
    out = np.empty_like(expected)
    steps = np.array([[2]] * count + [[1]])
    copied(np.empty(0, np.int64), steps, np.empty(0, np.int64), 0, 1, 0, 100, 1000, *arrays, out)
    assert out.tobytes() == expected.tobytes()
