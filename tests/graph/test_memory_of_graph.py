"""What holds what: saved tensors are freed after use, and graphs by counting references alone."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import numgrad as ng

Tensor = ng.Tensor


@pytest.fixture(autouse=True)
def _no_garbage_collector() -> Iterator[None]:
    """Collect what others left, then turn the collector off for the test."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def leaf(*values: float) -> Any:
    return ng.tensor(list(values), dtype=ng.float64, requires_grad=True)


def plain(w: Any) -> Any:
    return ((w * 2).sin() + w.exp() * w).sum()


def double_backward(w: Any) -> Any:
    (first,) = ng.autograd.grad((w**3).sum(), w, create_graph=True)
    (second,) = ng.autograd.grad((first * first).sum(), w, create_graph=True)
    return second


def in_place(w: Any) -> Any:
    y = w * 1
    y.mul_(w).exp_().add_(1)
    y += w
    return y


def copy_slices(w: Any) -> Any:
    y = w * 1
    view = y[1:]
    view.mul_(w[1:]).tanh_()
    y[0] = w[1]
    y.view(-1)[:1].zero_()
    return y + view.sum()


def views(w: Any) -> Any:
    y = w * 1
    first, second = y.unbind(0)
    return (y.view(1, 2).t()[0] * first + second).expand(3, 1)


def outputs_saved(w: Any) -> Any:
    return w.tanh().exp().sqrt().softmax(0).max()


def hooked(w: Any) -> Any:
    y = w * 2
    y.register_hook(lambda g: g * 2)
    y.retain_grad()
    w.register_hook(lambda g: None)
    return y * y


def retained(w: Any) -> Any:
    y = w * 2
    y.retain_grad()
    z = y * y
    z.backward(ng.ones_like(z), retain_graph=True)
    return z


def differentiated(w: Any) -> Any:
    y = plain(w)
    y.backward()
    return y


def failed(w: Any) -> Any:
    y = w.exp()
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    return z


def joined(w: Any) -> Any:
    return ng.cat([w, ng.stack([w, w]).sum(0)]) @ ng.cat([w, w])


def refreshed_view(w: Any) -> Any:
    y = w * 1
    view = y[0]
    y.add_(w)
    return view * 2


GRAPHS = [
    plain,
    double_backward,
    in_place,
    copy_slices,
    views,
    outputs_saved,
    hooked,
    retained,
    differentiated,
    failed,
    joined,
    refreshed_view,
]


@pytest.mark.parametrize("build", GRAPHS)
def test_graphs_are_freed_without_the_garbage_collector(build: Callable[[Any], Any]) -> None:
    for _ in range(3):  # what is compiled on the way leaves garbage of its own
        build(leaf(0.5, 2.0))
    gc.collect()
    w = leaf(0.5, 2.0)
    result = build(w)
    nodes = reachable(result.grad_fn)
    assert nodes
    references = [weakref.ref(result), weakref.ref(w), *map(weakref.ref, nodes)]
    del result, w, nodes
    assert [r() for r in references if r() is not None] == []
    assert gc.collect() == 0


def reachable(node: Any) -> list[Any]:
    """Return all nodes below one."""
    found, stack = [], [node]
    while stack:
        node = stack.pop()
        if node is not None and not any(node is other for other in found):
            found.append(node)
            stack.extend(child for child, _ in node.next_functions)
    return found


def test_a_leaf_lives_as_long_as_a_graph_needs_it_and_no_graph_needs_the_leaf_to_live() -> None:
    w = leaf(1.0)
    y = w * 2
    reference = weakref.ref(w)
    del w
    assert reference() is not None  # its gradient may still be asked for, through the graph
    y.backward()
    assert reference().grad.item() == 2.0
    del y
    assert reference() is None
    w = leaf(1.0)
    y = w * 2
    node = weakref.ref(y.grad_fn.next_functions[0][0])
    del y
    assert node() is None and w.grad is None


def test_one_leaf_has_one_accumulating_node_while_a_graph_lives() -> None:
    w = leaf(1.0)
    a, b = w * 2, w * 3
    first, second = a.grad_fn.next_functions[0][0], b.grad_fn.next_functions[0][0]
    assert first is second and first.variable is w


def arrays_alive(*references: Any) -> list[bool]:
    return [reference() is not None for reference in references]


def test_saved_tensors_are_freed_by_the_backward_pass() -> None:
    w = leaf(1.0, 2.0)
    factor = ng.ones(2, dtype=ng.float64)
    saved_input, saved_result = weakref.ref(factor._array), None
    product = w * factor
    result = product.exp()
    saved_result = weakref.ref(result._array)
    total = result.sum()
    del factor, result, product
    assert arrays_alive(saved_input, saved_result) == [True, True]
    total.backward(retain_graph=True)
    assert arrays_alive(saved_input, saved_result) == [True, True]
    total.backward()
    assert arrays_alive(saved_input, saved_result) == [False, False]


def test_what_a_graph_saved_goes_with_the_graph() -> None:
    w = leaf(1.0, 2.0)
    y = w.exp()
    saved = weakref.ref(y._array)
    z = y * y
    del y
    assert saved() is not None
    del z
    assert saved() is None


def test_only_what_a_gradient_needs_is_saved() -> None:
    w = leaf(1.0, 2.0)
    constant = ng.ones(2, dtype=ng.float64)
    middle = w * 3
    array = weakref.ref(middle._array)
    product = middle * constant  # needs `constant`, not `middle`
    del middle
    assert array() is None
    total = w + constant
    array = weakref.ref(constant._array)
    del constant, product
    assert array() is None
    assert total.grad_fn is not None


def test_a_view_that_is_saved_keeps_no_tensor_but_the_memory() -> None:
    w = leaf(1.0, 2.0)
    base = w * 3
    view = base[0]
    squared = view * view
    reference = weakref.ref(base)
    del base, view
    assert reference() is None
    squared.backward()
    assert w.grad.tolist() == [18.0, 0.0]


def test_gradients_on_their_way_are_freed_as_the_pass_goes_on() -> None:
    """A long chain over a large array needs a few arrays at a time, not one for each node."""
    size, length = 200_000, 30
    w = ng.ones(size, dtype=ng.float64, requires_grad=True)
    y = w
    for _ in range(length):
        y = -y
    alive, most = 0, 0

    def note(gradient: Any) -> None:
        nonlocal alive, most
        alive += 1
        most = max(most, alive)
        weakref.finalize(gradient._array, forget)

    def forget() -> None:
        nonlocal alive
        alive -= 1

    z = y
    for _ in range(length):
        z = -z
        z.register_hook(note)
    z.backward(ng.ones(size, dtype=ng.float64))
    assert w.grad is not None and np.all(w.grad.numpy() == 1.0)
    assert alive <= 1 and most <= 3


@pytest.mark.parametrize("asked", ["some", "all"])
def test_gradients_of_what_nobody_asked_for_go_at_once(asked: str) -> None:
    """Nodes behind which nothing is asked for are not run, and keep nothing for the pass."""
    seen: list[Any] = []
    alive: list[int] = []

    class Both(ng.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x + y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            parts = g * 2, g * 3
            seen.append(weakref.ref(parts[1]._array))
            return parts

    x, *others = [leaf(0.5, 2.0) for _ in range(5)]
    y: Any = x.sin()  # runs last
    y.register_hook(lambda g: alive.append(sum(ref() is not None for ref in seen)))
    for other in others:
        y = Both.apply(y, other.exp())
    ng.autograd.grad(y.sum(), [x] if asked == "some" else [x, *others])
    assert len(seen) == 4 and alive[0] <= 1  # that of the node before


def test_deleting_the_end_of_a_long_graph_frees_it_in_a_loop() -> None:
    """One destructor inside the other, 300,000 deep, would end the process."""
    w = leaf(1.0)
    y = w
    references = []
    for step in range(300_000):
        y = y * 1.0 if step % 2 else (y + w)
        if step % 50_000 == 0:
            references.append(weakref.ref(y.grad_fn))
    del y
    assert [r() for r in references if r() is not None] == []


def test_a_long_chain_of_writes_is_freed_too() -> None:
    w = leaf(1.0, 2.0)
    y = w * 1
    first = weakref.ref(y.grad_fn)
    for step in range(20_000):
        if step % 2:
            y[0] = 1.0
        else:
            y.add_(w)
    y.sum().backward()
    assert w.grad.tolist() == [0.0, 10_001.0]
    del y
    assert first() is None
