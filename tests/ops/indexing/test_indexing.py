"""Brackets, gathering, scattering, masks and order: every call form as PyTorch has it."""

from __future__ import annotations

import itertools
from random import Random
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng
from tests.ops.calls.same_call import assert_same_call, assert_same_error, assert_same_gradients

CALLS = [
    "x[:1].squeeze((0,1))",
    "x[:1].squeeze(0)",
    "x.narrow(1,0,2)",
    "x.select(1,0)",
    "m.gather(0,torch.zeros(1,4,dtype=torch.int64))",
    "m.scatter(0,torch.zeros(1,4,dtype=torch.int64),m)",
    "m.scatter(0,torch.zeros(1,4,dtype=torch.int64),1.0)",
    "m.scatter_add(0,torch.zeros(1,4,dtype=torch.int64),m)",
    "m.index_select(0,torch.tensor([0,0]))",
    "m.take(torch.tensor([0,0]))",
    "torch.take_along_dim(m,torch.tensor([[0,0]]),1)",
    "torch.take_along_dim(m,torch.tensor([0,0]))",
    "m.masked_fill(m>0,0.0)",
    "m.masked_fill(m>0,torch.tensor(1.0))",
    "m.masked_fill(m>0,v[0])",
    "m.masked_select(m>0)",
    "m.masked_scatter(m>0,v.repeat(9))",
    "m.index_add(0,torch.tensor([0]),m[:1])",
    "m.index_copy(0,torch.tensor([0]),m[:1])",
    "m.index_fill(0,torch.tensor([0]),1.0)",
    "m.index_fill(0,torch.tensor([0]),v[0])",
    "m.half().index_fill(0,torch.tensor([0]),torch.tensor(1.5))",
    "m.int().index_fill(0,torch.tensor([0]),torch.tensor(2.5))",
    "m.index_put((torch.tensor([0]),),v[0])",
    "m.index_put((torch.tensor([0]),),v[0],True)",
    "m.index_put((torch.tensor(True),),v[0])",
    "m.index_put((torch.tensor(False),),v[0])",
    "m.index_put((torch.tensor(True),torch.tensor([0])),v[0])",
    "m.index_put((torch.tensor([0]),torch.tensor(1,dtype=torch.uint8)),v[0])",
    "torch.select_scatter(m,v[:4],0,0)",
    "torch.slice_scatter(m,m[:1],0,0,1)",
    "torch.diagonal_scatter(m,v[:3])",
    "torch.as_strided_scatter(m,v[:3],(3,),(1,),0)",
    "m.sort()",
    "m.sort(dim=0)",
    "m.argsort()",
    "m.topk(2)",
    "m.kthvalue(2)",
    "m.nonzero()",
    "m.argwhere()",
    "m[0]",
    "m[0,0]",
    "m[0:1]",
    "m[:]",
    "m[...]",
    "m[None]",
    "m[True]",
    "m[:, None]",
    "m[::2]",
    "m[1:]",
    "m[:,1:]",
    "m[..., 0]",
    "m[torch.tensor(0)]",
    "m[torch.tensor([0,1])]",
    "m[[0,1]]",
    "m[[0,1],[0,1]]",
    "m[[0,1],:2]",
    "m[0,[0,1]]",
    "x[0,:,[0,1]]",
    "x[:,0,[0,1]]",
    "x[[0,1],:,[0,1]]",
    "x[[0,1],None,[0,1]]",
    "m[m>0]",
    "m[torch.tensor([True,False,True])]",
    "x[0,None,torch.tensor(1)]",
    "x[torch.tensor(0),[0,1]]",
    "m[()]",
    "v[range(2)]",
    "v[torch.tensor(True)]",
    "v[torch.tensor(1,dtype=torch.uint8)]",
    "v[torch.tensor([1,0,1,0,1],dtype=torch.uint8)]",
    "v[torch.tensor([0],dtype=torch.int32)]",
    "v[[0.5]]",
    "m[[[0,1],[0,1]]]",
    "m[..., ...]",
    "x[..., 0, :]",
    "x[torch.tensor([[0,1],[1,0]])]",
    "torch.tensor(1.,requires_grad=True)[None]",
    "torch.tensor(1.,requires_grad=True)[...]",
    "torch.tensor(1.,requires_grad=True)[()]",
    "m[[True,False,True]]",
    "m[[slice(0,1)]]",
    "m[[0,slice(0,1)]]",
    "m[True, 0]",
    "m[True, [0,1]]",
    "m[:, [0,1], None]",
    "v[2:1]",
    "v[5:]",
    "v[10:20]",
    "v[-3:-1]",
    "v[:-10]",
    "m.gather(0,torch.zeros(1,4,dtype=torch.int32))",
    "v[0].gather(0,torch.tensor([0]))",
    "v[0].gather(0,torch.tensor(0))",
    "m.index_select(0,torch.tensor(1))",
    "v[0].index_select(0,torch.tensor([0]))",
    "v[0].index_select(0,torch.tensor(0))",
    "m.take(torch.tensor([-1]))",
    "m.take(torch.tensor([[1,2]]))",
    "m.masked_select(torch.zeros(2,3,4)==0)",
    "m.masked_select(torch.tensor(True))",
    "m.index_add(0,torch.tensor([0]),m[:1],alpha=2)",
    "torch.arange(6).index_add(0,torch.tensor([1,1]),torch.tensor([5,5]),alpha=2.5)",
    "(m>0).index_add(0,torch.tensor([0]),m[:1]>0,alpha=3.0)",
    "m.index_fill(0,torch.tensor([-1]),1.0)",
    "m.sort(0,True)",
    "m.sort(descending=True,stable=True)",
    "v[0].sort()",
    "m.topk(2,0,False,False)",
    "v[0].topk(1)",
    "m.argsort(descending=True)",
    "m.msort()",
    "torch.slice_scatter(m,m[:2],0,0,2)",
    "torch.slice_scatter(m,m[:2],step=2)",
    "m.take_along_dim(torch.tensor([[0]]))",
    "torch.nonzero(m)",
    "torch.nonzero(torch.tensor(1.))",
    "torch.argwhere(torch.tensor(1.))",
    "torch.kthvalue(m,1)",
    "v[:1].expand(0)",
    "x.narrow(1,-1,1)",
    "x.narrow(1,torch.tensor(1),1)",
    "v[2:].as_strided((2,),(1,))",
    "v[2:].as_strided((2,),(1,),0)",
    "torch.zeros(3,dtype=torch.int64).masked_fill(torch.tensor(True),1.5)",
    "m.masked_fill(torch.zeros(2,3,4)>0,1.5)",
    "r=torch.zeros(3,dtype=torch.int64); r[0]=1.5; r=r -> r",
    "r=torch.zeros(3,dtype=torch.bool); r[0]=1.5; r=r -> r",
    "r=torch.zeros(3); r[0]=np.float64(1.) -> r",
    "r=torch.zeros(3); r[0]=torch.zeros(1,1) -> r",
    "r=torch.zeros(3); r[0:2]=torch.zeros(1,1,2) -> r",
    "r=torch.zeros(3); r[[0,1]]=torch.zeros(1,1,2) -> r",
    "r=torch.zeros(3); r[False]=torch.ones(1) -> r",
    "r=torch.zeros(3); r[True]=torch.ones(1) -> r",
    "r=torch.zeros(3); r[None]=torch.ones(1) -> r",
    "r=torch.zeros(3,4); r[[0,1],1:3]=torch.ones(2) -> r",
    "r=torch.zeros(3,4); r[1]=m[0] -> r",
    "m.index_put((torch.tensor([0]),),torch.tensor(1.,dtype=torch.float64))",
    "m[np.array([[0,1],[1,0]])]",
    "m[np.array([0,1])]",
    "v[np.int64(1)]",
    "v[np.array(1)]",
    "v[np.array(True)]",
    "m[np.array([True,False,True])]",
    "x[torch.ones(2,3,dtype=torch.bool),0]",
    "x[torch.ones(2,3,dtype=torch.bool),1:]",
    "x[0,torch.ones(3,4,dtype=torch.bool)]",
    "x[:,torch.ones(3,4,dtype=torch.bool)]",
    "x[torch.ones(2,3,dtype=torch.bool),None]",
    "x[torch.ones(2,3,dtype=torch.bool),None,torch.tensor([0])]",
    "x[torch.ones(2,3,dtype=torch.bool),torch.tensor([0])]",
    "x[...,torch.ones(3,4,dtype=torch.bool)]",
    "x[0,0,0,None]",
    "x[[0,1],[[0],[1]]]",
    "x[torch.tensor(1):]",
    "torch.tensor(1.)[True]",
    "torch.tensor(1.)[torch.tensor(True)]",
    "x[[0,1],:,None,[0,1]]",
    "x[[[0,1],[0,1]],[0,1]]",
    "x[(0,1),]",
    "m[[0,None]]",
    "m[[0,...]]",
    "m[torch.tensor([[0,1]]),torch.tensor([0])]",
    "v[[0.7,1.2]]",
    "v[[1,2.5]]",
    "v[[0, np.int64(2)]]",
    "r=torch.zeros(5); w=r[1:3]; w[0]=v[0] -> r",
    "r=torch.zeros(5); w=r[1:3]; w[0]=v[0] -> w",
    "r=m*1; r[0]=v[:4]; r[1:,0]=7 -> r",
    "r=m*1; r[[0,1],1:3]=v[0] -> r",
    "r=m*1; r[r>0]=v[1] -> r",
    "r=m*1; r[:,[0,0]]=v[:3,None] -> r",
    "r=m*1; r[None]=v[0] -> r",
    "r=m*1; r[...,1]=v[:3] -> r",
    "r=m*1; r[1,...]=v[:4] -> r",
    "r=m*1; r[torch.tensor([True,False,True])]=v[:4] -> r",
    "r=m*1; r.T[0]=v[:3] -> r",
    "r=m*1; r.expand(2,3,4)[0]=1. -> r",
    "r=m*1; a=r.view(-1); r[0]=1 -> a",
    "r=m*1; r.index_put_((torch.tensor([0]),),v[0]) -> r",
    "r=m*1; r.index_add_(0,torch.tensor([0]),m[:1]) -> r",
    "r=m*1; r.scatter_(0,torch.zeros(1,4,dtype=torch.int64),2.) -> r",
    "r=m*1; r.scatter_add_(0,torch.zeros(1,4,dtype=torch.int64),m) -> r",
    "r=m*1; r.masked_scatter_(m>0,m) -> r",
]
ERRORS = [
    "torch.zeros(3, 1).expand(3, 2).__setitem__(0, 1.0)",
    "v[torch.tensor([0],dtype=torch.int16)]",
    "v[1.0]",
    "v['a']",
    "v[::-1]",
    "v[::0]",
    "v[7]",
    "v[-6]",
    "v[0,0]",
    "m[0,0,0]",
    "v[torch.tensor([7])]",
    "v[torch.tensor([0.5])]",
    "m[torch.tensor([True,False])]",
    "m[[0,1],[0,1,2]]",
    "torch.tensor(1.,requires_grad=True)[0]",
    "m[torch.tensor([])]",
    "m.gather(0,torch.zeros(1,4))",
    "m.gather(0,torch.zeros(1,5,dtype=torch.int64))",
    "m.gather(0,torch.zeros(4,dtype=torch.int64))",
    "m.gather(0,torch.full((1,4),7))",
    "m.gather(0,torch.full((1,4),-1))",
    "m.gather(5,torch.full((1,4),0))",
    "m.scatter(0,torch.full((1,4),7),m)",
    "m.scatter(0,torch.full((1,4),-1),m)",
    "m.scatter(0,torch.zeros(4,4,dtype=torch.int64),m)",
    "m.scatter(0,torch.zeros(1,4),m)",
    "m.scatter(0,torch.zeros(1,5,dtype=torch.int64),2.0)",
    "m.scatter(0,torch.zeros(4,dtype=torch.int64),2.0)",
    "m.scatter_add(0,torch.full((1,4),7),m)",
    "m.scatter_add(0,torch.zeros(4,5,dtype=torch.int64),m)",
    "m.index_select(0,torch.tensor([7]))",
    "m.index_select(0,torch.tensor([-1]))",
    "m.index_select(0,torch.tensor([[1]]))",
    "m.index_select(0,torch.tensor([1.]))",
    "m.index_select(5,torch.tensor([1]))",
    "m.take(torch.tensor([12]))",
    "m.take(torch.tensor([-13]))",
    "m.take(torch.tensor([1.]))",
    "torch.take_along_dim(m,torch.tensor([0,0]),1)",
    "m.masked_select(torch.zeros(2)>0)",
    "m.masked_scatter(m<9,v)",
    "m.masked_scatter(v,v.repeat(9))",
    "m.masked_scatter(torch.zeros(2)>0,v.repeat(9))",
    "m.index_add(0,torch.tensor([0,1]),m[:1])",
    "m.index_add(0,torch.tensor([7]),m[:1])",
    "m.index_add(0,torch.tensor([0]),m[:1,:2])",
    "m.index_add(0,torch.tensor([[0]]),m[:1])",
    "m.index_copy(0,torch.tensor([0,1]),m[:1])",
    "m.index_copy(0,torch.tensor([7]),m[:1])",
    "m.index_fill(0,torch.tensor([7]),1.0)",
    "m.index_fill(0,torch.tensor([0]),v)",
    "m.index_fill(0,torch.tensor([0]),torch.tensor(1j))",
    "m.char().index_fill(0,torch.tensor([0]),torch.tensor(300))",
    "v[0].index_put((torch.tensor(True),),v[0])",
    "v.index_put((torch.tensor(True),torch.tensor([True])),v[0])",
    "m.sort(5)",
    "m.topk(5)",
    "m.topk(-1)",
    "torch.select_scatter(m,v,0,0)",
    "torch.select_scatter(m,v[:4],0,7)",
    "torch.slice_scatter(m,m[:2],0,0,1)",
    "torch.slice_scatter(m,m[:2],0,0,2,0)",
    "torch.diagonal_scatter(m,v[:2])",
    "x.narrow(1,0,5)",
    "x.narrow(1,5,1)",
    "x.narrow(1,-1,2)",
    "x.narrow(1,0,-1)",
    "torch.tensor(1.).narrow(0,0,1)",
    "x.select(1,5)",
    "x.select(1,-4)",
    "x.select(5,0)",
    "torch.tensor(1.).select(0,0)",
    "m.masked_fill(torch.tensor([True,False]),1.5)",
    "r=torch.zeros(3); r[0:2]=np.array([1.,2.]) -> r",
    "r=torch.zeros(3); r[0:2]=[1.,2.] -> r",
    "r=torch.zeros(3); r[0:2]='a' -> r",
    "r=torch.zeros(3); r[0:2]=torch.zeros(2,2) -> r",
    "r=torch.zeros(3,4); r[1,[0]]=m[0,:1] -> r",
    "m.index_put((torch.tensor([0]),),torch.zeros(3))",
    "m.index_put((torch.tensor([0.]),),torch.tensor(1.))",
    "m.index_put(torch.tensor([0]),torch.tensor(1.))",
    "m.index_put((torch.tensor([0]),)*3,torch.tensor(1.))",
    "v[np.bool_(True)]",
    "x[0,[7]]",
    "x[:,[7]]",
    "x[[0],[-5]]",
    "torch.zeros(0,3)[[0]]",
    "torch.zeros(0,3)[0]",
    "x[:,7]",
    "x[...,7]",
    "x[0,0,0,0]",
    "x[torch.ones(2,3,4,dtype=torch.bool),0]",
    "x[torch.ones(2,3,4,5,dtype=torch.bool)]",
    "x[torch.tensor([0,1]),torch.ones(3,dtype=torch.bool)]",
    "x[{}]",
    "x[object()]",
    "x['a',0]",
    "x[1.5,0]",
    "x[0:1.5]",
    "x['a':]",
    "x[:,::-1]",
    "torch.tensor(1.)[0,0]",
    "torch.tensor(1.)[0:1]",
    "torch.tensor(1.)[torch.tensor(0)]",
    "torch.tensor(1.)[[0]]",
    "torch.tensor(1.)[None,0]",
    "v[[torch.tensor(0),torch.tensor(1)]]",
    "v[[True]]",
    "v[torch.tensor([[True,False,True,False,True]])]",
    "v[[np.array(1),np.array(2)]]",
    "v[['a']]",
    "v[[[0,1],2]]",
    "r=m*1; r[5]=1 -> r",
    "r=m*1; r[:,7]=1 -> r",
    "r=m*1; r['a']=1 -> r",
    "m[0]=1 -> m",
    "m[[0]]=1 -> m",
]
GRADIENTS = [
    "m[:,1:].as_strided((2,2),(1,2))",
    "m[:1].expand(3,4).as_strided((3,2),(0,1))",
    "m.gather(0,torch.tensor([[0,1,0],[2,2,2]]))",
    "m.index_select(1,torch.tensor([0,0,3]))",
    "m.take(torch.tensor([0,-1,0]))",
    "torch.take_along_dim(m,torch.tensor([[0],[1],[1]]),1)",
    "m.masked_fill(m>0,v[0])",
    "m.masked_fill(torch.tensor([True,False,True,False]),2.0)",
    "m.masked_select(m>0)",
    "m.masked_scatter(m>0,(v*2).repeat(9))",
    "m.index_add(0,torch.tensor([0,0]),m[:2]*3,alpha=2)",
    "m.index_copy(0,torch.tensor([2]),m[:1]*2)",
    "m.index_fill(0,torch.tensor([0]),v[0])",
    "m.index_put((torch.tensor([0,2]),),v[0])",
    "m.index_put((torch.tensor([0,0]),torch.tensor([1,1])),v[:2],True)",
    "m.sort(0,True)[0]",
    "m.topk(2)[0]",
    "m.kthvalue(2)[0]",
    "x[0,:,[0,1,0]]",
    "x[[0,1,1],:,[0,1,1]]",
    "x[:,torch.ones(3,4)>0]",
    "x[x>0]",
    "x[...,None,[0,0]]",
    "torch.select_scatter(m,v[:4],0,1)",
    "torch.slice_scatter(m,m[:2]*2,0,0,4,2)",
    "torch.diagonal_scatter(m,v[:3])",
    "r=torch.zeros(5); w=r[1:3]; w[0]=v[0] -> r",
    "r=torch.zeros(5); w=r[1:3]; w[0]=v[0] -> w*w",
    "r=m*1; r[0]=v[:4]; r[1:,0]=7 -> r*r",
    "r=m*1; r[[0,1],1:3]=v[0] -> r*r",
    "r=m*1; r[r>0]=v[1] -> r*r",
    "r=m*1; r[None]=v[0] -> r*r",
    "r=m*1; r[...,1]=v[:3] -> r*r",
    "r=m*1; r.T[0]=v[:3] -> r*r",
    "r=m*1; a=r.view(-1); r[0]=v[:4] -> a*a",
    "r=m*1; a=r[:,1]; r[0]=v[:4] -> a*a",
    "r=m*1; r.index_add_(0,torch.tensor([0]),m[:1]*2) -> r*r",
]


MASKS = ["torch.tensor([True,False])", "torch.ones(3,2)>0", "torch.ones(2,4)>0", "m.t()>0"]
MASKS += ["(m>0)[None]"]
KEYS = ["{}", ":,{}", "torch.tensor([0]),{}", "None,{}", "...,{}"]
ERRORS += [f"m[{key.format(mask)}]" for mask in MASKS for key in KEYS]
ERRORS += [f"m.index_put(({mask},),torch.tensor(1.))" for mask in MASKS]
ERRORS += [f"m.index_put((torch.tensor([0]),{mask}),torch.tensor(1.))" for mask in MASKS[:1]]
ERRORS += ["m.index_put((None,),v[0])", "m.index_put((None,None),v[0])"]


@pytest.mark.sampled(0.18)
@pytest.mark.parametrize("line", CALLS)
def test_call_is_pytorchs(torch: ModuleType, line: str) -> None:
    assert_same_call(torch, line)


@pytest.mark.sampled(0.14)
@pytest.mark.parametrize("line", ERRORS)
def test_error_is_pytorchs(torch: ModuleType, line: str) -> None:
    assert_same_error(torch, line)


@pytest.mark.parametrize("line", GRADIENTS)
def test_gradients_are_pytorchs(torch: ModuleType, line: str) -> None:
    assert_same_gradients(torch, line)


INDICES = st.one_of(
    st.integers(-2, 1),
    st.slices(3).filter(lambda key: key.step is None or key.step > 0),
    st.none(),
    st.booleans(),
    st.lists(st.integers(-2, 1), max_size=3),
    st.lists(st.lists(st.integers(-2, 1), min_size=2, max_size=2), min_size=1, max_size=2),
    st.builds(lambda values: np.array(values), st.lists(st.booleans(), min_size=2, max_size=2)),
)


@given(st.lists(INDICES, max_size=4), st.booleans())
def test_any_key_gives_what_pytorch_gives(
    torch: ModuleType, parts: list[Any], ellipsis: bool
) -> None:
    key = (*parts, ...) if ellipsis else tuple(parts)
    array = np.arange(24.0).reshape(2, 2, 3, 2)
    ours, theirs = ng.from_numpy(array.copy()), torch.from_numpy(array.copy())
    converted = tuple(torch.from_numpy(k) if isinstance(k, np.ndarray) else k for k in key)
    try:
        expected = theirs[converted]
    except (IndexError, ValueError) as error:
        with pytest.raises(type(error)):
            ours[key]
        return
    assert ours[key].tolist() == expected.tolist()
    assert tuple(ours[key].shape) == tuple(expected.shape)
    theirs[converted] = 7.0
    ours[key] = 7.0
    assert ours.tolist() == theirs.tolist()


@given(st.lists(INDICES, max_size=4))
def test_gradient_of_any_key_counts_how_often_an_element_was_taken(parts: list[Any]) -> None:
    x = ng.zeros(2, 2, 3, 2, dtype=ng.float64, requires_grad=True)
    positions = ng.arange(24).view(2, 2, 3, 2)
    try:
        taken = positions[tuple(parts)]
    except (IndexError, ValueError):
        return
    x[tuple(parts)].sum().backward()
    counts = np.bincount(np.array(taken.tolist(), int).reshape(-1), minlength=24)
    assert x.grad is not None
    assert x.grad.view(-1).tolist() == counts.tolist()


# With `m` a library, `w` what is written, of shape (2,), and `x` of shape (2, 3, 2).
WRITTEN = """
x[m.tensor([0, 1])] = w
x[0, [1, 2]] = w
x[:, m.tensor([2, 0]), 1] = w
x[m.tensor([[True, False, True], [False, True, True]])] = w
x[m.tensor([True, False])] = w
x[..., m.tensor(1)] = w[0]
x[x == 0] = w[:1]
x[1] = w
x[0, :, 1] = w[1]
x[...] = w
x[None, 0, m.tensor([1])] = w
"""


@pytest.mark.parametrize("line", WRITTEN.strip().splitlines())
def test_gradients_go_to_what_was_written_and_to_what_was_left(line: str) -> None:
    """Whichever of the two is recorded, at the first call and at later ones."""
    weights = ng.arange(1.0, 13.0).reshape(2, 3, 2)
    for recorded, kind, _ in itertools.product((False, True), ("leaf", "result", "view"), "ab"):
        base = ng.zeros(2, 3, 2, requires_grad=recorded)
        leaf = ng.tensor([5.0, 7.0], requires_grad=True)
        written = {"leaf": leaf, "result": leaf * 1, "view": (leaf * 1)[:]}[kind]
        x = base.clone() if recorded else base
        exec(line, {"m": ng, "x": x, "w": written})
        assert x.requires_grad, (recorded, kind)
        (x * weights).sum().backward()
        is_other = x.detach() != 0
        sums = [float(weights[x.detach() == value].sum()) for value in (5.0, 7.0)]
        assert leaf.grad.tolist() == sums, (recorded, kind)
        if recorded:
            assert base.grad.tolist() == weights.masked_fill(is_other, 0).tolist(), kind
        x = ng.zeros(2, 3, 2)
        with ng.no_grad():
            exec(line, {"m": ng, "x": x, "w": written})
        assert not x.requires_grad and (x != 0).equal(is_other)


DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64"]
DTYPES += ["float16", "float32", "float64", "complex64"]
# Positions are of int64 alone in these; `i` holds some, `x` and `y` are tables.
OF_INT64 = """
torch.take_along_dim(x, i, 1)
x.gather(1, i)
x.scatter(1, i, y)
x.scatter_add(1, i, y)
x.scatter_reduce(1, i, y, "prod")
x.take(i)
x.put(i, y)
x.index_fill(1, i[0], 1.0)
x.index_copy(1, i[0], y)
x.tensor_split(i[0], 1)
torch.searchsorted(x, y, sorter=i)
torch.nn.functional.max_unpool1d(x, i, 1)
torch.nn.functional.one_hot(i)
"""


@pytest.mark.parametrize("line", OF_INT64.strip().splitlines())
def test_positions_of_other_dtypes_are_refused(torch: ModuleType, line: str) -> None:
    """Whether they are ordered before int64 or after it."""
    for name in DTYPES:
        said = []
        for lib in (ng, torch):
            x = lib.tensor([[1.0, 2.0], [3.0, 4.0]])
            names = {"x": x, "y": x + 1, "i": lib.tensor([[0, 1], [0, 1]]).to(getattr(lib, name))}
            try:
                said.append(str(eval(line, {"torch": lib, **names}).shape))
            except AttributeError:  # several results
                said.append("several")
            except (RuntimeError, IndexError, TypeError, ValueError) as error:
                said.append(f"{type(error).__name__}: {error}".partition("\n")[0])
        assert said[0] == said[1], name


# `x` is a tensor, `d` a dim, `i` holds positions and `y` what is put there, which may not fit.
ALONG = """
x.index_copy(d, i, y)
x.index_add(d, i, y)
x.index_reduce(d, i, y, "amax")
x.index_fill(d, i, 2.0)
x.index_fill(d, i, y)
x.index_select(d, i)
x.gather(d, i)
x.scatter(d, i, y)
x.scatter_add(d, i, y)
x.scatter(d, i, 2.0)
x.take(i)
x.put(i, y)
torch.take_along_dim(x, i, d)
"""
SHAPES = [(), (1,), (2,), (2, 3), (1, 3), (2, 1), (3, 2), (0, 3), (2, 3, 2), (1, 3, 2), (2, 1, 2)]


def _put_or_refused(lib: Any, line: str, shapes: list[Any], dim: int, kinds: list[str]) -> Any:
    """Return the shape of a result, or the class and first words of the error."""
    x, i, y = (
        lib.ones(shape).to(getattr(lib, kind)) for shape, kind in zip(shapes, kinds, strict=True)
    )
    try:
        return str(eval(line, {"torch": lib, "x": x, "d": dim, "i": i - i, "y": y}).shape)
    except (RuntimeError, IndexError, TypeError, NotImplementedError) as error:
        return f"{type(error).__name__}: {error}".partition("\n")[0]


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("line", ALONG.strip().splitlines())
def test_what_does_not_fit_is_refused_in_pytorchs_words(torch: ModuleType, line: str) -> None:
    random = Random(line)
    for _ in range(80):
        own = random.choice(SHAPES)
        given = own if random.random() < 0.4 else random.choice(SHAPES)
        shapes = [own, random.choice([(1,), (2,), (), *SHAPES]), given]
        kinds = ["float32", "int64", "float32"]
        if random.random() < 0.2:
            kinds[random.randrange(3)] = random.choice(["int32", "float64", "bool"])
        if "scatter_add" in line and len(own) != len(given):
            continue  # where PyTorch speaks of a dim that nobody named
        arguments = line, shapes, random.choice([0, 0, 1, -1, 2]), kinds
        found = _put_or_refused(ng, *arguments)
        assert found == _put_or_refused(torch, *arguments), arguments


def test_sort_keeps_the_order_of_equal_elements_and_puts_nan_last() -> None:
    x = ng.tensor([1.0, float("nan"), 0.0, 1.0])
    assert ng.sort(x).indices.tolist() == [2, 0, 3, 1]
    assert ng.sort(x, descending=True).indices.tolist() == [1, 0, 3, 2]


@pytest.mark.parametrize(
    "value", ["lib.tensor(7.0, dtype=lib.float64)", "lib.tensor([2])", "lib.tensor(True)"]
)
@pytest.mark.parametrize(
    "key",
    [
        "x < 0",
        "(x < 0, ...)",
        "[True, False, True]",
        "(None, x < 0)",
        "(slice(1, None), x[0] < 0)",
        "(x[:, 0] < 0, 0)",
        "(-1, x[0] < 0)",
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_one_element_of_any_dtype_fills_a_mask(
    torch: Any, value: str, key: str, dtype: str
) -> None:
    def filled(lib: Any) -> Any:
        x = lib.tensor([[1, -2], [3, 4], [-5, 6]], dtype=getattr(lib, dtype))
        x[eval(key, {"x": x})] = eval(value, {"lib": lib})
        return x.tolist()

    assert filled(ng) == filled(torch)


@pytest.mark.parametrize(
    ("positions", "outside"), [([-3, 5], 5), ([2, -4], -4), ([-3, -4], -4), ([3, 2], 3)]
)
def test_the_first_position_outside_is_named(positions: list[int], outside: int) -> None:
    x = ng.ones(3, 2)
    words = f"index {outside} is out of bounds for dimension 0 with size 3"
    with pytest.raises(IndexError, match=words):
        x.index_fill(0, ng.tensor(positions), 1.0)
    assert x.index_fill(0, ng.tensor([-3, 2]), 5.0).tolist() == [[5, 5], [1, 1], [5, 5]]
