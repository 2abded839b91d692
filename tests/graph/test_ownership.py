"""Who owns a gradient's memory: nobody writes to what somebody else holds.

Every gradient that was given, captured, kept by a hook or a Function, retained, accumulated or
assigned is looked at again after each later pass.
"""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad.graph.backward import engine
from tests.cases import examples
from tests.graph.ownership import run
from tests.graph.ownership_programs import HOOKS, Program, diamonds, programs, repetitions


@pytest.mark.sampled(0.11)
@pytest.mark.parametrize("hook", ["", *sorted(set(HOOKS))])
def test_gradients_that_come_in_two_parts_stay_what_they_were(hook: str) -> None:
    for program in diamonds(hook):
        run(ng, program)


@pytest.mark.sampled(0.072)
@pytest.mark.parametrize("hook", ["", *sorted(set(HOOKS))])
def test_what_is_remembered_of_an_operation_is_given_to_nobody(hook: str) -> None:
    for program in repetitions(hook):
        run(ng, program)


@pytest.mark.parametrize("large", [False, True])
@settings(max_examples=examples(100))
@given(data=st.data())
def test_every_gradient_stays_what_it_was(large: bool, data: Any) -> None:
    """Large ones are added without delay, by another way."""
    with mock.patch.object(engine, "UNDELAYED_LEAF_ELEMENTS", 0 if large else 1 << 30):
        run(ng, data.draw(programs))


@pytest.mark.parametrize("twice", [False, True])
def test_what_is_captured_is_not_what_an_identity_hands_on(twice: bool) -> None:
    x = ng.ones(2, 2, requires_grad=True)
    a = x * 3
    b = a + 1  # its gradient is also that of a
    kept: list[Any] = []
    a.register_hook(kept.append)
    root = b * 2 + b * 5 if twice else b * 7
    captured, _ = ng.autograd.grad(root, [b, x], ng.ones(2, 2))
    captured.fill_(8.0)
    assert kept[0].tolist() == [[7.0, 7.0]] * 2


def test_an_input_that_is_asked_for_twice_gets_two_gradients() -> None:
    """PyTorch's are one tensor, which nobody expects who writes to the first."""
    x = ng.ones(3, requires_grad=True)
    y = x * 1
    for root, asked in ((x * 2, x), (x * 2 + x.exp(), x), (y * 2, y), (y * 2 * y, y)):
        one, other = ng.autograd.grad(root.sum(), [asked, asked], retain_graph=True)
        kept = other.tolist()
        one.fill_(8.0)
        assert other.tolist() == kept


@pytest.mark.filterwarnings("ignore:grad and param do not obey:UserWarning")
@settings(max_examples=examples(60))
@given(program=programs)
def test_the_model_is_pytorchs(torch: Any, program: Program) -> None:
    """But for memory that its gradients share through views, and that of what was given."""
    run(torch, program, apart=False)
