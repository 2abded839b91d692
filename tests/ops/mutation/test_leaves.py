"""In-place forms of leaves, computed tensors and views: which are allowed, and what they do."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import numgrad as ng
from tests.ops.lines import answer

SETUP = """
x = torch.tensor([[1.0, 2.0]], requires_grad=True)
y = x * 1
o = torch.tensor([[0.0, 1.0]])
d = x.detach()
with torch.no_grad():
    n = x[:]
"""
TENSORS = ("x", "y", "x[:]", "y[:]", "d", "d[:]", "n")
# fmt: off
CALLS = (
    "t_()", "transpose_(0, 1)", "swapaxes_(0, 1)", "swapdims_(0, 1)", "unsqueeze_(0)", "squeeze_()",
    "squeeze_(0)", "squeeze_((0,))", "as_strided_((1,), (1,))", "logical_not_()", "logical_and_(o)",
    "logical_or_(o)", "logical_xor_(o)", "eq_(o)", "lt_(o)", "zero_()", "sign_()",
    "floor_()", "neg_()",
)
# fmt: on
STATE = "v._version, v.is_leaf, v.grad_fn and v.grad_fn.name(), y.grad_fn.name(), x._version"
LINES = [
    f"v = {of}; v.{call}{then} -> (v, {STATE})"
    for (of, call), then in itertools.product(
        itertools.product(TENSORS, CALLS),
        ("", "; v.mul_(2)", "; y.mul_(3)", "; torch.autograd.grad(v.sum(), x)"),
    )
] + [
    f"v = n; {line}"
    for line in (
        "x.detach().mul_(2); v.requires_grad_(False) -> v.is_leaf",
        "x.detach().mul_(2) -> v.requires_grad_(False) is v",
        "x.detach().mul_(2) -> v.requires_grad_() is v",
        "x.detach().mul_(2) -> v.retain_grad()",
        "x.detach().mul_(2); v.requires_grad_() -> v * 2",
        "v.requires_grad_() -> (v.is_leaf, v.requires_grad, v * 2)",
        "v.requires_grad_(False) -> (v.is_leaf, v.requires_grad, v * 2)",
    )
]


@pytest.mark.sampled(0.11)
@pytest.mark.parametrize("line", LINES)
def test_in_place_forms_do_and_say_what_pytorchs_do(torch: Any, line: str) -> None:
    assert answer(ng, line, SETUP) == answer(torch, line, SETUP)


@pytest.mark.parametrize("call", [call for call in CALLS if call.startswith("logical")])
@pytest.mark.parametrize("of", TENSORS)
def test_a_call_that_is_remembered_does_what_the_first_did(torch: Any, of: str, call: str) -> None:
    line = f"[({of}).{call} for _ in range(5)] -> (x, y, d)"

    assert answer(ng, line, SETUP) == answer(torch, line, SETUP)
