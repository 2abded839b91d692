"""LU factorisations and what they are for, beside PyTorch: drawn batches, sizes and dtypes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from tests.ops.matrices.matrix_calls import DTYPES, MatrixCall, compare, compare_outcome, matrix

CALLS = {
    "lu": MatrixCall(lambda lib, A: lib.linalg.lu(A), "g"),
    "lu_wide": MatrixCall(lambda lib, A: lib.linalg.lu(A), "w"),
    "lu_tall": MatrixCall(lambda lib, A: lib.linalg.lu(A), "m"),
    "L": MatrixCall(lambda lib, A: lib.linalg.lu(A).L, "w"),
    "U": MatrixCall(lambda lib, A: lib.linalg.lu(A).U, "m"),
    "lu_factor": MatrixCall(lambda lib, A: lib.linalg.lu_factor(A), "m"),
    "lu_factor_ex": MatrixCall(lambda lib, A: lib.linalg.lu_factor_ex(A), "w"),
    "lu_unpack": MatrixCall(lambda lib, A: lib.lu_unpack(*lib.linalg.lu_factor(A)), "w"),
    "lu_unpack_tall": MatrixCall(lambda lib, A: lib.lu_unpack(*A.lu()), "m"),
    "lu_solve": MatrixCall(lambda lib, A, B: lib.linalg.lu_solve(*A.lu(), B), "gb"),
    "lu_solve_adjoint": MatrixCall(
        lambda lib, A, B: lib.linalg.lu_solve(*A.lu(), B, adjoint=True), "gb"
    ),
    "lu_solve_right": MatrixCall(
        lambda lib, A, B: lib.linalg.lu_solve(*A.lu(), B.mT, left=False), "gb"
    ),
    "lu_solve_right_adjoint": MatrixCall(
        lambda lib, A, B: lib.linalg.lu_solve(*A.lu(), B.mT, left=False, adjoint=True), "gb"
    ),
    "older lu_solve": MatrixCall(lambda lib, A, B: lib.lu_solve(B, *lib.lu(A)), "gb"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CALLS)
def test_values_gradients_dtypes_and_strides_are_pytorchs(torch: Any, name, dtype):
    for seed in range(6):
        compare(torch, ng, CALLS[name], seed, dtype)


def _system(lib: Any, change: Any = lambda *operands: operands, **keywords: Any) -> Any:
    A = matrix(lib, 3, 3)
    table, pivots = lib.linalg.lu_factor(A)
    return lib.linalg.lu_solve(*change(table, pivots, matrix(lib, 3, 2)), **keywords)


def _unpack(lib: Any, change: Any, *flags: bool) -> Any:
    return lib.lu_unpack(*change(*lib.linalg.lu_factor(matrix(lib, 3, 3))), *flags)


OUTCOMES = {
    name: [
        lambda lib, A=A, name=name: getattr(lib.linalg, name)(A(lib))
        for A in (
            lambda lib: lib.ones(2, 2, dtype=lib.int64),
            lambda lib: lib.ones(2, 2, dtype=lib.float16),
            lambda lib: lib.ones(3),
            lambda lib: lib.ones(2, 2),
            lambda lib: lib.stack([lib.eye(2), lib.zeros(2, 2)]),
            lambda lib: lib.ones(0, 3),
            lambda lib: lib.ones(2, 3, 0),
            lambda lib: lib.full((2, 2), float("nan")),
        )
    ]
    for name in ("lu", "lu_factor", "lu_factor_ex")
} | {
    "keywords": [
        lambda lib: lib.linalg.lu(lib.eye(2), pivot=False),
        lambda lib: lib.linalg.lu_factor(lib.eye(2), pivot=False),
        lambda lib: lib.linalg.lu_factor_ex(lib.zeros(2, 3, 3), check_errors=True),
        lambda lib: lib.lu(lib.zeros(2, 2)),
        lambda lib: lib.lu(lib.zeros(2, 2), get_infos=True),
        lambda lib: lib.lu(lib.eye(1), out=(lib.ones(0), lib.ones(0, dtype=lib.int32))),
        lambda lib: lib.linalg.lu_factor(lib.eye(2), out=(lib.ones(0), lib.ones(0))),
        lambda lib: lib.linalg.lu(matrix(lib, 2, 3), out=[lib.ones(0) for _ in range(3)]),
    ],
    "lu_solve": [
        _system,
        lambda lib: _system(lib, lambda LU, p, B: (LU, p, B.double())),
        lambda lib: _system(lib, lambda LU, p, B: (LU.long(), p, B.long())),
        lambda lib: _system(lib, lambda LU, p, B: (LU, p.long(), B)),
        lambda lib: _system(lib, lambda LU, p, B: (LU, p, B[:, 0])),
        lambda lib: _system(lib, lambda LU, p, B: (LU, p, B[:2])),
        lambda lib: _system(lib, lambda LU, p, B: (LU, p[:2], B)),
        lambda lib: _system(lib, lambda LU, p, B: (LU[:2], p, B)),
        lambda lib: _system(lib, lambda LU, p, B: (LU[0], p, B)),
        lambda lib: _system(lib, lambda LU, p, B: (LU.half(), p, B.half())),
        lambda lib: _system(lib, lambda LU, p, B: (LU, p, B), left=False),
        lambda lib: _system(lib, lambda LU, p, B: (LU, p, B.mT.expand(2, 2, 3)), left=False),
        lambda lib: _system(lib, lambda LU, p, B: (LU, p, B.expand(2, 3, 2))),
        lambda lib: _system(
            lib, lambda LU, p, B: (LU.expand(2, 1, 3, 3), p.expand(2, 1, 3), B.expand(2, 3, 2))
        ),
        lambda lib: _system(lib, lambda LU, p, B: (LU.expand(2, 3, 3), p, B)),
        lambda lib: _system(lib, lambda LU, p, B: (LU, p[0], B)),
        lambda lib: _system(lib, lambda LU, p, B: (LU, p * 0, B)),
        lambda lib: _system(lib, lambda LU, p, B: (LU, p * 0 + 5, B)),
        lambda lib: _system(lib, lambda LU, p, B: (LU, p, "B")),
        lambda lib: _system(lib, out=lib.ones(0).double()),
    ],
    "lu_unpack": [
        lambda lib: _unpack(lib, lambda LU, p: (LU, p.long())),
        lambda lib: _unpack(lib, lambda LU, p: (LU, p), False),
        lambda lib: _unpack(lib, lambda LU, p: (LU, p), True, False),
        lambda lib: _unpack(lib, lambda LU, p: (LU, p), False, False),
        lambda lib: _unpack(lib, lambda LU, p: (LU.long(), p)),
        lambda lib: _unpack(lib, lambda LU, p: (LU.half(), p)),
        lambda lib: _unpack(lib, lambda LU, p: (LU[0], p)),
        lambda lib: _unpack(lib, lambda LU, p: (LU, p[:2])),
        lambda lib: _unpack(lib, lambda LU, p: (LU.expand(2, 3, 3), p)),
        lambda lib: _unpack(lib, lambda LU, p: (LU, p * 0)),
        lambda lib: _unpack(lib, lambda LU, p: (LU[:2], p[:2] * 0 + 3)),
        lambda lib: _unpack(lib, lambda LU, p: (LU, p.long()), True, False),
    ],
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OUTCOMES)
def test_what_is_refused_and_how_is_pytorchs(torch: Any, name):
    for number, call in enumerate(OUTCOMES[name]):
        compare_outcome(torch, ng, call, number)


@pytest.mark.parametrize("shape", [(40, 40), (2, 70, 33), (33, 70)])
def test_factors_of_sizes_that_take_several_panels(shape):
    A = ng.from_numpy(np.random.default_rng(0).standard_normal(shape)).requires_grad_()
    P, L, U = ng.linalg.lu(A)
    np.testing.assert_allclose((P @ L @ U).numpy(force=True), A.numpy(force=True), atol=1e-12)
    assert not P.requires_grad and P.grad_fn is None
    weights = ng.from_numpy(np.random.default_rng(1).standard_normal(shape))
    (gradient,) = ng.autograd.grad(((P @ L @ U) * weights).sum(), A)
    np.testing.assert_allclose(gradient.numpy(), weights.numpy(), atol=1e-8)


@pytest.mark.parametrize("batches", [((), (2,)), ((2, 1), (3,)), ((2,), (1,)), ((1,), (2,))])
def test_pivots_and_tables_of_other_batches_are_broadcast(batches: Any) -> None:
    """PyTorch takes the first pivots that lie in memory, for as many matrices as there are."""
    A = matrix(ng, 3, 3, dtype="float64")
    table, pivots = ng.linalg.lu_factor(A)
    P, L, U = ng.lu_unpack(table.expand(*batches[0], 3, 3), pivots.expand(*batches[1], 3))
    found = (P @ L @ U).numpy()
    assert found.shape == P.shape == (*np.broadcast_shapes(*batches), 3, 3)
    np.testing.assert_allclose(found, np.broadcast_to(A.numpy(), found.shape), rtol=1e-12)


def test_compiled_functions_take_shapes_of_shapes_and_raise_for_numbers():
    solve = ng.jit(lambda A, B: ng.linalg.lu_solve(*ng.linalg.lu_factor(A), B))
    A, B = matrix(ng, 2, 3, 3, dtype="float64"), matrix(ng, 2, 3, 1, dtype="float64")
    np.testing.assert_allclose(
        solve(A, B).numpy(), np.linalg.solve(A.numpy(), B.numpy()), rtol=1e-12
    )
    with pytest.raises(RuntimeError, match=r"\(Batch element 0\): U\[1,1\] is zero"):
        solve(A * 0, B)


def test_deprecated_names_say_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ng.lu_solve(ng.ones(2, 1), *ng.lu(ng.eye(2)))
