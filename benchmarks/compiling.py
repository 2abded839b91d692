"""What a call costs that has to compile: ``python benchmarks/compiling.py [CALL ...]``.

Prints a Markdown table: the processor time of a first call, each in a process of its own without a
disk cache, and how often the kernel of ``x + 1`` could be compiled in it, there and then. It forks,
so that all start from one process that has compiled some kernels before.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

ng = importlib.import_module("numgrad")
compile_source = importlib.import_module("numgrad.codegen.compile.compile").compile_source

SOURCE = "def loop(x, out):\n    for i in range(x.size):\n        out[i] = x[i] + {}.5\n"
CALLS: dict[str, Callable[[Any], object]] = {
    "x * x": lambda x: x * x,
    "exp": lambda x: x.exp(),
    "log": lambda x: x.log(),
    "sin": lambda x: x.sin(),
    "tanh": lambda x: x.tanh(),
    "sigmoid": lambda x: x.sigmoid(),
    "erf": lambda x: x.erf(),
    "pow(2.5)": lambda x: x.pow(2.5),
    "sum(1)": lambda x: x.sum(1),
    "amax(1)": lambda x: x.amax(1),
    "var(1)": lambda x: x.var(1),
    "argmax(1)": lambda x: x.argmax(1),
    "argmin(0)": lambda x: x.argmin(0),
    "logsumexp(1)": lambda x: x.logsumexp(1),
    "softmax(1)": lambda x: x.softmax(1),
    "log_softmax(1)": lambda x: x.log_softmax(1),
    "cumsum(1)": lambda x: x.cumsum(1),
    "cummax(1)": lambda x: x.cummax(1),
    "logcumsumexp(1)": lambda x: x.logcumsumexp(1),
}
_numbers = count()


def processor_time(call: Callable[[], object]) -> float:
    """Return the seconds that a call keeps a processor busy."""
    begin = time.process_time()
    call()
    return time.process_time() - begin


def simple() -> None:
    """Compile a kernel that nobody compiled before."""
    numbers = np.ones(8)
    compile_source("loop", SOURCE.format(next(_numbers)))(numbers, numbers)


def measured(call: Callable[[], object]) -> tuple[float, float]:
    """Return the processor time of a call in a child process, and that of `simple` around it."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        before = [processor_time(simple) for _ in range(2)]
        own = processor_time(call)
        after = [processor_time(simple) for _ in range(2)]
        os.write(writer, f"{own} {statistics.median(before + after)}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        own, other = map(float, pipe.read().split())
    return own, other


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("calls", nargs="*", default=list(CALLS), metavar="call")
    options = parser.parse_args()
    os.environ["NUMGRAD_CACHE_DIR"] = "off"  # not where it is imported, which asv does
    for _ in range(3):
        simple()
    print("| call | float64 | of x + 1 | float32 | of x + 1 |")
    print("| --- | ---: | ---: | ---: | ---: |", flush=True)
    for name in options.calls:
        cells = []
        for dtype in ("float64", "float32"):
            x = ng.from_numpy(np.random.default_rng(0).uniform(0.5, 2, (8, 9)).astype(dtype))
            own, other = measured(lambda x=x, name=name: CALLS[name](x))
            cells += [f"{own * 1e3:.0f} ms", f"{own / other:.1f}"]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
