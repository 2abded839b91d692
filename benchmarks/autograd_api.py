"""The autograd API around operations: custom Functions, hooks, saved tensors, checkpoints."""

from __future__ import annotations

from typing import Any

import numgrad as ng

SEGMENTS = 10


def square_of(library: Any) -> Any:
    """Return a custom Function that squares; `library` is numgrad or PyTorch."""

    class Square(library.autograd.Function):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * grad * x

    return Square


def hooked_chain(leaf: Any, hook: Any, length: int = SEGMENTS) -> Any:
    """Return the last of a chain of products, each with a hook."""
    y = leaf
    for _ in range(length):
        y = y * 1.5
        y.register_hook(hook)
    return y


def segments(library: Any, leaf: Any, use_reentrant: bool = False) -> Any:
    """Return what a chain of checkpoints computes."""
    checkpoint = library.utils.checkpoint.checkpoint

    def segment(x: Any) -> Any:
        return library.tanh(x * 1.5) + x

    y = leaf
    for _ in range(SEGMENTS):
        y = checkpoint(segment, y, use_reentrant=use_reentrant)
    return y


def nothing(gradient: Any) -> None:
    """Do what a hook does that only looks."""


class Functions:
    """A custom Function of 4 elements."""

    warmup_time = 0.5

    def setup(self) -> None:
        self.leaf = ng.tensor([1.0, -2.0, 0.5, 3.0], requires_grad=True)
        self.ones = ng.ones(4)
        self.square = square_of(ng)

    def time_forward(self) -> None:
        self.square.apply(self.leaf)

    def time_gradient(self) -> None:
        self.leaf.grad = None
        self.square.apply(self.leaf).backward(self.ones)

    def time_second_derivative(self) -> None:
        (slope,) = ng.autograd.grad(
            self.square.apply(self.leaf), self.leaf, self.ones, create_graph=True
        )
        ng.autograd.grad(slope, self.leaf, self.ones)


class Hooks:
    """A backward pass with 10 hooks on tensors, on nodes, or on several tensors at once."""

    warmup_time = 0.5

    def setup(self) -> None:
        self.leaf = ng.tensor([1.0, -2.0, 0.5, 3.0], requires_grad=True)
        self.ones = ng.ones(4)
        self.plain = self.leaf
        for _ in range(SEGMENTS):
            self.plain = self.plain * 1.5
        self.hooked = hooked_chain(self.leaf, nothing)
        self.nodes: Any = self.leaf
        for _ in range(SEGMENTS):
            self.nodes = self.nodes * 1.5
            self.nodes.grad_fn.register_hook(lambda inputs, outputs: None)
        products = [self.leaf * 1.5 for _ in range(SEGMENTS)]
        ng.autograd.graph.register_multi_grad_hook(products, nothing)
        self.several: Any = products[0]
        for product in products[1:]:
            self.several = self.several + product

    def time_none(self) -> None:
        self.plain.backward(self.ones, retain_graph=True)

    def time_on_tensors(self) -> None:
        self.hooked.backward(self.ones, retain_graph=True)

    def time_on_nodes(self) -> None:
        self.nodes.backward(self.ones, retain_graph=True)

    def time_on_several_tensors(self) -> None:
        self.several.backward(self.ones, retain_graph=True)


class Saved:
    """A chain of 10 segments whose saved tensors are packed, or computed again."""

    warmup_time = 0.5
    params = (4, 1000)
    param_names = ("elements",)

    def setup(self, elements: int) -> None:
        self.leaf = ng.ones(elements, requires_grad=True)
        self.ones = ng.ones(elements)

    def time_packed(self, elements: int) -> None:
        with ng.autograd.graph.save_on_cpu():
            y = self.leaf
            for _ in range(SEGMENTS):
                y = ng.tanh(y * 1.5) + y
        y.backward(self.ones)

    def time_checkpoints(self, elements: int) -> None:
        segments(ng, self.leaf).backward(self.ones)

    def time_reentrant_checkpoints(self, elements: int) -> None:
        segments(ng, self.leaf, use_reentrant=True).backward(self.ones)
