"""Calls that are refused in a traced function, in the words of eager mode."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.ops.signatures.declaration import Declaration
from tests.ops.signatures.test_declared import PARSED
from tests.ops.signatures.wrong_calls import wrong_calls

_TENSOR = "torch.ones(2, 2)"
_SPACE = {"torch": ng, "np": np}


def _words(function: Any) -> str | None:
    """Return what a TypeError says of a call; None if there is none."""
    try:
        function(ng.ones(2, 2))
    except TypeError as error:
        return str(error)
    except Exception:
        return None
    return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.sampled(0.09)
@pytest.mark.parametrize("declaration", PARSED)
def test_wrong_calls_are_told_what_eager_ones_are(declaration: Declaration) -> None:
    calls = [each.text.replace(_TENSOR, "x") for each in wrong_calls(declaration)]
    calls = [each for each in calls if "x" in each.partition("(")[2] or each.startswith("x.")]
    for call in random.Random(declaration.name).sample(calls, min(8, len(calls))):
        try:
            function = eval(f"lambda x: {call}", dict(_SPACE))
        except SyntaxError:  # a keyword twice
            continue
        expected = _words(function)
        if expected is not None:
            assert _words(ng.jit(function)) == expected, call


@pytest.mark.parametrize(
    "call",
    [
        "x.view(x)",
        "torch.zeros(x)",
        "x.resize_(x)",
        "x.set_(x, x)",
        "torch.stack(x)",
        "x + 'a'",
        "x @ 'a'",
        "x * x + 'a'",
        "(x * 2).view(x)",
        "f'{x:>10}'",
        "f'{x * 2:>10}'",
    ],
)
def test_a_traced_tensor_goes_by_the_name_of_a_tensor(call: str) -> None:
    function = eval(f"lambda x: {call}", dict(_SPACE))
    expected = _words(function)
    assert expected is not None and "Tensor" in expected
    assert _words(ng.jit(function)) == _words(ng.func.vmap(function)) == expected
