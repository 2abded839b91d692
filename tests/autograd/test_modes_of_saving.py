"""Modes that the hooks of saved tensors are called in, whatever it is that saves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Hooks = tuple[Callable[[Any], Any], Callable[[Any], Any]]


def _cube(lib: Any) -> Any:
    class Cube(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 3 * x**2 * g

    return Cube


def _by_an_operation(lib: Any, x: Any, hooks: Hooks) -> Any:
    with lib.autograd.graph.saved_tensors_hooks(*hooks):
        return x.exp()


def _by_a_function(lib: Any, x: Any, hooks: Hooks) -> Any:
    with lib.autograd.graph.saved_tensors_hooks(*hooks):
        return _cube(lib).apply(x)


def _in_one_place(lib: Any, x: Any, hooks: Hooks) -> Any:
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(*hooks)
    return y


def _in_one_place_of_a_function(lib: Any, x: Any, hooks: Hooks) -> Any:
    y = _cube(lib).apply(x)
    y.grad_fn._raw_saved_tensors[0].register_hooks(*hooks)
    return y


def _by_a_checkpoint(lib: Any, x: Any, hooks: Hooks) -> Any:
    with lib.autograd.graph.saved_tensors_hooks(*hooks):
        return lib.utils.checkpoint.checkpoint(lambda x: x.exp(), x, use_reentrant=True)


WAYS = [
    _by_an_operation,
    _by_a_function,
    _in_one_place,
    _in_one_place_of_a_function,
    _by_a_checkpoint,
]


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_packing_records_nothing_and_unpacking_what_the_pass_records(
    lib: Any, way: Callable[..., Any], create_graph: bool
) -> None:
    seen: list[tuple[str, bool, bool]] = []

    def pack(tensor: Any) -> Any:
        seen.append(("pack", lib.is_grad_enabled(), (x * 2).requires_grad))
        return tensor

    def unpack(tensor: Any) -> Any:
        seen.append(("unpack", lib.is_grad_enabled(), (x * 2).requires_grad))
        return tensor

    x = lib.tensor([0.5, 2.0], requires_grad=True)
    y = way(lib, x, (pack, unpack))
    assert lib.is_grad_enabled() and seen and set(seen) == {("pack", False, False)}
    seen.clear()
    if way is not _by_a_checkpoint:  # of that kind PyTorch takes `backward` alone
        lib.autograd.grad(y.sum(), x, create_graph=create_graph)
        assert set(seen) == {("unpack", create_graph, create_graph)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("on", [False, True])
def test_a_hook_that_fails_or_switches_recording_leaves_it_as_it_was(
    lib: Any, way: Callable[..., Any], on: bool
) -> None:
    def pack(tensor: Any) -> Any:
        lib.set_grad_enabled(on)
        raise ArithmeticError

    def switch(tensor: Any) -> Any:
        lib.set_grad_enabled(on)
        return tensor

    x = lib.tensor([0.5, 2.0], requires_grad=True)
    with pytest.raises(ArithmeticError):
        way(lib, x, (pack, pack))
    assert lib.is_grad_enabled()
    assert way(lib, x, (switch, switch)).requires_grad and lib.is_grad_enabled()
