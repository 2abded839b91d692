"""What remembered calls save is their arguments: with their versions, and as hooks get them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import numgrad as ng
from numgrad.ops.calls.dispatch import forget_calls

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "of one shape": lambda x, y: ng.atan2(x, y),
    "broadcast": lambda x, y: x * y[0],
    "broadcast twice": lambda x, y: ng.hypot(x[:, :1], y[:1]),
    "itself": lambda x, y: ng.atan2(x, x),
    "of one and a number": lambda x, y: x[0] ** 3 * y,
    "of two dtypes": lambda x, y: x.double() * y,
    "three operands": lambda x, y: ng.lerp(x, y, y[0]),
    "numbers behind": lambda x, y: ng.addcmul(x, x, y, value=2),
    "mask": lambda x, y: ng.where(x > 0.5, x * y, y),
    "matrices": lambda x, y: x @ y.t(),
    "sum of products": lambda x, y: ng.addmm(x[:, :2], x, y.t()),
    "sequence": lambda x, y: ng.cat([x, y]).exp(),
    "in place": lambda x, y: (x * 1).mul_(y),
    "in place, itself": lambda x, y: (x * 1).atan2_(y),
    "in place, broadcast": lambda x, y: (x * 1).mul_(y[0]),
    "in place, a view": lambda x, y: write_to_a_view(x * 1, y),
    "in place, number": lambda x, y: (x * y).pow_(3),
    "in place, addcmul": lambda x, y: (x * 1).addcmul_(x, y, value=3),
}


def write_to_a_view(target: Any, y: Any) -> Any:
    target[0].mul_(y[1])
    return target


def seen(call: Callable[[Any, Any], Any]) -> list[Any]:
    """Return what hooks are handed in a call, and which later writes its gradient notices."""
    found: list[Any] = []
    values = ng.tensor([[0.25, 0.5, 0.75], [1.0, 1.25, 1.5]])
    x, y = (values * 1).requires_grad_() * 1, (values + 1).requires_grad_() * 1
    handed: list[Any] = []

    def pack(tensor: Any) -> Any:
        names = [name for name, each in (("x", x), ("y", y)) if each is tensor]
        handed.append((names, tensor.requires_grad, tensor._version, tensor.tolist()))
        return tensor

    with ng.autograd.graph.saved_tensors_hooks(pack, lambda packed: packed):
        result = call(x, y)
    for written in (None, "x", "y", "result"):
        x, y = (values * 1).requires_grad_() * 1, (values + 1).requires_grad_() * 1
        result = call(x, y)
        target = {"x": x, "y": y, "result": result}.get(written or "")
        if target is not None:
            with ng.no_grad():
                target.add_(0)
        try:
            ng.autograd.grad(result.sum(), (x, y), allow_unused=True)
            found.append((written, None))
        except RuntimeError as error:
            found.append((written, str(error).partition(" Hint")[0]))
    return [*found, *handed, type(result.grad_fn).__name__]


@pytest.mark.parametrize("name", CALLS)
def test_remembered_calls_save_what_the_first_saves(name: str) -> None:
    forget_calls()  # so that the first goes the long way
    first = seen(CALLS[name])
    for _ in range(6):
        assert seen(CALLS[name]) == first
