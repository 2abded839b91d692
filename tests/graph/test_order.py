"""The order in which nodes run and leaves are fed, told by hooks: PyTorch's, and a model of it."""

from __future__ import annotations

import heapq
import itertools
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from tests.cases import examples

# What an operation makes of two tensors and of several ones, all of shape (2, 2).
OPERATIONS: dict[str, Any] = {
    "add": lambda m, a, b, many: [a + b],
    "mul": lambda m, a, b, many: [a * b],
    "matmul": lambda m, a, b, many: [a @ b],
    "exp": lambda m, a, b, many: [a.exp()],
    "sum": lambda m, a, b, many: [a.sum(0, keepdim=True) + b],
    "detach": lambda m, a, b, many: [a.detach()],
    "stack": lambda m, a, b, many: [m.stack(many).sum(0)],
    "cat": lambda m, a, b, many: [m.cat(many)[:2]],
    "unbind": lambda m, a, b, many: [each.expand(2, 2) for each in a.unbind()],
    "chunk": lambda m, a, b, many: [each.expand(2, 2) for each in m.cat([a, b]).chunk(4)],
}


def build(m: Any, choose: random.Random, log: list[Any], several: int) -> tuple[list[Any], Any]:
    """Build a random graph with hooks that write to a log; return its tensors and leaves."""
    leaves = [m.ones(2, 2, requires_grad=True) for _ in range(choose.randint(1, 6))]
    for number, leaf in enumerate(leaves):
        if choose.random() < 0.5:
            leaf.register_hook(lambda g, at=number: log.append(("leaf", at)))
        if choose.random() < 0.5:
            leaf.register_post_accumulate_grad_hook(lambda x, at=number: log.append(("after", at)))
    pool = list(leaves)
    for step in range(choose.randint(1, 14)):
        name = choose.choice(sorted(OPERATIONS))
        a, b = choose.choice(pool), choose.choice(pool)
        many = [choose.choice(pool) for _ in range(choose.randint(1, several))]
        for output, tensor in enumerate(OPERATIONS[name](m, a, b, many)):
            pool.append(tensor)
            if tensor.grad_fn is None:
                continue
            at, which = (step, output), choose.random()
            if which < 0.5:
                tensor.register_hook(lambda g, at=at: log.append(("tensor", at)))
            if 0.3 < which < 0.7:
                tensor.grad_fn.register_prehook(lambda g, at=at: log.append(("before", at)))
            if which > 0.6:
                tensor.grad_fn.register_hook(lambda g, h, at=at: log.append(("node", at)))
    return pool, leaves


def run(m: Any, seed: int) -> list[Any]:
    """Build a graph, run it back in some way, and return the log."""
    choose = random.Random(seed)
    log: list[Any] = []
    # Leaves that are ready at the same time stand in a heap in PyTorch, and three or more come out
    # of it in an order that depends on what else is in it. Here they come in their node's order.
    pool, _ = build(m, choose, log, several=2)
    results = [tensor for tensor in pool if tensor.grad_fn is not None]
    inputs = [tensor for tensor in pool if tensor.requires_grad]
    if not results:
        return log
    roots = choose.sample(results, min(len(results), choose.randint(1, 3)))
    inputs = choose.sample(inputs, min(len(inputs), choose.randint(1, 3)))
    cotangents = [m.ones(2, 2) for _ in roots]
    way = choose.choice(["everywhere", "recorded", "inputs", "grad"])
    if way == "everywhere":
        m.autograd.backward(roots, cotangents)
    elif way == "recorded":
        m.autograd.backward(roots, cotangents, create_graph=True)
    elif way == "inputs":
        m.autograd.backward(roots, cotangents, inputs=inputs)
    else:
        m.autograd.grad(roots, inputs, cotangents, allow_unused=True)
    return [way, *log]


@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(200))
@pytest.mark.filterwarnings("ignore:Using backward")
def test_hooks_of_random_graphs_run_in_pytorchs_order(torch: Any, seed: int) -> None:
    assert run(ng, seed) == run(torch, seed)


def modelled(root: Any, names: dict[Any, Any]) -> list[Any]:
    """Return the order of nodes: of those that wait for nothing, leaves first, then the latest."""
    waits: Counter[Any] = Counter()
    reached, stack = {root}, [root]
    while stack:
        for target, _ in stack.pop().next_functions:
            if target is None:
                continue
            waits[target] += 1
            if target not in reached:
                reached.add(target)
                stack.append(target)
    arrival = itertools.count()
    ready = [(-names[root][0], next(arrival), root)]
    order = []
    while ready:
        *_, node = heapq.heappop(ready)
        order.append(names[node][1])
        for target, _ in node.next_functions:
            if target is not None:
                waits[target] -= 1
                if not waits[target]:
                    heapq.heappush(ready, (-names[target][0], next(arrival), target))
    return order


@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(100))
def test_nodes_of_random_graphs_run_in_the_order_of_the_model(seed: int) -> None:
    choose = random.Random(seed)
    pool, leaves = build(ng, choose, [], several=6)
    total = sum(tensor.sum() for tensor in pool[len(leaves) :] if tensor.grad_fn is not None)
    if not isinstance(total, ng.Tensor):
        return
    ran: list[Any] = []
    names: dict[Any, Any] = {}
    stack = [total.grad_fn]
    while stack:
        node = stack.pop()
        if node not in names:
            is_leaf = node.name().endswith("AccumulateGrad")
            age = float("inf") if is_leaf else node.sequence
            names[node] = (age, f"{node.name()} {len(names)}")
            node.register_prehook(lambda g, name=names[node][1]: ran.append(name))
            stack += [target for target, _ in node.next_functions if target is not None]
    total.backward()
    assert ran == modelled(total.grad_fn, names)


def test_the_node_of_an_input_runs_in_backward_and_not_in_grad(lib: Any) -> None:
    for accumulate in (True, False):
        x = lib.ones(2, requires_grad=True)
        y = x * 2
        log: list[str] = []
        y.register_hook(lambda g, log=log: log.append("tensor"))
        y.grad_fn.register_prehook(lambda g, log=log: log.append("before"))
        y.grad_fn.register_hook(lambda g, h, log=log: log.append("after"))
        if accumulate:
            (y * 3).sum().backward(inputs=[y])
            assert y.grad.tolist() == [3, 3] and x.grad is None
        else:
            lib.autograd.grad((y * 3).sum(), y)
        assert log == ["tensor", "before", "after"][: 3 if accumulate else 1]


def test_the_only_root_has_its_hooks_called_although_it_leads_to_no_input(lib: Any) -> None:
    x, w = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)
    y, z = x * 2, x * 3
    log: list[str] = []
    for name, tensor in (("y", y), ("z", z)):
        tensor.register_hook(lambda g, name=name: log.append(name))
        tensor.grad_fn.register_prehook(lambda g, name=name: log.append(f"before {name}"))
    lib.autograd.grad([y], [w], [lib.ones(2)], allow_unused=True)
    assert log == ["y"]
    lib.autograd.grad([y, z], [w], [lib.ones(2)] * 2, allow_unused=True)
    assert log == ["y"]
