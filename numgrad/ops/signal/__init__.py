"""Windows and short-time Fourier transforms; loaded when first asked for (`numgrad.ops.later`)."""

from numgrad.ops.core.catalogue import load_files

_FILES = ("windows", "short_time")
load_files(__name__, _FILES)
