"""Reductions, scans and softmax of the elements that a mask names; loaded when first asked for."""

from numgrad.ops.core.catalogue import load_files

_FILES = ("masks", "reductions", "moments", "rows")
load_files(__name__, _FILES)
