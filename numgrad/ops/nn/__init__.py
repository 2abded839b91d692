"""Activations, losses and layers of neural networks; loaded when first asked for.

`numgrad.ops.later_names` has the names that are there without ``nn.functional``, too.
"""

import importlib

from numgrad.ops.core.catalogue import declaring_own

_FILES = (
    "softmax",
    "piecewise",
    "smooth",
    "rectified",
    "activations",
    "gumbel",
    "regression",
    "classes",
    "distances",
    "margins",
    "layers",
    "linear_losses",
    "normalised",
    "dropping",
    "alignments",
    "bags",
    "numbered_losses",
    "native_layers",
    "cells",
    "recurrent",
)
with declaring_own():
    for _file in _FILES:
        importlib.import_module(f"{__name__}.{_file}")
