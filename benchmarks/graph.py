"""The graph itself: what it costs to record nodes, to run back through them, and to free them."""

from __future__ import annotations

from typing import Any

import numgrad as ng

CHAIN = 100_000  # nodes
WIDTH = 10_000


def chain(leaf: Any, nodes: int = CHAIN) -> Any:
    """Return the last of a chain of multiplications, each a node."""
    y = leaf
    for _ in range(nodes):
        y = y * 0.999999
    return y


class Chain:
    """100,000 multiplications of a scalar, one after the other."""

    number = 1  # every call gets a graph of its own from setup
    warmup_time = 0.5

    def setup(self) -> None:
        self.leaf = ng.tensor(1.0, requires_grad=True)
        self.last: Any = chain(self.leaf)

    def time_build(self) -> None:
        self.kept = chain(self.leaf)

    def time_build_without_grad(self) -> None:
        with ng.no_grad():
            chain(self.leaf)

    def time_backward(self) -> None:
        self.last.backward()

    def time_free(self) -> None:
        self.last = None

    def time_all(self) -> None:
        chain(self.leaf).backward()


class Wide:
    """10,000 nodes beside each other on one leaf."""

    number = 1
    warmup_time = 0.5

    def setup(self) -> None:
        self.leaf = ng.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
        self.ones = [ng.ones(4)] * WIDTH
        self.products = [self.leaf * 1.5 for _ in range(WIDTH)]
        self.total: Any = self.products[0]
        for product in self.products[1:]:
            self.total = self.total + product

    def time_many_roots(self) -> None:
        ng.autograd.backward(self.products, self.ones)

    def time_sum_of_many(self) -> None:
        self.total.backward(self.ones[0])

    def time_grad_of_many_inputs(self) -> None:
        ng.autograd.grad(self.total, self.products, self.ones[0])


class Views:
    """1,000 times a row of a matrix, a view of it, and a transpose."""

    number = 1
    warmup_time = 0.5

    def setup(self) -> None:
        self.leaf = ng.ones(8, 8, requires_grad=True)
        self.last = self._build()

    def _build(self) -> Any:
        y = self.leaf
        for _ in range(1000):
            y = y.t().reshape(4, 16).view(8, 8)
        return y

    def time_build(self) -> None:
        self._build()

    def time_backward(self) -> None:
        self.last.backward(self.leaf.detach())

    def time_rows(self) -> None:
        total = self.leaf[0]
        for position in range(1000):
            total = total + self.leaf[position % 8]
        total.backward(total.detach())


class InPlace:
    """1,000 writes to a tensor that has a history, or to views of it, and the way back."""

    number = 1
    warmup_time = 0.5

    def setup(self) -> None:
        self.leaf = ng.ones(8, requires_grad=True)
        self.ones = ng.ones(8)

    def time_writes(self) -> None:
        y = self.leaf * 1.0
        for _ in range(1000):
            y.mul_(0.999)
        y.backward(self.ones)

    def time_writes_to_views(self) -> None:
        y = self.leaf * 1.0
        for position in range(1000):
            y[position % 8].mul_(0.999)
        y.backward(self.ones)

    def time_assigned_elements(self) -> None:
        y = self.leaf * 1.0
        for position in range(1000):
            y[position % 8] = 2.0
        y.backward(self.ones)


class Functional:
    """Derivatives of whole functions by `numgrad.autograd.functional`."""

    params = (4, 20)
    param_names = ("n",)

    def setup(self, n: int) -> None:
        self.x = ng.linspace(-1, 2, n, dtype=ng.float64)
        ng.autograd.functional.hessian(self.rosenbrock, self.x)

    @staticmethod
    def rosenbrock(x: Any) -> Any:
        return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

    def time_hessian(self, n: int) -> None:
        ng.autograd.functional.hessian(self.rosenbrock, self.x)

    def time_hvp(self, n: int) -> None:
        ng.autograd.functional.hvp(self.rosenbrock, self.x, self.x)
