"""A few singular values or eigenvalues: svd_lowrank, pca_lowrank, lobpcg; and nuclear_norm."""

from __future__ import annotations

from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.ops.creation.random import randn
from numgrad.ops.linalg.linalg import matmul
from numgrad.ops.linalg.permuting import adjoint
from numgrad.ops.matrices.factorisations.cholesky import linalg_cholesky as cholesky
from numgrad.ops.matrices.factorisations.orthogonal import linalg_qr as qr
from numgrad.ops.matrices.norms import linalg_matrix_norm as matrix_norm
from numgrad.ops.matrices.spectra.eigen_hermitian import linalg_eigh as eigh
from numgrad.ops.matrices.spectra.singular_values import linalg_svd as svd
from numgrad.ops.matrices.systems.triangular import linalg_solve_triangular as solve_triangular
from numgrad.ops.reduction.reductions import mean
from numgrad.ops.signatures.declared import declare

__all__ = ["lobpcg", "nuclear_norm", "pca_lowrank", "svd_lowrank"]


@declare(
    "nuclear_norm(Tensor input, bool keepdim=False, *, Tensor? out=None)",
    "nuclear_norm(Tensor input, int[1] dim, bool keepdim=False, *, Tensor? out=None)",
    method=False,
)
def nuclear_norm(input: Tensor, dim: tuple[int, ...] | None, keepdim: bool) -> Tensor:
    """Return the sums of the singular values of matrices: ``linalg.matrix_norm(x, "nuc")``.

    The gradient is g U V^H.

    Parameters
    ----------
    dim
        The two dims that matrices have; the last ones unless given.
    keepdim
        Whether they stay, with length 1.

    Raises
    ------
    RuntimeError
        If that are not two dims, or the dtype is not floating point.

    >>> import numgrad as ng
    >>> ng.nuclear_norm(ng.tensor([[3.0, 0.0], [0.0, -4.0]]))
    tensor(7.)
    """
    dims = (-2, -1) if dim is None else dim * 2 if len(dim) == 1 else dim
    result: Tensor = matrix_norm(input, "nuc", dims, keepdim)
    return result


def _basis(a: Tensor, q: int, niter: int, m: Tensor | None) -> Tensor:
    """Return columns that span about what those of ``a - m`` do (Halko and others, alg. 4.4)."""

    def product(x: Tensor) -> Tensor:
        found: Tensor = matmul(a, x)
        return found if m is None else found - matmul(m, x)

    def product_of_adjoint(x: Tensor) -> Tensor:
        found: Tensor = matmul(adjoint(a), x)
        return found if m is None else found - matmul(adjoint(m), x)

    basis: Tensor = qr(product(randn((a._array.shape[-1], q), dtype=a.dtype)))[0]
    for _ in range(niter):
        basis = qr(product(qr(product_of_adjoint(basis))[0]))[0]
    return basis


def _of_low_rank(a: Tensor, q: int, niter: int, m: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    wide = a._array.shape[-2] < a._array.shape[-1]
    if wide:
        a, m = adjoint(a), None if m is None else adjoint(m)
    basis = _basis(a, q, niter, m)
    rest = a if m is None else a - m
    u, values, vh = svd(matmul(adjoint(basis), rest), False)
    u, v = matmul(basis, u), adjoint(vh)
    return (v, values, u) if wide else (u, values, v)


@declare(
    "svd_lowrank(Tensor A, int? q=6, int? niter=2, Tensor? M=None)",
    method=False,
)
def svd_lowrank(
    A: Tensor, q: int | None, niter: int | None, M: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return about the greatest singular values, with vectors, of a matrix of low rank.

    N. Halko, P. G. Martinsson and J. A. Tropp, "Finding structure with randomness" (2009), arXiv
    0909.4061: random numbers decide, so set a seed. The gradient is that of `linalg.svd`.

    Parameters
    ----------
    A : tensor of shape (..., m, n)
    q
        How many, a little more than the rank.
    niter
        How often to multiply by the matrix and its adjoint to come closer.
    M : tensor, optional
        What to subtract first.

    Returns
    -------
    U, S, V
        So that A - M is about ``U @ diag(S) @ V.mH``.

    >>> import numgrad as ng
    >>> a = ng.ones(5, 1) @ ng.arange(4.0)[None]
    >>> u, s, v = ng.svd_lowrank(a, q=2)
    >>> bool(ng.allclose(u @ ng.diag(s) @ v.mH, a, atol=1e-5))
    True
    """
    if M is not None:
        M = M.expand(A._array.shape)
    count = min(6 if q is None else q, *A._array.shape[-2:])
    return _of_low_rank(A, count, 2 if niter is None else niter, M)


@declare(
    "pca_lowrank(Tensor A, int? q=None, bool center=True, int niter=2)",
    method=False,
)
def pca_lowrank(
    A: Tensor, q: int | None, center: bool, niter: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return about the principal directions of rows: `svd_lowrank` of them less their mean.

    The gradient is that of `linalg.svd`.

    Parameters
    ----------
    A : tensor of shape (..., m, n)
        m samples of n numbers.
    q
        How many; 6 unless given, or as many as there are.
    center
        Whether to subtract the mean.

    Returns
    -------
    U, S, V
        The directions are the columns of V; ``S**2 / (m - 1)`` are the variances along them.

    Raises
    ------
    ValueError
        If q or niter is negative, or there are not so many.

    >>> import numgrad as ng
    >>> ng.pca_lowrank(ng.tensor([[1.0, 1.0], [3.0, 3.0]]), q=1)[1].round()
    tensor([2.])
    """
    least = min(A._array.shape[-2:])
    count = min(6, least) if q is None else q
    if not 0 <= count <= least:
        raise ValueError(
            f"q(={count}) must be non-negative integer and not greater than min(m, n)={least}"
        )
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    rows = A - mean(A, (-2,), keepdim=True) if center else A
    return _of_low_rank(rows, count, niter, None)


@declare(
    "lobpcg(Tensor A, int? k=None, Tensor? B=None, Tensor? X=None, int? n=None, "
    "object iK=None, int? niter=None, float? tol=None, bool? largest=None, str? method=None, "
    "object tracker=None, object ortho_iparams=None, object ortho_fparams=None, "
    "object ortho_bparams=None)",
    method=False,
)
def lobpcg(
    A: Tensor,
    k: int | None,
    B: Tensor | None,
    X: Tensor | None,
    n: int | None,
    largest: bool | None,
) -> tuple[Any, Any]:
    """Return the k greatest or least eigenvalues of a symmetric matrix, with vectors.

    As matrices are dense here, all are computed by LAPACK, exactly, and these are chosen: what says
    how PyTorch's iteration goes (`X`, `iK`, `niter`, `tol`, `method` ...) changes nothing but how
    many there are. The gradient is that of `linalg.eigh`.

    Parameters
    ----------
    A : tensor of shape (..., m, m)
        Symmetric or Hermitian.
    k
        How many: as many as `X` has columns, or 1, unless given; at most a third of m.
    B : tensor of shape (..., m, m), optional
        Positive definite: then A x = e B x.
    largest
        Whether the greatest are wanted, which come first then; True unless given.

    Returns
    -------
    tuple of tensors of shape (..., k) and (..., m, k)

    Raises
    ------
    ValueError
        If more are asked for than a third of m.

    >>> import numgrad as ng
    >>> ng.lobpcg(ng.diag(ng.arange(6.0)), k=2)[0]
    tensor([5., 4.])
    """
    size = A._array.shape[-1]
    if k is None:
        k = 1 if X is None else X._array.shape[-1]
    if size < 3 * (k if n is None else n):
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={size}) is smaller "
            f"than 3 x the number of requested eigenpairs (={k if n is None else n})"
        )
    factor = None
    if B is not None:
        factor = cholesky(B)
        half = solve_triangular(factor, A, upper=False)
        A = solve_triangular(factor, adjoint(half), upper=False)
    values, vectors = eigh(A)
    if largest is None or largest:
        values, vectors = values.flip(-1), vectors.flip(-1)
    values, vectors = values[..., :k], vectors[..., :k]
    if factor is not None:
        vectors = solve_triangular(adjoint(factor), vectors, upper=True)
    return values, vectors
