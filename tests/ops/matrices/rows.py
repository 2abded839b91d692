"""Rows of factors and systems of linear equations in the tables that walk the catalogue."""

from __future__ import annotations

import numgrad as ng

# Matrices that have inverses, and are positive definite by the triangle that is read.
_REGULAR, _BATCH = "g + 3 * torch.eye(3)", "o + 3 * torch.eye(3)"

NODES = {
    "torch.linalg.cholesky(P)": ("LinalgCholeskyExBackward0", "L upper"),
    "torch.cholesky(P)": ("CholeskyBackward0", "result upper"),
    "torch.triangular_solve(s, P)[0]": (
        "TriangularSolveBackward0",
        "A self solution transpose unitriangular upper",
    ),
    "torch.cholesky_inverse(P)": ("CholeskyInverseBackward0", "result self upper"),
    "torch.cholesky_solve(s, P)": ("CholeskySolveBackward0", "input2 result self upper"),
    "torch.linalg.solve_triangular(P, s, upper=True)": (
        "LinalgSolveTriangularBackward0",
        "left result self unitriangular upper",
    ),
    "torch.linalg.solve(P, s, left=False)": ("LinalgSolveExBackward0", "A LU left pivots result"),
    "torch.linalg.inv(P)": ("LinalgInvExBackward0", "inverse"),
    "torch.linalg.det(P)": ("LinalgDetBackward0", "A LU pivots result"),
    "torch.linalg.slogdet(P)": ("LinalgSlogdetBackward0", "A LU pivots sign"),
    "torch.linalg.eigh(P)[0]": ("LinalgEighBackward0", "eigenvalues eigenvectors"),
    "torch.linalg.svd(P)[1]": (
        "LinalgSvdBackward0",
        "S S_sym_argsize_minus_1 U Vh full_matrices",
    ),
    "torch.linalg.qr(P)[0]": ("LinalgQrBackward0", "Q R mode"),
    "torch.linalg.pinv(P)": ("LinalgPinvBackward0", "result self"),
    "torch.linalg.matrix_exp(P)": ("LinalgMatrixExpBackward0", "self"),
    "torch.linalg.lu(P)[1]": ("LinalgLuBackward0", "L P U pivot"),
    "torch.linalg.lu_factor(P)[0]": ("LinalgLuFactorExBackward0", "LU pivot pivots"),
    "torch.linalg.eig(P)[0]": ("LinalgEigBackward0", "eigenvalues eigenvectors"),
    "torch.linalg.lstsq(P, s)[0]": ("LinalgLstsqBackward0", "b self solution"),
    "torch.geqrf(P)[0]": ("GeqrfBackward0", ""),
    "torch.orgqr(P, s[:, 0])": ("LinalgHouseholderProductBackward0", "input result tau"),
    "torch.ormqr(P, s[:, 0], s)": (
        "OrmqrBackward0",
        "input2 input3 left result self transpose",
    ),
    "torch.linalg.cross(s.mT, s.mT, dim=1)": ("LinalgCrossBackward0", "dim other self"),
    "torch.lu_unpack(P, torch.ones(3, dtype=torch.int32))[1]": (
        "LuUnpackBackward0",
        "LU_data_sym_argsize_minus_1 LU_data_sym_argsize_minus_2",
    ),
    "torch.linalg.lu_solve(P, torch.ones(3, dtype=torch.int32), s)": (
        "LinalgLuSolveBackward0",
        "LU adjoint left pivots result",
    ),
}
NOT_KEPT = {
    "CholeskySolveBackward0": "self",
    "TriangularSolveBackward0": "self",
    "LinalgDetBackward0": "LU pivots result",
    "LinalgSvdBackward0": "S_sym_argsize_minus_1",
    "LinalgHouseholderProductBackward0": "result",
    "OrmqrBackward0": "result",
    "LuUnpackBackward0": "LU_data_sym_argsize_minus_1 LU_data_sym_argsize_minus_2",
}
# Of a factorisation the places are ours.
OTHER_VALUES = {
    (f"Linalg{name}Backward0", kept) for name in ("SolveEx", "Slogdet") for kept in ("LU", "pivots")
} | {  # Vectors have any sign.
    ("LinalgEighBackward0", "eigenvectors"),
    ("LinalgEigBackward0", "eigenvalues"),
    ("LinalgEigBackward0", "eigenvectors"),
    ("LinalgSvdBackward0", "U"),
    ("LinalgSvdBackward0", "Vh"),
}
ARGUMENTS = {
    "nuclear_norm": " | (0, 1) | (0, 2), True",
    **dict.fromkeys(
        ["cholesky", "cholesky_inverse"], f"@({_REGULAR}) | @({_BATCH}) | @({_REGULAR}, True)"
    ),
    **dict.fromkeys(["det", "inverse", "logdet", "slogdet"], f"@({_REGULAR}) | @({_BATCH})"),
    **dict.fromkeys(
        ["cholesky_solve", "triangular_solve"],
        f"@(m, {_REGULAR}) | @(q, {_REGULAR}) | @(q, {_BATCH}, True)",
    ),
    "lu": "@(g) | @(m) | @(q)",
    "cross": "@(g, g) | @(g, g, 1) | @(o, o)",
    "geqrf": "@(g) | @(m) | @(q)",
    "orgqr": "@(s, s[0, :1]) | @(g, g[0]) | @(o, o[:, 0])",
    "ormqr": "@(g, g[0], s) | @(g, g[0], m, False) | @(o, o[:, 0], o, True, True)",
    "vander": "@(v) | @(u, 3) | @(v, increasing=True)",
    "chain_matmul": "@(m, s) | @(m, s, m)",
    "frobenius_norm": "1 | @(m, (0, 1)) | @(q, (0, 2), True)",
    "lu_unpack": "@(*torch.lu(g)) | @(*torch.lu(m)) | @(*torch.lu(q), False)",
    "lu_solve": "@(m, *torch.lu(g)) | @(q, *torch.lu(g)) | @(q, *torch.lu(o))",
    "qr": "@(g) | @(m) | @(q, False)",
    "svd": "@(m, True, False) | @(q, False, False)",
    "pinverse": "@(m) | @(q) | @(o, 0.1)",
    "matrix_exp": "@(g) | @(o)",
    "matrix_power": "@(g, 1) | @(o, 3) | @(g, 4) | @(@(g, 2), 3)",
}
COMPLEX = {
    "linalg_cholesky_ex": [
        "torch.linalg.cholesky(h)",
        "torch.linalg.cholesky_ex(h, upper=True).L",
    ],
    "cholesky": ["torch.cholesky(h)", "torch.cholesky(h, True)"],
    "cholesky_inverse": ["torch.cholesky_inverse(torch.linalg.cholesky(h))"],
    "cholesky_solve": ["torch.cholesky_solve(b, torch.linalg.cholesky(h))"],
    "linalg_solve_triangular": [
        "torch.linalg.solve_triangular(g, b, upper=True)",
        "torch.linalg.solve_triangular(g, b.mT, upper=False, left=False)",
    ],
    "triangular_solve": ["torch.triangular_solve(b, g)", "torch.triangular_solve(b, g, 0, 1)[0]"],
    "linalg_solve_ex": [
        "torch.linalg.solve(g, b)",
        "torch.linalg.solve(g[0], u)",
        "torch.linalg.solve(g, b.mT, left=False)",
        "torch.linalg.solve(g, b.mT[None], left=False)",
    ],
    "solve_factored": [],
    "linalg_inv_ex": ["torch.linalg.inv(g)", "torch.inverse(g)", "torch.linalg.inv(m)"],
    "linalg_det": ["torch.det(g)", "torch.linalg.det(m)"],
    "linalg_slogdet": ["torch.slogdet(g)[1]", "torch.logdet(g)", "torch.linalg.slogdet(g)[0]"],
    "cofactors": [],
    "linalg_eigh": ["torch.linalg.eigvalsh(h)", "torch.linalg.eigh(h, 'U')[0]"],
    "linalg_svd": ["torch.linalg.svdvals(m)", "torch.linalg.svd(g)[1]", "torch.svd(m, False)[1]"],
    "linalg_pinv": [
        "torch.linalg.pinv(m)",
        "torch.pinverse(m.mT)",
        "torch.linalg.pinv(h, hermitian=True)",
    ],
    "linalg_matrix_exp": ["torch.linalg.matrix_exp(g)", "torch.matrix_exp(h)"],
    "linalg_lu": ["torch.linalg.lu(m)", "torch.linalg.lu(g)", "torch.linalg.lu(m.mT)"],
    "linalg_lu_factor_ex": ["torch.linalg.lu_factor(m)[0]", "torch.lu(g)[0]"],
    "exchange_rows": [],
    "linalg_lu_solve": [
        "torch.linalg.lu_solve(*torch.lu(g), b)",
        "torch.linalg.lu_solve(*torch.lu(g), b.mT, left=False, adjoint=True)",
    ],
    "linalg_eig": ["(torch.linalg.eigvals(g) ** 2).sum(-1)"],
    "linalg_lstsq": [
        "torch.linalg.lstsq(m.mT, g)[0]",
        "torch.linalg.lstsq(g, b.expand(2, 3, 2))[0]",
    ],
    "linalg_householder_product": ["torch.orgqr(g, u.expand(2, 3))"],
    "ormqr": ["torch.ormqr(g[0], u, b)", "torch.ormqr(g[0], u, b.mT, False, True)"],
    "linalg_cross": ["torch.cross(g, h, 1)", "torch.linalg.cross(g[0], u)"],
    "lu_unpack": ["torch.lu_unpack(*torch.lu(m))", "torch.lu_unpack(*torch.lu(g), True, False)"],
    "linalg_qr": ["torch.linalg.qr(m)", "torch.linalg.qr(g)", "torch.qr(g.mT)"],
}
DISPATCH = {
    "linalg.ldl_factor": lambda x, y: ng.linalg.ldl_factor((x @ x.T).detach())[0],
    "linalg.ldl_factor_ex": lambda x, y: ng.linalg.ldl_factor_ex((x @ x.T).detach())[0],
    "linalg.ldl_solve": lambda x, y: ng.linalg.ldl_solve(
        *ng.linalg.ldl_factor((x @ x.T).detach()), y.detach()
    ),
    "vector_norm": lambda x, y: ng.linalg.vector_norm(x, 3.0),
    "matrix_norm": lambda x, y: ng.linalg.matrix_norm(x) + ng.linalg.matrix_norm(y, 1),
    "norm of a matrix": lambda x, y: ng.linalg.norm(x) * ng.linalg.norm(y, "nuc"),
    "cond": lambda x, y: ng.linalg.cond(x @ y.T),
    "pinv": lambda x, y: ng.linalg.pinv(x) @ ng.pinverse(y).T,
    "multi_dot": lambda x, y: ng.linalg.multi_dot([x, y.T, x]),
    "matrix_rank": lambda x, y: ng.linalg.matrix_rank(x),
    "matrix_exp": lambda x, y: ng.matrix_exp(x @ y.T / 10),
    "matrix_power": lambda x, y: ng.linalg.matrix_power(x @ y.T, 3) + ng.matrix_power(x @ y.T, 2),
    "old qr": lambda x, y: ng.qr(x)[1] + ng.qr(x, some=False)[1].sum(),
    "lu": lambda x, y: ng.linalg.lu(x).L.sum() + ng.linalg.lu_factor_ex(y).LU.sum(),
    "cross": lambda x, y: ng.cross(x, y) + ng.linalg.cross(x, y, dim=0),
    "eig": lambda x, y: ng.linalg.eigvals(x @ y.T).sum() + ng.linalg.eig(x @ x.T)[0].sum(),
    "lstsq": lambda x, y: ng.linalg.lstsq(x, y)[0] * ng.linalg.lstsq(x.T, y.T, driver="gels")[1][0],
    "reflections": lambda x, y: ng.orgqr(x.T, y[:, 0]) + ng.ormqr(x.T, y[:, 0], y.T),
    "geqrf": lambda x, y: ng.geqrf(x)[0] * ng.geqrf(y.detach())[0],
    "vecdot": lambda x, y: ng.linalg.vecdot(x, y).sum() + ng.linalg.vecdot(x, y, dim=0),
    "vander": lambda x, y: ng.vander(x[0]) + ng.linalg.vander(y[1]),
    "linalg.matmul": lambda x, y: ng.linalg.matmul(x, y.T) @ ng.linalg.diagonal(y),
    "tensorsolve": lambda x, y: ng.linalg.tensorsolve((x @ y.T)[:, None], y[:, :1]),
    "tensorinv": lambda x, y: ng.linalg.tensorinv((x @ y.T)[:, None]),
    "older norms": lambda x, y: ng.frobenius_norm(x, 1),
    "lu_factor": lambda x, y: ng.lu_unpack(*ng.linalg.lu_factor(x @ y.T)).U,
    "lu_solve": lambda x, y: (
        ng.linalg.lu_solve(*ng.lu(x @ y.T), x) + ng.lu_solve(y, *x[:, :3].lu())
    ),
    "old svd": lambda x, y: ng.svd(x)[1] + ng.svd(y, compute_uv=False)[1],
}
PARTS = {"ExchangeRowsBackward0"}
# PyTorch factors matrices without elements in any dtype; the last ones are Python there, whose
# words they have.
NOT_COMPARED = {"lu", "svd_lowrank", "pca_lowrank", "lobpcg"}
LEFT_OUT = {
    *("eig", "lstsq", "matrix_rank", "solve", "symeig"),  # PyTorch has removed them
    *("lobpcg", "pca_lowrank", "svd_lowrank"),  # of which it draws other numbers
}
