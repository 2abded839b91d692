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
    "losses.regression",
    "losses.classes",
    "losses.probabilities",
    "distances",
    "losses.margins",
    "losses.class_margins",
    "layers",
    "losses.linear_losses",
    "normalised",
    "dropping",
    "attention",
    "multi_head_attention",
    "losses.alignments",
    "bags",
    "losses.numbered_losses",
    "native_layers",
    "cells",
    "recurrent",
)
load_files(__name__, _FILES)
