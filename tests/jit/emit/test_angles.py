"""Sines in short programs, where all angles are supposed to be near and some are not."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import numgrad as ng


def function(x: Any) -> Any:
    y = (x.sin() * x).cos()
    return y.sum(), y


@pytest.mark.sampled(0.18)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [3, 20])
def test_near_and_far_angles(dtype: Any, size: int) -> None:
    random = np.random.default_rng(size)
    near = random.standard_normal(size).astype(dtype)
    far = near.copy()
    far[size // 2] = 1e20
    empty_handed = near.copy()
    empty_handed[-1] = np.inf
    dispatcher = ng.jit(function).lower(near).dispatcher
    for x in (near, far, empty_handed, near):
        eager = function(ng.from_numpy(x))
        tolerance = 1e-5 if dtype is np.float32 else 1e-13
        for ours, expected in zip(dispatcher(x), eager, strict=True):
            np.testing.assert_allclose(ours, expected.numpy(), rtol=tolerance, atol=tolerance)


def test_a_write_in_place_is_not_done_twice() -> None:
    """What a nest reads and overwrites must not be computed anew from what was written."""

    def walk(x: Any) -> Any:
        x = x.clone()
        x[1:] += x[:-1].sin()
        x[:-1] *= x[1:].cos()
        return x

    x = np.array([1.0, 1e19, 2.0, -3.0])
    (ours,) = ng.jit(walk).lower(x).dispatcher(x)
    np.testing.assert_allclose(ours, walk(ng.from_numpy(x)).numpy(), rtol=1e-13)
    assert x.tolist() == [1.0, 1e19, 2.0, -3.0]


@pytest.mark.parametrize("join", [ng.cat, ng.stack])
def test_angles_in_parts_of_several_dims(join: Any) -> None:
    first, second = np.random.default_rng(0).normal(size=(2, 4, 3))
    function = ng.jit(lambda a, b: join([a, b]).sin())
    (result,) = function.lower(first, second).dispatcher(first, second)
    assert np.array_equal(result, function(first, second).numpy())


@pytest.mark.sampled(0.3, by="size")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [2, 4, 11, 3000])
def test_sine_and_cosine_of_an_angle_are_computed_together(dtype: Any, size: int) -> None:
    """The same bits as one after the other, far angles included."""

    def both(x: Any) -> Any:
        y = (x * 2).exp()
        return y.sin() / y.cos(), x.cos() * x.sin(), x.tan() + (x.sin() + x).cos().sin()

    x = np.random.default_rng(size).normal(size=size).astype(dtype)
    compiled = ng.jit(both)
    source = compiled.lower(x).source
    assert source.count("near_sin_cos(") == 2
    for far in (None, 1e19, np.inf, np.nan):
        if far is not None:
            x[size // 2] = far
        expected = both(ng.from_numpy(x))
        for ours, other in zip(compiled(x), expected, strict=True):
            np.testing.assert_array_equal(ours.numpy(), other.numpy())


def test_an_angle_and_its_view_are_one() -> None:
    def both(x: Any) -> Any:
        return x.unsqueeze(1).sin().squeeze(1) * x.cos()

    x = np.random.default_rng(1).normal(size=6)
    compiled = ng.jit(both)
    assert compiled.lower(x).source.count("near_sin_cos(") == 1
    np.testing.assert_array_equal(compiled(x).numpy(), both(ng.from_numpy(x)).numpy())


MANY_BLOCKS = """
import sys
import numpy as np
import numgrad as ng

function, count = getattr(ng, sys.argv[1]), int(sys.argv[2])

def program(x):
    for _ in range(count):
        x = function(x) * 1.1 + 0.1
    return x

x = np.linspace(-2, 2, 2000)
eager, compiled = program(ng.from_numpy(x)).numpy(), ng.jit(program)
for _ in range(3):
    np.testing.assert_array_equal(compiled(x).numpy(), eager)
dispatcher = compiled.lower(x).dispatcher
np.testing.assert_array_equal(dispatcher(x)[0], eager)
"""


@pytest.mark.sampled(0)  # a process compiles for six seconds
@pytest.mark.parametrize(("name", "count"), [("sin", 40), ("cos", 60)])
def test_memory_of_blocks_is_there_until_the_last_loop_has_read_it(name: str, count: int) -> None:
    """Freed memory is unmapped or written over here at once, so that to use it is noticed."""
    noticing = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_PERTURB_": "165"}
    ended = subprocess.run(
        [sys.executable, "-c", MANY_BLOCKS, name, str(count)],
        env={**os.environ, **noticing},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr


@pytest.mark.sampled(0.3, by="size")
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("size", [10, 3000])
def test_sines_of_complex_angles_have_the_bits_of_eager_mode(dtype: Any, size: int) -> None:
    random = np.random.default_rng(size)
    z = (random.standard_normal(size) + 1j * random.standard_normal(size)).astype(dtype)

    def program(z: Any) -> Any:
        return z.sin(), (z * 0.5).cos() + z.abs().sin(), z.tan()

    compiled = ng.jit(program)
    for expected, found in zip(program(ng.from_numpy(z)), compiled(ng.from_numpy(z)), strict=True):
        assert found.numpy().tobytes() == expected.numpy().tobytes()
