"""Discrete Fourier transforms; loaded when first asked for. `numgrad.ops.later` has the names."""

from numgrad.ops.core.catalogue import load_files

_FILES = ("primitives", "transforms", "frequencies")
load_files(__name__, _FILES)
