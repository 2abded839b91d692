"""Views used after their base was written to: as root, input, edge, operand, or to retain.

What a view hangs on in the graph is looked up anew by whatever asks for it, not by operations only.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

import numgrad as ng

VIEWS = ["y[:1]", "y.view(2, 1)[0]", "y[:2].narrow(0, 0, 1)", "y.expand(3, 2)[1][:1]"]
WRITES = [
    "y.mul_(3)",
    "y[0] = u[0]",
    "y[1:].exp_()",
    "y.view(-1)[:1].mul_(w[1])",
    "y.mul_(w); y.add_(1)",
    "v.mul_(w[0]); y.neg_()",
]
USES = [
    "v.backward() -> (w.grad, u.grad)",
    "m.autograd.grad(v, w, allow_unused=True)",
    "m.autograd.grad((v * 2).sum(), [v, w], allow_unused=True)",
    "m.autograd.grad(y.sum(), v, allow_unused=True)",
    "m.autograd.graph.get_gradient_edge(v).node.name()",
    "v.grad_fn.name()",
    "v.retain_grad(); (v * w).sum().backward() -> (v.grad, w.grad)",
    "m.cat([v, y]).grad_fn.next_functions[0][0].name()",
    "m.autograd.functional.vjp(lambda t: t * v, w.detach(), m.ones(2))[1]",
    "(v.detach() + v.data, v.requires_grad, v.is_leaf)",
]


def outcome(m: Any, lines: list[str], use: str) -> str:
    """Return what is to be seen of a view in the end, or the error."""
    names: dict[str, Any] = {"m": m, "w": m.tensor([1.5, 2.0], requires_grad=True)}
    names["u"] = m.tensor([3.0], requires_grad=True)
    *statements, expression = use.replace(" -> ", "; ").split("; ")
    try:
        exec("\n".join([*lines, *statements]), names)
        return str(eval(expression, names))
    except RuntimeError as error:
        return str(error)


@pytest.mark.parametrize("view", VIEWS)
def test_views_of_what_was_written_to_are_used_as_in_pytorch(torch: Any, view: str) -> None:
    for write, use in product(WRITES, USES):
        lines = ["y = w * 1", f"v = {view}", write]
        assert outcome(ng, lines, use) == outcome(torch, lines, use), (write, use)
