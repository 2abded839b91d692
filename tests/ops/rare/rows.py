"""Rows of what programs seldom use in the tables that walk the catalogue."""

from __future__ import annotations

import numgrad as ng

# No operations of tensors; or parts that are copies here and views in PyTorch.
_LEFT_OUT = """
apply_ are_deterministic_algorithms_enabled const_data_ptr dense_dim empty_permuted from_file
frombuffer get_default_device get_deterministic_debug_mode get_device
get_float32_matmul_precision get_num_interop_threads is_distributed
is_deterministic_algorithms_warn_only_enabled is_pinned map2_ map_ range resize resize_as
set_default_device set_deterministic_debug_mode set_float32_matmul_precision set_flush_denormal
is_warn_always_enabled set_warn_always sparse_dim to_dlpack typename unsafe_chunk unsafe_split
unsafe_split_with_sizes use_deterministic_algorithms
"""
LEFT_OUT = set(_LEFT_OUT.split())
ARGUMENTS = {
    "fill_diagonal_": "@(m, 1) | @(m, 2, True)",
    "hash_tensor": " | 1 | (0, 2), keepdim=True",
    "nonzero_static": "size=7",
    "to_dense": "",
}
DISPATCH = {
    "hash_tensor": lambda x, y: ng.hash_tensor(x.detach(), 1),
    "nonzero_static": lambda x, y: ng.nonzero_static(x.detach() > 1, size=7),
}
