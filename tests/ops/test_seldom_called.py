"""Calls in forms that are seldom used, and those refused there: results and words are PyTorch's.

No test of the families came to the statements that these reach.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import numgrad as ng

# Of all of these, the result, or the class and the first line of the error.
CALLS = """
torch.conj_physical(torch.ones(3), out=torch.zeros(3))
torch.pow(torch.tensor([1, 2]), 2**63)
torch.nan_to_num(torch.tensor([1 + 2j]), out=torch.ones(1))
torch.where(torch.tensor([1, 0]), 1.0, 2.0)
torch.where(torch.tensor([True, False]), torch.ones(2), 1.0, out=torch.ones(2, dtype=torch.float64))
torch.ones(2).to('cpu', torch.float64, False, True)
torch.ones(2).to('cpu', torch.float64, False, True, False)
torch.ones(2).to(torch.ones(2, dtype=torch.int64), False, True)
torch.ones(2).to(torch.float64, False, True)
torch.atleast_1d([torch.tensor(1.0), torch.ones(2)])
torch.atleast_2d((torch.tensor(1.0), torch.ones(2)))
torch.atleast_3d([torch.tensor(1.0), torch.ones(2), torch.ones(2, 2)])
torch.ones(4).unflatten(0, (-1, -1))
torch.tensor(1.0).select(0, 0)
torch.tensor(1.0).narrow(0, 0, 1)
torch.arange(3.0).narrow(0, 0, -1)
torch.arange(3.0).narrow(0, 2, 2)
torch.arange(3.0).narrow(0, -2, 2)
torch.arange(3.0).narrow(0, -2, 3)
torch.arange(3.0).narrow(0, 3, 0)
torch.arange(3.0).narrow(0, -3, 3)
torch.arange(3.0).narrow(0, -4, 1)
torch.arange(3.0).narrow(0, 4, 0)
torch.cat([torch.zeros(0), torch.ones(1, 2, 2, 2).contiguous(memory_format=torch.channels_last)])
torch.zeros(3).__setitem__(0, 'a')
torch.zeros(3).__setitem__(0, [1.0])
torch.zeros(3).__setitem__(slice(None), None)
torch.zeros(3, dtype=torch.complex64).__setitem__(0, np.datetime64(1, 's'))
torch.zeros(1).expand(2).__setitem__(slice(None), 1.0)
torch.zeros(1).expand(2).__setitem__(slice(None), torch.ones(2))
torch.take_along_dim(torch.arange(6).reshape(2, 3), torch.tensor([[-1], [3]]), 1)
torch.take_along_dim(torch.arange(6).reshape(2, 3), torch.tensor([[-1, 2, 0, -3]]), 1)
torch.take_along_dim(torch.arange(6).reshape(2, 3), torch.tensor([[-1, 2, 4, -5]]), 1)
torch.zeros(2, 2).index_copy(0, torch.tensor([0, 1]), torch.ones(2))
torch.zeros(2, 2).index_copy(0, torch.tensor([0]), torch.tensor(1.0))
torch.zeros(2, 2).index_copy(0, torch.tensor([0, 1]), torch.tensor(1.0))
torch.zeros(2, 2, 3).index_copy(0, torch.tensor([0, 1]), torch.ones(2, 3, 2))
torch.zeros(2, 4, 3).index_copy(1, torch.tensor([0, 1]), torch.ones(3, 2, 5))
torch.zeros(2).index_fill(0, torch.tensor([0]), 1j)
torch.zeros(2).index_fill(0, torch.tensor([0]), torch.tensor(1j))
torch.zeros(2).index_fill(0, torch.tensor([[0]]), 1.0)
torch.zeros(2).index_fill(0, torch.tensor([0], dtype=torch.int32), 1.0)
torch.zeros(2).index_fill(0, torch.tensor([0]), torch.ones(1))
torch.zeros(3)['a']
torch.arange(3.0)[['a']]
torch.arange(3.0)[[True, False, True]]
torch.arange(3.0)[[2**63]]
torch.arange(3.0)[[2**64]]
torch.arange(3.0)[[1, 2**64]]
torch.arange(3.0)[[2**63 - 1]]
torch.arange(3.0)[[1.5]]
torch.arange(3.0)[[[1.5, 2]]]
torch.arange(3.0)[[1j]]
torch.arange(3.0)[[2, 1j]]
torch.arange(3.0)[[{}]]
torch.arange(3.0)[[[None]]]
torch.arange(3.0)[[torch.tensor(1)]]
torch.arange(3.0)[[torch.tensor(1.0)]]
torch.arange(3.0)[[torch.tensor(True), 2]]
torch.arange(3.0)[[torch.tensor(2), torch.tensor(1)]]
torch.arange(3.0)[[[torch.tensor(2), torch.tensor(1)]]]
torch.arange(3.0)[[[torch.tensor(2.0), torch.tensor(1)]]]
torch.arange(3.0)[[[torch.tensor(2.5), 1]]]
torch.arange(3.0)[2**63]
torch.arange(3.0)[-(2**63) - 1]
torch.arange(3.0)[-(2**63)]
torch.arange(3.0)[[-1, 0, -3]]
torch.zeros(0)[torch.tensor([0])]
torch.zeros(0, 3)[torch.tensor([], dtype=torch.int64)]
torch.arange(9.0).reshape(3, 3)[torch.tensor([-1, 1]), torch.tensor([-3, 2])]
torch.arange(9.0).reshape(3, 3)[torch.tensor([-1, 1]), torch.tensor([-4, 2])]
torch.zeros(3).index_put((torch.tensor([True, False, True]), torch.tensor([0])), torch.tensor(1.0))
torch.zeros(3).index_put((torch.tensor([0], dtype=torch.int16),), torch.tensor(1.0))
torch.zeros(3).masked_scatter(torch.tensor([True, True, False]), torch.ones(1))
torch.zeros(3).masked_scatter(torch.tensor([True, True, False]), torch.ones(2))
torch.meshgrid(torch.ones(2), torch.ones(2), indexing='zz')
torch.repeat_interleave(torch.tensor(3.0), 2)
torch.repeat_interleave(torch.tensor(3.0), torch.tensor([2]))
torch.repeat_interleave(torch.tensor(3.0), 2, 0)
torch.repeat_interleave(torch.tensor(3.0), 2, -1)
torch.repeat_interleave(torch.tensor(3.0), -2, 0)
torch.repeat_interleave(torch.tensor(3.0), torch.tensor([2]), -1)
torch.repeat_interleave(torch.tensor(3.0), torch.tensor([2, 2]), 1)
torch.unravel_index(torch.tensor([3]), {2})
torch.addbmm(torch.ones(2, 2), torch.ones(1, 2, 2).double(), torch.ones(1, 2, 2).double())
torch.addbmm(torch.ones(2, 2), torch.ones(1, 2, 2).double(), torch.ones(1, 2, 2))
torch.addbmm(torch.ones(2, 2), torch.ones(1, 2, 2), torch.ones(1, 2, 2).double())
torch.addbmm(torch.ones(2, 2), torch.ones(1, 2, 2), torch.ones(2, 2, 2))
torch.addbmm(torch.ones(2, 2), torch.ones(1, 2, 3), torch.ones(1, 2, 2))
torch.addbmm(torch.ones(2, 2), torch.ones(2, 2), torch.ones(1, 2, 2))
torch.addr(torch.arange(6.0).reshape(3, 2).t(), torch.arange(2.0), torch.arange(3.0))
torch.einsum(torch.ones(2), [52])
torch.einsum(torch.ones(2), [-1])
torch.einsum(torch.arange(2.0), [51])
torch.einsum('ijk...->i', torch.ones(2, 2))
torch.einsum('i,i', [torch.ones(2), 3])
torch.einsum('i', 3)
torch.matmul(torch.arange(24.0).reshape(2, 3, 4).transpose(0, 1), torch.arange(4.0))
torch.tensordot(torch.arange(3.0).reshape(3, 1), torch.arange(6.0).reshape(3, 2), ([1], [0]))
torch.tensordot(torch.arange(6.0).reshape(3, 2), torch.arange(3.0).reshape(1, 3), ([0], [0]))
torch.tensordot(torch.ones(2, 2), torch.ones(2, 2), ([0, -2], [0, 1]))
torch.tensordot(torch.ones(2, 2), torch.ones(2, 2), ([0, 1], [1, -1]))
torch.tensordot(torch.ones(2, 2), torch.ones(2, 3), ([0, 1], [0, 1]))
torch.movedim(torch.tensor(1.0), 0, -1)
torch.movedim(torch.tensor(1.0), (0, 0), (0, 0))
torch.var(torch.tensor([1.0, 2.0, 4.0]), correction=0j)
torch.std(torch.ones(3), correction=1j)
torch.mean(torch.zeros(2, 0, dtype=torch.complex64), 1)
torch.any(torch.tensor([[0, 2], [0, 0]], dtype=torch.uint8), 0)
torch.all(torch.tensor([[0, 2], [1, 2]], dtype=torch.uint8), 0)
torch.cholesky_inverse(torch.tensor([[1.0, 0.0], [1.0, 0.0]]))
torch.cholesky_inverse(torch.tensor([[0.0, 1.0], [0.0, 0.0]]), upper=True)
torch.cholesky_inverse(torch.tensor([[[1.0, 0.0], [1.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]]))
torch.linalg.eig(torch.tensor([[1, 2], [3, 4]]))
torch.linalg.eigvals(torch.tensor([[1.0, 0.0], [0.0, 4.0]]), out=torch.zeros(2))
torch.linalg.eigvals(torch.diag(torch.ones(2)), out=torch.zeros(2, dtype=torch.complex64))
torch.linalg.eigvals(torch.diag(torch.ones(2)), out=torch.zeros(2, dtype=torch.complex128))
tuple(torch.linalg.eig(torch.ones(1, 1), out=(torch.zeros(1).cdouble(), torch.zeros(1, 1).cfloat())))
torch.linalg.eig(torch.ones(1, 1), out=(torch.zeros(1).cfloat(), torch.zeros(1, 1)))
torch.linalg.eigh(torch.tensor([[1.0, float('nan')], [0.0, 1.0]]))
torch.linalg.eigh(torch.tensor([[1.0, 0.0], [float('nan'), 1.0]]))
torch.linalg.eigh(torch.tensor([[float('nan')]]))
torch.linalg.eigh(torch.tensor([[[1.0, 0.0], [float('nan'), 1.0]], [[1.0, 0.0], [0.0, 2.0]]]))
torch.linalg.eigvalsh(torch.tensor([[[1.0, 0.0], [float('nan'), 1.0]], [[1.0, 0.0], [0.0, 2.0]]]))
torch.linalg.eigvalsh(torch.tensor([[1.0, float('inf')], [0.0, 1.0]]), UPLO='U')
torch.linalg.eigvalsh(torch.tensor([[1.0, float('inf')], [0.0, 1.0]]), UPLO='L')
torch.linalg.svd(torch.ones(2, 2), driver='gesvd')
torch.linalg.svdvals(torch.zeros(0, 2), driver='gesvd')
torch.linalg.svd(torch.zeros(0, 2).half())
torch.svd(torch.ones(2))
torch.linalg.solve(torch.ones(1, 1), torch.ones(1), left=False)
torch.linalg.solve(torch.ones(2, 2), torch.ones(2), left=False)
torch.triangular_solve(torch.ones(2), torch.diag(torch.ones(2)))
torch.triangular_solve(torch.ones(2, 1), torch.ones(2))
torch.triangular_solve(torch.ones(2, 1).double(), torch.diag(torch.ones(2)))
torch.triangular_solve(torch.ones(2, 1), torch.ones(2, 3))
torch.triangular_solve(torch.ones(3, 1), torch.diag(torch.ones(2)))
torch.cholesky_solve(torch.ones(3, 1), torch.diag(torch.ones(2)))
torch.linalg.vecdot(torch.ones(3), torch.ones(3), out=torch.ones((), dtype=torch.float64))
torch.linalg.vecdot(torch.ones(3), torch.ones(3), out=torch.ones(()))
torch.linalg.vander(torch.tensor(2.0), N=3)
torch.linalg.vander(torch.tensor(2.0))
torch.linalg.vander(torch.arange(3.0))
torch.ones(2, 2, 2, 2).contiguous(memory_format=torch.channels_last).roll(2, 0)
torch.ones(2, 2, 2, 2).contiguous(memory_format=torch.channels_last).roll((1, 2), (0, 1))
torch.ones(2, 2, 2, 2).contiguous(memory_format=torch.channels_last).roll((1, 1), (0, 1))
torch.ones(2, 2, 2, 2).contiguous(memory_format=torch.channels_last).roll(1)
torch.arange(16.0).reshape(2, 2, 2, 2).transpose(1, 3).roll((1, 1), (0, 1))
torch.linalg.cholesky(torch.diag(torch.ones(2)).requires_grad_()).grad_fn(None)
torch.linalg.lu_factor(torch.diag(torch.ones(2)).requires_grad_())[0].grad_fn(None)
torch.linalg.qr(torch.diag(torch.ones(2)).requires_grad_())[0].grad_fn(None, None)
torch.linalg.eig(torch.diag(torch.ones(2)).requires_grad_())[0].grad_fn(None, None)
torch.linalg.eigh(torch.diag(torch.ones(2)).requires_grad_())[0].grad_fn(None, None)
torch.linalg.svd(torch.diag(torch.ones(2)).requires_grad_())[0].grad_fn(None, None, None)
torch.linalg.inv(torch.diag(torch.ones(2)).requires_grad_()).grad_fn(None)
torch.linalg.lstsq(torch.ones(3, 2).requires_grad_(), torch.ones(3, 1))[0].grad_fn(None, None)
torch.ones(3).requires_grad_().kthvalue(1)[0].grad_fn(None)
torch.ones(3).requires_grad_().sort()[0].grad_fn(None)
torch.linalg.eigh(torch.tensor([[2.0, 1j], [-1j, 3.0]]).requires_grad_())[1].real.sum().backward()
torch.linalg.eig(torch.tensor([[2.0, 1j], [-1j, 3.0]]).requires_grad_())[1].imag.sum().backward()
torch.linalg.svd(torch.tensor([[2.0, 1j], [-1j, 3.0]]).requires_grad_())[0].real.sum().backward()
torch.linalg.svd(torch.tensor([[2.0, 1j], [-1j, 3.0]]).requires_grad_())[2].imag.sum().backward()
torch.linalg.svd(torch.tensor([[2.0, 1j], [-1j, 3.0]]).requires_grad_())[0].abs().sum().backward()
"""
# Statements on z, the arange(12.) of shape (3, 4), and r, which requires grad; what is to be seen.
STATEMENTS = """
z[False] = 5.0 -> z
z[True] = 5.0 -> z
z[torch.tensor([0, 1])] = z[1:3] -> z
z[torch.tensor([[0, 1], [1, 0]]).bool()[:1].expand(3, 2)[:, 0]] = 3 -> z
z[[0, 2]] = z[1] -> z
z[0, 0] = 1j -> z
z[[0, 2], ::2] = torch.tensor([[[1.0], [2.0]]]) -> z
z[:, torch.tensor(1)] = torch.tensor(2, dtype=torch.int64) -> z
z[(0, torch.tensor([True, False, True, True]))] = torch.tensor(7, dtype=torch.int64) -> z
z[torch.tensor(0), torch.tensor([True, False, True, True])] = torch.tensor(7) -> z
z[[[0, 1], [1, 2]]] = torch.tensor(7) -> z
z[np.True_, 0] = torch.tensor(7) -> z
w = r * 1; w[torch.tensor([0, 1])] = w[1:3]; w.sum().backward() -> (w, r.grad)
w = r * 1; w[torch.tensor([0, 0])] = z[1:3]; (w * w).sum().backward() -> (w, r.grad)
w = r * 1; w[[0, 1], [0, 1]] = torch.tensor([5.0]); (w * w).sum().backward() -> (w, r.grad)
v = r[0, 0].scatter(0, torch.tensor([0]), torch.tensor([2.0])); v.backward() -> (v, r.grad)
v = z[0].scatter(0, torch.tensor(1), r[0, 1]); (v * v).sum().backward() -> (v, r.grad)
v = r[0, 1].repeat(()); v.backward() -> (v, r.grad)
v = r[0, 1].repeat(2); (v * v).sum().backward() -> (v, r.grad)
"""


def _seen(result: Any) -> Any:
    """Return what can be seen of a result, as something that compares."""
    if isinstance(result, (tuple, list)):
        return [_seen(each) for each in result]
    if not hasattr(result, "stride"):
        return str(result)
    array = result._array if isinstance(result, ng.Tensor) else result.detach().numpy()
    return str(result.dtype), tuple(result.shape), tuple(result.stride()), np.array(array)


def _outcome(library: Any, line: str) -> Any:
    """Return what can be seen of the result of a line, or its error."""
    names: dict[str, Any] = {"torch": library, "np": np}
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
        assert ours[:3] == theirs[:3]
        np.testing.assert_allclose(ours[3], theirs[3], rtol=1e-6)
    else:
        assert ours == theirs


@pytest.mark.parametrize("line", [*CALLS.strip().splitlines(), *STATEMENTS.strip().splitlines()])
def test_a_call_that_is_seldom_made_gives_what_pytorch_gives(torch: Any, line: str) -> None:
    _compare(_outcome(ng, line), _outcome(torch, line))
