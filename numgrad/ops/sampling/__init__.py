"""Samples of distributions given by tensors; loaded when first asked for (`numgrad.ops.later`)."""

import importlib

from numgrad.ops.core.catalogue import declaring_own

_FILES = ("categories", "counts")
with declaring_own():
    for _file in _FILES:
        importlib.import_module(f"{__name__}.{_file}")
