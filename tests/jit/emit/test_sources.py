"""What is emitted: a source for all sizes of a kind, in the graph's dtype, in vector registers."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from numba.core.registry import CPUDispatcher

import numgrad as ng
from numgrad import codegen
from numgrad.codegen.compile.compile import compile_source
from numgrad.codegen.printer import print_module
from numgrad.jit import emit
from numgrad.jit.ir.graph import Graph
from numgrad.jit.run.program import build
from tests.children import ended_well
from tests.jit import graphs as g
from tests.jit.random_graphs import random_arrays, random_graph


def layer(rows: int, columns: int, dtype: type = np.float64, factor: float = 0.7) -> Graph:
    x, bias = g.given(rows, columns, dtype=dtype), g.given(columns, dtype=dtype)
    y = g.op("mul", g.op("tanh", g.op("add", x, bias)), factor)
    return Graph([x, bias], [y, g.reduce("sum", y, 0), g.part(g.reduce("sum", y, 1), 1, rows)])


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Callable[[Graph], Any]:
    """Return what compiles a graph here: what comes from the disk cache can't be inspected."""
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", "off")

    def compile_graph(graph: Graph) -> Any:
        program = build(graph)
        run = program._emitted.function()
        function = compile_source("run", print_module([run], origins=True))  # none that is known
        arrays = [np.ones(array.shape, array.dtype) for array in program._emitted.arguments]
        header = program._emitted.header()
        function(*arrays, header, np.empty(program._emitted.room_bytes, np.uint8))
        return function

    return compile_graph


def test_other_sizes_and_constants_are_the_same_source() -> None:
    assert build(layer(5, 80)).source == build(layer(500, 70, factor=0.3)).source
    assert build(layer(5, 9)).source == build(layer(500, 60, factor=0.3)).source  # short rows


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("seed", [5, 9])  # several loops, sums, a maximum
def test_what_is_shown_runs_as_it_stands(seed: int) -> None:
    """Pasted somewhere else, compiled by Numba as users do, it has the same bits."""
    graph = random_graph(Random(seed), 200)
    program, arrays = build(graph), random_arrays(graph, seed)
    namespace: dict[str, Any] = {}
    exec(program.source, namespace)
    assert isinstance(namespace["run"], CPUDispatcher)
    emitted = program._emitted
    given = iter(map(np.ascontiguousarray, arrays))
    memory = [
        next(given) if array.role == "input" else np.empty(array.shape, array.dtype)
        for array in emitted.arguments
    ]
    namespace["run"](*memory, emitted.header(), np.empty(emitted.room_bytes, np.uint8))
    named = dict(zip([array.name for array in emitted.arguments], memory, strict=True))
    for output, expected in zip(graph.outputs, program(arrays), strict=True):
        assert named[emitted.buffers[output]].tobytes() == expected.tobytes()


def test_lines_say_what_they_came_from() -> None:
    assert "# tanh: tanh at test.py:1" in build(layer(5, 6)).source


def test_float32_stays_float32(compiled: Callable[[Graph], Any]) -> None:
    (llvm,) = compiled(layer(5, 6, np.float32)).inspect_llvm().values()
    assert " fpext " not in llvm
    assert "float>" in llvm


@pytest.mark.parametrize("views", [False, True])
def test_loops_are_vectorised(compiled: Callable[[Graph], Any], views: bool) -> None:
    x = g.given(1000)
    y = g.op("exp", g.op("mul", x, x))
    if views:
        y = g.op("sub", g.op("exp", g.part(x, 1, 1000)), g.part(x, 0, 999))
    (llvm,) = compiled(Graph([x], [y, g.reduce("sum", y)])).inspect_llvm().values()
    assert re.search(r"store <(2|4|8) x double>", llvm)
    assert not re.search(r"call double @.*exp", llvm)


def test_loops_that_read_by_steps_of_any_length_are_vectorised(
    compiled: Callable[[Graph], Any],
) -> None:
    x = g.given(30, 30)
    y = g.op("add", g.op("exp", g.transpose(x)), x)
    (llvm,) = compiled(Graph([x], [y])).inspect_llvm().values()
    assert re.search(r"call <\d+ x double> @llvm.fma", llvm)
    assert not re.search(r"icmp (eq|ne) i64 %\S+, 1$", llvm, re.MULTILINE)  # steps of 1 alone


HANDED_ON = """
import inspect
import numgrad as ng

def f(x):
    s = x.sum(1)
    a, b, c = (s * 2.0).exp(), (s + 1.0).tanh(), (s * s).log1p()
    d = (a * b).sigmoid()
    return (x * (a * b * c * d).unsqueeze(1)).sum(), a - b * d

lowered = ng.jit(f).lower(ng.ones(5, 3))
print(lowered.source, inspect.getsource(lowered.dispatcher.py_func))
"""


def test_each_process_writes_the_same_source() -> None:
    """In whatever order sets are there: else none would find in the cache what others compiled."""
    found = {ended_well(HANDED_ON), ended_well(HANDED_ON, fresh=True, PYTHONHASHSEED="4")}
    assert len(found) == 1


FOLDERS = [Path(module.__file__ or "").parent for module in (codegen, emit)]
# It reads functions that were written by hand, and none that was generated.
READER = "function_reader"
FILES = [path for folder in FOLDERS for path in folder.glob("*.py") if path.stem != READER]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_source_is_read_back(path: Path) -> None:
    """Loops are looked at and changed as trees; their text is written once."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            assert not {alias.name for alias in node.names} & {"re", "ast", "tokenize"}


@pytest.mark.parametrize(("length", "merges"), [(100, False), (1024, False), (1025, True)])
def test_sums_of_rows_of_one_block_merge_nothing(length: int, merges: bool) -> None:
    x = ng.from_numpy(np.random.default_rng(0).standard_normal((3, length)))
    function = ng.jit(lambda x: (x * 2).sum(-1) + (x * 2).logsumexp(-1))
    assert ("merge_sum" in function.lower(x).source) == merges
    assert ng.equal(function(x), (x * 2).sum(-1) + (x * 2).logsumexp(-1))
