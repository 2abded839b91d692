"""Cotangents of edges whose shape nobody knows, of outputs recorded in another, and batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad.graph.backward.cotangents import (
    GradientEdge,
    as_tuple,
    check_batches,
    roots_of,
)
from numgrad.graph.hooks import _sum_to_recorded
from numgrad.graph.node import NO_EDGE, Node, node_type
from numgrad.graph.tensor import wrap
from tests.cases import examples

OPAQUE: Any = node_type("Opaque", Node, num_outputs=2)  # which knows no shapes of its outputs


def test_a_cotangent_for_an_edge_of_unknown_shape_is_taken_as_it_is() -> None:
    edge = GradientEdge(OPAQUE([]), 1)
    for one in (ng.ones(2, 3), ng.ones((), dtype=ng.complex64), ng.ones(1, dtype=ng.float64)):
        assert roots_of((edge,), [one]) == [((edge.node, 1), one)]
    ((found, gradient),) = roots_of((edge,), None)
    assert found == (edge.node, 1)
    assert gradient.dtype == ng.float32 and gradient.shape == () and gradient.item() == 1
    with pytest.raises(TypeError, match="either Tensors or None, but got float"):
        roots_of((edge,), [1.0])
    # A batch of them has entries of no dims.
    assert check_batches([edge], [ng.ones(4)]) == 4  # type: ignore[list-item]
    with pytest.raises(RuntimeError, match=r"shape of torch.Size\(\[2\]\) and output\[0\]"):
        check_batches([edge], [ng.ones(4, 2)])  # type: ignore[list-item]


def test_nodes_of_edges_with_a_known_shape_check_it() -> None:
    x = ng.ones(2, requires_grad=True)
    y = x * 2
    edge = GradientEdge(y.grad_fn, 0)  # type: ignore[arg-type]
    one = ng.ones(2)
    assert roots_of((edge,), [one]) == [((y.grad_fn, 0), one)] == roots_of((y,), one)
    with pytest.raises(RuntimeError, match=r"grad_output\[0\] has a shape of .*\[3\]"):
        roots_of((edge,), [ng.ones(3)])
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        roots_of((edge,), None)
    ((_, gradient),) = roots_of((edge,), [ng.ones(2, dtype=ng.float64)])
    assert gradient.dtype == ng.float32
    with pytest.raises(RuntimeError, match="got 2 tensors and 1 gradients"):
        roots_of((y, edge), [one])
    with pytest.raises(RuntimeError, match="element 1 of tensors does not require grad"):
        roots_of((y, ng.ones(2)), [one, one])
    with pytest.raises(AssertionError, match="Expected output to be"):
        roots_of((2.0,), None)


def test_what_is_given_as_one_or_several_is_a_tuple() -> None:
    x, edge = ng.ones(2), GradientEdge(OPAQUE([]), 0)
    for one in (x, edge):
        assert as_tuple(one) == (one,)
        assert as_tuple([one, one]) == (one, one) == as_tuple(iter([one, one]))
    both = (x, edge)
    assert as_tuple(both) is both
    assert as_tuple(np.array([1.0, 2.0])) == (1.0, 2.0)


@settings(max_examples=examples(50))
@given(
    shape=st.lists(st.sampled_from([1, 2, 3]), max_size=3),
    ahead=st.lists(st.sampled_from([1, 2]), max_size=2),
    stretched=st.lists(st.booleans(), min_size=3, max_size=3),
    by_tensors=st.booleans(),
)
def test_gradients_are_summed_to_the_shape_that_was_recorded(
    shape: list[int], ahead: list[int], stretched: list[bool], by_tensors: bool
) -> None:
    recorded = tuple([1 if at else n for n, at in zip(shape, stretched, strict=False)])
    whole = np.arange(1.0, 1 + np.prod([*ahead, *shape])).reshape([*ahead, *shape])
    same = np.ones(recorded)
    arrays: list[Any] = [same, whole, None]
    gradients = [None if each is None or not by_tensors else wrap(each) for each in arrays]
    arrived: list[Any] = []
    for gradient, array in zip(gradients, arrays, strict=True):
        arrived += [gradient if by_tensors else array, True]
    before = list(arrived)
    _sum_to_recorded(dict.fromkeys(range(3), recorded), arrived, by_tensors)
    assert arrived[0] is before[0] and arrived[1] is True and arrived[4:] == [None, True]
    if whole.shape == recorded:
        assert arrived == before
        return
    found = arrived[2]._array if by_tensors else arrived[2]
    assert arrived[3] is False and found.shape == recorded
    dims = [k for k in range(len(shape)) if recorded[k] != shape[k]]
    summed = whole.sum(tuple(range(len(ahead)))).sum(tuple(dims), keepdims=True)
    np.testing.assert_array_equal(found, summed)


@pytest.mark.parametrize(
    ("recorded", "shape"), [((2,), (3,)), ((2, 3), (3,)), ((2, 1), (3, 4)), ((1, 2), (2, 1))]
)
def test_gradients_that_cannot_be_summed_to_the_recorded_shape(recorded: Any, shape: Any) -> None:
    words = f"at index 1 - got {list(shape)} but expected shape compatible with {list(recorded)}"
    with pytest.raises(RuntimeError) as caught:
        _sum_to_recorded({1: recorded}, [None, None, np.ones(shape), True], False)
    assert str(caught.value) == f"invalid gradient {words}"


def test_a_node_that_saves_what_has_no_names() -> None:
    node = OPAQUE([])
    node.saved = (np.ones(1), [0], 0, 2.0, None, 0)
    assert node.saved_edges() == [NO_EDGE] * 2 and list(node.saved_names()) == []
    assert not node.takes_tensor(0)
    node.saved = None
    assert node.saved_edges() == []
    assert node.run_tangents([None, None]) is None
    assert node.output_meta(1) is None and node.count_of_gradients() == 2
    assert f"{node!r}" == f"<Opaque object at {id(node):#x}>"
