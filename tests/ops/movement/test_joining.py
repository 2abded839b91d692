"""Joining and splitting: every call form as PyTorch has it."""

from __future__ import annotations

from types import ModuleType

import pytest

import numgrad as ng
from tests.ops.calls.same_call import assert_same_call, assert_same_error, assert_same_gradients

CALLS = [
    "torch.broadcast_tensors(v,torch.zeros(3,1))",
    "torch.broadcast_tensors(v,v)",
    "torch.cat([v,v])",
    "torch.cat([v,torch.zeros(0)])",
    "torch.concat([v,v])",
    "torch.stack([v,v])",
    "torch.hstack([v,v])",
    "torch.vstack([v,v])",
    "torch.dstack([v,v])",
    "torch.column_stack([v,v])",
    "torch.atleast_1d(v)",
    "torch.atleast_2d(v)",
    "torch.atleast_3d(v)",
    "x.split(2,1)",
    "x.split([1,2],1)",
    "torch.split_with_sizes(x,[1,2],1)",
    "x.chunk(2,1)",
    "v.chunk(2)",
    "x.unbind(0)",
    "x.tensor_split(2,1)",
    "x.tensor_split((1,),1)",
    "x.hsplit(3)",
    "x.vsplit(2)",
    "x.dsplit(2)",
    "torch.meshgrid(v,v,indexing='ij')",
    "torch.cat([v,v],dim=0,out=None)",
    "torch.cat((v,torch.zeros(2,dtype=torch.int64)))",
    "torch.cat([torch.zeros(0),m])",
    "torch.cat([torch.zeros(2),torch.zeros(2)*1j])",
    "torch.stack([v,v],-1)",
    "torch.stack([v,v.double()])",
    "torch.broadcast_tensors()",
    "v[:0].split(0)",
    "v[:0].split(2)",
    "x.chunk(5,1)",
    "v[:0].chunk(3)",
    "x.tensor_split(5,1)",
    "x.tensor_split((1,1,2),1)",
    "x.tensor_split((2,1),1)",
    "x.tensor_split(torch.tensor([1,2]),1)",
    "torch.hstack([torch.tensor(1.),torch.tensor(2.)])",
    "torch.vstack([torch.tensor(1.),torch.tensor(2.)])",
    "torch.meshgrid([v,v],indexing='xy')",
    "torch.meshgrid(v,v.double(),indexing='xy')",
]
ERRORS = [
    "torch.cat([torch.zeros(0,3),m])",
    "torch.broadcast_tensors(v,torch.zeros(3))",
    "torch.cat([])",
    "torch.stack([])",
    "torch.cat([v,m])",
    "torch.cat([m,m[:,:2]],0)",
    "torch.cat([m,m],2)",
    "torch.cat([m,m],-3)",
    "torch.cat(v)",
    "torch.cat(1)",
    "torch.cat([1,v])",
    "torch.cat([torch.tensor(1.),v])",
    "torch.stack([v,m])",
    "torch.stack([v,v],3)",
    "x.split(0,1)",
    "x.split(-1,1)",
    "x.split(2,7)",
    "x.split([1,1],1)",
    "x.split([1,1,1,1],1)",
    "x.split([-1,4],1)",
    "torch.tensor(1.).split(1)",
    "x.chunk(0)",
    "x.chunk(-1)",
    "torch.tensor(1.).chunk(2)",
    "x.unbind(4)",
    "torch.tensor(1.).unbind()",
    "x.tensor_split(0)",
    "torch.tensor(1.).tensor_split(1)",
    "torch.hstack([])",
    "torch.vstack([])",
    "torch.meshgrid(v,v,indexing='q')",
    "torch.meshgrid()",
    "r=m*1; a=r.unbind(0)[0]; a.zero_() -> r",
]
GRADIENTS = [
    "torch.cat([v,v[:2],torch.zeros(0)])",
    "torch.stack([v,v],1)",
    "x.split(2,1)[1]",
    "x.split([1,2],1)[0]",
    "x.unbind(0)[1]",
    "torch.meshgrid(v,v[:3],indexing='xy')[0]",
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


def test_views_of_several_may_not_be_written_to_in_place() -> None:
    x = ng.ones(2, requires_grad=True) * 1
    with pytest.raises(RuntimeError, match="Output 0 of Unbind is a view"):
        x.unbind()[0].zero_()


def test_cat_writes_to_out() -> None:
    out = ng.zeros(3)
    assert ng.cat([ng.ones(1), ng.ones(2)], out=out) is out
    assert out.tolist() == [1, 1, 1]


def test_gradients_of_parts_nobody_used_are_zero() -> None:
    x = ng.ones(5, requires_grad=True)
    x.split([2, 1, 2])[1].sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0, 0, 1, 0, 0]
