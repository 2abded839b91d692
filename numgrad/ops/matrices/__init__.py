"""Linear algebra on matrices: factorisations, systems, spectra, norms; loaded when first asked for.

`numgrad.ops.later_names` has the names.
"""

import importlib

from numgrad.ops.core.catalogue import declaring_own

_FILES = (
    "cholesky",
    "triangular",
    "solving",
    "determinants",
    "eigen_hermitian",
    "singular_values",
    "orthogonal",
    "norms",
    "pseudoinverses",
    "powers",
    "lu",
    "lu_systems",
    "vectors",
    "chains",
    "older",
    "eigen_general",
    "least_squares",
    "householder",
    "indefinite",
    "low_rank",
)
with declaring_own():
    for _file in _FILES:
        importlib.import_module(f"{__name__}.{_file}")
