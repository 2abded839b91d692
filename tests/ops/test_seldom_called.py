"""Calls in forms that are seldom used, and those refused there: results and words are PyTorch's.

No test of the families came to the statements that these reach.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import numgrad as ng

# Of all of these, the result, or the class and the first line of the error: t is the library, h a
# Hermitian matrix that requires grad, cl channels_last.
CALLS = """
t.conj_physical(t.ones(3), out=t.zeros(3))
t.pow(t.tensor([1, 2]), 2**63)
t.nan_to_num(t.tensor([1 + 2j]), out=t.ones(1))
t.where(t.tensor([1, 0]), 1.0, 2.0)
t.where(t.tensor([True, False]), t.ones(2), 1.0, out=t.ones(2, dtype=t.float64))
t.ones(2).to('cpu', t.float64, False, True)
t.ones(2).to('cpu', t.float64, False, True, False)
t.ones(2).to(t.ones(2, dtype=t.int64), False, True)
t.ones(2).to(t.float64, False, True)
t.atleast_1d([t.tensor(1.0), t.ones(2)])
t.atleast_2d((t.tensor(1.0), t.ones(2)))
t.atleast_3d([t.tensor(1.0), t.ones(2), t.ones(2, 2)])
t.ones(4).unflatten(0, (-1, -1))
t.tensor(1.0).select(0, 0)
t.tensor(1.0).narrow(0, 0, 1)
t.arange(3.0).narrow(0, 0, -1)
t.arange(3.0).narrow(0, 2, 2)
t.arange(3.0).narrow(0, -2, 2)
t.arange(3.0).narrow(0, -2, 3)
t.arange(3.0).narrow(0, 3, 0)
t.arange(3.0).narrow(0, -3, 3)
t.arange(3.0).narrow(0, -4, 1)
t.arange(3.0).narrow(0, 4, 0)
t.cat([t.zeros(0), t.ones(1, 2, 2, 2).contiguous(memory_format=cl)])
t.zeros(3).__setitem__(0, 'a')
t.zeros(3).__setitem__(0, [1.0])
t.zeros(3).__setitem__(slice(None), None)
t.zeros(3, dtype=t.complex64).__setitem__(0, np.datetime64(1, 's'))
t.zeros(1).expand(2).__setitem__(slice(None), 1.0)
t.zeros(1).expand(2).__setitem__(slice(None), t.ones(2))
t.take_along_dim(t.arange(6).reshape(2, 3), t.tensor([[-1], [3]]), 1)
t.take_along_dim(t.arange(6).reshape(2, 3), t.tensor([[-1, 2, 0, -3]]), 1)
t.take_along_dim(t.arange(6).reshape(2, 3), t.tensor([[-1, 2, 4, -5]]), 1)
t.zeros(2, 2).index_copy(0, t.tensor([0, 1]), t.ones(2))
t.zeros(2, 2).index_copy(0, t.tensor([0]), t.tensor(1.0))
t.zeros(2, 2).index_copy(0, t.tensor([0, 1]), t.tensor(1.0))
t.zeros(2, 2, 3).index_copy(0, t.tensor([0, 1]), t.ones(2, 3, 2))
t.zeros(2, 4, 3).index_copy(1, t.tensor([0, 1]), t.ones(3, 2, 5))
t.zeros(2).index_fill(0, t.tensor([0]), 1j)
t.zeros(2).index_fill(0, t.tensor([0]), t.tensor(1j))
t.zeros(2).index_fill(0, t.tensor([[0]]), 1.0)
t.zeros(2).index_fill(0, t.tensor([0], dtype=t.int32), 1.0)
t.zeros(2).index_fill(0, t.tensor([0]), t.ones(1))
t.zeros(3)['a']
t.arange(3.0)[['a']]
t.arange(3.0)[[True, False, True]]
t.arange(3.0)[[2**63]]
t.arange(3.0)[[2**64]]
t.arange(3.0)[[1, 2**64]]
t.arange(3.0)[[2**63 - 1]]
t.arange(3.0)[[1.5]]
t.arange(3.0)[[[1.5, 2]]]
t.arange(3.0)[[1j]]
t.arange(3.0)[[2, 1j]]
t.arange(3.0)[[{}]]
t.arange(3.0)[[[None]]]
t.arange(3.0)[[t.tensor(1)]]
t.arange(3.0)[[t.tensor(1.0)]]
t.arange(3.0)[[t.tensor(True), 2]]
t.arange(3.0)[[t.tensor(2), t.tensor(1)]]
t.arange(3.0)[[[t.tensor(2), t.tensor(1)]]]
t.arange(3.0)[[[t.tensor(2.0), t.tensor(1)]]]
t.arange(3.0)[[[t.tensor(2.5), 1]]]
t.arange(3.0)[2**63]
t.arange(3.0)[-(2**63) - 1]
t.arange(3.0)[-(2**63)]
t.arange(3.0)[[-1, 0, -3]]
t.zeros(0)[t.tensor([0])]
t.zeros(0, 3)[t.tensor([], dtype=t.int64)]
t.arange(9.0).reshape(3, 3)[t.tensor([-1, 1]), t.tensor([-3, 2])]
t.arange(9.0).reshape(3, 3)[t.tensor([-1, 1]), t.tensor([-4, 2])]
t.zeros(3).index_put((t.tensor([True, False, True]), t.tensor([0])), t.tensor(1.0))
t.zeros(3).index_put((t.tensor([0], dtype=t.int16),), t.tensor(1.0))
t.zeros(3).masked_scatter(t.tensor([True, True, False]), t.ones(1))
t.zeros(3).masked_scatter(t.tensor([True, True, False]), t.ones(2))
t.meshgrid(t.ones(2), t.ones(2), indexing='zz')
t.repeat_interleave(t.tensor(3.0), 2)
t.repeat_interleave(t.tensor(3.0), t.tensor([2]))
t.repeat_interleave(t.tensor(3.0), 2, 0)
t.repeat_interleave(t.tensor(3.0), 2, -1)
t.repeat_interleave(t.tensor(3.0), -2, 0)
t.repeat_interleave(t.tensor(3.0), t.tensor([2]), -1)
t.repeat_interleave(t.tensor(3.0), t.tensor([2, 2]), 1)
t.unravel_index(t.tensor([3]), {2})
t.addbmm(t.ones(2, 2), t.ones(1, 2, 2).double(), t.ones(1, 2, 2).double())
t.addbmm(t.ones(2, 2), t.ones(1, 2, 2).double(), t.ones(1, 2, 2))
t.addbmm(t.ones(2, 2), t.ones(1, 2, 2), t.ones(1, 2, 2).double())
t.addbmm(t.ones(2, 2), t.ones(1, 2, 2), t.ones(2, 2, 2))
t.addbmm(t.ones(2, 2), t.ones(1, 2, 3), t.ones(1, 2, 2))
t.addbmm(t.ones(2, 2), t.ones(2, 2), t.ones(1, 2, 2))
t.addr(t.arange(6.0).reshape(3, 2).t(), t.arange(2.0), t.arange(3.0))
t.einsum(t.ones(2), [52])
t.einsum(t.ones(2), [-1])
t.einsum(t.arange(2.0), [51])
t.einsum('ijk...->i', t.ones(2, 2))
t.einsum('i,i', [t.ones(2), 3])
t.einsum('i', 3)
t.matmul(t.arange(24.0).reshape(2, 3, 4).transpose(0, 1), t.arange(4.0))
t.tensordot(t.arange(3.0).reshape(3, 1), t.arange(6.0).reshape(3, 2), ([1], [0]))
t.tensordot(t.arange(6.0).reshape(3, 2), t.arange(3.0).reshape(1, 3), ([0], [0]))
t.tensordot(t.ones(2, 2), t.ones(2, 2), ([0, -2], [0, 1]))
t.tensordot(t.ones(2, 2), t.ones(2, 2), ([0, 1], [1, -1]))
t.tensordot(t.ones(2, 2), t.ones(2, 3), ([0, 1], [0, 1]))
t.movedim(t.tensor(1.0), 0, -1)
t.movedim(t.tensor(1.0), (0, 0), (0, 0))
t.var(t.tensor([1.0, 2.0, 4.0]), correction=0j)
t.std(t.ones(3), correction=1j)
t.mean(t.zeros(2, 0, dtype=t.complex64), 1)
t.any(t.tensor([[0, 2], [0, 0]], dtype=t.uint8), 0)
t.all(t.tensor([[0, 2], [1, 2]], dtype=t.uint8), 0)
t.cholesky_inverse(t.tensor([[1.0, 0.0], [1.0, 0.0]]))
t.cholesky_inverse(t.tensor([[0.0, 1.0], [0.0, 0.0]]), upper=True)
t.cholesky_inverse(t.tensor([[[1.0, 0.0], [1.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]]))
t.linalg.eig(t.tensor([[1, 2], [3, 4]]))
t.linalg.eigvals(t.tensor([[1.0, 0.0], [0.0, 4.0]]), out=t.zeros(2))
t.linalg.eigvals(t.eye(2), out=t.zeros(2, dtype=t.complex64))
t.linalg.eigvals(t.eye(2), out=t.zeros(2, dtype=t.complex128))
tuple(t.linalg.eig(t.ones(1, 1), out=(t.zeros(1).cdouble(), t.zeros(1, 1).cfloat())))
t.linalg.eig(t.ones(1, 1), out=(t.zeros(1).cfloat(), t.zeros(1, 1)))
t.linalg.eigh(t.tensor([[1.0, nan], [0.0, 1.0]]))
t.linalg.eigh(t.tensor([[1.0, 0.0], [nan, 1.0]]))
t.linalg.eigh(t.tensor([[nan]]))
t.linalg.eigh(t.tensor([[[1.0, 0.0], [nan, 1.0]], [[1.0, 0.0], [0.0, 2.0]]]))
t.linalg.eigvalsh(t.tensor([[[1.0, 0.0], [nan, 1.0]], [[1.0, 0.0], [0.0, 2.0]]]))
t.linalg.eigvalsh(t.tensor([[1.0, inf], [0.0, 1.0]]), UPLO='U')
t.linalg.eigvalsh(t.tensor([[1.0, inf], [0.0, 1.0]]), UPLO='L')
t.linalg.svd(t.ones(2, 2), driver='gesvd')
t.linalg.svdvals(t.zeros(0, 2), driver='gesvd')
t.linalg.svd(t.zeros(0, 2).half())
t.svd(t.ones(2))
t.linalg.solve(t.ones(1, 1), t.ones(1), left=False)
t.linalg.solve(t.ones(2, 2), t.ones(2), left=False)
t.triangular_solve(t.ones(2), t.eye(2))
t.triangular_solve(t.ones(2, 1), t.ones(2))
t.triangular_solve(t.ones(2, 1).double(), t.eye(2))
t.triangular_solve(t.ones(2, 1), t.ones(2, 3))
t.triangular_solve(t.ones(3, 1), t.eye(2))
t.cholesky_solve(t.ones(3, 1), t.eye(2))
t.linalg.vecdot(t.ones(3), t.ones(3), out=t.ones((), dtype=t.float64))
t.linalg.vecdot(t.ones(3), t.ones(3), out=t.ones(()))
t.linalg.vander(t.tensor(2.0), N=3)
t.linalg.vander(t.tensor(2.0))
t.linalg.vander(t.arange(3.0))
t.linalg.solve(t.ones(3, 4, 2, 2), t.ones(3, 4, 3, 5))
t.linalg.solve(t.ones(3, 4, 2, 2), t.ones(3, 4, 5, 3), left=False)
t.linalg.solve_triangular(t.ones(3, 4, 2, 2), t.ones(3, 4, 3, 5), upper=True)
t.triangular_solve(t.ones(4, 3, 5), t.ones(4, 2, 2))
t.cholesky_solve(t.ones(4, 3, 5), t.ones(4, 2, 2))
t.linalg.lu_solve(t.ones(4, 2, 2), t.ones(4, 2, dtype=t.int32), t.ones(4, 3, 5))
t.linalg.lu_solve(t.ones(4, 2, 2), t.ones(4, 2, dtype=t.int32), t.ones(4, 5, 3), left=False)
t.linalg.inv(t.ones(4, 2, 3))
t.linalg.det(t.ones(4, 2, 3))
t.linalg.lstsq(t.ones(4, 2, 3), t.ones(4, 3, 2))
t.linalg.lstsq(t.ones(4, 2, 3), t.ones(5, 2, 2))
t.ones(2, 2, 2, 2).contiguous(memory_format=cl).roll(2, 0)
t.ones(2, 2, 2, 2).contiguous(memory_format=cl).roll((1, 2), (0, 1))
t.ones(2, 2, 2, 2).contiguous(memory_format=cl).roll((1, 1), (0, 1))
t.ones(2, 2, 2, 2).contiguous(memory_format=cl).roll(1)
t.arange(16.0).reshape(2, 2, 2, 2).transpose(1, 3).roll((1, 1), (0, 1))
t.linalg.cholesky(t.eye(2).requires_grad_()).grad_fn(None)
t.linalg.lu_factor(t.eye(2).requires_grad_())[0].grad_fn(None)
t.linalg.qr(t.eye(2).requires_grad_())[0].grad_fn(None, None)
t.linalg.eig(t.eye(2).requires_grad_())[0].grad_fn(None, None)
t.linalg.eigh(t.eye(2).requires_grad_())[0].grad_fn(None, None)
t.linalg.svd(t.eye(2).requires_grad_())[0].grad_fn(None, None, None)
t.linalg.inv(t.eye(2).requires_grad_()).grad_fn(None)
t.linalg.lstsq(t.ones(3, 2).requires_grad_(), t.ones(3, 1))[0].grad_fn(None, None)
t.ones(3).requires_grad_().kthvalue(1)[0].grad_fn(None)
t.ones(3).requires_grad_().sort()[0].grad_fn(None)
t.linalg.eigh(h)[1].real.sum().backward()
t.linalg.eig(h)[1].imag.sum().backward()
t.linalg.svd(h)[0].real.sum().backward()
t.linalg.svd(h)[2].imag.sum().backward()
t.linalg.svd(h)[0].abs().sum().backward()
t.full((1,), 1e39j, dtype=t.complex64)
t.full((1,), complex(nan, inf), dtype=t.complex64)
t.linspace(1, complex(0, 1e39), 2, dtype=t.complex64)
t.scalar_tensor(-1e39, dtype=t.complex64)
t.zeros(1, dtype=t.complex64).fill_(1e39)
t.zeros(1, dtype=t.complex64).masked_fill(t.tensor([True]), 1e39)
t.zeros(1, dtype=t.complex64).index_fill(0, t.tensor([0]), 1e39 + 1j)
t.zeros(1, dtype=t.complex64).__setitem__(0, 1e39)
t.nn.functional.pad(t.zeros(1, dtype=t.complex64), (1, 1), value=1e39)
t.where(t.tensor([True]), t.zeros(1, dtype=t.complex64), 1e39)
t.hash_tensor(t.ones(2), dim=None)
t.hash_tensor(t.ones(2, 2), None, keepdim=True)
t.stft(t.ones(8), 4, center=None, return_complex=True, window=t.ones(4))
t.lu(t.eye(2), get_infos=None)
t.nn.functional.max_pool1d(t.ones(1, 1, 4), 2, return_indices=None)
t.nn.functional.max_pool2d(t.ones(1, 1, 4, 4), 2, return_indices=None)
t.nn.functional.adaptive_max_pool1d(t.ones(1, 1, 4), 2, return_indices=None)
t.nn.functional.fractional_max_pool2d(t.ones(1, 3, 3), 2, 2, return_indices=None)
t.nn.functional.conv1d(t.ones(1, 4, 8).double(), t.ones(4, 4, 3).double(), dilation=0)
t.nn.functional.conv1d(t.ones(1, 4, 8).double(), t.ones(4, 4, 9).double(), dilation=0)
t.nn.functional.conv2d(t.ones(1, 4, 8, 8).double(), t.ones(4, 4, 3, 3).double(), dilation=(2, 0))
t.nn.functional.conv2d(t.ones(1, 4, 8, 8).double(), t.ones(4, 3, 3, 3).double(), dilation=0)
t.nn.functional.conv1d(t.ones(1, 2, 8), t.ones(2, 2, 3), t.ones(3), dilation=0)
t.nn.functional.conv1d(t.ones(0, 2, 8).double(), t.ones(2, 2, 3).double(), dilation=0)
t.nn.functional.conv_transpose1d(t.ones(0, 2, 8), t.ones(2, 2, 3), dilation=0)
t.nn.functional.conv_transpose1d(t.ones(1, 2, 8), t.ones(2, 2, 3), dilation=0)
"""
# Statements on z, the arange(12.) of shape (3, 4), and r, which requires grad; what is to be seen.
STATEMENTS = """
z[False] = 5.0 -> z
z[True] = 5.0 -> z
z[t.tensor([0, 1])] = z[1:3] -> z
z[t.tensor([[0, 1], [1, 0]]).bool()[:1].expand(3, 2)[:, 0]] = 3 -> z
z[[0, 2]] = z[1] -> z
z[0, 0] = 1j -> z
z[[0, 2], ::2] = t.tensor([[[1.0], [2.0]]]) -> z
z[:, t.tensor(1)] = t.tensor(2, dtype=t.int64) -> z
z[(0, t.tensor([True, False, True, True]))] = t.tensor(7, dtype=t.int64) -> z
z[t.tensor(0), t.tensor([True, False, True, True])] = t.tensor(7) -> z
z[[[0, 1], [1, 2]]] = t.tensor(7) -> z
z[np.True_, 0] = t.tensor(7) -> z
w = r * 1; w[t.tensor([0, 1])] = w[1:3]; w.sum().backward() -> (w, r.grad)
w = r * 1; w[t.tensor([0, 0])] = z[1:3]; (w * w).sum().backward() -> (w, r.grad)
w = r * 1; w[[0, 1], [0, 1]] = t.tensor([5.0]); (w * w).sum().backward() -> (w, r.grad)
v = r[0, 0].scatter(0, t.tensor([0]), t.tensor([2.0])); v.backward() -> (v, r.grad)
v = z[0].scatter(0, t.tensor(1), r[0, 1]); (v * v).sum().backward() -> (v, r.grad)
v = t.matmul(r.reshape(2, 3, 2).transpose(0, 1), t.arange(2.0)); v.sum().backward() -> (v, r.grad)
v = r[0, 1].repeat(()); v.backward() -> (v, r.grad)
v = r[0, 1].repeat(2); (v * v).sum().backward() -> (v, r.grad)
"""
# With indices or masks i, of shape (1, 3), and v, of shape (2,), of each of these dtypes.
DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float64", "complex64")
INDEXED = """
z.gather(0, i)
t.take_along_dim(z, i, 0)
z.scatter(0, i, z)
z.scatter(0, i, 2.0)
z.scatter_add(0, i, z)
z.scatter_reduce(0, i, z, 'sum')
z.index_select(0, v)
z.index_add(0, v, z[:2])
z.index_copy(0, v, z[:2])
z.index_fill(0, v, 2.0)
z.index_reduce(0, v, z[:2], 'prod')
z.take(v)
z.put(v, t.ones(2))
z.masked_fill(i[:, :1], 2.0)
z.masked_select(i[:, :1])
z.masked_scatter(i[:, :1], z)
t.where(i[:, :1], z, 1.0)
z[v]
z[:2].index_put((v,), t.tensor(2.0))
z[:2].repeat_interleave(v, 0)
z.tensor_split(v)
z.tensor_split(v[0])
z.narrow(0, v[0], 1)
t.unravel_index(v, (2, 2))
"""


def _seen(result: Any) -> Any:
    """Return what can be seen of a result, as something that compares."""
    if isinstance(result, (tuple, list)):
        return [_seen(each) for each in result]
    if not hasattr(result, "stride"):
        return str(result)
    array = result._array if isinstance(result, ng.Tensor) else result.detach().numpy()
    facts = str(result.dtype), tuple(result.shape), tuple(result.stride())
    return *facts, _history(result), np.array(array)


def _history(tensor: Any) -> list[str]:
    """Return the names of the nodes along the first edges."""
    node, found = tensor.grad_fn, []
    while node is not None:
        found.append(node.name().split("::")[-1])
        node = node.next_functions[0][0] if node.next_functions else None
    return found


def _outcome(library: Any, line: str, dtype: str = "int64") -> Any:
    """Return what can be seen of the result of a line, or its error."""
    names: dict[str, Any] = {"t": library, "np": np, "nan": np.nan, "inf": np.inf}
    names |= {"cl": library.channels_last, "h": library.tensor([[2.0, 1j], [-1j, 3.0]])}
    names["h"].requires_grad_()
    for name, shape in (("i", (1, 3)), ("v", (2,))):
        names[name] = library.ones(shape, dtype=getattr(library, dtype))
    names["z"] = library.arange(12.0).reshape(3, 4)
    names["r"] = library.arange(12.0).reshape(3, 4).requires_grad_()
    statements, _, expression = line.rpartition(" -> ")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(statements, names)
            return _seen(eval(expression, names))
        except Exception as error:
            return f"{type(error).__name__.lstrip('_')}: {str(error).splitlines()[0]}"


def _compare(ours: Any, theirs: Any) -> None:
    assert type(ours) is type(theirs)
    if isinstance(ours, list):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            _compare(one, other)
    elif isinstance(ours, tuple):
        assert ours[:-1] == theirs[:-1]
        np.testing.assert_allclose(ours[-1], theirs[-1], rtol=1e-6)
    else:
        assert ours == theirs


@pytest.mark.parametrize("line", [*CALLS.strip().splitlines(), *STATEMENTS.strip().splitlines()])
def test_a_call_that_is_seldom_made_gives_what_pytorch_gives(torch: Any, line: str) -> None:
    _compare(_outcome(ng, line), _outcome(torch, line))


@pytest.mark.parametrize("dtype", DTYPES)
def test_indices_and_masks_are_of_the_dtypes_that_pytorch_takes(torch: Any, dtype: str) -> None:
    for line in INDEXED.strip().splitlines():
        _compare(_outcome(ng, line, dtype), _outcome(torch, line, dtype))
