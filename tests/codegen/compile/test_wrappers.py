"""Entries of kernels for Python, which kernels of the same types share: they do as Numba's own."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numgrad.codegen.compile.compile import compile_source
from numgrad.codegen.compile.pipelines import shared
from numgrad.codegen.numba_private import HAS_CACHE, HAS_PIPELINES
from tests.cases import examples
from tests.children import ended_well

pytestmark = pytest.mark.skipif(not HAS_PIPELINES, reason="kernels are compiled as by njit")

ARGUMENTS = {
    "float": 1.5,
    "int": 3,
    "bool": True,
    "complex": 1j,
    "float32 row": np.ones(4, "float32"),
    "float64 row": np.ones(4),
    "every other": np.ones(8)[::2],
    "matrix": np.ones((2, 3)),
    "transposed": np.ones((2, 3)).T,
    "pair": (2.0, np.ones(2)),
}
RESULTS = {
    "nothing": "return",
    "an argument": "return {0}",
    "a number": "return 2.5",
    "two": "return {0}, 1",
    "an error": "raise ValueError('no')",
}
_numbers = count()


def outcome(function: Any, arguments: list[Any]) -> tuple[str, list[int]]:
    """Return what comes of a call, and of how many references to the arguments it leaves."""
    try:
        found = repr(function(*arguments))
    except ValueError as error:
        found = repr(error)
    arrays = [each for each in arguments if isinstance(each, np.ndarray)]
    return found, list(map(sys.getrefcount, arrays))


@settings(max_examples=examples(30))
@given(
    names=st.lists(st.sampled_from(sorted(ARGUMENTS)), min_size=1, max_size=4),
    result=st.sampled_from(sorted(RESULTS)),
)
def test_a_shared_entry_does_as_the_one_that_numba_builds(names, result):
    parameters = [f"a{position}" for position in range(len(names))]
    arguments = [ARGUMENTS[name] for name in names]
    line = RESULTS[result].format(parameters[0])
    outcomes = []
    for _ in range(2):
        source = f"def f({', '.join(parameters)}):\n    {line}  # {next(_numbers)}\n"
        outcomes.append(outcome(compile_source("f", source), arguments))
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    expected = outcome(numba.njit(namespace["f"]), arguments)
    assert outcomes == [expected, expected]


def test_entries_for_the_same_types_are_compiled_once():
    entries = []
    for _ in range(3):
        source = f"def f(a, b, c):\n    a[0] = b + c.real  # {next(_numbers)}\n"
        compile_source("f", source)(np.ones(3, "int8"), 2.0, 1j)
        entries.append(set(shared.known))
    assert entries[0] == entries[1] == entries[2]
    with pytest.raises(TypeError, match="3"):
        compile_source("f", f"def f(a, b, c):\n    a[0] = b  # {next(_numbers)}\n")(np.ones(3))


PROGRAM = """
import sys
import numpy as np
from numgrad.codegen.compile.cache import counts
from numgrad.codegen.compile.compile import compile_source
for number in sys.argv[1]:
    f = compile_source("f", f"def f(a, b):\\n    a[0] = b + {number}\\n")
    a = np.ones(3)
    f(a, 2.0)
    print(a[0], end=" ")
print(*counts())
"""


@pytest.mark.skipif(not HAS_CACHE, reason="nothing is kept on disk")
def test_kernels_on_disk_have_their_entry_with_them(tmp_path: Path):
    cache = {"NUMGRAD_CACHE_DIR": str(tmp_path / "cache")}
    assert ended_well(PROGRAM, "1", **cache) == "3.0 0 1\n"
    assert ended_well(PROGRAM, "12", **cache) == "3.0 4.0 1 1\n"
    assert ended_well(PROGRAM, "2", **cache) == "4.0 1 0\n"
    assert ended_well(PROGRAM, "21", **cache) == "4.0 3.0 2 0\n"
