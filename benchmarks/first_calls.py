"""First calls of compiled functions beside JAX: ``python benchmarks/first_calls.py [CASE ...]``.

Each is in a fresh process, in turns: with an empty cache on disk, with what that left there, and in
JAX, where that is installed. Prints a Markdown table of medians of processor time.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

BEGIN = """
import time
import numpy as np
random = np.random.default_rng(0)
X, y = random.standard_normal((100, 5)), np.where(random.random(100) > 0.5, 1.0, -1.0)
"""
LIBRARIES = {
    "numgrad": """
import numgrad as m
from numgrad.func import hessian, value_and_grad
compiled, done, given = m.jit, (lambda result: result), (lambda array: array)
""",
    "jax": """
import jax
import jax.numpy as m
from jax import hessian, value_and_grad
jax.config.update("jax_enable_x64", True)
compiled, done, given = jax.jit, jax.block_until_ready, m.asarray
""",
}
ROSENBROCK = """
def function(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
numbers = np.array([0.3, -0.2, 0.1, 0.4])
"""
CASES = {
    "Rosenbrock's function of 4, value and gradient": f"{ROSENBROCK}\nchange = value_and_grad",
    "its Hessian": f"{ROSENBROCK}\nchange = hessian",
    "a logistic loss of 100 x 5, value and gradient": """
X, y = given(X), given(y)
def function(w):
    return m.log(1 + m.exp(-(y * (X @ w)))).mean()
numbers, change = random.standard_normal(5), value_and_grad
""",
    "a chain of functions of 1,000, value and gradient": """
def function(w):
    a = m.tanh(w) * m.exp(-w * w) + m.sin(w)
    b = m.cos(a) * w + m.sqrt(w * w + 1)
    return ((m.log(b * b + 2) - a) * b).sum()
numbers, change = random.standard_normal(1000), value_and_grad
""",
    # Nothing repeats in it: no loop can be made of it.
    "1,000 drawn operations on 4 numbers": """
plan = [(int(random.integers(7)), int(random.integers(8))) for _ in range(1000)]
def function(x):
    live = [x * (k + 1.0) for k in range(8)]
    for k, (operation, j) in enumerate(plan):
        a, b = live[j], live[(j + 3) % 8]
        live[k % 8] = (
            a * b if operation == 0 else a + b if operation == 1 else a - b if operation == 2
            else a * 0.7 if operation == 3 else (m.sin, m.exp, m.tanh)[operation - 4](a)
        )
    return sum(live[1:], live[0]).sum()
numbers, change = np.linspace(0.1, 0.5, 4), (lambda function: function)
""",
}
END = """
call, numbers = compiled(change(function)), given(numbers)
begin = time.process_time()
done(call(numbers))
print(time.process_time() - begin)
"""


def measured(library: str, case: str, cache: str) -> float:
    """Return the processor seconds of a first call in a process of its own."""
    code = BEGIN + LIBRARIES[library] + CASES[case] + END
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    environment = os.environ | {"NUMGRAD_CACHE_DIR": cache, "PYTHONPATH": path}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
    )
    return float(run.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="parts of cases' names; none: all")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    has_jax = importlib.util.find_spec("jax") is not None
    print("| first call of | empty cache | warm cache | JAX | empty, of JAX | warm, of JAX |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for case in CASES:
        if options.words and not any(word in case for word in options.words):
            continue
        series: list[list[float]] = [[], [], []]
        for _ in range(options.rounds):
            with tempfile.TemporaryDirectory() as cache:
                series[0].append(measured("numgrad", case, cache))
                series[1].append(measured("numgrad", case, cache))
            if has_jax:
                series[2].append(measured("jax", case, "off"))
        cold, warm, *peer = [statistics.median(each) for each in series if each]
        cells = [f"{seconds * 1e3:.0f} ms" for seconds in (cold, warm, *peer)]
        cells += [f"{seconds / peer[0]:.2f}" for seconds in (cold, warm)] if peer else ["", "", ""]
        print(f"| {case} | {' | '.join(cells)} |", flush=True)


class FirstCalls:
    """First calls of numgrad alone, in seconds of processor time."""

    params = tuple(CASES)
    param_names = ("case",)
    unit = "s"
    timeout = 120

    def track_empty_cache(self, case: str) -> float:
        """Return what a first call takes that finds nothing on disk."""
        return measured("numgrad", case, "off")


if __name__ == "__main__":
    main()
