"""Reductions beside PyTorch's and NumPy's: ``python benchmarks/reductions_compare.py [WORD ...]``.

Prints a Markdown table of medians. All libraries are measured in turns within one run, numgrad and
PyTorch on two threads (``--threads``), NumPy on the one that it uses. Words choose cases whose name
holds one of them. It needs ``torch`` beside numgrad.
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
reductions = importlib.import_module("benchmarks.reductions")


def calls_of(case: Any, libraries: Sequence[Any], with_numpy: bool) -> list[Callable[[], object]]:
    """Return what runs a case: each library, and then perhaps NumPy."""
    operands = [case.operand(library) for library in libraries]
    calls = [functools.partial(case.run, operand) for operand in operands]
    if case.numpy is not None and with_numpy:
        calls.append(functools.partial(case.numpy, operands[-1].numpy()))
    return calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="parts of the names of cases; none: all")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--without-numpy", action="store_true")
    options = parser.parse_args()
    libraries = [importlib.import_module(name) for name in figures.LIBRARIES]
    for library in libraries:
        library.set_num_threads(options.threads)
    print("| case | numgrad | PyTorch | NumPy | of PyTorch | of NumPy |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, case in reductions.CASES.items():
        if options.words and not any(word in name for word in options.words):
            continue
        medians = [
            statistics.median(series)
            for series in figures.in_turns(
                calls_of(case, libraries, not options.without_numpy), repeats=options.repeats
            )
        ]
        times = [f"{median * 1e3:.2f} ms" for median in medians] + [""] * (3 - len(medians))
        ratios = [f"{medians[0] / median:.2f}" for median in medians[1:]] + [""] * (
            3 - len(medians)
        )
        print(f"| {name} | {' | '.join(times + ratios)} |", flush=True)
        gc.collect()


if __name__ == "__main__":
    main()
