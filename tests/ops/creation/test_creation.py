"""Making tensors: from data, of a shape, and of regular values."""

from __future__ import annotations

import itertools
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import numgrad as ng
from tests.ops.expressions import check_same, outcome

# Each is evaluated in both libraries: values, dtypes, nodes, warnings and errors are the same.
FROM_DATA = r"""
torch.tensor([[1,2],[3]])
torch.tensor([[1,2],3])
torch.tensor([1,[2]])
torch.tensor([[1,2],[3,[4]]])
torch.tensor('a')
torch.tensor(['a'])
torch.tensor([1,'a'])
torch.tensor(None)
torch.tensor([None])
torch.tensor([1,None])
torch.tensor({})
torch.tensor([{}])
torch.tensor([[]])
torch.tensor([])
torch.tensor(())
torch.tensor([[],[]])
torch.tensor([[],[1]])
torch.tensor([1,2.5,True])
torch.tensor([True,1])
torch.tensor([1,1j])
torch.tensor(1j)
torch.tensor(1)
torch.tensor(True)
torch.tensor(1.5)
torch.tensor(np.float64(1.5))
torch.tensor(np.float32(1.5))
torch.tensor(np.int32(1))
torch.tensor(np.bool_(True))
torch.tensor([np.float64(1.5)])
torch.tensor([np.float32(1.5)])
torch.tensor([np.int32(1)])
torch.tensor([np.bool_(True)])
torch.tensor([np.complex128(1)])
torch.tensor([np.int32(1), 2.5])
torch.tensor([torch.tensor([1.,2.],dtype=torch.float64),torch.tensor([1.,2.])])
torch.tensor([torch.tensor(1.),torch.tensor(2)])
torch.tensor([torch.tensor(1.,dtype=torch.float64),2])
torch.tensor([2,torch.tensor(1.,dtype=torch.float64)])
torch.tensor([torch.tensor([1.]),torch.tensor([2])])
torch.tensor([torch.tensor([1.]),2])
torch.tensor([2,torch.tensor([1.])])
torch.tensor(torch.tensor([1.,2.]))
torch.tensor(torch.tensor([1.,2.],requires_grad=True))
torch.tensor(torch.tensor([1,2]),dtype=torch.float32)
torch.tensor([torch.tensor(1.,requires_grad=True)])
torch.tensor([1,2],requires_grad=True)
torch.tensor([True],requires_grad=True)
torch.tensor([1j],requires_grad=True)
torch.tensor([1.],device='cuda')
torch.tensor([1.],device='cpu')
torch.tensor([1.],device='cpu:0')
torch.tensor([1.],device='foo')
torch.tensor([1.],device=0)
torch.tensor([1.],dtype='float32')
torch.tensor([1.],dtype=float)
torch.tensor([1.],dtype=int)
torch.tensor([1.5],dtype=torch.int64)
torch.tensor([300],dtype=torch.uint8)
torch.tensor([-1],dtype=torch.uint8)
torch.tensor([2**63])
torch.tensor(2**63)
torch.tensor([2**64],dtype=torch.float32)
torch.tensor([2**63],dtype=torch.uint64)
torch.tensor([2**40],dtype=torch.int32)
torch.tensor([1e300])
torch.tensor([1e300],dtype=torch.int64)
torch.tensor([nan],dtype=torch.int64)
torch.tensor([1j],dtype=torch.float32)
torch.tensor([1j],dtype=torch.int64)
torch.tensor([0.5,0],dtype=torch.bool)
torch.tensor([nan],dtype=torch.bool)
torch.tensor(np.array([1,2],dtype='>i4'))
torch.tensor(np.array(1.5))
torch.tensor(range(3))
torch.tensor({1,2})
torch.tensor(x for x in [1])
torch.tensor(b'ab')
torch.tensor(bytearray(b'ab'))
torch.tensor([b'ab'])
torch.tensor([''])
torch.tensor('')
torch.tensor([[1,2],'ab'])
torch.tensor()
torch.tensor([1],[2])
torch.tensor(1,2)
torch.tensor([1],foo=3)
torch.tensor(data=[1])
torch.tensor([1.], dtype=None)
torch.tensor([np.array(['a'])])
torch.tensor([[1.,2.],[3.,4.],[5.]])
torch.tensor([[1.],[3.,4.],[5.]])
torch.tensor(object())
torch.tensor([object()])
torch.tensor(torch)
torch.tensor(3.5,dtype=torch.int32)
torch.tensor([1,2], dtype=torch.complex64)
torch.tensor([1+2j, True])
torch.tensor([1.], pin_memory=False)
torch.tensor([[[1,2],[3,4]],[[1,2],[3]]])
torch.as_tensor([1,2])
torch.as_tensor(np.array([1,2]))
torch.as_tensor(np.array([1,2]),dtype=torch.float32)
torch.as_tensor(np.float64(1.5))
torch.as_tensor('a')
torch.as_tensor(torch.tensor([1.],requires_grad=True))
torch.as_tensor(torch.tensor([1.],requires_grad=True),dtype=torch.float64)
torch.as_tensor([1],requires_grad=True)
torch.asarray([1.],requires_grad=True)
torch.asarray([1,2])
torch.asarray(np.array([1,2]))
torch.asarray(torch.tensor([1.],requires_grad=True))
torch.asarray(torch.tensor([1.],requires_grad=True),copy=True)
torch.asarray(torch.tensor([1.],requires_grad=True),requires_grad=True)
torch.asarray(torch.tensor([1.]),requires_grad=True)
torch.asarray([1,2],copy=False)
torch.asarray(np.array([1,2]),copy=False,dtype=torch.float32)
torch.asarray('a')
torch.asarray(3.5)
torch.asarray(np.float64(3.5))
torch.asarray(np.array([1,2],dtype='>i4'))
torch.asarray(bytearray(b'abcd'),dtype=torch.uint8)
torch.asarray([1],requires_grad=True)
torch.from_numpy([1])
torch.from_numpy(np.float64(1))
torch.from_numpy(np.array([1,2],dtype='>i4'))
torch.from_numpy(torch.tensor([1]))
torch.from_numpy(np.array([1],dtype=np.uint16))
torch.ones(2).new_tensor([1,2])
torch.ones(2).new_tensor([1.5,2],dtype=torch.float64)
torch.ones(2,dtype=torch.int64).new_tensor([1.5])
torch.ones(2).new_tensor(torch.tensor([1,2]))
torch.ones(2).new_tensor([1.],requires_grad=True)
torch.ones(2,requires_grad=True).new_tensor([1.])
torch.tensor(True).item()
torch.tensor(1j).item()
torch.tensor(3,dtype=torch.uint8).item()
torch.tensor(3.,requires_grad=True).item()
torch.tensor(3.).tolist()
torch.tensor([[True]]).tolist()
torch.tensor([1.1]).tolist()
torch.tensor(True).__index__()
torch.tensor(1j).__index__()
torch.tensor([1.,2.]).__index__()
torch.tensor([]).__index__()
torch.asarray(torch.tensor([1.]),dtype=torch.int32,copy=False)
torch.tensor([1,2.7],dtype=torch.int64)
torch.tensor([2,np.float64(1.)])
torch.tensor([1.5,np.float64(1.)])
torch.tensor([np.float64(1.),1.5])
torch.tensor([np.float32(1.),1.5])
torch.tensor([np.int32(1),1])
torch.tensor([np.int64(1),np.int32(1)])
torch.tensor([np.float32(1),np.float64(1)])
torch.tensor([np.bool_(True),np.float32(1)])
torch.tensor([np.bool_(True),1.5])
torch.tensor([torch.tensor(1,dtype=torch.int32),2])
torch.tensor([torch.tensor(1.,dtype=torch.float64),2.5])
torch.tensor([torch.tensor(1.5),2],dtype=torch.int64)
torch.tensor([torch.tensor([1.,2.]),torch.tensor([1.,2.])])
torch.tensor([torch.tensor([1,2]),torch.tensor([1,2])])
torch.tensor([torch.tensor([[1]]),2])
torch.tensor([[torch.tensor([1.])]])
torch.tensor([torch.tensor([]),2])
torch.tensor([np.array(1.5)])
torch.tensor([np.array(1.5),2])
torch.tensor([[1,2],torch.tensor([1.5,2])])
torch.tensor([torch.tensor([1.5,2]),[1,2]])
torch.tensor([1.5,None])
torch.tensor([1,1.5,'x'])
torch.tensor(['a',1])
torch.tensor([['a']])
torch.tensor(['ab'])
torch.tensor([['ab','cd']])
torch.tensor([['ab','cd']],dtype=torch.float32)
torch.tensor(['a'],dtype=torch.float32)
torch.tensor(None,dtype=torch.float32)
torch.tensor([None],dtype=torch.float32)
torch.tensor([[1,2],3.],dtype=torch.float32)
torch.tensor([1.,[2.]])
torch.tensor([1.,[2.]],dtype=torch.int64)
torch.tensor([True,[2.]])
torch.tensor([True,[True]])
torch.tensor([1j,[2.]])
torch.tensor([2**63, 1.5])
torch.tensor([2**63],dtype=torch.float64)
torch.tensor(-2**63)
torch.tensor(-2**63-1)
torch.tensor([2**64],dtype=torch.uint64)
torch.tensor([-1],dtype=torch.uint64)
torch.tensor([-1],dtype=torch.uint16)
torch.tensor([-300],dtype=torch.uint8)
torch.tensor([-255],dtype=torch.uint8)
torch.tensor([-256],dtype=torch.uint8)
torch.tensor([2**33],dtype=torch.uint32)
torch.tensor([2**32-1],dtype=torch.uint32)
torch.tensor([2**31],dtype=torch.int32)
torch.tensor([200],dtype=torch.int8)
torch.tensor([-129],dtype=torch.int8)
torch.tensor([2],dtype=torch.bool)
torch.tensor(['a'],dtype=torch.bool)
torch.tensor([[],'a'],dtype=torch.bool)
torch.tensor([1e40],dtype=torch.float32)
torch.tensor([1e40],dtype=torch.complex64)
torch.tensor([10**400],dtype=torch.float64)
torch.tensor([3.7,-3.7],dtype=torch.int32)
torch.tensor([300.7],dtype=torch.uint8)
torch.tensor([-1.5],dtype=torch.uint8)
torch.tensor([-0.5],dtype=torch.uint8)
torch.tensor(np.array([300,-1]),dtype=torch.uint8)
torch.tensor(np.array([1j]),dtype=torch.float32)
torch.tensor(np.float64(1.5),dtype=torch.float32)
torch.tensor(np.float64(1.5),dtype=torch.int32)
torch.tensor(np.int64(300),dtype=torch.uint8)
torch.tensor(np.array(300),dtype=torch.uint8)
torch.tensor(memoryview(b'ab'))
torch.tensor(torch.Size([2,3]))
torch.tensor(np.ones((3,2)).T).stride()
torch.as_tensor(np.ones((3,2)).T,dtype=torch.float32).stride()
torch.tensor(np.ones((3,4,2))[:,::2].T).stride()
torch.tensor(torch.ones(3,2).t()).stride()
torch.tensor([1.],device='mps')
torch.tensor(torch.tensor([1j]),dtype=torch.float32)
torch.tensor([np.complex64(1),1j])
torch.tensor([1j,2.5,np.float64(3)])
torch.tensor([1j,torch.tensor(2.)])
torch.tensor([2.5,torch.tensor(2)])
torch.tensor([1,torch.tensor(1j)])
torch.tensor(1+0j,dtype=torch.float32)
torch.tensor('a',dtype=torch.float32)
torch.tensor(np.str_('a'))
torch.tensor([np.str_('a')])
torch.tensor([[],[1]],dtype=torch.int64)
torch.tensor([1.],requires_grad=None)
torch.tensor([1.],requires_grad='a')
torch.tensor([1.,2.],dtype=torch.float64,requires_grad=True)
torch.tensor(torch.tensor([1.]),requires_grad=True)
torch.tensor(torch.tensor([1.]),dtype=torch.int64,requires_grad=True)
torch.tensor([torch.tensor(1j,requires_grad=True)])
""".strip().splitlines()
OF_A_SHAPE = r"""
torch.zeros(2,3)
torch.zeros((2,3))
torch.zeros([2,3])
torch.zeros(size=(2,))
torch.zeros(torch.Size([2]))
torch.zeros()
torch.zeros(())
torch.zeros([])
torch.zeros(2.5)
torch.zeros(2,2.5)
torch.zeros((2,2.5))
torch.zeros((2.5,2))
torch.zeros('a')
torch.zeros(None)
torch.zeros(-1)
torch.zeros(2,-1)
torch.zeros((2,-1))
torch.zeros((2,),(3,))
torch.zeros(2,(3,))
torch.zeros(torch.tensor(2))
torch.zeros(torch.tensor([2,3]))
torch.zeros(np.int64(2))
torch.zeros((np.int64(2),torch.tensor(3)))
torch.zeros(np.array([2,3]))
torch.zeros(True)
torch.zeros((True,2))
torch.zeros(2,dtype=float)
torch.zeros(2,dtype='float')
torch.zeros(2,dtype=torch.int64,requires_grad=True)
torch.zeros(2,requires_grad=True)
torch.zeros(2,dtype=np.float32)
torch.zeros(2,device='cuda')
torch.zeros(2,foo=1)
torch.zeros(2,size=(2,))
torch.zeros(range(2))
torch.zeros(2,out=torch.ones(3))
torch.zeros(2,out=torch.ones(2))
torch.zeros(2,out=torch.ones(2,dtype=torch.int64),dtype=torch.float32)
torch.ones()
torch.ones(2.5)
torch.empty()
torch.empty(2.5)
torch.empty(-1)
torch.zeros(0)
torch.zeros(2,0,3)
torch.zeros(2**62,4)
torch.full((2,),1)
torch.full((2,),True)
torch.full((2,),1.5)
torch.full((2,),1j)
torch.full((2,),1.5,dtype=torch.int64)
torch.full((2,),1j,dtype=torch.float32)
torch.full((2,),300,dtype=torch.uint8)
torch.full((2,),-1,dtype=torch.uint8)
torch.full((2,),1e40)
torch.full((2,),1e40,dtype=torch.float32)
torch.full(2,1)
torch.full([2],'a')
torch.full([2],torch.tensor(1.5))
torch.full([2],torch.tensor(2))
torch.full([2],torch.tensor(2.,dtype=torch.float64))
torch.full([2],torch.tensor([2.]))
torch.full([2],torch.tensor([2.,3]))
torch.full([2],torch.tensor(2.,requires_grad=True))
torch.full([2],np.float64(2))
torch.full([2],np.int64(2))
torch.full([2],np.float32(2))
torch.full([2],np.bool_(2))
torch.full([2],1,requires_grad=True)
torch.full(size=[2],fill_value=1)
torch.full([2])
torch.full([-2],1)
torch.full([2],None)
torch.full([2],nan,dtype=torch.int64)
torch.full([2],2**63)
torch.full([2],1.5,dtype=torch.bool)
torch.full([2],3,out=torch.zeros(2))
torch.full([2],3,out=torch.zeros(2),dtype=torch.int64)
torch.full_like(torch.ones(2),3)
torch.full_like(torch.ones(2,dtype=torch.int64),3.7)
torch.full_like(torch.ones(2),3,dtype=torch.int64)
torch.full_like(torch.ones(2),1j)
torch.full_like(torch.ones(2),torch.tensor(2))
torch.full_like(3,2)
torch.zeros_like(3)
torch.zeros_like([1.])
torch.zeros_like(torch.ones(2,dtype=torch.int64))
torch.zeros_like(torch.ones(2,requires_grad=True))
torch.zeros_like(torch.ones(2),requires_grad=True)
torch.zeros_like(torch.ones(2,dtype=torch.int64),requires_grad=True)
torch.ones_like(torch.ones(2),dtype=torch.float64)
torch.ones_like(torch.ones(3,2).t()).stride()
torch.ones_like(torch.ones(3,4,2)[:,::2].transpose(0,2)).stride()
torch.ones_like(torch.ones(1,3).expand(2,3)).stride()
torch.ones_like(torch.ones(2),device='cuda')
torch.empty_like(torch.ones(2)).dtype
torch.ones(2,dtype=torch.float64).new_zeros(2,3)
torch.ones(2).new_zeros((2,),dtype=torch.int64)
torch.ones(2).new_zeros()
torch.ones(2).new_zeros(())
torch.ones(2).new_zeros(2.5)
torch.ones(2).new_ones(2,3)
torch.ones(2).new_ones(size=(2,))
torch.ones(2).new_full((2,),3)
torch.ones(2,dtype=torch.int64).new_full((2,),3.7)
torch.ones(2).new_full(2,3)
torch.ones(2).new_full((2,),1j)
torch.ones(2).new_empty((2,)).dtype
torch.ones(2).new_zeros(2,requires_grad=True)
torch.ones(2).new_zeros(2,device='cuda')
torch.ones(1) in torch.ones(2)
torch.full((2,),-1,dtype=torch.uint16)
torch.full((2,),-300,dtype=torch.uint8)
torch.full((2,),-1,dtype=torch.uint64)
torch.full((2,),200,dtype=torch.int8)
torch.full((2,),40000,dtype=torch.int16)
torch.full((2,),2**40,dtype=torch.int32)
torch.full((2,),1e40,dtype=torch.complex64)
torch.full((2,),inf,dtype=torch.float32)
torch.full((2,),2**40,dtype=torch.uint32)
torch.full((2,),2**63,dtype=torch.uint64)
torch.full((2,),2**64,dtype=torch.uint64)
torch.full((2,),1+0j,dtype=torch.float32)
torch.full((2,),2**63,dtype=torch.float32)
torch.full((2,),-2**63-1)
torch.full((2,),2**64)
torch.full((2,3.),2)
torch.full((2,),1,device='cuda')
torch.zeros([2,[3]])
torch.zeros([[3]])
torch.zeros([None])
torch.zeros([2,None])
torch.zeros([torch.tensor(2.)])
torch.zeros([2,torch.tensor(2.)])
torch.zeros(2,torch.tensor([2]))
torch.zeros(np.float64(2))
torch.zeros(2,requires_grad=1)
torch.zeros(2,requires_grad=None)
torch.zeros(2,dtype=3)
torch.zeros(2,dtype=bool)
torch.zeros(2,dtype=complex)
torch.zeros(2,device=3)
torch.zeros(2,device=3.5)
torch.zeros(2,device=[1])
torch.zeros(2,device='')
torch.zeros(2,device='cpu:1')
torch.zeros(2,device='cpu:x')
torch.zeros(2,device=None)
torch.zeros(2,layout='a')
torch.zeros(2,out=3)
torch.zeros(2,names=None)
torch.zeros_like(torch.ones(2),memory_format=3)
torch.zeros_like(torch.ones(2),dtype='a')
torch.zeros_like()
torch.zeros_like(torch.ones(2),3)
torch.zeros_like(input=torch.ones(2))
torch.full_like(torch.ones(2))
torch.full_like(torch.ones(2),'a')
torch.full_like(torch.ones(2),torch.tensor([1.,2]))
torch.empty(2,3,out=torch.zeros(2)).shape
torch.ones(2).new_zeros(-1)
torch.ones(2).new_full((2,),'a')
torch.ones(2).new_full((-2,),1)
torch.ones(2).new_ones(-1)
torch.ones(2).new_empty(-1)
torch.ones(-1)
torch.zeros_like(torch.ones(2),device='foo')
""".strip().splitlines()
REGULAR = r"""
torch.arange(5)
torch.arange(5.)
torch.arange(1,5)
torch.arange(1,2,0.3)
torch.arange(0,1,0.1)
torch.arange(0,1,0.1).shape
torch.arange(5,dtype=torch.float64)
torch.arange(5.5,dtype=torch.int64)
torch.arange(0.5,5,dtype=torch.int64)
torch.arange(0,5,0.5,dtype=torch.int64)
torch.arange(0,5,1.5,dtype=torch.int64)
torch.arange(0,-5,1.5,dtype=torch.int64)
torch.arange(5,1,-1)
torch.arange(5,1)
torch.arange(1,5,-1)
torch.arange(1,5,0)
torch.arange(nan)
torch.arange(inf)
torch.arange(0,5,inf)
torch.arange(0,5,nan)
torch.arange(1j)
torch.arange('a')
torch.arange(None)
torch.arange()
torch.arange(torch.tensor(5))
torch.arange(torch.tensor(5.))
torch.arange(torch.tensor(5.,dtype=torch.float64))
torch.arange(torch.tensor([5,3]))
torch.arange(torch.tensor([5]))
torch.arange(np.int64(5))
torch.arange(np.float64(5))
torch.arange(np.float32(5))
torch.arange(end=5)
torch.arange(start=1,end=5)
torch.arange(1,end=5)
torch.arange(1,5,step=2)
torch.arange(5,step=2)
torch.arange(0,5,2,requires_grad=True)
torch.arange(0.,5,2,requires_grad=True)
torch.arange(True)
torch.arange(3,dtype=torch.bool)
torch.arange(2,dtype=torch.bool)
torch.arange(300,dtype=torch.uint8)[-3:]
torch.arange(-3,3,dtype=torch.uint8)
torch.arange(3,dtype=torch.complex64)
torch.arange(1,5,2,7)
torch.arange(2**53,2**53+4)
torch.arange(0,2,out=torch.zeros(2))
torch.arange(2**24,2**24+4,dtype=torch.float32)
torch.arange(5,device='cuda')
torch.arange(0,1,0.1,dtype=torch.float64)[3].item()
torch.arange(0,1,0.1)[3].item()
torch.arange(0)
torch.arange(-1)
torch.arange(1,1)
torch.linspace(0,1,5)
torch.linspace(0,1,5,dtype=torch.int64)
torch.linspace(0,10,5,dtype=torch.int64)
torch.linspace(-5,10,7,dtype=torch.int64)
torch.linspace(0,1,1)
torch.linspace(0,1,0)
torch.linspace(0,1,-1)
torch.linspace(0,1,steps=3)
torch.linspace(1j,2,3)
torch.linspace(0,2,3,dtype=torch.complex64)
torch.linspace(1j,2,3,dtype=torch.float32)
torch.linspace(torch.tensor(0.),1,3)
torch.linspace(torch.tensor(0.),torch.tensor([1.]),3)
torch.linspace(torch.tensor(0.,requires_grad=True),1,3)
torch.linspace(0,1,3,requires_grad=True)
torch.linspace(0,inf,3)
torch.linspace(0,nan,3)
torch.linspace(-inf,inf,3)
torch.linspace(0,1,3,dtype=torch.bool)
torch.linspace(np.float64(0),1,3)
torch.logspace(0,1,5)
torch.logspace(0,2,3,dtype=torch.int64)
torch.logspace(0,2,3,base=2)
torch.logspace(0,2,3,2)
torch.logspace(0,2,1)
torch.logspace(0,2,-1)
torch.logspace(0,2,0)
torch.logspace(0,2,3,base=-2)
torch.eye(3)
torch.eye(2,3)
torch.eye(3,2,dtype=torch.int64)
torch.eye(-1)
torch.eye(2,-1)
torch.eye(2.5)
torch.eye(0)
torch.eye(n=2,m=3)
torch.eye((2,3))
torch.eye(2,dtype=torch.bool)
torch.eye(2,requires_grad=True)
torch.eye(True)
torch.scalar_tensor(3)
torch.scalar_tensor(3.5,dtype=torch.int64)
torch.scalar_tensor(1j)
torch.scalar_tensor(True)
torch.scalar_tensor('a')
torch.tril_indices(3,3)
torch.tril_indices(3,2,1)
torch.tril_indices(3,2,offset=-1)
torch.tril_indices(-1,2)
torch.tril_indices(2,-1)
torch.tril_indices(0,2)
torch.triu_indices(3,3)
torch.triu_indices(2,3,1,dtype=torch.int32)
torch.triu_indices(2,3,1,dtype=torch.float32)
torch.triu_indices(2,3,dtype=torch.float64)
torch.scalar_tensor(300,dtype=torch.uint8)
""".strip().splitlines()
COMPLEX = r"""
torch.complex(torch.tensor([1.]),torch.tensor([2.]))
torch.complex(torch.tensor([1.],requires_grad=True),torch.tensor([2.]))
torch.complex(torch.tensor([1.,2.]),torch.tensor(2.))
torch.complex(torch.tensor([1.]),torch.tensor([2.],dtype=torch.float64))
torch.complex(torch.tensor([1]),torch.tensor([2]))
torch.complex(torch.tensor([1.]),2)
torch.complex(1.,2.)
torch.complex(torch.tensor([1.,2]),torch.tensor([1.,2,3]))
torch.complex(torch.tensor([1j]),torch.tensor([1.]))
torch.polar(torch.tensor([1]),torch.tensor([2]))
torch.polar(torch.tensor([1.]),torch.tensor([2.],dtype=torch.float64))
""".strip().splitlines()

LEGACY = r"""
torch.Tensor(2, 3).shape
torch.Tensor([1, 2])
torch.Tensor()
torch.Tensor(2).shape
torch.Tensor((2, 3))
torch.Tensor(torch.tensor([1, 2]))
torch.Tensor(2.5)
torch.Tensor('a')
torch.Tensor(None)
torch.Tensor([1, 2], dtype=torch.float64)
torch.Tensor(np.array([1, 2]))
torch.Tensor(-1)
torch.Tensor([1, 2], [3])
torch.Tensor(True)
torch.Tensor(1, 2.5)
torch.Tensor([[1, 2], [3]])
torch.Tensor(np.int64(3)).shape
torch.Tensor(torch.tensor(3.0))
torch.Tensor(np.float32(3.0))
torch.Tensor([1, 2], device='cpu')
torch.Tensor(size=(2, 3)).shape
torch.Tensor(data=[2, 3])
""".strip().splitlines()


@pytest.mark.sampled(0.14)
@pytest.mark.parametrize("expression", FROM_DATA)
def test_from_data_as_in_pytorch(torch, expression):
    check_same(torch, expression)


@pytest.mark.sampled(0.14)
@pytest.mark.parametrize("expression", OF_A_SHAPE)
def test_of_a_shape_as_in_pytorch(torch, expression):
    check_same(torch, expression)


@pytest.mark.parametrize("expression", REGULAR)
def test_regular_values_as_in_pytorch(torch, expression):
    check_same(torch, expression)


@pytest.mark.parametrize("expression", COMPLEX)
def test_complex_from_parts_as_in_pytorch(torch, expression):
    check_same(torch, expression)


@pytest.mark.parametrize("expression", LEGACY)
def test_legacy_constructor_as_in_pytorch(torch, expression):
    class Ours:
        Tensor = ng.Tensor
        tensor = staticmethod(ng.tensor)
        float64 = ng.float64

    ours = outcome(Ours, expression)
    assert ours == outcome(torch, expression)


nested = st.recursive(
    st.lists(st.floats(width=32, allow_nan=False), min_size=2, max_size=2),
    lambda part: st.tuples(part).map(lambda one: [one[0], one[0]]),
    max_leaves=8,
)


@given(nested)
def test_tolist_gives_back_nested_lists(data):
    assert ng.tensor(data).tolist() == data


def test_a_tensor_has_its_own_copy_of_an_array():
    array = np.array([1.0, 2.0])
    tensor = ng.tensor(array)
    array[0] = 5
    assert tensor.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("function", [ng.from_numpy, ng.as_tensor, ng.asarray])
def test_memory_is_shared_with_an_array_both_ways(function):
    array = np.array([1.0, 2.0])
    tensor = function(array)
    array[0] = 5
    tensor.numpy()[1] = 7
    assert tensor.tolist() == array.tolist() == [5.0, 7.0]


@pytest.mark.parametrize("function", [ng.from_numpy, ng.as_tensor, ng.tensor])
def test_negative_strides_are_taken(function):
    assert function(np.array([1, 2, 3])[::-1]).tolist() == [3, 2, 1]


@pytest.mark.parametrize("function", [ng.from_numpy, ng.as_tensor, ng.tensor])
@pytest.mark.parametrize("dtype", ["longdouble", "U1", "O", "M8[s]", [("a", "i4")]])
def test_unsupported_elements_are_refused(function, dtype):
    with pytest.raises(TypeError, match=r"can't convert np.ndarray of type numpy\.\w+\. The only"):
        function(np.zeros(1, dtype))


def test_an_array_that_cannot_be_written_to_warns():
    with pytest.warns(UserWarning, match="The given NumPy array is not writable"):
        ng.from_numpy(np.broadcast_to(np.array([1.0]), (3,)))


@pytest.mark.parametrize("name", ["zeros_like", "ones_like", "empty_like"])
def test_the_order_in_memory_is_that_of_the_tensor(name):
    source = ng.from_numpy(np.ones((3, 4, 2))[:, ::2].T)
    assert getattr(ng, name)(source).numpy().strides == (8, 16, 32)


def test_full_keeps_the_sign_of_zero():
    assert np.signbit(ng.full((2,), -0.0).numpy()).all()


def test_the_default_dtype_decides_what_floats_become():
    ng.set_default_dtype(ng.float64)
    try:
        made = [ng.tensor(1.0), ng.tensor(1j), ng.zeros(1), ng.arange(1.0), ng.full((1,), 1.0)]
    finally:
        ng.set_default_dtype(ng.float32)
    assert [repr(t.dtype) for t in made] == [
        "torch.float64",
        "torch.complex128",
        *["torch.float64"] * 3,
    ]


@given(
    st.floats(-50, 50),
    st.floats(-50, 50),
    st.floats(0.01, 10).flatmap(lambda x: st.sampled_from([x, -x])),
)
def test_arange_has_as_many_numbers_as_in_pytorch(torch, start, end, step):
    expression = f"torch.arange({start!r}, {end!r}, {step!r}, dtype=torch.float64).shape"
    check_same(torch, expression)


# No tiny numbers: rounding is by two sums, which differ from one where these decide a tie.
ENDS = st.integers(-3000, 3000).map(lambda n: n / 63)


@given(
    ENDS,
    ENDS,
    st.sampled_from([0.1, 0.25, 1 / 3, 1.0, 0.0037]),
    st.sampled_from(["float32", "float64"]),
)
def test_arange_has_the_bits_of_vectors_of_32_bytes(start, end, step, dtype):
    step = step if end > start else -step
    values = ng.arange(start, end, step, dtype=getattr(ng, dtype)).numpy()
    width, count = 32 // values.itemsize, values.size
    whole = count // (2 * width) * 2 * width

    def once(number, first):  # a sum that is rounded once
        return float(Fraction(step) * number + Fraction(first))

    for k in [*range(0, count, max(count // 40, 1)), *range(whole, count)]:
        lane = k % width if k < whole else 0
        first = values.dtype.type(once(k - lane, start))
        assert values[k] == values.dtype.type(once(lane, float(first)) if lane else first), k


@given(
    ENDS,
    ENDS,
    st.sampled_from([2, 3, 7, 100, 5000]),
    st.sampled_from(["arange", "linspace", "logspace"]),
    st.sampled_from(["float32", "float64", "float16", "complex64", "complex128"]),
)
def test_ranges_have_pytorchs_bits(torch, first, last, count, name, dtype):
    assume(dtype[:7] != "complex" or name == "linspace")
    assume(dtype != "float16" or name == "arange")
    if dtype[:7] == "complex":
        arguments = f"{first + last / 7 * 1j!r}, {last - first / 3 * 1j!r}, {count}"
    elif name == "arange":
        step = (last - first) / count or 1.0
        arguments = f"{first!r}, {last!r}, {step!r}"
    else:
        scale = 10 if name == "logspace" else 1
        arguments = f"{first / scale!r}, {last / scale!r}, {count}"
    line = f"torch.{name}({arguments}, dtype=torch.{dtype}).tolist()"
    assert eval(line, {"torch": ng}) == eval(line, {"torch": torch})


@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(-7, 7))
def test_arange_of_integers_is_pythons_range(start, end, step):
    if step and (end - start) * step >= 0:
        assert ng.arange(start, end, step).tolist() == list(range(start, end, step))


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.integers(2, 40))
def test_linspace_meets_both_ends_and_is_numpys_within_rounding(first, last, count):
    values = ng.linspace(first, last, count, dtype=ng.float64).numpy()
    assert (values[0], values[-1]) == (first, last)
    scale = max(abs(first), abs(last))
    smallest = 5e-324  # a step of subnormal numbers, which NumPy rounds to, too
    error = np.abs(values - np.linspace(first, last, count)).max()
    assert error <= 1e-15 * scale + count * smallest


def test_complex_keeps_infinities_and_zeros_apart():
    number = ng.complex(ng.tensor(np.inf), ng.tensor(-0.0)).numpy()
    assert (number.real, number.imag, np.signbit(number.imag)) == (np.inf, 0.0, True)


def test_polar_is_pytorchs(torch):
    def gradients(module):
        length = module.tensor([1.0, 2.0], dtype=module.float64, requires_grad=True)
        angle = module.tensor([0.5, -3.0], dtype=module.float64, requires_grad=True)
        y = module.polar(length, angle)
        g = module.tensor([1 + 2j, 3 - 1j], dtype=module.complex128)
        return [y.detach(), *module.autograd.grad(y, [length, angle], g)]

    for ours, theirs in zip(gradients(ng), gradients(torch), strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-14)


def test_triangles_of_drawn_sizes_are_numpys():
    for row, col, offset in itertools.product(range(4), range(4), range(-5, 6)):
        for name in ("tril_indices", "triu_indices"):
            expected = np.stack(getattr(np, name)(row, offset, col))
            found = getattr(ng, name)(row, col, offset).numpy()
            np.testing.assert_array_equal(found, expected, strict=True)
    assert ng.triu_indices(2**61, 2, -1).tolist() == [[0, 0, 1, 1, 2], [0, 1, 0, 1, 1]]


@pytest.mark.parametrize(
    ("call", "sizes"),
    [
        (lambda: ng.tril_indices(2**62, 2), [2, 2**63 - 1]),
        (lambda: ng.triu_indices(2, 2**62), [2, 2**63 - 1]),
        (lambda: ng.diag(ng.ones(2), 2**62), [2**62 + 2] * 2),
        (lambda: ng.diagflat(ng.ones(2), -(2**62)), [2**62 + 2] * 2),
        (lambda: ng.diag_embed(ng.ones(2, 3), -(2**62), 0, 2), [2**62 + 3, 2, 2**62 + 3]),
    ],
)
def test_sizes_beyond_all_memory_are_refused_in_pytorchs_words(call, sizes):
    words = f"Storage size calculation overflowed with sizes={sizes}"
    with pytest.raises(RuntimeError, match=re.escape(words)):
        call()
