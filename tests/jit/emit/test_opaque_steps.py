"""Steps that are calls of primitives: what they do for arrays that lie as those before is known."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.jit.emit.opaque_steps import as_compact, as_own, opaque_call
from numgrad.jit.ir.graph import Value
from numgrad.ops.core.primitive import CATALOGUE

CALLS: dict[str, Callable[[Any], Any]] = {
    "var": lambda x: (x * 2).var(-1),
    "std_mean": lambda x: (x * 2).std(0, correction=0),
    "vector_norm": lambda x: (x * 2).norm(dim=-1),
    "cumsum": lambda x: (x * 2).cumsum(0),
    "max_along_dim": lambda x: (x * 2).max(-1)[0],
    "prod_over_dim": lambda x: (x * 0.5).t().prod(0),
    "sort": lambda x: (x * 2).sort(-1)[0],
    "logcumsumexp": lambda x: x.exp().logcumsumexp(-1),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_are_eager_ones_and_new_arrays_each_time(name: str) -> None:
    function = CALLS[name]
    compiled = ng.jit(function)
    random = np.random.default_rng(0)
    for shape in ((5, 7), (5, 7), (1, 3), (70, 80)):
        x = ng.from_numpy(random.standard_normal(shape))
        found, again = compiled(x), compiled(x)
        assert ng.equal(found, function(x))
        found.zero_()
        assert ng.equal(again, function(x))


@pytest.mark.parametrize("name", ["var", "cumsum"])
def test_what_a_forward_finds_out_each_time_is_found_out_once(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in eager calls, a function made for how the operands lie takes the forward's place."""
    function = CALLS[name]
    x = ng.from_numpy(np.random.default_rng(1).standard_normal((6, 9)))
    compiled = ng.jit(function)
    expected = compiled(x)

    def forward(*arrays: Any, **parameters: Any) -> Any:
        raise AssertionError("asked again")

    monkeypatch.setattr(CATALOGUE[name], "forward", forward)
    assert ng.equal(compiled(x), expected)


@pytest.mark.parametrize("name", sorted(CALLS.keys() - {"prod_over_dim"}))  # is copied
def test_nothing_stands_between_a_call_and_what_computes_in_eager_ones(name: str) -> None:
    """Where operands lie alike in all calls, results are looked at where they come back."""
    function = CALLS[name]
    x = ng.from_numpy(np.random.default_rng(3).standard_normal((6, 9)))
    compiled = ng.jit(function)
    compiled(x)
    seen: set[Any] = set()
    sys.setprofile(lambda frame, event, arg: seen.add(frame.f_code))
    try:
        compiled(x)
    finally:
        sys.setprofile(None)
    steps = [each for each in seen if each.co_filename.endswith(("_steps.py", "opaque_calls.py"))]
    assert not {"run", "forward"}.intersection([each.co_name for each in steps])


def test_results_that_lie_otherwise_are_copied() -> None:
    """What the program reads, and what it returns, lies row by row."""
    whole = np.ones((4, 3))
    for result in (whole, whole[1:], whole.T, np.asfortranarray(np.ones((2, 3)))):
        found = as_own(result, whole)
        assert found.flags.c_contiguous and not np.may_share_memory(found, whole)
        assert np.array_equal(found, result)
    new = np.ones(3)
    assert as_own(new, whole) is new


def test_gradients_of_loops_with_calls_whose_number_of_turns_differs() -> None:
    """What turns saved is as long as there were turns: it lies otherwise in each call."""

    def loss(limit: Any, x: Any) -> Any:
        def turn(k: Any, y: Any) -> Any:
            return k + 1, y.cumsum(0) / (1 + y.var(-1, keepdim=True))

        return ng.func.while_loop(lambda k, y: k < limit, turn, (ng.tensor(0.0), x))[1].sum()

    gradient = ng.func.grad(loss, argnums=1)
    compiled = ng.jit(gradient)
    x = ng.from_numpy(np.random.default_rng(2).standard_normal((4, 3)))
    for limit in (1.0, 5.0, 0.0, 3.0):
        found, expected = (each(ng.tensor(limit), x) for each in (compiled, gradient))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


class _Given:
    """What stands for a primitive: it does what it is given."""

    def __init__(self, forward: Callable[..., Any]) -> None:
        self.forward = forward


def _called(primitive: Any, *arrays: Any, positions: Sequence[int] = (0,)) -> Any:
    """Return the call of a primitive, as a step of a program has it."""
    operands = [Value("input", (), array.shape, array.dtype) for array in arrays]
    value = Value("call", operands, (), np.dtype(float), primitive=primitive)
    return opaque_call(value, positions, lambda graph: None)


RESULTS: dict[str, Callable[[Any], Any]] = {
    "the operand": lambda x: x,
    "a view": lambda x: x[1:],
    "views": lambda x: [x[:1], x.T, x * 2],
    "its transpose": lambda x: x.T,
    "a number": lambda x: x.sum(),
    "an array of its own": lambda x: x * 2,
    "the logarithm of nothing": lambda x: np.log(x * 0),
}


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("operand", [np.ones((4, 3)), np.ones((6, 3))[1:5]], ids=["own", "view"])
def test_results_are_compact_arrays_that_share_no_memory(name: str, operand: Any) -> None:
    """Whatever a forward returns; nor is a warning given."""
    primitive = _Given(RESULTS[name])
    positions = (2, 1, 0) if name == "views" else (0,)
    found = _called(primitive, operand, positions=positions)(operand)
    with np.errstate(all="ignore"):
        results = RESULTS[name](operand)
    expected = [results[position] for position in positions] if name == "views" else [results]
    for array, each in zip(found, expected, strict=True):
        assert type(array) is np.ndarray and array.flags.c_contiguous and array.flags.aligned
        assert not np.may_share_memory(array, operand)
        np.testing.assert_array_equal(array, each)


def test_what_does_a_forward_is_asked_for_again_where_operands_lie_otherwise() -> None:
    """Only where loops may have grown them: sizes, and so how they lie, are known otherwise."""
    asked: list[Any] = []

    class Prepared(_Given):
        def prepared(self, arrays: Any) -> Any:
            asked.append(arrays[0].strides)
            strides = arrays[0].strides

            def forward(array: Any) -> Any:
                assert array.strides == strides
                return array + 1

            return forward

    rows, columns = np.ones((2, 3)), np.ones((3, 2)).T
    given = [rows, rows + 1, columns, columns, rows[:1], rows]
    for first, count in ((np.ones((0, 3)), 4), (rows, 1)):
        asked.clear()
        call = _called(Prepared(None), first)
        for array in given if count > 1 else given[:2]:
            assert np.array_equal(call(array)[0], array + 1)
        assert len(asked) == count


def test_compact_arrays_are_as_they_are_and_others_are_copied() -> None:
    compact = np.arange(12.0).reshape(3, 4)
    assert as_compact(compact) is compact
    unaligned = np.zeros(8 * 4 + 1, np.uint8)[1:].view(float)
    for array in (compact.T, compact[:, ::2], compact[::-1], unaligned):
        copy = as_compact(array)
        assert copy.flags.c_contiguous and copy.flags.aligned
        assert not np.may_share_memory(copy, array)
        np.testing.assert_array_equal(copy, array)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (4, 3)])
def test_operands_of_calls_may_be_empty_or_views(shape: tuple[int, ...]) -> None:
    functions: list[Callable[[Any], Any]] = [
        lambda x: (x * 2).cumsum(0),
        lambda x: (x * 2).flatten().cumsum(0),
        lambda x: (x * 2).flatten().sort()[0].reshape(x.shape).cumsum(-1),
        lambda x: x[4:].cumsum(0),
        lambda x: x[2:, 1:].cumsum(0),
        lambda x: (x * 2)[3:, 3:].cumsum(-1),
        lambda x: x.t().expand(2, *x.t().shape).cumsum(0),
    ]
    x = ng.from_numpy(np.random.default_rng(4).standard_normal(shape))
    for function in functions:
        compiled = ng.jit(function)
        for _ in range(2):
            assert ng.equal(compiled(x), function(x))
