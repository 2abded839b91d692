"""Fourier transforms, forward and with a gradient.

``python -m benchmarks.fourier`` puts them beside PyTorch, in turns, where that is installed.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

import numgrad as ng

# Where tests run, cases have only to run.
LENGTH = 1 << (10 if os.environ.get("CI") else 20)
SHAPES = {"one": (LENGTH,), "rows": (64, LENGTH // 64), "few": (64,)}
DTYPES = ("float32", "float64", "complex64", "complex128")


def transform(m: ModuleType, x: Any) -> Callable[[], Any]:
    """Return the transform of what `x` is made of: half of it for real numbers."""
    function = m.fft.fft if x.is_complex() else m.fft.rfft
    return lambda: function(x)


def gradient(m: ModuleType, x: Any) -> Callable[[], Any]:
    """Return the transform and the way back from a sum of it."""
    x = x.detach().requires_grad_()
    forward = transform(m, x)

    def run() -> None:
        x.grad = None
        forward().abs().sum().backward()

    return run


def operand(m: ModuleType, shape: str, dtype: str) -> Any:
    values = np.random.default_rng(0).standard_normal(SHAPES[shape])
    return m.from_numpy(values.astype(dtype))


class Fourier:
    """Time of a transform, and of one with its gradient."""

    params = (list(SHAPES), list(DTYPES))
    param_names = ("shape", "dtype")

    def setup(self, shape: str, dtype: str) -> None:
        x = operand(ng, shape, dtype)
        self.forward, self.both = transform(ng, x), gradient(ng, x)
        self.forward()
        self.both()

    def time_transform(self, shape: str, dtype: str) -> None:
        self.forward()

    def time_with_gradient(self, shape: str, dtype: str) -> None:
        self.both()


def main() -> None:
    """Print the time of each case, and how many times PyTorch's that is."""
    import torch

    for make in (transform, gradient):
        for shape in SHAPES:
            for dtype in DTYPES:
                runs = [make(m, operand(m, shape, dtype)) for m in (ng, torch)]
                times: list[list[float]] = [[], []]
                for _ in range(25):
                    for run, taken in zip(runs, times, strict=True):
                        begin = time.perf_counter()
                        run()
                        taken.append(time.perf_counter() - begin)
                ours, theirs = (statistics.median(taken[3:]) for taken in times)
                case = f"{make.__name__:9} {shape:5} {dtype:10}"
                sys.stdout.write(
                    f"{case} {ours * 1e3:9.3f} ms  {ours / theirs:5.2f} of PyTorch's\n"
                )


if __name__ == "__main__":
    main()
