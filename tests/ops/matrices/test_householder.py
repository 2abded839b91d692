"""Householder's reflections beside PyTorch: products, and what QR decompositions are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numgrad as ng
from tests.ops.matrices.matrix_calls import DTYPES, MatrixCall, compare, compare_outcome, matrix

CALLS = {
    "householder_product": MatrixCall(
        lambda lib, A, v: lib.linalg.householder_product(A, v[..., : A.shape[-1]] / 8), "mv"
    ),
    "orgqr of fewer": MatrixCall(lambda lib, A, v: lib.orgqr(A, v[..., :1] / 8), "mv"),
    "ormqr": MatrixCall(lambda lib, A, v, B: lib.ormqr(A, v / 8, B), "gvb"),
    "ormqr_adjoint": MatrixCall(lambda lib, A, v, B: lib.ormqr(A, v / 8, B, True, True), "gvb"),
    "ormqr_right": MatrixCall(lambda lib, A, v, B: A.ormqr(v / 8, B.mT, False), "gvb"),
    "ormqr_right_adjoint": MatrixCall(
        lambda lib, A, v, B: A.ormqr(v / 8, B.mT, False, True), "gvb"
    ),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CALLS)
def test_values_gradients_dtypes_and_strides_are_pytorchs(torch: Any, name, dtype):
    for seed in range(6):
        compare(torch, ng, CALLS[name], seed, dtype)


def _call(name: str, *shapes: tuple[int, ...], change: Any = None, **keywords: Any) -> Any:
    def call(lib: Any) -> Any:
        operands = [matrix(lib, *shape) for shape in shapes]
        operands = operands if change is None else change(*operands)
        owner = lib.linalg if name == "householder_product" else lib
        return getattr(owner, name)(*operands, **keywords)

    return call


OUTCOMES = {
    "householder_product": [
        _call("householder_product", A, tau)
        for A, tau in (
            ((5, 3), (3,)),
            ((5, 3), (2,)),
            ((3, 5), (3,)),
            ((5, 3), (4,)),
            ((2, 5, 3), (2, 3)),
            ((2, 5, 3), (3,)),
            ((2, 5, 3), (4, 3)),
            ((5,), (3,)),
            ((5, 3), ()),
            ((0, 0), (0,)),
            ((0, 5, 3), (0, 3)),
            ((5, 3), (0,)),
            ((5, 3), (2, 3)),
        )
    ]
    + [
        _call("householder_product", (3, 3), (3,), change=lambda A, f: (A.long(), f.long())),
        _call("householder_product", (3, 3), (3,), change=lambda A, f: (A.half(), f.half())),
        _call("householder_product", (3, 3), (3,), change=lambda A, f: (A, f.double())),
        lambda lib: lib.orgqr(matrix(lib, 3, 2), matrix(lib, 2), out=lib.ones(0).double()),
    ],
    "geqrf": [
        _call("geqrf", A) for A in ((5, 3), (3, 5), (3, 3), (2, 5, 3), (5,), (0, 3), (0, 3, 2))
    ]
    + [
        _call("geqrf", (3, 3), change=lambda A: (A.long(),)),
        _call("geqrf", (3, 3), change=lambda A: (A.half(),)),
        lambda lib: lib.geqrf(matrix(lib, 2, 2).requires_grad_())[0].sum().backward(),
    ],
    "ormqr": [
        _call("ormqr", *shapes)
        for shapes in (
            ((3, 3), (3,), (3, 2)),
            ((5, 3), (3,), (5, 2)),
            ((5, 3), (3,), (3, 2)),
            ((3, 3), (4,), (3, 2)),
            ((5, 3), (2,), (5, 2)),
            ((3, 5), (3,), (3, 2)),
            ((2, 3, 3), (2, 3), (2, 3, 2)),
            ((2, 3, 3), (2, 3), (3, 2)),
            ((2, 3, 3), (3,), (2, 3, 2)),
            ((2, 3, 3), (4, 3), (2, 3, 2)),
            ((2, 3, 3), (2, 3), (4, 3, 2)),
            ((3,), (3,), (3, 2)),
            ((3, 3), (3,), (3,)),
            ((0, 0), (0,), (0, 2)),
        )
    ]
    + [
        _call("ormqr", (3, 3), (3,), (2, 3), left=False),
        _call("ormqr", (3, 3), (3,), (3, 2), left=False),
        _call("ormqr", (3, 3), (3,), (3, 2), change=lambda A, f, B: (A, f.double(), B)),
        _call("ormqr", (3, 3), (3,), (3, 2), change=lambda A, f, B: (A, f, B.double())),
        _call("ormqr", (3, 3), (3,), (3, 2), change=lambda *all: [each.long() for each in all]),
        _call("ormqr", (3, 3), (3,), (3, 2), change=lambda *all: [each.half() for each in all]),
    ],
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_results_and_errors_are_pytorchs(torch: Any, name):
    for number, call in enumerate(OUTCOMES[name]):
        compare_outcome(torch, ng, call, number)


def test_factors_and_vectors_make_the_matrix_that_was_decomposed():
    random = np.random.default_rng(0)
    for shape in ((6, 4), (4, 6), (3, 5, 5)):
        A = ng.from_numpy(random.standard_normal(shape) + 1j * random.standard_normal(shape))
        a, tau = ng.geqrf(A)
        np.testing.assert_allclose(ng.ormqr(a, tau, ng.triu(a)).numpy(), A.numpy(), atol=1e-12)
