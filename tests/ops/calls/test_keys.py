"""Keys of remembered calls: what is told apart, what is not remembered, and where numbers end."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng
from numgrad.base import dtypes
from numgrad.graph.modes.state import modes
from numgrad.graph.recorder import TracedTensor
from numgrad.graph.tensor import kind_of
from numgrad.ops.calls.index_facts import key_of, written_key
from numgrad.ops.calls.keys import (
    IN_EVERY_FLOAT,
    NAMES,
    _kind_of_number,
    _number_fact,
    facts_of,
    in_int64,
    tensor_lines,
    told_number,
    typed,
    view_fact,
    watches_writes,
    written_condition,
    written_facts,
)
from numgrad.ops.calls.node_source import define_lines

PLAIN = st.one_of(
    st.integers(-3, 3), st.booleans(), st.none(), st.sampled_from([0.0, -0.0, 1.0, -1.0, "a", ...])
)
NESTED = st.recursive(
    st.one_of(PLAIN, st.builds(slice, PLAIN, PLAIN, PLAIN)),
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple),
    max_leaves=6,
)


@given(first=NESTED, second=NESTED)
def test_arguments_have_one_key_if_they_are_written_alike(first: Any, second: Any) -> None:
    assert typed(first) == typed(first) and hash(typed(first)) == hash(typed(first))
    assert (typed(first) == typed(second)) == (repr(first) == repr(second))


@pytest.mark.parametrize(
    "value", [float("nan"), 1j, np.float64(1.0), np.int64(1), {}, {1}, object(), [1, 2j], b"a"]
)
def test_other_arguments_have_none(value: Any) -> None:
    with pytest.raises(TypeError, match="are not remembered"):
        typed(value)
    with pytest.raises(TypeError, match="are not remembered"):
        typed(slice(None, value))


def asked(source: str, value: Any) -> Any:
    return eval(source, {**NAMES, "repr": repr}, {"k": value})


def test_an_int_of_64_bits_is_told_from_greater_ones() -> None:
    for power, off in itertools.product((0, 6, 31, 32, 62, 63, 64), (-2, -1, 0, 1)):
        for number in (2**power + off, -(2**power) + off):
            assert asked(in_int64("k"), number) == (-(2**63) <= number < 2**63), number
            if -(2**63) <= number < 2**64:
                assert asked(_kind_of_number("k"), number) == dtypes.kind_of_number(number)
            else:
                with pytest.raises(OverflowError):
                    asked(_kind_of_number("k"), number)
    for value in (True, 1.0, 1j, np.float64(2.0)):
        assert asked(_kind_of_number("k"), value) is type(value)


def test_a_float_in_the_range_of_every_dtype_is_told_by_its_type_where_it_is_a_factor() -> None:
    least = np.nextafter(IN_EVERY_FLOAT, 0.0).item()
    for value in (0.0, -0.0, 1.5, least, -least):
        assert asked(_number_fact("k", True), value) is float
        assert asked(_number_fact("k", False), value) == (value or repr(value))
        assert asked(told_number("k"), value) == (value or repr(value))
    for value in (IN_EVERY_FLOAT, -IN_EVERY_FLOAT, 1e9, float("inf"), 3, True, 0):
        assert asked(_number_fact("k", True), value) is value
        assert asked(told_number("k"), value) is value
    assert asked(_number_fact("k", True), 0) == 0 and asked(told_number("k"), False) is False


def test_facts_of_tensors_tell_their_kinds_and_which_require_grad() -> None:
    x, y = ng.ones(2), ng.ones(3, dtype=ng.float64)
    z = ng.ones(2, requires_grad=True)
    assert facts_of([x, y]) == (kind_of(x), kind_of(y), 0) == facts_of((x, y))
    for tensors, needs in (([z], 1), ([x, z], 2), ([z, x, z * 2], 5)):
        facts = facts_of(tensors)
        assert facts == (*map(kind_of, tensors), needs)
        with ng.no_grad():
            assert facts_of(tensors) == (*map(kind_of, tensors), -needs)
    for other in ([], (), x, iter([x]), [x, 1.0], [x, None], "ab", [object.__new__(TracedTensor)]):
        assert facts_of(other) is None
    assert facts_of([x] * 16) is not None and facts_of([x] * 17) is None
    base = ng.ones(2) * 1
    view = base[:1]
    base.mul_(z)  # from here on the view has a history
    assert facts_of([x, view]) == (kind_of(x), kind_of(view), 2)


def test_a_view_that_is_written_to_is_told_by_what_it_is_a_view_of() -> None:
    x = ng.ones(4, requires_grad=True)
    computed, constant = x * 1, ng.ones(4)
    assert view_fact(constant[:2]) == "constant " and view_fact(computed[:2]) == "result "
    assert view_fact(x[:2]) is None  # a leaf's: to write to it is an error
    with ng.no_grad():
        assert view_fact(x[:2]) == "result no_grad"
        made = computed[:2], constant[:2]
    assert view_fact(made[0]) is None and view_fact(made[1]) == "constant no_grad"
    one, _ = computed.split(2)
    assert view_fact(one) is None
    assert view_fact(constant.split(2)[0]) == "constant multiple"
    base: Any = one._base
    base.detach_().add_(1)  # since then the view has no history
    assert view_fact(one) is None
    with ng.no_grad():
        assert view_fact(one) == "constant multiple"


def test_what_has_to_see_writes() -> None:
    assert not watches_writes()
    with ng.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        assert not watches_writes()
    with ng.inference_mode():
        assert watches_writes()
    with ng.autograd.set_detect_anomaly(True):
        assert watches_writes()
    seen: list[bool] = []
    ng.func.grad(lambda x: (seen.append(watches_writes()), x.sum())[1])(ng.ones(2))
    before, modes.keeper = modes.keeper, object()
    try:
        assert watches_writes()
    finally:
        modes.keeper = before
    assert seen == [True] and not watches_writes()


def test_facts_of_a_write_are_none_where_the_long_way_has_to_say_something() -> None:
    facts = written_facts(["target", "source"])
    x, y = ng.ones(3), ng.ones(3, requires_grad=True)
    result = y * 1
    told = [facts(x.clone(), ng.ones(3)), facts(x.clone(), y), facts(result, y), facts(x[:], y)]
    assert None not in told and len(set(told)) == 4
    assert facts(x.clone(), ng.ones(3)) == told[0] and facts(x.clone(), y) == told[1]
    assert facts(y, x) is None  # a leaf that requires grad
    assert facts(x, x[:2]) is None  # which overlaps
    with ng.no_grad():
        assert facts(y, x) is not None
    with ng.inference_mode():
        inside = ng.ones(3)
    assert facts(inside, x) is None
    assert "counter_" in written_condition("target")


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("mixed", [0, 1, 2])
def test_which_tensors_are_the_same_is_told(written: bool, mixed: int) -> None:
    """Which of the others are each other, and which are what is written to."""
    names = ["a", "b", "c", "d"]
    lines, facts = tensor_lines(names[: 4 - mixed], names[4 - mixed :], written=written)
    look = define_lines("look", ", ".join(names), [*lines, f"return ({', '.join(facts)})"], NAMES)
    pool = [ng.ones(2, requires_grad=requires) for requires in (False, False, True)]
    keys = {}
    for chosen in itertools.product(range(3), repeat=4):
        alike = chosen[written:]
        pattern = [first == second for first, second in itertools.combinations(alike, 2)]
        needs = [pool[number].requires_grad for number in chosen]
        touched = [written and chosen[0] == each for each in alike]
        key = look(*[pool[number] for number in chosen])
        known = keys.setdefault(key, (pattern, needs, touched))
        assert known == (pattern, needs, touched)
    assert len(keys) == len({str(each) for each in keys.values()})


def test_how_an_operand_shares_memory_with_what_is_written_to_is_told() -> None:
    facts = written_facts(["target", "source"])
    square = ng.ones(4, 4)
    row, column = square[0], square[:, 0]
    others = [square[0], square[:, 0], row, square[1], square[0].clone(), square[0].detach()]
    told = [facts(row, other) for other in others]
    assert told[1] is None  # they have an element in common
    assert told[0] == told[5] and len({*told}) == 5
    assert facts(column, square[:, 1]) == facts(square[:, 2], square[:, 3]) is not None
    assert facts(square, square.t()) is None
    assert facts(square[:, :2], square[:, 1:3]) is None


def test_keys_that_make_views_are_written_as_they_are() -> None:
    keys: list[Any] = [
        *(0, 1, -1, slice(None), slice(1, None), slice(None, 2), slice(None, None, 2), ..., None),
        *(
            slice(1, 2, 3),
            (1, 2, 3),
            (0, slice(None)),
            (..., 1),
            (None, ...),
            (),
            (slice(1, 2, 3),),
        ),
    ]
    written = [written_key(key) for key in keys]
    assert None not in written
    for first, second in itertools.combinations(range(len(keys)), 2):
        assert written[first] != written[second], (keys[first], keys[second])
    for key in (True, (True,), 1.0, (0, 1.0), [0], (0, [1]), "a", (slice(0, 1.0),), np.int64(1)):
        assert written_key(key) is None
    for slot in range(3):
        bounds: list[Any] = [None] * 3
        for bounds[slot] in (1.0, True, np.int64(2), "a"):
            assert written_key(slice(*bounds)) is None


def test_keys_with_indices_tell_which_are_the_same() -> None:
    x, i, j = ng.ones(3, 3), ng.tensor([0, 1]), ng.tensor([1, 2])
    kind = kind_of(i)
    operands = [x]
    assert key_of((i, i, i), operands) == (((kind, -1), (kind, 1), (kind, 1)), (i, i, i))
    assert operands == [x, i, i, i]
    operands = [i]
    found = key_of((j, 0, slice(1, None), i), operands)
    assert found is not None and operands[1:] == [j, i]
    assert found[0] == ((kind, -1), 0, ("", 1, None, None), (kind, 0))
    assert found[1] == (j, 0, slice(1, None), i)
    operands = [x]
    found = key_of([True, False, True], operands)
    assert found is not None and operands[1].tolist() == [True, False, True]
    assert found[1] == (operands[1],) and found[0] == ((kind_of(operands[1]), -1),)
    found = key_of(np.array([1, 0]), operands)
    assert found is not None and operands[2].tolist() == [1, 0]
    for key in (
        *(ng.tensor(1), ng.tensor(True), ng.tensor([1.0]), ng.tensor([1], dtype=ng.uint8)),
        *([True, 1], [1.0], [], [[1]], "a", 1.0, (0, (1, 2)), (i, 1.0)),
    ):
        assert key_of(key, [x]) is None, key
