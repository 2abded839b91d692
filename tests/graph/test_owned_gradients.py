"""What a node says may be written to lies in memory that nobody else reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.graph.tensor import Tensor
from numgrad.ops.core.elementwise.node import ElementwiseNode
from numgrad.ops.core.primitive import CATALOGUE
from numgrad.ops.core.sample_calls import sample_calls


def arrays_in(values: Any) -> list[np.ndarray[Any, Any]]:
    tensors = [each._array if isinstance(each, Tensor) else each for each in values]
    return [each for each in tensors if type(each) is np.ndarray]


def test_gradients_that_may_be_written_to_share_no_memory() -> None:
    """Neither with the gradient they come from, nor what was saved, nor with one another."""
    own = {True: 0, False: 0}  # of elementwise operations, and of others
    for name in sorted(CATALOGUE)[4::12]:
        for call in sample_calls(name, ng.float64):
            if call.spread:
                continue
            for _ in range(3):  # the third gradient is of a remembered call
                result = call.function(*call.operands, **call.keywords)
                results = [result] if isinstance(result, Tensor) else list(result)
                node: Any = next((each.grad_fn for each in results if each.grad_fn), None)
                if node is None or not hasattr(node, "call"):
                    break
                given = [
                    np.ones(each.shape, each._array.dtype) if each.grad_fn is node else None
                    for each in results
                ][: len(node.output_metas or results[:1])]
                others = arrays_in([*call.operands, *results, *given, *(node.saved or ())])
                gradients, owned = node.run_arrays(given)
                for gradient, is_own in zip(gradients, owned, strict=True):
                    if is_own and type(gradient) is np.ndarray:
                        assert not any(np.shares_memory(gradient, each) for each in others), name
                        own[isinstance(node, ElementwiseNode)] += 1
                    others += arrays_in([gradient])
            break
    assert min(own.values()) > 10


def _of_leaves(x: Any) -> tuple[Any, Any]:
    return tuple([(x * k).detach().requires_grad_() for k in (1, 2)])  # type: ignore[return-value]


def _captured(x: Any) -> Any:
    v, w = _of_leaves(x)
    given = x.exp()
    return *ng.autograd.grad(v + w, [v, w], given), given


def _captured_and_kept(x: Any) -> Any:
    kept: list[Any] = []
    y = _of_leaves(x)[0] * 1
    y.register_hook(kept.append)
    return *ng.autograd.grad(y + 0, y, x.exp()), *kept


def _asked_for_twice(x: Any) -> Any:
    v, _ = _of_leaves(x)
    return ng.autograd.grad(v + 0, [v, v], x.exp())


def _accumulated(x: Any) -> Any:
    v, w = _of_leaves(x)
    given = x.exp()
    (v + w).backward(given)
    return v.grad, w.grad, given


def _retained(x: Any) -> Any:
    y = _of_leaves(x)[0] * 1
    y.retain_grad()
    given = x.exp()
    (y + 0).backward(given)
    return y.grad, given


def _pulled_back(x: Any) -> Any:
    given = x.exp()
    return *ng.func.vjp(lambda x, y: x + y, x, x * 2)[1](given), given


def _of_functions(x: Any) -> Any:
    weights = x.exp()

    def function(x: Any, y: Any) -> Any:
        return ((x + y) * weights).sum()

    return *ng.func.grad(function, argnums=(0, 1))(x, x * 2), weights


GIVEN: list[Callable[[Any], Any]] = [
    _captured, _captured_and_kept, _asked_for_twice, _accumulated, _retained, _pulled_back,
    _of_functions,
]  # fmt: skip


@pytest.mark.parametrize("how", ["eager", "jit", "forward mode"])
@pytest.mark.parametrize("function", GIVEN)
def test_a_write_to_a_gradient_changes_no_other(how: str, function: Callable[[Any], Any]) -> None:
    """Compiled and with tangents gradients travel as tensors, which rules may hand on as they are.

    The last of the results was given or is no gradient, and nobody writes to it.
    """

    def written(x: Any) -> list[Any]:
        results = function(x)
        for number, gradient in enumerate(results[:-1], 1):
            gradient.add_(number)
        return [each.detach() for each in results]

    x = ng.arange(4.0, dtype=ng.float64)
    count = len(function(x))
    if how == "forward mode":
        with ng.autograd.forward_ad.dual_level():
            found = written(ng.autograd.forward_ad.make_dual(x, ng.ones_like(x)))
    else:
        found = (ng.jit(written) if how == "jit" else written)(x)
    for number, gradient in enumerate(found, 1):
        assert ng.allclose(gradient, x.exp() + (number if number < count else 0))
