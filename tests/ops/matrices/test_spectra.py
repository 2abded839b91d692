"""Eigenvalues, singular values and QR beside PyTorch: drawn batches, sizes and dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numgrad as ng
from tests.ops.matrices.matrix_calls import DTYPES, MatrixCall, close, compare


def same_for_all_phases(lib: Any, *vectors: Any) -> Any:
    """Return what vectors determine: their lengths element by element, whichever the phases."""
    return tuple(each * each.conj() for each in vectors)


def hermitian(A: Any) -> Any:
    return A + A.mH


def of_eigh(lib: Any, A: Any, UPLO: str = "L") -> Any:
    values, vectors = lib.linalg.eigh(A, UPLO)
    weights = lib.arange(A.shape[-1], dtype=values.dtype) + 1.0
    product = vectors @ (weights[:, None] * vectors.mH)
    return values, product, *same_for_all_phases(lib, vectors)


def of_svd(lib: Any, A: Any, full: bool, old: bool = False) -> Any:
    if old:
        U, S, V = lib.svd(A, not full)
        Vh = V.mH
    else:
        U, S, Vh = lib.linalg.svd(A, full)
    count = S.shape[-1]
    U, Vh = U[..., :count], Vh[..., :count, :]
    weights = lib.arange(count, dtype=S.dtype) + 1.0
    return S, (U * weights) @ Vh, *same_for_all_phases(lib, U, Vh)


CALLS = {
    "eigh": MatrixCall(lambda lib, A: of_eigh(lib, hermitian(A)), "g"),
    "eigh_of_a_triangle": MatrixCall(of_eigh, "g"),
    "eigh_of_the_upper_triangle": MatrixCall(lambda lib, A: of_eigh(lib, A, "u"), "g"),
    "eigvalsh": MatrixCall(lambda lib, A: lib.linalg.eigvalsh(A), "p"),
    "eigvalsh_upper": MatrixCall(lambda lib, A: lib.linalg.eigvalsh(A, UPLO="U"), "p"),
    "svd": MatrixCall(lambda lib, A: of_svd(lib, A, True), "g"),
    "svd_tall": MatrixCall(lambda lib, A: of_svd(lib, A, True), "m"),
    "svd_wide": MatrixCall(lambda lib, A: of_svd(lib, A, True), "w"),
    "svd_thin": MatrixCall(lambda lib, A: of_svd(lib, A, False), "m"),
    "svd_flat": MatrixCall(lambda lib, A: of_svd(lib, A, False), "w"),
    "svdvals": MatrixCall(lambda lib, A: lib.linalg.svdvals(A), "m"),
    "old_svd": MatrixCall(lambda lib, A: of_svd(lib, A, False, True), "w"),
    "old_svd_full": MatrixCall(lambda lib, A: of_svd(lib, A, True, True), "m"),
    "values_of_old_svd": MatrixCall(lambda lib, A: lib.svd(A, compute_uv=False), "w"),
    "qr": MatrixCall(lambda lib, A: lib.linalg.qr(A), "g"),
    "qr_tall": MatrixCall(lambda lib, A: lib.linalg.qr(A), "m"),
    "qr_wide": MatrixCall(lambda lib, A: lib.linalg.qr(A, "complete"), "w"),
    "qr_r": MatrixCall(lambda lib, A: lib.linalg.qr(A.detach(), mode="r"), "m"),
    "qr_complete": MatrixCall(lambda lib, A: lib.linalg.qr(A.detach(), "complete").R, "m"),
    "old_qr": MatrixCall(lambda lib, A: lib.qr(A), "m"),
}


# PyTorch says so once a process, in whichever test comes first.
@pytest.mark.filterwarnings("ignore:.* is deprecated in favor of")
@pytest.mark.sampled(0.11, by="name")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(8))
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
    "zeros": lambda lib: lib.zeros(2, 2),
    "nan": lambda lib: lib.full((2, 2), float("nan")),
    "nan in a batch": lambda lib: lib.stack([lib.eye(2), lib.full((2, 2), float("nan"))]),
    "inf": lambda lib: lib.full((2, 2), float("inf")),
    "nan alone": lambda lib: lib.full((1, 1), float("nan")),
    "empty": lambda lib: lib.ones(0, 0),
    "no rows": lambda lib: lib.ones(0, 2),
    "no columns": lambda lib: lib.ones(3, 2, 0),
    "no matrices": lambda lib: lib.ones(0, 3, 3),
    "no tensor": lambda lib: "A",
}
FUNCTIONS = {
    "eigenvalues": lambda lib, A: lib.linalg.eigh(A)[0],
    "eigvalsh": lambda lib, A: lib.linalg.eigvalsh(A),
    "singular values": lambda lib, A: lib.linalg.svd(A)[1],
    "svdvals": lambda lib, A: lib.linalg.svdvals(A),
    "left vectors": lambda lib, A: lib.linalg.svd(A)[0].abs().sum(-1).sum(-1) * 0,
    "old singular values": lambda lib, A: lib.svd(A)[1],
    "zeros for vectors": lambda lib, A: lib.svd(A, compute_uv=False)[2],
    "Q": lambda lib, A: lib.linalg.qr(A)[0].abs(),
    "R": lambda lib, A: lib.linalg.qr(A)[1].abs(),
    "whole Q": lambda lib, A: lib.linalg.qr(A, "complete")[0].shape[-2] * lib.ones(1),
    "R alone": lambda lib, A: lib.linalg.qr(A, "r")[1].abs(),
    "no Q": lambda lib, A: lib.linalg.qr(A, "r")[0],
    "another mode": lambda lib, A: lib.linalg.qr(A, "economic"),
    "another triangle": lambda lib, A: lib.linalg.eigh(A, "X"),
    "a driver": lambda lib, A: lib.linalg.svd(A, driver="gesvd")[1],
}


@pytest.mark.sampled(0.11, by="name")
@pytest.mark.parametrize("argument", ARGUMENTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_matrices_are_refused_and_how_is_pytorchs(torch: Any, name, argument):
    def call(library: Any) -> Any:
        return FUNCTIONS[name](library, ARGUMENTS[argument](library))

    if argument in ("nan", "inf") and name not in ("svdvals", "singular values", "eigvalsh"):
        return  # which numbers LAPACK spoils differs between its makers
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
    assert (
        str(caught.value).split(" but expected")[0]
        == str(expected).split("\n")[0].split(" but expected")[0]
    )


LOSSES = {
    "eigh": lambda lib, A: lib.linalg.eigh(A + A.mH)[1],
    "svd, left": lambda lib, A: lib.linalg.svd(A)[0],
    "svd, right": lambda lib, A: lib.linalg.svd(A, False)[2],
    "svd, both": lambda lib, A: lib.linalg.svd(A)[0] + lib.linalg.svd(A)[2].mH * 3,
}


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("way", ["eager", "again", "jit", "vmap"])
@pytest.mark.parametrize("name", LOSSES)
def test_losses_that_depend_on_phases_are_refused_in_pytorchs_words(torch: Any, name, way):
    random = np.random.default_rng(1)
    array = random.standard_normal((3, 3)) + 1j * random.standard_normal((3, 3))
    weights = random.standard_normal((3, 3)) + 1j * random.standard_normal((3, 3))

    def loss(library: Any, A: Any) -> Any:
        return (LOSSES[name](library, A) * library.from_numpy(weights)).sum().real

    with pytest.raises(RuntimeError) as expected:
        loss(torch, torch.from_numpy(array).requires_grad_()).backward()
    gradient = ng.func.grad(lambda A: loss(ng, A))
    if way == "jit":
        gradient = ng.jit(gradient)
    if way == "vmap":
        gradient = ng.func.vmap(gradient)
    for _ in range(4 if way == "again" else 1):
        with pytest.raises(RuntimeError) as caught:
            gradient(ng.from_numpy(array[None] if way == "vmap" else array))
        assert str(caught.value) == str(expected.value)


REFUSED = {
    "r": (lambda lib, A: lib.linalg.qr(A, "r").R, (3, 2)),
    "complete": (lambda lib, A: lib.linalg.qr(A, "complete").R, (3, 2)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_qr_does_not_differentiate_is_what_pytorch_does_not(torch: Any, name):
    function, shape = REFUSED[name]
    with pytest.raises(RuntimeError) as expected:
        function(torch, torch.ones(shape, requires_grad=True)).sum().backward()
    with pytest.raises(RuntimeError) as caught:
        function(ng, ng.ones(shape, requires_grad=True)).sum().backward()
    assert str(caught.value) == str(expected.value)


DEGENERATE = {
    "eigh": lambda lib, A: lib.linalg.eigh(A)[1],
    "eigenvalues": lambda lib, A: lib.linalg.eigh(A)[0],
    "eigvalsh": lambda lib, A: lib.linalg.eigvalsh(A),
    "left": lambda lib, A: lib.linalg.svd(A)[0],
    "right": lambda lib, A: lib.linalg.svd(A)[2],
    "svdvals": lambda lib, A: lib.linalg.svdvals(A),
    "Q": lambda lib, A: lib.linalg.qr(A)[0],
    "R": lambda lib, A: lib.linalg.qr(A)[1],
}


@pytest.mark.parametrize("scale", [0.0, 1.0])
@pytest.mark.parametrize("name", DEGENERATE)
def test_gradients_where_values_are_equal_are_finite_where_pytorchs_are(torch: Any, name, scale):
    found = []
    for library in (torch, ng):
        A = (library.eye(3, dtype=library.float64) * scale).requires_grad_()
        output = DEGENERATE[name](library, A)
        weights = library.arange(output.numel(), dtype=library.float64).reshape(output.shape) + 1
        (output * weights).sum().backward()
        found.append(A.grad.numpy())
    assert np.isfinite(found[0]).all() == np.isfinite(found[1]).all()
    if np.isfinite(found[0]).all() and not name[0].isupper():
        np.testing.assert_allclose(np.linalg.svd(found[1])[1], np.linalg.svd(found[0])[1], 1e-9)


@pytest.mark.parametrize("dtype", [ng.float32, ng.float64, ng.complex64, ng.complex128])
@pytest.mark.parametrize("size", [1, 4, 40])
def test_factors_multiply_to_the_matrix(size, dtype):
    random = np.random.default_rng(size)
    parts = random.standard_normal((2, 3, size + 1, size))
    array = ng.from_numpy(parts[0] + 1j * parts[1]) if dtype.is_complex else ng.tensor(parts[0])
    A = array.to(dtype)
    digits = 1e-4 if dtype in (ng.float32, ng.complex64) else 1e-11

    def same(found: ng.Tensor, wanted: ng.Tensor) -> None:
        close(found.numpy(), wanted.numpy(), digits > 1e-5)

    U, S, Vh = ng.linalg.svd(A, full_matrices=False)
    same((U * S[..., None, :]) @ Vh, A)
    U, S, Vh = ng.linalg.svd(A)
    same(U @ U.mH, ng.eye(size + 1, dtype=dtype).expand(3, -1, -1))
    same(Vh @ Vh.mH, ng.eye(size, dtype=dtype).expand(3, -1, -1))
    for mode in ("reduced", "complete"):
        Q, R = ng.linalg.qr(A, mode)
        same(Q @ R, A)
        same(Q.mH @ Q, ng.eye(Q.shape[-1], dtype=dtype).expand(3, -1, -1))
        assert not ng.tril(R, -1).abs().any()
    H = A.mH @ A
    for UPLO in ("L", "U"):
        values, vectors = ng.linalg.eigh(ng.tril(H) if UPLO == "L" else ng.triu(H), UPLO)
        same((vectors * values[..., None, :]) @ vectors.mH, H)
        same(ng.linalg.eigvalsh(H, UPLO), values)
