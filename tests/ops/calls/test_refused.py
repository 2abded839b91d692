"""Calls that an operation refuses once it looks at its operands: in PyTorch's class and words.

They are of any family, and no other test came to where they are refused.
"""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.ops.calls.same_call import assert_same_error

LINES = """
torch.view_as_complex(p)
torch.imag(m)
m.tensor_split(torch.ones(2, 2, dtype=torch.int64))
torch.hsplit(m, 3)
torch.cat((m.detach(), m.detach()), out=torch.zeros(0, dtype=torch.int64))
m.unflatten(1, (-1, -1))
m.unflatten(0, ())
m.as_strided_scatter(v, (2,), (1,))
m.div(2, rounding_mode='up')
torch.positive(m > 0)
torch.where(m > 0, m.detach(), 1.0, out=torch.zeros(0, dtype=torch.int64))
m.scatter(0, torch.zeros(1, 4, dtype=torch.int64), m, reduce='x')
torch.index_select(m[:0], 0, torch.tensor([0]))
p.index_select(0, torch.tensor([0, 0]))
m.gather(0, torch.tensor([0]))
m.gather(0, torch.zeros(1, 5, dtype=torch.int64))
torch.take_along_dim(p, torch.tensor(0), 0)
torch.take_along_dim(m[:0], torch.zeros(1, 4, dtype=torch.int64), 0)
m.index_put((1,), p)
torch.unravel_index(torch.tensor([1]), 2.0)
m.kthvalue(9)
torch.kthvalue(m, 0)
torch.aminmax(m[:0], dim=0)
torch.logcumsumexp(m > 0, 0)
torch.nansum(m, dtype=torch.complex64)
torch.linalg.vector_norm(m, 1j)
torch.trace(m > 0)
torch.einsum('i', m)
torch.einsum('ijk', m)
torch.tensordot(m, m, torch.tensor(-1))
torch.baddbmm(x.double(), x[:, :, :3].float(), x.float())
torch.linalg.eig(m[:3, :3] * float('nan'))
torch.linalg.eig(m[:3, :3].half())
torch.linalg.solve(m[:, :3], m[:2])
torch.linalg.solve_triangular(m, m, upper=True)
torch.cholesky_solve(m, m[:2])
"""


@pytest.mark.parametrize("line", LINES.strip().splitlines())
def test_what_is_refused_is_refused_in_pytorchs_words(torch: ModuleType, line: str) -> None:
    assert_same_error(torch, line)
