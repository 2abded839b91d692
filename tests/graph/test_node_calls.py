"""Nodes are functions: of gradients of their outputs, to gradients of their inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import numgrad as ng

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "one input": lambda m, x: x.exp(),
    "two inputs": lambda m, x: x * x.detach().requires_grad_(),
    "a number": lambda m, x: x * 2,
    "a reduction": lambda m, x: x.sum(),
    "a view": lambda m, x: x[:1],
    "a product": lambda m, x: x.reshape(1, 2) @ x.reshape(2, 1),
    "several outputs": lambda m, x: x.unbind()[0],
    "a write": lambda m, x: x.clone().mul_(m.ones(2, requires_grad=True)),
    "a write to a view": lambda m, x: write_to_a_view(x),
    "an index": lambda m, x: x[m.tensor([0, 0, 1])],
}


# Their last result holds positions or exponents, which no gradient flows through.
TWO_RESULTS: dict[str, Callable[[Any, Any], Any]] = {
    "max": lambda m, x: x.max(0),
    "min": lambda m, x: x.min(1, keepdim=True),
    "sort": lambda m, x: x.sort(1),
    "topk": lambda m, x: x.topk(1),
    "median": lambda m, x: x.median(0),
    "nanmedian": lambda m, x: x.nanmedian(0),
    "mode": lambda m, x: x.mode(0),
    "kthvalue": lambda m, x: x.kthvalue(1, 0),
    "cummax": lambda m, x: x.cummax(0),
    "cummin": lambda m, x: x.cummin(0),
    "frexp": lambda m, x: x.frexp(),
}


# Factorisations keep what no gradient flows through; the number is that of the gradients.
FACTORISATIONS: dict[str, tuple[int, Callable[[Any, Any], Any]]] = {
    "lu": (2, lambda m, x: m.linalg.lu(x)),
    "lu_factor": (1, lambda m, x: m.linalg.lu_factor(x)),
    "lu_unpack": (2, lambda m, x: m.lu_unpack(*m.linalg.lu_factor(x))),
    "solve": (1, lambda m, x: [m.linalg.solve(x, x.detach())]),
    "solve_ex": (1, lambda m, x: m.linalg.solve_ex(x, x.detach())),
    "inv_ex": (1, lambda m, x: m.linalg.inv_ex(x)),
    "cholesky_ex": (1, lambda m, x: m.linalg.cholesky_ex(x)),
    "slogdet": (2, lambda m, x: m.linalg.slogdet(x)),
    "qr": (2, lambda m, x: m.linalg.qr(x)),
    "svd": (3, lambda m, x: m.linalg.svd(x)),
    "eigh": (2, lambda m, x: m.linalg.eigh(x)),
}
# What has nodes, but no derivatives.
UNDERIVED: dict[str, Callable[[Any, Any], Any]] = {
    "ldl_factor": lambda m, x: m.linalg.ldl_factor(x)[0],
    "ldl_factor_ex": lambda m, x: m.linalg.ldl_factor_ex(x)[0],
    "ldl_solve": lambda m, x: m.linalg.ldl_solve(*m.linalg.ldl_factor(x.detach()), x),
    "unique": lambda m, x: m.unique(x),
    "unique_consecutive": lambda m, x: m.unique_consecutive(x, return_counts=True)[0],
    "bincount": lambda m, x: m.bincount(m.tensor([0, 1]), weights=x[0]),
}


def write_to_a_view(x: Any) -> Any:
    base = x.clone()
    base[:1].mul_(2)
    return base


@pytest.mark.parametrize("call", CALLS)
def test_a_node_is_called_with_one_gradient_for_each_output(lib: Any, call: str) -> None:
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    y = CALLS[call](lib, x)
    node = y.grad_fn
    count = 2 if call == "several outputs" else 1
    for wrong in {0, 1, 2, 3} - {count}:
        with pytest.raises(TypeError, match=f"^expected {count} arguments, got {wrong} instead$"):
            node(*[lib.ones(y.shape)] * wrong)
    with pytest.raises(TypeError, match="^argument 0 is not a Variable$"):
        node(*[3.0] * count)
    with pytest.raises(TypeError, match="^keyword arguments are not supported$"):
        node(g=y)
    with lib.no_grad():
        found = node(*[lib.ones(y.shape)] * count)
    found = found if isinstance(found, tuple) else (found,)
    assert len(found) == len(node.next_functions)
    assert not any(each.requires_grad for each in found if each is not None)
    edges = [lib.autograd.graph.GradientEdge(*edge) for edge in node.next_functions if edge[0]]
    given = [lib.autograd.graph.GradientEdge(node, number) for number in range(count)]
    ones = [lib.ones(y.shape)] * count
    expected = lib.autograd.grad(given, edges, ones, allow_unused=True)
    assert [each.tolist() for each, edge in zip(found, node.next_functions, strict=True) if edge[0]]
    for one, other in zip([each for each in found if each is not None], expected, strict=True):
        assert one.tolist() == other.tolist()


@pytest.mark.parametrize("call", TWO_RESULTS)
def test_no_gradient_is_asked_for_of_positions(lib: Any, call: str) -> None:
    x = lib.tensor([[1.0, 2.0], [4.0, 3.0]], requires_grad=True)
    values = TWO_RESULTS[call](lib, x)[0]
    g = lib.arange(1.0, 1.0 + values.numel()).reshape(values.shape)
    for wrong in (0, 2, 3):
        with pytest.raises(TypeError, match=f"^expected 1 arguments, got {wrong} instead$"):
            values.grad_fn(*[g] * wrong)
    found = values.grad_fn(g)
    assert found.tolist() == lib.autograd.grad(values, x, g)[0].tolist()


@pytest.mark.parametrize("name", FACTORISATIONS)
def test_factorisations_take_gradients_of_what_they_differentiate(lib: Any, name: str) -> None:
    x = lib.tensor([[4.0, 1.0], [1.0, 3.0]], dtype=lib.float64, requires_grad=True)
    count, call = FACTORISATIONS[name]
    results = call(lib, x)
    reached = [each for each in results if each.requires_grad]
    node = reached[0].grad_fn
    assert [each.output_nr for each in reached] == list(range(len(reached)))
    for wrong in {0, 1, 2, 3, 4} - {count}:
        with pytest.raises(TypeError, match=f"^expected {count} arguments, got {wrong} instead$"):
            node(*[None] * wrong)
    nothing = node(*[None] * count)
    assert nothing is None or not any(each is not None for each in nothing)
    found = node(*[lib.ones_like(each) for each in reached])
    found = found[0] if isinstance(found, tuple) else found
    if name != "lu_unpack":
        (expected,) = lib.autograd.grad(reached, x, [lib.ones_like(each) for each in reached])
        assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("name", UNDERIVED)
def test_what_has_no_derivative_says_so_whatever_it_is_given(torch: Any, name: str) -> None:
    found: list[list[str]] = []
    for m in (ng, torch):
        x = m.tensor([[4.0, 1.0], [1.0, 3.0]], requires_grad=True)
        y = UNDERIVED[name](m, x)
        found.append([y.grad_fn.name()])
        for given in ([None], [m.ones_like(y)], [None, None], []):
            with pytest.raises((RuntimeError, TypeError)) as error:
                y.grad_fn(*given)
            found[-1].append(f"{type(error.value).__name__}: {error.value}")
    assert found[0] == found[1]


def test_a_call_is_recorded_and_runs_no_hooks(lib: Any) -> None:
    x, seen = lib.tensor([1.0, 2.0], requires_grad=True), []
    y = x * x
    y.register_hook(seen.append)
    y.grad_fn.register_prehook(seen.append)
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append(inputs))
    first, second = y.grad_fn(lib.tensor([1.0, 10.0]))
    assert seen == []
    (slope,) = lib.autograd.grad((first + second).sum(), x, retain_graph=True)
    assert slope.tolist() == [2.0, 20.0]
    y.sum().backward()
    with pytest.raises(RuntimeError, match="^Trying to backward through the graph a second time"):
        y.grad_fn(lib.ones(2))


def test_calling_the_node_of_a_leaf_adds_to_its_gradient(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    ((node, _),) = [edge for edge in y.grad_fn.next_functions if edge[0] is not None]
    assert node(lib.ones(2)) == () and node(None) == ()
    with lib.no_grad():
        node(lib.ones(2))
    assert x.grad.tolist() == [2.0, 2.0]
    with pytest.raises(TypeError, match="^expected 1 arguments, got 2 instead$"):
        node(None, None)


def test_gradients_of_other_shapes_are_broadcast_or_refused(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    assert (x * x).grad_fn(lib.tensor(3.0))[0].tolist() == [3.0, 6.0]
    with pytest.raises(RuntimeError, match=r"The size of tensor a \(3\) must match the size of"):
        (x * x).grad_fn(lib.ones(3))


@pytest.mark.parametrize("shape", [(), (1,), (3,), (1, 3), (2, 1), (2, 3)])
def test_rules_get_gradients_in_the_shape_of_the_output(shape: tuple[int, ...]) -> None:
    """Where some of PyTorch's formulas broadcast them, and others fail."""
    x = ng.ones(2, 3, requires_grad=True)
    g = ng.arange(1.0, 1.0 + ng.ones(shape).numel()).reshape(shape)
    whole = g.expand(2, 3)
    for y, expected in (
        (x * 1, whole),
        (x.exp(), whole * x.exp()),
        (x.t().t(), whole.t()),
        (x.cumsum(0), whole.flip(0).cumsum(0).flip(0)),
        (ng.cat([x, x[:0]]), whole),
        (x + x, whole),
    ):
        found = y.grad_fn(g)
        first = found[0] if isinstance(found, tuple) else found
        assert first.tolist() == expected.tolist(), y


def test_nodes_of_functions_cannot_be_called(lib: Any) -> None:
    class Double(lib.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    y = Double.apply(lib.ones(2, requires_grad=True))
    with pytest.raises(TypeError, match="^'DoubleBackward' object is not callable$"):
        y.grad_fn(lib.ones(2))


def test_every_node_of_the_catalogue_has_the_shape_of_its_outputs() -> None:
    """So that no gradient of another shape comes to a kernel by a call."""
    x = ng.tensor([1.0, 2.0], requires_grad=True)
    for make in CALLS.values():
        y = make(ng, x)
        meta = y.grad_fn.output_meta(y.output_nr)
        assert meta is not None and meta[0] == tuple(y.shape)
