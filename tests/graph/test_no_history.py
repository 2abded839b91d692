"""A view made in no_grad mode requires grad as its base does, though nothing flows from it.

What is computed of it requires grad, too, as in PyTorch: by operations of all families,
the first time and when its call is remembered.
"""

from __future__ import annotations

from typing import Any

import numgrad as ng
from numgrad.graph.tensor import Tensor
from numgrad.ops.core.primitive import CATALOGUE
from numgrad.ops.core.sample_calls import sample_calls
from tests.cases import thinned


def without_history(x: Tensor) -> Tensor:
    """Return a tensor of the same numbers that is such a view."""
    base = x.detach().clone().requires_grad_()
    with ng.no_grad():
        return base.view_as(base)


def required(result: Any) -> list[bool]:
    results = [result] if isinstance(result, Tensor) else list(result)
    return [each.requires_grad for each in results if isinstance(each, Tensor)]


def test_what_is_computed_of_views_without_history_requires_grad() -> None:
    met = 0
    names = thinned(sorted(CATALOGUE)[::9], 3)
    for name in names:
        for call in sample_calls(name, ng.float64):
            leaves = [p for p, x in enumerate(call.operands) if isinstance(x, Tensor)]
            leaves = [p for p in leaves if call.operands[p].requires_grad]
            if not leaves or call.spread:
                continue
            expected = required(call.function(*call.operands, **call.keywords))
            operands = list(call.operands)
            for place in leaves:
                operands[place] = without_history(operands[place])
            for _ in range(3):
                assert required(call.function(*operands, **call.keywords)) == expected, name
            met += 1
            break
    assert met > 0.7 * len(names)


def test_what_a_trace_computes_of_views_without_history_requires_grad() -> None:
    seen: list[list[bool]] = []

    def loss(x: Tensor) -> Tensor:
        base = x * 2
        with ng.no_grad():
            view = base[:2]
        results = [view * 3, 2 - view, ng.atan2(view, base[:2].detach()), view.sum(), view @ view]
        seen.append(required([*results, *results[:3], view[0], view.reshape(2, 1), view.clone()]))
        return sum((each.sum() for each in results), x.sum())

    x = ng.tensor([1.0, 2.0, 3.0])
    gradients = [ng.jit(ng.func.grad(loss))(x).tolist(), ng.func.grad(loss)(x).tolist()]
    assert gradients == [[1.0] * 3] * 2
    assert seen == [[True] * 11] * 2
