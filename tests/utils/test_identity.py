"""Which tensors a checkpoint hands to Functions: the user's objects, or others over their memory.

Each case is run as it is, in both kinds of checkpoints, and compared with PyTorch in all that a
backward pass can see of what it finds in ``ctx.saved_tensors``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import numgrad as ng

# What a Function saves, of the arguments `a` and `b` of the checkpointed function: what it got
# (made inside of the checkpoint, or given to it), what was captured, or what it computed itself.
SAVED: dict[str, Callable[[Any, Any, Any], Any]] = {
    "an argument": lambda a, b, c: (a, b),
    "made inside": lambda a, b, c: (a * 2, b),
    "captured": lambda a, b, c: (a, c),
    "captured, made inside": lambda a, b, c: (a * 2, c),
    "a view of what was captured": lambda a, b, c: (a, c[:]),
    "detached": lambda a, b, c: (a.detach() * b, b.detach()),
    "the same twice": lambda a, b, c: (b, b),
}
WAYS = ["plain", "reentrant", "ends early", "runs to its end"]


def checkpointed(lib: Any, way: str, function: Any, *arguments: Any) -> Any:
    tools = lib.utils.checkpoint
    if way == "plain":
        return function(*arguments)
    if way == "runs to its end":
        with tools.set_checkpoint_early_stop(False):
            return tools.checkpoint(function, *arguments, use_reentrant=False)
    return tools.checkpoint(function, *arguments, use_reentrant=way == "reentrant")


def facts(lib: Any, way: str, case: str, computed: bool) -> list[Any]:
    """Return what a Function in a checkpoint sees of its saved tensors, and of the arguments."""
    seen: list[tuple[str, Any]] = []

    class Product(lib.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            result = x * y
            ctx.save_for_backward(x, y, result)
            return result

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y, result = ctx.saved_tensors
            seen.extend([("x", x), ("y", y), ("result", result)])
            return g * y, g * x

    x, y = (lib.tensor(pair, requires_grad=True) for pair in ([1.0, 2.0], [3.0, 4.0]))
    c = lib.tensor([5.0, 6.0])
    given = (x * 1, y * 1) if computed else (x, y)
    known: list[Any] = [x, y, c, *given]

    def function(a: Any, b: Any) -> Any:
        seen.extend([("a", a), ("b", b)])
        chosen = SAVED[case](a, b, c)
        known.extend([a, b, *chosen])
        return Product.apply(*chosen)

    checkpointed(lib, way, function, *given).sum().backward()
    return [
        (
            name,
            [i for i, other in enumerate(known) if other is tensor],
            [i for i, other in enumerate(known) if other.data_ptr() == tensor.data_ptr()],
            tensor.requires_grad,
            tensor.is_leaf,
            tensor.grad_fn and tensor.grad_fn.name(),
            tensor._version,
        )
        for name, tensor in seen
    ] + [None if leaf.grad is None else leaf.grad.tolist() for leaf in (x, y)]


@pytest.mark.parametrize("computed", [False, True], ids=["leaves", "results"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", SAVED)
def test_saved_tensors_are_the_objects_that_they_are_in_pytorch(
    torch: Any, case: str, way: str, computed: bool
) -> None:

    assert facts(ng, way, case, computed) == facts(torch, way, case, computed)
