"""Norms and condition numbers beside PyTorch: orders, dims, dtypes, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from tests.ops.matrices.matrix_calls import DTYPES, MatrixCall, compare, operands

ORDERS: tuple[Any, ...] = ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)
CALLS = {
    **{
        f"matrix_norm {p}": MatrixCall(lambda lib, A, p=p: lib.linalg.matrix_norm(A, p), "g")
        for p in ORDERS
    },
    **{
        f"cond {p}": MatrixCall(lambda lib, A, p=p: lib.linalg.cond(A, p), "g")
        for p in (2, -2, "nuc")
    },
    # PyTorch has no gradient of these: it writes to the inverse that it saved.
    **{
        f"cond {p}": MatrixCall(lambda lib, A, p=p: lib.linalg.cond(A.detach(), p), "g")
        for p in ("fro", 1, -1, math.inf, -math.inf)
    },
    "vector_norm": MatrixCall(lambda lib, A: lib.linalg.vector_norm(A, 3, -1), "g"),
    "cond of a rectangle": MatrixCall(lambda lib, A: lib.linalg.cond(A), "m"),
    "norm of dims": MatrixCall(lambda lib, A: lib.linalg.norm(A, 1, (-1, -2), True), "m"),
    "old norm": MatrixCall(lambda lib, A: lib.norm(A, "nuc", (-1, -2), keepdim=True), "m"),
    "method": MatrixCall(lambda lib, A: A.norm("nuc", (-2, -1)), "w"),
}


# Of what has no elements there is no least: that is below.
FULL = [seed for seed in range(30) if operands(CALLS["vector_norm"], seed, "float32")[0].size][:5]


@pytest.mark.sampled(0.11, by="name")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", FULL)
@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients_are_pytorchs(torch: Any, name, seed, dtype):
    compare(torch, ng, CALLS[name], seed, dtype)


ARGUMENTS = {
    "plain": lambda lib: lib.tensor([[1.0, 2.0], [3.0, 5.0]]),
    "int": lambda lib: lib.ones(2, 2, dtype=lib.int64),
    "vector": lambda lib: lib.ones(3),
    "rectangle": lambda lib: lib.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]]),
    "half": lambda lib: lib.eye(2, dtype=lib.float16),
    "zeros": lambda lib: lib.zeros(2, 2),
    "empty": lambda lib: lib.ones(0, 0),
    "no rows": lambda lib: lib.ones(0, 2),
    "singular in a batch": lambda lib: lib.stack([lib.eye(2), lib.diag(lib.tensor([2.0, 0.0]))]),
}
FUNCTIONS = {
    **{f"matrix_norm {p}": lambda lib, A, p=p: lib.linalg.matrix_norm(A, p) for p in ORDERS},
    **{f"cond {p}": lambda lib, A, p=p: lib.linalg.cond(A, p) for p in (*ORDERS, None)},
    **{f"norm {p}": lambda lib, A, p=p: lib.linalg.norm(A, p) for p in (*ORDERS, None, 0, 3)},
    "order 3": lambda lib, A: lib.linalg.matrix_norm(A, 3),
    "another word": lambda lib, A: lib.linalg.matrix_norm(A, "euclid"),
    "complex order": lambda lib, A: lib.linalg.matrix_norm(A, 1j),
    "order 3 of cond": lambda lib, A: lib.linalg.cond(A, 3),
    "another word of cond": lambda lib, A: lib.linalg.cond(A, "euclid"),
    "one dim twice": lambda lib, A: lib.linalg.matrix_norm(A, 1, (0, -A.ndim)),
    "one dim": lambda lib, A: lib.linalg.matrix_norm(A, "fro", (0,)),
    "three dims": lambda lib, A: lib.linalg.norm(A, 2, (0, 1, 2)),
    "no such dim": lambda lib, A: lib.linalg.matrix_norm(A, "nuc", (0, 7)),
    "double": lambda lib, A: lib.linalg.matrix_norm(A, "nuc", dtype=lib.float64),
    "to an int": lambda lib, A: lib.linalg.matrix_norm(A, 1, dtype=lib.int32),
    "narrower": lambda lib, A: lib.linalg.vector_norm(A.double(), dtype=lib.float32),
    "old nuc": lambda lib, A: lib.norm(A, "nuc"),
    "old fro of three dims": lambda lib, A: lib.norm(A, "fro", (0, 1, 1)),
    "vector 2": lambda lib, A: lib.linalg.vector_norm(A),
    "vector -1": lambda lib, A: lib.linalg.vector_norm(A, -1, keepdim=True),
}


def check(torch: Any, call: Any) -> None:
    """Compare what a call gives, or the error that it raises."""
    try:
        expected = call(torch)
    except (RuntimeError, TypeError, IndexError) as error:
        expected = error
    if not isinstance(expected, Exception):
        found = call(ng)
        assert repr(found.dtype) == repr(expected.dtype)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-4, atol=1e-6)
        return
    with pytest.raises(type(expected)) as caught:
        call(ng)
    assert type(caught.value) is type(expected)
    assert str(caught.value).split("\n")[0] == str(expected).split("\n")[0]


@pytest.mark.sampled(0.11, by="name")
@pytest.mark.parametrize("argument", ARGUMENTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_and_refusals_are_pytorchs(torch: Any, name, argument):
    check(torch, lambda lib: FUNCTIONS[name](lib, ARGUMENTS[argument](lib)))


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int64", "bool", "complex64"])
@pytest.mark.parametrize("p", [2, 1, "fro", "nuc"])
@pytest.mark.parametrize("name", ["norm", "matrix_norm", "cond"])
def test_an_out_takes_the_dtypes_that_pytorchs_takes(torch: Any, name, p, dtype):
    def call(lib: Any) -> Any:
        out = lib.empty(0, dtype=getattr(lib, dtype))
        assert getattr(lib.linalg, name)(ARGUMENTS["plain"](lib), p, out=out) is out
        return out

    check(torch, call)


@pytest.mark.parametrize("p", ORDERS)
def test_condition_numbers_have_the_gradient_of_finite_differences(p):
    A = ng.from_numpy(np.random.default_rng(3).standard_normal((2, 3, 3))).requires_grad_()
    assert ng.autograd.gradcheck(lambda A: ng.linalg.cond(A, p), A)


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("p", ["nuc", "fro", 2, 1, math.inf])
def test_compiled_and_mapped_norms_are_those_of_eager_mode(p):
    A = ng.from_numpy(np.random.default_rng(2).standard_normal((3, 4, 2)))
    wanted = ng.linalg.matrix_norm(A, p)
    for way in (ng.jit, ng.func.vmap):
        found = way(lambda A: ng.linalg.matrix_norm(A, p))(A)
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-12)
