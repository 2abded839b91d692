"""The graphs that people meet first, forward and backward, on a handful of numbers.

Every time that is reported is that of 1,000 calls.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numgrad as ng

CALLS = 1000


def repeated(call: Callable[[Any], None]) -> Callable[[Any], None]:
    """Make a benchmark of `CALLS` calls.

    asv would choose their number by the first, which takes long if it has to compile.
    """

    @functools.wraps(call)
    def timed(self: Any) -> None:
        for _ in range(CALLS):
            call(self)

    timed.number = 1  # type: ignore[attr-defined]
    return timed


_w1 = ng.tensor([1.0], requires_grad=True)
_x1 = ng.tensor([2.0])
_w4 = ng.tensor([1.0, -2.0, 0.5, 3.0], requires_grad=True)
_x4 = ng.tensor([2.0, 1.0, 4.0, -1.0])
_ones4 = ng.ones(4)
_square = ng.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
_jacobian_vector = ng.tensor([0.1, 1.0, 0.001, 0.5])


class Products:
    """``(w + x) * (w + 1)`` of float32, and its gradient."""

    @repeated
    def time_one_element(self) -> None:
        _w1.grad = None
        ((_w1 + _x1) * (_w1 + 1)).backward()

    @repeated
    def time_four_elements(self) -> None:
        _w4.grad = None
        ((_w4 + _x4) * (_w4 + 1)).backward(_ones4)

    @repeated
    def time_four_elements_accumulating(self) -> None:
        ((_w4 + _x4) * (_w4 + 1)).backward(_ones4)

    @repeated
    def time_four_elements_forward(self) -> None:
        (_w4 + _x4) * (_w4 + 1)


class Powers:
    """``x**4`` twice through one graph, and the second derivative of ``x**2``."""

    @repeated
    def time_retained_graph(self) -> None:
        _w1.grad = None
        y = _w1**4
        y.backward(retain_graph=True)
        y.backward()

    @repeated
    def time_second_derivative(self) -> None:
        (first,) = ng.autograd.grad(_w1**2, _w1, create_graph=True)
        ng.autograd.grad(first, _w1)

    @repeated
    def time_second_derivative_backward(self) -> None:
        _w1.grad = None
        (first,) = ng.autograd.grad(_w1**2, _w1, create_graph=True)
        first.backward()


class Reductions:
    """``(y * y + 2).mean()`` of a matrix."""

    @repeated
    def time_mean(self) -> None:
        _square.grad = None
        y = _square + 2
        (y * y + 2).mean().backward()


class Views:
    """A matrix seen as another, and a vector-Jacobian product through it."""

    @repeated
    def time_vector_jacobian_product(self) -> None:
        _w4.grad = None
        (2 * _w4).view(2, 2).view(4).backward(_jacobian_vector)

    @repeated
    def time_transpose_and_select(self) -> None:
        _square.grad = None
        _square.t()[0].sum().backward()


class Modes:
    """Graphs that are recorded in part."""

    @repeated
    def time_no_grad_mix(self) -> None:
        _w1.grad = None
        y1 = _w1**2
        with ng.no_grad():
            y2 = _w1**3
        (y1 + y2).backward()

    @repeated
    def time_forward_in_no_grad(self) -> None:
        with ng.no_grad():
            (_w4 + _x4) * (_w4 + 1)

    @repeated
    def time_detach(self) -> None:
        _w4.grad = None
        (_w4 * _w4.detach()).backward(_ones4)

    @repeated
    def time_update_of_a_leaf(self) -> None:
        _w1.grad = None
        ((_w1 + _x1) * (_w1 + 1)).backward()
        _w1.data -= 0.0 * _w1.grad
