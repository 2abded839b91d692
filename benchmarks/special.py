"""Special functions, searches, scatters and distances.

``python -m benchmarks.special [WORD ...]`` puts them beside PyTorch, in turns, where that is
installed: CPU time of one thread, as other work on the machine does not count there. Words choose
cases whose name holds one of them.
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
SMALL = bool(os.environ.get("CI"))
MILLIONS = 10_000 if SMALL else 10_000_000
MANY = 10_000 if SMALL else 1_000_000
POINTS = 50 if SMALL else 1000

# Where numbers are drawn from: what is usual.
_RANGES = {
    "lgamma": (0.1, 20.0),
    "digamma": (0.1, 20.0),
    "ndtri": (0.001, 0.999),
    "bessel_y0": (0.1, 40.0),
    "bessel_y1": (0.1, 40.0),
    "modified_bessel_k0": (0.1, 20.0),
    "modified_bessel_k1": (0.1, 20.0),
    "bessel_j0": (-40.0, 40.0),
    "bessel_j1": (-40.0, 40.0),
    "erfinv": (-0.999, 0.999),
}
FUNCTIONS = (
    *("lgamma", "digamma", "erfcx", "ndtr", "log_ndtr", "ndtri", "i0", "i0e", "i1", "i1e"),
    *("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_k0"),
    *("modified_bessel_k1", "spherical_bessel_j0", "entr", "erfinv"),
)
DTYPES = ("float64", "float32")


def _numbers(name: str, size: int, dtype: str) -> np.ndarray[Any, Any]:
    low, high = _RANGES.get(name, (-5.0, 5.0))
    return np.random.default_rng(0).uniform(low, high, size).astype(dtype)


def function(m: ModuleType, name: str, size: int, dtype: str) -> Callable[[], Any]:
    """Return a call of a special function."""
    called = getattr(m, name) if name in ("lgamma", "digamma") else getattr(m.special, name)
    x = m.from_numpy(_numbers(name, size, dtype))
    return lambda: called(x)


def other(m: ModuleType, name: str) -> Callable[[], Any]:
    """Return a call of another function."""
    random = np.random.default_rng(0)
    x, y = (m.from_numpy(random.standard_normal(MANY)) for _ in range(2))
    grid = m.from_numpy(np.sort(random.standard_normal(1000)))
    a, b = (m.from_numpy(random.standard_normal((POINTS, 16))) for _ in range(2))
    index = m.from_numpy(random.integers(0, 1000, MANY))
    zeros = m.zeros(1000, dtype=m.float64)
    rows = x.reshape(-1, 100)

    def interpolated() -> Any:  # PyTorch has no function for it
        k = m.searchsorted(grid, x).clamp(1, 999)
        left, right = grid[k - 1], grid[k]
        return y[k - 1] + (x - left) / (right - left) * (y[k] - y[k - 1])

    calls: dict[str, Callable[[], Any]] = {
        "searchsorted": lambda: m.searchsorted(grid, x),
        "interp": (lambda: m.interp(x, grid, y[:1000])) if m is ng else interpolated,
        "cdist": lambda: m.cdist(a, b),
        "cdist, p = 1": lambda: m.cdist(a, b, 1.0),
        "pdist": lambda: m.pdist(a),
        "median": lambda: m.median(x),
        "median of rows": lambda: m.median(rows, 1),
        "scatter_reduce, sum": lambda: zeros.scatter_reduce(0, index, x, "sum"),
        "scatter_reduce, amax": lambda: zeros.scatter_reduce(0, index, x, "amax"),
        "gcd": lambda: m.gcd(index, index + 7),
        "nextafter": lambda: m.nextafter(x, y),
    }
    return calls[name]


OTHERS = (
    *("searchsorted", "interp", "cdist", "cdist, p = 1", "pdist", "median", "median of rows"),
    *("scatter_reduce, sum", "scatter_reduce, amax", "gcd", "nextafter"),
)


class Special:
    """Time of special functions of 10 million numbers."""

    params = (FUNCTIONS, DTYPES)
    param_names = ("function", "dtype")
    number = 1
    rounds = 1
    repeat = (3, 9, 0.5)
    timeout = 300

    def setup(self, name: str, dtype: str) -> None:
        self.run = function(ng, name, MILLIONS, dtype)
        self.run()

    def time_function(self, name: str, dtype: str) -> None:
        self.run()


class FewNumbers:
    """Time of special functions of four numbers."""

    params = ("lgamma", "digamma")
    param_names = ("function",)

    def setup(self, name: str) -> None:
        self.run = function(ng, name, 4, "float64")
        for _ in range(5):
            self.run()

    def time_function(self, name: str) -> None:
        self.run()


class Others:
    """Time of searches, scatters, medians and distances."""

    params = OTHERS
    param_names = ("function",)
    number = 1
    rounds = 1
    repeat = (3, 9, 0.5)

    def setup(self, name: str) -> None:
        self.run = other(ng, name)
        self.run()

    def time_function(self, name: str) -> None:
        self.run()


def _medians(calls: list[Callable[[], Any]], repeats: int, times: int) -> list[float]:
    """Return the median CPU time of each call, measured in turns."""
    series: list[list[float]] = [[] for _ in calls]
    for call in calls:
        for _ in range(5):
            call()
    for turn in range(repeats):
        for position in range(len(calls))[:: 1 if turn % 2 else -1]:
            begin = time.process_time()
            for _ in range(times):
                calls[position]()
            series[position].append((time.process_time() - begin) / times)
    return [statistics.median(each) for each in series]


def main() -> None:
    """Print the table."""
    import torch

    words = sys.argv[1:]
    libraries: list[ModuleType] = [ng, torch]
    for library in libraries:
        library.set_num_threads(1)
    rows: dict[str, tuple[Callable[[ModuleType], Callable[[], Any]], int, int]] = {}
    for name in FUNCTIONS:
        for dtype in DTYPES:
            rows[f"{name}, {MILLIONS:,} {dtype}"] = (
                lambda m, name=name, dtype=dtype: function(m, name, MILLIONS, dtype),
                7,
                1,
            )
    for name in ("lgamma", "digamma"):
        rows[f"{name}, 4 float64"] = (
            lambda m, name=name: function(m, name, 4, "float64"),
            21,
            5000,
        )
    for name in OTHERS:
        rows[name] = (lambda m, name=name: other(m, name), 9, 1)
    print("| what | numgrad | PyTorch | ratio |\n| --- | ---: | ---: | ---: |")
    for title, (make, repeats, times) in rows.items():
        if words and not any(word in title for word in words):
            continue
        ours, theirs = _medians([make(m) for m in libraries], repeats, times)
        unit, scale = ("ms", 1e3) if theirs > 1e-3 else ("us", 1e6)
        print(
            f"| {title} | {ours * scale:.3g} {unit} | {theirs * scale:.3g} {unit} | "
            f"{ours / theirs:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
