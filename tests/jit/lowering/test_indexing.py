"""What an index of any form reads, writes and adds in a trace is what it does eagerly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from tests.cases import examples
from tests.jit.run_graph import run_traced

PARTS = ("i", "k", ":", "1", "0", "1:", "::2", "None", "i[:, None]", "-1:")


@st.composite
def keys(draw: Any) -> str:
    parts = draw(st.lists(st.sampled_from(PARTS), min_size=1, max_size=5))
    used, kept = 0, []
    for part in parts:
        if part != "None":
            used += 1
        if used <= 4:
            kept.append(part)
    return ", ".join(kept)


def outcome(program: Any, *arguments: Any) -> Any:
    try:
        return program(*arguments).numpy()
    except (RuntimeError, IndexError) as error:
        return type(error)


def assert_traced(program: Any, *arguments: Any) -> None:
    expected = outcome(program, *arguments)
    if isinstance(expected, type):
        return
    found = run_traced(program, *arguments)
    np.testing.assert_array_equal(found.numpy(), expected)


@settings(max_examples=examples(150))
@given(keys(), st.sampled_from(["read", "write", "add", "number"]))
def test_keys_of_indices_and_slices(key: str, way: str) -> None:
    x = ng.arange(72.0, dtype=ng.float64).reshape(3, 4, 2, 3)
    i, k = ng.tensor([1, 0]), ng.tensor([-1, 1])

    def program(x: Any, i: Any, k: Any) -> Any:
        names = {"x": x * 1, "i": i, "k": k}
        part = eval(f"x[{key}]", names)
        if way == "read":
            return part + 0
        values = ng.arange(float(part.numel()), dtype=ng.float64).reshape(part.shape) + 100
        names["v"] = values if way != "number" else 7.5
        exec(f"x[{key}] {'+=' if way == 'add' else '='} v", names)
        return names["x"]

    assert_traced(program, x, i, k)


@settings(max_examples=examples(80))
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.sampled_from(["select", "slice", "diagonal", "as_strided"]),
    st.data(),
)
def test_parts_that_are_written(shape: list[int], way: str, data: st.DataObject) -> None:
    x = ng.arange(float(np.prod(shape)), dtype=ng.float64).reshape(shape)
    dim = data.draw(st.integers(0, len(shape) - 1))
    index = data.draw(st.integers(0, shape[dim] - 1))
    steps = data.draw(st.tuples(st.integers(0, 2), st.integers(0, 2)))
    sizes = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))

    def program(x: Any) -> Any:
        if way == "select":
            part = x.select(dim, index)
            return ng.select_scatter(x, part * 2 + 100, dim, index)
        if way == "slice":
            part = x.narrow(dim, index, shape[dim] - index)
            return ng.slice_scatter(x, part * 2 + 100, dim, index, shape[dim])
        if way == "diagonal":
            part = x.diagonal(0, dim, 0 if dim else len(shape) - 1)
            return ng.diagonal_scatter(x, part * 2 + 100, 0, dim, 0 if dim else len(shape) - 1)
        y = x * 1
        part = y.as_strided(sizes, steps, min(index, 1))
        values = ng.arange(float(part.numel()), dtype=ng.float64).reshape(sizes) + 100
        with ng.no_grad():
            part.copy_(values)
        return y

    assert_traced(program, x)


@pytest.mark.parametrize("ignored", [-100, 1, 7])
def test_classes_are_checked_in_the_loops_that_read_them(ignored: int) -> None:
    """Losses of numbered classes have eager results and errors; nothing is left to a kernel."""
    random = np.random.default_rng(0)
    x = ng.from_numpy(random.standard_normal((6, 5)))

    def loss(x: Any, target: Any) -> Any:
        return ng.nn.functional.nll_loss(x, target, ignore_index=ignored, reduction="none")

    compiled = ng.jit(loss)
    for target in ([0, 1, 2, 3, 4, ignored], [0, 1, 7, 3, -2, -100], [1, 1, 1, 1, 1, 5]):
        given = ng.tensor(target)
        found, expected = (_result_or_words(each, x, given) for each in (compiled, loss))
        assert type(found) is type(expected)
        assert found == expected if isinstance(found, str) else ng.equal(found, expected)
    assert "call" not in str(compiled.lower(x, ng.tensor([0] * 6)).graph)


def test_numbers_of_rows_are_checked_in_the_loop_that_reads_them() -> None:
    table = ng.from_numpy(np.arange(12.0).reshape(4, 3))

    def rows(table: Any, numbers: Any) -> Any:
        return ng.nn.functional.embedding(numbers, table) * 2

    compiled = ng.jit(rows)
    for numbers in ([[0, 3], [1, 1]], [[0, 4], [1, 1]], [[0, 3], [-1, 1]]):
        given = ng.tensor(numbers)
        found, expected = (_result_or_words(each, table, given) for each in (compiled, rows))
        assert found == expected if isinstance(found, str) else ng.equal(found, expected)
    assert "call" not in str(compiled.lower(table, ng.tensor([[0, 1]])).graph)


def _result_or_words(function: Any, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except IndexError as error:
        return str(error)
