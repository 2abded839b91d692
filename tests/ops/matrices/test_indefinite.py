"""LDL factorisations beside PyTorch: pivots, blocks of two, systems, errors, no derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numgrad as ng
from tests.ops.matrices.matrix_calls import DTYPES, compare_outcome, matrix


def drawn(seed: int, dtype: str, hermitian: bool) -> np.ndarray[Any, Any]:
    """Return symmetric or Hermitian matrices with small diagonals, which take blocks of two."""
    random = np.random.default_rng(seed)
    shape = [(3, 3), (2, 6, 6), (9, 9), (1, 1), (2, 3, 4, 4)][seed % 5]
    values: Any = random.standard_normal(shape)
    if dtype.startswith("complex"):
        values = values + 1j * random.standard_normal(shape)
    turned = values.swapaxes(-2, -1)
    whole = values + (turned.conj() if hermitian else turned)
    whole = whole * (1 - np.eye(shape[-1]) * (seed % 3 != 0))
    return np.asarray((whole + np.eye(shape[-1]) * 0.05).astype(dtype))


@pytest.mark.sampled(0.3)  # a factorisation takes two seconds to compile
@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_factors_pivots_and_solutions_are_pytorchs(torch: Any, dtype, hermitian):
    for seed in range(10):
        array = drawn(seed, dtype, hermitian)
        side = np.ones((*array.shape[:-1], 2), dtype)

        def call(lib: Any, array: Any = array, side: Any = side) -> Any:
            A, B = lib.from_numpy(array.copy()), lib.from_numpy(side.copy())
            LD, pivots, info = lib.linalg.ldl_factor_ex(A, hermitian=hermitian)
            return LD, pivots, info, lib.linalg.ldl_solve(LD, pivots, B, hermitian=hermitian)

        compare_outcome(torch, ng, call, seed)
        if dtype in ("float64", "complex128"):
            found = call(ng)[3].numpy()
            np.testing.assert_allclose(array @ found, side, atol=1e-9)


def _solve(change: Any = lambda *operands: operands, **keywords: Any) -> Any:
    def call(lib: Any) -> Any:
        A = lib.tensor([[0.0, 2.0, 1.0], [2.0, 0.0, 3.0], [1.0, 3.0, 0.0]])
        LD, pivots = lib.linalg.ldl_factor(A)
        return lib.linalg.ldl_solve(*change(LD, pivots, matrix(lib, 3, 2)), **keywords)

    return call


OUTCOMES = {
    "ldl_factor": [
        lambda lib, A=A, name=name: getattr(lib.linalg, name)(A(lib))
        for name in ("ldl_factor", "ldl_factor_ex")
        for A in (
            lambda lib: lib.ones(2, 2, dtype=lib.int64),
            lambda lib: lib.ones(2, 2, dtype=lib.float16),
            lambda lib: lib.ones(3),
            lambda lib: lib.ones(2, 3),
            lambda lib: lib.ones(0, 0),
            lambda lib: lib.ones(2, 0, 0),
            lambda lib: lib.eye(3) + 0.1,
        )
    ]
    + [
        lambda lib: lib.linalg.ldl_factor_ex(lib.zeros(3, 3)),
        lambda lib: lib.linalg.ldl_factor_ex(lib.zeros(2, 2, 2)).info,
        lambda lib: lib.linalg.ldl_factor_ex(lib.eye(2).requires_grad_())[0].sum().backward(),
    ],
    "ldl_solve": [
        _solve(),
        _solve(lambda LD, p, B: (LD, p, B[:, 0])),
        _solve(lambda LD, p, B: (LD, p, B[:2])),
        _solve(lambda LD, p, B: (LD, p, B.double())),
        _solve(lambda LD, p, B: (LD, p.long(), B)),
        _solve(lambda LD, p, B: (LD, p.float(), B)),
        _solve(lambda LD, p, B: (LD, p[:2], B)),
        _solve(lambda LD, p, B: (LD, p, B.expand(2, 3, 2))),
        _solve(lambda LD, p, B: (LD.expand(2, 3, 3), p, B)),
        _solve(lambda LD, p, B: (LD[:2], p, B)),
        _solve(lambda LD, p, B: (LD[0], p, B)),
        _solve(lambda LD, p, B: (LD.long(), p, B.long())),
        _solve(lambda LD, p, B: (LD.half(), p, B.half())),
        *[
            _solve(lambda LD, p, B, given=given: (LD, p.new_tensor(given), B))
            for given in ([0, 1, 2], [1, 4, 1], [-9, -9, 1], [-(2**31), 1, 1], [1, 2, 2**31 - 1])
        ],
        _solve(lambda LD, p, B: (LD[:0, :0], p[:0] * 0, B[:0])),
        _solve(lambda LD, p, B: (LD, p * 0, B[:, :0])),
    ],
}


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("name", OUTCOMES)
def test_results_and_errors_are_pytorchs(torch: Any, name):
    for number, call in enumerate(OUTCOMES[name]):
        compare_outcome(torch, ng, call, number)


def test_singular_matrices_are_refused_where_errors_are_checked():
    """PyTorch calls it an unknown error of the library below, and asks for a report."""
    for call in (
        lambda A: ng.linalg.ldl_factor(A),
        lambda A: ng.linalg.ldl_factor_ex(A, check_errors=True),
    ):
        with pytest.raises(RuntimeError, match=r"\(Batch element 1\): D\[1,1\] is zero"):
            call(ng.stack([ng.eye(2), ng.zeros(2, 2)]))


@pytest.mark.parametrize("pivots", [[-1, 2, 3], [1, 2, -3], [-1, -1, -1], [-3, 1, -3]])
def test_half_a_block_is_refused(pivots):
    """PyTorch reads and writes beside the matrix."""
    with pytest.raises(RuntimeError, match="must all stand in pairs where they are negative"):
        ng.linalg.ldl_solve(ng.eye(3), ng.tensor(pivots), ng.ones(3, 1))
