"""Special functions, as ``torch.special``; loaded when first asked for.

`numgrad.ops.later_names` has the names.
"""

import importlib

from numgrad.ops.core.catalogue import declaring_own

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
with declaring_own():
    for _file in _FILES:
        importlib.import_module(f"{__name__}.{_file}")
