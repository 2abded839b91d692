"""Linear algebra on matrices: factorisations, systems, spectra, norms; loaded when first asked for.

`numgrad.ops.later_names` has the names.
"""

from numgrad.ops.core.catalogue import load_files

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
load_files(__name__, _FILES)
