"""Batches of two dims: results, gradients and their gradients are those of one matrix at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numgrad as ng

# A is square and well conditioned, T tall, W wide, P positive definite, L lower triangular, B and C
# right sides for A (columns and rows), V a vector for T. All but V and P are real or complex.
LINES = """
ng.linalg.matrix_exp(A * 0.3)
ng.linalg.matrix_power(A, 3)
ng.linalg.matrix_power(A, -2)
ng.linalg.inv(A)
ng.linalg.det(A)
ng.linalg.slogdet(A).logabsdet
ng.linalg.pinv(T)
ng.linalg.pinv(W)
ng.linalg.pinv(P, hermitian=True)
ng.linalg.solve(A, B)
ng.linalg.solve(A, C, left=False)
ng.linalg.solve_triangular(L, B, upper=False)
ng.linalg.solve_triangular(L.mT, B, upper=True)
ng.linalg.solve_triangular(L, C, upper=False, left=False)
ng.linalg.cholesky(P)
ng.linalg.cholesky(P, upper=True)
ng.cholesky_solve(B, L)
ng.cholesky_solve(B, L.mT, upper=True)
ng.cholesky_inverse(L)
ng.linalg.lu_factor(A)[0]
ng.linalg.lu(T)[1]
ng.linalg.lu(T)[2]
ng.linalg.lu(W)[1]
ng.linalg.lu(W)[2]
ng.linalg.lu_solve(*ng.linalg.lu_factor(A), B)
ng.linalg.lu_solve(*ng.linalg.lu_factor(A), B, adjoint=True)
ng.linalg.lu_solve(*ng.linalg.lu_factor(A), C, left=False)
ng.linalg.qr(T)[0]
ng.linalg.qr(T)[1]
ng.linalg.qr(W)[1]
ng.linalg.qr(A, mode='complete')[0]
ng.linalg.svdvals(T)
ng.linalg.svdvals(W)
ng.linalg.svd(T, full_matrices=False)[0].abs()
ng.linalg.svd(W, full_matrices=False)[2].abs()
ng.linalg.eigvals(A).abs()
ng.linalg.eig(A)[1].abs()
ng.linalg.eigvalsh(P)
ng.linalg.eigh(P)[1].abs()
ng.linalg.lstsq(T, ng.linalg.matmul(T, B)).solution
ng.linalg.householder_product(T * 0.3, T[..., 0, :] * 0.3)
ng.linalg.matrix_norm(T)
ng.linalg.matrix_norm(T, 'nuc')
ng.linalg.matrix_norm(T, 2)
ng.linalg.matrix_norm(T, -2)
ng.linalg.matrix_norm(T, 1)
ng.linalg.matrix_norm(T, -1)
ng.linalg.matrix_norm(T, float('inf'))
ng.linalg.matrix_norm(T, -float('inf'))
ng.linalg.vector_norm(T, 3, dim=(-2, -1))
ng.linalg.cond(A)
ng.linalg.multi_dot([T, B, B.mT, A]) if T.ndim == 2 else T @ B @ B.mT @ A
ng.linalg.vander(T[..., 0])
ng.linalg.vecdot(T, T * 2)
ng.linalg.cross(T.mT[..., :3], T.mT[..., :3] * T.mT[..., :3])
ng.linalg.diagonal(T)
ng.linalg.tensorinv(A, ind=1) if A.ndim == 2 else ng.linalg.inv(A)
ng.matmul(T, A)
ng.matmul(T, T[..., 0, :, None])
ng.tril(T, -1)
ng.triu(T, 1)
ng.diag_embed(T)
ng.diagonal_scatter(A, B[..., 0], 0, -2, -1)
T.mT
T.mH
T.rot90(1, (-2, -1))
T.flip(-1)
T.roll(1, -2)
"""


def _operands(kind: str) -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(7)

    def drawn(*shape: int) -> Any:
        real = rng.normal(size=(2, 3, *shape))
        return real + 1j * rng.normal(size=real.shape) if kind == "complex" else real

    A, L = drawn(3, 3), drawn(3, 3)
    A, L = A + 4 * np.diag([1.0, 1.5, 2.2]), np.tril(L) + 4 * np.eye(3)
    P = np.matmul(A, A.swapaxes(-2, -1).conj()) / 9
    return {"A": A, "L": L, "P": P, "T": drawn(4, 3), "W": drawn(3, 4)} | {
        "B": drawn(3, 2),
        "C": drawn(2, 3),
    }


def _found(line: str, operands: dict[str, Any]) -> list[Any]:
    """Return the result of a line, the gradients of its operands, and the gradients of these."""
    names = {key: ng.tensor(array, requires_grad=True) for key, array in operands.items()}
    if "P" in line:  # which has to stay Hermitian
        names["P"] = (names["P"] + names["P"].mH) / 2
        names["P"].retain_grad()
    result = eval(line, {"ng": ng}, dict(names))
    used = [value for key, value in names.items() if key in line.replace("ng.linalg.", "")]
    squares = (result * result.conj()).real
    whole = (squares * squares + squares).sum()
    first = ng.autograd.grad(whole, used, create_graph=True, allow_unused=True)
    again = sum((each * each.conj()).real.sum() for each in first if each is not None)
    second = ng.autograd.grad(again, used, allow_unused=True) if again.requires_grad else ()
    return [None if each is None else each.detach().numpy() for each in (result, *first, *second)]


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("kind", ["real", "complex"])
def test_a_batch_is_computed_and_differentiated_as_its_matrices(kind: str) -> None:
    operands = _operands(kind)
    for line in LINES.strip().splitlines():
        whole = _found(line, operands)
        for at in ((0, 1), (1, 2)):
            one = _found(line, {key: array[at] for key, array in operands.items()})
            for batch, alone in zip(whole, one, strict=True):
                assert (batch is None) == (alone is None), line
                if alone is not None:
                    np.testing.assert_allclose(batch[at], alone, 1e-7, 1e-9, err_msg=line)
