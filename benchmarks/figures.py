"""The figures that numgrad sets itself against PyTorch's: ``python benchmarks/figures.py``.

Both are measured in turns within one run, so that whatever else the machine does meets both, and
medians are compared. Arguments choose figures. It needs ``torch`` (2.13, the CPU build) beside
numgrad.

17  ``(w + x) * (w + 1)`` of 4 float32, forward and backward
18  ``import``, and a fresh process to its first gradient with a warm cache
19  a chain of 100,000 nodes on a scalar: built, run back and freed; bytes a node
20  ``tanh(w) * exp(-w * w) + sin(w)``, summed, 10 million float64, forward and backward
21  a custom Function of 4 float32, forward and backward
22  a backward pass with 10 hooks on tensors
23  10 checkpoints one after the other, forward and backward
24  ``autograd.functional.hessian`` of Rosenbrock's function of 20 float64
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

LIBRARIES = ("numgrad", "torch")
NODES = 100_000
ELEMENTS = 10_000_000

# A library that was installed has its bytecode beside it, whatever this process was told.
WITH_BYTECODE = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

# What a fresh process runs. It says when it has got there, and the parent looks at the clock.
IMPORT = "import {library}; print('here', flush=True)"
NOTHING = "print('here', flush=True)"
FIRST_GRADIENT = """
import {library} as torch
w = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
x = torch.tensor([4.0, 3.0, 2.0, 1.0])
((w + x) * (w + 1)).sum().backward()
w.grad.tolist()
print('here', flush=True)
"""
# Memory that the graph added to the process, by node. Where the system does not tell the present
# size (/proc is Linux's), the highest so far stands in for it.
NODE_BYTES = """
import gc, sys
import {library} as torch

def resident():
    try:
        with open('/proc/self/statm') as file:
            return int(file.read().split()[1]) * 4096
    except OSError:
        import resource
        unit = 1 if sys.platform == 'darwin' else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

def build(nodes):
    y = x
    for _ in range(nodes):
        y = {step}
    return y

x = torch.tensor(0.5, requires_grad=True)
build(100).backward()
gc.collect()
before = resident()
y = build({nodes})
print((resident() - before) / {nodes})
"""
# One operation that saves a number, one that saves a tensor.
STEPS = {"y * 0.999999": "multiply", "y.sin()": "sine"}


class Report:
    """Prints measurements, and counts the goals that were missed."""

    def __init__(self) -> None:
        self.missed = 0

    def ratio(
        self, title: str, ours: Sequence[float], theirs: Sequence[float], goal: float
    ) -> None:
        """Print two series of seconds and whether the ratio of their medians is within the goal."""
        a, b = statistics.median(ours), statistics.median(theirs)
        measured = f"numgrad {_time(a)} {_spread(ours)}, PyTorch {_time(b)} {_spread(theirs)}"
        self._verdict(
            f"{title}\n    {measured}",
            f"ratio {a / b:.3f}, goal {goal}",
            a / b <= goal,
        )

    def bytes(self, title: str, ours: float, theirs: float, goal: float) -> None:
        """Print two sizes and whether ours is within the goal."""
        self._verdict(
            f"{title}\n    numgrad {ours:,.0f} bytes, PyTorch {theirs:,.0f} bytes",
            f"{ours:,.0f} bytes, goal {goal:,.0f}",
            ours <= goal,
        )

    def _verdict(self, measured: str, compared: str, reached: bool) -> None:
        self.missed += not reached
        print(f"{measured}\n    {compared}: {'reached' if reached else 'MISSED'}", flush=True)


def _time(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} us"


def _spread(seconds: Sequence[float]) -> str:
    """Return the quarter points."""
    low, _, high = statistics.quantiles(seconds, n=4)
    return f"({_time(low)} to {_time(high)})"


def in_turns(
    functions: Sequence[Callable[[], object]], *, repeats: int, calls: int = 1
) -> list[list[float]]:
    """Return for each function the seconds of one call, measured `repeats` times, in turns."""
    for function in functions:
        for _ in range(calls):
            function()
    series: list[list[float]] = [[] for _ in functions]
    rounds = range(calls)
    for turn in range(repeats):
        # Which of them is first alternates too: the second finds the caches as the first left them.
        for position in range(len(functions))[:: 1 if turn % 2 else -1]:
            function = functions[position]
            begin = time.perf_counter()
            for _ in rounds:
                function()
            series[position].append((time.perf_counter() - begin) / calls)
    return series


def processes_in_turns(codes: Sequence[str], *, repeats: int) -> list[list[float]]:
    """Return for each program the seconds from its start until it prints, in turns."""

    def start(code: str) -> float:
        begin = time.perf_counter()
        with subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, env=WITH_BYTECODE
        ) as process:
            if process.stdout is None or not process.stdout.readline():
                raise RuntimeError(f"a process failed that should have run:\n{code}")
            return time.perf_counter() - begin

    for code in codes:
        start(code)  # fills the caches: bytecode, kernels, files
    series: list[list[float]] = [[] for _ in codes]
    for _ in range(repeats):
        for position, code in enumerate(codes):
            series[position].append(start(code))
    return series


def figure_17(modules: Sequence[ModuleType], report: Report) -> None:
    """Measure a small graph."""

    def run(library: ModuleType) -> Callable[[], None]:
        w = library.tensor([1.0, -2.0, 0.5, 3.0], requires_grad=True)
        x = library.tensor([2.0, 1.0, 4.0, -1.0])
        ones = library.ones(4)

        def gradient() -> None:
            w.grad = None
            ((w + x) * (w + 1)).backward(ones)

        return gradient

    ours, theirs = in_turns([run(library) for library in modules], repeats=101, calls=300)
    report.ratio("17  (w + x) * (w + 1), 4 float32, forward and backward", ours, theirs, 0.6)


def figure_18(modules: Sequence[ModuleType], report: Report) -> None:
    """Measure fresh processes."""
    imports = [IMPORT.format(library=library) for library in LIBRARIES]
    gradients = [FIRST_GRADIENT.format(library=library) for library in LIBRARIES]
    series = processes_in_turns([NOTHING, *imports, *gradients], repeats=15)
    bare = statistics.median(series[0])  # the interpreter itself is no part of an import
    ours, theirs = ([total - bare for total in one] for one in series[1:3])
    report.ratio("18  import", ours, theirs, 0.4)
    report.ratio("18  fresh process to the first gradient", series[3], series[4], 0.7)


def figure_19(modules: Sequence[ModuleType], report: Report) -> None:
    """Measure long chains."""
    for step, name in STEPS.items():
        operation = eval(f"lambda y: {step}")

        def run(
            library: ModuleType, operation: Callable[..., object] = operation
        ) -> Callable[[], None]:
            x = library.tensor(0.5, requires_grad=True)

            def chain() -> None:
                x.grad = None
                y = x
                for _ in range(NODES):
                    y = operation(y)
                y.backward()

            return chain

        title = f"19  {NODES:,} nodes of {step}"
        ours, theirs = in_turns([run(library) for library in modules], repeats=11)
        report.ratio(f"{title}: built, run back, freed", ours, theirs, 1.0)
        ours_bytes, theirs_bytes = (_node_bytes(library, step) for library in LIBRARIES)
        report.bytes(f"{title}: memory of a {name} node", ours_bytes, theirs_bytes, 1024)


def _node_bytes(library: str, step: str) -> float:
    """Return the bytes a node adds to a fresh process."""
    code = NODE_BYTES.format(library=library, step=step, nodes=NODES)
    output = subprocess.run(
        [sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True
    )
    return float(output.stdout)


def figure_20(modules: Sequence[ModuleType], report: Report) -> None:
    """Measure a long elementwise formula."""

    def run(library: ModuleType) -> Callable[[], None]:
        values = np.random.default_rng(0).uniform(-3, 3, ELEMENTS)
        w = library.from_numpy(values).requires_grad_()

        def gradient() -> None:
            w.grad = None
            (library.tanh(w) * library.exp(-w * w) + library.sin(w)).sum().backward()

        return gradient

    functions = [run(library) for library in modules]
    ours, theirs = in_turns(functions, repeats=15)
    title = f"20  tanh(w) * exp(-w * w) + sin(w), summed, {ELEMENTS:,} float64"
    report.ratio(title, ours, theirs, 0.6)


def _cases() -> ModuleType:
    """Return the module whose cases asv measures too; it needs numgrad."""
    return importlib.import_module("benchmarks.autograd_api")


def figure_21(modules: Sequence[ModuleType], report: Report) -> None:
    """Measure a custom Function."""
    cases = _cases()

    def run(library: ModuleType) -> Callable[[], None]:
        square = cases.square_of(library)
        w, ones = library.ones(4, requires_grad=True), library.ones(4)

        def gradient() -> None:
            w.grad = None
            square.apply(w).backward(ones)

        return gradient

    ours, theirs = in_turns([run(library) for library in modules], repeats=101, calls=200)
    report.ratio("21  a custom Function of 4 float32, forward and backward", ours, theirs, 0.6)


def figure_22(modules: Sequence[ModuleType], report: Report) -> None:
    """Measure hooks."""
    cases = _cases()

    def run(library: ModuleType) -> Callable[[], None]:
        w, ones = library.ones(4, requires_grad=True), library.ones(4)
        last = cases.hooked_chain(w, cases.nothing)

        def gradient() -> None:
            w.grad = None
            last.backward(ones, retain_graph=True)

        return gradient

    ours, theirs = in_turns([run(library) for library in modules], repeats=101, calls=100)
    report.ratio("22  a backward pass with 10 hooks on tensors", ours, theirs, 0.6)


def figure_23(modules: Sequence[ModuleType], report: Report) -> None:
    """Measure checkpoints."""
    cases = _cases()
    importlib.import_module("torch.utils.checkpoint")

    def run(library: ModuleType, elements: int, reentrant: bool) -> Callable[[], None]:
        w, ones = library.ones(elements, requires_grad=True), library.ones(elements)

        def gradient() -> None:
            w.grad = None
            cases.segments(library, w, reentrant).backward(ones)

        return gradient

    for elements in (4, 1000):
        for reentrant in (False, True):
            functions = [run(library, elements, reentrant) for library in modules]
            ours, theirs = in_turns(functions, repeats=41, calls=10)
            title = f"23  10 checkpoints of {elements:,} float32, use_reentrant={reentrant}"
            report.ratio(title, ours, theirs, 0.7)


def figure_24(modules: Sequence[ModuleType], report: Report) -> None:
    """Measure a Hessian."""

    def run(library: ModuleType) -> Callable[[], object]:
        x = library.linspace(-1, 2, 20, dtype=library.float64)

        def rosenbrock(x: Any) -> Any:
            return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

        return lambda: library.autograd.functional.hessian(rosenbrock, x)

    ours, theirs = in_turns([run(library) for library in modules], repeats=51, calls=5)
    report.ratio("24  functional.hessian of Rosenbrock, 20 float64", ours, theirs, 0.5)


FIGURES = {
    17: figure_17,
    18: figure_18,
    19: figure_19,
    20: figure_20,
    21: figure_21,
    22: figure_22,
    23: figure_23,
    24: figure_24,
}


def environment(modules: Sequence[ModuleType]) -> None:
    """Print what the figures depend on."""
    numba = importlib.import_module("numba")
    versions = [f"{module.__name__} {module.__version__}" for module in (*modules, np, numba)]
    print(f"Python {platform.python_version()}, {', '.join(versions)}")
    threads = [f"{module.__name__} {module.get_num_threads()}" for module in modules]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"{_processor()}, {cores} cores; threads: {', '.join(threads)}")
    if hasattr(os, "getloadavg") and os.getloadavg()[0] > 0.5:  # Windows has none
        print(f"Something else is running here: the load is {os.getloadavg()[0]:.1f}.")
    print()


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:  # not Linux
        pass
    return platform.processor() or platform.machine()


def main() -> int:
    """Measure, print, and return 1 if a goal was missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "figures", nargs="*", type=int, metavar="figure", help="see above; default: all"
    )
    parser.add_argument("--threads", type=int, help="for both; default: what numgrad would use")
    arguments = parser.parse_args()
    for number in arguments.figures:
        if number not in FIGURES:
            parser.error(f"there is no figure {number}; there are {', '.join(map(str, FIGURES))}")
    modules = []
    for name in LIBRARIES:
        try:
            modules.append(importlib.import_module(name))
        except ImportError as error:
            sys.exit(
                f"{name} can't be imported ({error}). These figures compare numgrad with PyTorch: "
                "run `pip install -e .` and `pip install torch==2.13.0` first."
            )
    numgrad, torch = modules
    if arguments.threads is not None:
        numgrad.set_num_threads(arguments.threads)
    torch.set_num_threads(numgrad.get_num_threads())
    environment(modules)
    report = Report()
    for number in arguments.figures or FIGURES:
        FIGURES[number](modules, report)
        gc.collect()
    return 1 if report.missed else 0


if __name__ == "__main__":
    sys.exit(main())
