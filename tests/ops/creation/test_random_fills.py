"""Fills with random numbers: calls that are remembered draw what the long way draws."""

from __future__ import annotations

import pytest

import numgrad as ng
from numgrad.graph.upward import upward
from numgrad.ops.calls import dispatch
from tests.ops.calls.test_dispatch import the_long_way

FILLS = {
    "normal_": [(), (1.0, 2.0)],
    "uniform_": [(), (-1.0, 2.0)],
    "exponential_": [(), (2.0,)],
    "log_normal_": [()],
    "cauchy_": [()],
    "geometric_": [(0.5,)],
    "bernoulli_": [(), (0.25,)],
    "random_": [(), (7,), (2, 9)],
}


@pytest.mark.parametrize("name", FILLS)
@pytest.mark.parametrize("of_row", [False, True])
def test_a_fill_that_is_remembered_draws_what_the_long_way_does(name, of_row, monkeypatch):
    monkeypatch.setattr(dispatch, "_OFTEN", 2)
    for arguments in FILLS[name]:
        filled, expected = ng.zeros(2, 3), ng.zeros(2, 3)
        for turn in range(5):
            tensor = filled[1] if of_row else filled
            with monkeypatch.context() as patch:
                ng.manual_seed(turn)
                if turn > 2:
                    patch.setattr(upward, "perform", None)
                assert getattr(tensor, name)(*arguments) is tensor
            with the_long_way():
                ng.manual_seed(turn)
                getattr(expected[1] if of_row else expected, name)(*arguments)
            assert filled.tolist() == expected.tolist()
            assert filled._version == expected._version == turn + 1
