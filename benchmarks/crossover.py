"""From which size two threads pay: ``python benchmarks/crossover.py [CLASS ...]``.

Prints two Markdown tables. The first has, for each class of kernels, the time on two threads over
that on one, for calls that were made to share their work whatever its size; two threads pay where
it is below 1. The second has the same ratio as users meet it, with numgrad's own thresholds: where
a call stays in one thread, it is that of two equal calls, and so 1.

One thread and two take turns, sample by sample, and what counts is a low quantile of either: on a
machine that does something else, too, the others say how much that was.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

ng = importlib.import_module("numgrad")
tuning = importlib.import_module("numgrad.base.tuning")
threads = importlib.import_module("numgrad.runtime.threads")

SIZES = [10_000, 30_000, 60_000, 100_000, 200_000, 400_000, 800_000, 1_600_000]
WIDTH = 100  # of the matrices that reductions and scans work on
QUANTILE = 0.1

# What a class calls, on a flat tensor, or on a matrix with rows of `WIDTH`.
CLASSES: dict[str, tuple[bool, Callable[[Any], object]]] = {
    "arithmetic": (False, lambda x: x + x),
    "functions": (False, lambda x: x.exp()),
    "broadcast": (True, lambda x: x + x[0]),
    "reductions": (True, lambda x: x.sum(1)),
    "scans": (True, lambda x: x.cumsum(1)),
    "softmax": (True, lambda x: x.softmax(1)),
}


# The least work that a thread takes; modules have those that they use under the same names.
THRESHOLDS = [name for name in vars(tuning) if name.startswith("THREAD_")]


@contextmanager
def shared_by_all() -> Iterator[None]:
    """Have every call share its work between two threads, in one chunk each."""

    def share(task: Any, n_items: int, grain: int, *, block: int = 1) -> None:
        threads.parallel_for(task, n_items, max(1, -(-n_items // 2)), block=block)

    with ExitStack() as stack:
        for module in [m for name, m in sys.modules.items() if name.startswith("numgrad.kernels.")]:
            if hasattr(module, "parallel_for") and module is not threads:
                stack.enter_context(patch.object(module, "parallel_for", share))
            for name in THRESHOLDS:
                if hasattr(module, name):
                    stack.enter_context(patch.object(module, name, 1))
        yield


def ratio(call: Callable[[], object], seconds: float) -> tuple[float, float]:
    """Return the time of a call on one thread, and that on two over it."""
    samples: dict[int, list[float]] = {1: [], 2: []}
    for count in samples:
        ng.set_num_threads(count)
        call()
    begin = time.perf_counter()
    call()
    repeats = max(1, round(2e-4 / (time.perf_counter() - begin)))
    while time.perf_counter() - begin < seconds:
        for count, found in samples.items():
            ng.set_num_threads(count)
            start = time.perf_counter()
            for _ in range(repeats):
                call()
            found.append((time.perf_counter() - start) / repeats)
    one, two = (statistics.quantiles(found, n=round(1 / QUANTILE))[0] for found in samples.values())
    return one, two / one


def rows_of(names: list[str], seconds: float, shift: int) -> Iterator[str]:
    """Yield the rows of a table; sizes are larger by `shift`, so that calls are prepared anew."""
    for name in names:
        is_matrix, function = CLASSES[name]
        for dtype in ("float64", "float32"):
            cells = []
            for size in SIZES:
                values = np.random.default_rng(0).random(size + shift * WIDTH).astype(dtype)
                x = ng.from_numpy(values.reshape(-1, WIDTH) if is_matrix else values)
                one, two = ratio(lambda x=x, function=function: function(x), seconds)
                cells.append(f"{two:.2f}" + (f" ({one * 1e6:.0f} us)" if not shift else ""))
            yield f"| {name}, {dtype} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("classes", nargs="*", default=list(CLASSES), metavar="class")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each number")
    options = parser.parse_args()
    head = f"| class | {' | '.join(f'{size:,}' for size in SIZES)} |"
    line = "| --- |" + " ---: |" * len(SIZES)
    print("Two threads over one (one)", head, line, sep="\n")
    with shared_by_all():
        for row in rows_of(options.classes, options.seconds, 0):
            print(row, flush=True)
    print("\nThe same with numgrad's thresholds", head, line, sep="\n")
    for row in rows_of(options.classes, options.seconds, 1):
        print(row, flush=True)


if __name__ == "__main__":
    main()
