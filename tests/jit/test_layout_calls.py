"""Every public function and method in a traced function: results lie as eager ones do.

Each call of `tests.ops.layout_calls` is made on operands of drawn layouts, and so is a second call
on what it returns. A trace for one layout must not be used for another in which results would lie
otherwise: what it says it goes by tells them apart.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from random import Random
from types import CodeType
from typing import Any

import pytest
from hypothesis import settings

import numgrad as ng
from numgrad.base.pytree import flatten
from numgrad.graph.tensor import Tensor, wrap
from tests.cases import thinned
from tests.jit.test_layouts import strides_of, traced_strides
from tests.ops.layout_calls import CALLS
from tests.ops.layouts import LAYOUTS, Layout, operands
from tests.ops.test_strides import drawn_layout, drawn_shape

DRAWS = 2 if settings.default.max_examples <= 100 else 60
NAMES = [
    name
    for name in CALLS
    if not name.endswith("_") or name.startswith("__")  # nothing may be written to an argument
]
# What asks for numbers, in all of its lines.
NOT_TRACED = {
    "argwhere",
    "bincount",
    "from_dlpack",
    "half",
    "masked_select",
    "nonzero",
    "storage",
    "unique",
    "unique_consecutive",
    "untyped_storage",
}


def lines_of(name: str) -> list[CodeType]:
    """Return the calls of a name, without those that write to ``out``."""
    return [compile(line, line, "eval") for line in CALLS[name] if "out=" not in line]


# Calls of one operand, which may be the result of another call.
BEHIND = [
    code
    for name in NAMES
    if name not in NOT_TRACED
    for code in lines_of(name)
    if "x" in code.co_names and not {"y", "k", "b", "z", "i", "j", "c", "v"} & set(code.co_names)
]


def flipped(tensor: Tensor) -> Tensor:
    """Return a tensor of the same elements whose strides are negative."""
    return wrap(tensor._array[(slice(None, None, -1),) * tensor._array.ndim])


def function_of(first: CodeType, second: CodeType | None, names: list[str]) -> Callable[..., Any]:
    """Return a function that makes a call, and another one on what comes first of its results."""

    def tensors(code: CodeType, known: dict[str, Any]) -> list[Tensor]:
        found = flatten(eval(code, {"torch": ng, **known}))[0]
        return [each for each in found if isinstance(each, Tensor)]

    def function(*given: Any) -> list[Tensor]:
        results = tensors(first, dict(zip(names, given, strict=True)))
        if second is None or not results:
            return results
        return [*results, *tensors(second, {"x": results[0]})]

    return function


def outcome(
    first: CodeType,
    second: CodeType | None,
    layout: Layout,
    other: Layout,
    shape: Any,
    flips: bool = False,
) -> Any:
    """Return how results lie, which are arguments, how they lie in a trace, and what it goes by.

    None if the call is refused.
    """
    made = operands(ng, layout, other, shape)
    names = [name for name in made if name in first.co_names]
    function = function_of(first, second, names)
    given = [flipped(made[name]) if flips else made[name] for name in names]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            results = function(*given)
        except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError):
            return None
        try:
            found, goes_by = traced_strides(function, given)
        except ng.TraceError:
            return None
    is_given = [any(result is each for each in given) for result in results]
    strides = [each._array.strides for each in given]
    return [strides_of(result) for result in results], is_given, found, goes_by, strides


def check(first: CodeType, second: CodeType | None, random: Random) -> int:
    """Compare a call in drawn layouts, eager and traced, and return how often that was possible."""
    shape, known = drawn_shape(random), []
    for _ in range(DRAWS):
        layout = drawn_layout(random)
        other = layout if random.random() < 0.5 else drawn_layout(random)
        flips = random.random() < 0.2  # as NumPy's arrays may be
        made = outcome(first, second, layout, other, shape, flips)
        if made is None:
            continue
        expected, is_given, found, goes_by, strides = made
        where = (first.co_filename, second and second.co_filename, shape, layout, other, flips)
        assert found == expected, where
        # An argument that comes back lies as it did, in any trace.
        made_here = [None if given else own for own, given in zip(found, is_given, strict=True)]
        for before, by, those in known:  # the trace must not be used for these, then
            if before != made_here:
                assert any(those[k] != strides[k] for k, _ in by), (where, "is lies= missing?")
        known.append((made_here, goes_by, strides))
    return len(known)


@pytest.mark.sampled(0.054)
@pytest.mark.parametrize("name", NAMES)
def test_results_of_a_call_lie_as_in_eager_mode(name: str) -> None:
    random = Random(name)
    for code in lines_of(name):
        check(code, None, random)


@pytest.mark.sampled(0.072)
@pytest.mark.parametrize("name", [name for name in NAMES if name not in NOT_TRACED])
def test_results_of_a_call_on_a_result_lie_as_in_eager_mode(name: str) -> None:
    random = Random(name)
    for code in lines_of(name):
        check(code, random.choice(BEHIND), random)


def test_all_calls_but_those_for_numbers_are_compared() -> None:
    plain, names = LAYOUTS["reversed dims"], set(thinned(NAMES, 8))
    made = {
        name
        for name in names
        for code in lines_of(name)
        if outcome(code, None, plain, plain, (2, 3, 4)) is not None
    }
    assert names - made == NOT_TRACED & names
