"""Scatters that reduce: scatter_reduce, index_reduce, segment_reduce; loaded when first asked for.

`numgrad.ops.later` has the names.
"""

import importlib

from numgrad.ops.core.catalogue import declaring_own

_FILES = ("reduce_rules", "scatter_reduce", "index_reduce", "segments")
with declaring_own():
    for _file in _FILES:
        importlib.import_module(f"{__name__}.{_file}")
