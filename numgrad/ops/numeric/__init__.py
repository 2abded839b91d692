"""Divisors of integers, and parts and neighbours of floating point numbers.

They are loaded when first asked for; `numgrad.ops.later` has the names.
"""

import importlib

from numgrad.ops.core.catalogue import declaring_own

_FILES = ("divisors", "exponents")
with declaring_own():
    for _file in _FILES:
        importlib.import_module(f"{__name__}.{_file}")
