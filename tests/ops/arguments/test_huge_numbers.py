"""Offsets, dims, shifts, lengths and orders that no memory has, and that no C integer holds."""

from __future__ import annotations

from typing import Any

import pytest

import numgrad as ng

HUGE = (2**31, 2**62, 2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 2**70, 10**30)
# What n stands in. Results are the same as PyTorch's, or errors.
CALLS = """
x.diagonal(n) | x.diagonal(0, n, 1) | torch.diag(x, n) | x.tril(n) | x.triu(n) | x.tril_(n)
torch.tril_indices(2, 3, n) | torch.triu_indices(2, 3, n) | x.roll(n, 0) | x.roll(1, n) | x.roll(n)
x.roll((n, 1), (0, 1)) | x.narrow(0, n, 1) | x.narrow(0, 0, n) | x.narrow(n, 0, 1) | x[n] | x[0, n]
x[n:] | x[:n] | x[::n] | x[n:n:n] | x.select(0, n) | x.select(n, 0) | x.unfold(0, n, 1)
x.unfold(0, 1, n) | x.unfold(0, 2, n) | x.unfold(n, 1, 1) | x.sum(n) | x.sum((n,)) | x.flip(n)
x.transpose(0, n) | x.permute(0, n) | x.unsqueeze(n) | x.squeeze(n) | x.cumsum(n) | x.sort(n)
x.topk(n) | x.kthvalue(n) | x.repeat(n, 0).shape | x.movedim(0, n) | x.rot90(n) | x.split(n)
x.expand(n, 2, 3).shape | x.reshape(n) | x.view(n, -1) | torch.ones(0, n) | torch.full((2,), n)
torch.tensor(n) | torch.tensor([n]) | x + n | i + n | i * n | x**n | i**n | i << n | i < n | i == n
x.fill_(n) | x.index_select(n, k) | x.gather(n, k) | torch.cat([x, x], n) | torch.stack([x, x], n)
x.flatten(n) | x.flatten(0, n) | x.softmax(n) | i.clamp(n) | i.fmod(n) | i % n | i // n
x.as_strided((2,), (1,), n) | x.as_strided((2,), (n,)) | x.as_strided((n,), (1,))
torch.multinomial(x[0], n) | torch.nn.functional.one_hot(i, n if n < 0 or n >= 2**62 else -n)
torch.nn.functional.pad(x, (n if abs(n) > 2**31 else -n, 0))
x.masked_fill(x > 0, n) | torch.where(x > 0, x, n) | x.std(n)
x.norm(2, n) | x.squeeze((n,))
x.norm(dim=n) | x.argmax(n) | x.max(n) | x.hsplit(n) | x.new_zeros((0, n)) | x.size(n)
torch.combinations(x[0], n if n >= 2**62 else -abs(n)) | x.diagonal_scatter(x[0, :0], n)
torch.matrix_power(torch.eye(2), n if 0 < n < 2**62 else 2**70) | x.quantile(0.5, n)
""".replace("\n", " | ")
# Where PyTorch's own sums overflow, and it says what comes of that, or nothing: ours are exact.
OVERFLOWING = """
x[::n] x[n:n:n] x.unfold(0,1,n) x.unfold(0,2,n) x.roll(n,0) x.roll(n) x.roll((n,1),(0,1))
x.repeat(n,0).shape x.expand(n,2,3).shape x.reshape(n) x.view(n,-1) torch.ones(0,n)
x.new_zeros((0,n)) x.as_strided((2,),(1,),n) x.as_strided((2,),(n,)) x.as_strided((n,),(1,))
torch.tril_indices(2,3,n) torch.triu_indices(2,3,n)
torch.nn.functional.pad(x,(nifabs(n)>2**31else-n,0))
"""


def answer(library: Any, call: str, n: int) -> Any:
    x = library.arange(6.0).reshape(2, 3)
    names = {"torch": library, "x": x, "n": n, "i": library.tensor([1, 2, 3])}
    names["k"] = library.tensor([0])
    try:
        found = eval(call, names)
    except (
        IndexError,
        OverflowError,
        RuntimeError,
        TypeError,
        ValueError,
        ZeroDivisionError,
    ) as error:
        return type(error).__name__, str(error).splitlines()[0].rstrip('"')
    several = found if type(found) in (tuple, list) else [found]
    return [
        (repr(each.dtype), each.tolist()) if hasattr(each, "tolist") else each for each in several
    ]


@pytest.mark.filterwarnings("ignore")  # PyTorch warns of slices, and goes on
@pytest.mark.parametrize("call", [each.strip() for each in CALLS.split("|") if each.strip()])
def test_numbers_that_no_memory_has_are_answered_as_pytorch_does(torch: Any, call: str) -> None:
    for n in HUGE:
        found = answer(ng, call, n)  # no OverflowError, nor MemoryError
        if call.replace(" ", "") not in OVERFLOWING.split():
            assert found == answer(torch, call, n), n
        else:
            assert found[0] not in ("OverflowError", "MemoryError"), n


def test_further_than_a_matrix_reaches_is_the_same_as_just_beyond_it() -> None:
    x = ng.arange(6.0).reshape(2, 3).requires_grad_()
    for name in ("diagonal", "tril", "triu"):
        for n, near in ((2**62, 3), (-(2**62), -2)):
            function = getattr(ng, name)
            made = [function(x, each) for each in (n, near)]
            jitted = ng.jit(lambda x, n=n, function=function: function(x, n))(x)
            gradients = [ng.autograd.grad(each.sum(), x)[0].tolist() for each in (*made, jitted)]
            assert made[0].tolist() == made[1].tolist() == jitted.tolist()
            assert gradients[0] == gradients[1] == gradients[2]
    assert x.unfold(0, 2, 2**62).tolist() == x.unfold(0, 2, 1).tolist()
    ones = ng.ones(0, 3).unfold(1, 3, 2**63 - 1)
    assert ones.shape == (0, 1, 3)


@pytest.mark.parametrize("n", [2**20, 2**24, 2**31, 2**53, 2**62, 2**63 - 2])
def test_the_sign_of_polygamma_goes_by_whether_the_order_is_even(n: int) -> None:
    for dtype in (ng.float32, ng.float64):
        x = ng.ones(1, dtype=dtype)
        assert ng.polygamma(n, x).item() == float("-inf")
        assert ng.polygamma(n + 1, x).item() == float("inf")
