"""Gradients of operands that were broadcast or cast: those of each element, and sums of them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.base.halves import HALF
from numgrad.base.tuning import FEW_ELEMENTS
from numgrad.codegen.expression import Symbol
from numgrad.ops.core.elementwise.half_kernels import ElementwiseKernel, rounded

ROWS = FEW_ELEMENTS // 64
FREED = "Trying to backward through the graph a second time"
SHAPES: list[tuple[Any, Any]] = [
    ((ROWS, 64), (64,)),
    ((ROWS + 1, 64), (64,)),
    ((ROWS + 1, 64), (ROWS + 1, 1)),
    ((1, 64), (ROWS + 1, 1)),
    ((ROWS + 1, 64), (ROWS + 1, 64)),  # of which one is cast
    ((), (ROWS + 1, 64)),
]


@pytest.mark.parametrize(("first", "second"), SHAPES)
def test_gradients_are_summed_to_what_was_broadcast(first: Any, second: Any) -> None:
    """Of few elements and of many, for the first calls and for those that are remembered."""
    random = np.random.default_rng(1)
    kind = "float32" if first == second else "float64"
    arrays = [random.integers(-4, 5, first).astype("float64"), random.integers(1, 4, second)]
    arrays[1] = np.asarray(arrays[1]).astype(kind)
    whole = np.broadcast_shapes(first, second)
    weights = random.integers(-3, 4, whole).astype("float64")
    expected = [weights * arrays[1], weights * arrays[0]]
    for _ in range(3):
        x, y = [ng.tensor(array, requires_grad=True) for array in arrays]
        (x * y).backward(ng.from_numpy(weights))
        for tensor, wanted in zip((x, y), expected, strict=True):
            assert tensor.grad is not None and tensor.grad.dtype == tensor.dtype
            assert tensor.grad.shape == tensor.shape
            ahead = tuple(range(wanted.ndim - tensor.ndim))
            summed = wanted.sum(ahead)
            ones = tuple([k for k, n in enumerate(tensor.shape) if n == 1 != summed.shape[k]])
            np.testing.assert_array_equal(tensor.grad.numpy(), summed.sum(ones, keepdims=True))


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (ROWS + 1, 64)])
def test_a_graph_that_was_freed_gives_no_gradient_again(shape: Any, create_graph: bool) -> None:
    for _ in range(3):
        x = ng.ones(shape, requires_grad=True)
        y = ng.ones((2, 1, 1), requires_grad=True)
        for result in (x * y, x * x, x.sigmoid() * y):
            total = result.sum()
            total.backward()
            with pytest.raises(RuntimeError, match=FREED):
                total.backward(create_graph=create_graph)


def test_a_node_that_was_freed_meanwhile_says_so() -> None:
    """Another thread may free it once it began to run."""
    x, y = ng.ones(3, requires_grad=True), ng.ones(2, 1, requires_grad=True)
    for result in (x.sigmoid(), x * x, x * y):
        node: Any = result.grad_fn
        assert node is not None
        node.saved = None
        gradient = np.ones(result.shape, np.float32)
        ways = [lambda: node.rules_on([gradient]), lambda: node.run_arrays([gradient])]
        if node.shapes is None:
            ways[0] = lambda: node.run_any_size(gradient)
        for way in ways:
            with pytest.raises(RuntimeError, match=FREED):
                way()


def kernel() -> ElementwiseKernel:
    def formula(symbols: dict[str, Symbol]) -> list[Symbol]:
        return [symbols["x"] * symbols["k"] + 1, symbols["x"] - symbols["k"]]

    return ElementwiseKernel("two of halves", ["x", "k"], formula)


def test_kernels_give_and_take_halves() -> None:
    compiled = kernel()
    values = np.arange(-5, 7).reshape(3, 4) / 8
    wide = np.dtype(np.float32)
    for given, outputs, number in itertools.product(
        (HALF, wide), itertools.product((HALF, wide), repeat=2), (0.1, 70000.0)
    ):
        x = values.astype(given)
        found = compiled.function_for(x.shape, [x, number], [x.dtype, wide], outputs)(x, number)
        assert [each.dtype for each in found] == list(outputs)
        expected = [x.astype(wide) * np.float32(number) + 1, x.astype(wide) - np.float32(number)]
        for array, wanted, dtype in zip(found, expected, outputs, strict=True):
            with np.errstate(over="ignore"):
                np.testing.assert_array_equal(array, wanted.astype(dtype))


def test_numbers_are_rounded_to_halves_beside_halves() -> None:
    assert rounded(0.1) == float(np.float16(0.1)) and rounded(-70000) == -np.inf
    compiled = ElementwiseKernel("of halves", ["x", "k"], lambda s: [s["x"] * s["k"]])
    x = np.arange(1, 5).astype(HALF)
    wide = np.dtype(np.float32)

    def prepared(operands: list[Any], result: Any) -> Any:
        casts = [HALF, HALF]
        shape = operands[0].shape
        return compiled.function_for(shape, operands, casts, [result], several=False)

    for exact in (frozenset(), frozenset([1])):
        compiled.wide = exact
        factor = np.float32(0.1) if exact else np.float32(rounded(0.1))
        expected = x.astype(wide) * factor
        for result in (HALF, wide):
            found = prepared([x, 0.1], result)(x, 0.1)
            assert found.dtype == result
            np.testing.assert_array_equal(found, expected.astype(result))
    found = prepared([np.full(4, 0.1), x], wide)(np.full(4, 0.1), x)
    np.testing.assert_array_equal(found, np.float32(rounded(0.1)) * x.astype(wide))
    assert prepared([x[:0], 0.1], HALF)(x[:0], 0.1).shape == (0,)
