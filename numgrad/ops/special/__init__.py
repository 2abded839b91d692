"""Special functions, as ``torch.special``; loaded when first asked for.

`numgrad.ops.later_names` has the names.
"""

from numgrad.ops.core.catalogue import load_files

_FILES = (
    "gamma",
    "incomplete_gamma",
    "beta",
    "incomplete_beta",
    "zeta",
    "airy",
    "modified_bessel",
    "aliases",
    "entropy",
    "normal",
    "bessel",
    "orthogonal",
)
load_files(__name__, _FILES)
