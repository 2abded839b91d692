"""What a node says may be written to lies in memory that nobody else reads."""

from __future__ import annotations

from typing import Any

import numpy as np

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
