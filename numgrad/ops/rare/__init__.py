"""What PyTorch has and programs seldom use: old names, switches; loaded when first asked for.

`numgrad.ops.later_names` has the names.
"""

from numgrad.ops.core.catalogue import load_files

_FILES = ("making", "parting", "elements", "layouts", "switches")
load_files(__name__, _FILES)
