"""Statistics and numbers on grids: differences, integrals, covariances, quantiles, combinations.

They are loaded when first asked for; `numgrad.ops.later_names` has the names.
"""

from numgrad.ops.core.catalogue import load_files

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
load_files(__name__, _FILES)
