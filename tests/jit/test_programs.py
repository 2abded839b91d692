"""Random programs are the same with jit as without: results, first and second derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note, settings

import numgrad as ng
from numgrad.autograd import grad
from numgrad.base.pytree import flatten, unflatten
from numgrad.graph.tensor import Tensor
from numgrad.jit.front.trace_function import trace_function
from numgrad.jit.ir.graph import Graph
from numgrad.jit.ir.validate import validate
from numgrad.jit.passes.simplify import simplify
from tests.cases import examples
from tests.jit.evaluate import same_bits
from tests.jit.programs import ELEMENTWISE, EVERYTHING, Program, programs
from tests.jit.run_graph import run_graph

# Casts of complex numbers to real ones warn, with jit as without.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def with_derivatives(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that returns the results and their first and second derivatives."""

    def derived(*tensors: Any) -> tuple[Any, ...]:
        inputs = [t for t in tensors if t.requires_grad]
        values: list[Any] = list(function(*tensors))
        results = list(values)
        for order in (1, 2):
            moving = [v for v in values if v.requires_grad]
            if not moving or not inputs:
                break
            cotangents = [
                (ng.arange(v.numel(), dtype=ng.float64).reshape(v.shape) * 0.25 + order).to(v.dtype)
                for v in moving
            ]
            found = grad(moving, inputs, cotangents, create_graph=order == 1, allow_unused=True)
            values = [g for g in found if g is not None]
            results += values
        return tuple(results)

    return derived


def outcome(action: Callable[[], Any]) -> Any:
    """Return what an action gives, or the words of its error."""
    try:
        return action()
    except ng.TraceError:
        raise
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        return f"{type(error).__name__}: {error}"


def is_exact(graph: Graph) -> bool:
    """Whether results do not depend on the order of a sum."""
    return not any(
        value.operation in ("matmul", "call")
        or (value.operation == "reduce" and value.attributes["kind"] in ("sum", "prod"))
        for value in graph.values()
    )


def assert_same(ours: Any, eager: Any, exact: bool) -> None:
    assert len(ours) == len(eager)
    largest = 1.0
    for expected in eager:
        assert isinstance(expected, Tensor)
        finite = expected.numpy(force=True)
        finite = np.abs(finite[np.isfinite(finite)])
        largest = max(largest, *finite.ravel().astype(float), 0.0)
    narrow = any(e.dtype in (ng.float32, ng.complex64) for e in eager)
    for k, (result, expected) in enumerate(zip(ours, eager, strict=True)):
        assert result.dtype is expected.dtype, k
        assert result.shape == expected.shape, k
        a, b = result.numpy(force=True), expected.numpy(force=True)
        if same_bits(a, b):
            continue
        assert not exact, f"result {k} has other bits: {a}, not {b}"
        tolerance = 2e-6 if narrow else 1e-12
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * largest, err_msg=str(k))


def trace(function: Callable[..., Any], arguments: list[Any]) -> Any:
    leaves, spec = flatten((tuple(arguments), {}))
    return trace_function(function, spec, leaves)


def results_of(traced: Any, graph: Graph, arguments: list[Any]) -> Any:
    """Return what the traced function returns, by way of a graph."""
    computed = run_graph(graph, [arguments[k]._array for k in traced.traced])
    leaves = []
    for kind, which, requires_grad, *_ in traced.outputs:
        if kind == "computed":
            leaves.append(ng.from_numpy(np.array(computed[which])))
            assert isinstance(requires_grad, bool)
        else:
            leaves.append(arguments[which] if kind == "argument" else which)
    return unflatten(traced.spec, leaves)


def check_graphs(program: Program) -> None:
    function = with_derivatives(program.function)
    expected = outcome(lambda: function(*program.arguments()))
    arguments = program.arguments()
    found = outcome(lambda: trace(function, arguments))
    if isinstance(expected, str):
        assert found == expected
        return
    assert not isinstance(found, str), found
    validate(found.graph)
    note(str(found.graph))
    exact = is_exact(found.graph)
    assert_same(results_of(found, found.graph, arguments), expected, exact)
    simple = simplify(found.graph)
    validate(simple)
    note(str(simple))
    assert_same(results_of(found, simple, arguments), expected, exact)


def check_compiled(program: Program) -> None:
    function = with_derivatives(program.function)
    expected = outcome(lambda: function(*program.arguments()))
    if isinstance(expected, str):
        return
    exact = is_exact(trace(function, program.arguments()).graph)
    together = ng.jit(function)(*program.arguments())
    assert_same(together, expected, exact)


@settings(max_examples=examples(50))
@given(programs(EVERYTHING))
def test_graphs_of_programs(program: Program) -> None:
    check_graphs(program)


@settings(max_examples=examples(50))
@given(programs(ELEMENTWISE, special=True))
def test_graphs_of_elementwise_programs(program: Program) -> None:
    check_graphs(program)


# Their second derivatives take up to minutes to compile, so there are few, and they are short.
@settings(max_examples=examples(4))
@given(programs(EVERYTHING, longest=3))
def test_compiled_programs(program: Program) -> None:
    check_compiled(program)


@settings(max_examples=examples(10))
@given(programs(ELEMENTWISE, longest=5, special=True))
def test_compiled_elementwise_programs(program: Program) -> None:
    check_compiled(program)
