"""Chains of products, vectors along dims, powers, tensors as matrices, older names, by PyTorch."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from tests.ops.matrices.matrix_calls import DTYPES, MatrixCall, compare, compare_outcome, matrix

CALLS = {
    "multi_dot": MatrixCall(lambda lib, A, B: lib.linalg.multi_dot([A, A, B]), "gb"),
    "chain_matmul": MatrixCall(lambda lib, A, B: lib.chain_matmul(A, A, B), "gb"),
    "vecdot": MatrixCall(lambda lib, A, B: lib.linalg.vecdot(A, B), "vv"),
    "vecdot along another dim": MatrixCall(lambda lib, A, B: lib.linalg.vecdot(A, B, dim=-2), "gg"),
    "matmul": MatrixCall(lambda lib, A, B: lib.linalg.matmul(A, B), "gb"),
    "linalg.vander": MatrixCall(lambda lib, A: lib.linalg.vander(A, N=4), "v"),
    "linalg.diagonal": MatrixCall(lambda lib, A: lib.linalg.diagonal(A), "w"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CALLS)
def test_values_gradients_dtypes_and_strides_are_pytorchs(torch: Any, name, dtype):
    seeds = range(0, 16, 4) if name in ("multi_dot", "chain_matmul") else range(6)
    for seed in seeds:
        compare(torch, ng, CALLS[name], seed, dtype)


def _m(lib: Any, *shape: int, **keywords: Any) -> Any:
    return matrix(lib, *shape, **keywords)


OUTCOMES = {
    "multi_dot": [
        lambda lib, shapes=shapes: lib.linalg.multi_dot([_m(lib, *shape) for shape in shapes])
        for shapes in (
            [],
            [(2, 2)],
            [(2, 3), (3, 2)],
            [(3,), (3, 2)],
            [(3,), (3,)],
            [(3,), (3, 2), (2,)],
            [(1, 2, 3), (3, 2)],
            [(2, 3), (3,), (3, 2)],
            [(2, 3), (3, 2), (1, 2, 2)],
            [(2, 3), (2, 3)],
            [(2, 3), (3, 2), (3, 2)],
            [(2, 3), (3, 4), (4, 2), (2, 5)],
            [(9, 2), (2, 7), (7, 1), (1, 8), (8, 3)],
        )
    ]
    + [
        lambda lib: lib.linalg.multi_dot([_m(lib, 2, 2), _m(lib, 2, 2).double()]),
        lambda lib: lib.linalg.multi_dot([lib.ones(2, 2, dtype=lib.int64)] * 3),
        lambda lib: lib.linalg.multi_dot([_m(lib, 2, 2)] * 3, out=lib.ones(0).double()),
        lambda lib: lib.linalg.multi_dot([_m(lib, 2, 2)] * 3, out=lib.ones(0)),
        lambda lib: lib.chain_matmul(),
        lambda lib: lib.chain_matmul(_m(lib, 2, 2)),
        lambda lib: lib.chain_matmul(_m(lib, 2), _m(lib, 2, 2)),
        lambda lib: lib.chain_matmul(_m(lib, 2, 3), _m(lib, 3, 4), _m(lib, 4, 2), out=lib.ones(0)),
    ],
    "vecdot": [
        lambda lib, x=x, y=y, keywords=keywords: lib.linalg.vecdot(x(lib), y(lib), **keywords)
        for x, y, keywords in (
            (lambda lib: _m(lib, 2, 3), lambda lib: _m(lib, 4, 1, 3), {}),
            (lambda lib: _m(lib, 2, 3), lambda lib: _m(lib, 2), {}),
            (lambda lib: _m(lib, 3), lambda lib: _m(lib, 3).double(), {}),
            (lambda lib: _m(lib, 3).long(), lambda lib: _m(lib, 3).long(), {}),
            (lambda lib: lib.tensor(2.0), lambda lib: lib.tensor(2.0), {}),
            (lambda lib: _m(lib, 3).half(), lambda lib: _m(lib, 3).half(), {}),
            (lambda lib: _m(lib, 2, 3), lambda lib: _m(lib, 2, 3), {"dim": 9}),
            (lambda lib: _m(lib, 2, 3), lambda lib: _m(lib, 2, 3), {"dim": 0}),
        )
    ]
    + [lambda lib: lib.linalg.vecdot(_m(lib, 3), _m(lib, 3), out=lib.ones(0).double())],
    "cross": [
        lambda lib, f=f, one=one, other=other: f(lib)(_m(lib, *one), _m(lib, *other))
        for f in (lambda lib: lib.linalg.cross, lambda lib: lib.cross)
        for one, other in (
            ((3,), (3,)),
            ((2, 3), (1, 3)),
            ((2, 3), (3,)),
            ((2, 2), (2, 2)),
            ((0, 3), (0, 3)),
            ((4, 1, 3), (1, 5, 3)),
            ((1,), (3,)),
            ((3, 2), (2, 2)),
            ((), ()),
        )
    ]
    + [
        lambda lib: lib.linalg.cross(_m(lib, 3), _m(lib, 3).double()),
        lambda lib: lib.linalg.cross(_m(lib, 3).long(), _m(lib, 3).long()),
        lambda lib: lib.linalg.cross(_m(lib, 3).bool(), _m(lib, 3).bool()),
        lambda lib: lib.linalg.cross(_m(lib, 3).half(), _m(lib, 3).half() * 2),
        lambda lib: lib.linalg.cross(_m(lib, 3, 2), _m(lib, 3, 2), dim=9),
        lambda lib: lib.cross(_m(lib, 3, 2), 2 * _m(lib, 3, 2) + 1, dim=1),
        lambda lib: lib.cross(_m(lib, 3, 2), 2 * _m(lib, 3, 2) + 1),
        lambda lib: lib.linalg.cross(_m(lib, 3, 4).mT, 1 - _m(lib, 3, 4).mT),
        lambda lib: lib.linalg.cross(_m(lib, 3), _m(lib, 3), out=lib.ones(0).double()),
    ],
    "tensorinv": [
        lambda lib, shape=shape, ind=ind: lib.linalg.tensorinv(_tensor(lib, shape), ind)
        for shape, ind in (
            ((2, 3, 3, 2), 2),
            ((6, 2, 3), 1),
            ((6, 2, 3), 0),
            ((6, 2, 3), -1),
            ((5, 2, 3), 1),
            ((2, 2), 5),
            ((2, 2), 2),
        )
    ]
    + [
        lambda lib: lib.linalg.tensorinv(lib.zeros(4, 2, 2), ind=1),
        lambda lib: lib.linalg.tensorinv(lib.ones(4, 2, 2, dtype=lib.int64), ind=1),
        lambda lib: lib.linalg.tensorinv(_tensor(lib, (4, 2, 2)), 1, out=lib.ones(0).double()),
    ],
    "tensorsolve": [
        lambda lib, shape=shape, side=side, dims=dims: lib.linalg.tensorsolve(
            _tensor(lib, shape), _m(lib, *side), dims
        )
        for shape, side, dims in (
            ((2, 3, 6), (2, 3), None),
            ((6, 2, 3), (2, 3), (0,)),
            ((6, 2, 3), (2, 3), (-3,)),
            ((6, 2, 3), (2, 3), (0, 0)),
            ((6, 2, 3), (2, 3), (9,)),
            ((2, 3, 5), (2, 3), None),
        )
    ]
    + [
        lambda lib: lib.linalg.tensorsolve(lib.zeros(2, 3, 6), _m(lib, 2, 3)),
        lambda lib: lib.linalg.tensorsolve(_m(lib, 2, 3, 6), _m(lib, 3, 2)),
        lambda lib: lib.linalg.tensorsolve(_m(lib, 2, 3, 6), _m(lib, 3, 3)),
        lambda lib: lib.linalg.tensorsolve(_tensor(lib, (2, 3, 6)), _m(lib, 2, 3).double()),
    ],
    "vander": [
        lambda lib, f=f, x=x: f(lib)(x(lib))
        for f in (lambda lib: lib.linalg.vander, lambda lib: lib.vander)
        for x in (
            lambda lib: _m(lib, 3),
            lambda lib: _m(lib, 2, 3),
            lambda lib: lib.tensor([2, 3]),
            lambda lib: lib.tensor([2, 3], dtype=lib.uint8),
            lambda lib: lib.tensor([True]),
            lambda lib: lib.tensor([2.0, 0.5], dtype=lib.float16),
            lambda lib: lib.tensor(2.0),
            lambda lib: lib.ones(0),
            lambda lib: lib.tensor([1 + 2j, 3j]),
        )
    ]
    + [
        lambda lib, N=N, f=f: f(lib)(_m(lib, 3), N=N)
        for N in (-1, 0, 1, 2, 5)
        for f in (lambda lib: lib.linalg.vander, lambda lib: lib.vander)
    ]
    + [
        lambda lib: lib.vander(_m(lib, 3), 2, True),
        lambda lib: lib.linalg.vander(_m(lib, 3), 2),
    ],
    "diagonal": [
        lambda lib: lib.linalg.diagonal(_m(lib, 2, 3, 4), offset=1, dim1=0, dim2=1),
        lambda lib: lib.linalg.diagonal(_m(lib, 3)),
        lambda lib: lib.linalg.matmul(_m(lib, 2, 3), _m(lib, 3)),
        lambda lib: lib.linalg.matmul(_m(lib, 2, 3), _m(lib, 2)),
    ],
    "older norms": [
        lambda lib: lib.frobenius_norm(_m(lib, 2, 3), 1),
        lambda lib: lib.frobenius_norm(_m(lib, 2, 3), [0, 1], True),
        lambda lib: lib.frobenius_norm(_m(lib, 2, 3)),
        lambda lib: lib.frobenius_norm(_m(lib, 2, 3), []),
        lambda lib: lib.frobenius_norm(_m(lib, 2, 3, 4), [0, 1, 2]),
        lambda lib: lib.frobenius_norm(_m(lib, 2, 2).long(), [0, 1]),
    ],
    "no more": [
        lambda lib: lib.eig(lib.eye(2)),
        lambda lib: lib.eye(2).eig(),
        lambda lib: lib.symeig(lib.eye(2)),
        lambda lib: lib.eye(2).symeig(),
        lambda lib: lib.solve(lib.eye(2), lib.eye(2)),
        lambda lib: lib.eye(2).solve(lib.eye(2)),
        lambda lib: lib.lstsq(lib.eye(2), lib.eye(2)),
        lambda lib: lib.eye(2).lstsq(lib.eye(2)),
        lambda lib: lib.matrix_rank(lib.eye(2)),
    ],
}


def _tensor(lib: Any, shape: tuple[int, ...]) -> Any:
    """Return a tensor that is a well conditioned matrix if it is square."""
    count = int(np.prod(shape))
    side = int(count**0.5)
    if side * side == count:
        return _m(lib, side, side).reshape(shape)
    return _m(lib, count).reshape(shape)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OUTCOMES)
def test_results_and_errors_are_pytorchs(torch: Any, name):
    for number, call in enumerate(OUTCOMES[name]):
        compare_outcome(torch, ng, call, number)


@pytest.mark.parametrize("name", ["eig", "symeig", "solve", "lstsq", "matrix_rank"])
def test_what_is_no_more_says_all_that_pytorch_says(torch: Any, name):
    operands = [ng.eye(2)] * (2 if name in ("solve", "lstsq") else 1)
    with pytest.raises(RuntimeError) as expected:
        getattr(torch, name)(*[torch.eye(2) for _ in operands])
    with pytest.raises(RuntimeError) as found:
        getattr(ng, name)(*operands)
    assert str(found.value) == str(expected.value)


def work_done(node: Any) -> int:
    """Return how many numbers the products multiply that the graph of a result is made of."""
    own = 0
    if node.name().startswith("MmBackward"):
        (rows, inner), columns = node._saved_self.shape, node._saved_mat2.shape[1]
        own = rows * inner * columns
    return own + sum(work_done(each) for each, _ in node.next_functions if each is not None)


def test_chains_are_multiplied_with_the_least_work():
    random = np.random.default_rng(0)
    for count in (3, 3, 4, 4, 5, 5, 6):
        sizes = random.integers(1, 12, count + 1).tolist()

        def least(first: int, last: int, sizes: list[int] = sizes) -> int:
            if first == last:
                return 0
            ends = sizes[first] * sizes[last + 1]
            cuts = range(first, last)
            return min(least(first, c) + least(c + 1, last) + ends * sizes[c + 1] for c in cuts)

        arrays = [random.standard_normal(pair) for pair in itertools.pairwise(sizes)]
        found = ng.linalg.multi_dot([ng.tensor(each, requires_grad=True) for each in arrays])
        assert work_done(found.grad_fn) == least(0, count - 1), sizes
        np.testing.assert_allclose(found.numpy(force=True), np.linalg.multi_dot(arrays), rtol=1e-9)
