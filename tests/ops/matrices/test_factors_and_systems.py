"""Cholesky, systems, inverses and determinants beside PyTorch: drawn batches, sizes and dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numgrad as ng
from tests.ops.matrices.matrix_calls import DTYPES, MatrixCall, compare

CALLS = {
    "cholesky": MatrixCall(lambda lib, A: lib.linalg.cholesky(A), "p"),
    "cholesky_upper": MatrixCall(lambda lib, A: lib.linalg.cholesky(A, upper=True), "p"),
    "cholesky_ex": MatrixCall(lambda lib, A: lib.linalg.cholesky_ex(A), "p"),
    "cholesky_solve": MatrixCall(lambda lib, B, L: lib.cholesky_solve(B, lib.tril(L)), "bt"),
    "cholesky_solve_upper": MatrixCall(
        lambda lib, B, L: lib.cholesky_solve(B, lib.tril(L).mT, upper=True), "bt"
    ),
    "cholesky_inverse": MatrixCall(lambda lib, L: lib.cholesky_inverse(lib.tril(L)), "t"),
    "inv": MatrixCall(lambda lib, A: lib.linalg.inv(A), "g"),
    "inv_ex": MatrixCall(lambda lib, A: lib.linalg.inv_ex(A), "g"),
    "inverse": MatrixCall(lambda lib, A: A.inverse(), "g"),
    "det": MatrixCall(lambda lib, A: A.det(), "g"),
    "slogdet": MatrixCall(lambda lib, A: lib.linalg.slogdet(A), "g"),
    "logdet": MatrixCall(lambda lib, A: A.logdet(), "p"),
    "solve": MatrixCall(lambda lib, A, B: lib.linalg.solve(A, B), "gb"),
    "solve_vector": MatrixCall(lambda lib, A, B: lib.linalg.solve(A, B), "gv"),
    "solve_right": MatrixCall(lambda lib, A, B: lib.linalg.solve(A, B.mT, left=False), "gb"),
    "solve_ex": MatrixCall(lambda lib, A, B: lib.linalg.solve_ex(A, B), "gb"),
    "solve_triangular": MatrixCall(
        lambda lib, A, B: lib.linalg.solve_triangular(A, B, upper=False), "gb"
    ),
    "solve_triangular_right": MatrixCall(
        lambda lib, A, B: lib.linalg.solve_triangular(A, B.mT, upper=True, left=False), "gb"
    ),
    "unitriangular": MatrixCall(
        lambda lib, A, B: lib.linalg.solve_triangular(A * 0.1, B, upper=True, unitriangular=True),
        "gb",
    ),
}


@pytest.mark.sampled(0.11, by="name")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", CALLS)
def test_values_gradients_dtypes_and_strides_are_pytorchs(torch: Any, name, seed, dtype):
    compare(torch, ng, CALLS[name], seed, dtype)


ARGUMENTS = {
    "int": lambda lib: lib.ones(2, 2, dtype=lib.int64),
    "vector": lambda lib: lib.ones(3),
    "number": lambda lib: lib.tensor(1.0),
    "rectangle": lambda lib: lib.ones(2, 3),
    "half": lambda lib: lib.eye(2, dtype=lib.float16),
    "bool": lambda lib: lib.ones(2, 2, dtype=lib.bool),
    "singular": lambda lib: lib.ones(2, 2),
    "batch": lambda lib: lib.stack([lib.eye(2), lib.zeros(2, 2), lib.eye(2)]),
    "negative": lambda lib: -lib.eye(2),
    "nan": lambda lib: lib.full((2, 2), float("nan")),
    "no tensor": lambda lib: "A",
}
FUNCTIONS = {
    "cholesky": lambda lib, A: lib.linalg.cholesky(A),
    "inv": lambda lib, A: lib.linalg.inv(A),
    "inv_ex": lambda lib, A: lib.linalg.inv_ex(A, check_errors=True).inverse,
    "info of inv_ex": lambda lib, A: lib.linalg.inv_ex(A).info,
    "info of cholesky_ex": lambda lib, A: lib.linalg.cholesky_ex(A).info,
    "info of solve_ex": lambda lib, A: lib.linalg.solve_ex(A, lib.ones(2)).info,
    "info of one matrix": lambda lib, A: lib.linalg.solve_ex(A, lib.ones(3, 2, 2)).info,
    "info of two": lambda lib, A: lib.linalg.solve_ex(A, lib.ones(2, 1, 2, 2)).info,
    "side of another dtype": lambda lib, A: lib.linalg.solve(A, lib.ones(2, dtype=lib.float64)),
    "inverse": lambda lib, A: lib.inverse(A),
    "det": lambda lib, A: lib.linalg.det(A),
    "slogdet": lambda lib, A: lib.linalg.slogdet(A)[1],
    "sign": lambda lib, A: lib.linalg.slogdet(A)[0],
    "logdet": lambda lib, A: lib.logdet(A),
    "solve": lambda lib, A: lib.linalg.solve(A, lib.ones(2)),
    "solve of two": lambda lib, A: lib.linalg.solve(A, lib.ones(2, 1)),
    "right side": lambda lib, A: lib.linalg.solve(2 * lib.eye(2), A),
    "triangle": lambda lib, A: lib.linalg.solve_triangular(A, lib.ones(2, 1), upper=True),
    "cholesky_solve": lambda lib, A: lib.cholesky_solve(lib.ones(2, 1), A),
    "side of cholesky_solve": lambda lib, A: lib.cholesky_solve(A, lib.eye(2)),
    "cholesky_inverse": lambda lib, A: lib.cholesky_inverse(A),
}


@pytest.mark.sampled(0.11, by="name")
@pytest.mark.parametrize("argument", ARGUMENTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_matrices_are_refused_and_how_is_pytorchs(torch: Any, name, argument):
    def call(library: Any) -> Any:
        return FUNCTIONS[name](library, ARGUMENTS[argument](library))

    try:
        expected = call(torch)
    except (RuntimeError, TypeError) as error:
        expected = error
    if not isinstance(expected, Exception):
        found = call(ng)
        assert repr(found.dtype) == repr(expected.dtype)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)
        return
    kind = type(expected)
    if "LinAlg" in kind.__name__:
        kind = ng.linalg.LinAlgError
    with pytest.raises(kind) as caught:
        call(ng)
    assert type(caught.value) is kind
    assert str(caught.value).split(" but expected")[0] == str(expected).split("\n")[0]


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("name", ["inv", "cholesky", "solve"])
def test_errors_of_compiled_functions_are_those_of_eager_ones(name):
    matrices = ng.zeros(2, 3, 3)
    with pytest.raises(ng.linalg.LinAlgError) as eager:
        FUNCTIONS[name](ng, matrices) if name != "solve" else ng.linalg.solve(matrices, ng.ones(3))
    compiled = ng.jit(
        lambda A: ng.linalg.solve(A, ng.ones(3)) if name == "solve" else FUNCTIONS[name](ng, A)
    )
    compiled(matrices + ng.eye(3))
    with pytest.raises(ng.linalg.LinAlgError) as caught:
        compiled(matrices)
    assert str(caught.value) == str(eager.value)
    assert "(Batch element 0)" in str(caught.value)


@pytest.mark.parametrize("rank", range(4))
def test_determinants_of_singular_matrices_have_the_cofactors_for_gradient(rank):
    random = np.random.default_rng(rank)
    array = random.standard_normal((4, rank)) @ random.standard_normal((rank, 4))
    A = ng.from_numpy(array).requires_grad_()
    A.det().backward()
    for row in range(4):
        for column in range(4):
            minor = np.delete(np.delete(array, row, 0), column, 1)
            cofactor = (-1) ** (row + column) * np.linalg.det(minor)
            np.testing.assert_allclose(A.grad[row, column].item(), cofactor, atol=1e-12)


@pytest.mark.parametrize("size", [1, 15, 16, 17, 31, 33, 70])
def test_sizes_on_both_sides_of_where_the_way_changes(size):
    random = np.random.default_rng(size)
    array = random.standard_normal((2, size, size))
    side = random.standard_normal((2, size, 3))
    A, B = ng.from_numpy(array), ng.from_numpy(side)
    np.testing.assert_allclose(ng.linalg.solve(A, B).numpy(), np.linalg.solve(array, side), 1e-8)
    np.testing.assert_allclose(ng.det(A).numpy(), np.linalg.det(array), 1e-9)
    np.testing.assert_allclose((A @ ng.inverse(A)).numpy(), [np.eye(size)] * 2, atol=1e-8)
    positive = A @ A.mT + ng.eye(size)
    L = ng.linalg.cholesky(positive)
    np.testing.assert_allclose((L @ L.mT).numpy(), positive.numpy(), 1e-9, 1e-9)
    np.testing.assert_allclose((positive @ ng.cholesky_solve(B, L)).numpy(), side, 1e-7, 1e-9)
    info = ng.linalg.cholesky_ex(-ng.from_numpy(np.stack([np.eye(size)] * 2))).info
    assert info.tolist() == [1, 1]


@pytest.mark.usefixtures("traced")
def test_marginal_likelihood_of_a_gaussian_process_and_its_derivatives():
    """Value, gradient and Hessian, eager, compiled and in user's compiled code, beside formulas."""
    random = np.random.default_rng(0)
    points, values = random.standard_normal((12, 2)), random.standard_normal(12)
    x, y = ng.from_numpy(points), ng.from_numpy(values)

    def loss(theta: ng.Tensor) -> ng.Tensor:
        distances = ((x[:, None] - x[None]) ** 2).sum(-1)
        smooth = theta[0].exp() * (-0.5 * theta[1].exp() * distances).exp()
        factor = ng.linalg.cholesky(smooth + theta[2].exp() * ng.eye(12, dtype=ng.float64))
        weights = ng.cholesky_solve(y[:, None], factor)[:, 0]
        return 0.5 * y @ weights + factor.diagonal().log().sum()

    theta = np.array([0.1, 0.2, -1.0])

    def covariance(theta: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        distances = ((points[:, None] - points) ** 2).sum(-1)
        smooth = np.exp(theta[0] - 0.5 * np.exp(theta[1]) * distances)
        return np.asarray(smooth + np.exp(theta[2]) * np.eye(12))

    def reference(theta: np.ndarray[Any, Any]) -> float:
        matrix = covariance(theta)
        size = np.linalg.slogdet(matrix)[1]
        return float(0.5 * values @ np.linalg.solve(matrix, values) + 0.5 * size)

    steps = 1e-5 * np.eye(3)
    slopes = [(reference(theta + s) - reference(theta - s)) / 2e-5 for s in steps]
    both = ng.func.grad_and_value(loss)
    gradient, value = both(ng.from_numpy(theta))
    np.testing.assert_allclose(value.item(), reference(theta), rtol=1e-12)
    np.testing.assert_allclose(gradient.numpy(), slopes, rtol=1e-7)
    hessian = ng.func.hessian(loss)(ng.from_numpy(theta)).numpy()
    rows = [
        (
            ng.func.grad(loss)(ng.from_numpy(theta + s))
            - ng.func.grad(loss)(ng.from_numpy(theta - s))
        )
        / 2e-5
        for s in steps
    ]
    np.testing.assert_allclose(hessian, [row.numpy() for row in rows], rtol=1e-6, atol=1e-7)
    compiled = ng.jit(both)
    for found, wanted in zip(compiled(ng.from_numpy(theta)), (gradient, value), strict=True):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-12)
    dispatcher = compiled.lower(ng.from_numpy(theta)).dispatcher
    found = dispatcher(theta)
    np.testing.assert_allclose(found[0], gradient.numpy(), rtol=1e-12)


@pytest.mark.parametrize("dtype", [ng.float32, ng.float64, ng.complex64, ng.complex128])
@pytest.mark.parametrize("size", [1, 2, 3, 70])
def test_systems_without_a_solution_have_infinite_ones_and_no_errors(size, dtype):
    """Triangular systems look at no number, and rules of singular matrices solve such systems."""
    matrix = ng.eye(size, dtype=dtype)
    matrix[size // 2, size // 2] = 0
    found = ng.linalg.solve_triangular(matrix, ng.ones(size, 1, dtype=dtype), upper=True)
    finite = ng.isfinite(found.real).flatten().tolist()
    assert finite == [row > size // 2 for row in range(size)]  # 0 times an infinite one is nan
    singular = ng.ones(size, size, dtype=dtype) * (size > 1)
    operand = singular.clone().requires_grad_()
    sign, logarithm = ng.linalg.slogdet(operand)
    assert abs(sign.item()) == 0 and logarithm.item() == -ng.inf
    (gradient,) = ng.autograd.grad(logarithm, operand)
    assert not ng.isfinite(gradient.real).any()
    for name, operands in (("inv_ex", (singular,)), ("solve_ex", (singular, singular))):
        assert getattr(ng.linalg, name)(*operands)[1].item() == min(size, 2)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("size", [2, 3, 5, 6])
def test_gradients_of_determinants_are_cofactors_of_matrices_of_any_rank(size, dtype):
    """In a batch with a regular matrix and, where determinants are not written out, one of nan."""
    random = np.random.default_rng(size)
    A = random.standard_normal((size + 1, size, size)).astype(dtype)
    for rank in range(size):  # the last one is regular
        A[rank] = A[rank, :, :rank] @ A[rank, :rank]
    minors = np.zeros_like(A)
    for i, j in np.ndindex(size, size):
        minor = np.delete(np.delete(A, i, 1), j, 2)
        minors[:, i, j] = (-1) ** (i + j) * np.linalg.det(minor)
    x = ng.from_numpy(A).requires_grad_()
    (found,) = ng.autograd.grad(ng.linalg.det(x).real.sum(), x)
    np.testing.assert_allclose(found.numpy(), minors.conj(), rtol=1e-9, atol=1e-11)
    broken = A.copy()
    broken[0, 0, 0] = np.nan
    x = ng.from_numpy(broken).requires_grad_()
    (beside,) = ng.autograd.grad(ng.linalg.det(x).real.sum(), x)
    np.testing.assert_allclose(beside.numpy()[1:], minors[1:].conj(), rtol=1e-9, atol=1e-11)
    assert size < 5 or np.isnan(beside.numpy()[0]).all()
