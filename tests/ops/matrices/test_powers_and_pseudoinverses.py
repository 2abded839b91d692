"""Powers, exponentials, pseudoinverses and ranks: beside PyTorch, and by what defines them."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

import numgrad as ng
from tests.ops.matrices.matrix_calls import DTYPES, MatrixCall, close, compare

CALLS = {
    **{
        f"power {n}": MatrixCall(lambda lib, A, n=n: lib.linalg.matrix_power(A, n), "g")
        for n in (0, 1, 2, 3, 4, 5, 7, -1, -2, -3)
    },
    "old power": MatrixCall(lambda lib, A: lib.matrix_power(A, 6), "g"),
    "method power": MatrixCall(lambda lib, A: A.matrix_power(2), "p"),
    "exp": MatrixCall(lambda lib, A: lib.linalg.matrix_exp(A * 0.2), "g"),
    "exp of large": MatrixCall(lambda lib, A: lib.matrix_exp(A - 6 * lib.eye(A.shape[-1])), "g"),
    "method exp": MatrixCall(lambda lib, A: (A * -0.1).matrix_exp(), "p"),
    "pinv": MatrixCall(lambda lib, A: lib.linalg.pinv(A), "g"),
    "pinv of tall": MatrixCall(lambda lib, A: lib.linalg.pinv(A), "m"),
    "pinv of wide": MatrixCall(lambda lib, A: lib.linalg.pinv(A, rtol=1e-4), "w"),
    "pinv of a triangle": MatrixCall(lambda lib, A: lib.linalg.pinv(A, hermitian=True), "p"),
    "pinverse": MatrixCall(lambda lib, A: lib.pinverse(A), "m"),
    "method pinverse": MatrixCall(lambda lib, A: A.pinverse(1e-5), "w"),
}


@pytest.mark.sampled(0.11, by="name")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", CALLS)
def test_values_gradients_dtypes_and_strides_are_pytorchs(torch: Any, name, seed, dtype):
    compare(torch, ng, CALLS[name], seed, dtype)


ARGUMENTS = {
    "one": lambda lib: lib.tensor([[2.0, 0.0], [0.0, 1.0]]),
    "double": lambda lib: lib.tensor([[2.0, 0.0], [0.0, 1.0]], dtype=lib.float64),
    "batch": lambda lib: lib.stack([lib.eye(2) * 2, lib.diag(lib.tensor([2.0, 0.0]))]),
    "int": lambda lib: lib.ones(2, 2, dtype=lib.int64),
    "bool": lambda lib: lib.ones(2, 2, dtype=lib.bool),
    "vector": lambda lib: lib.ones(3),
    "number": lambda lib: lib.tensor(1.0),
    "rectangle": lambda lib: lib.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]]),
    "zeros": lambda lib: lib.zeros(2, 2),
    "nan": lambda lib: lib.full((2, 2), float("nan")),
    "inf in a batch": lambda lib: lib.stack([lib.eye(2), lib.full((2, 2), float("inf"))]),
    "alone": lambda lib: lib.tensor([[-1000.0]]),
    "empty": lambda lib: lib.ones(0, 0),
    "no rows": lambda lib: lib.ones(0, 2),
    "no columns": lambda lib: lib.ones(3, 2, 0),
    "no matrices": lambda lib: lib.ones(0, 3, 3),
    "no tensor": lambda lib: "A",
}
FUNCTIONS = {
    "exp": lambda lib, A: lib.linalg.matrix_exp(A),
    **{
        f"power {n}": lambda lib, A, n=n: lib.linalg.matrix_power(A, n)
        for n in (0, 1, 2, 5, -1, -2, 1.5)
    },
    "pinv": lambda lib, A: lib.linalg.pinv(A),
    "pinv, hermitian": lambda lib, A: lib.linalg.pinv(A, hermitian=True),
    "pinv, rcond": lambda lib, A: lib.linalg.pinv(A, 0.6),
    "pinv, atol": lambda lib, A: lib.linalg.pinv(A, atol=1.5),
    "pinv, both": lambda lib, A: lib.linalg.pinv(A, atol=1.5, rtol=0.9),
    "pinv, one each": lambda lib, A: lib.linalg.pinv(A, atol=lib.tensor([0.1, 1.5])),
    "pinv, a tensor": lambda lib, A: lib.linalg.pinv(A, lib.tensor(0.6)),
    "pinv, complex": lambda lib, A: lib.linalg.pinv(A, atol=lib.tensor(1j)),
    "rank": lambda lib, A: lib.linalg.matrix_rank(A),
    "rank, hermitian": lambda lib, A: lib.linalg.matrix_rank(A, hermitian=True),
    "rank, tol": lambda lib, A: lib.linalg.matrix_rank(A, 1.5),
    "rank, rtol": lambda lib, A: lib.linalg.matrix_rank(A, rtol=0.6),
    "rank, a tensor": lambda lib, A: lib.linalg.matrix_rank(A, lib.tensor(1.5)),
    "rank, complex": lambda lib, A: lib.linalg.matrix_rank(A, rtol=lib.tensor(1j)),
    "rank to floats": lambda lib, A: lib.linalg.matrix_rank(A, out=lib.empty(0)),
    "rank to bools": lambda lib, A: lib.linalg.matrix_rank(A, out=lib.empty(0, dtype=lib.bool)),
    "pinv to an out": lambda lib, A: lib.linalg.pinv(A, out=lib.empty(0)),
    "power to an out": lambda lib, A: lib.linalg.matrix_power(A, 2, out=lib.empty(0)),
    "pinverse": lambda lib, A: lib.pinverse(A),
}


# Of two wrong things PyTorch names the other one, or says the same in other words.
TWICE_WRONG = {("power to an out", "bool"), ("rank to bools", "nan"), ("pinv, atol", "number")}


@pytest.mark.sampled(0.11, by="name")
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("argument", ARGUMENTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_and_refusals_are_pytorchs(torch: Any, name, argument):
    def call(library: Any) -> Any:
        return FUNCTIONS[name](library, ARGUMENTS[argument](library))

    if (name, argument) in TWICE_WRONG:
        return
    try:
        expected = call(torch)
    except (RuntimeError, TypeError, IndexError) as error:
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
    wanted = str(expected).split("\n")[0].split(" - got")[0]  # where keywords have any order
    # PyTorch broadcasts to the tolerances later.
    words = str(caught.value).replace("(Batch element 0): " * ("one each" in name), "")
    assert words.split("\n")[0].split(" - got")[0] == wanted


@pytest.mark.parametrize("scale", [1e-3, 0.5, 3.0, 30.0])
@pytest.mark.parametrize("dtype", [ng.float32, ng.float64, ng.complex64, ng.complex128])
def test_exponentials_are_mpmaths(dtype, scale):
    random = np.random.default_rng(5)
    array = random.standard_normal((4, 4)) * scale / 2
    if dtype.is_complex:
        array = array + 1j * random.standard_normal((4, 4)) * scale / 2
    A = ng.from_numpy(array).to(dtype)
    exact = mpmath.expm(mpmath.matrix(A.numpy().tolist()), method="taylor")
    wanted = np.array(exact.tolist(), complex if dtype.is_complex else float)
    eps = ng.finfo(dtype).eps
    error = np.abs(ng.linalg.matrix_exp(A).numpy() - wanted).max() / np.abs(wanted).max()
    assert error < 200 * eps * max(1.0, scale)


def test_exponentials_of_float16_are_those_of_float32():
    A = ng.tensor([[0.5, 1.0], [-1.0, 0.25]], dtype=ng.float16, requires_grad=True)
    result = ng.linalg.matrix_exp(A)
    wanted = ng.linalg.matrix_exp(A.detach().float())
    assert result.dtype == ng.float16
    np.testing.assert_array_equal(result.detach().numpy(), wanted.half().numpy())
    result.sum().backward()
    assert A.grad.dtype == ng.float16


def test_exponentials_of_a_batch_are_those_of_each():
    scales = np.array([1e-8, 0.1, 1.0, 10.0, 0.0, 100.0])
    array = np.random.default_rng(0).standard_normal((6, 3, 3)) * scales[:, None, None]
    together = ng.linalg.matrix_exp(ng.from_numpy(array)).numpy()
    for matrix, found in zip(array, together, strict=True):
        np.testing.assert_array_equal(found, ng.linalg.matrix_exp(ng.from_numpy(matrix)).numpy())


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 4, 4)])
def test_pseudoinverses_obey_penroses_conditions(shape, rank):
    random = np.random.default_rng(rank)
    *batch, rows, columns = shape
    array = random.standard_normal((*batch, rows, rank)) @ random.standard_normal((rank, columns))
    A = ng.from_numpy(array)
    P = ng.linalg.pinv(A)
    for found, wanted in ((A @ P @ A, A), (P @ A @ P, P), ((A @ P).mT, A @ P), ((P @ A).mT, P @ A)):
        close(found.numpy(), wanted.numpy(), False)
    assert (ng.linalg.matrix_rank(A) == rank).all()


@pytest.mark.parametrize("hermitian", [False, True])
def test_gradients_of_pseudoinverses_of_low_rank_are_those_of_finite_differences(hermitian):
    half = ng.from_numpy(np.random.default_rng(1).standard_normal((4, 2))).requires_grad_()

    def function(half: ng.Tensor) -> ng.Tensor:
        return ng.linalg.pinv(half @ half.mT, rtol=1e-8, hermitian=hermitian)

    assert ng.autograd.gradcheck(function, half)
    assert ng.autograd.gradgradcheck(function, half)


MAPPED = {
    "pinv": lambda A: ng.linalg.pinv(A),
    "pinv with atol": lambda A: ng.linalg.pinv(A @ A.mT, atol=0.1, hermitian=True),
    "rank": lambda A: ng.linalg.matrix_rank(A),
    "rank with rtol": lambda A: ng.linalg.matrix_rank(A, rtol=ng.tensor(0.1)),
    "exp": lambda A: ng.linalg.matrix_exp(A @ A.mT),
    "no power": lambda A: ng.linalg.matrix_power(A @ A.mT, 0),
    "power": lambda A: ng.linalg.matrix_power(A @ A.mT, -3),
}


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("name", MAPPED)
def test_compiled_and_mapped_calls_are_those_of_eager_mode(name):
    A = ng.from_numpy(np.random.default_rng(2).standard_normal((3, 2, 4)))
    wanted = MAPPED[name](A)
    for way in (ng.jit, ng.func.vmap, lambda function: ng.jit(ng.func.vmap(function))):
        found = way(MAPPED[name])(A)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("mapped", [True, False])
def test_a_tolerance_of_each_example_is_mapped(mapped):
    A = ng.eye(2).expand(3, 2, 2) if mapped else ng.eye(2)
    limits = ng.tensor([0.5, 1.5, 0.1])
    pinv = ng.func.vmap(lambda A, t: ng.linalg.pinv(A, atol=t), (0 if mapped else None, 0))
    assert pinv(A, limits).sum((1, 2)).tolist() == [2.0, 0.0, 2.0]
    rank = ng.func.vmap(lambda A, t: ng.linalg.matrix_rank(A, t), (0 if mapped else None, 0))
    assert rank(A, limits).tolist() == [2, 0, 2]
