"""Loops beside hand-written Numba and JAX: ``python benchmarks/loop_peers.py``.

The programs are those of `benchmarks.loops`, `benchmarks.by_hand` and `benchmarks.by_jax`.
Values and gradients, compiled, in turns within one process; what is printed are ratios of medians.
``--cold`` measures instead how long it takes from Python's first line to the first result, each in
a process of its own with an empty cache. Arguments choose programs by name; without JAX its columns
are left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from numba import njit

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

STEPS = {"hamiltonian": 1_000, "populations": 10_000}  # 1,000 of all others
HAS_JAX = importlib.util.find_spec("jax") is not None
COUNTED = {"populations", "heat", "neural_equation"}  # by hand they are told how many steps
CASES = (
    "populations 200",
    "populations",
    "kalman_filter",
    "heat",
    "hamiltonian",
    "kepler",
    "kepler_implicitly",
    "recurrent_net",
    "neural_equation",
)


def parted(case: str) -> tuple[str, int]:
    """Return which program a case is, and how many steps of it."""
    name, _, steps = case.partition(" ")
    return name, int(steps or STEPS.get(name, 1_000))


def numgrad_function(case: str, form: str = "scan") -> tuple[Any, tuple[Any, ...]]:
    """Return a compiled program and its arguments."""
    import numgrad as ng
    from benchmarks import loops

    name, steps = parted(case)
    scan = ng.func.scan if form == "scan" else loops.python_loop
    function = ng.jit(ng.func.value_and_grad(loops.PROGRAMS[name](scan, steps)))
    return function, loops.tensors(loops.arguments(name, steps))


def jax_function(case: str) -> tuple[Any, tuple[Any, ...]]:
    """Return a program compiled by JAX, and its arguments."""
    import jax
    import jax.numpy as jnp

    from benchmarks import by_jax, loops

    name, steps = parted(case)
    function = jax.jit(jax.value_and_grad(by_jax.PROGRAMS[name](steps)))
    return function, jax.tree.map(jnp.asarray, loops.arguments(name, steps))


def hand_function(case: str) -> tuple[Any, list[Any]]:
    """Return a program written by hand, and its arguments."""
    from benchmarks import loops
    from benchmarks.by_hand import BY_HAND

    name, steps = parted(case)
    return BY_HAND[name], [*flat(loops.arguments(name, steps)), *counts(name, steps)]


def counts(name: str, steps: int) -> list[int]:
    """Return what a program written by hand is told beside its arguments."""
    return [steps] if name in COUNTED else [100] if name == "hamiltonian" else []


def flat(arguments: Any) -> list[Any]:
    """Return arrays and numbers in the order of a tree."""
    from numgrad.base.pytree import flatten

    return [a if a.ndim else float(a) for a in flatten(arguments)[0]]


def repeated(function: Any, arguments: list[Any]) -> Callable[[int], Any]:
    """Return what calls a compiled function so many times from compiled code.

    Of numbers alone it is called for other ones each time: what is the same LLVM computes once.
    """
    if all(isinstance(each, float) for each in arguments):

        @njit
        def run(count: int, first: float, second: float) -> float:
            total = 0.0
            for k in range(count):
                for each in function(first, second + 1e-4 * (k & 1023)):
                    total += each
            return total

    else:

        @njit
        def run(count: int, *given: Any) -> Any:
            found = function(*given)
            for _ in range(count - 1):
                found = function(*given)
            return found

    return lambda count: run(count, *arguments)


def called(function: Any, arguments: Any, wait: Any = None) -> Callable[[int], Any]:
    """Return what calls a function so many times from Python."""

    def run(count: int) -> Any:
        for _ in range(count):
            found = function(*arguments)
            if wait is not None:
                wait(found)
        return found

    return run


def calls(case: str, has_plain: bool) -> dict[str, Callable[[int], Any]]:
    """Return all that is measured of a case."""
    name, steps = parted(case)
    function, arguments = numgrad_function(case)
    dispatcher = function.lower(*arguments).dispatcher
    from benchmarks import loops

    found = {
        "hand": repeated(*hand_function(case)),
        "dispatcher": repeated(dispatcher, flat(loops.arguments(name, steps))),
        "call": called(function, arguments),
    }
    if has_plain and not name.startswith("kepler"):
        found["for"] = called(*numgrad_function(case, "for"))
    if HAS_JAX:
        import jax

        jax.config.update("jax_enable_x64", True)
        found["JAX"] = called(*jax_function(case), jax.block_until_ready)
    return found


def measured(
    case: str, seconds: float, has_plain: bool, clock: Callable[[], float]
) -> dict[str, float]:
    """Return the median seconds of each way, taken in turns."""
    runs = calls(case, has_plain)
    counts = {}
    for key, run in runs.items():
        run(1), run(200 if parted(case)[0].startswith("kepler") else 2)
        begin = clock()
        run(1)
        counts[key] = max(1, int(2e-3 / (clock() - begin)))
    times: dict[str, list[float]] = {key: [] for key in runs}
    end = clock() + seconds
    while clock() < end or len(times["hand"]) < 5:
        for key, run in runs.items():
            begin = clock()
            run(counts[key])
            times[key].append((clock() - begin) / counts[key])
    return {key: statistics.median(each) for key, each in times.items()}


FIRST = """
import sys, time
begin = time.perf_counter()
sys.path.insert(0, {root!r})
from benchmarks import loop_peers
if {library!r} == "jax":
    import jax
    jax.config.update("jax_enable_x64", True)
function, arguments = getattr(loop_peers, {library!r} + "_function")({case!r})
imported = time.perf_counter()
found = function(*arguments)
if {library!r} == "jax":
    jax.block_until_ready(found)
print(time.perf_counter() - begin, time.perf_counter() - imported)
"""


def first_call(case: str, library: str) -> tuple[float, float]:
    """Return the seconds to a first result in a new process, all in all and of the call alone."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    script = FIRST.format(root=root, case=case, library=library)
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMGRAD_CACHE_DIR": folder, "NUMBA_CACHE_DIR": folder}
        command = [sys.executable, "-c", script]
        output = subprocess.run(command, env=environment, check=True, capture_output=True).stdout
    whole, own = map(float, output.split())
    return whole, own


def print_row(first: str, rest: list[str]) -> None:
    print(f"| {first} | {' | '.join(rest)} |", flush=True)


def print_head(columns: list[str]) -> None:
    print_row("program", columns)
    print_row("---", ["---:"] * len(columns))


def main() -> None:
    """Measure the programs that were asked for, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES)}; all if none")
    parser.add_argument("--seconds", type=float, default=5.0, help="for each program")
    parser.add_argument("--plain", action="store_true", help="as a plain for, too")
    parser.add_argument("--cold", action="store_true", help="the first call in a new process")
    parser.add_argument(
        "--cpu",
        action="store_true",
        help="the processor's time, where other work has the clock's: all threads together",
    )
    options = parser.parse_args()
    cases = options.cases or CASES
    if options.cold:
        libraries = ["numgrad", "hand"] + ["jax"] * HAS_JAX
        print_head(libraries)
        for case in cases:
            times = [first_call(case, library) for library in libraries]
            print_row(case, [f"{whole:.2f} s ({own:.2f})" for whole, own in times])
        return
    clock = time.process_time if options.cpu else time.perf_counter
    print_head(["hand", "dispatcher", "call", *["for"] * options.plain, *["JAX"] * HAS_JAX])
    for case in cases:
        found = measured(case, options.seconds, options.plain, clock)
        hand = found.pop("hand")
        ratios = {key: f"{seconds / hand:.3g}" for key, seconds in found.items()}
        if options.plain:
            ratios.setdefault("for", "")
        columns = ["dispatcher", "call", *["for"] * options.plain, *["JAX"] * HAS_JAX]
        print_row(case, [f"{hand * 1e6:.3g} us", *(ratios[each] for each in columns)])


if __name__ == "__main__":
    main()
