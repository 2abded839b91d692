"""Casts, copies and fills: every call form as PyTorch has it."""

from __future__ import annotations

import re
import warnings
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from tests.ops.calls.same_call import assert_same_call, assert_same_error, assert_same_gradients

CALLS = [
    "m.t().contiguous()",
    "m.contiguous()",
    "v.clone()",
    "x.mT.clone()",
    "v.detach()",
    "v.double()",
    "v.float()",
    "v.to(torch.float64)",
    "v.to('cpu')",
    "v.to(v)",
    "v.to(torch.complex64)",
    "v.to(torch.int64)",
    "v.type(torch.float64)",
    "v.type_as(torch.zeros(1,dtype=torch.float64))",
    "v.int()",
    "m.scatter(0,torch.zeros(1,4,dtype=torch.int64),m.double())",
    "m.scatter_add(0,torch.zeros(1,4,dtype=torch.int64),m.double())",
    "m.masked_scatter(m<9,v.double().repeat(9))",
    "m.index_add(0,torch.tensor([0]),m[:1].double())",
    "v.to(torch.float32,copy=True)",
    "v.to(float)",
    "v.to('cpu',torch.float64)",
    "v.type()",
    "v.type('torch.DoubleTensor')",
    "v.to(dtype=torch.float64)",
    "v.to(device='cpu')",
    "torch.zeros(3,4).t().to(torch.float64)",
    "torch.zeros(3,1).expand(3,4).clone()",
    "torch.zeros(3,1).expand(3,4).to(torch.float64)",
    "torch.zeros(3,4)[:, ::2].clone()",
    "torch.zeros(3,4).t()[:, ::2].clone()",
    "m.sum_to_size(1,4)",
    "m.sum_to_size(3,4)",
    "torch.zeros(3,dtype=torch.int32).sum_to_size(1).dtype",
    "r=v.clone(); r.copy_(v) -> r",
    "r=v.clone(); r.copy_(torch.zeros(5)) -> r",
    "r=torch.zeros(5); r.copy_(v) -> r",
    "r=torch.zeros(5); r.copy_(3) -> r",
    "r=torch.zeros(5); r.copy_(torch.zeros(5)*1j) -> r",
    "r=v.clone(); r.fill_(2.) -> r",
    "r=v.clone(); r.fill_(v[0]) -> r",
    "r=v.clone(); r.zero_() -> r",
    "r=v.clone(); r.masked_fill_(v>0,1.) -> r",
    "r=v.clone(); r.masked_fill_(v>0,v[0]) -> r",
    "r=v.clone(); r[0]=1. -> r",
    "r=v.clone(); r[[0,1]]=1. -> r",
    "r=v.clone(); r[[0,1]]=v[:2] -> r",
    "r=v.clone(); r[v>0]=1. -> r",
    "r=v.clone(); r[...]=1. -> r",
    "r=v.clone(); r[:]=v -> r",
    "r=v.clone(); r[[0,1]]=v[:2].double() -> r",
    "r=v.clone(); r[0:2]=v[:2].double() -> r",
    "m.detach()[0]=1 -> m",
    "r=m.detach(); r[0]=1 -> m._version",
    "r=m*1; a=r.view(-1); r.zero_() -> a",
    "r=m*1; a=r[0]; r.fill_(2.) -> a",
    "r=m*1; a=r[0]; a.copy_(v[:4]) -> r",
    "r=m*1; r.masked_fill_(m>0,v[0]) -> r",
    "r=m*1; r.index_fill_(0,torch.tensor([0]),2.) -> r",
    "r=m*1; r.index_copy_(0,torch.tensor([0]),m[:1]) -> r",
]
ERRORS = [
    "m.masked_select(m.double())",
    "v.type('torch.FooTensor')",
    "m.sum_to_size(3)",
    "r=torch.zeros(5); r.copy_(torch.zeros(3)) -> r",
    "r=torch.zeros(5); r.copy_(torch.zeros(2,5)) -> r",
    "r=v.clone(); r.fill_(v) -> r",
    "r=v.clone(); r.masked_fill_(v>0,v) -> r",
    "r=v.clone(); r.masked_fill(v.int(),1.) -> r",
    "r=v.clone(); r.masked_fill(v>0,1j) -> r",
    "r=v.clone(); r[[0,1]]=v[:3] -> r",
    "r=v.clone(); r[0:2]=v[:3] -> r",
    "r=v.clone(); r[0:2]=1j -> r",
    "r=m.clone(); r.index_put_((torch.tensor([0]),),torch.tensor(1.)) -> r",
]
GRADIENTS = [
    "m.to(torch.float64)",
    "r=m*1; a=r[0]; a.copy_(v[:4]); a.mul_(v[:4]) -> r*a",
    "r=m*1; a=r.t(); a[0].mul_(v[:3]); a[1:].fill_(v[0]) -> r*r",
    "r=m*1; r.masked_fill_(m>0,v[0]) -> r*r",
]


@pytest.mark.parametrize("line", CALLS)
def test_call_is_pytorchs(torch: ModuleType, line: str) -> None:
    assert_same_call(torch, line)


@pytest.mark.parametrize("line", ERRORS)
def test_error_is_pytorchs(torch: ModuleType, line: str) -> None:
    assert_same_error(torch, line)


@pytest.mark.parametrize("line", GRADIENTS)
def test_gradients_are_pytorchs(torch: ModuleType, line: str) -> None:
    assert_same_gradients(torch, line)


DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


@pytest.mark.sampled(0.14)
@pytest.mark.parametrize("target", DTYPES)
@pytest.mark.parametrize("source", DTYPES)
def test_every_cast_gives_pytorchs_numbers(torch: ModuleType, source: str, target: str) -> None:
    array = np.array([0, 1, 2.5, 100]).astype(source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = torch.from_numpy(array).to(getattr(torch, target))
        ours = ng.from_numpy(array).to(getattr(ng, target))
    assert repr(ours.dtype) == repr(expected.dtype)
    assert ours.tolist() == expected.tolist()


def test_casting_complex_to_real_warns() -> None:
    with pytest.warns(UserWarning, match="discards the imaginary part"):
        ng.ones(2, dtype=ng.complex64).to(ng.float32)


def test_no_warning_where_a_gradient_becomes_real() -> None:
    x = ng.ones(2, requires_grad=True)
    (x * (1 + 1j)).abs().sum().backward()
    assert x.grad is not None
    assert x.grad.dtype is ng.float32


def test_detach_shares_memory_and_version_and_is_no_view() -> None:
    x = ng.ones(2, requires_grad=True)
    detached = x.detach()
    detached[0] = 3
    assert x.tolist() == [3, 1]
    assert x._version == 1
    assert detached._base is None


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_another_device_is_an_error(device: str) -> None:
    with pytest.raises(RuntimeError, match="device must be 'cpu'"):
        ng.ones(1).to(device)


@pytest.mark.parametrize(
    "keywords",
    [{"dtype": "float32"}, {"copy": 3}, {"copy": None}, {"non_blocking": 3}],
    ids=str,
)
def test_what_is_no_dtype_and_no_flag_is_refused(torch: ModuleType, keywords: Any) -> None:
    start = "to() received an invalid combination of arguments"
    for library in (ng, torch):
        with pytest.raises(TypeError, match=re.escape(start)):
            library.ones(2).to(**keywords)


@pytest.mark.parametrize("force", [3, None, "a"])
def test_numpy_is_forced_by_a_bool(torch: ModuleType, force: Any) -> None:
    messages = []
    for library in (ng, torch):
        with pytest.raises(TypeError) as error:
            library.ones(2).numpy(force=force)
        messages.append(str(error.value))
    assert messages[0] == messages[1]
