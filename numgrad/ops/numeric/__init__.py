"""Divisors of integers, and parts and neighbours of floating point numbers.

They are loaded when first asked for; `numgrad.ops.later` has the names.
"""

from numgrad.ops.core.catalogue import load_files

_FILES = ("divisors", "exponents")
load_files(__name__, _FILES)
