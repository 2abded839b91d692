"""Printed sources of kernels: ``@njit`` functions that run pasted elsewhere, with the same bits."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from numba.core.registry import CPUDispatcher

import numgrad as ng
from numgrad.codegen.compile.compile import compile_functions
from numgrad.codegen.loops import Function
from numgrad.func import cond, grad, scan, value_and_grad, while_loop
from numgrad.jit.emit import standalone
from numgrad.jit.run import program
from numgrad.jit.run.program import build
from numgrad.kernels.matrices import unrolled
from numgrad.kernels.pointwise import elementwise
from numgrad.kernels.pointwise.elementwise import Elementwise
from numgrad.math import functions
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.core.primitive import CATALOGUE
from tests.jit.random_graphs import random_arrays, random_graph

Run = Callable[[], Sequence[Any]]
COMPILING = (elementwise, unrolled, standalone, program, functions)
ELEMENTWISE = [
    name
    for name, each in sorted(CATALOGUE.items())
    if isinstance(each, ElementwisePrimitive) and name.isidentifier() and "f" in each.accepts
]


class Pasting:
    """Has sources pasted into files, and compiled as users do, in the place of kernels."""

    def __init__(self, patch: pytest.MonkeyPatch, folder: Path) -> None:
        self.patch, self.folder, self.sources = patch, folder, list[str]()

    def bits(self, run: Run) -> list[tuple[Any, bytes]]:
        """Return the bits of what is computed by kernels that are pasted."""
        with self.patch.context() as patch:
            for module in COMPILING:
                patch.setattr(module, "compile_functions", self.compile)
            return bits(run())

    def compile(self, made: Sequence[Function], **options: Any) -> Any:
        """Return what a user makes of the source that is shown of a kernel."""
        source = compile_functions(made, **options).source
        check(source)
        self.sources.append(source)
        name = f"pasted_{len(self.sources)}"
        path = self.folder / f"{name}.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        finally:
            del sys.modules[name]
        function = getattr(module, made[-1].name)
        assert type(function) is CPUDispatcher
        return function


def check(source: str) -> None:
    """A module is imports of NumPy, Numba and numgrad, and functions under ``@njit``."""
    for node in ast.parse(source).body:
        match node:
            case ast.ImportFrom(module=str(module)):
                assert module == "numba" or module.startswith("numgrad."), source
            case ast.Import(names=[ast.alias(name="numpy")]):
                pass
            case ast.FunctionDef(decorator_list=[ast.Call(func=ast.Name("njit"))]):
                pass
            case ast.Expr(value=ast.Constant(value=str())):  # the docstring
                assert node.lineno == 1
            case _:
                raise AssertionError(source)


@pytest.fixture
def pasting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Pasting:
    return Pasting(monkeypatch, tmp_path)


def bits(results: Sequence[Any]) -> list[tuple[Any, bytes]]:
    arrays = [np.asarray(each.numpy() if isinstance(each, ng.Tensor) else each) for each in results]
    return [((each.dtype, each.shape), each.tobytes()) for each in arrays]


def same(pasting: Pasting, run: Run) -> None:
    """What kernels compute, and what is pasted."""
    assert pasting.bits(run) == bits(run())
    assert pasting.sources


# --- elementwise kernels, and sums of what they compute ------------------------------------------


def laid_out(random: Random, array: np.ndarray) -> np.ndarray:
    """Return an array in some layout: as it is, transposed in memory, or by steps backwards."""
    way = random.randrange(3)
    if way == 0 or not array.ndim:
        return array
    if way == 1:
        return np.asfortranarray(array)
    room = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    room[..., ::-2] = array
    return room[..., ::-2]


@pytest.mark.sampled(0.009)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_kernels(pasting: Pasting, name: str) -> None:
    random, primitive = Random(name), CATALOGUE[name]
    dtype = np.dtype(random.choice(["f", "d"]))
    draws = np.random.default_rng(len(name))
    shape, shapes = (5, 40), [(5, 40), (40,), (5, 1)]
    operands: list[Any] = []
    for position, domain in enumerate(primitive.domains):
        if position >= primitive.tensor_count:
            operands.append(float(domain.draw((), draws)))
            continue
        drawn = np.asarray(domain.draw(random.choice(shapes) if position else shape, draws))
        is_mask = position in primitive.masks
        operands.append(laid_out(random, drawn.astype(bool if is_mask else dtype)))
    outputs = [primitive.result_dtype([dtype]) if primitive.kind == "truth" else dtype]
    sums = None if outputs[0].kind == "b" else [random.choice([(1, 1), (5, 1), (1, 40)])]

    def run() -> Sequence[Any]:
        kernel = Elementwise(name, primitive.inputs, primitive.kernel.formula)
        found = kernel(shape, operands, outputs)
        return found if sums is None else [*found, *kernel(shape, operands, outputs, sums)]

    same(pasting, run)


# --- compiled programs ---------------------------------------------------------------------------


@pytest.mark.sampled(0.036)
@pytest.mark.parametrize("seed", range(16))
def test_compiled_programs_and_dispatchers(pasting: Pasting, seed: int) -> None:
    """Loop nests with reductions; small programs are unrolled."""
    random = Random(seed)
    graph = random_graph(random, random.choice([12, 400, 3000]))
    arrays = random_arrays(graph, seed)

    def run() -> Iterator[Any]:
        made = build(graph)
        yield from made(arrays)
        yield from made.dispatcher(*arrays)

    same(pasting, lambda: list(run()))


def _stepped(random: Random) -> Callable[[Any, Any], Any]:
    """Return what a turn of a loop does with its carry and a row."""
    ways: list[Callable[[Any, Any], Any]] = [
        lambda c, row: (c * 0.7 + row).tanh(),
        lambda c, row: c - 0.1 * grad(lambda c: (c * c * row).sum())(c),
        lambda c, row: cond(c.sum() > row.sum(), ng.sin, lambda c: c * row, c),
        lambda c, row: while_loop(lambda c: (c * c).sum() > 0.5, lambda c: c * row / 2, c),
        lambda c, row: ng.linalg.solve(ng.outer(c, row) + 3 * ng.eye(2, dtype=c.dtype), row),
        lambda c, row: ng.outer(c, row) @ row / 9,
        lambda c, row: ng.linalg.eigvalsh(ng.outer(c, c) + ng.diag(row)),  # by the interpreter
    ]
    chosen = random.sample(ways, 2)
    return lambda c, row: chosen[1](chosen[0](c, row), row)


@pytest.mark.sampled(0.06)
@pytest.mark.parametrize("seed", range(6))
def test_loops(pasting: Pasting, seed: int) -> None:
    random = Random(seed)
    step, is_plain, count = _stepped(random), random.random() < 0.4, random.choice([3, 40])
    dtype = random.choice([np.float32, np.float64])
    c, rows = (
        np.random.default_rng(seed).uniform(0.1, 1, shape).astype(dtype)
        for shape in ((2,), (count, 2))
    )

    def loss(c: Any, rows: Any) -> Any:
        if is_plain:
            for row in rows:
                c = step(c, row)
            return (c * c).sum()
        c, stacked = scan(lambda c, row: (step(c, row), c.sum()), c, rows)
        return (c * c).sum() + stacked.sum()

    def run() -> Sequence[Any]:
        compiled = ng.jit(value_and_grad(loss))
        return [*compiled(c, rows), *compiled.lower(c, rows).dispatcher(c, rows)]

    same(pasting, run)


# --- functions of numbers ------------------------------------------------------------------------


@pytest.mark.sampled(0.03)
@pytest.mark.parametrize("name", ELEMENTWISE[::3])  # the others print as kernels, above
def test_functions_of_numbers(pasting: Pasting, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    primitive, draws = CATALOGUE[name], np.random.default_rng(len(name))
    points = [[float(domain.draw((), draws)) for domain in primitive.domains] for _ in range(4)]

    def run() -> Sequence[Any]:
        monkeypatch.setattr(functions, "_functions", {})  # none that is known
        function = functions.scalar_function(name)
        found = [function(*point) for point in points]
        if functions.has_function(f"{name}_vjp"):
            rule = functions.scalar_function(f"{name}_vjp")
            found += [rule(1.5, *point) for point in points]
        return found

    same(pasting, run)
