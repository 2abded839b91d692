"""What a trace records of a call of a kind that it has met is what it records of the first one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.base.pytree import flatten
from numgrad.graph.recorder import place_of
from numgrad.graph.tensor import Tensor
from numgrad.jit.front.trace_function import trace_function
from numgrad.jit.ir.graph import Graph
from numgrad.jit.rolling.tokens import meaning_of
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from tests.ops.catalogue_strategies import elementwise_primitives

PRIMITIVES = elementwise_primitives()


def calls(primitive: ElementwisePrimitive) -> Iterator[list[Any]]:
    """Yield operands: of some dtypes, of shapes that broadcast, and numbers among them."""
    random = np.random.default_rng(5)
    domains = primitive.domains
    for kind, dtype in (("f", "float64"), ("f", "float32"), ("c", "complex128"), ("i", "int64")):
        if kind not in primitive.accepts:
            continue
        for shapes in ((2, 3), (3,)), ((2, 1), (2, 3)), ((), (2,)):
            operands: list[Any] = []
            for position, domain in enumerate(domains):
                shape = shapes[position % 2]
                if domain.is_number:
                    operands.append(domain.intervals[0][0])
                elif domain.is_mask:
                    operands.append(ng.from_numpy(np.asarray(random.random(shape) < 0.5)))
                else:
                    values = domain.draw(shape, random, is_complex=kind == "c")
                    tensor = ng.from_numpy(np.asarray(values).astype(dtype))
                    operands.append(tensor.requires_grad_(kind != "i"))
            yield operands
            tensors = [p for p, each in enumerate(operands) if isinstance(each, Tensor)]
            if len(tensors) > 1:
                last = tensors[-1]
                for number in (
                    (True,) if domains[last].is_mask else (1, 0.5, 1j)[: 2 + (kind == "c")]
                ):
                    yield [*operands[:last], number, *operands[last + 1 :]]
                yield [*operands[:last], operands[last].detach(), *operands[last + 1 :]]


def recorded(tensor: Tensor) -> Any:
    """Return what there is to see of the node of a tensor."""
    node: Any = tensor.grad_fn
    if node is None:
        return None
    call = getattr(node, "call", None)
    facts = [getattr(call, name, None) for name in ("plan", "shapes", "output_metas", "lies")]
    saved = [
        (place_of(each).shape, place_of(each).dtype) if hasattr(each, "shape") else repr(each)
        for each in node.saved or ()
    ]
    targets = [*map(id, node.targets)], node.numbers
    return type(node), facts, dict(getattr(call, "parameters", {})), saved, targets


@pytest.mark.parametrize("primitive", PRIMITIVES, ids=[each.name for each in PRIMITIVES])
def test_calls_of_one_kind_are_recorded_alike(primitive):
    met = 0
    for operands in calls(primitive):
        places = [p for p, each in enumerate(operands) if isinstance(each, Tensor)]
        nodes: list[Any] = []

        def apply(*tensors: Tensor, nodes=nodes, operands=operands, places=places) -> list[Any]:
            given = list(operands)
            for place, tensor in zip(places, tensors, strict=True):
                given[place] = tensor
            results = [primitive(*given) for _ in range(3)]
            nodes.extend(map(recorded, results))
            return results

        leaves, spec = flatten((tuple([operands[place] for place in places]), {}))
        primitive.calls.programs.clear()
        try:
            trace = trace_function(apply, spec, leaves)
        except (NotImplementedError, RuntimeError, TypeError):  # such operands are refused
            continue
        met += 1
        first, *others = [Graph(trace.graph.inputs, [each]) for each in trace.graph.outputs]
        assert [meaning_of(other) for other in others] == [meaning_of(first)] * 2
        assert nodes[1:] == nodes[:1] * 2
    assert met


def test_numbers_are_those_of_their_call():
    def f(x):
        return [2.0 * x, x * 3.0, x + 1, x + 2, x**2, x**3.0, ng.where(x > 0, 1.0, x)]

    x = np.array([-1.0, 2.0])
    for ours, expected in zip(ng.jit(f)(x), f(ng.from_numpy(x)), strict=True):
        assert ours.tolist() == expected.tolist()
