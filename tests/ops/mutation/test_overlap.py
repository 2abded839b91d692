"""Writes to a tensor of what shares its memory: done, or refused, as in PyTorch.

What PyTorch calls undefined (operands that it can't tell the overlap of) is not drawn.
"""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest

import numgrad as ng
from tests.ops.lines import answer

SETUP = """
x = torch.arange(4.0)
m = torch.arange(9.0).reshape(3, 3)
k = torch.tensor([2, 0, 1, 3])
e = torch.tensor([1.0, 2.0]).expand(3, 2)
"""
# What is written to, and what may be read, of one shape.
SHARED = [
    ("x", ["x", "x[:]", "x.view(4)", "x.detach()", "x.clone()"]),
    ("x[1:]", ["x[:-1]", "x[1:]", "x[1:].view(3)"]),
    ("x[:2]", ["x[2:]", "x[1:3]"]),
    ("x[:-1]", ["x[1:]"]),
    ("m", ["m", "m.t()", "m[:]", "m.view(3, 3)"]),
    ("m[1:]", ["m[:-1]", "m[1:]"]),
    ("m.t()", ["m", "m.t()"]),
    ("e", ["e", "e.view(3, 2)", "e[:]", "e.clone()"]),
]
WRITES = """
{to}.copy_({of})
{to}.add_({of})
{to}.mul_(other={of})
{to}.lerp_({of}, 0.5)
{to}.clamp_(min={of})
{to}.addcmul_({of}, {of})
{to}.masked_fill_({of} > 1, 7.0)
torch.add({of}, 1, out={to})
{to}.index_add_(0, i, {of})
{to}.index_copy_(0, i, {of})
{to}.scatter_(0, i.expand({to}.shape[1:] + i.shape).movedim(-1, 0), {of})
{to}.scatter_add_(0, i.expand({to}.shape[1:] + i.shape).movedim(-1, 0), {of})
{to}.index_put_((i,), {of})
{to}[:] = {of}
{to}[...] = {of}
{to}[i] = {of}
{to}[{to} > -1] = {of}.clone().reshape(-1)
""".strip().splitlines()
INDICES = """
k.index_add_(0, k, torch.ones(4, dtype=torch.int64)) -> k
k.index_fill_(0, k, 1) -> k
k.index_fill_(0, k[:2], 1) -> k
k.index_copy_(0, k, k.clone()) -> k
k.scatter_(0, k, 1) -> k
k.scatter_(0, k.clone(), k) -> k
k.index_put_((k,), torch.ones(4, dtype=torch.int64)) -> k
k[k] = 1 -> k
k[k,] = torch.ones(4, dtype=torch.int64) -> k
k[k] = k.clone() -> k
k[k.clone()] = 1 -> k
k[1:3][k[1:3]] = 1 -> k
k[2:][k[1:2] * 0] = 1 -> k
k[1:][k[2:3]] = 1 -> k
q = k.int(); q[q] = 1 -> q
q = k.int()[:0]; q[q] = 1 -> q
q = k > 1; q[q] = False -> q
q = k > 1; q[q] = q[:2] -> q
q = (k > 1).reshape(2, 2); q[q[0]] = True -> q
x[1:] = x[:1] -> x
x[:1] = x[3] -> x
m[0] = m[1] -> m
m[:, 0] = m[:, 1] -> m
m[[0, 1]] = m[1:] -> m
m[m > 3] = x[0] -> (m, x)
y = x.requires_grad_().clone(); y[1:] = y[:-1] -> y
y = x.requires_grad_() * 1; y[:] = y; y.sum().backward() -> (y.grad_fn.name(), x.grad)
y = x.requires_grad_().expand(2, 4); y.detach().copy_(y.detach()) -> (x, y._version)
""".strip().splitlines()


def lines() -> list[str]:
    found = []
    for (to, sources), write in itertools.product(SHARED, WRITES):
        is_indexed = any(part in write for part in ("[i", "i,", "masked", "> -1"))
        if is_indexed and to == "e":  # which PyTorch allows, and warns of
            continue
        index = f"i = torch.arange(len({to})).flip(0); "
        for of in sources:
            found.append(index + write.format(to=to, of=of) + " -> (x, m, e)")
    return [*found, *INDICES]


@pytest.mark.sampled(0.11)
@pytest.mark.parametrize("line", lines())
def test_what_shares_memory_is_written_or_refused_as_in_pytorch(torch: Any, line: str) -> None:
    assert answer(ng, line, SETUP) == answer(torch, line, SETUP)


WARNED: dict[str, tuple[str, Any]] = {
    "index_put": ("[indices] = tensor", lambda x: x.index_put_((ng.tensor([0]),), ng.ones(1))),
    "masked_fill": ("[mask] = scalar", lambda x: x.masked_fill_(ng.tensor([True, False]), 2.0)),
    "index_fill": ("[mask] = scalar", lambda x: x.index_fill_(0, ng.tensor([1]), 3.0)),
}


@pytest.mark.parametrize("name", WARNED)
def test_a_write_by_an_index_to_what_is_shown_twice_says_what_is_like_it(name: str) -> None:
    like, write = WARNED[name]
    before = ng.is_warn_always_enabled()
    ng.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match=rf"^Use of {name}_ on .*{re.escape(f'tensor{like}')}"):
            write(ng.zeros(1).expand(2))
    finally:
        ng.set_warn_always(before)


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge", "mul", "add", "fmod"])
def test_what_is_written_to_is_the_first_output_of_its_node(name: str) -> None:
    """Where a comparison cuts the gradient off, too, and beside other ways to the leaf."""
    for operand in (2.0, ng.tensor([2.0, 1.0]), ng.ones(2, requires_grad=True)):
        x = ng.tensor([2.0, 3.0], requires_grad=True)
        y = x * 1
        getattr(y, f"{name}_")(operand)
        assert y.output_nr == 0 and type(y.grad_fn).__name__.startswith(name.capitalize())
        outputs, expected = (y * 3 + x).sum(), getattr(ng, name)(x, operand) * 3 + x
        (found,) = ng.autograd.grad(outputs, x)
        assert found.tolist() == ng.autograd.grad(expected.sum(), x)[0].tolist()
