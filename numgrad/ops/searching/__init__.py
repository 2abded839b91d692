"""Searching and counting: sorted rows, sets, histograms; loaded when first asked for.

`numgrad.ops.later_names` has the names.
"""

import importlib

from numgrad.ops.core.catalogue import declaring_own

_FILES = ("sorted_rows", "membership", "unique", "counts", "histograms")
with declaring_own():
    for _file in _FILES:
        importlib.import_module(f"{__name__}.{_file}")
