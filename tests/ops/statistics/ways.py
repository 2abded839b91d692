"""Derivatives, batches and compiled calls of a function, each held against the function itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import numgrad as ng

__all__ = ["assert_all_ways_agree"]


def assert_all_ways_agree(
    function: Callable[[ng.Tensor], ng.Tensor], shape: tuple[int, int]
) -> None:
    """Check gradients of both orders, `vmap`, `jit`, `jvp` and `jacrev` at drawn numbers."""
    random = np.random.default_rng(5)
    batch = ng.from_numpy(random.normal(size=(2, *shape)))
    x = batch[0].clone().requires_grad_()
    assert ng.autograd.gradcheck(function, x)
    assert ng.autograd.gradgradcheck(function, x, fast_mode=True)
    each = ng.stack([function(one) for one in batch])
    assert np.allclose(ng.func.vmap(function)(batch).numpy(), each.numpy())
    assert np.allclose(ng.jit(function)(batch[0]).numpy(), each[0].numpy())
    tangent = ng.from_numpy(random.normal(size=shape))
    jacobian = ng.func.jacrev(function)(batch[0]).flatten(-2) @ tangent.flatten()
    assert np.allclose(ng.func.jvp(function, (batch[0],), (tangent,))[1].numpy(), jacobian.numpy())
