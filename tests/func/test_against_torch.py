"""What transformed functions return and raise is what torch.func's do, call by call."""

from __future__ import annotations

import collections
from types import ModuleType
from typing import Any

import pytest

import numgrad as ng
from tests.library_lines import described, evaluated

# PyTorch compiles its forward mode, with what it deprecates itself.
pytestmark = [
    pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated"),
    pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr Node"),
]

Pair = collections.namedtuple("Pair", "first second")


def run(library: Any, line: str) -> Any:
    """Evaluate an expression, after the statements before ``->``, with either library."""
    names: dict[str, Any] = {
        "torch": library,
        "func": library.func,
        "Pair": Pair,
        "x": library.tensor([1.0, 2.0, 3.0]),
        "s": library.tensor(2.0),
        "i": library.tensor([1, 2, 3]),
        "o": library.ones(3),
        "w": library.tensor([0.5, -1.0, 2.0], requires_grad=True),
    }
    return evaluated(line, names)


SAME = """
func.grad(lambda x, y: (x * y).sum(), argnums=-1)(x, 2 * x)
func.grad(lambda x, y: (x * y).sum(), argnums=(1, 0))(x, 2 * x)
func.grad(lambda x, y: (x * y).sum(), argnums=(1,))(x, 2 * x)
func.grad(lambda x, y: (x * y).sum(), argnums=True)(x, 2 * x)
func.grad(lambda x, i: (x * i).sum())(x, i)
func.grad(lambda x: torch.tensor(3))(x)
func.grad(lambda x: x.long().sum())(x)
func.grad(lambda x: s)(x)
func.grad(lambda d: (d['a'] * d['b'][0]).sum())({'b': [x], 'a': x * 2})
func.grad(lambda p: (p.first * p.second).sum())(Pair(x, 2 * x))
func.grad(lambda x, k: (x * k).sum())(x, k=x)
func.grad(lambda x: (x.sum(), {'a': x * 2, 'b': (x,)}), has_aux=True)(x)
func.grad_and_value(lambda x: (x.sum(), x * 2), has_aux=True)(x)
func.grad_and_value(lambda x: (x.abs() ** 2).sum())(x.to(torch.complex64) * 1j)
func.grad_and_value(lambda x: w.sum())(x)
func.grad_and_value(lambda x: (w * w * x * x).sum())(x)
func.grad_and_value(lambda x: (x * x * x).sum())(w)
func.grad_and_value(lambda x: x.sum())(w)
func.grad_and_value(lambda x: (x * x).sum())(w[:2])
func.grad_and_value(lambda x: x)(s)
func.grad(lambda x, y: (x * y).sum())(x, x)
func.grad(lambda x: torch.autograd.grad((x ** 3).sum(), x, create_graph=True)[0].sum())(x)
func.grad(func.grad(lambda x: x ** 3))(s)
func.grad(lambda x: x * func.grad(lambda y: x + y)(s))(s)
func.grad(lambda x: func.jvp(lambda y: x * y * y, (x,), (torch.tensor(1.0),))[1])(s)
func.jvp(func.grad(lambda x: (x ** 3).sum()), (x,), (o,))
func.jvp(lambda x: func.jvp(lambda y: x * y ** 2, (x,), (o,))[1], (x,), (o,))
torch.set_grad_enabled(False) -> func.grad_and_value(lambda x: (w * x ** 3).sum())(w)
torch.set_grad_enabled(False) -> func.jvp(lambda x: w * x ** 2, (w,), (w,))
torch.set_grad_enabled(False) -> func.vjp(lambda x: w * x ** 2, w)[1](w)
func.grad(lambda x: (x * x.detach()).sum())(x)
func.jvp(lambda x: x * x.detach(), (x,), (o,))
y = x.clone(); g = func.grad(lambda a, b: (a * b.mul_(2)).sum())(x, y) -> (g, y)
y = x.clone(); g = func.jvp(lambda a: a.mul_(2).sum(), (y,), (o,)) -> (g, y)
func.vjp(lambda x: x ** 2, x)[0]
func.vjp(lambda x: x ** 2, x)[1](o)
func.vjp(lambda x: x ** 2, x)[1](w)
func.vjp(lambda x: x ** 2, w)[1](o)
func.vjp(lambda x: w * x ** 2, x)[1](o)
func.vjp(lambda x: x ** 2, w)[1](o, create_graph=False)
func.vjp(lambda x, y: x * y, x, x)[1](x)
func.vjp(lambda d: d['a'] * 2, {'a': x})[1](x)
func.vjp(lambda x: Pair(x, x * 2), x)[0]
func.vjp(lambda x: (x * 2, x * 3), x, has_aux=True)[2]
func.vjp(lambda x: x * 2, x)[1](o.double())
func.vjp(lambda: x * 2)[1](x)
func.jvp(lambda x: s, (x,), (o,))
func.jvp(lambda x: (x.long(), x * 2), (x,), (o,))
func.jvp(lambda x: (x, {'a': x * 2}), (x,), (o,))
func.jvp(lambda x: (x * 2, x * 3), (x,), (o,), has_aux=True)
func.jvp(lambda x: x * x, (w,), (o,))
func.jvp(lambda x: w * x * x, (x,), (o,))
func.jvp(lambda x: x * x, (x,), (w,))
func.jvp(lambda x: x * x, (x * 1j,), (o * 1j,))
func.jvp(lambda x: x * x, (x * 1j,), (o,))
func.jvp(lambda x: tuple(x.max(0)), (x,), (o,))
func.jacrev(lambda x: x ** 2)(x)
func.jacrev(lambda x: x ** 2)(s)
func.jacrev(lambda x, y: x * y, argnums=-1)(x, x)
func.jacrev(lambda x: (x * 2, x.double() * 2))(s)
func.jacrev(lambda x: x ** 2)(w)
func.jacrev(lambda x: x * 2)(w)
func.jacfwd(lambda x: x ** 2)(x)
func.jacfwd(lambda x: x ** 2)(w)
func.jacfwd(lambda x: x.long())(x)
func.jacfwd(lambda x: (x * 2, x.double() * 2))(s)
func.hessian(lambda x: (x ** 3).sum())(x)
func.hessian(lambda x: x ** 3)(x)
func.hessian(lambda x: (x ** 3).sum())(w)
func.hessian(lambda x, y: (x ** 3 * y).sum(), argnums=(0, 1))(x, s)
func.hessian(lambda d: (d['a'] ** 3 * d['b']).sum())({'a': x, 'b': s})
func.hessian(lambda x: func.grad(lambda y: (x * y ** 3).sum())(x).sum())(x)
func.jacfwd(func.jacfwd(lambda x: x ** 3))(x)
func.jacrev(func.jacfwd(lambda x: x.prod()))(x)
""" + "".join(
    f"""
{jac}(lambda x, y: x * y, argnums=(1, 0))(x, s)
{jac}(lambda x, y: x * y, argnums=(1,))(x, s)
{jac}(lambda d: {{'p': d['a'] * 2, 'q': (d['b'],)}})({{'a': x[:1], 'b': s}})
{jac}(lambda d: {{'p': d['a'] * 2, 'q': (d['b'],)}}, argnums=(0,))({{'a': x[:1], 'b': s}})
{jac}(lambda x: (x * 2, x), has_aux=True)(x)
{jac}(lambda x: x * 2)(torch.zeros(0))
{jac}(lambda x: x[:0])(x)
{jac}(lambda x: s * torch.ones(2))(x)
{jac}(lambda x: torch.outer(x, x))(x)
"""
    for jac in ("func.jacrev", "func.jacfwd")
)

ERRORS = """
func.jvp(lambda x: x, (x,), (x.long(),))
func.linearize(lambda x: x * 2, x)[1](x.double())
func.linearize(lambda x: x * 2, x)[1](x[:1])
func.linearize(lambda x, y: x * y, x, x)[1](x, x.long())
func.grad(lambda x: x * 2)(x)
func.grad(lambda x: (x * 2).sum(0, keepdim=True))(x)
func.grad(lambda x: 3.0)(x)
func.grad(lambda x: x.sum(), argnums=3)(x)
func.grad(lambda x: x.sum(), argnums=-2)(x)
func.grad(lambda x: x.sum(), argnums=1.0)(x)
func.grad(lambda x: x.sum(), argnums=[0])(x)
func.grad(lambda x: x.sum(), argnums=())(x)
func.grad(lambda x: x.sum(), argnums=(0, 0))(x)
func.grad(lambda x: x.sum(), argnums=(0, -1))(x)
func.grad(lambda x: x.sum(), argnums=(1.0,))(x)
func.grad(lambda: x.sum())()
func.grad(lambda x: (x * 2).sum())(x=x)
func.grad(lambda x: x.sum(), has_aux=True)(x)
func.grad(lambda x: [x.sum(), x], has_aux=True)(x)
func.grad(lambda x: (x.sum(), 'a'), has_aux=True)(x)
func.grad(lambda x: (x.sum(), None), has_aux=True)(x)
func.grad(lambda x: (x.sum(), {'a': 3}), has_aux=True)(x)
func.grad(lambda x: x.sum())(i)
func.grad(lambda x: x * 2)('3.0')
func.grad(lambda d: d['a'].sum())({'a': x, 'n': 3})
func.grad(lambda d: d[0].sum())((x, None))
func.grad(lambda x: (x * 1j).sum())(x)
func.grad(lambda x: x.mul_(2).sum())(x)
func.grad(lambda x: x.mul_(2).sum())(x * w)
func.grad(lambda x: x[:2].mul_(2).sum())(x)
func.grad(lambda x: x[:2].mul_(2).sum())(x * w)
h = w * 2 -> func.grad(lambda x: h.mul_(x).sum())(x)
h = w * 2 -> func.jvp(lambda x: h.copy_(x).sum(), (x,), (o,))
func.grad(lambda x: (x.requires_grad_() * 2).sum())(x)
func.grad(lambda x: (x * 2).sum().backward())(x)
func.vjp(lambda x: x.mul_(2), x)
func.vjp(lambda x: (x, x), x)[1](x)
func.vjp(lambda x: {'a': x}, x)[1]([x])
func.vjp(lambda x: x * 2, x)[1](torch.ones(2))
func.vjp(lambda x: (x, 3), x)
func.vjp(lambda x: None, x)
func.vjp(lambda x: (), x)
func.vjp(lambda x: x.long(), x)
func.vjp(lambda x: x, x, has_aux=True)
func.vjp(lambda x: x * 2, '2.0')
func.vjp(lambda x: x * 2, x)[1](None)
func.vjp(lambda x: (x, x * 2), x)[1]((None, x))
func.vjp(lambda x: (x * 1j).sum(), x)[1](None)
func.jacfwd(lambda x: x * 2.0, randomness='a')(x)
func.jvp(lambda x: s, (x,), (o,), strict=True)
func.jvp(lambda x: x * 2, (i,), (i,))
func.jvp(lambda x: x * 2, [x], (o,))
func.jvp(lambda x: x * 2, (x,), [o])
func.jvp(lambda x, y: x * 2, (x, x), (o,))
func.jvp(lambda d: d['a'] * 2, ({'a': x, 'b': x},), ({'a': o},))
func.jvp(lambda d: d[0] * 2, (Pair(x, (x, x)),), ((o, o),))
func.jvp(lambda: x * 2, (), ())
func.jvp(lambda x: x * 2, ('3.0',), ('1.0',))
func.jvp(lambda x: x * 2, (x,), (torch.ones(2),))
func.jvp(lambda x: 3.0, (x,), (o,))
func.jvp(lambda x: None, (x,), (o,))
func.jvp(lambda x: x, (x,), (o,), has_aux=True)
func.jvp(lambda x: (x, 3), (x,), (o,), has_aux=True)
func.jacrev(lambda x: x.long())(x)
func.jacrev(lambda x: x * 2.0)(i)
func.jacrev(lambda x: 3)(x)
func.jacrev(lambda x: x, chunk_size=0)(x)
func.jacfwd(lambda x: x * 2.0)(i)
func.hessian(lambda x: 3.0)(x)
""" + "".join(
    f"""
{jac}(lambda x, y: x * y, argnums=2)(x, s)
{jac}(lambda x, y: x * y, argnums=2.0)(x, s)
{jac}(lambda x: x, has_aux=True)(x)
{jac}(lambda x: (x, 3), has_aux=True)(x)
{jac}(lambda x: x * 2.0)(x * 1j)
{jac}(lambda x: x * 2.0j)(x)
{jac}(lambda x: 3)(x)
{jac}(lambda x: None)(x)
"""
    for jac in ("func.jacrev", "func.jacfwd")
)


@pytest.fixture(autouse=True)
def grad_mode_is_restored(torch: ModuleType) -> Any:
    yield
    torch.set_grad_enabled(True)
    ng.set_grad_enabled(True)


@pytest.mark.parametrize("line", list(filter(None, SAME.splitlines())))
def test_result_is_torchs(torch: ModuleType, line: str) -> None:
    theirs = described(run(torch, line), 4)
    torch.set_grad_enabled(True)
    assert described(run(ng, line), 4) == theirs


@pytest.mark.parametrize("line", list(filter(None, ERRORS.splitlines())))
def test_error_is_torchs(torch: ModuleType, line: str) -> None:
    with pytest.raises(Exception) as theirs:
        run(torch, line)
    with pytest.raises(type(theirs.value)) as ours:
        run(ng, line)
    assert str(ours.value).replace("numgrad", "torch") == str(theirs.value)
