"""From tensors to NumPy and Python."""

from __future__ import annotations

import numpy as np
import pytest

import numgrad as ng
from tests.ops.expressions import check_same

CONVERSIONS = r"""
torch.ones(2,requires_grad=True).numpy()
torch.ones(2,requires_grad=True).numpy(force=True)
(torch.ones(2,requires_grad=True)*2).numpy()
torch.ones(2,requires_grad=True).__array__()
np.asarray(torch.ones(2,requires_grad=True))
torch.ones(2).__array__(np.float64)
np.asarray(torch.ones(2),dtype='i4')
torch.ones(2).item()
torch.ones(0).item()
torch.ones(1,1).item()
torch.ones(2).tolist()
torch.ones(2,0).tolist()
torch.ones(0,2).tolist()
float(torch.tensor(3.))
float(torch.tensor([3.]))
float(torch.ones(2))
float(torch.tensor(3.,requires_grad=True))
float(torch.tensor([[3.]],requires_grad=True))
float(torch.tensor(1j))
float(torch.tensor(1+0j))
float(torch.tensor(True))
float(torch.ones(0))
int(torch.tensor(3.7))
int(torch.tensor(-3.7))
int(torch.tensor(nan))
int(torch.tensor(inf))
int(torch.tensor([3.],requires_grad=True))
int(torch.ones(2))
int(torch.tensor(1j))
int(torch.tensor(1+0j))
int(torch.tensor(1e30))
complex(torch.tensor(3.))
complex(torch.tensor([1j]))
complex(torch.ones(2))
complex(torch.tensor(True))
bool(torch.tensor(3.))
bool(torch.ones(2))
bool(torch.ones(0))
bool(torch.tensor(0j))
bool(torch.tensor(1j))
bool(torch.tensor(nan))
bool(torch.tensor([0.],requires_grad=True))
[1,2,3][torch.tensor(1)]
[1,2,3][torch.tensor([1])]
[1,2,3][torch.tensor(1.)]
[1,2,3][torch.tensor([1,2])]
[1,2,3][torch.tensor(True)]
range(torch.tensor(True))
hex(torch.tensor(3))
len(torch.tensor(3))
len(torch.ones(3,2))
len(torch.ones(0,2))
list(torch.tensor(3))
list(torch.ones(2,2))
list(torch.ones(0,2))
list(torch.ones(2,2,requires_grad=True))
list(torch.ones(0,2,requires_grad=True))
next(iter(torch.ones(2,2)))
import_array
complex(torch.tensor([3.],requires_grad=True))
float(torch.tensor([3.],requires_grad=True))
bool(torch.tensor([3.],requires_grad=True))
""".strip().splitlines()


@pytest.mark.parametrize("expression", CONVERSIONS)
def test_conversions_as_in_pytorch(torch, expression):
    check_same(torch, expression)


def test_numpy_shares_memory():
    tensor = ng.zeros(2)
    tensor.numpy()[0] = 3
    assert tensor.tolist() == [3.0, 0.0]


def test_numpys_copy_argument_is_obeyed():
    tensor = ng.zeros(2)
    assert np.array(tensor, copy=True).base is not tensor.numpy()
    assert np.shares_memory(np.asarray(tensor), tensor.numpy())
    assert not np.shares_memory(np.array(tensor, copy=True), tensor.numpy())
