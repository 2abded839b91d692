"""Indexing by arrays of positions is part of the loops: values, gradients, errors."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit

import numgrad as ng

Array = np.ndarray[Any, Any]


def numbers(*shape: int) -> Array:
    found = np.random.default_rng(3).normal(size=shape)
    found.reshape(-1)[::3] = 0.0
    return found


def positions(size: int, *shape: int, negative: bool = True) -> Array:
    low = -size if negative else 0
    return np.random.default_rng(5).integers(low, size, shape)


def bits(tensor: Any) -> Array:
    return np.ascontiguousarray(tensor.numpy()).reshape(-1).view(np.uint8)


def bag(table: Any, index: Any) -> Any:
    return (table[index] ** 2).sum()


CASES: dict[str, tuple[Callable[..., Any], tuple[Array, ...]]] = {
    "one index": (lambda x, i: x[i], (numbers(7), positions(7, 20))),
    "rows": (lambda x, i: x[i], (numbers(7, 3), positions(7, 5, 4))),
    "columns": (lambda x, i: x[:, i], (numbers(3, 7), positions(7, 20))),
    "two that broadcast": (
        lambda x, i, j: x[i, j],
        (numbers(4, 6), positions(4, 5, 1), positions(6, 3)),
    ),
    "two apart": (
        lambda x, i, j: x[i, :, j],
        (numbers(4, 3, 6), positions(4, 5), positions(6, 5)),
    ),
    "in the middle": (lambda x, i: x[1:, i, ::2], (numbers(3, 4, 5), positions(4, 6))),
    "a position": (lambda x, i: x[i], (numbers(4, 3), np.array(-2))),
    "none": (lambda x, i: x[i], (numbers(4, 3), np.zeros((0, 2), np.int64))),
    "one of one": (lambda x, i: x[i], (numbers(1, 3), np.array([-1, 0]))),
    "int32": (lambda x, i: x[i], (numbers(5), positions(5, 9).astype(np.int32))),
    "of a transpose": (lambda x, i: x.T[i], (numbers(3, 7), positions(7, 6))),
    "of a column": (lambda x, i: x[:, 1][i], (numbers(7, 3), positions(7, 6))),
    "of what is computed": (lambda x, i: (x * 2).exp()[i], (numbers(7, 3), positions(7, 6))),
    "computed": (lambda x, i: x[(i + 1) % 7], (numbers(7, 3), positions(7, 6))),
    "of what was gathered": (lambda x, i: x[i][i % 3], (numbers(7), positions(7, 9))),
    "a view": (lambda x, i: x[i][1:, ::2].T, (numbers(7, 3), positions(7, 6))),
    "index_select": (
        lambda x, i: x.index_select(1, i),
        (numbers(3, 7), positions(7, 9, negative=False)),
    ),
    "gather": (
        lambda x, i: ng.gather(x, 1, i),
        (numbers(3, 7), positions(7, 2, 9, negative=False)),
    ),
    "take": (lambda x, i: x.take(i), (numbers(3, 7), positions(21, 4, 2))),
    "take_along_dim": (
        lambda x, i: ng.take_along_dim(x, i, 0),
        (numbers(5, 3), positions(5, 4, 1, negative=False)),
    ),
    "scatter_add": (
        lambda x, s, i: x.scatter_add(0, i, s),
        (numbers(4, 3), numbers(7, 3), positions(4, 6, 2, negative=False)),
    ),
    "index_add": (
        lambda x, s, i: x.index_add(0, i, s.sin()),
        (numbers(4, 3), numbers(6, 3), positions(4, 6, negative=False)),
    ),
    "index_put": (
        lambda x, s, i: (x + 0).index_put((i,), s, accumulate=True),
        (numbers(4, 3), numbers(3), positions(4, 6)),
    ),
}


def squares(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose gradient depends on where its values went."""

    def total(x: Any, *rest: Any) -> Any:
        y = function(x, *rest)
        return (y * y * y).sum()

    return total


@pytest.mark.sampled(0.054)
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_have_the_bits_of_eager_mode(name: str) -> None:
    function, arrays = CASES[name]
    moving = tuple(k for k, array in enumerate(arrays) if array.dtype.kind == "f")

    def both(*given: Any) -> Any:
        return function(*given), ng.func.grad(squares(function), argnums=moving)(*given)

    compiled = ng.jit(both)
    y, gradients = compiled(*arrays)
    wanted, slopes = both(*[ng.tensor(array) for array in arrays])
    for one, other in zip((y, *gradients), (wanted, *slopes), strict=True):
        np.testing.assert_array_equal(bits(one), bits(other))
    assert " call(" not in str(compiled.lower(*arrays).graph)


def test_a_dispatcher_needs_no_interpreter_and_has_the_same_bits() -> None:
    table, index = numbers(9, 3), positions(9, 8)
    function = ng.jit(ng.func.value_and_grad(bag))
    dispatcher = function.lower(table, index).dispatcher

    @njit(nogil=True)
    def twice(table: Array, index: Array) -> Any:
        return dispatcher(dispatcher(table, index)[1], index)[1]

    wanted = function(function(table, index)[1], index)[1]
    np.testing.assert_array_equal(twice(table, index), wanted.numpy())
    assert "step_" not in inspect.getsource(dispatcher.py_func)  # calls of the interpreter


@pytest.mark.parametrize("dtype", [ng.float32, ng.complex64, ng.bool])
def test_elements_of_any_dtype_are_added_where_positions_repeat(dtype: Any) -> None:
    def added(x: Any, s: Any, i: Any) -> Any:
        return x.index_put((i,), s, accumulate=True)

    x, s, i = ng.tensor(numbers(3)).to(dtype), ng.tensor(numbers(50)).to(dtype), positions(3, 50)
    found, wanted = ng.jit(added)(x, s, i), added(x, s, ng.tensor(i))
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(bits(found), bits(wanted))


def test_a_sum_over_what_was_gathered_shares_its_loop_with_the_gradient() -> None:
    lowered = ng.jit(ng.func.value_and_grad(bag)).lower(numbers(50, 4), positions(50, 20, 3))
    assert lowered.cost().fused == 3  # zeros, a look at the positions, and all else


def test_threads_do_not_change_a_bit() -> None:
    function = ng.jit(ng.func.value_and_grad(bag))
    table, index = numbers(300, 8), positions(300, 60_000)
    before = ng.get_num_threads()
    try:
        ng.set_num_threads(1)
        one = function(table, index)
        ng.set_num_threads(2)
        two = function(table, index)
    finally:
        ng.set_num_threads(before)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(bits(a), bits(b))


def test_many_repeated_positions_are_added_in_order() -> None:
    table, index = numbers(3, 5), positions(3, 40, 100)
    gradient = ng.func.grad(bag)
    found, wanted = ng.jit(gradient)(table, index), gradient(ng.tensor(table), ng.tensor(index))
    np.testing.assert_array_equal(bits(found), bits(wanted))


def test_second_derivatives_go_through_gathers() -> None:
    def cubes(x: Any, i: Any) -> Any:
        return (x[i] ** 3).sum()

    x, v, i = numbers(6), numbers(6) + 1, positions(6, 20)
    found = ng.jit(lambda x, v, i: ng.func.hvp(lambda x: cubes(x, i), (x,), (v,)))(x, v, i)
    wanted = np.bincount(i % 6, minlength=6) * 6 * x * v
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-14)


OUTSIDE: dict[str, tuple[Callable[..., Any], int]] = {
    "brackets": (lambda x, i: x[i], 9),
    "brackets, from the end": (lambda x, i: x[i], -8),
    "the second dim": (lambda x, i: x.reshape(1, 7)[:, i], 7),
    "index_select": (lambda x, i: x.index_select(0, i), 7),
    "index_select, negative": (lambda x, i: x.index_select(0, i), -1),
    "gather": (lambda x, i: ng.gather(x, 0, i), 8),
    "take": (lambda x, i: x.take(i), -9),
    "index_add": (lambda x, i: x.index_add(0, i, x[:3]), 7),
    "scatter_add": (lambda x, i: x.scatter_add(0, i, x[:3]), 12),
    "index_fill": (lambda x, i: x.index_fill(0, i, 1.0), 7),
}


@pytest.mark.sampled(0.3)
@pytest.mark.parametrize("name", OUTSIDE)
def test_positions_that_lead_outside_raise_as_in_eager_mode(name: str) -> None:
    function, wrong = OUTSIDE[name]
    x, index = numbers(7), np.array([0, wrong, 33])
    with pytest.raises((IndexError, RuntimeError)) as wanted:
        function(ng.tensor(x), ng.tensor(index))
    compiled = ng.jit(function)
    compiled(x, np.array([0, 1, 2]))
    with pytest.raises((IndexError, RuntimeError)) as found:
        compiled(x, index)
    assert type(found.value) is type(wanted.value)
    assert str(found.value) == str(wanted.value)


def test_compiled_code_can_catch_what_leads_outside() -> None:
    dispatcher = ng.jit(bag).lower(numbers(7, 2), positions(7, 3)).dispatcher

    @njit
    def guarded(table: Array, index: Array) -> float:
        try:
            return dispatcher(table, index)[0]
        except Exception:
            return -1.0

    assert guarded(numbers(7, 2), np.array([0, 1, 2])) >= 0
    assert guarded(numbers(7, 2), np.array([0, 7, 2])) == -1.0
    with pytest.raises(IndexError, match="index 7 is out of bounds for dimension 0 with size 7"):
        dispatcher(numbers(7, 2), np.array([0, 7, 2]))


def test_nothing_can_be_taken_from_nothing() -> None:
    def first(x: Any, i: Any) -> Any:
        return x[i]

    with pytest.raises(IndexError, match="index is out of bounds for dimension with size 0"):
        ng.jit(first)(np.zeros(0), np.array([0]))
    assert ng.jit(first)(np.zeros(0), np.zeros(0, np.int64)).shape == (0,)


def test_a_captured_index_is_read_anew_and_checked_in_every_call() -> None:
    index = ng.tensor([0, 2])
    function = ng.jit(lambda x: x[index] * 2)
    x = np.array([1.0, 2.0, 3.0])
    assert function(x).tolist() == [2.0, 6.0]
    index.fill_(1)
    assert function(x).tolist() == [4.0, 4.0]
    index.fill_(3)
    with pytest.raises(IndexError, match="index 3 is out of bounds for dimension 0 with size 3"):
        function(x)


@pytest.mark.sampled(0.045)
@pytest.mark.parametrize("first", range(4))
@pytest.mark.parametrize("second", range(4))
def test_positions_taken_in_several_shapes_are_written_before_they_are_read(
    first: int, second: int
) -> None:
    """They are looked at once, in one shape, and kept in memory in another."""
    looks = [
        lambda x, i: x[0][i],
        lambda x, i: x.gather(0, i[:, None].expand(3, 3)),
        lambda x, i: x.gather(1, i.expand(3, 3)),
        lambda x, i: x[i[:, None].expand(3, 3), ng.arange(3)],
    ]

    def function(x: Any, i: Any) -> Any:
        return looks[first](x, i), looks[second](x, i)

    x, i = ng.arange(9.0).reshape(3, 3), ng.tensor([0, 2, 1])
    expected = [each.tolist() for each in function(x, i)]
    assert [each.tolist() for each in ng.jit(function)(x, i)] == expected
    compiled = ng.jit(function).lower(x, i).dispatcher
    assert [each.tolist() for each in compiled(x.numpy(), i.numpy())] == expected
