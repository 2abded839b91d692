"""How gradients lie that come through a write to a view: as if the view's part lay row by row."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import numgrad as ng
from tests.ops.lines import answer

SETUP = """
x = torch.arange(24.0).reshape(2, 3, 4).requires_grad_()
def of(shape):
    return torch.ones(shape).requires_grad_()
"""
VIEWS = """
transpose(0, 2)
transpose(1, 2)[:1]
permute(1, 2, 0)
permute(1, 2, 0)[:, 1]
movedim(0, 1)[..., 1:3]
select(2, 1)
select(2, 1).t()
view(6, 4).t()
view(24)
""".strip().splitlines()
WRITES = """
mul_(o)
div_(o)
atan2_(o)
addcmul_(o, o)
lerp_(o, 0.5)
pow_(2).mul_(o)
copy_(o)
exp_()
""".strip().splitlines()
LINES = [
    f"y = x * 1; v = y.{view}; o = of(v.shape{order}); p = o{back}; v.{write.replace('o)', 'p)')}; "
    f"g = torch.autograd.grad(y.sum() * 2, (x, o), allow_unused=True, create_graph={graph})"
    " -> [each if each is None else (each.detach(), each.stride()) for each in g]"
    for view, write, (order, back), graph in itertools.product(
        VIEWS, WRITES, (("", ""), ("[::-1]", ".permute(*range(v.dim())[::-1])")), (False, True)
    )
]


@pytest.mark.sampled(0.11)
@pytest.mark.parametrize("line", LINES)
def test_gradients_through_writes_to_views_lie_as_pytorchs(torch: Any, line: str) -> None:
    assert answer(ng, line, SETUP) == answer(torch, line, SETUP)
