"""Leaves that a compiled function makes itself and derives by, where gradients go on to its result.

A gradient penalty does: where its result is differentiated once more, gradients reach those leaves,
too, which nobody sees.
"""

from __future__ import annotations

from typing import Any

import pytest

import numgrad as ng

VALUES = [[1.0, 2.0, 3.0], [0.5, 0.2, 0.1]]
OUTSIDE = ng.tensor(VALUES)
LEAVES = {
    "captured": lambda x: OUTSIDE.clone().requires_grad_(),
    "detached": lambda x: x.detach().requires_grad_(),
    "of an argument": lambda x: (x * 1).detach().clone().requires_grad_(),
    "made": lambda x: ng.full((2, 3), 0.3, requires_grad=True),
}
RESULTS = {
    "penalty": lambda z, w, g: (g.norm(dim=1) - 1).square().mean(),
    "sum": lambda z, w, g: (g * z).sum(),
    "with itself": lambda z, w, g: ((z @ w).sin() * g[:, 0]).sum(),
}


@pytest.mark.usefixtures("traced")
@pytest.mark.sampled(0.13)
@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("result", RESULTS)
def test_the_gradient_is_that_of_eager_mode(leaf: str, result: str) -> None:
    def function(w: Any, x: Any) -> Any:
        z = LEAVES[leaf](x)
        (g,) = ng.autograd.grad((z @ w).tanh().sum(), z, create_graph=True)
        return RESULTS[result](z, w, g)

    found = []
    compiled = ng.jit(function)
    for run in (function, compiled, compiled):
        w = ng.tensor([1.0, -0.5, 0.2], requires_grad=True)
        run(w, ng.tensor(VALUES)).backward()
        found.append(w.grad)
    assert ng.allclose(found[0], found[1])
    assert ng.equal(found[1], found[2])
