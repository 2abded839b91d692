"""Tensors of 32 and more dims, up to the 64 that NumPy has: everything works or says why not."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng

# Each line on `x` of n dims, of which the first, the second and the last have 2 elements.
LINES = r"""
x + 1
x * x.transpose(0, -1)
x.exp()
x.transpose(0, 1).contiguous()
x.permute(list(range(n - 1, -1, -1))).exp()
x.sum()
x.sum(0)
x.sum((0, -1), keepdim=True)
x.mean((0, 1))
x.var(0)
x.prod(0)
x.amax()
x.max(0)
x.argmax(-1)
x.any()
x.norm()
x.cumsum(0)
x.cummax(0)
x.logsumexp(0)
x.softmax(-1)
x.sort(-1)
x.sort(0, descending=True)
x.topk(1, 0)
x.kthvalue(2, 1)
x.kthvalue(2, 1, keepdim=True)
x[0]
x[..., 0]
x[0, ..., 1]
x[:, 1]
x[torch.tensor([1, 0])]
x[0, torch.tensor([1, 0])]
x[..., torch.tensor([True, False])]
x[1, ..., torch.tensor([True, False])]
x[torch.tensor([1]), ..., torch.tensor([True, False])]
x.masked_select(x > 3)
x.masked_fill(x > 3, 0)
torch.where(x > 3, x, 0)
x.index_select(0, torch.tensor([1]))
x.flatten()
x.reshape(8)
x.squeeze()
x.expand([2] * 3 + [1] * (n - 4) + [2]).sum()
x.expand([2] * 3 + [1] * (n - 4) + [2]) + 1
torch.cat([x, x])
x.flip(0)
x.roll(1, 0)
x.split(1)
x.unbind(0)
x.repeat([2] + [1] * (n - 1))
x.diagonal(0, 0, 1)
x.matmul(x.transpose(-1, -2))
x.to(torch.int32)
x.clone().add_(1)
x.clone().transpose_(0, 1)
torch.zeros_like(x)
x.gather(0, torch.zeros([1] * (n - 1) + [2], dtype=torch.int64))
x.scatter(0, torch.ones([1] * (n - 1) + [2], dtype=torch.int64), 5.0)
x.scatter_add(0, torch.ones([1, 2] + [1] * (n - 2), dtype=torch.int64), x)
x.tolist()
x.equal(x)
x.lerp(x + 1, 0.5)
x.clamp(1, 5)
x.movedim(0, -1)
x.narrow(0, 1, 1)
(x > 3).nonzero()[:, -1]
torch.autograd.grad((y * y.exp()).sum(), y)
torch.autograd.grad((y.transpose(0, -1) * y).sum(), y)
torch.autograd.grad(y.sum((0, 1)).exp().sum(), y)
torch.autograd.grad(y[torch.tensor([0, 0])].exp().sum(), y)
torch.autograd.grad(y.sort(0)[0][0].exp().sum(), y)
torch.autograd.grad(y.masked_select(y > 3).exp().sum(), y)
""".strip().split("\n")


def run(library: Any, line: str, ndim: int) -> Any:
    shape = [2, 2, *[1] * (ndim - 3), 2]
    x = library.from_numpy(np.arange(8.0)).reshape(shape)
    names = {"torch": library, "x": x, "y": x.clone().requires_grad_(), "n": ndim}
    return eval(line, names)


def described(found: Any) -> Any:
    if isinstance(found, (tuple, list)) and not isinstance(found, ng.Size):
        return [described(each) for each in found]
    if not hasattr(found, "shape"):
        return found
    numbers = np.array(found.detach().reshape(-1).tolist())
    exact = numbers.dtype.kind != "f"
    return tuple(found.shape), str(found.dtype), (numbers if exact else numbers.round(9)).tolist()


def without_ones(found: Any) -> Any:
    """Return a description in which dims of one element do not show."""
    if isinstance(found, list):
        parts = [without_ones(each) for each in found]
        return parts[0] if len(parts) == 1 else parts
    if isinstance(found, tuple):
        return tuple(length for length in found[0] if length != 1), *found[1:]
    return found


@pytest.mark.sampled(0.11, by="line")
@pytest.mark.parametrize("ndim", [32, 33, 47])
@pytest.mark.parametrize("line", LINES)
def test_many_dims_are_as_few(line: str, ndim: int) -> None:
    few, many = (described(run(ng, line, count)) for count in (4, ndim))
    assert without_ones(many) == without_ones(few)


@pytest.mark.parametrize("line", LINES)
def test_many_dims_are_pytorchs(torch: ModuleType, line: str) -> None:
    assert described(run(ng, line, 33)) == described(run(torch, line, 33))


COMPILED: dict[str, Callable[[Any], Any]] = {
    "a sum": lambda x: (x.transpose(0, -1) * 2 + x).sum(1),
    "broadcast": lambda x: x * x[0] + x.sum(0),
    "a kept dim": lambda x: x.exp() + x.sum(-1, keepdim=True),
    "turned": lambda x: x.flip(0) * x.movedim(0, -1).sin(),
    "with its gradient": ng.func.grad(lambda x: (x.exp() * x[1]).sum()),
}


@pytest.mark.sampled(0.18, by="name")
@pytest.mark.parametrize("ndim", [32, 33, 64])
@pytest.mark.parametrize("name", COMPILED)
def test_many_dims_under_jit(name: str, ndim: int) -> None:
    x = ng.arange(8.0, dtype=ng.float64).reshape([2, 2, *[1] * (ndim - 3), 2])
    found, expected = ng.jit(COMPILED[name])(x), COMPILED[name](x)
    assert found.shape == expected.shape
    assert ng.allclose(found, expected, 1e-12)


def test_more_dims_than_numpy_has_are_refused() -> None:
    x = ng.ones([1] * 64)
    assert (x + 1).sum().item() == 2
    for call in (lambda: ng.ones([1] * 65), lambda: x.unsqueeze(0), lambda: x.expand([1] * 65)):
        with pytest.raises((RuntimeError, ValueError), match="64"):
            call()
    nested: Any = 3.0
    for _ in range(64):
        nested = [nested]
    assert ng.tensor(nested).shape == (1,) * 64
    with pytest.raises((RuntimeError, ValueError)):
        ng.tensor([nested])


@given(st.data())
def test_masks_after_integers_take_what_they_name(data: st.DataObject) -> None:
    """Integers make views first, then one mask takes its dims; also behind 32 dims of size 1."""
    shape = data.draw(st.lists(st.integers(1, 3), min_size=2, max_size=4))
    array = np.arange(float(np.prod(shape))).reshape(shape)
    key: list[Any] = []
    dim = 0
    masked = False
    while dim < len(shape):
        kind = data.draw(st.sampled_from(["int", "slice", "mask"]))
        if kind == "mask" and not masked:
            count = data.draw(st.integers(1, min(2, len(shape) - dim)))
            whole = shape[dim : dim + count]
            bits = data.draw(
                st.lists(st.booleans(), min_size=int(np.prod(whole)), max_size=int(np.prod(whole)))
            )
            key.append(np.array(bits, bool).reshape(whole))
            dim, masked = dim + count, True
        elif kind == "int":
            key.append(data.draw(st.integers(-shape[dim], shape[dim] - 1)))
            dim += 1
        else:
            key.append(slice(data.draw(st.integers(0, shape[dim])), None))
            dim += 1
    taken, rest, at = array, [], 0
    for item in key:
        if isinstance(item, int):
            taken = taken.take(item, at)
        else:
            rest.append(item)
            at += item.ndim if isinstance(item, np.ndarray) else 1
    expected = taken[tuple(rest)]

    more = data.draw(st.sampled_from([0, 30, 33]))
    x = ng.from_numpy(array).reshape([1] * more + shape).requires_grad_()
    own = (..., *[ng.from_numpy(item) if isinstance(item, np.ndarray) else item for item in key])
    found = x[own]
    assert found.shape == (*[1] * more, *expected.shape)
    assert found.reshape(-1).tolist() == expected.reshape(-1).tolist()
    (gradient,) = ng.autograd.grad(found.sum(), x)
    assert gradient.reshape(-1).tolist() == np.isin(array, expected).reshape(-1).tolist()
    written = x.detach().clone()
    written[own] = -1.0
    assert (written == -1).reshape(-1).tolist() == np.isin(array, expected).reshape(-1).tolist()
