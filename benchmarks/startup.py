"""What a fresh process waits for: the import, the first gradient, the compilation of a kernel."""

from __future__ import annotations

import subprocess
import sys

FIRST_GRADIENT = """
import numgrad as ng
w = ng.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
((w + 2) * (w + 1)).sum().backward()
"""
# Ten operations, compiled with their gradient. One small function is compiled before: the first
# compilation of a process takes longer.
COMPILED = """
import numpy as np, numgrad as ng
def loss(w, x):
    a = ng.tanh(w * x) + ng.exp(-w * w)
    b = ng.sigmoid(a) * ng.sin(x)
    return (b * b + a).sum()
function = ng.jit(ng.func.value_and_grad(loss))
w, x = np.linspace(-1, 1, 1000), np.linspace(0, 2, 1000)
ng.jit(lambda x: 2 * x)(w)
"""
# A kernel cache that is empty, and gone after the process.
EMPTY_CACHE = """
import os, tempfile
directory = tempfile.TemporaryDirectory()
os.environ['NUMGRAD_CACHE_DIR'] = directory.name
import numgrad as ng
x = ng.ones(4)
"""


def _fill_cache(code: str) -> None:
    """Run code once, so that the kernels it needs are on disk."""
    subprocess.run([sys.executable, "-c", code], check=True)


class WarmCache:
    """A process that finds on disk what it needs."""

    repeat = 5

    def setup(self) -> None:
        _fill_cache(FIRST_GRADIENT + "\nng.ones(4).tanh()\n")
        _fill_cache(COMPILED + "function(w, x)")

    def timeraw_import(self) -> str:
        return "import numgrad"

    def timeraw_first_gradient(self) -> str:
        return FIRST_GRADIENT

    def timeraw_load_a_kernel(self) -> tuple[str, str]:
        return "x.tanh()", "import numgrad as ng\nx = ng.ones(4)"

    def timeraw_load_a_compiled_function(self) -> tuple[str, str]:
        return "function(w, x)", COMPILED


class EmptyCache:
    """A process that has to compile."""

    repeat = 3

    def timeraw_first_gradient(self) -> tuple[str, str]:
        return FIRST_GRADIENT, EMPTY_CACHE

    def timeraw_compile_the_first_kernel(self) -> tuple[str, str]:
        return "x.tanh()", EMPTY_CACHE

    def timeraw_compile_another_kernel(self) -> tuple[str, str]:
        return "x.tanh()", EMPTY_CACHE + "x.exp()\n"

    def timeraw_compile_a_function(self) -> tuple[str, str]:
        return "function(w, x)", EMPTY_CACHE + COMPILED
