"""multi_head_attention_forward beside PyTorch's: values, gradients of two orders, words."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

import numgrad as ng
from tests.ops.spatial.comparison import array, compare

L, S, N, E, HEADS = 3, 4, 2, 6, 2
QUERY, KEY = (L, N, E), (S, N, E)
WEIGHTS = [(3 * E, E), (3 * E,), (E, E), (E,)]
HIDDEN = np.arange(L * S).reshape(L, S) % 5 == 3
PADDED = np.array([[False, True, False, False], [False, False, False, True]])
EACH = {"use_separate_proj_weight": True, "in_proj_weight": None}
# Shapes of queries and keys, and what is given beside the weights: arrays become tensors.
CALLS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    (QUERY, KEY, {}),
    (QUERY, KEY, {"average_attn_weights": False, "in_proj_bias": None}),
    (QUERY, KEY, {"attn_mask": HIDDEN, "key_padding_mask": PADDED}),
    (QUERY, KEY, {"attn_mask": HIDDEN * 0.5, "key_padding_mask": PADDED * 0.25}),
    (QUERY, KEY, {"attn_mask": np.tile(HIDDEN * 0.5, (N * HEADS, 1, 1)), "need_weights": False}),
    (QUERY, KEY, {"attn_mask": HIDDEN, "need_weights": False}),
    (QUERY, KEY, {"key_padding_mask": PADDED, "need_weights": False}),
    (QUERY, KEY, {"bias_k": array((1, 1, E), "float64", 1), "attn_mask": HIDDEN}),
    (QUERY, KEY, {"add_zero_attn": True, "key_padding_mask": PADDED, "dropout_p": 0.5}),
    (QUERY, KEY, {"static_k": array((N * HEADS, S, E // HEADS), "float64", 4)}),
    (QUERY, KEY, {"static_k": array((N, S, E // HEADS), "float64", 4)}),
    (QUERY, KEY, {"attn_mask": HIDDEN, "is_causal": True, "need_weights": False}),
    (QUERY, KEY, {"is_causal": True}),
    (QUERY, KEY, {"training": True, "dropout_p": 0.0}),
    (QUERY[::2], KEY[::2], {"attn_mask": HIDDEN, "key_padding_mask": PADDED[0]}),
    (QUERY[::2], KEY[::2], {"need_weights": False, "average_attn_weights": False}),
    (QUERY[::2], KEY[::2], {"attn_mask": np.tile(HIDDEN, (3, 1, 1))}),
    (QUERY, KEY[::2], {}),
    (QUERY[:1], KEY, {}),
    (QUERY, KEY, {"attn_mask": HIDDEN[:, :2]}),
    (QUERY, KEY, {"attn_mask": HIDDEN[0]}),
    (QUERY, KEY, {"attn_mask": HIDDEN.astype(np.int64)}),
    (QUERY, KEY, {"key_padding_mask": PADDED[:1]}),
    (QUERY, KEY, {"key_padding_mask": PADDED[0]}),
    (QUERY, KEY, {"embed_dim_to_check": 5}),
    (QUERY, KEY, {"num_heads": 4}),
    (QUERY, KEY, {"in_proj_weight": None}),
    (QUERY, KEY, {**EACH, "k_proj_weight": array((E, E), "float64", 2)}),
    (QUERY, (S, N, 5), {**EACH, "k_proj_weight": array((E, 5), "float64", 2)}),
    (QUERY, (S, N, 5), {**EACH, "k_proj_weight": array((E, E), "float64", 2)}),
]


def attended(m: Any, query: Any, key: Any, *weights: Any, **given: Any) -> Any:
    """Call the function; a bias of keys is one of values, a map of keys one of values, too."""
    given = {
        name: m.from_numpy(each) if isinstance(each, np.ndarray) else each
        for name, each in given.items()
    }
    if "bias_k" in given:
        given["bias_v"] = given["bias_k"] * 2
    if given.get("use_separate_proj_weight"):
        given["v_proj_weight"] = given["k_proj_weight"]
        given["q_proj_weight"] = weights[2]
    first, second, third, fourth = weights
    call = {
        **{"embed_dim_to_check": E, "num_heads": HEADS, "in_proj_weight": first},
        **{"in_proj_bias": second, "bias_k": None, "bias_v": None, "add_zero_attn": False},
        **{"dropout_p": 0.0, "out_proj_weight": third, "out_proj_bias": fourth},
        **{"training": False, **given},
    }
    found, shares = m.nn.functional.multi_head_attention_forward(query, key, key * 0.5, **call)
    both = found if shares is None else m.cat([found.flatten(), shares.flatten()])
    # Of all that is given, so that each has a gradient, if 0.
    return both + 0 * sum(each.sum() for each in (query, key, *weights))


def in_plain_kernels(torch: ModuleType, m: Any) -> Any:
    """Return PyTorch's way by several operations: its one kernel has no second derivative."""
    attention = torch.nn.attention
    kinds = [attention.SDPBackend.MATH] if m is torch else None
    return attention.sdpa_kernel(kinds) if kinds else np.errstate()


def test_heads_attend_as_in_pytorch(torch: ModuleType) -> None:
    for query, key, given in CALLS:
        shapes = [query, key, *WEIGHTS]
        operands = [array(each, "float64", at) / 8 for at, each in enumerate(shapes)]

        def call(m: Any, *t: Any, given: Any = given) -> Any:
            with in_plain_kernels(torch, m):
                return attended(m, *t, **given)

        compare(torch, call, operands, node=False)


def test_self_attention_is_pytorchs(torch: ModuleType) -> None:
    operands = [array(each, "float64", at) / 8 for at, each in enumerate([QUERY, *WEIGHTS])]

    def call(m: Any, x: Any, *t: Any) -> Any:
        head, tail = t[:2], t[2:]
        given = (E, HEADS, *head, None, None, False, 0.0, *tail)
        return m.nn.functional.multi_head_attention_forward(x, x, x, *given)

    compare(torch, call, operands, node=False)


def test_heads_attend_under_jit_and_vmap() -> None:
    shapes = [QUERY, KEY, *WEIGHTS]
    operands = [ng.tensor(array(each, "float64", at) / 8) for at, each in enumerate(shapes)]

    def call(*t: ng.Tensor) -> ng.Tensor:
        return attended(ng, *t, attn_mask=HIDDEN, key_padding_mask=PADDED)

    expected = call(*operands)
    np.testing.assert_allclose(ng.jit(call)(*operands), expected, 1e-12)
    stacked = [ng.stack([each, each * 0.5]) for each in operands]
    found = ng.func.vmap(call)(*stacked)
    np.testing.assert_allclose(found[0], expected, 1e-12)
    np.testing.assert_allclose(found[1], call(*[each * 0.5 for each in operands]), 1e-12)


def test_weights_of_heads_are_dropped_in_training_alone() -> None:
    x, eye = ng.zeros(50, 2, dtype=ng.float64), ng.eye(2, dtype=ng.float64)
    call = (2, 1, ng.cat([eye, eye, eye]), None, None, None, False, 0.5, eye, None)
    ng.manual_seed(0)
    _, weights = ng.nn.functional.multi_head_attention_forward(x, x, x, *call)
    assert set(np.unique((weights * 50).round().numpy())) == {0.0, 2.0}
    _, weights = ng.nn.functional.multi_head_attention_forward(x, x, x, *call, training=False)
    assert set(np.unique((weights * 50).round().numpy())) == {1.0}
