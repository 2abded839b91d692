"""Dispatchers of programs of few elements: what they are written as, and that their bits stay."""

from __future__ import annotations

import linecache
import re
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from numba import njit

import numgrad as ng
from numgrad import func
from numgrad.jit.ir.graph import Graph
from numgrad.jit.run.program import build
from tests.cases import examples
from tests.jit import graphs as g
from tests.jit.random_graphs import random_arrays, random_graph

MATRIX = np.random.default_rng(1).standard_normal((6, 4))
LABELS = np.array([1.0, -1, 1, 1, -1, 1])


def mixture(x: Any, weights: Any, means: Any) -> Any:
    squares = ((x - means) ** 2).sum(axis=1)
    return -ng.log((weights * ng.exp(-0.5 * squares)).sum())


def regression(w: Any, features: Any, labels: Any) -> Any:
    return (1 + (-labels * (features * w).sum(1)).exp()).log().mean()


def row_softmax(x: Any) -> Any:
    return (x.softmax(1) * x).sum()


def row_scales(x: Any) -> Any:
    centred = x - x.mean(1, keepdim=True)
    return (centred / (centred.square().mean(1, keepdim=True) + 1e-3).sqrt()).tanh()


def numbers(*shape: int, dtype: Any = np.float64) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def normals(rows: int, columns: int) -> Any:
    return numbers(columns), np.full(rows, 0.2), numbers(rows, columns)


PROGRAMS = {
    "a mixture": (func.value_and_grad(mixture), normals(5, 10)),
    "a mixture of one": (func.value_and_grad(mixture), normals(1, 3)),
    "a mixture of many": (func.value_and_grad(mixture), normals(40, 20)),
    "a mixture by rows of one": (func.value_and_grad(mixture), normals(7, 1)),
    "a mixture 3 x 3": (func.value_and_grad(mixture), normals(3, 3)),
    "a regression": (func.value_and_grad(regression), (numbers(4), MATRIX, LABELS)),
    "softmax": (lambda x: (x.softmax(0), x.log_softmax(0)), (numbers(9),)),
    "softmax of rows": (func.value_and_grad(row_softmax), (numbers(5, 7),)),
    "scaled rows": (lambda x: (row_scales(x), x.sum(0), x.amax(1)), (numbers(6, 5),)),
    "float32": (lambda x: (x.sum(1).exp(), row_scales(x)), (numbers(5, 3, dtype=np.float32),)),
    "rows in several dims": (lambda x: (x.sum(1).exp() * 2, x.amin(1).sin()), (numbers(3, 5, 4),)),
    "extremes": (lambda x: (x.amax(1).exp().amax(), (x > 0).any(1), x.prod()), (numbers(5, 30),)),
    "integers": (lambda i: (i.sum(1).double().exp(), i.amax(1)), (np.arange(12).reshape(4, 3),)),
    "long sums": (lambda x: (x.square().sum(), x.sum(1).exp().sum()), (numbers(20, 50),)),
    "sines of sums": (lambda x: (x.sin().sum(1).exp(), x.cos().sum()), (numbers(5, 6),)),
}


def source_of(dispatcher: Any) -> str:
    return "".join(linecache.getlines(dispatcher.py_func.__code__.co_filename))


@pytest.mark.sampled(0.072)
@pytest.mark.parametrize("name", PROGRAMS)
def test_dispatchers_have_the_bits_of_calls_from_python(name: str) -> None:
    function, arguments = PROGRAMS[name]
    compiled = ng.jit(function)
    lowered = compiled.lower(*arguments)
    called = compiled(*arguments)
    called = called if isinstance(called, tuple) else (called,)
    for one, other in zip(lowered.dispatcher(*arguments), called, strict=True):
        np.testing.assert_array_equal(one, other.numpy())


@settings(max_examples=examples(8), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 10**9))
@example(134059)  # what it keeps in between are no elements
def test_dispatchers_of_random_graphs(seed: int) -> None:
    graph = random_graph(Random(seed))
    program = build(graph)
    if not program.is_small:
        return
    with np.errstate(all="ignore"):
        arrays = random_arrays(graph, seed)
    for one, other in zip(program.dispatcher(*arrays), program(arrays), strict=True):
        np.testing.assert_array_equal(np.asarray(one).astype(other.dtype), other)


def test_an_exponential_of_each_row_is_computed_for_several_rows_at_once() -> None:
    arguments = normals(8, 10)
    dispatcher = ng.jit(func.value_and_grad(mixture)).lower(*arguments).dispatcher
    source = source_of(dispatcher)
    (at,) = (match.start() for match in re.finditer(r"scalar\.exp\(", source))
    before = source[:at].rsplit("for ", 1)[1]
    assert before.startswith("i0 in range(unseen(8)):")
    assert before.count("\n") == 2  # the loop, and what it reads

    @njit
    def slope(x: Any, weights: Any, means: Any) -> Any:
        return dispatcher(x, weights, means)[1]

    slope(*arguments)
    (code,) = slope.inspect_llvm().values()
    assert re.search(r"call <\d+ x double> @llvm.fma.v\d+f64", code)


def test_a_small_dispatcher_is_built_into_the_loop_that_calls_it() -> None:
    dispatcher = ng.jit(func.value_and_grad(mixture)).lower(*normals(5, 10)).dispatcher

    @njit
    def repeated(x: Any, weights: Any, means: Any) -> Any:
        total = 0.0
        for _ in range(3):
            value, gradient = dispatcher(x, weights, means)
            x = x - 0.1 * gradient
            total += value
        return total

    assert np.isfinite(repeated(*normals(5, 10)))
    (code,) = repeated.inspect_llvm().values()
    name = dispatcher.py_func.__qualname__.rsplit("_", 1)[1]
    assert not re.search(rf"call .*{name}", code)


def test_what_a_row_keeps_lies_on_the_stack() -> None:
    dispatcher = ng.jit(lambda x: x.softmax(1)).lower(numbers(4, 5)).dispatcher
    assert source_of(dispatcher).count("np.empty(") <= 2  # the result, and room of no bytes


@pytest.mark.sampled(0.036, by="kind")
@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (3, 2), (17, 5), (5, 17), (16, 16), (31, 33)])
def test_reductions_are_in_the_order_of_long_ones(kind: str, shape: tuple[int, int]) -> None:
    x = g.given(*shape)
    rows = g.reduce(kind, g.op("mul", x, 1.1), 1)
    graph = Graph([x], [rows, g.reduce("sum", g.op("exp", rows)), g.reduce(kind, x)])
    program = build(graph)
    array = numbers(*shape)
    for one, other in zip(program.dispatcher(array), program([array]), strict=True):
        np.testing.assert_array_equal(one, other)


def _compiled_sources() -> set[str]:
    """Return the files with the source of all that Numba has compiled."""
    return {name for name in linecache.cache if name.endswith(".py")}


@pytest.mark.sampled(0.3)
@pytest.mark.parametrize("which", ["many operations", "many elements", "a loop over vectors"])
def test_what_is_called_often_gets_a_call_of_its_own_without_compiling(which: str) -> None:
    def sines(x: Any) -> Any:
        for _ in range(60):
            x = x.sin() * 1.1
        return x

    def square(x: Any) -> Any:
        return (x * x).sum(), x * 2

    functions = {
        "many operations": (sines, numbers(4)),
        "many elements": (square, numbers(5000)),
        "a loop over vectors": (func.hessian(lambda x: (x.exp() * x[0]).sum()), numbers(5)),
    }
    function, x = functions[which]
    compiled = ng.jit(function)
    first = compiled(x)
    before = _compiled_sources()
    for _ in range(110):
        last = compiled(x)
    assert type(compiled) is not type(ng.jit(function))
    assert _compiled_sources() == before
    assert compiled.cache_info().hits == 110
    for one, other in zip(leaves(first), leaves(last), strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
        assert one is not other and not np.shares_memory(one.numpy(), other.numpy())
    other_size = compiled(x[:3])
    for one, expected in zip(leaves(other_size), leaves(function(ng.tensor(x[:3]))), strict=True):
        np.testing.assert_allclose(one.numpy(), expected.numpy(), rtol=1e-13)
    tracked = compiled(ng.tensor(x, requires_grad=True))
    assert all(leaf.requires_grad for leaf in leaves(tracked))


def leaves(results: Any) -> list[Any]:
    return list(results) if isinstance(results, tuple) else [results]
