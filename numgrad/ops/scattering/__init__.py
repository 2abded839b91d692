"""Scatters that reduce: scatter_reduce, index_reduce, segment_reduce; loaded when first asked for.

`numgrad.ops.later` has the names.
"""

from numgrad.ops.core.catalogue import load_files

_FILES = ("reduce_rules", "scatter_reduce", "index_reduce", "segments")
load_files(__name__, _FILES)
