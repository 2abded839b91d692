"""Signatures that PyTorch has given up but for a warning: factors by position, before operands."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import pytest

import numgrad as ng
from numgrad.ops.signatures import argument_parser
from tests.ops.lines import answer

SETUP = """
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = torch.tensor([3.0, 5.0])
m = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
b = m[None]
"""
# The operand that is itself, and the others.
SCALED = dict.fromkeys(("add", "sub", "subtract", "mul"), ("x", "y"))
FACTORS = dict.fromkeys(("addcmul", "addcdiv"), ("x", "y, x"))
PRODUCTS = {
    "addmm": ("m", "m, m"),
    "addmv": ("x", "m, y"),
    "addr": ("m", "x, y"),
    "addbmm": ("m", "b, b"),
    "baddbmm": ("b", "b, b"),
}


def calls(name: str) -> list[str]:
    found = []
    if name in PRODUCTS:
        own, rest = PRODUCTS[name]
        for beta, alpha in itertools.product(("2", "-1.5"), ("", "3, ", "True, ")):
            found.append(f"torch.{name}({beta}, {own}, {alpha}{rest})")
            found.append(f"{own}.{name}({beta}, {alpha}{rest})")
            found.append(f"{own}.clone().{name}_({beta}, {alpha}{rest})")
            found.append(f"torch.{name}({own}, {beta}, {alpha}{rest})")
        found.append(f"torch.{name}(2, {own}.detach(), 3, {rest}, out=torch.empty(0))")
        return found
    own, rest = SCALED.get(name) or FACTORS[name]
    for factor in ("2", "-1.5", "None", "x", "'a'"):
        found.append(f"torch.{name}({own}, {factor}, {rest})")
        found.append(f"{own}.{name}({factor}, {rest})")
        found.append(f"{own}.clone().{name}_({factor}, {rest})")
        found.append(f"torch.{name}({rest.split(',')[0]}, {factor}, {rest}, out=torch.empty(0))")
        found.append(f"torch.{name}({own}, {rest}, {factor})")
    return found


LINES = [call for name in (*SCALED, *FACTORS, *PRODUCTS) for call in calls(name)]


@pytest.mark.sampled(0.11)
@pytest.mark.parametrize("line", LINES)
def test_factors_by_position_are_taken_where_pytorch_takes_them(torch: Any, line: str) -> None:
    found, expected = (answer(library, " -> " + line, SETUP) for library in (ng, torch))
    if "invalid combination" in expected or "positional argument" in expected:
        assert found.startswith("TypeError")  # which overloads there are is told in other words
    else:
        assert found == expected


def test_the_first_such_call_of_a_process_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(argument_parser, "_said", [])
    x = ng.ones(2)
    with pytest.warns(
        UserWarning, match=r"(?s)This overload of add is .*number|Number alpha, Tens"
    ):
        ng.add(x, 2, x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x.addcmul(2, x, x).tolist() == [3, 3]
