"""autograd.grad with is_grads_batched: one backward pass for each entry, stacked."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import numgrad as ng

PREPARE = """
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
w = torch.ones(2, requires_grad=True)
y, z = x * x, x.sin()
def grad(*arguments, **options):
    return torch.autograd.grad(*arguments, is_grads_batched=True, retain_graph=True, **options)
"""

SAME = """
grad(y, x, torch.eye(3))
grad(y.sum(), x, torch.ones(4))
grad([y, z.sum()], x, [torch.ones(2, 3), torch.ones(2)])
grad(y, x, torch.eye(3, dtype=torch.float64))
grad(y, x, torch.eye(3), create_graph=True)
grad(y, [x, w], torch.eye(3), allow_unused=True)
grad(y, [x, w], torch.eye(3), materialize_grads=True)
grad(y, x, torch.eye(3).requires_grad_(), create_graph=True)
grad([y, z], [x, y], [torch.ones(2, 3), torch.eye(3)[:2]])
"""

RAISE = """
grad(y, x, torch.ones(2))
grad(y, x, None)
grad(y.sum(), x, None)
grad(y.sum(), x, torch.tensor(1.0))
grad(y, x, torch.tensor(1.0))
grad([y, z], x, [torch.ones(2, 3), torch.ones(3, 3)])
grad([y, z.sum()], x, [torch.ones(2, 3), None])
grad(y, x, torch.zeros(0, 3))
grad(y, [x, w], torch.eye(3))
grad(y, x, 3.0)
grad([y, z], x, [torch.ones(2, 3)])
"""


def run(library: Any, line: str) -> Any:
    names = {"torch": library}
    exec(PREPARE, names)
    return eval(line, names)


def describe(results: Any) -> Any:
    return [
        None
        if result is None
        else (str(result.dtype), tuple(result.shape), result.requires_grad, result.tolist())
        for result in results
    ]


@pytest.mark.parametrize("line", [line for line in SAME.splitlines() if line])
def test_batched_gradients_are_pytorchs(torch: ModuleType, line: str) -> None:
    for ours, theirs in zip(describe(run(ng, line)), describe(run(torch, line)), strict=True):
        if theirs is None:
            assert ours is None
        else:
            assert ours[:3] == theirs[:3]
            assert np.allclose(ours[3], theirs[3])


@pytest.mark.parametrize("line", [line for line in RAISE.splitlines() if line])
def test_batched_gradients_raise_what_pytorch_raises(torch: ModuleType, line: str) -> None:
    with pytest.raises(Exception) as theirs:
        run(torch, line)
    with pytest.raises(type(theirs.value)) as ours:
        run(ng, line)
    assert str(ours.value) == str(theirs.value)


def test_batched_gradients_can_be_differentiated() -> None:
    x = ng.tensor([1.0, 2.0, 3.0], dtype=ng.float64, requires_grad=True)
    basis = ng.eye(3, dtype=ng.float64).requires_grad_()

    def rows(x: Any, basis: Any) -> Any:
        return ng.autograd.grad(x**3, x, basis, is_grads_batched=True, create_graph=True)[0]

    assert ng.autograd.gradcheck(rows, (x, basis))


def test_graph_is_freed_after_the_last_entry() -> None:
    x = ng.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    ng.autograd.grad(y, x, ng.eye(2), is_grads_batched=True)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        ng.autograd.grad(y, x, ng.eye(2), is_grads_batched=True)
