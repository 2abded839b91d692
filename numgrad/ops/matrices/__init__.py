"""Linear algebra on matrices: factorisations, systems, spectra, norms; loaded when first asked for.

`numgrad.ops.later_names` has the names.
"""

import importlib

from numgrad.ops.core.catalogue import declaring_own

_FILES = (
    "factorisations.cholesky",
    "systems.triangular",
    "systems.solving",
    "determinants",
    "spectra.eigen_hermitian",
    "spectra.singular_values",
    "factorisations.orthogonal",
    "norms",
    "systems.pseudoinverses",
    "powers",
    "factorisations.lu",
    "systems.lu_systems",
    "vectors",
    "chains",
    "older",
    "spectra.eigen_general",
    "systems.least_squares",
    "factorisations.householder",
    "factorisations.indefinite",
    "spectra.low_rank",
)
with declaring_own():
    for _file in _FILES:
        importlib.import_module(f"{__name__}.{_file}")
