"""Shapes, permutations, diagonals and repetitions: every call form as PyTorch has it."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from tests.ops.calls.same_call import assert_same_call, assert_same_error, assert_same_gradients

CALLS = [
    "x.view(6,4)",
    "x.view(-1)",
    "x.view((6,4))",
    "x.view_as(torch.zeros(6,4))",
    "x.reshape(6,4)",
    "x.reshape(-1)",
    "x.transpose(0,1).reshape(-1)",
    "x.transpose(0,1).reshape(3,8)",
    "x.reshape(2,3,4)",
    "m.t().reshape(12)",
    "x.reshape_as(torch.zeros(6,4))",
    "x.permute(2,0,1)",
    "x.transpose(0,1)",
    "x.swapaxes(0,1)",
    "x.swapdims(0,1)",
    "m.t()",
    "v.t()",
    "m.T",
    "x.mT",
    "m.H",
    "x.mH",
    "m.adjoint()",
    "x.T",
    "x.movedim(0,1)",
    "torch.moveaxis(x,0,-1)",
    "x.movedim((0,1),(1,0))",
    "x.squeeze()",
    "x.squeeze(0)",
    "x.unsqueeze(0)",
    "x.expand(5,2,3,4)",
    "x.expand(2,3,4)",
    "v.expand(3,-1)",
    "v.expand_as(torch.zeros(3,5))",
    "v.broadcast_to((3,5))",
    "v.broadcast_to(3,5)",
    "torch.broadcast_to(v,(3,5))",
    "x.flatten()",
    "v.flatten()",
    "torch.tensor(1.,requires_grad=True).flatten()",
    "x.flatten(1)",
    "x.transpose(0,1).flatten()",
    "x.unflatten(2,(2,2))",
    "x.unflatten(2,(2,-1))",
    "x.ravel()",
    "v.ravel()",
    "x.mT.ravel()",
    "x.flip(0)",
    "x.flip(0,1)",
    "x.fliplr()",
    "x.flipud()",
    "x.roll(1)",
    "x.roll(1,0)",
    "x.roll((1,2),(0,1))",
    "v.roll(1,0)",
    "x.rot90()",
    "v.repeat(2)",
    "v.repeat(2,2)",
    "v.tile(2)",
    "v.tile((2,2))",
    "v.as_strided((2,2),(1,1))",
    "torch.as_strided(v,(2,2),(1,1))",
    "torch.diag(v)",
    "torch.diag(v,1)",
    "torch.diag(m)",
    "m.diag(1)",
    "m.diagonal()",
    "x.diagonal(0,1,2)",
    "torch.diag_embed(v)",
    "torch.diagflat(v)",
    "torch.tril(m)",
    "torch.triu(m,1)",
    "m.unfold(0,2,1)",
    "m.repeat_interleave(2)",
    "m.repeat_interleave(2,dim=1)",
    "m.repeat_interleave(torch.tensor([1,2,3]),dim=0)",
    "torch.rot90(m)",
    "m.rot90(2)",
    "m.rot90(3)",
    "m.rot90(-1)",
    "m.rot90(1,(1,0))",
    "torch.tril_indices(2,2)",
    "torch.tril(x)",
    "torch.tril(m,-1)",
    "torch.diag_embed(m)",
    "torch.diag_embed(m,1,0,2)",
    "torch.diag_embed(m,-1)",
    "m.unflatten(1,(2,2))",
    "torch.zeros(0,3).view(-1)",
    "x.permute((0,1,2))",
    "torch.tensor(1.).transpose(0,0)",
    "torch.tensor(1.).transpose(-1,0)",
    "torch.tensor(1.).t()",
    "torch.tensor(1.).T",
    "torch.tensor(1.).mT",
    "torch.tensor(1.).H",
    "torch.tensor(1.).mH",
    "torch.tensor(1.).squeeze(0)",
    "torch.tensor(1.).squeeze(-1)",
    "x.unsqueeze(-4)",
    "x.expand(2,-1,4)",
    "x.flip([])",
    "torch.flip(x,(0,))",
    "v.repeat(0)",
    "m.tile(2)",
    "torch.diag(m,-2)",
    "m.diagonal(7)",
    "r=m*1; r.tril_() -> r",
]
ERRORS = [
    "m.unfold(0,5,1)",
    "m.unfold(0,2,0)",
    "m.unfold(0,-1,1)",
    "v.block_diag()",
    "x.view(5)",
    "x.view(-1,-1)",
    "x.view(-2,3)",
    "torch.zeros(0,3).view(0,-1)",
    "torch.zeros(0,3).view(-1,0)",
    "x.transpose(0,1).view(-1)",
    "x.view(24,None)",
    "x.reshape(5)",
    "x.reshape()",
    "x.reshape((2.5,))",
    "x.reshape(2.5)",
    "torch.reshape(x,5)",
    "torch.reshape(x,(5,))",
    "x.permute(0,1)",
    "x.permute(0,0,1)",
    "x.permute(0,1,5)",
    "x.transpose(0,5)",
    "x.transpose(0,-4)",
    "torch.tensor(1.).transpose(0,1)",
    "x.t()",
    "v.mT",
    "x.H",
    "v.H",
    "v.mH",
    "v.adjoint()",
    "x.movedim(0,5)",
    "x.movedim((0,1),(1,))",
    "x.movedim((0,0),(1,2))",
    "x.movedim((0,1),(1,1))",
    "x.squeeze(5)",
    "x.squeeze((0,0))",
    "x.squeeze((0,5))",
    "torch.tensor(1.).squeeze(1)",
    "x.unsqueeze(4)",
    "x.unsqueeze(-5)",
    "x.expand(3,4)",
    "x.expand(2,3,5)",
    "x.expand(-1,2,3,4)",
    "x.expand(-2,3,4)",
    "x.expand(2,-2,4)",
    "v.expand(2,0)",
    "v.expand(2.5)",
    "torch.broadcast_to(v,(3,))",
    "x.flatten(2,1)",
    "x.flatten(0,5)",
    "x.unflatten(5,(2,2))",
    "x.unflatten(2,(3,-1))",
    "x.unflatten(2,(3,3))",
    "x.unflatten(2,())",
    "x.unflatten(2,(-1,-1))",
    "x.unflatten(2,(4,-1,0))",
    "x.flip(5)",
    "x.flip(0,0)",
    "x.flip()",
    "v.fliplr()",
    "torch.tensor(1.).flipud()",
    "x.roll(1,(0,1))",
    "x.roll((1,2),0)",
    "x.roll((1,2))",
    "x.roll(1,5)",
    "torch.tensor(1.).roll(1,0)",
    "x.rot90(1,(0,0))",
    "x.rot90(1,(0,))",
    "x.rot90(1,(0,5))",
    "v.rot90()",
    "m.repeat(2)",
    "v.repeat(-1)",
    "v.repeat()",
    "torch.tensor(1.).repeat()",
    "m.repeat_interleave(-1)",
    "m.repeat_interleave(torch.tensor([1,2]),dim=0)",
    "m.repeat_interleave(torch.tensor([1,2]))",
    "m.repeat_interleave(torch.tensor([[1,2,3]]),dim=0)",
    *[
        f"m.repeat_interleave(torch.tensor([1,2,3]).to(torch.{dtype}),dim=0)"
        for dtype in ("float32", "bool", "int16", "uint8", "complex64")
    ],
    "torch.as_strided(v,(3,),(3,))",
    "torch.as_strided(v,(3,),(-1,))",
    "torch.as_strided(v,(3,),(1,1))",
    "torch.as_strided(v,(-3,),(1,))",
    "torch.as_strided(v,(3,),(1,),-1)",
    "torch.as_strided(v,(3,),(1,),4)",
    "torch.diag(x)",
    "torch.diag(torch.tensor(1.))",
    "m.diagonal(0,0,0)",
    "m.diagonal(0,0,5)",
    "v.diagonal()",
    "torch.diag_embed(v,0,0,0)",
    "torch.diag_embed(v,0,0,5)",
    "torch.diag_embed(torch.tensor(1.))",
    "torch.tril(v)",
    "torch.triu(torch.tensor(1.))",
]
GRADIENTS = [
    "x.view(6,4)",
    "x.transpose(0,1).reshape(-1)",
    "x.permute(2,0,1)",
    "x.expand(5,2,3,4)",
    "x.flip(0,1)",
    "x.roll((1,2),(0,1))",
    "v.repeat(2,2)",
    "m.repeat_interleave(torch.tensor([1,2,3]),dim=0)",
    "m.repeat_interleave(2,dim=1)",
    "v.as_strided((3,2),(1,1))",
    "m.t().as_strided((3,2),(1,1),2)",
    "torch.diag(v)",
    "torch.diag(m,1)",
    "x.diagonal(0,1,2)",
    "torch.diag_embed(m,1,0,2)",
    "torch.tril(x,-1)",
    "m.unfold(1,2,1)",
    "torch.rot90(m)",
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


@pytest.mark.parametrize(
    ("ours", "same"),
    [
        (lambda x: x.squeeze(axis=0), lambda x: x.squeeze(0)),
        (lambda x: x.unsqueeze(axis=1), lambda x: x.unsqueeze(1)),
        (lambda x: ng.flip(x, axis=0), lambda x: ng.flip(x, (0,))),
        (lambda x: ng.roll(x, 1, axis=2), lambda x: ng.roll(x, 1, 2)),
        (lambda x: ng.cat([x, x], axis=1), lambda x: ng.cat([x, x], 1)),
    ],
)
def test_axis_is_another_word_for_dim(ours: Any, same: Any) -> None:
    x = ng.arange(6.0).view(1, 2, 3)
    assert ours(x).tolist() == same(x).tolist()


@pytest.mark.parametrize("name", ["amax", "norm", "var", "argmax", "all"])
def test_keepdim_without_a_dim_keeps_all_of_them(name: str) -> None:
    assert getattr(ng, name)(ng.arange(6.0).view(2, 3), keepdim=True).shape == (1, 1)


@pytest.mark.parametrize("name", ["sum", "mean", "nansum", "prod", "max", "median", "nanmedian"])
def test_keepdim_without_a_dim_is_refused_where_pytorch_refuses_it(torch: Any, name: str) -> None:
    def outcome(m: Any, method: bool, options: dict[str, Any]) -> str:
        x = m.arange(6.0).view(2, 3)
        try:
            result = getattr(x, name)(**options) if method else getattr(m, name)(x, **options)
        except TypeError as error:
            return str(error).splitlines()[0]
        return str(result.tolist())

    given: list[dict[str, Any]] = [{"keepdim": True}, {}]
    if name in ("sum", "mean", "nansum"):
        given += [{"dim": None, "keepdim": True}, {"axis": None, "keepdims": True}, {"dim": None}]
    for options in given:
        for method in (False, True):
            ours = [outcome(ng, method, options) for _ in range(4)]  # from the third by a program
            assert ours == [outcome(torch, method, options)] * 4, options


def test_naming_both_dim_and_axis_is_an_error() -> None:
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        ng.ones(1).squeeze(dim=0, axis=0)


def test_views_share_memory_and_version_and_know_their_base() -> None:
    x = ng.zeros(2, 3)
    view = x.t()[1:].unsqueeze(0)
    assert view._base is x
    x[1, 2] = 5
    assert view.max().item() == 5
    assert view._version == x._version == 1


def test_as_strided_stays_inside_the_storage_of_the_base() -> None:
    x = ng.arange(10.0)
    part = x[4:]
    assert part.as_strided((2,), (1,), 0).tolist() == [0, 1]
    assert part.as_strided((2,), (1,)).tolist() == [4, 5]
    with pytest.raises(RuntimeError, match="out of bounds for storage of size"):
        part.as_strided((2,), (1,), 9)


def test_gradient_of_as_strided_scatter_is_that_of_finite_differences() -> None:
    # PyTorch 2.13 gives the input the gradient inside the places, so it is no reference here.
    x = ng.rand(2, 3, dtype=ng.float64, requires_grad=True)
    source = ng.rand(2, dtype=ng.float64, requires_grad=True)
    assert ng.autograd.gradcheck(
        lambda x, source: ng.as_strided_scatter(x, source, (2,), (3,), 1), (x, source)
    )


@pytest.mark.parametrize("part", ["real", "imag"])
def test_a_view_of_part_of_a_complex_base_finds_its_history_after_a_write(
    torch: ModuleType, part: str
) -> None:
    found = []
    for library in (torch, ng):
        x = library.tensor([1.0, 2.0], dtype=library.float64, requires_grad=True)
        z = x * (1 + 2j)
        view = getattr(library, part)(z)
        z.mul_(z.detach().clone())
        (gradient,) = library.autograd.grad((view * view).sum(), x)
        found.append(gradient.tolist())
    np.testing.assert_allclose(found[0], found[1])


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize(
    "split",
    [
        lambda x, dim: x.split(2, dim),
        lambda x, dim: x.split([1, x.shape[dim] - 1], dim),
        lambda x, dim: x.chunk(2, dim),
        lambda x, dim: x.tensor_split(3, dim),
        lambda x, dim: x.unbind(dim),
    ],
    ids=["split", "split_sizes", "chunk", "tensor_split", "unbind"],
)
def test_a_part_passes_its_gradient_on_where_the_others_are_not_used(split, dim):
    count = len(split(ng.zeros(2, 4, 3), dim))
    for used in range(count):
        x = ng.ones(2, 4, 3, dtype=ng.float64, requires_grad=True)
        part = split(x, dim)[used]
        weights = ng.arange(part.numel(), dtype=ng.float64).reshape(part.shape) + 1
        (gradient,) = ng.autograd.grad(part, x, weights)
        expected = np.zeros((2, 4, 3))
        split(ng.from_numpy(expected), dim)[used].copy_(weights)  # shares memory with it
        np.testing.assert_array_equal(gradient.numpy(), expected)


@pytest.mark.parametrize("size", [0, 1])
def test_windows_of_a_tensor_without_dims(size):
    x = ng.tensor(3.0, requires_grad=True)
    windows = x.unfold(0, size, 1)
    assert (windows.shape, windows.stride()) == ((size,), (1,))
    (gradient,) = ng.autograd.grad(windows.sum(), x)
    assert gradient.item() == size


@pytest.mark.parametrize("dim", [0, 1])
def test_windows_are_numpys_at_every_size_and_step(dim):
    array = np.random.default_rng(0).normal(size=(7, 8))
    for size in range(1, array.shape[dim] + 1):
        windows = np.lib.stride_tricks.sliding_window_view(array, size, axis=dim)
        for step in (1, 2, 3, 5, 9):
            x = ng.from_numpy(array.copy()).requires_grad_()
            found = x.unfold(dim, size, step)
            expected = windows[::step] if dim == 0 else windows[:, ::step]
            np.testing.assert_array_equal(found.numpy(force=True), expected)
            (gradient,) = ng.autograd.grad(found, x, ng.from_numpy(expected.copy()))
            starts = range(0, array.shape[dim] - size + 1, step)
            count = [sum(a <= k < a + size for a in starts) for k in range(array.shape[dim])]
            times = np.expand_dims(np.array(count), 1 - dim)  # an element is in so many windows
            np.testing.assert_allclose(gradient.numpy(), times * array, rtol=1e-12)
