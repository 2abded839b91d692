"""Long scalar operations are compiled once for all kernels that Python calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.codegen.compile.compile import compile_functions
from numgrad.codegen.compile.pipelines import shared
from numgrad.codegen.numba_private import HAS_CACHE, HAS_PIPELINES
from numgrad.codegen.render import flat_loop
from numgrad.math.functions import FORMULAS
from tests.children import ended_well

pytestmark = pytest.mark.skipif(not HAS_PIPELINES, reason="plain Numba builds everything in")


def _code_of(name: str) -> list[str]:
    return [each for each in shared.known if each.startswith(f"numgrad.shared.{name}.")]


@pytest.mark.parametrize("dtype", [ng.float64, ng.float32])
def test_all_layouts_call_one_machine_code(dtype: Any) -> None:
    a, x = (ng.tensor([0.5, 1.5, 4.0], dtype=dtype) * by for by in (1.0, 0.7))
    expected = ng.special.gammaincc(a, x)
    before = dict(shared.known)
    assert len([each for each in _code_of("gammaincc") if str(dtype)[6:] in each]) == 1
    turned = ng.special.gammaincc(ng.stack([a, a], 1)[:, 0].flip(0), x.flip(0))
    rows = ng.special.gammaincc(a[:, None], x)
    one = ng.special.gammaincc(a[0], x[:1])
    compiled = ng.jit(lambda a, x: ng.special.gammaincc(a * 1, x) + 0)(a, x)
    assert shared.known.keys() - before == {
        name for name in shared.known.keys() - before if ".entry." in name
    }
    pairs = [(turned.flip(0), expected), (rows.diagonal(), expected), (one, expected[:1])]
    for found, wanted in [*pairs, (compiled, expected)]:
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())


def test_what_is_known_is_not_written_again() -> None:
    x = ng.tensor([0.5, 1.5])
    ng.special.gammaincc(x, x)

    def write(module: Any) -> None:
        raise AssertionError("written again")

    for name in _code_of("gammaincc"):
        shared.add(None, name, write)


@pytest.mark.parametrize("name", ["igammac", "zeta"])
def test_what_is_shared_has_the_bits_of_what_is_built_in(name: str) -> None:
    formula = FORMULAS[name]
    loop = flat_loop(formula.inputs, lambda symbols: [formula.compute(symbols)], "aa")
    a, x = (np.random.default_rng(seed).uniform(0.1, 3, 40) + 1 for seed in range(2))
    results = [np.empty(40) for _ in range(2)]
    for alone, out in zip((False, True), results, strict=True):
        compile_functions([loop], alone=alone)(a, x, out)
    assert results[0].tobytes() == results[1].tobytes()


PROGRAM = """
import numgrad as ng
from numgrad.codegen.compile.cache import counts
a = ng.tensor([0.5, 2.0], dtype=ng.float64)
print(ng.special.gammainc(a, a.flip(0)).tolist(), ng.special.gammainc(a, a[:1]).tolist())
print("hits and misses", *counts())
"""


@pytest.mark.skipif(not HAS_CACHE, reason="nothing is kept on disk")
def test_kernels_on_disk_find_it_there(tmp_path: Path) -> None:
    directory = tmp_path / "cache"
    cache = {"NUMGRAD_CACHE_DIR": str(directory)}
    first, again = (ended_well(PROGRAM, **cache).split("hits and misses") for _ in range(2))
    assert first[0] == again[0]
    assert first[1].split()[1] != "0" and again[1].split()[1] == "0"
    loop = next(each for each in directory.iterdir() if each.name.startswith("loop"))
    loop.unlink()  # one of the two is compiled anew, with what is there
    shared_files = {each: each.stat().st_mtime_ns for each in directory.glob("*.shared")}
    assert shared_files
    assert ended_well(PROGRAM, **cache).startswith(first[0])
    for file, written in shared_files.items():
        assert file.stat().st_mtime_ns == written
        file.unlink()
    assert ended_well(PROGRAM, **cache).startswith(first[0])  # and kernels whose code is gone
    assert {each.name for each in directory.glob("*.shared")} == {f.name for f in shared_files}


USER = """
import sys
sys.path.insert(0, {folder!r})
import mine
print(mine.run(2.0))
"""
MODULE = """
import numba, numpy as np, numgrad as ng
a = ng.tensor([0.5, 2.0], dtype=ng.float64)
value = ng.jit(lambda a, x: ng.special.gammaincc(a, x).sum()).lower(a, a).dispatcher
from numgrad import math

@numba.njit(cache=True)
def run(x):
    return math.gammaincc(1.5, x) + value(np.array([0.5, x]), np.array([x, 1.0]))[0]
"""


def test_users_code_has_all_of_it_built_in(tmp_path: Path) -> None:
    """What Numba keeps on disk of a user's function must find all that it calls."""
    (tmp_path / "mine.py").write_text(MODULE)
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "numba")}
    said = {ended_well(USER.format(folder=str(tmp_path)), **cache) for _ in range(2)}
    assert len(said) == 1
