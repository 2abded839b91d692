"""Eigenvalues of any matrices beside PyTorch's, by what does not depend on order and phases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numgrad as ng
from tests.ops.matrices.matrix_calls import DTYPES, MatrixCall, compare, compare_outcome, matrix


def _vectors(lib: Any, A: Any) -> Any:
    """Return what a permutation of eigenvalues and the phases of vectors do not change."""
    values, vectors = lib.linalg.eig(A)
    return (vectors * vectors.conj()) @ values[..., None], (values**2).sum(-1)


def _exponential(lib: Any, A: Any) -> Any:
    values, vectors = lib.linalg.eig(A)
    return (vectors * (values / 9).exp()[..., None, :]) @ lib.linalg.inv(vectors)


CALLS = {
    "eigvals": MatrixCall(lambda lib, A: (lib.linalg.eigvals(A) ** 3).sum(-1), "g"),
    "eig": MatrixCall(_vectors, "g"),
    "function of a matrix": MatrixCall(_exponential, "g"),
}


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients_are_pytorchs(torch: Any, name, dtype):
    for seed in range(6):
        compare(torch, ng, CALLS[name], seed, dtype)


OUTCOMES = [
    lambda lib, A=A, name=name: getattr(lib.linalg, name)(A(lib))
    for name in ("eig", "eigvals")
    for A in (
        lambda lib: lib.ones(2, 2, dtype=lib.int64),
        lambda lib: lib.ones(2, 2, dtype=lib.float16),
        lambda lib: lib.ones(3),
        lambda lib: lib.tensor(1.0),
        lambda lib: lib.ones(2, 3),
        lambda lib: lib.ones(0, 0),
        lambda lib: lib.ones(2, 0, 0),
        lambda lib: lib.tensor([[5.0]]),
    )
] + [
    lambda lib: lib.linalg.eig(lib.full((2, 2), float("nan"))),
    lambda lib: lib.linalg.eig(matrix(lib, 2, 2), out=(lib.ones(0), lib.ones(0))),
    lambda lib: lib.linalg.eigvals(matrix(lib, 2, 2), out=lib.ones(0)),
    lambda lib: lib.linalg.eigvals(lib.eye(2), out=lib.ones(0, dtype=lib.complex128)),
]


@pytest.mark.filterwarnings("ignore:ComplexHalf support")
def test_results_and_errors_are_pytorchs(torch: Any):
    for number, call in enumerate(OUTCOMES):
        compare_outcome(torch, ng, call, number)


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("way", ["eager", "again", "jit"])
def test_losses_that_depend_on_phases_are_refused_in_pytorchs_words(torch: Any, way):
    array = np.array([[1.0, 2.0], [-3.0, 1.0]])
    weights = np.array([1 + 2j, 3j])

    def loss(library: Any, A: Any) -> Any:
        return (library.linalg.eig(A)[1] * library.from_numpy(weights)).sum().real

    with pytest.raises(RuntimeError) as expected:
        loss(torch, torch.from_numpy(array).requires_grad_()).backward()
    gradient = ng.func.grad(lambda A: loss(ng, A))
    gradient = ng.jit(gradient) if way == "jit" else gradient
    for _ in range(1 + (way == "again")):
        with pytest.raises(RuntimeError) as found:
            gradient(ng.from_numpy(array))
    assert str(found.value) == str(expected.value)


def test_equal_eigenvalues_have_gradients_where_vectors_do_not_count(torch: Any):
    for library in (ng, torch):
        A = library.eye(3, dtype=library.float64).requires_grad_()
        library.linalg.eigvals(A).sum().real.backward()
        assert A.grad.tolist() == np.eye(3).tolist()
        A = library.eye(2, dtype=library.float64).requires_grad_()
        (library.linalg.eig(A)[1].abs() ** 2)[0].sum().backward()
        assert library.isnan(A.grad).all()


def test_second_derivatives_are_those_of_finite_differences():
    random = np.random.default_rng(3)
    A = ng.from_numpy(random.standard_normal((3, 3)) + np.diag([1.0, 4.0, 9.0])).requires_grad_()
    assert ng.autograd.gradgradcheck(lambda A: (ng.linalg.eigvals(A) ** 2).sum().real, [A])
    assert ng.autograd.gradgradcheck(lambda A: ng.linalg.eig(A)[1].abs(), [A])


def test_vectors_belong_to_values():
    A = ng.from_numpy(np.random.default_rng(0).standard_normal((4, 30, 30)))
    values, vectors = ng.linalg.eig(A)
    np.testing.assert_allclose(
        (A.to(ng.complex128) @ vectors).numpy(), (vectors * values[:, None]).numpy(), atol=1e-12
    )
