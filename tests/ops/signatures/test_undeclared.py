"""Functions without a signature: those that are Python functions in PyTorch, too."""

from __future__ import annotations

from typing import Any

import pytest

import numgrad as ng
from numgrad.ops.core.registry import FUNCTIONS
from numgrad.ops.movement.view_copies import COPIES
from numgrad.ops.signatures.declared import DECLARED

PYTHON_FUNCTIONS = {
    *("atleast_1d", "atleast_2d", "atleast_3d", "broadcast_shapes", "broadcast_tensors", "einsum"),
    *("block_diag", "cartesian_prod"),
    *("get_rng_state", "initial_seed", "is_tensor", "manual_seed", "meshgrid", "seed"),
    *("chain_matmul", "eig", "lstsq", "matrix_rank", "solve", "symeig"),
    *("to_dlpack", "typename", "set_flush_denormal", "get_num_interop_threads"),
    *("use_deterministic_algorithms", "are_deterministic_algorithms_enabled"),
    "is_deterministic_algorithms_warn_only_enabled",
    *(f"{verb}_default_device" for verb in ("get", "set")),
    *(f"{verb}_deterministic_debug_mode" for verb in ("get", "set")),
    *(f"{verb}_float32_matmul_precision" for verb in ("get", "set")),
    *("set_default_tensor_type", "set_rng_state", "tensordot", "unravel_index"),
}
# What has words of its own in PyTorch, too: it asks for an array.
OTHERS = {"from_numpy"}


def test_all_others_have_a_signature() -> None:
    undeclared = {
        name
        for name, function in FUNCTIONS.items()
        if function not in DECLARED and name not in COPIES and not isinstance(function, type)
    }
    assert undeclared == PYTHON_FUNCTIONS | OTHERS


@pytest.mark.parametrize("arguments", [(1,), (), (None,), ("x",), ([1.0], 2)])
def test_detach_says_what_is_wrong(arguments: tuple[Any, ...], torch: Any) -> None:
    words = []
    for library in (torch, ng):
        with pytest.raises(TypeError) as error:
            library.detach(*arguments)
        words.append(str(error.value))
    assert words[0] == words[1]
