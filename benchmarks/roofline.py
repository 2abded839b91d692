"""What the kernels reach of what the machine can do: ``python benchmarks/roofline.py``.

A kernel can be no faster than its bytes come from memory, and no faster than the processor
computes. Both limits are measured here, with numgrad's threads and with one, and then how near to
them kernels come on 10 or 17 million numbers. Prints a Markdown table, and draws
``benchmarks/roofline.svg`` (that needs matplotlib: ``pip install -e '.[bench]'``).

Bytes are those of the operands and results, each moved once, whatever the kernel does; elements
that a step leaves out are not counted. Floating-point operations are counted while they are carried
out (see `benchmarks/roofs/counting.py`). Times are the least of several calls, for what else the
machine does can only add to them.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

DTYPES = ("float32", "float64")
SQUARE = (4096, 4096)
FUNCTIONS = ("exp", "log", "tanh", "sin", "cos", "sigmoid", "erf", "pow(2.5)", "sqrt", "add", "mul")
LAYOUTS = ("row + column", "matrix + row", "matrix + column", "matrix + transposed")
REDUCTIONS = {
    "sum()": lambda x: x.sum(),
    "sum(0)": lambda x: x.sum(0),
    "sum(1)": lambda x: x.sum(1),
    "max(1)": lambda x: x.max(1),
    "logsumexp(1)": lambda x: x.logsumexp(1),
    "softmax(1)": lambda x: x.softmax(1),
}
GRADIENTS = {
    "exp": lambda x: x.exp(),
    "tanh": lambda x: x.tanh(),
    "sin": lambda x: x.sin(),
    "erf": lambda x: x.erf(),
    "logsumexp(1)": lambda x: x.logsumexp(1),
    "softmax(1)": lambda x: x.softmax(1),
}


@dataclass
class Kernel:
    """What is known of a kernel: what it has to do, and how long it takes."""

    group: str
    name: str
    dtype: str
    elements: int  # of the largest operand or result
    read: int  # bytes
    written: int
    operations: int
    seconds: dict[int, float] = field(default_factory=dict)  # by threads

    @property
    def bytes(self) -> int:
        return self.read + self.written

    @property
    def intensity(self) -> float:
        """Operations by byte."""
        return self.operations / self.bytes

    def limit(self, machine: Machine) -> float:
        """Return the operations a second that the machine allows."""
        mostly_reads = self.written * 10 < self.read
        bandwidth = machine.read if mostly_reads else machine.copy
        return min(machine.peak[self.dtype], self.intensity * bandwidth)


@dataclass
class Machine:
    """What some threads can do in a second."""

    read: float = 0  # bytes
    copy: float = 0
    peak: dict[str, float] = field(default_factory=lambda: dict.fromkeys(DTYPES, 0.0))

    def measure(self) -> None:
        """Look again: the best counts."""
        machine = importlib.import_module("benchmarks.roofs.machine")
        self.read = max(self.read, machine.read_bandwidth())
        self.copy = max(self.copy, machine.copy_bandwidth())
        for dtype in DTYPES:
            self.peak[dtype] = max(self.peak[dtype], machine.peak(dtype))


def cases(dtype: str) -> Iterator[tuple[str, str, Any]]:
    """Yield the group and the name of kernels, and what runs them."""
    elementwise = importlib.import_module("benchmarks.elementwise")
    for name in FUNCTIONS:
        yield "functions", name, elementwise.CASES[f"{name}, {dtype}"]
    for name in LAYOUTS:
        yield "layouts", name, elementwise.CASES[f"{name}, 10,000,000 {dtype}"]
    for name, run in REDUCTIONS.items():
        yield "reductions", name, elementwise.Case([SQUARE], run, dtype=dtype)
    for name, run in GRADIENTS.items():
        yield "gradients", f"{name}'", elementwise.Case([SQUARE], run, dtype=dtype, gradient=True)
    product = elementwise.CASES[f"gradient of matrix * row, 10,000,000 {dtype}"]
    yield "gradients", "(matrix * row)'", product


def counted() -> dict[str, int]:
    """Return the operations of each kernel, as a process that counts finds them."""
    command = [sys.executable, __file__, "--count"]
    environment = {**os.environ, "NUMGRAD_CACHE_DIR": "off", "NUMGRAD_NUM_THREADS": "1"}
    output = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    counts: dict[str, int] = json.loads(output.stdout)
    return counts


def count() -> dict[str, int]:
    """Count."""
    counter = importlib.import_module("benchmarks.roofs.counting").Counter()
    library = importlib.import_module("numgrad")
    counts = {}
    for dtype in DTYPES:
        for _, name, case in cases(dtype):
            operands = case.operands(library)
            counts[f"{name} {dtype}"] = counter.count(lambda: case.run(operands))  # noqa: B023
    return counts


def _moved(tensors: Any) -> int:
    """Return the bytes that tensors are about; what is expanded is there once."""
    return sum(
        x.element_size() * math.prod(n for n, step in zip(x.shape, x.stride(), strict=True) if step)
        for x in tensors
    )


def describe(
    group: str, name: str, dtype: str, case: Any, operands: Any, operations: int
) -> Kernel:
    """Return what a kernel has to do."""
    if case.gradient:
        # What the way back needs of the way there has the shape of an operand, or is small.
        *leaves, _, cotangent = operands
        case.run(operands)
        inputs, outputs = [*leaves, cotangent], [leaf.grad for leaf in leaves]
    else:
        result = case.function(*operands)
        inputs, outputs = operands, list(result) if isinstance(result, tuple) else [result]
    elements = max(x.numel() for x in (*inputs, *outputs))
    return Kernel(group, name, dtype, elements, _moved(inputs), _moved(outputs), operations)


def measure(threads: list[int], passes: int) -> tuple[list[Kernel], dict[int, Machine]]:
    """Measure machine and kernels."""
    library = importlib.import_module("numgrad")
    best_time = importlib.import_module("benchmarks.roofs.machine").best_time
    operations = counted()
    machines = {number: Machine() for number in threads}
    kernels: dict[str, Kernel] = {}

    def measure_machines() -> None:
        for number, machine in machines.items():
            library.set_num_threads(number)
            machine.measure()

    measure_machines()
    for dtype in DTYPES * passes:
        for group, name, case in cases(dtype):
            operands = case.operands(library)
            key = f"{name} {dtype}"
            if key not in kernels:
                kernels[key] = describe(group, name, dtype, case, operands, operations[key])
            seconds = kernels[key].seconds
            for number in threads:
                library.set_num_threads(number)
                least = best_time(lambda: case.run(operands))  # noqa: B023
                seconds[number] = min(least, seconds.get(number, math.inf))
            print(".", end="", file=sys.stderr, flush=True)
            operands = None
            gc.collect()
        measure_machines()
    print(file=sys.stderr)
    return list(kernels.values()), machines


def _of_threads(number: int) -> str:
    return "1 thread" if number == 1 else f"{number} threads"


def print_tables(kernels: list[Kernel], machines: dict[int, Machine]) -> None:
    """Print what was measured."""
    print("| limits | read, GB/s | copy, GB/s | float32, GFLOP/s | float64, GFLOP/s |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for number, machine in machines.items():
        limits = (machine.read, machine.copy, *machine.peak.values())
        row = " | ".join(f"{limit / 1e9:.1f}" for limit in limits)
        print(f"| {_of_threads(number)} | {row} |")
    for dtype in DTYPES:
        heads = [f"{_of_threads(number)}: GB/s | GFLOP/s | of the limit" for number in machines]
        print(f"\n| {dtype} | FLOP / element | FLOP / byte | {' | '.join(heads)} |")
        print("| --- | " + " | ".join(["---:"] * (2 + 3 * len(heads))) + " |")
        for kernel in kernels:
            if kernel.dtype != dtype:
                continue
            cells = [f"{kernel.operations / kernel.elements:.1f}", f"{kernel.intensity:.2f}"]
            for number, machine in machines.items():
                seconds = kernel.seconds[number]
                speed = kernel.operations / seconds
                cells += [f"{kernel.bytes / seconds / 1e9:.1f}", f"{speed / 1e9:.1f}"]
                cells.append(f"{speed / kernel.limit(machine):.0%}")
            print(f"| {kernel.name} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, help="default: as many as numgrad would use")
    parser.add_argument("--passes", type=int, default=2, help="how often everything is measured")
    parser.add_argument("--count", action="store_true", help="only count, and print JSON")
    parser.add_argument("--picture", type=Path, default=Path(__file__).with_suffix(".svg"))
    options = parser.parse_args()
    if options.count:
        print(json.dumps(count()))
        return
    draw = importlib.import_module("benchmarks.roofs.drawing").draw  # before the work: it may lack
    most = options.threads or importlib.import_module("numgrad").get_num_threads()
    kernels, machines = measure(sorted({most, 1}, reverse=True), options.passes)
    print_tables(kernels, machines)
    draw(options.picture, kernels, machines)


if __name__ == "__main__":
    main()
