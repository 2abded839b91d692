"""Gradients of every public operation in a traced function: they lie as eager ones do.

So do those that are taken under ``create_graph``; in dims of length 1 they may differ. The calls
are those of `tests.ops.layout_calls`, on operands and for cotangents of drawn layouts. A trace for
one layout must not be used for another in which gradients would lie otherwise.
"""

from __future__ import annotations

import warnings
from random import Random
from typing import Any

import pytest
from hypothesis import settings

import numgrad as ng
from numgrad.graph.tensor import Tensor
from tests.jit.test_layout_calls import NOT_TRACED
from tests.jit.test_layouts import longer_strides_of, traced_strides
from tests.ops.layouts import Layout, operands
from tests.ops.test_gradient_strides import COTANGENTS, NAMES, cotangent, lines_of
from tests.ops.test_strides import drawn_layout, drawn_shape

DRAWS = 2 if settings.default.max_examples <= 100 else 40


def gradients(line: str, names: list[str], kind: str, given: Any, create_graph: bool) -> list[Any]:
    """Return the gradients of a call, of operands that may be traced."""
    known = {
        name: each.detach().requires_grad_() if each.dtype.is_floating_point else each
        for name, each in zip(names, given, strict=True)
    }
    found = eval(line, {"torch": ng, **known})
    results = [
        result
        for result in (found if isinstance(found, (tuple, list)) else [found])
        if isinstance(result, Tensor) and result.requires_grad
    ]
    leaves = [each for each in known.values() if each.requires_grad]
    cotangents = [cotangent(ng, result, kind) for result in results]
    made = ng.autograd.grad(
        results, leaves, cotangents, allow_unused=True, create_graph=create_graph
    )
    return [each for each in made if each is not None]


def outcome(line: str, first: Layout, second: Layout, shape: Any, kind: str) -> Any:
    """Return how gradients lie, eagerly, recorded, and traced, and by which strides that goes.

    None if the call is refused.
    """
    made = operands(ng, first, second, shape, line)
    names, given = list(made), list(made.values())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            eager = gradients(line, names, kind, given, False)
            recorded = gradients(line, names, kind, given, True)
        except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError):
            return None
        try:
            found, goes_by = traced_strides(
                lambda *traced: gradients(line, names, kind, traced, False),
                given,
                longer_strides_of,
            )
        except ng.TraceError:
            return None
    strides = [each._array.strides for each in given]
    return (
        [longer_strides_of(each) for each in eager],
        [longer_strides_of(each) for each in recorded],
        found,
        goes_by,
        strides,
    )


@pytest.mark.usefixtures("traced")
@pytest.mark.sampled(0.054)
@pytest.mark.parametrize("name", [name for name in NAMES if name not in NOT_TRACED])
def test_gradients_lie_as_in_eager_mode(name: str) -> None:
    random = Random(f"traced gradients of {name}")
    for line in lines_of(name):
        kind, shape = random.choice(COTANGENTS), drawn_shape(random)
        known: list[Any] = []
        for _ in range(DRAWS):
            first = drawn_layout(random)
            second = first if random.random() < 0.5 else drawn_layout(random)
            made = outcome(line, first, second, shape, kind)
            if made is None:
                continue
            eager, recorded, found, goes_by, strides = made
            where = (line, first, second, shape, kind)
            assert recorded == eager, where
            assert found == eager, where
            for before, by, those in known:  # the trace must not be used for these, then
                if before != found:
                    assert any(those[k] != strides[k] for k, _ in by), where
            known.append((found, goes_by, strides))
