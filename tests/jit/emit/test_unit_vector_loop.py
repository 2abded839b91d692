"""Loops over unit vectors: called from Python, in threads, and in compiled code."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest
from numba import njit

import numgrad as ng
from numgrad import func
from numgrad.jit.run.program import build

MATRIX = np.random.default_rng(0).standard_normal((5, 6))


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def by_products(x: Any) -> Any:
    return (ng.from_numpy(MATRIX) @ x.sin()).tanh()


def by_large_products(x: Any) -> Any:
    return (x.outer(x) @ x.outer(x.exp())).sum(0)


def by_rank(x: Any) -> Any:
    return (x * x.sum()).sort().values * 2


FUNCTIONS = {
    "a Hessian": (func.hessian(rosenbrock), 6),
    "a Hessian of many elements": (func.hessian(rosenbrock), 80),
    "a Hessian for several threads": (func.hessian(rosenbrock), 400),
    "forwards": (func.jacfwd(by_products), 6),
    "backwards": (func.jacrev(by_products), 6),
    "large products": (func.jacrev(by_large_products), 60),
    "what has no compiled form": (func.jacrev(by_rank), 7),
    "several results": (func.jacfwd(lambda x: (x.outer(x), x.sum(), x[:2] * 3)), 4),
    "results that depend on no vector": (func.jacrev(lambda x: (x, x[::2] * 2, x.sin())), 4),
    "strided operands": (func.jacfwd(lambda x: x.outer(x).exp().T @ x.sin()), 6),
    "a loop in a loop": (func.jacfwd(func.jacrev(lambda x: x.sin() * x.sum())), 4),
    "what is done to the loop's result": (lambda x: func.hessian(rosenbrock)(x).exp().sum(0), 6),
    "float32": (func.hessian(lambda x: (x.float() ** 3).sum().double()), 5),
}


def numbers(size: int) -> Any:
    return np.random.default_rng(size).standard_normal(size)


def flat(results: Any) -> list[Any]:
    if isinstance(results, tuple):
        return [each for result in results for each in flat(result)]
    return [results.numpy() if isinstance(results, ng.Tensor) else results]


@pytest.mark.sampled(0.072)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_loops_do_what_eager_mode_does(name: str) -> None:
    function, size = FUNCTIONS[name]
    x = numbers(size)
    expected = flat(function(ng.from_numpy(x)))
    compiled = ng.jit(function)
    first, again = flat(compiled(x)), flat(compiled(x))
    in_compiled_code = compiled.lower(x).dispatcher(x)
    for k, one in enumerate(expected):
        np.testing.assert_allclose(first[k], one, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(again[k], first[k])
        # A small product is a loop in compiled code, and a call of BLAS from Python.
        np.testing.assert_allclose(in_compiled_code[k], first[k], rtol=1e-13, atol=1e-14)


def test_results_of_calls_share_no_memory() -> None:
    compiled = ng.jit(func.hessian(rosenbrock))
    x = numbers(6)
    first, second = compiled(x), compiled(x)
    second.fill_(0)
    np.testing.assert_array_equal(first.numpy(), compiled(x).numpy())


def test_arguments_of_any_strides() -> None:
    compiled = ng.jit(func.hessian(rosenbrock))
    x = numbers(12)
    expected = compiled(x[::2].copy()).numpy()
    np.testing.assert_array_equal(compiled(x[::2]).numpy(), expected)
    np.testing.assert_array_equal(compiled.lower(x[::2]).dispatcher(x[::2])[0], expected)


@pytest.mark.parametrize(("size", "direct"), [(50, True), (400, False)])
def test_a_small_loop_is_called_without_threads(size: int, direct: bool) -> None:
    graph = ng.jit(func.hessian(rosenbrock)).lower(numbers(size)).graph
    lines = build(graph).call_lines(["x"]).lines
    assert any(line.strip().startswith("loop_") for line in lines) is direct


def test_compiled_code_runs_a_loop_without_the_interpreter() -> None:
    dispatcher = ng.jit(func.hessian(rosenbrock)).lower(numbers(6)).dispatcher

    @njit
    def newton(x: Any) -> Any:
        (hessian,) = dispatcher(x)
        return np.trace(hessian)

    x = numbers(6)
    expected = func.hessian(rosenbrock)(ng.from_numpy(x)).numpy().trace()
    assert newton(x) == pytest.approx(expected, rel=1e-13)
    source = "".join(linecache.getlines(dispatcher.py_func.__code__.co_filename))
    assert "with objmode" not in source


def test_what_is_the_same_for_all_vectors_is_done_once() -> None:
    """Sines of the point are computed in front of the loop, whose body has arithmetic only."""
    dispatcher = ng.jit(func.hessian(lambda x: (x.sin() * x[0]).sum())).lower(numbers(6)).dispatcher
    lines = linecache.getlines(dispatcher.py_func.__code__.co_filename)
    start = next(k for k, line in enumerate(lines) if line.startswith("def loop_0("))
    stop = next(k for k, line in enumerate(lines) if line.startswith("def call("))
    loop = lines[start:stop]
    assert any(" * " in line for line in loop)
    assert not any("scalar." in line or "near_" in line or "as_argument(" in line for line in loop)
