"""Samples of distributions given by tensors; loaded when first asked for (`numgrad.ops.later`)."""

from numgrad.ops.core.catalogue import load_files

_FILES = ("categories", "counts")
load_files(__name__, _FILES)
