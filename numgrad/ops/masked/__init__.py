"""Reductions, scans and softmax of the elements that a mask names; loaded when first asked for."""

import importlib

from numgrad.ops.core.catalogue import declaring_own

_FILES = ("masks", "reductions", "moments", "rows")
with declaring_own():
    for _file in _FILES:
        importlib.import_module(f"{__name__}.{_file}")
