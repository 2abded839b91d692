"""Searching and counting: sorted rows, sets, histograms; loaded when first asked for.

`numgrad.ops.later_names` has the names.
"""

from numgrad.ops.core.catalogue import load_files

_FILES = ("sorted_rows", "membership", "unique", "counts", "histograms")
load_files(__name__, _FILES)
