"""Convolutions, pooling, padding, resampling and attention; loaded when first asked for.

`numgrad.ops.later_names` has the names.
"""

import importlib

from numgrad.ops.core.catalogue import declaring_own

_FILES = (
    "convolution_primitives",
    "convolution",
    "sliding_blocks",
    "pooling_primitives",
    "pooling",
    "adaptive_pooling",
    "unpooling",
    "fractional_pooling",
    "norm_pooling",
    "resampling",
    "padding",
    "interpolation",
    "shuffling",
    "grids",
    "response_norm",
    "attention",
    "native",
)
with declaring_own():
    for _file in _FILES:
        importlib.import_module(f"{__name__}.{_file}")
