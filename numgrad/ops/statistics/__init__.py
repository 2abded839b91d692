"""Statistics and numbers on grids: differences, integrals, covariances, quantiles, combinations.

They are loaded when first asked for; `numgrad.ops.later_names` has the names.
"""

import importlib

from numgrad.ops.core.catalogue import declaring_own

_FILES = (
    "differences",
    "integrals",
    "covariance",
    "quantiles",
    "combining",
    "middles",
    "interpolation",
    "splines",
    "distances",
)
with declaring_own():
    for _file in _FILES:
        importlib.import_module(f"{__name__}.{_file}")
