"""Windows and short-time Fourier transforms; loaded when first asked for (`numgrad.ops.later`)."""

import importlib

from numgrad.ops.core.catalogue import declaring_own

_FILES = ("windows", "short_time")
with declaring_own():
    for _file in _FILES:
        importlib.import_module(f"{__name__}.{_file}")
