"""Gradients of elementwise nodes for a batch: of their kernel, with the bits of one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.ops.core.nodes import PrimitiveNode

_X = [0.3, -1.25, 2.0]
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "product": lambda x: x * x,
    "quotient": lambda x: (1 - x) / (x * x + 2),
    "closer rule": lambda x: x.sigmoid() * x.tanh(),
    "broadcast": lambda x: x[:, None] * x.exp(),
    "transposed": lambda x: (x[:, None] * x.exp()).T.sin() * x[:, None],
    "mask": lambda x: ng.where(x > 0, x.exp(), x),
    "numbers": lambda x: x.clamp(-1.0, 1.5) ** 3 + 2.5 * x,
    "two dtypes": lambda x: ng.atan2(x, (x * 2).to(ng.float64)),
    "complex": lambda x: ng.complex(x, x * x).abs() * (x * 1j).exp().real,
    "identity": lambda x: x + x.reshape(1, 3) - 1,
    "clamp to tensors": lambda x: ng.clamp(x * x, x, x + 1),
}


_CASES = [
    (name, dtype)
    for name in _FUNCTIONS
    for dtype in (ng.float32, ng.float64, ng.float16)
    if name != "complex" or dtype is not ng.float16
]


@pytest.mark.parametrize(("name", "dtype"), _CASES, ids=str)
def test_rows_have_the_bits_of_each(name: str, dtype: Any) -> None:
    x = ng.tensor(_X, dtype=dtype, requires_grad=True)
    y = _FUNCTIONS[name](x)
    random = np.random.default_rng(0)
    rows = ng.from_numpy(random.standard_normal((4, *y.shape))).to(y.dtype)
    (found,) = ng.autograd.grad(y, x, rows, retain_graph=True, is_grads_batched=True)
    for row, each in zip(rows, found, strict=True):
        (one,) = ng.autograd.grad(y, x, row.clone(), retain_graph=True)
        assert np.array_equal(one.numpy(), each.numpy()), (one, each)


def test_mapped_gradients_have_the_bits_of_each() -> None:
    def loss(w: Any, x: Any) -> Any:
        return ((w * x).tanh() * w.exp()).sum()

    w, x = ng.tensor(_X), ng.linspace(-1, 2, 12).reshape(4, 3)
    found = ng.func.vmap(ng.func.grad(loss), in_dims=(None, 0))(w, x)
    for row, each in zip(x, found, strict=True):
        assert np.array_equal(ng.func.grad(loss)(w, row).numpy(), each.numpy())


def test_a_written_operand_is_an_error() -> None:
    x = ng.tensor(_X, requires_grad=True)
    factor = ng.tensor(_X)
    y = x * factor
    factor.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        ng.autograd.grad(y, x, ng.eye(3), is_grads_batched=True)


def test_no_rule_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    x = ng.tensor(_X, requires_grad=True)
    y = (x * x).tanh() * x

    def fail(self: Any, gradients: Any) -> Any:
        raise AssertionError(f"the rules of {self} ran")

    monkeypatch.setattr(PrimitiveNode, "run_tensors", fail)
    (found,) = ng.autograd.grad(y, x, ng.eye(3), is_grads_batched=True)
    assert found.shape == (3, 3)
