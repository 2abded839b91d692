"""Public functions that have no derivative, or whose arguments are not the catalogue's, under jit.

Each gives what it gives without jit, or a `TraceError` that says why it can't.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.base.pytree import flatten
from numgrad.graph.tensor import Tensor
from tests.jit.run_graph import run_traced

# Names that the expressions may use: x, y are (2, 3), v is (3,), s is (), k holds integers,
# i positions, m truth values, z complex numbers, e no elements.
ARGUMENTS = {
    "x": np.array([[0.5, -1.25, 2.0], [2.0, 0.0, -0.75]]),
    "y": np.array([[1.5, 0.25, -2.0], [2.0, 1.0, 3.0]], np.float32),
    "v": np.array([0.25, 3.0, -1.0]),
    "s": np.array(1.5),
    "k": np.array([[3, -2, 7], [0, 5, 2]]),
    "i": np.array([2, 0, 1]),
    "j": np.array([0, -1], np.int32),
    "m": np.array([[True, False, True], [False, False, True]]),
    "n": np.array([True, False, True]),
    "z": np.array([1 + 2j, -0.5j, 3 + 0j]),
    "b": np.array([3, 200, 0], np.uint8),
    "e": np.zeros((0, 3)),
}

SAME = """
x[k[0, 0] % 2]; x[:, k[0, 0] % 2]; x[k[0, 0] % 2, None]
x > y; x >= y; x < 0.5; x <= y; x == y; x != y; k == 3; k > k.T.reshape(2, 3); m == m; z == z
ng.eq(x, y); ng.not_equal(x, 1); ng.greater(x, y); ng.less_equal(x, y)
ng.isclose(x, x * 1.05, 0.1); ng.isnan(x); ng.isinf(x); ng.isfinite(x); ng.isposinf(x)
ng.isneginf(x); ng.isreal(z); x.signbit(); ng.logical_and(x, k); ng.logical_or(m, x)
ng.logical_xor(m, n); ng.logical_not(k); ~m; ~k; ~b; m & n; m | n; m ^ n; k & 3; k | 8; k ^ k
b & 7; ng.bitwise_and(k, i); ng.bitwise_not(b); k + 1; k * k; k - i; -k; k // 2; k % 3; k / 2
k ** 2; 7 - k; k // 2.0; b * 2; b + b; 2 ** k.abs(); abs(k); k.sign(); k.clamp(0, 3); k.float() / 3
k.remainder(3); k.fmod(3); ng.floor_divide(k, 2); x // 0.75; x % 0.75; 1 // v; x.round(decimals=1)
x.trunc(); x.frac(); x.heaviside(v); x.argmax(); x.argmax(1); x.argmin(0, keepdim=True); k.argmax()
x.argsort(); x.argsort(0, True); x.sort(); x.sort(0, descending=True); k.sort(); x.msort()
x.topk(2); k.topk(1, 0); x.kthvalue(2); x.max(1); x.min(0); x.max(); k.max(); m.max(); x.aminmax()
x.aminmax(dim=1); x.cummax(1); k.cummin(0); x.max(y); ng.maximum(k, i); k.amax(1)
x.count_nonzero(); x.count_nonzero(1); m.any(); m.all(); m.any(1); x.all(0, keepdim=True); k.any()
m.sum(); m.sum(1); k.sum(); k.prod(); k.sum(0); k.cumsum(1); k.cumprod(1); b.sum()
k.sum(dtype=ng.float32); b.any(); b.all(0); x.sum(dtype=ng.float32); m.float().mean(); e.sum()
e.sum(0); e.prod(1); e.all(); e.any(0); e.exp(); e.mean(); e.cumsum(0); ng.cat([e, x]); e @ x.T
x.new_zeros(0).sum(); ng.zeros(2); ng.ones(2, 3); ng.full((2,), 3); ng.empty(0); ng.arange(4)
ng.arange(0, 1, 0.25); ng.linspace(0, 1, 5); ng.logspace(0, 1, 3); ng.eye(2, 3)
ng.tensor([1.0, 2]); ng.tensor(3); ng.as_tensor([1, 2]); ng.as_tensor(x); ng.asarray(x)
ng.from_numpy(np.ones(2)); ng.scalar_tensor(2); ng.as_tensor(np.ones(2))
ng.as_tensor(x, dtype=ng.float32); ng.tensor(np.ones(2)); ng.asarray(2.5); ng.zeros_like(x)
ng.ones_like(k); ng.full_like(x, 2); ng.full_like(x, 2, dtype=ng.int64); ng.empty_like(e)
ng.tril_indices(2, 3); ng.triu_indices(2, 2); ng.complex(x, y.double()); x.new_zeros(2)
x.new_ones((1, 2)); x.new_full((2,), 7); x.new_tensor([1, 2]); x.new_empty(0)
ng.zeros(2) + x[:, 0]; ng.arange(3) * k; ng.arange(3)[i]; ng.eye(3)[i]; ng.tensor([5, 6, 7])[i]
ng.polar(v.abs(), v); ng.meshgrid(v, s, indexing='ij'); x.to(ng.float32); x.float(); x.int()
x.long(); x.bool(); x.to(y); x.type_as(y); x.double(); x.byte(); x.to(ng.complex64)
z.to(ng.complex64); k.to(ng.int8); x.type(ng.float32); x.type(); k.short(); k.char(); m.int()
m.to(ng.float64); x.cfloat(); x.to('cpu'); x.to(x.device); x.cdouble(); b.bool(); x.numel()
x.size(); x.size(0); x.dim(); len(x); x.ndim; x.shape; x.dtype; x.stride(); x.nelement()
x.is_floating_point(); x.is_complex(); x.is_contiguous(); x.T.is_contiguous(); x.element_size()
x.is_signed(); x.itemsize; x.nbytes; x.requires_grad; x.is_leaf; x.storage_offset(); x.ndimension()
x.device; x.T.stride(); x.grad_fn; x.output_nr; ng.is_grad_enabled()
hash(x) == hash(x); [row * 2 for row in x]; (lambda a, b: a + b)(*x); list(v)
[t.sum() for t in x.unbind(1)]; dict(zip("ab", x.unbind(0))); sum(v); max([x.shape[0], 5])
[a for a, in x.split(1)]; tuple(x); x[0]; x[:, 1]; x[..., None]; x[-1, ::2]; x[[0, 1, 0]]
x[:, [2, 0]]; x[[0, 1], [1, 2]]; x[True]; x[ng.tensor([1, 0])]; x[np.array([1, 0])]
x[:, ng.tensor([True, False, True])]; x[x.shape[0] - 1]; v[i]; x[:, i]; x[j]; x[:, j]
v[i.reshape(3, 1)]; x[j, j]; v[k[0] % 3]; v[x.argsort(1)]; x[:, None, i]; v[[i]]; e[:, i]; v[i[:0]]
v[i[1:]]; x[x.argmax(0)]; v[v.argsort()]; x[i[:2] % 2, i[1:]]; x.gather(1, k % 3)
x.index_select(1, i); ng.take(x, i); x.take_along_dim(x.argsort(1), 1); x.index_add(1, i, x)
x.index_copy(1, i, y.double()); x.index_fill(1, i, 0.5); x.roll(1); x.scatter(1, k % 3, y.double())
x.scatter_add(1, k % 3, y.double()); x.scatter(1, k % 3, 2.0); x.index_put((i % 2, i), v)
x.index_put((i % 2, i), v, accumulate=True); x.masked_fill(m, 2); x.masked_scatter(m, x)
x.where(m, y.double()); ng.where(m, x, 0.0); ng.where(x > 0, x, -x); ng.where(n, x, y)
x.where(x > 0, 1); ng.einsum('ij,kj->ik', x, x); ng.einsum('ij->j', x); ng.einsum('ij,j', x, v)
ng.einsum('ij,ij', k, k); ng.einsum('...i,i->...', x, v); ng.einsum('i,j,k->ijk', v, v, v)
ng.einsum('ii', x @ x.T); ng.outer(v, v); ng.kron(x, v); ng.dot(v, v); ng.inner(x, v)
ng.vdot(z, z); ng.tensordot(x, x.T, 1); k @ k.T; i @ i; ng.matmul(x, v); ng.mm(k, k.T); x.T @ x
z.outer(z); v @ v; ng.trace(x[:, :2]); ng.mv(x, v); ng.broadcast_tensors(x, v)
ng.broadcast_to(v, (2, 3)); x.expand_as(x); x.view_as(x); x.tril(); k.triu(1); ng.diag(v)
ng.diag(x); k.diagonal(); ng.rot90(x); x.flip(0); k.flipud(); x.tile(2); x.repeat(2, 1)
x.repeat_interleave(2); x.repeat_interleave(2, 1); k.roll(1, 0); ng.atleast_2d(v, s)
x.unflatten(1, (3, 1)); x.unfold(1, 2, 1); x.chunk(2, 1); x.tensor_split(2, 1); ng.vstack([v, v])
x.norm(); x.norm(1); x.norm(dim=1); x.std(); ng.std_mean(x); ng.var_mean(x, 1); x.nansum()
x.nanmean(); x.nan_to_num(); x.logit(); z.real; z.imag; z.angle(); z.conj(); z.abs()
ng.view_as_real(z); z.sum(); z.prod(); z * 2; z + x[0]; z / z; z ** 2; z.exp(); z.sgn(); z == 1
z.mean(); z @ z; x.detach(); x.clone(); x.contiguous(); x.data; x.T.contiguous(); +x
x.requires_grad_(False); x.positive(); x.prod(); x.prod(1); v.prod(); k.prod(1); e.prod()
x.logcumsumexp(1); x.cumprod(0); x.softmax(0); k.sign(); x.float_power(2); x.xlogy(y)
ng.hypot(x, y); x.copysign(-1); ng.fmax(x, y); ng.rsub(x, 1); str(x.shape); f"{x.shape[0]}"
x.size() == (2, 3); isinstance(x, ng.Tensor); x is x; callable(x.sum)
ng.promote_types(x.dtype, y.dtype); ng.can_cast(x.dtype, y.dtype); ng.finfo(x.dtype).eps
b == -1; b > -1; b + 300; b * -1; b.clamp(-5, 100); ng.where(b > 1, b, -1); b == 259
b.clone().fill_(7); k // i.add(1); k % (i + 1)
k.fmod(i + 1); ng.div(k, i + 1, rounding_mode="trunc")
"""

# what is asked for -> the words that say why it can't be had
REFUSED = {
    "bool(s)": "truth value",
    "x.any() and 1": "truth value",
    "not s": "truth value",
    "0 < s < 2": "truth value",
    "max(v)": "truth value",
    "sorted(v)": "truth value",
    "s.item()": "Python number",
    "float(s)": "Python number",
    "int(s)": "Python number",
    "complex(s)": "Python number",
    "[1, 2, 3][k[0, 0]]": "Python number",
    "range(k[0, 0])": "Python number",
    "ng.zeros(k[0, 0])": "number",
    "ng.arange(k[0, 0])": "number",
    "ng.full((2,), s)": "number",
    "x.tolist()": "list of Python numbers",
    "x.numpy()": "NumPy array",
    "np.percentile(x.numpy(), 50)": "NumPy array",
    "np.asarray(x)": "NumPy array",
    "np.array([s, s])": "number|NumPy array",
    "ng.tensor([s, s])": "number",
    "ng.equal(x, x)": "truth value",
    "ng.allclose(x, x)": "truth value",
    "2.0 in x": "truth value",
    "x.nonzero()": "shape of what nonzero returns depends",
    "ng.argwhere(x)": "shape of what nonzero returns depends",
    "x.nonzero(as_tuple=True)": "shape of what nonzero returns depends",
    "ng.where(x > 0)": "shape of what nonzero returns depends",
    "x[x > 0]": "shape .* depends on the numbers",
    "x[m]": "shape .* depends on the numbers",
    "x[:, n]": "shape .* depends on the numbers",
    "x.masked_select(m)": "shape of what masked_select returns depends",
    "x.repeat_interleave(k[0])": "number|shape",
    "x[k[0, 0]:]": "number",
    "x.narrow(0, k[0, 0], 1)": "number",
    "str(x.sum().item())": "Python number",
    "copy.deepcopy(x).tolist()": "list of Python numbers",
    "pickle.dumps(x)": "numbers|array",
}
EXPRESSIONS = [part for line in SAME.strip().splitlines() for part in line.split("; ")]


def function_of(expression: str) -> Any:
    source = f"lambda {', '.join(ARGUMENTS)}: {expression}"
    names = {"ng": ng, "np": np, "copy": copy, "pickle": pickle}
    return eval(compile(source, "given.py", "eval"), names)


def tensors() -> list[Any]:
    return [ng.from_numpy(array.copy()) for array in ARGUMENTS.values()]


def assert_same(ours: Any, eager: Any) -> None:
    ours, spec = flatten(ours)
    eager, expected_spec = flatten(eager)
    assert spec == expected_spec
    for one, other in zip(ours, eager, strict=True):
        if not isinstance(other, Tensor):
            assert type(one) is type(other) and (one == other or one != one)
            continue
        assert one.dtype is other.dtype
        assert one.shape == other.shape
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-13, atol=1e-14)


@pytest.mark.sampled(0.09)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_the_graph_gives_what_the_function_gives(expression: str) -> None:
    function = function_of(expression)
    assert_same(run_traced(function, *tensors()), function(*tensors()))


@pytest.mark.parametrize("expression", REFUSED)
def test_what_needs_numbers_is_refused(expression: str) -> None:
    with pytest.raises(ng.TraceError, match=REFUSED[expression]) as caught:
        ng.jit(function_of(expression))(*tensors())
    assert str(caught.value).startswith("given.py:1: ")


def test_positions_are_read_in_every_call() -> None:
    compiled = ng.jit(lambda x, i: (x[i], x.gather(0, i.abs()), x.index_select(0, i * i)))
    x = ng.tensor([1.0, 2.0, 3.0])
    for index in ([0, 1], [1, -1]):
        i = ng.tensor(index)
        assert_same(compiled(x, i), (x[i], x.gather(0, i.abs()), x.index_select(0, i * i)))
    assert compiled.cache_info().misses == 1


def test_a_position_outside_raises_in_the_call() -> None:
    compiled = ng.jit(lambda x, i: x[i] * 2)
    x = ng.tensor([1.0, 2.0, 3.0])
    assert compiled(x, ng.tensor([1])).tolist() == [4.0]
    with pytest.raises(IndexError, match="index 3 is out of bounds for dimension 0 with size 3"):
        compiled(x, ng.tensor([3]))


def test_elements_are_set_by_a_mask() -> None:
    def function(x: Any, v: Any) -> Any:
        y = x.clone()
        y[y > 1] = v * 2
        y[y.sum(1) < 0] = 0.5
        y[v > 5] = 7
        return ng.autograd.grad((y * y).sum(), (x, v))

    x = ng.from_numpy(ARGUMENTS["x"]).requires_grad_()
    v = ng.tensor(1.5, dtype=ng.float64, requires_grad=True)
    assert_same(ng.jit(function)(x, v), function(x, v))


def test_a_gradient_without_a_graph_can_be_written_to() -> None:
    def function(x: Any) -> Any:
        (first,) = ng.autograd.grad((x.reshape(2, 1) * x.reshape(2, 1)).sum(), x)
        return first.sub_(x)

    x = ng.tensor([0.5, -1.0], requires_grad=True)
    assert_same(ng.jit(function)(x).detach(), function(x).detach())


def test_a_gradient_that_is_one_element_everywhere_can_not_be_added_to() -> None:
    """As in PyTorch, where the gradient of a sum is expanded."""
    x = ng.tensor([0.5, -1.0], requires_grad=True)
    (gradient,) = ng.autograd.grad(x.sum(), x)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        gradient.sub_(x.detach())
