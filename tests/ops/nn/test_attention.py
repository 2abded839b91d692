"""scaled_dot_product_attention beside PyTorch's: values, gradients of two orders, words."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import numgrad as ng
import numgrad.nn.functional as F
from tests.ops.spatial.comparison import array, compare

ROWS = np.array([[1, 1, 0], [1, 0, 1], [0, 0, 0], [1, 1, 1]], bool)
CALLS: list[tuple[list[tuple[int, ...]], dict[str, Any]]] = [
    ([(2, 3, 4, 5), (2, 3, 3, 5), (2, 3, 3, 2)], {}),
    ([(2, 4, 5), (2, 3, 5), (2, 3, 5)], {"is_causal": True}),
    ([(4, 5), (3, 5), (3, 5)], {"scale": 0.3}),
    ([(2, 3, 4, 5), (2, 3, 3, 5), (2, 3, 3, 5)], {"attn_mask": ROWS}),
    ([(2, 4, 5), (2, 3, 5), (2, 3, 5)], {"attn_mask": ROWS * 0.7}),
    ([(2, 4, 5), (2, 3, 5), (2, 3, 5)], {"attn_mask": np.where(ROWS, 0.0, -np.inf)}),
    ([(1, 4, 4, 5), (1, 2, 3, 5), (1, 2, 3, 5)], {"enable_gqa": True}),
    ([(2, 4, 5), (2, 3, 5), (2, 3, 5)], {"attn_mask": ROWS.astype(np.int64)}),
    ([(5,), (3, 5), (3, 5)], {}),
    ([(4, 5), (3, 5), (3, 5)], {"dropout_p": 2.0}),
    ([(4, 5), (3, 5), (3, 5)], {"attn_mask": ROWS[:, :2]}),
]


def attention(m: Any, *operands: Any, **given: Any) -> Any:
    if "attn_mask" in given:
        given["attn_mask"] = m.from_numpy(given["attn_mask"])
    return m.nn.functional.scaled_dot_product_attention(*operands, **given)


def test_attention_is_pytorchs(torch: ModuleType) -> None:
    for shapes, given in CALLS:
        operands = [array(each, "float64", at) / 8 for at, each in enumerate(shapes)]

        def second(m: Any, *t: Any, given: Any = given) -> Any:
            # By the way of several operations: PyTorch's one kernel has no second derivative.
            if m is torch:
                backends = [torch.nn.attention.SDPBackend.MATH]
                with torch.nn.attention.sdpa_kernel(backends):
                    return attention(m, *t, **given)
            return attention(m, *t, **given)

        compare(torch, second, operands, node=False)
    mixed = [np.ones((2, 2), each) for each in ("float64", "float32", "float64")]
    compare(torch, attention, mixed)


def test_weights_are_dropped_and_the_others_grow() -> None:
    ng.manual_seed(0)
    query, key = ng.zeros(1, 4, dtype=ng.float64), ng.ones(2000, 4, dtype=ng.float64)
    value = ng.eye(2000, dtype=ng.float64)
    weights = F.scaled_dot_product_attention(query, key, value, dropout_p=0.25)[0].numpy() * 2000
    assert set(np.unique(weights.round(9))) == {0.0, round(4 / 3, 9)}
    assert 0.2 < (weights == 0).mean() < 0.3


def test_nothing_counts_for_nothing() -> None:
    query = ng.ones(2, 3, dtype=ng.float64, requires_grad=True)
    mask = ng.tensor([[False, False], [True, False]])
    found = F.scaled_dot_product_attention(query, ng.ones(2, 3).double(), ng.eye(2).double(), mask)
    assert found.tolist() == [[0.0, 0.0], [1.0, 0.0]]
    found.sum().backward()
    assert query.grad.tolist() == [[0.0] * 3] * 2


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("shape", [(2, 3), (2, 2, 3), (2, 1, 2, 3), (1, 2, 1, 2, 3)], ids=str)
def test_a_mask_and_a_causal_one_go_together_where_pytorchs_do(
    torch: ModuleType, shape: tuple[int, ...], dropout: float
) -> None:
    def outcome(library: Any) -> str:
        x = library.ones(*shape)
        attention = library.nn.functional.scaled_dot_product_attention
        try:
            attention(x, x, x, attn_mask=library.ones(2, 2), dropout_p=dropout, is_causal=True)
        except RuntimeError as error:
            return str(error)
        return ""

    assert outcome(ng) == outcome(torch)
