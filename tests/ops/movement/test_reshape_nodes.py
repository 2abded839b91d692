"""Which node `reshape` and its like record: by whether they copy, and how their input lies."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import numgrad as ng
from tests.ops.lines import answer

SETUP = """
x = torch.arange(24.0).reshape(2, 3, 4).requires_grad_() * 1
e = torch.ones(3, 1).requires_grad_().expand(3, 4)
"""
INPUTS = """
x
x[0]
x[0, 0, 0]
x[:1]
x[:0]
x[:, 1:]
x[:, :, :1]
x[..., ::2]
x.transpose(0, 2)
x.transpose(0, 1)
x.permute(1, 0, 2)[:1]
x.flip(0)
e
e.t()
""".strip().splitlines()
SHAPES = """
reshape(-1)
reshape((1,) + v.shape)
reshape(v.shape)
reshape(v.shape + (1,))
reshape(v.numel(), 1)
reshape(2, -1)
flatten()
flatten(0, 1)
flatten(-1)
ravel()
reshape_as(torch.ones(v.numel()))
view_as(v)
""".strip().splitlines()
LINES = [
    f"v = {of}; y = v.{to}; s = (y * y).sum() -> (y.grad_fn.name(), y._is_view(), "
    "[name for name in dir(y.grad_fn) if name.startswith('_saved')], torch.autograd.grad(s, v))"
    for of, to in itertools.product(INPUTS, SHAPES)
] + [
    f"v = {of}; y = v.{to}; y.mul_(2) -> (y.grad_fn.name(), v.grad_fn.name(), y, v)"
    for of, to in itertools.product(INPUTS, SHAPES)
]


@pytest.mark.sampled(0.11)
@pytest.mark.parametrize("line", LINES)
def test_the_node_is_pytorchs(torch: Any, line: str) -> None:
    assert answer(ng, line, SETUP) == answer(torch, line, SETUP)
