"""put, put_ and repeat_interleave of repeats alone: results, gradients, layouts and words."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import numgrad as ng
from tests.ops.lines import answer

SETUP = """
m = torch.arange(6.0).reshape(2, 3)
v = torch.arange(4.0)
o = torch.tensor(3.0)
e = torch.zeros(0)
i = torch.tensor([0, -1])
s = torch.tensor([7.0, 8.0], requires_grad=True)
"""
INPUTS = ("m", "m.t()", "m[:, 1:]", "v[::2]", "v.expand(2, 4)", "o", "e", "m.double()", "m.int()")
INDICES = (
    "i",
    "i[:1]",
    "i[None]",
    "i * 0",
    "i[0]",
    "i[:0]",
    "i + 100",
    "i - 100",
    "i.int()",
    "i * 1.0",
)
SOURCES = ("s", "s[:1]", "s[:0]", "s[0]", "s[:, None]")
PUTS = [
    f"r = torch.put({of}.detach().clone().requires_grad_() if {of}.is_floating_point() else {of}, "
    f"{at}, {source}, {add}) -> "
    "(r, r.numel() and r.stride(), r.grad_fn.name(), torch.autograd.grad(r.sum(), s))"
    for of, at, source, add in itertools.product(INPUTS, INDICES, SOURCES, (False, True))
]
WRITES = [
    f"r = {of} * 1; r.put_({at}, {source}, accumulate={add}) -> (r, r._version)"
    for of, at, source, add in itertools.product(INPUTS, INDICES, SOURCES, (False, True))
]
# fmt: off
REPEATS = [
    f"torch.repeat_interleave({code})"
    for code in (
        "torch.tensor([1, 2, 0])", "torch.tensor([3])", "torch.tensor([], dtype=torch.int32)",
        "torch.tensor([1, 2], dtype=torch.int32)", "repeats=torch.tensor([1, 2])",
        "torch.tensor([1, 2]), output_size=3", "torch.tensor([1, 2]), output_size=4",
        "torch.tensor([[1]])", "torch.tensor(1)", "torch.tensor([1.0])", "torch.tensor([1, -2])",
        "3", "torch.tensor([1, 2]), 2", "v, i + 2", "m, torch.tensor([2, 1]), 0, output_size=3",
        "m, torch.tensor([2, 1]), 0, output_size=4",
    )
] + ["torch.tensor([1, 2]).repeat_interleave(2)"]
# fmt: on


@pytest.mark.sampled(0.054)
@pytest.mark.parametrize("line", [*PUTS, *WRITES])
def test_elements_are_put_as_by_pytorch(torch: Any, line: str) -> None:
    assert answer(ng, line, SETUP) == answer(torch, line, SETUP)


@pytest.mark.parametrize("line", REPEATS)
def test_positions_are_repeated_as_by_pytorch(torch: Any, line: str) -> None:
    assert answer(ng, " -> " + line, SETUP) == answer(torch, " -> " + line, SETUP)


def test_a_method_has_something_to_repeat() -> None:
    with pytest.raises(TypeError, match=r"^repeat_interleave\(\)"):
        ng.tensor([1, 2]).repeat_interleave()
