"""Linear algebra, as ``torch.linalg``: factorisations, systems, determinants, spectra, norms.

All of it takes batches, and is differentiable to any order.

>>> import numgrad as ng
>>> A = ng.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
>>> ng.linalg.slogdet(A).logabsdet.backward()
>>> A.grad
tensor([[ 0.6000, -0.2000],
        [-0.2000,  0.4000]])
"""

from numgrad.ops.matrices.chains import linalg_diagonal as diagonal
from numgrad.ops.matrices.chains import linalg_matmul as matmul
from numgrad.ops.matrices.chains import linalg_multi_dot as multi_dot
from numgrad.ops.matrices.chains import linalg_tensorinv as tensorinv
from numgrad.ops.matrices.chains import linalg_tensorsolve as tensorsolve
from numgrad.ops.matrices.checks import LinAlgError
from numgrad.ops.matrices.determinants import linalg_det as det
from numgrad.ops.matrices.determinants import linalg_slogdet as slogdet
from numgrad.ops.matrices.factorisations.cholesky import linalg_cholesky as cholesky
from numgrad.ops.matrices.factorisations.cholesky import linalg_cholesky_ex as cholesky_ex
from numgrad.ops.matrices.factorisations.householder import (
    linalg_householder_product as householder_product,
)
from numgrad.ops.matrices.factorisations.indefinite import linalg_ldl_factor as ldl_factor
from numgrad.ops.matrices.factorisations.indefinite import linalg_ldl_factor_ex as ldl_factor_ex
from numgrad.ops.matrices.factorisations.indefinite import linalg_ldl_solve as ldl_solve
from numgrad.ops.matrices.factorisations.lu import linalg_lu as lu
from numgrad.ops.matrices.factorisations.lu import linalg_lu_factor as lu_factor
from numgrad.ops.matrices.factorisations.lu import linalg_lu_factor_ex as lu_factor_ex
from numgrad.ops.matrices.factorisations.orthogonal import linalg_qr as qr
from numgrad.ops.matrices.norms import linalg_cond as cond
from numgrad.ops.matrices.norms import linalg_matrix_norm as matrix_norm
from numgrad.ops.matrices.norms import linalg_norm as norm
from numgrad.ops.matrices.norms import linalg_vector_norm as vector_norm
from numgrad.ops.matrices.powers import linalg_matrix_exp as matrix_exp
from numgrad.ops.matrices.powers import linalg_matrix_power as matrix_power
from numgrad.ops.matrices.spectra.eigen_general import linalg_eig as eig
from numgrad.ops.matrices.spectra.eigen_general import linalg_eigvals as eigvals
from numgrad.ops.matrices.spectra.eigen_hermitian import linalg_eigh as eigh
from numgrad.ops.matrices.spectra.eigen_hermitian import linalg_eigvalsh as eigvalsh
from numgrad.ops.matrices.spectra.singular_values import linalg_svd as svd
from numgrad.ops.matrices.spectra.singular_values import linalg_svdvals as svdvals
from numgrad.ops.matrices.systems.least_squares import linalg_lstsq as lstsq
from numgrad.ops.matrices.systems.lu_systems import linalg_lu_solve as lu_solve
from numgrad.ops.matrices.systems.pseudoinverses import linalg_matrix_rank as matrix_rank
from numgrad.ops.matrices.systems.pseudoinverses import linalg_pinv as pinv
from numgrad.ops.matrices.systems.solving import linalg_inv as inv
from numgrad.ops.matrices.systems.solving import linalg_inv_ex as inv_ex
from numgrad.ops.matrices.systems.solving import linalg_solve as solve
from numgrad.ops.matrices.systems.solving import linalg_solve_ex as solve_ex
from numgrad.ops.matrices.systems.triangular import linalg_solve_triangular as solve_triangular
from numgrad.ops.matrices.vectors import linalg_cross as cross
from numgrad.ops.matrices.vectors import linalg_vander as vander
from numgrad.ops.matrices.vectors import linalg_vecdot as vecdot

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "inv",
    "inv_ex",
    "ldl_factor",
    "ldl_factor_ex",
    "ldl_solve",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]
