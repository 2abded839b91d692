"""Bodies of loops with small matrix products: written out in one function, or in few."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from benchmarks import loops
from numgrad import func
from numgrad.codegen.loop_passes import names_in
from numgrad.codegen.printer import print_module
from numgrad.jit.emit.program_source import emit
from numgrad.jit.emit.standalone import _loop_function
from numgrad.jit.lowering.loops import Loop
from numgrad.jit.run.program import build
from tests.cases import examples


def loop_functions(name: str, steps: int, **options: Any) -> list[list[Any]]:
    """Return of each of a compiled program's loops the functions it consists of, itself last."""
    function = func.value_and_grad(loops.PROGRAMS[name](func.scan, steps, **options))
    graph = ng.jit(function).lower(*loops.tensors(loops.arguments(name, steps, cells=9))).graph
    found = []
    for value in graph.values():
        loop = value.attributes.get("primitive")
        if isinstance(loop, Loop):
            helpers: list[Any] = []
            function = _loop_function(loop, emit(loop.graph), build, helpers, "loop")
            found.append([*helpers, function])
    return found


def functions_called(name: str, steps: int, **options: Any) -> list[list[str]]:
    """Return which functions each of a compiled program's loops calls beside itself."""
    found = []
    for *helpers, function in loop_functions(name, steps, **options):
        found.append([helper.name for helper in helpers])
        assert "room" not in names_in(function.body) or any(
            getattr(line, "target", "") == "room" for line in function.body
        )
    return found


@pytest.mark.parametrize("name", ["populations", "kalman_filter", "heat"])
def test_few_elements_are_one_function(name):
    found = functions_called(name, 5)
    assert len(found) == 2
    assert not any(found)


def test_larger_products_stay_calls():
    assert all(functions_called("neural_equation", 5))


def test_results_of_loops_within_are_held_on_the_stack():
    function = func.value_and_grad(loops.PROGRAMS["hamiltonian"](func.scan, 4, leaps=3))
    arguments = loops.arguments("hamiltonian", 4)
    dispatcher = ng.jit(function).lower(*loops.tensors(arguments)).dispatcher
    value, gradient = function(*loops.tensors(arguments))
    np.testing.assert_allclose(
        dispatcher(float(arguments[0]), arguments[1]), [value.item(), gradient.item()], rtol=1e-12
    )


def test_what_loops_within_stack_is_written_where_it_belongs():
    """A copy of all of it, in each turn, took a sampler a tenth of its leaps."""
    drawing = loop_functions("hamiltonian", 4, leaps=30)[0][-1]
    text = print_module([drawing])
    assert "part(all_4, k * 30 * 8, 30, np.float64)" in text
    assert "for at in" not in text and "np.empty((30,)" not in text


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("hamiltonian", {"leaps": 30}, True),  # leaps of two numbers
        ("kalman_filter", {}, False),  # matrices of four by four
        ("kepler", {}, False),  # single numbers
    ],
)
def test_two_numbers_are_no_vector_where_turns_wait_for_each_other(name, options, expected):
    functions = [each for found in loop_functions(name, 4, **options) for each in found]
    assert ("use_no_vectors()" in print_module(functions)) is expected


sizes = st.integers(1, 9)


@given(rows=sizes, columns=sizes, turned=st.booleans(), seed=st.integers(0, 99))
@settings(max_examples=examples(2))
def test_drawn_products_are_those_of_eager_loops(rows, columns, turned, seed):
    rng = np.random.default_rng(seed)
    left, right = rng.standard_normal((rows, rows)) / 3, rng.standard_normal((columns, columns)) / 3
    start, series = rng.standard_normal((rows, columns)), rng.standard_normal((4, columns))

    def loss(matrices: Any, start: Any, series: Any) -> Any:
        left, right = matrices

        def step(state: Any, row: Any) -> Any:
            state = (left @ state @ (right.T if turned else right) + row).tanh()
            pull = state.sum(0) @ right
            return state, (state @ pull).sum() + (pull * row).sum()

        end, values = func.scan(step, start, series)
        return values.exp().sum() + (end**2).sum()

    arguments = loops.tensors(((left, right), start, series))
    eager = func.value_and_grad(loss)(*arguments)
    compiled = ng.jit(func.value_and_grad(loss))
    value, gradients = compiled(*arguments)
    dispatched = compiled.lower(*arguments).dispatcher(left, right, start, series)
    for ours, again, theirs in zip(
        [value, *gradients], dispatched, [eager[0], *eager[1]], strict=True
    ):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-11, atol=1e-11)
        assert ours.numpy().tobytes() == np.asarray(again).tobytes()
