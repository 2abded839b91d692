"""Printing a computation graph by walking it from the result's ``grad_fn``."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numgrad as ng


def walk(node: Any, names: dict[int, str], depth: int = 0) -> list[str]:
    """Return an indented line for each node: its name, and at a leaf that of the tensor."""
    indent = "  " * depth
    if node is None:
        return [f"{indent}None"]
    variable = getattr(node, "variable", None)
    leaf = "" if variable is None else f" of {names[id(variable)]}"
    lines = [f"{indent}{node.name()}{leaf}"]
    for child, input_nr in node.next_functions:
        assert input_nr == 0
        lines += walk(child, names, depth + 1)
    return lines


def product_of_two_uses(module: Any) -> list[str]:
    """Walk the article's first example, where `w` is used twice."""
    w = module.tensor([1.0], requires_grad=True)
    x = module.tensor([2.0], requires_grad=True)
    a = module.mul(w, x)
    b = module.add(w, 1)
    y = module.mul(a, b)
    return walk(y.grad_fn, {id(w): "w", id(x): "x"})


def leaf_replaced_by_a_result(module: Any) -> list[str]:
    """Walk the article's third example, where `w` needs no gradient and `x` is rebound."""
    w = module.tensor([1.0], requires_grad=False)
    leaf = module.tensor([2.0], requires_grad=True)
    x = leaf + 1
    a = module.add(w, x)
    b = module.add(w, 1)
    y = module.mul(a, b)
    return walk(y.grad_fn, {id(leaf): "leaf"})


PRODUCT_OF_TWO_USES = """\
MulBackward0
  MulBackward0
    torch::autograd::AccumulateGrad of w
    torch::autograd::AccumulateGrad of x
  AddBackward0
    torch::autograd::AccumulateGrad of w
    None""".splitlines()

LEAF_REPLACED_BY_A_RESULT = """\
MulBackward0
  AddBackward0
    None
    AddBackward0
      torch::autograd::AccumulateGrad of leaf
      None
  None""".splitlines()


def test_walking_the_first_example_prints_pytorchs_node_names() -> None:
    assert product_of_two_uses(ng) == PRODUCT_OF_TWO_USES


def test_walking_the_third_example_prints_pytorchs_node_names() -> None:
    assert leaf_replaced_by_a_result(ng) == LEAF_REPLACED_BY_A_RESULT


def test_the_expected_walks_are_pytorchs(torch: ModuleType) -> None:
    assert product_of_two_uses(torch) == PRODUCT_OF_TWO_USES
    assert leaf_replaced_by_a_result(torch) == LEAF_REPLACED_BY_A_RESULT


def test_uses_of_one_leaf_share_one_accumulator() -> None:
    w = ng.tensor([1.0], requires_grad=True)
    y = (w * 2) * (w + 1)
    (product, _), (total, _) = y.grad_fn.next_functions
    assert product.next_functions[0][0] is total.next_functions[0][0]


def test_reprs_of_the_nodes_name_their_class() -> None:
    w = ng.tensor([1.0], requires_grad=True)
    y = w + 1
    accumulator = y.grad_fn.next_functions[0][0]
    assert repr(y.grad_fn).startswith("<AddBackward0 object at 0x")
    assert repr(accumulator).startswith("<AccumulateGrad object at 0x")
    assert accumulator.variable is w
