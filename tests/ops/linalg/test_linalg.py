"""Products of matrices and vectors: results, errors, graphs and gradients as in PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng
from numgrad.ops.linalg.products import _for_blas, matrix_product
from tests.ops.expressions import check_same

CALLS = r"""
torch.matmul(torch.ones(2,3),torch.ones(2,3))
torch.matmul(torch.ones(3),torch.ones(2))
torch.matmul(torch.ones(2,3),torch.ones(2))
torch.matmul(torch.ones(2),torch.ones(3,2))
torch.matmul(torch.ones(2,2,3),torch.ones(2,2,3))
torch.matmul(torch.ones(2,2,3),torch.ones(3,3,3))
torch.matmul(torch.ones(2,2,3),torch.ones(2,3))
torch.matmul(torch.ones(2,2,3),torch.ones(2))
torch.matmul(torch.ones(2),torch.ones(2,3,2))
torch.matmul(torch.ones(2,3),torch.ones(5,2,3))
torch.matmul(torch.tensor(1.),torch.ones(2))
torch.matmul(torch.ones(2),torch.tensor(1.))
torch.matmul(torch.ones(2),3)
torch.matmul(3,torch.ones(2))
torch.ones(2)@3
3@torch.ones(2)
torch.matmul(torch.ones(2,3),torch.ones(3,2,dtype=torch.float64))
torch.matmul(torch.ones(3),torch.ones(3,dtype=torch.float64))
torch.matmul(torch.ones(2,3),torch.ones(3,dtype=torch.float64))
torch.matmul(torch.ones(3),torch.ones(3,2,dtype=torch.float64))
torch.matmul(torch.ones(5,2,3),torch.ones(5,3,2,dtype=torch.float64))
torch.matmul(torch.ones(5,2,3),torch.ones(3,2,dtype=torch.float64))
torch.matmul(torch.ones(5,2,3),torch.ones(3,dtype=torch.int64))
torch.matmul(torch.ones(2,3),torch.ones(3,2,dtype=torch.int64))
torch.matmul(torch.ones(2,3,dtype=torch.int64),torch.ones(3,2,dtype=torch.int64))
torch.matmul(torch.ones(2,3,dtype=torch.bool),torch.ones(3,2,dtype=torch.bool))
torch.matmul(torch.ones(3,dtype=torch.bool),torch.ones(3,dtype=torch.bool))
torch.matmul(torch.ones(2,3,dtype=torch.bool),torch.ones(3,dtype=torch.bool))
torch.matmul(torch.ones(2,2,3,dtype=torch.bool),torch.ones(2,3,2,dtype=torch.bool))
torch.matmul(torch.ones(2,3,dtype=torch.uint8)*100,torch.ones(3,2,dtype=torch.uint8))
torch.matmul(torch.ones(2,3,dtype=torch.uint16),torch.ones(3,2,dtype=torch.uint16))
torch.matmul(torch.ones(2,3,dtype=torch.complex64),torch.ones(3,2,dtype=torch.complex64))
torch.matmul(torch.ones(2,0),torch.ones(0,2))
torch.matmul(torch.ones(0),torch.ones(0))
torch.matmul(torch.ones(2,0),torch.ones(0))
torch.matmul(torch.ones(0,2),torch.ones(2,3)).shape
torch.matmul(torch.ones(5,2,0),torch.ones(5,0,2))
torch.matmul(torch.ones(0,2,3),torch.ones(3,4)).shape
torch.matmul(torch.ones(2,3),torch.ones(3,2),out=torch.zeros(2,2))
torch.matmul(torch.ones(2,3),torch.ones(3,2),out=torch.zeros(2,2,dtype=torch.float64))
torch.matmul(torch.ones(2,3),torch.ones(3,2),out=torch.zeros(2,2,dtype=torch.int64))
torch.mm(torch.ones(2,3),torch.ones(2,3))
torch.mm(torch.ones(2),torch.ones(2,3))
torch.mm(torch.ones(2,3),torch.ones(3))
torch.mm(torch.ones(1,2,3),torch.ones(3,2))
torch.mm(torch.ones(2,3),torch.ones(3,2,dtype=torch.float64))
torch.mm(torch.ones(2,3),2)
torch.mm(2,torch.ones(2,3))
torch.mv(torch.ones(2,3),torch.ones(2))
torch.mv(torch.ones(2,3),torch.ones(2,3))
torch.mv(torch.ones(2),torch.ones(2))
torch.mv(torch.ones(2,3),torch.ones(3,dtype=torch.float64))
torch.mv(torch.ones(2,3,dtype=torch.int64),torch.ones(3,dtype=torch.int64))
torch.dot(torch.ones(2,3),torch.ones(3))
torch.dot(torch.ones(2),torch.ones(3))
torch.dot(torch.ones(2),torch.ones(2,dtype=torch.float64))
torch.dot(torch.tensor(1.),torch.tensor(1.))
torch.dot(torch.ones(2,dtype=torch.int64),torch.ones(2,dtype=torch.int64))
torch.dot(torch.ones(2,dtype=torch.bool),torch.ones(2,dtype=torch.bool))
torch.dot(torch.ones(2),3)
torch.dot(torch.tensor([1j,2]),torch.tensor([1j,2]))
torch.vdot(torch.tensor([1j,2]),torch.tensor([1j,2]))
torch.vdot(torch.ones(2),torch.ones(3))
torch.vdot(torch.ones(2,3),torch.ones(3))
torch.vdot(torch.ones(2),torch.ones(2,dtype=torch.float64))
torch.inner(torch.ones(2,3),torch.ones(2))
torch.inner(torch.ones(2,3),torch.ones(4,2))
torch.inner(torch.ones(2),torch.ones(3))
torch.inner(torch.ones(2),torch.tensor(3.))
torch.inner(torch.tensor(2.),torch.tensor(3.))
torch.inner(torch.ones(2),torch.ones(2,dtype=torch.float64))
torch.inner(torch.ones(2,2),torch.ones(2,2,dtype=torch.float64))
torch.inner(torch.ones(2),torch.ones(2,dtype=torch.int64))
torch.bmm(torch.ones(2,3),torch.ones(2,3,4))
torch.bmm(torch.ones(2,3,4),torch.ones(3,4))
torch.bmm(torch.ones(2,3,4),torch.ones(3,4,5))
torch.bmm(torch.ones(2,3,4),torch.ones(2,3,4))
torch.bmm(torch.ones(2,3,4),torch.ones(2,4,5,dtype=torch.float64))
torch.bmm(torch.ones(2,3,4,dtype=torch.bool),torch.ones(2,4,5,dtype=torch.bool))
torch.outer(torch.ones(2,3),torch.ones(3))
torch.outer(torch.ones(3),torch.ones(2,3))
torch.outer(torch.ones(2),torch.ones(3,dtype=torch.float64)).dtype
torch.outer(torch.ones(2,dtype=torch.int64),torch.ones(3,dtype=torch.int64))
torch.ger(torch.tensor(2.),torch.ones(3))
torch.addmm(torch.ones(2,2),torch.ones(2,3),torch.ones(3,2),beta=2,alpha=3)
torch.addmm(torch.ones(2),torch.ones(2,3),torch.ones(3,2))
torch.addmm(torch.ones(3),torch.ones(2,3),torch.ones(3,2))
torch.addmm(torch.tensor(1.),torch.ones(2,3),torch.ones(3,2))
torch.addmm(torch.ones(2,2,2),torch.ones(2,3),torch.ones(3,2))
torch.addmm(torch.ones(2,2),torch.ones(2,3),torch.ones(2,3))
torch.addmm(torch.ones(2,2),torch.ones(3),torch.ones(3,2))
torch.addmm(torch.ones(2,2),torch.ones(2,3),torch.ones(3))
torch.addmm(torch.ones(2,2,dtype=torch.float64),torch.ones(2,3),torch.ones(3,2))
torch.addmm(torch.ones(2,2),torch.ones(2,3),torch.ones(3,2,dtype=torch.float64))
torch.addmm(torch.full((2,2),nan),torch.ones(2,3),torch.ones(3,2),beta=0)
torch.addmm(torch.ones(2,2),torch.full((2,3),nan),torch.ones(3,2),alpha=0)
torch.addmm(torch.ones(2,2),torch.ones(2,0),torch.ones(0,2))
torch.addmv(torch.ones(2),torch.ones(2,3),torch.ones(3),beta=2,alpha=3)
torch.addmv(torch.ones(3),torch.ones(2,3),torch.ones(3))
torch.addmv(torch.tensor(1.),torch.ones(2,3),torch.ones(3))
torch.addmv(torch.ones(2),torch.ones(2,3),torch.ones(2))
torch.addmv(torch.ones(2),torch.ones(2,3),torch.ones(3,1))
torch.addmv(torch.ones(2,2),torch.ones(2,3),torch.ones(3))
torch.addmv(torch.ones(2),torch.ones(2,3),torch.ones(3,dtype=torch.float64))
torch.addmv(torch.ones(2,dtype=torch.float64),torch.ones(2,3),torch.ones(3))
torch.addmv(torch.full((2,),nan),torch.ones(2,3),torch.ones(3),beta=0)
torch.addr(torch.ones(2,3),torch.ones(2),torch.ones(3),alpha=2,beta=3)
torch.addr(torch.ones(3),torch.ones(2),torch.ones(3))
torch.addr(torch.ones(2),torch.ones(2),torch.ones(3))
torch.addr(torch.ones(2,3),torch.ones(2,1),torch.ones(3))
torch.addr(torch.full((2,3),nan),torch.ones(2),torch.ones(3),beta=0)
torch.addr(torch.ones(2,3),torch.ones(2),torch.ones(3,dtype=torch.float64)).dtype
torch.baddbmm(torch.ones(2,3,5),torch.ones(2,3,4),torch.ones(2,4,5),beta=2,alpha=3)[0,0,0]
torch.baddbmm(torch.ones(5),torch.ones(2,3,4),torch.ones(2,4,5)).shape
torch.baddbmm(torch.ones(4),torch.ones(2,3,4),torch.ones(2,4,5)).shape
torch.baddbmm(torch.ones(5),torch.ones(2,3),torch.ones(2,4,5)).shape
torch.baddbmm(torch.ones(5),torch.ones(2,3,4),torch.ones(2,3,5)).shape
torch.baddbmm(torch.ones(5),torch.ones(2,3,4),torch.ones(3,4,5)).shape
torch.baddbmm(torch.ones(5,dtype=torch.float64),torch.ones(2,3,4),torch.ones(2,4,5)).shape
torch.baddbmm(torch.ones(5),torch.ones(2,3,4),torch.ones(2,4,5,dtype=torch.float64)).shape
torch.baddbmm(torch.full((5,),nan),torch.ones(2,3,4),torch.ones(2,4,5),beta=0)[0,0]
torch.addbmm(torch.ones(3,5),torch.ones(2,3,4),torch.ones(2,4,5))
torch.addbmm(torch.ones(3,5),torch.ones(2,3),torch.ones(2,4,5))
torch.addbmm(torch.ones(3,5),torch.ones(2,3,4),torch.ones(3,4,5))
torch.addbmm(torch.ones(3,5),torch.ones(2,3,4),torch.ones(2,3,5))
torch.addbmm(torch.ones(3,4),torch.ones(2,3,4),torch.ones(2,4,5))
torch.tensordot(torch.ones(2,3),torch.ones(2,3),1)
torch.tensordot(torch.ones(2,3),torch.ones(3,2),-1)
torch.tensordot(torch.ones(2,3),torch.ones(3,2),3)
torch.tensordot(torch.ones(2,3),torch.ones(3,2),dims=([0],[0]))
torch.tensordot(torch.ones(2,3),torch.ones(3,2),dims=([0,1],[1]))
torch.tensordot(torch.ones(2,3),torch.ones(3,2),dims=([0,1],[1,0]))
torch.tensordot(torch.ones(2,3),torch.ones(3,2),dims=([0,0],[1,1]))
torch.tensordot(torch.ones(2,3),torch.ones(3,2),dims=([5],[1]))
torch.tensordot(torch.ones(2,3),torch.ones(1,2),dims=([1],[0]))
torch.tensordot(torch.ones(2,3),torch.ones(3,2,dtype=torch.float64),1)
torch.tensordot(torch.ones(2,3),torch.ones(3,2),'a')
torch.trace(torch.ones(2,3))
torch.trace(torch.ones(2))
torch.trace(torch.ones(2,2,dtype=torch.int32))
torch.trace(torch.ones(2,2,dtype=torch.bool))
torch.trace(torch.ones(0,0))
torch.kron(torch.tensor([1,2]),torch.tensor([[1.,2],[3,4]]))
torch.kron(torch.tensor(2.),torch.tensor([[1.,2],[3,4]]))
""".strip().splitlines()
SUMS = r"""
torch.einsum('ij,jk',torch.ones(2,3),torch.ones(3,4))
torch.einsum('ij,jk',torch.ones(2,3),torch.ones(2,4))
torch.einsum('ij',torch.ones(2,3,4))
torch.einsum('ij->k',torch.ones(2,3))
torch.einsum('ij,jk',torch.ones(2,3))
torch.einsum('ij',torch.ones(2,3),torch.ones(2,3))
torch.einsum('ij->ii',torch.ones(2,2))
torch.einsum('i1',torch.ones(2,2))
torch.einsum('...i->...',torch.ones(2,2))
torch.einsum('...i',torch.ones(2,2))
torch.einsum('i...->i',torch.ones(2,3))
torch.einsum('i...j->ij',torch.ones(2,3))
torch.einsum('i,j->ij',torch.ones(2),torch.ones(3,dtype=torch.float64))
torch.einsum('i j , j k -> i k',torch.ones(2,3),torch.ones(3,4))
torch.einsum('ba',torch.arange(6).view(2,3))
torch.einsum('bA',torch.arange(6).view(2,3))
torch.einsum('ij,jk->ik',[torch.ones(2,3),torch.ones(3,4)])
torch.einsum(torch.ones(2,3),[0,1],torch.ones(3,4),[1,2])
torch.einsum(torch.ones(2,3),[0,1],[1])
torch.einsum('ii->i',torch.arange(4).view(2,2))
torch.einsum('ii',torch.ones(2,3))
torch.einsum('ij,ij->ij',torch.ones(1,3),torch.ones(2,3))
torch.einsum('i->',torch.ones(2))
torch.einsum('->',torch.tensor(2.))
torch.einsum(',->',torch.tensor(2.),torch.tensor(3.))
torch.einsum('...,...->...',torch.ones(2,1),torch.ones(3))
torch.einsum('',torch.ones(2))
torch.einsum('i')
torch.einsum('i->i->i',torch.ones(2))
torch.einsum('i...j...',torch.ones(2,2))
torch.einsum('i.j',torch.ones(2,2))
torch.einsum('ij->...',torch.ones(2,2))
torch.einsum('i...->i...i',torch.ones(2,2))
torch.einsum('bij,bjk->bik',torch.arange(12.).view(2,2,3),torch.arange(12.).view(2,3,2))
torch.einsum('i,i,i->',torch.arange(3.),torch.arange(3.),torch.arange(3.))
torch.einsum('i,j,k->kji',torch.arange(3.),torch.arange(2.),torch.arange(3.))
torch.einsum('...ij,...jk->...ik',torch.arange(12.).view(2,2,3),torch.arange(6.).view(3,2))
torch.einsum('ijij->ij',torch.arange(36.).view(2,3,2,3))
torch.einsum('iii->i',torch.arange(8.).view(2,2,2))
torch.einsum('iii',torch.arange(8.).view(2,2,2))
torch.einsum('ij,jk->ik',torch.ones(2,0),torch.ones(0,3))
torch.einsum('ij,kj->',torch.ones(2,3),torch.ones(2,3))
torch.einsum('ij,ik->jk',torch.ones(1,3),torch.ones(2,3))
torch.einsum('ij,j->i',torch.ones(2,3),torch.ones(1))
torch.einsum('ab...,b...->a...',torch.ones(2,3,4),torch.ones(3,4))
torch.einsum('ij,jk->ik',torch.ones(2,3,dtype=torch.int64),torch.ones(3,2,dtype=torch.int64))
torch.einsum('ij,ij->ij',torch.ones(2,3,dtype=torch.bool),torch.ones(2,3,dtype=torch.bool))
torch.einsum('i,i->',torch.tensor([1j,2]),torch.tensor([1j,1]))
torch.einsum('i,->i',torch.ones(3),torch.tensor(2.))
""".strip().splitlines()

SHAPES = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3,)),
    ((3,), (5, 3, 2)),
    ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((1, 2, 3), (5, 3, 4)),
    ((5, 2, 3), (1, 3, 4)),
    ((7, 1, 2, 3), (5, 3, 4)),
    ((7, 5, 2, 3), (3, 4)),
    ((7, 5, 2, 3), (3,)),
    ((3,), (7, 5, 3, 2)),
    ((7, 5, 2, 3), (1, 3, 4)),
    ((1, 3, 4), (7, 5, 4, 2)),
    ((1, 1, 2, 3), (5, 3, 4)),
    ((1, 2, 3), (1, 3, 4)),
    ((2, 3), (1, 3, 4)),
    ((0, 3), (3, 2)),
    ((5, 0, 3), (3, 2)),
    ((0, 2, 3), (1, 3, 4)),
    ((0,), (0,)),
    ((2, 0), (0,)),
    ((0,), (0, 3)),
    ((5, 2, 0), (5, 0, 4)),
    ((3, 5, 0), (0, 0)),
    ((2, 3), (0, 3, 4)),
]
OTHERS = [
    ("outer", ((2,), (3,)), {}),
    ("mm", ((2, 3), (3, 2)), {}),
    ("mv", ((2, 3), (3,)), {}),
    ("dot", ((2,), (2,)), {}),
    ("vdot", ((2,), (2,)), {}),
    ("bmm", ((2, 3, 4), (2, 4, 5)), {}),
    ("inner", ((2,), (2,)), {}),
    ("inner", ((2, 3), (3,)), {}),
    ("inner", ((3,), (4, 3)), {}),
    ("inner", ((5, 2, 3), (4, 3)), {}),
    ("inner", ((2, 3), ()), {}),
    ("kron", ((2, 2), (2, 3)), {}),
    ("kron", ((2,), (2, 3)), {}),
    ("kron", ((), (2, 3)), {}),
    ("trace", ((3, 3),), {}),
    ("trace", ((2, 3),), {}),
    ("tensordot", ((2, 3, 4), (3, 4, 5)), {}),
    ("tensordot", ((2,), (3,)), {"dims": 0}),
    ("tensordot", ((2, 3), (3, 2)), {"dims": 1}),
    ("tensordot", ((2, 3), (3, 2)), {"dims": ([0, 1], [1, 0])}),
    ("tensordot", ((2, 3), (2, 3)), {"dims": ([0, 1], [0, 1])}),
    ("tensordot", ((2, 3), (1, 2)), {"dims": ([1], [0])}),
]
ADDED = [
    ("addmm", ((2, 2), (2, 3), (3, 2))),
    ("addmm", ((2,), (2, 3), (3, 2))),
    ("addmm", ((), (2, 0), (0, 2))),
    ("addmv", ((2,), (2, 3), (3,))),
    ("addr", ((2, 3), (2,), (3,))),
    ("addr", ((3,), (2,), (3,))),
    ("baddbmm", ((2, 3, 5), (2, 3, 4), (2, 4, 5))),
    ("baddbmm", ((5,), (2, 3, 4), (2, 4, 5))),
    ("addbmm", ((3, 5), (2, 3, 4), (2, 4, 5))),
]
FACTORS = [{}, {"beta": 3.0, "alpha": 1.5}, {"beta": 0, "alpha": 0.5}, {"beta": 2, "alpha": 0}]
EQUATIONS = [
    ("ij,jk->ik", ((2, 3), (3, 4))),
    ("ij,kj->", ((2, 3), (4, 3))),
    ("bij,bjk,bkl->il", ((2, 2, 3), (2, 3, 2), (2, 2, 2))),
    ("i,j,k->kji", ((3,), (2,), (3,))),
    ("...ij,jk->k...i", ((5, 2, 3), (3, 2))),
    ("iji->ij", ((2, 3, 2),)),
    ("ii", ((3, 3),)),
    ("ij->", ((2, 3),)),
    ("ij,ij->i", ((1, 3), (2, 3))),
    ("ij,jk->ik", ((2, 0), (0, 3))),
    ("i,->i", ((3,), ())),
]


def graph_of(tensor):
    """Return the names of all nodes as a nested expression."""

    def spelled(node):
        if node is None:
            return "constant"
        name = node.name().rsplit("::", 1)[-1]
        if name == "AccumulateGrad":
            return "leaf"
        return f"{name}({', '.join(spelled(child) for child, _ in node.next_functions)})"

    # A reshape of memory that is not contiguous has a name of its own in PyTorch.
    return spelled(tensor.grad_fn).replace("ReshapeAlias", "View")


def arrays_of(shapes, kind):
    random = np.random.default_rng(0)
    arrays = [np.asarray(random.standard_normal(shape)) for shape in shapes]
    if kind == "complex":
        arrays = [np.asarray(a + 1j * random.standard_normal(a.shape)) for a in arrays]
    return arrays


def compare(torch, function, shapes, kind, with_graph=True):
    """Compare results, graphs and gradients, whichever operands require grad."""
    arrays = arrays_of(shapes, kind)
    for mask in range(1, 2 ** len(arrays)):
        outcomes = []
        for module in (ng, torch):
            operands = [
                module.tensor(array, requires_grad=bool(mask >> position & 1))
                for position, array in enumerate(arrays)
            ]
            result = function(module)(*operands)
            cotangent = module.tensor(arrays_of([tuple(result.shape)], kind)[0])
            moving = [operand for operand in operands if operand.requires_grad]
            gradients = module.autograd.grad(result, moving, cotangent)
            numbers = [part.resolve_conj() for part in gradients] if module is torch else gradients
            outcomes.append((graph_of(result), [result.detach(), *numbers]))
        (our_graph, ours), (their_graph, theirs) = outcomes
        if with_graph:
            assert our_graph == their_graph
        for our, their in zip(ours, theirs, strict=True):
            assert our.shape == tuple(their.shape)
            assert repr(our.dtype) == repr(their.dtype)
            np.testing.assert_allclose(our.numpy(), their.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("expression", CALLS)
def test_calls_as_in_pytorch(torch, expression):
    check_same(torch, expression)


@pytest.mark.parametrize("expression", SUMS)
def test_einsum_as_in_pytorch(torch, expression):
    check_same(torch, expression)


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_matmul_of_all_ranks(torch, shapes, kind):
    compare(torch, lambda module: module.matmul, shapes, kind)


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize(("name", "shapes", "keywords"), OTHERS)
def test_other_products(torch, name, shapes, keywords, kind):
    def function(module):
        return lambda *operands: getattr(module, name)(*operands, **keywords)

    compare(torch, function, shapes, kind)


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("factors", FACTORS, ids=str)
@pytest.mark.parametrize(("name", "shapes"), ADDED)
def test_products_added_to_a_tensor(torch, name, shapes, factors, kind):
    given = (
        {key: value * (1 + 2j) for key, value in factors.items()} if kind == "complex" else factors
    )

    def function(module):
        return lambda *operands: getattr(module, name)(*operands, **given)

    compare(torch, function, shapes, kind)


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
def test_einsum_and_its_gradients(torch, equation, shapes, kind):
    def function(module):
        return lambda *operands: module.einsum(equation, *operands)

    compare(torch, function, shapes, kind, with_graph=False)


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
def test_einsum_has_derivatives_of_two_orders(equation, shapes):
    operands = [ng.tensor(array, requires_grad=True) for array in arrays_of(shapes, "real")]
    assert ng.autograd.gradcheck(lambda *x: ng.einsum(equation, *x), operands)
    assert ng.autograd.gradgradcheck(lambda *x: ng.einsum(equation, *x), operands)


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_matmul_has_derivatives_of_two_orders(shapes):
    small = [tuple(min(length, 2) for length in shape) for shape in shapes]
    operands = [ng.tensor(array, requires_grad=True) for array in arrays_of(small, "real")]
    assert ng.autograd.gradcheck(ng.matmul, operands)
    assert ng.autograd.gradgradcheck(ng.matmul, operands)


@pytest.mark.parametrize("name", ["addmm_", "addmv_", "addr_", "baddbmm_", "addbmm_"])
def test_products_added_in_place(torch, name):
    shapes = next(shapes for known, shapes in ADDED if known == name[:-1])

    def gradients(module):
        operands = [module.tensor(a, requires_grad=True) for a in arrays_of(shapes, "real")]
        target = operands[0] * 2
        assert getattr(target, name)(*operands[1:], beta=3, alpha=2) is target
        target.sum().backward()
        return [target.detach(), *(operand.grad for operand in operands)]

    for our, their in zip(gradients(ng), gradients(torch), strict=True):
        np.testing.assert_allclose(our.numpy(), their.numpy(), rtol=1e-12)


@pytest.mark.parametrize("name", ["addmm_", "addmv_", "baddbmm_"])
def test_products_added_in_place_to_what_has_another_shape(torch, name):
    shapes = next(shapes for known, shapes in ADDED if known == name[:-1])
    said = []
    for module in (ng, torch):
        operands = [module.tensor(each) for each in arrays_of(shapes, "real")]
        with pytest.raises(RuntimeError, match="Bad in-place call") as raised:
            getattr(operands[0][:1], name)(*operands[1:])
        said.append(str(raised.value))
    assert said[0] == said[1]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_integers_wrap_around_as_in_pytorch(torch, dtype):
    random = np.random.default_rng(0)
    left, right = (random.integers(0, 100, shape).astype(dtype) for shape in ((4, 50), (50, 3)))
    ours, theirs = (m.matmul(m.tensor(left), m.tensor(right)).tolist() for m in (ng, torch))
    assert ours == theirs


@st.composite
def strided_matrices(draw, shape):
    """Draw matrices of any layout: transposed, stepped over, reversed, or with a stride of 0."""
    values = np.arange(1.0, 1.0 + 4 * np.prod(shape)).reshape([2 * n for n in shape[-2:]] + [-1])
    array = np.resize(values, [*shape[:-2], *(2 * n for n in shape[-2:])]) % 7
    for dim in (-2, -1):
        step = draw(st.sampled_from([1, 2, -1, -2, 0]))
        length = shape[dim]
        if step == 0:
            part = array.take([0], dim)
            array = np.broadcast_to(part, [*part.shape[:dim], length, *part.shape[dim:][1:]])
        else:
            array = np.moveaxis(np.moveaxis(array, dim, 0)[::step][:length], 0, dim)
    if draw(st.booleans()):
        array = np.ascontiguousarray(array.swapaxes(-2, -1)).swapaxes(-2, -1)
    return array


@given(strided_matrices((3, 2, 4)), strided_matrices((3, 4, 5)))
def test_any_layout_gives_the_same_product(left, right):
    wanted = np.matmul(np.ascontiguousarray(left), np.ascontiguousarray(right))
    assert matrix_product(left, right).tolist() == wanted.tolist()
    assert matrix_product(left[0], right[0]).tolist() == wanted[0].tolist()


def test_a_factor_of_0_leaves_nan_out():
    nan, one = ng.full((2, 2), float("nan")), ng.ones(2, 2)
    assert ng.addmm(nan, one, one, beta=0).tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert ng.addmm(one, nan, one, alpha=0).tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_out_takes_the_shape_and_refuses_gradients():
    out = ng.zeros(0)
    assert ng.mm(ng.ones(2, 3), ng.ones(3, 2), out=out) is out
    assert out.tolist() == [[3.0, 3.0], [3.0, 3.0]]
    with pytest.raises(RuntimeError, match=r"functions with out=... arguments don't support"):
        ng.mm(ng.ones(2, 3, requires_grad=True), ng.ones(3, 2), out=out)


@given(st.data())
def test_matrices_that_blas_reads_are_not_copied_and_others_are(data: st.DataObject) -> None:
    shape = [data.draw(st.integers(1, 4)) for _ in range(3)]
    steps = [data.draw(st.sampled_from([-1, 1, 2])) for _ in shape]
    memory = np.arange(8.0 * 8 * 8).reshape(8, 8, 8)[: shape[0] * 2, : shape[1] * 2, : shape[2] * 2]
    array = memory[tuple(slice(None, None, step) for step in steps)]
    array = array.transpose(data.draw(st.permutations(range(3))))
    if data.draw(st.booleans()):
        array = np.broadcast_to(array[:, :1], (array.shape[0], 3, array.shape[2]))
    found = _for_blas(array)
    np.testing.assert_array_equal(found, array)
    # A leading dimension, at least as long as a row (or column), and elements that touch.
    rows, columns = (step // array.itemsize for step in array.strides[1:])
    height, width = array.shape[1:]
    reads = (columns == 1 and rows >= width) or (rows == 1 and columns >= height)
    assert (found is array) == reads
    assert reads or found.flags.c_contiguous
