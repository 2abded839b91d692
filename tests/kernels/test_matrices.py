"""Functions of small matrices that are written out: the bits of the loops over any size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from numgrad.base.float_errors import silent
from numgrad.kernels.matrices import formulas
from numgrad.kernels.matrices.failures import LinAlgError, refuse_failed
from numgrad.kernels.matrices.unrolled import Unrolled
from numgrad.ops.matrices import determinants
from numgrad.ops.matrices.factorisations import cholesky, lu
from numgrad.ops.matrices.systems import solving, triangular
from tests.cases import thinned

SAME = {
    "solve": lambda A, b: solving._solved(A, b, True, False, None),
    "solve on the right": lambda A, b: solving._solved(A, b.swapaxes(-2, -1), False, False, None),
    "solve of vectors": lambda A, b: solving._solved(A, b[..., 0], True, True, None),
    "inv": lambda A, b: solving._inverted(A, None),
    "det": lambda A, b: [determinants._determinant(A)],
    "slogdet": lambda A, b: determinants._sign_and_size(A),
    "cholesky": lambda A, b: cholesky._factored(A @ A.swapaxes(-2, -1), False, None),
    "cholesky upper": lambda A, b: cholesky._factored(A + A.swapaxes(-2, -1), True, None),
    "cholesky_solve": lambda A, b: [cholesky._solved(b, A, True)],
    "triangular": lambda A, b: [triangular._forward(A, b, True, True, False)],
    "triangular right": lambda A, b: [
        triangular._forward(A, b.swapaxes(-2, -1), False, False, True)
    ],
    "lu_factor": lambda A, b: lu._factored(A, True, None),
    "factored": lambda A, b: [
        solving._solved_again(A, b, *solving._solved(A, b, True, False, None)[1:3], adjoint)
        for adjoint in (False, True)
    ],
}


@pytest.mark.sampled(0.3, by="name")
@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("turned", [False, True])
@silent
def test_batches_have_the_bits_of_single_matrices(name: str, turned: bool) -> None:
    rng = np.random.default_rng(0)
    for size in thinned((3, 1, 2, 4), 2):
        dtype = np.float32 if size == 3 else np.float64
        A = rng.standard_normal((40, size, size)).astype(dtype)
        b = rng.standard_normal((40, size, min(size, 3))).astype(dtype)
        A[3], A[4][:, 0], A[5], A[6][0, 0] = 0, np.nan, 1, np.inf
        A[7][-1] = A[7][0]
        A = A.swapaxes(-2, -1) if turned else A
        whole = SAME[name](A, b)
        each = [SAME[name](A[k : k + 1], b[k : k + 1]) for k in range(40)]
        for position, result in enumerate(whole):
            expected = np.concatenate([one[position] for one in each])
            assert result.dtype == expected.dtype
            np.testing.assert_array_equal(result, expected)
            if result.ndim == 3 and size > 1:
                lies = each[0][position]
                is_by_rows = result.strides[-1] == result.itemsize
                assert is_by_rows == (lies.strides[-1] == lies.itemsize)


def test_cofactors_are_the_derivatives_of_the_determinant() -> None:
    rng = np.random.default_rng(1)
    for size in (1, 2, 3, 4):
        A = rng.standard_normal((3, size, size))
        found = determinants._cofactors(A)
        for at in np.ndindex(size, size):
            step = np.zeros((size, size))
            step[at] = 1  # a determinant is linear in each element
            slope = np.linalg.det(A + step) - np.linalg.det(A)
            np.testing.assert_allclose(found[(slice(None), *at)], slope, atol=1e-12)


def test_other_matrices_are_not_written_out() -> None:
    function = Unrolled(formulas.inverse, (2,))
    double = np.dtype(float)

    def call(*shape: int, dtype: Any = double) -> Any:
        return function.call([shape], [dtype], {"checked": None})

    assert call(4, 4) is not None
    assert call(5, 5) is None
    assert call(0, 4, 4) is None
    assert call(0, 0) is None
    assert call(2, 2, dtype=np.dtype(complex)) is None


def test_the_first_matrix_that_failed_is_named() -> None:
    refuse_failed("linalg.inv", np.zeros((2, 2), np.int32))
    with pytest.raises(LinAlgError, match=r"\(Batch element 2\): The diagonal element 3"):
        refuse_failed("linalg.inv", np.array([[0, 0], [3, 1]], np.int32))
