"""One class of primitives, with one table of calls: what is remembered does what the long way does.

The table holds the programs of calls, what computes arrays, and what public functions look up for
plain calls. It is made small here, so that each of these goes again and again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad.ops.calls import table
from numgrad.ops.core.catalogue import CATALOGUE
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.core.nodes import PrimitiveNode
from numgrad.ops.core.plan import Plan
from numgrad.ops.core.primitive import Primitive
from tests.cases import examples

UNARY = ["exp", "sigmoid", "neg", "abs", "sin"]
BINARY = ["mul", "maximum", "atan2", "lt", "eq"]
OPERATORS = {
    "mul": lambda x, y: x * y,
    "lt": lambda x, y: x < y,
    "eq": lambda x, y: x == y,
}
SHAPES = [(), (4,), (3, 4), (3, 1), (40, 30)]


@pytest.fixture
def small_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every table hold few calls, and begin with none."""
    monkeypatch.setattr(table, "REMEMBERED_CALLS", 4)
    for name in (*UNARY, *BINARY):
        CATALOGUE[name].calls.programs.clear()


@st.composite
def tensors(draw: st.DrawFn) -> Any:
    shape = draw(st.sampled_from(SHAPES))
    dtype = draw(st.sampled_from(["float64", "float32", "int64", "complex128"]))
    values = np.random.default_rng(draw(st.integers(0, 9))).uniform(0.5, 2.5, shape)
    tensor = ng.from_numpy(np.asarray(values).astype(dtype))
    if draw(st.booleans()):
        tensor = tensor.T.contiguous().T if len(shape) == 2 else tensor
    if dtype != "int64" and draw(st.booleans()):
        tensor.requires_grad_()
    return tensor


numbers = st.sampled_from([2, 1.5, True, 2.5 + 1j, np.float32(1.5), np.int64(2)])


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, list[Any]]:
    """A call of an operation: its name and its operands, of which the first is a tensor."""
    name = draw(st.sampled_from([*UNARY, *BINARY]))
    first = draw(tensors())
    if name in UNARY:
        return name, [first]
    same = st.just(first)
    return name, [first, draw(st.one_of(tensors(), same, numbers))]


def facts_of(function: Any, operands: list[Any]) -> Any:
    """Return all that can be seen of a call and of its gradients."""
    try:
        result = function(*operands)
    except (RuntimeError, TypeError) as error:
        return type(error), str(error)
    array = result.detach().numpy()
    facts = [array.dtype, array.shape, array.strides, array.tobytes(), result.requires_grad]
    if result.requires_grad:
        node = result.grad_fn
        leaves = [x for x in operands if isinstance(x, ng.Tensor) and x.requires_grad]
        facts += [type(node), [target is None for target, _ in node.next_functions]]
        for gradient in ng.autograd.grad(result, leaves, ng.ones_like(result)):
            found = gradient.numpy()
            facts += [found.dtype, found.shape, found.strides, found.tobytes()]
    return facts


@pytest.mark.usefixtures("small_table")
@settings(max_examples=examples(40), deadline=None)
@given(st.data())
def test_calls_give_the_same_whether_remembered_or_not(data: st.DataObject) -> None:
    made = [data.draw(calls()) for _ in range(3)]
    default = data.draw(st.sampled_from([ng.float32, ng.float64]))
    before = ng.get_default_dtype()
    ng.set_default_dtype(default)
    try:
        expected = [facts_of(lambda *x, p=CATALOGUE[n]: p._run(x), each) for n, each in made]
        for at in [0, 0, 0, 1, 0, 1, 2, 1, 1, 2, 2, 0]:
            name, operands = made[at]
            function = getattr(ng, name)
            assert facts_of(function, operands) == expected[at]
            if name in OPERATORS and not isinstance(operands[-1], np.generic):
                assert facts_of(OPERATORS[name], operands) == expected[at]
            assert len(CATALOGUE[name].calls.programs) <= 4
    finally:
        ng.set_default_dtype(before)


def test_all_primitives_are_of_one_class() -> None:
    kinds = set()
    for primitive in CATALOGUE.values():
        assert isinstance(primitive, Primitive)
        assert issubclass(primitive.node_class, PrimitiveNode)
        count = len(primitive.inputs)
        assert isinstance(primitive.plan((1 << count) - 1, "t" * count), Plan)
        kinds.add(isinstance(primitive, ElementwisePrimitive))
    assert kinds == {True, False}
