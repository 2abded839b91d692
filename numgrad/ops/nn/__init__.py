"""Activations, losses, layers and attention of neural networks; loaded when first asked for.

`numgrad.ops.later_names` has the names that are there without ``nn.functional``, too.
"""

from numgrad.ops.core.catalogue import load_files

_FILES = (
    "softmax",
    "piecewise",
    "smooth",
    "rectified",
    "activations",
    "gumbel",
    "regression",
    "classes",
    "probabilities",
    "distances",
    "margins",
    "class_margins",
    "layers",
    "linear_losses",
    "normalised",
    "dropping",
    "attention",
    "multi_head_attention",
    "alignments",
    "bags",
    "numbered_losses",
    "native_layers",
    "cells",
    "recurrent",
)
load_files(__name__, _FILES)
