"""Loops and branches return what PyTorch's do, and have the same gradients."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.base import pytree

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch compiles each, with many words


def decay(c: Any, x: Any) -> Any:
    return c * x.exp(), c + x


def pair(c: Any, x: Any) -> Any:
    return {"a": c["b"] * x[0], "b": c["a"] + x[1]}, (c["a"] * x[1], c["b"].sum())


SCANS = {
    "rows": lambda lib, scan, x, xs: scan(decay, x, xs),
    "reverse": lambda lib, scan, x, xs: scan(decay, x, xs, reverse=True),
    "dim": lambda lib, scan, x, xs: scan(decay, x.sum() + xs[:, 0], xs, dim=1),
    "pytrees": lambda lib, scan, x, xs: scan(pair, {"a": x, "b": x * 2}, (xs, xs.cos())),
}
ASSOCIATIVE = {
    "products": (lambda a, b: a * b, 0, False),
    "products, reverse": (lambda a, b: a * b, 0, True),
    "maxima of columns": (lambda a, b: (a + b) / (1 + a * b), 1, False),
}
X, XS = [0.3, -0.2, 0.5], np.linspace(-1, 1, 12).reshape(4, 3).tolist()


def plain(tree: Any) -> Any:
    """Return the leaves' shapes and numbers."""
    return [(tuple(leaf.shape), np.array(leaf.tolist()).round(5).tolist()) for leaf in tree]


def with_gradients(lib: Any, function: Any) -> Any:
    x = lib.tensor(X, dtype=lib.float64, requires_grad=True)
    xs = lib.tensor(XS, dtype=lib.float64, requires_grad=True)
    found = pytree.leaves(function(x, xs))
    total = sum([(leaf * leaf).sum() for leaf in found])
    gradients = lib.autograd.grad(total, [x, xs], allow_unused=True)
    return plain(found), plain([g for g in gradients if g is not None])


@pytest.mark.parametrize("name", SCANS)
def test_scans(name: str, torch: ModuleType) -> None:
    call = SCANS[name]
    expected = with_gradients(torch, lambda x, xs: call(torch, torch._higher_order_ops.scan, x, xs))
    assert with_gradients(ng, lambda x, xs: call(ng, ng.func.scan, x, xs)) == expected


@pytest.mark.parametrize("name", ASSOCIATIVE)
def test_associative_scans(name: str, torch: ModuleType) -> None:
    combine, dim, reverse = ASSOCIATIVE[name]
    theirs = torch._higher_order_ops.associative_scan(
        combine, torch.tensor(XS), dim, reverse, "generic"
    )
    for mode in ("generic", "pointwise"):
        ours = ng.func.associative_scan(combine, ng.tensor(XS), dim, reverse, mode)
        np.testing.assert_allclose(ours.tolist(), theirs.tolist(), rtol=1e-5, atol=1e-6)


def test_while_loops(torch: ModuleType) -> None:
    def run(lib: Any, while_loop: Any) -> Any:
        carry = lib.tensor(0), {"x": lib.tensor(X)}
        found = while_loop(
            lambda i, state: (i < 7) & (state["x"].sum() < 9),
            lambda i, state: (i + 1, {"x": state["x"] * 2 + i}),
            carry,
        )
        return plain(pytree.leaves(found))

    theirs = run(torch, torch._higher_order_ops.while_loop)
    assert run(ng, ng.func.while_loop) == theirs
    assert run(ng, ng.while_loop) == theirs


@pytest.mark.parametrize("flag", [True, False])
def test_branches(flag: bool, torch: ModuleType) -> None:
    def run(lib: Any) -> Any:
        def call(x: Any, xs: Any) -> Any:
            pred = lib.tensor([flag])
            return lib.cond(pred, lambda x, w: (x * w).sin(), lambda x, w: x - w, (x, xs))

        return with_gradients(lib, call)

    assert run(ng) == run(torch)


def test_maps(torch: ModuleType) -> None:
    def run(lib: Any, map_: Any) -> Any:
        return with_gradients(lib, lambda x, xs: map_(lambda row, x: (row * x).sin(), xs, x))

    assert run(ng, ng.func.map) == run(torch, torch._higher_order_ops.map)
