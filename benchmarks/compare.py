"""Kernels beside PyTorch's and NumPy's: ``python benchmarks/compare.py [WORD ...]``.

Prints a Markdown table of medians. All libraries are measured in turns within one run, numgrad and
PyTorch on as many threads as numgrad would use (``--threads``), NumPy on the one that it uses.
Words choose cases whose name holds one of them. It needs ``torch`` beside numgrad.
"""

from __future__ import annotations

import argparse
import functools
import gc
import importlib
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

figures = importlib.import_module("benchmarks.figures")
CASES = {
    name: case
    for module in ("elementwise", "reductions", "contractions")
    for name, case in importlib.import_module(f"benchmarks.{module}").CASES.items()
}


def calls_of(case: Any, libraries: Sequence[Any], with_numpy: bool) -> list[Callable[[], object]]:
    """Return what runs a case: each library, and then perhaps NumPy."""
    operands = [case.operands(library) for library in libraries]
    calls = [functools.partial(case.run, operand) for operand in operands]
    if case.numpy is not None and with_numpy:
        calls.append(functools.partial(case.numpy, case.operands(importlib.import_module("numpy"))))
    return calls


def as_time(seconds: float) -> str:
    """Return a time as it stands in the table."""
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} us"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="parts of the names of cases; none: all")
    parser.add_argument("--threads", type=int, help="of numgrad and PyTorch")
    parser.add_argument("--seconds", type=float, default=1.0, help="about how long for each case")
    parser.add_argument("--without-numpy", action="store_true")
    options = parser.parse_args()
    libraries = [importlib.import_module(name) for name in figures.LIBRARIES]
    threads = options.threads or libraries[0].get_num_threads()
    for library in libraries:
        library.set_num_threads(threads)
    print("| case | numgrad | PyTorch | NumPy | of PyTorch | of NumPy |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, case in CASES.items():
        if options.words and not any(word in name for word in options.words):
            continue
        calls = calls_of(case, libraries, not options.without_numpy)
        once = sum(map(min, figures.in_turns(calls, repeats=2)))
        repeats = max(7, min(301, round(options.seconds / once)))
        medians = [statistics.median(s) for s in figures.in_turns(calls, repeats=repeats)]
        missing = 3 - len(medians)
        times = [as_time(median) for median in medians] + [""] * missing
        ratios = [f"{medians[0] / median:.2f}" for median in medians[1:]] + [""] * missing
        print(f"| {name} | {' | '.join(times + ratios)} |", flush=True)
        del calls
        gc.collect()


if __name__ == "__main__":
    main()
