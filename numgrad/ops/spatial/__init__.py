"""Convolutions, pooling, padding and resampling; loaded when first asked for.

`numgrad.ops.later_names` has the names.
"""

from numgrad.ops.core.catalogue import load_files

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
    "native",
)
load_files(__name__, _FILES)
