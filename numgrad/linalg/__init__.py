"""Linear algebra, as ``torch.linalg``: factorisations, systems, determinants, spectra, norms.

All of it takes batches, and is differentiable to any order.

>>> import numgrad as ng
>>> A = ng.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
>>> ng.linalg.slogdet(A).logabsdet.backward()
>>> A.grad
tensor([[ 0.6000, -0.2000],
        [-0.2000,  0.4000]])
"""

from numgrad.ops.matrices.checks import LinAlgError
from numgrad.ops.matrices.cholesky import linalg_cholesky as cholesky
from numgrad.ops.matrices.cholesky import linalg_cholesky_ex as cholesky_ex
from numgrad.ops.matrices.determinants import linalg_det as det
from numgrad.ops.matrices.determinants import linalg_slogdet as slogdet
from numgrad.ops.matrices.solving import linalg_inv as inv
from numgrad.ops.matrices.solving import linalg_inv_ex as inv_ex
from numgrad.ops.matrices.solving import linalg_solve as solve
from numgrad.ops.matrices.solving import linalg_solve_ex as solve_ex
from numgrad.ops.matrices.triangular import linalg_solve_triangular as solve_triangular

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "det",
    "inv",
    "inv_ex",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
]
