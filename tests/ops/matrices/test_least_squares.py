"""Least squares beside PyTorch: drivers, ranks, residuals, singular values, gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numgrad as ng
from tests.ops.matrices.matrix_calls import DTYPES, MatrixCall, compare, compare_outcome, matrix

DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def _solved(driver: str, transposed: bool = False) -> Any:
    def call(lib: Any, A: Any, B: Any) -> Any:
        operands = (A.mT, B.mT) if transposed else (A, B)
        return tuple(lib.linalg.lstsq(*operands, driver=driver))

    return call


CALLS = {
    **{driver: MatrixCall(_solved(driver), "mm") for driver in DRIVERS},
    **{f"{driver}, wide": MatrixCall(_solved(driver, True), "mg") for driver in ("gels", "gelsd")},
    "square": MatrixCall(lambda lib, A, B: lib.linalg.lstsq(A, B), "gb"),
    "vectors": MatrixCall(lambda lib, A, b: lib.linalg.lstsq(A, b), "gv"),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CALLS)
def test_values_gradients_dtypes_and_strides_are_pytorchs(torch: Any, name, dtype):
    for seed in (1, 2, 4, 5, 8, 9):  # of no empty batch
        if name == "vectors" and seed % 4 == 1:
            continue  # where a batch of vectors may be taken for a matrix
        compare(torch, ng, CALLS[name], seed, dtype)


def _tall(lib: Any, *shapes: tuple[int, ...], **keywords: Any) -> Any:
    return lib.linalg.lstsq(*[matrix(lib, *shape) for shape in shapes], **keywords)


OUTCOMES = {
    driver: [
        lambda lib, A=A, B=B, driver=driver: _tall(lib, A, B, driver=driver)
        for A, B in (
            ((5, 3), (5, 2)),
            ((3, 5), (3, 2)),
            ((5, 3), (5,)),
            ((2, 5, 3), (2, 5)),
            ((2, 5, 3), (5, 2)),
            ((2, 5, 3), (1, 5, 2)),
            ((0, 3), (0, 2)),
            ((0, 5, 3), (0, 5, 2)),
            ((5, 3), (4, 2)),
            ((5,), (5,)),
            ((5, 3), (4,)),
            ((5, 3), ()),
            ((2, 5, 3), (5,)),
        )
    ]
    + [
        lambda lib, driver=driver: lib.linalg.lstsq(
            lib.ones(5, 3, dtype=lib.int64), lib.ones(5, 2, dtype=lib.int64), driver=driver
        ),
        lambda lib, driver=driver: lib.linalg.lstsq(
            lib.ones(5, 3), lib.ones(5, 2).double(), driver=driver
        ),
    ]
    for driver in (None, *DRIVERS)
} | {
    "ranks": [
        lambda lib, A=A, driver=driver: lib.linalg.lstsq(
            A(lib), lib.ones(3, 1), 0.05, driver=driver
        )
        # What LAPACK's gelsy takes as a preference of columns PyTorch leaves unwritten.
        for driver in ("gelsd", "gelss")
        for A in (
            lambda lib: lib.diag(lib.tensor([1.0, 0.1, 0.001])),
            lambda lib: lib.zeros(3, 3),
            lambda lib: lib.ones(3, 2),
        )
    ]
    + [lambda lib: _tall(lib, (3, 3), (3, 1), driver="qr")],
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_results_and_errors_are_pytorchs(torch: Any, name):
    for number, call in enumerate(OUTCOMES[name]):
        compare_outcome(torch, ng, call, number)


def test_solutions_are_the_least_of_those_with_the_least_residual():
    random = np.random.default_rng(0)
    for shape in ((7, 4), (4, 7), (2, 6, 5)):
        array = random.standard_normal(shape)
        array[..., 0] = array[..., 1] if shape[0] == 7 else array[..., 0]
        side = random.standard_normal((*shape[:-1], 2))
        found = ng.linalg.lstsq(ng.from_numpy(array), ng.from_numpy(side)).solution.numpy()
        np.testing.assert_allclose(found, np.linalg.pinv(array) @ side, atol=1e-12)


def test_gradients_of_any_order_by_finite_differences():
    random = np.random.default_rng(1)
    A = ng.from_numpy(random.standard_normal((5, 3))).requires_grad_()
    B = ng.from_numpy(random.standard_normal((5, 2))).requires_grad_()
    for driver in ("gels", "gelsd"):

        def both(A: ng.Tensor, B: ng.Tensor, driver: str = driver) -> Any:
            return tuple(ng.linalg.lstsq(A, B, driver=driver))[:2]

        assert ng.autograd.gradcheck(both, [A, B], check_forward_ad=True)
        assert ng.autograd.gradgradcheck(both, [A, B])


def test_gradients_of_batches_of_vectors_by_finite_differences():
    random = np.random.default_rng(2)
    A = ng.from_numpy(random.standard_normal((2, 4, 3))).requires_grad_()
    b = ng.from_numpy(random.standard_normal((2, 4))).requires_grad_()
    for driver in ("gels", "gelsy"):

        def both(A: ng.Tensor, b: ng.Tensor, driver: str = driver) -> Any:
            return tuple(ng.linalg.lstsq(A, b, driver=driver))[:2]

        assert ng.autograd.gradcheck(both, [A, b])
