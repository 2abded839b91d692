"""Calls that are remembered give what the same calls give on the long way: bits, views, nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng
from numgrad.graph.modes.state import intercept, stop_intercepting
from numgrad.nn import functional
from numgrad.ops.calls import dispatch
from numgrad.ops.calls.dispatch import Calls, _go_the_long_way
from numgrad.ops.calls.keys import typed
from numgrad.ops.signatures.declared import DECLARED
from tests.ops.catalogue_strategies import array_primitives
from tests.rows import rows_of

SAMPLES = [
    pytest.param(primitive, sample, id=f"{primitive.name}-{number}")
    for primitive in array_primitives()
    for number, sample in enumerate(primitive.samples)
]
CALLS: dict[str, Callable[..., Any]] = {
    "fill": lambda x, y: ng.fill(x, 2.0) * ng.fill(x, y[0, 0]),
    "index": lambda x, y: x[1],
    "index from behind": lambda x, y: x[-1, 0],
    "slice": lambda x, y: x[1:],
    "slices": lambda x, y: x[:, ::2],
    "new dim": lambda x, y: x[:, None],
    "column": lambda x, y: x[..., 1],
    "T": lambda x, y: x.T,
    "mT": lambda x, y: x.mT,
    "view": lambda x, y: x.view(2, -1),
    "view by a list": lambda x, y: x.view([4, 3]),
    "view as bytes": lambda x, y: x.detach().view(ng.uint8),
    "unflatten": lambda x, y: x.unflatten(1, (2, -1)),
    "split by sizes": lambda x, y: x.split([1, 3], dim=1),
    "tensor_split": lambda x, y: x.tensor_split(3, dim=1),
    "tensor_split at": lambda x, y: x.tensor_split((1,), 1),
    "tensor_split by a tensor": lambda x, y: x.tensor_split(order_of(y)[0, :2].sort()[0], 1),
    "hsplit": lambda x, y: x.hsplit(2),
    "vsplit": lambda x, y: ng.vsplit(x, [1]),
    "dsplit": lambda x, y: x[None].dsplit(2),
    "function split": lambda x, y: ng.split(x, 2, 1),
    "reshape": lambda x, y: x.reshape(-1),
    "reshape by a tuple": lambda x, y: x.reshape((3, 1, -1)),
    "flatten": lambda x, y: x.flatten(),
    "transpose": lambda x, y: x.transpose(0, 1),
    "permute": lambda x, y: x.permute(1, 0),
    "squeeze": lambda x, y: x[:1].squeeze(0),
    "unsqueeze": lambda x, y: x.unsqueeze(-1),
    "expand": lambda x, y: x[:1].expand(4, -1),
    "narrow": lambda x, y: x.narrow(1, 1, 2),
    "select": lambda x, y: ng.select(x, dim=1, index=0),
    "diagonal": lambda x, y: x.diagonal(),
    "split": lambda x, y: x.split(2),
    "chunk": lambda x, y: x.chunk(2, axis=1),
    "unbind": lambda x, y: x.unbind(1),
    "unpack": lambda x, y: tuple(x),
    "stack": lambda x, y: ng.stack([x, y], 1),
    "stack of numbers": lambda x, y: ng.stack([x[0, 0], y[0, 1]]),
    "stack of itself": lambda x, y: ng.stack((x, x)),
    "cat": lambda x, y: ng.cat((x, y, x), dim=1),
    "clone": lambda x, y: x.clone(),
    "contiguous": lambda x, y: x.contiguous(),
    "contiguous, transposed": lambda x, y: x.T.contiguous(),
    "roll": lambda x, y: x.roll(1, 0),
    "flip": lambda x, y: x.flip(0),
    "hstack": lambda x, y: ng.hstack((x, y)),
    "vstack": lambda x, y: ng.vstack([x, y[0]]),
    "vstack of itself": lambda x, y: ng.vstack([x, x]),
    "column_stack of itself": lambda x, y: ng.column_stack((x[:, 0], y, x[:, 0])),
    "dstack": lambda x, y: ng.dstack((x, y)),
    "dstack of itself": lambda x, y: ng.dstack((x[1:], y[1:], x[1:])),
    "atleast_2d of itself": lambda x, y: ng.atleast_2d(x, x),
    "column_stack": lambda x, y: ng.column_stack((x, y[:, 0])),
    "expand_as": lambda x, y: x[0].expand_as(y),
    "broadcast_to": lambda x, y: ng.broadcast_to(x[:, :1], (3, 4)),
    "inner": lambda x, y: ng.inner(x, y),
    "movedim": lambda x, y: x.movedim(0, -1),
    "split_with_sizes": lambda x, y: x.split_with_sizes((1, 2)),
    "swapaxes": lambda x, y: x.swapaxes(0, 1),
    "ravel": lambda x, y: x.ravel(),
    "view_as": lambda x, y: y.view_as(x.reshape(2, 6)),
    "reshape_as": lambda x, y: x.reshape_as(y.reshape(4, 3)),
    "rot90": lambda x, y: x.rot90(1, (0, 1)),
    "repeat": lambda x, y: x.repeat(2, 1),
    "tile": lambda x, y: x.tile((2,)),
    "fliplr": lambda x, y: ng.fliplr(x),
    "flipud": lambda x, y: x.flipud(),
    "unfold": lambda x, y: x.unfold(1, 2, 2),
    "diag": lambda x, y: x.diag(1),
    "diag of a row": lambda x, y: ng.diag(x[0]),
    "diag_embed": lambda x, y: x.diag_embed(),
    "diagflat": lambda x, y: y[0].diagflat(1),
    "diagonal_scatter": lambda x, y: x.diagonal_scatter(y[0, :3]),
    "select_scatter": lambda x, y: x.select_scatter(y[0], 0, -1),
    "slice_scatter": lambda x, y: x.slice_scatter(y[:2], end=2),
    "slice_scatter by steps": lambda x, y: ng.slice_scatter(x, y[:, :2], dim=1, step=2),
    "tril": lambda x, y: x.tril(),
    "triu": lambda x, y: ng.triu(x, diagonal=-1),
    "triu of several": lambda x, y: ng.triu(ng.stack((x, y)), 1) + ng.stack((x, y)).tril(-1),
    "triu in place": lambda x, y: (x * 1).triu_(1),
    "adjoint": lambda x, y: x.adjoint(),
    "trace": lambda x, y: x.trace(),
    "kron": lambda x, y: ng.kron(x, y[0]),
    "kron of itself": lambda x, y: ng.kron(x, x),
    "sum_to_size": lambda x, y: x.sum_to_size(1, 4),
    "sum_to_size of nothing": lambda x, y: x.sum_to_size((3, 4)),
    "addmm of the same": lambda x, y: ng.addmm(y[:, :3], x, y.T, beta=2, alpha=0.5),
    "addmm without": lambda x, y: ng.addmm(y[:, :3], x, y.T, beta=0.0),
    "addmm in place": lambda x, y: (y[:, :3] * 1).addmm_(x, y.T),
    "addmv": lambda x, y: ng.addmv(x[:, 0], x, y[0], alpha=3),
    "addr": lambda x, y: ng.addr(x, y[:, 0], y[0]),
    "baddbmm": lambda x, y: ng.baddbmm(x[:, :3], x[None], y.T[None]),
    "addbmm": lambda x, y: x[:, :3].addbmm(x[None], y.T[None], beta=-0.0),
    "msort": lambda x, y: x.msort(),
    "sort": lambda x, y: x.sort(1) + y[0].sort(),
    "sort from the greatest": lambda x, y: x.round().sort(0, descending=True),
    "argsort": lambda x, y: x.round().argsort(1, descending=True),
    "topk of a row": lambda x, y: x[0].round().topk(3),
    "topk along the first dim": lambda x, y: x.topk(1, 0),
    "dots": lambda x, y: x[0].dot(y[1]) * (x[:, 1] @ y[:, 2]),
    "topk": lambda x, y: x.topk(2, 1),
    "topk of the smallest": lambda x, y: ng.topk(x, 2, largest=False),
    "kthvalue": lambda x, y: x.kthvalue(2, keepdim=True),
    "addcmul": lambda x, y: ng.addcmul(x, x, y, value=2),
    "addcmul by another number": lambda x, y: ng.addcmul(x, x, y, value=2.0),
    "addcmul in place": lambda x, y: (x * 1).addcmul_(x, y[0]),
    "casts": lambda x, y: x.double() + x.T.float().T + (x * 3).long() + y.half(),
    "other casts": lambda x, y: (x.bool().byte() + x.char() + x.short() + x.int()) * x,
    "complex casts": lambda x, y: x.cfloat().abs() + x.to(ng.complex128).real,
    "type_as": lambda x, y: x.type_as((y * 2).int()) + x.type_as(y),
    "add scaled": lambda x, y: x.add(y[0], alpha=0.5),
    "add a number scaled": lambda x, y: ng.add(x, 0.5, alpha=3),
    "add scaled by 0": lambda x, y: x.add(y, alpha=-0.0),
    "sub scaled": lambda x, y: ng.sub(x, y, alpha=2),
    "subtract scaled": lambda x, y: ng.subtract(x, 2, alpha=0.5) + x.subtract(1.5, alpha=2),
    "rsub": lambda x, y: ng.rsub(x, y[0]),
    "rsub scaled": lambda x, y: ng.rsub(x, y, alpha=0.5),
    "rsub a number": lambda x, y: ng.rsub(x, 2) - ng.rsub(x, 0.5, 3) * ng.rsub(x, 2, alpha=-1.5),
    "addcdiv": lambda x, y: x.addcdiv(x, y[0], value=-0.5),
    "isclose": lambda x, y: ng.isclose(x, y, atol=0.5),
    "isclose to itself": lambda x, y: x.isclose(x, rtol=0.0),
    "heaviside": lambda x, y: ng.heaviside(x.detach(), y[0].detach()),
    "complex": lambda x, y: ng.complex(x, y[0]),
    "polar": lambda x, y: ng.polar(x, y),
    "view_as_real": lambda x, y: ng.view_as_real(ng.complex(x, y)),
    "view_as_complex": lambda x, y: ng.view_as_complex(ng.stack((x, y), 2)),
    "imag": lambda x, y: ng.imag(ng.complex(x, y)),
    "imag of a product": lambda x, y: (x * 1j).imag,
    "nan_to_num": lambda x, y: (x / 0).nan_to_num(posinf=1.0),
    "logit": lambda x, y: x.logit(),
    "logit within": lambda x, y: x.logit(0.25),
    "einsum": lambda x, y: ng.einsum("ij,kj->ik", x, y),
    "einsum of itself": lambda x, y: ng.einsum("ij,ij", [x, x]),
    "einsum of lists": lambda x, y: ng.einsum(x, [0, 1], y, [2, 1], x, [0, 3]),
    "einsum of a diagonal": lambda x, y: ng.einsum("...ii->...", x[:, :3]),
    "mm": lambda x, y: x @ y.T,
    "mm of itself": lambda x, y: x.T @ x,
    "mv": lambda x, y: x @ y[0],
    "vm": lambda x, y: x[:, 0] @ y,
    "bmm": lambda x, y: x[None] @ y.T[None],
    "dot": lambda x, y: x[0].dot(y[1]),
    "dot of itself": lambda x, y: x[0] @ x[0],
    "outer": lambda x, y: ng.outer(x[0], y[:, 0]),
    "sum": lambda x, y: x.sum(),
    "sum of rows": lambda x, y: x.sum((0,), keepdims=True),
    "sum of columns": lambda x, y: x.sum(-1),
    "mean": lambda x, y: x.mean(axis=1),
    "amax": lambda x, y: x.amax(1),
    "max": lambda x, y: x.max(1),
    "max of all": lambda x, y: x.max(),
    "argmax": lambda x, y: x.argmax(1),
    "argmin": lambda x, y: ng.argmin(x, dim=0, keepdim=True),
    "all": lambda x, y: x.all(1),
    "any": lambda x, y: ng.any(x),
    "prod": lambda x, y: x.prod(1),
    "var": lambda x, y: x.var(0),
    "norm": lambda x, y: x.norm(2.0, 1),
    "softmax": lambda x, y: x.softmax(1),
    "logsumexp": lambda x, y: x.logsumexp(0),
    "cumsum": lambda x, y: x.cumsum(1),
    "mul": lambda x, y: x * y,
    "mul of itself": lambda x, y: x * x,
    "mul by a row": lambda x, y: x * y[0],
    "mul by a column": lambda x, y: y[:, :1] * x,
    "mul by a number of a tensor": lambda x, y: x * y[1, 1],
    "mul by numbers": lambda x, y: (x * 2 - 0.5) / 3,
    "where": lambda x, y: ng.where(x > 0, x, y[0]),
    "where of numbers": lambda x, y: ng.where(x > 0, x, -0.0),
    "pow": lambda x, y: x**3,
    "count_nonzero": lambda x, y: x.count_nonzero(1),
    "nanmean": lambda x, y: x.nanmean(1),
    "gather": lambda x, y: x.gather(1, order_of(y)),
    "gather of a part": lambda x, y: ng.gather(x, 0, order_of(y, 0)[:2, ::2]),
    "gather with itself": lambda x, y: order_of(x).gather(1, order_of(x)),
    "gather by one": lambda x, y: x[0, 0].gather(0, ng.zeros((), dtype=ng.int64)),
    "scatter": lambda x, y: x.scatter(1, order_of(y), y),
    "scatter of numbers": lambda x, y: x.scatter(1, order_of(y)[:, :2], value=0.5),
    "scatter in place": lambda x, y: (x * 1).scatter_(1, order_of(y), y),
    "diff with what is behind": lambda x, y: x.diff(append=y),
    "max of two": lambda x, y: ng.max(x, other=y),
    "var_mean": lambda x, y: ng.var_mean(x, 1),
    "std_mean of all": lambda x, y: ng.std_mean(x, (0, 1)),
    "var of neighbours": lambda x, y: (x[None] * y[:, None]).var((1, 2)),
    "scatter_add": lambda x, y: x.scatter_add(0, order_of(y, 0)[:2], y),
    "scatter_add in place": lambda x, y: (x * 1).scatter_add_(1, order_of(y), y),
    "take": lambda x, y: x.take(order_of(y) - 2),
    "take one": lambda x, y: x.take(order_of(y)[0, 0]),
    "take_along_dim": lambda x, y: x.take_along_dim(order_of(y)[:1], 1),
    "take_along_dim of all": lambda x, y: ng.take_along_dim(x, order_of(y)),
    "index_select": lambda x, y: x.index_select(1, order_of(y)[0]),
    "index_select by one": lambda x, y: x.index_select(0, order_of(y, 0)[0, 0]),
    "index_add": lambda x, y: x.index_add(0, order_of(y, 0)[:, 1], y, alpha=2),
    "index_add of a row": lambda x, y: y[0].index_add(0, order_of(y, 0)[:, 1], x[0, :3]),
    "index_add of too many rows": lambda x, y: x.index_add(
        0, order_of(y, 0)[:, 1].repeat(2), x.repeat(2, 1)
    ),
    "index_add in place": lambda x, y: (x * 1).index_add_(1, order_of(y)[0], y),
    "index_copy": lambda x, y: x.index_copy(0, order_of(y, 0)[:, 0], y),
    "index_fill": lambda x, y: x.index_fill(1, order_of(y)[0, :2], 2.0),
    "index_fill with a tensor": lambda x, y: x.index_fill(1, order_of(y)[0, :2] - 1, y[0, 0]),
    "masked_select": lambda x, y: x.masked_select(mask_of(y)),
    "masked_select of a row": lambda x, y: x.masked_select(mask_of(y)[0]),
    "masked_fill": lambda x, y: x.masked_fill(mask_of(y), 2),
    "masked_fill with zeros": lambda x, y: x.masked_fill(mask_of(y), 0).masked_fill(x != 0, -0.0),
    "masked_fill of a row": lambda x, y: x[:1].masked_fill(mask_of(y), 2),
    "masked_fill by one": lambda x, y: x.masked_fill(mask_of(y)[0, 0], 0.5),
    "masked_fill with a tensor": lambda x, y: x.masked_fill(mask_of(y), y[0, 0]),
    "masked_fill in place": lambda x, y: (x * 1).masked_fill_(mask_of(y), 2),
    "masked_scatter": lambda x, y: x.masked_scatter(mask_of(y), y * 2),
    "index by a tensor": lambda x, y: x[order_of(y, 0)[0]],
    "index by two": lambda x, y: x[order_of(y, 0)[:, 1], order_of(y)[1, 1:]],
    "index by the same twice": lambda x, y: x[order_of(y, 0)[:, 1], order_of(y, 0)[:, 1]],
    "index by itself": lambda x, y: order_of(x)[order_of(y, 0)],
    "index by one tensor": lambda x, y: x[order_of(y)[0, 0] - 1],
    "index behind a slice": lambda x, y: x[1:, order_of(y)[0] - 2],
    "index between": lambda x, y: x[None, :2, order_of(y)[:2, :2], None],
    "index by bools": lambda x, y: x[mask_of(y)],
    "index by bools of rows": lambda x, y: x[mask_of(y)[:, 0], 1:],
    "index by bools of columns": lambda x, y: x[..., mask_of(y)[1]],
    "index by bools and a tensor": lambda x, y: x[mask_of(y)[:, 1], order_of(y)[0, :1]],
    "index by bytes": lambda x, y: x[mask_of(y)[0, 0].to(ng.uint8)],
    "product of bools": lambda x, y: x[mask_of(y)] * 2 * x[mask_of(y)],
    "clamp": lambda x, y: x.clamp(-1, 1.5),
    "clamp to one side": lambda x, y: x.clamp(max=0.5),
    "clamp by tensors": lambda x, y: x.clamp(y[0], y),
    "clamp by a tensor": lambda x, y: x.clamp(max=y),
    "clamp_min": lambda x, y: x.clamp_min(0.25),
    "clamp_max by a tensor": lambda x, y: x.clamp_max(y[0]),
    "lerp": lambda x, y: x.lerp(y, 0.25),
    "lerp by a tensor": lambda x, y: x.lerp(y, y[0]),
    "floor_divide": lambda x, y: x.detach().floor_divide(y.detach()),
    "floor_divide by a number": lambda x, y: x // 1.5,
    "remainder": lambda x, y: x.remainder(y),
    "remainder of a number": lambda x, y: 2 % x,
    "fmod": lambda x, y: x.fmod(2),
    "pow of tensors": lambda x, y: x**y,
    "pow of a number": lambda x, y: 2.5**x,
    "pow by a half": lambda x, y: x.pow(0.5),
    "square": lambda x, y: x.square(),
    "float_power": lambda x, y: x.float_power(3),
    "xlogy": lambda x, y: ng.xlogy(x, y),
    "xlogy of a number": lambda x, y: ng.xlogy(2, y),
    "copysign": lambda x, y: x.copysign(-1.0),
    "copysign of tensors": lambda x, y: x.copysign(y),
    "ones": lambda x, y: ng.ones(2, 3),
    "ones of a dtype": lambda x, y: ng.ones((2, 3), dtype=x.dtype) * x[:2, :3],
    "full": lambda x, y: ng.full((2, 3), 0.5),
    "full of a whole number": lambda x, y: ng.full((), 2),
    "full that requires grad": lambda x, y: ng.full((4,), 2.0, requires_grad=True) * x,
    "arange": lambda x, y: ng.arange(5),
    "arange of floats": lambda x, y: ng.arange(0.0, 1.0, 0.25),
    "linspace": lambda x, y: ng.linspace(0, 1, 4) + x,
    "linspace of a dtype": lambda x, y: ng.linspace(-0.0, 1, 4, dtype=ng.float64),
    "logspace": lambda x, y: ng.logspace(0, 2, 3, base=2.0),
    "eye": lambda x, y: ng.eye(3, 4),
    "tril_indices": lambda x, y: ng.tril_indices(3, 3),
    "triu_indices": lambda x, y: ng.triu_indices(3, 4, offset=1),
    **rows_of("DISPATCH"),
}


def order_of(y: Any, dim: int = 1) -> Any:
    """Return an index that follows from numbers, so that it is another one in every call."""
    return y.detach().real.argsort(dim) if y.dtype is not ng.bool else y.to(ng.int64)


def mask_of(y: Any) -> Any:
    return y.detach().real > 0


DRAWS: dict[str, Callable[[Any, Any], Any]] = {
    "rand": lambda x, y: ng.rand(3, dtype=ng.float64) + ng.rand((2, 3)),
    "rand of complex numbers": lambda x, y: ng.rand(3, dtype=ng.complex64),
    "rand of halves": lambda x, y: ng.rand(3, dtype=ng.float16) + ng.randn(3, dtype=ng.float16),
    "rand of nothing": lambda x, y: ng.rand(()) + ng.rand(0),
    "zeros_like": lambda x, y: ng.zeros_like(x) + ng.ones_like(y.T).T,
    "full_like": lambda x, y: ng.full_like(x, 2) * x,
    "empty_like": lambda x, y: ng.empty_like(x, dtype=ng.float32).copy_(y),
    "ones_like that requires grad": lambda x, y: ng.ones_like(x, requires_grad=True) * x,
    "new_zeros": lambda x, y: x.new_zeros(4) + x.new_ones((3, 1)) + x.new_full((2, 1, 1), 1.5),
    "new_empty": lambda x, y: x.new_empty((3, 4), dtype=ng.float32).copy_(y),
    "rand_like": lambda x, y: ng.rand_like(x) * ng.randn_like(y),
    "randn": lambda x, y: ng.randn(2, 3, requires_grad=True) * ng.randn(()),
    "randint": lambda x, y: ng.randint(5, (3, 2)) + ng.randint(-2, 7, (2,)),
    "randperm": lambda x, y: ng.randperm(7),
    "bernoulli": lambda x, y: ng.bernoulli(x.detach().sigmoid()),
    "bernoulli with a gradient": lambda x, y: ng.bernoulli(x.sigmoid()) * y,
    "bernoulli of a number": lambda x, y: x.bernoulli(0.25),
    **{
        name: lambda x, y, name=name: getattr(functional, name)(x[None, None], 0.25, True)
        for name in ("dropout", "dropout1d", "dropout2d", "dropout3d")
    },
    "alpha_dropout": lambda x, y: functional.alpha_dropout(x, 0.5, True),
    "feature_alpha_dropout": lambda x, y: functional.feature_alpha_dropout(x, training=True),
    "dropout in place": lambda x, y: functional.dropout(x * 1, 0.5, inplace=True),
}


def seeded(call: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    ng.manual_seed(3)
    return call(x, y)


CALLS |= {
    name: lambda x, y, call=call: seeded(call, x, y)
    for name, call in DRAWS.items()
    if not name.endswith(("1d", "3d"))
}
CALLS["dropout1d"] = lambda x, y: seeded(lambda x, y: functional.dropout1d(x, 0.5), x, y)
CALLS["dropout3d"] = lambda x, y: seeded(
    lambda x, y: functional.dropout3d(x[..., None, None], 0.5), x, y
)


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "row by row": lambda make: make(3, 4),
    "column by column": lambda make: make(4, 3).T,
    "with gaps": lambda make: make(3, 8)[:, ::2],
    "part": lambda make: make(4, 4)[1:],
}


@pytest.fixture(autouse=True, scope="module")
def calls_with_floats_are_remembered_soon() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dispatch, "_OFTEN", 2)
        yield


@contextmanager
def the_long_way() -> Iterator[None]:
    """Let something be open that has to see every call."""
    interceptor = object()
    intercept(interceptor)
    try:
        yield
    finally:
        stop_intercepting(interceptor)


def described(result: Any, leaves: list[Any], spread: bool) -> Any:
    """Return all there is to see of what a call gave, and of the gradients behind it."""
    results = result if isinstance(result, (tuple, list)) else (result,)
    seen: list[Any] = [type(result)]
    roots, cotangents = [], []
    for each in results:
        node = each.grad_fn
        seen += [each.detach().numpy().tobytes(), each.shape, each.stride(), each.dtype]
        seen += [each.requires_grad, each.output_nr, each._version, each._is_view()]
        seen += [node and node.name(), node and [n and n.name() for n, _ in node.next_functions]]
        if each.requires_grad:
            roots.append(each)
            weights = np.arange(1.0, each.numel() + 1).reshape(each.shape)
            cotangent = ng.from_numpy(weights).to(each.dtype)
            cotangents.append(cotangent.sum().expand(each.shape) if spread else cotangent)
    if roots:
        found = ng.autograd.grad(roots, leaves, cotangents, allow_unused=True)
        for gradient in found:
            if gradient is not None:
                seen += [gradient.numpy().tobytes(), gradient.shape, gradient.stride()]
    return seen


def tell(call: Callable[[Any], Any], dtype: Any, grad: bool, seed: int, spread: bool) -> Any:
    """Return what is seen of a call on tensors that are drawn anew."""
    generator = np.random.default_rng(seed)
    leaves: list[Any] = []

    def make(*shape: int, **_: Any) -> Any:
        tensor = ng.from_numpy(generator.uniform(-3, 3, shape)).to(dtype)
        if grad and (dtype.is_floating_point or dtype.is_complex):
            tensor.requires_grad_()
            leaves.append(tensor)
        return tensor

    try:
        return described(call(make), leaves, spread)
    except Exception as error:  # what is refused is refused every time
        return type(error), str(error)


def agree(call: Callable[[Any], Any], dtype: Any = ng.float64, grad: bool = True) -> None:
    for seed in range(5):  # from the third time on, a call can be remembered
        spread = seed % 2 > 0
        with the_long_way():
            expected = tell(call, dtype, grad, seed, spread)
        assert tell(call, dtype, grad, seed, spread) == expected


@pytest.mark.sampled(0.036)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_calls(name: str, layout: str) -> None:
    agree(lambda make: CALLS[name](LAYOUTS[layout](make), make(3, 4)))


@pytest.mark.sampled(0.0096)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", [ng.float32, ng.int64, ng.bool, ng.complex128, ng.float16])
def test_calls_of_other_dtypes(name: str, dtype: Any) -> None:
    agree(lambda make: CALLS[name](make(3, 4), make(3, 4)), dtype)


@pytest.mark.sampled(0.11, by="name")
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("mode", [ng.no_grad, ng.inference_mode, ng.enable_grad])
def test_calls_in_other_modes(name: str, mode: Any) -> None:
    def call(make: Any) -> Any:
        x, y = make(3, 4), make(3, 4)
        for _ in range(3):
            CALLS[name](x, y)  # remembered where everything is recorded
        with mode():
            return CALLS[name](x, y)

    agree(call)


@pytest.mark.parametrize("join", [ng.stack, ng.cat, ng.hstack, ng.dstack])
@given(st.lists(st.sampled_from([(True, False), (False, True), (True, True), (False, False)])))
def test_which_of_a_sequence_require_grad_may_change(join: Any, rounds: list[Any]) -> None:
    for require in [(True, False)] * 4 + rounds:
        pair = [ng.ones(2, 3, requires_grad=each) for each in require]
        result = join(pair)
        assert result.requires_grad is any(require)
        with ng.no_grad():
            assert not join(pair).requires_grad
        if result.requires_grad:
            result.sum().backward()
        assert [each.grad is not None for each in pair] == list(require)


def test_a_sequence_that_holds_a_tensor_twice_is_remembered() -> None:
    x = ng.ones(2, requires_grad=True)
    (calls,) = [DECLARED[ng.vstack].calls]
    calls.programs.clear()
    for _ in range(3):
        result = ng.vstack([x, x])
    (program,) = calls.programs.values()
    assert program is not _go_the_long_way
    result.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    other = ng.ones(2, requires_grad=True)
    ng.vstack([x, other])[1].sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert other.grad.tolist() == [1.0, 1.0]


def test_what_shares_memory_counts_writes_with_it_in_every_call() -> None:
    for count in range(1, 6):
        x = ng.ones(4)
        y = x.view(ng.float32)
        y.zero_()
        assert x._version == y._version == 1, f"call {count}"


def test_calls_of_classes_are_remembered() -> None:
    x, numbers = ng.ones(2, 3), ng.tensor([0, 1])
    for function in (functional.cross_entropy, functional.nll_loss, functional.embedding):
        (calls,) = [DECLARED[function].calls]
        calls.programs.clear()
        arguments = (numbers, x) if function is functional.embedding else (x, numbers)
        for _ in range(3):
            function(*arguments)
        (program,) = calls.programs.values()
        assert program is not _go_the_long_way, function.__name__


def test_tensors_that_may_be_left_out_are_remembered() -> None:
    x, weight = ng.tensor([[1.0, 3.0]]), ng.tensor([2.0, 4.0])
    (calls,) = [DECLARED[functional.layer_norm].calls]
    calls.programs.clear()
    calls.seen.clear()
    for _ in range(3):
        for parts in ((), (weight,), (weight, weight), (None, weight)):
            functional.layer_norm(x, (2,), *parts)
    assert len(calls.programs) == 4
    assert all(program is not _go_the_long_way for program in calls.programs.values())


def test_what_a_call_makes_of_the_default_dtype_is_made_anew() -> None:
    x = ng.zeros(2, 3, dtype=ng.float64)
    rows = ng.tensor([1, 0])
    for dtype in (ng.float64, ng.float32, ng.float64):
        ng.set_default_dtype(dtype)
        try:
            for _ in range(4):
                assert functional.embedding(rows, x, scale_grad_by_freq=True).dtype is ng.float64
                assert ng.tensor([1.0]).dtype is dtype
        finally:
            ng.set_default_dtype(ng.float32)


@pytest.mark.parametrize("index", [[0, 1], [True, False], [[1], [0]], ([1, 0], slice(2))])
def test_calls_without_a_program_return_something_every_time(index: Any) -> None:
    x = ng.arange(6.0).reshape(2, 3).requires_grad_()
    assert len({repr(x[index]) for _ in range(6)}) == 1


@pytest.mark.parametrize("statics", [(1, 2), (1.5, 2.5), (None, True), ("a", "b"), ([1], [2])])
def test_calls_in_turns_are_remembered(statics: tuple[Any, Any]) -> None:
    calls = Calls(lambda x, *given: x * 2)
    x = ng.ones(3)
    for _ in range(2):
        for each in statics:
            calls.meet(typed((each,)), (x,), (each,), (x, each))
    assert set(calls.programs) == {typed((each,)) for each in statics}
    assert all(program(x).tolist() == [2.0] * 3 for program in calls.programs.values())


@pytest.mark.parametrize("name", ["rand", "randperm", "bernoulli", "dropout"])
def test_calls_that_are_remembered_draw_other_numbers_each_time(name: str) -> None:
    x = ng.linspace(0.1, 0.9, 12).reshape(3, 4)
    ng.manual_seed(0)
    drawn = [repr(DRAWS[name](x, x)) for _ in range(5)]
    ng.manual_seed(0)
    with the_long_way():
        assert [repr(DRAWS[name](x, x)) for _ in range(5)] == drawn
    assert len(set(drawn)) == 5
    state = ng.get_rng_state()
    before = repr(DRAWS[name](x, x))
    ng.set_rng_state(state)
    assert repr(DRAWS[name](x, x)) == before


@pytest.mark.parametrize("length", [3, 300])
def test_what_a_call_draws_is_drawn_by_its_program(length: int) -> None:
    calls = Calls(lambda x: x * ng.rand(length))
    x = ng.ones(length)
    for _ in range(2):
        calls.meet("key", (x,), (), (x,))
    program = calls.programs["key"]
    assert program is not _go_the_long_way
    assert len({repr(program(x)) for _ in range(4)}) == 4


REMEMBERED_RULES: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: x.sum(0),
    "zero": lambda x: (x * 1).zero_(),
    "copy": lambda x: (x * 1).copy_(x * 2),
    "slice": lambda x: x[:1],
    "product": lambda x: x @ x,
    "join": lambda x: ng.cat((x, x)),
}


@pytest.mark.parametrize("name", REMEMBERED_RULES)
def test_rules_of_calls_that_are_remembered_are_remembered(name: str) -> None:
    for turn in range(6):
        x = ng.ones(3, 3, requires_grad=True)
        y = REMEMBERED_RULES[name](x)
        node = y.grad_fn
        if not turn and node.call.programs:  # of other tests, which had other cotangents
            node.call.programs.clear()
        y.backward(ng.ones_like(y))
    (program,) = node.call.programs.values()
    assert program is not type(node).run_rules


@pytest.mark.parametrize("dtype", [None, ng.int32])
def test_keywords_behind_numbers_are_taken_every_time(dtype: Any) -> None:
    x = ng.ones(6)
    for _ in range(4):
        if dtype is None:
            assert x.view(size=(2, 3)).shape == x.view(2, 3).shape == (2, 3)
        else:
            assert x.view(dtype=dtype).dtype is x.view(dtype).dtype is dtype


@pytest.mark.parametrize(("primitive", "sample"), SAMPLES)
@pytest.mark.sampled(0.18, by="primitive")
def test_samples(primitive: Any, sample: Any) -> None:
    def call(make: Any) -> Any:
        function, tensors, keywords = sample(make)
        return function(*tensors, **keywords)

    agree(call)


def test_every_function_that_is_dispatched_has_a_call_that_is_remembered() -> None:
    """So that the tests above are of all of them: each stands in the table, or in a sample.

    Those of methods in place are in ``tests/ops/mutation/test_inplace_calls.py``.
    """
    dispatched = [e for e in DECLARED.values() if e.calls is not None and not e.writes]
    before = [each.calls.programs.copy() for each in dispatched]
    for each in dispatched:
        each.calls.programs.clear()
        each.calls.seen.clear()
    generator = np.random.default_rng(0)

    def make(*shape: int, **_: Any) -> Any:
        return ng.from_numpy(generator.uniform(0.5, 3, shape)).requires_grad_()

    for call in CALLS.values():
        for _ in range(3):
            call(make(3, 4), make(3, 4))
    for _, sample in [each.values for each in SAMPLES]:
        for _ in range(3):
            function, tensors, keywords = sample(make)
            function(*tensors, **keywords)
    missing = {
        each.name
        for each in dispatched
        if all(program is _go_the_long_way for program in each.calls.programs.values())
    }
    for each, programs in zip(dispatched, before, strict=True):
        each.calls.programs.update(programs)
    assert not missing, " ".join(sorted(missing))


@pytest.mark.parametrize("name", ["contiguous", "double", "type_as"])
def test_what_returns_its_tensor_asks_for_no_program(name: str) -> None:
    x = ng.ones(3, dtype=ng.float64, requires_grad=True)
    arguments = [ng.zeros(2, dtype=ng.float64)] if name == "type_as" else []
    method = getattr(ng.Tensor, name)
    (calls,) = [DECLARED[method].calls]
    known = [*calls.programs, *calls.seen]
    for tensor in (x, x * 2, x.detach()):
        assert method(tensor, *arguments) is tensor
    assert [*calls.programs, *calls.seen] == known
    assert ng.jit(lambda x: method(x, *arguments) + 1)(x.detach()).tolist() == [2.0] * 3


@given(st.data())
def test_programs(data: st.DataObject) -> None:
    """Calls after each other, each on a result of those before, and writes between them."""
    names = data.draw(st.lists(st.sampled_from(sorted(CALLS)), min_size=1, max_size=4))
    layout = data.draw(st.sampled_from(sorted(LAYOUTS)))
    write = data.draw(st.booleans())

    def call(make: Any) -> Any:
        x, y = LAYOUTS[layout](make) * 1, make(3, 4)
        for name in names:
            if x.ndim != 2 or x.shape != y.shape:
                x = x.sum() + y
            found = CALLS[name](x, y)
            found = found[0] if isinstance(found, tuple) else found
            if write:
                x.mul_(2)
                found = found + 0 * x.sum()
            x = found
        return x

    agree(call)


WRITES: dict[str, Callable[..., Any]] = {
    "row": lambda out, x: out.__setitem__(1, x[0] * x[1]),
    "element": lambda out, x: out.__setitem__((0, -1), x[0, 0] * 2),
    "part": lambda out, x: out.__setitem__((slice(None), slice(1, 3)), x[:, :2]),
    "number": lambda out, x: out.__setitem__(slice(1, None), 0.5),
    "itself": lambda out, x: out.__setitem__(0, out[1] * out[2]),
    "broadcast": lambda out, x: out.__setitem__(..., x[2]),
    "exp_ of a row": lambda out, x: out[2].exp_(),
    "mul_ of columns": lambda out, x: out[:, ::2].mul_(x[:, ::2]),
    "add_": lambda out, x: out.add_(x),
    "copy_": lambda out, x: out.T.copy_(x.T),
    "tanh_ of a transpose": lambda out, x: out.T.tanh_(),
    "sum of a view": lambda out, x: out[0].mul_(out.sum()),
}


@given(
    writes=st.lists(st.sampled_from(sorted(WRITES)), min_size=1, max_size=3),
    layout=st.sampled_from(sorted(LAYOUTS)),
    dtype=st.sampled_from([ng.float64, ng.float32, ng.complex128]),
)
def test_writes(writes: list[str], layout: str, dtype: Any) -> None:
    def call(make: Any) -> Any:
        x = LAYOUTS[layout](make)
        out = make(3, 4) * 1
        view = out[1]
        for name in writes:
            WRITES[name](out, x)
        return out, view * 1, out.sum(0)

    agree(call, dtype)


@given(value=st.sampled_from([0, 1, False, True, 0.0, -0.0, 1.0, None, "a", (0,), [0], (0.0,)]))
@pytest.mark.parametrize("other", [0, 1, False, True, None, "a", (0,), [0], (1, 0), (True,), 1.0])
def test_arguments_of_other_types_are_other_arguments(value: Any, other: Any) -> None:
    try:
        same = typed(value) == typed(other)
    except TypeError:
        return
    assert same == (value == other and repr(value) == repr(other))


NUMBERS = [0, 1, True, False, 0.0, -0.0, 1.0, 2, -2.5, np.nan, np.inf, np.float64(1.0), np.int64(1)]


@given(
    numbers=st.lists(st.sampled_from(NUMBERS), min_size=2, max_size=4),
    dtype=st.sampled_from([ng.float64, ng.int64, ng.bool]),
)
def test_numbers_that_are_equal_and_not_the_same(numbers: list[Any], dtype: Any) -> None:
    def call(make: Any) -> Any:
        x, y = make(3, 4), make(3, 4)
        found = []
        for number in [*numbers] * 3:
            for result in (
                lambda number=number: x.addcmul(x, y, value=number),
                lambda number=number: ng.addmm(x[:, :3], x, y.T, beta=number),
                lambda number=number: (x / 0).nan_to_num(number, neginf=number),
                lambda number=number: x.isclose(y, number, equal_nan=number),
                lambda number=number: x.add(y, alpha=number),
                lambda number=number: ng.sub(x, number, alpha=2),
                lambda number=number: ng.rsub(x, number, alpha=number),
                lambda number=number: x.diagonal(number),
                lambda number=number: x.flatten(number),
                lambda number=number: x.clamp(number, 1),
                lambda number=number: x.copysign(number),
                lambda number=number: (x * 1).fill_(number),
                lambda number=number: (x * 1).clamp_(max=number),
                lambda number=number: ng.full((2,), number),
                lambda number=number: ng.linspace(number, number, 2),
                lambda number=number: ng.arange(number, 2),
            ):
                try:
                    found.append(result())
                except (TypeError, RuntimeError, IndexError, ValueError) as error:
                    found.append(ng.tensor([*map(ord, str(error))]))
        return found

    agree(call, dtype)


@pytest.mark.parametrize("wrong", [1.0, (0.0,), "0", [0.5]])
def test_what_is_refused_is_refused_after_calls_that_are_not(wrong: Any) -> None:
    x = ng.ones(2, 3, requires_grad=True)
    for _ in range(4):
        x.sum(1), x.unsqueeze(1), x.sum((0,)), x[1:2], x.reshape(3, 2)
    for call in (x.sum, x.unsqueeze, lambda dim: x[dim:2], lambda dim: x.reshape(dim, 2)):
        with pytest.raises((TypeError, IndexError, ValueError, RuntimeError)):
            call(wrong)


@given(lengths=st.lists(st.integers(1, 60), min_size=1, max_size=8))
def test_tables_stay_bounded(lengths: list[int]) -> None:
    for length in lengths:
        x = ng.arange(float(length))
        for _ in range(3):
            assert [x[i].item() for i in range(length)] == list(range(length))


def test_a_default_dtype_that_is_set_later_counts() -> None:
    for dtype in (ng.float32, ng.float64):
        ng.set_default_dtype(dtype)
        try:
            for _ in range(4):
                assert ng.arange(3).logsumexp(0).dtype is dtype
                assert (ng.arange(3) / 2).dtype is dtype
        finally:
            ng.set_default_dtype(ng.float32)


@given(
    calls=st.lists(
        st.sampled_from(["linspace(0, 1, 4)", "eye(2)", "ones(3)", "full((2,), 0.5)"]),
        min_size=1,
        max_size=3,
    ),
    dtypes=st.lists(st.sampled_from(["float32", "float64"]), min_size=1, max_size=3),
)
def test_what_is_made_of_the_same_arguments_is_made_anew(calls: Any, dtypes: Any) -> None:
    """Nobody else has its memory, and the default dtype is what it is now."""
    made = []
    try:
        for _ in range(5):
            for dtype in dtypes:
                ng.set_default_dtype(getattr(ng, dtype))
                for call in calls:
                    tensor = eval(f"ng.{call}", {"ng": ng})
                    with the_long_way():
                        expected = eval(f"ng.{call}", {"ng": ng})
                    assert tensor.dtype is expected.dtype and tensor.tolist() == expected.tolist()
                    tensor.requires_grad_()
                    made.append((tensor, tensor.data.mul_(0).sub_(len(made))))
    finally:
        ng.set_default_dtype(ng.float32)
    for number, (tensor, data) in enumerate(made):
        assert set(data.flatten().tolist()) == {-number} == set(tensor.flatten().tolist())


@pytest.mark.parametrize("divide", ["floor_divide", "remainder", "fmod", "div"])
@pytest.mark.parametrize("ending", ["", "_"])
@given(divisors=st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=2), max_size=6))
def test_integers_are_divided_by_zero_whatever_was_divided_before(
    divide: str, ending: str, divisors: list[list[int]]
) -> None:
    options = {"rounding_mode": "floor"} if divide == "div" else {}
    for divisor in [[1, 2]] * 4 + divisors:
        call = getattr(ng.tensor([3, 4]), divide + ending)
        if 0 in divisor:
            with pytest.raises(RuntimeError, match="ZeroDivisionError"):
                call(ng.tensor(divisor), **options)
        else:
            call(ng.tensor(divisor), **options)


FACTORS = [0.0, -0.0, 0.5, 1.0, -2.5, 7e4, 1e300, np.inf, np.nan, 1, True]


@given(
    numbers=st.lists(st.sampled_from(FACTORS), min_size=5, max_size=8),
    dtype=st.sampled_from([ng.float32, ng.float16, ng.int64]),
)
def test_numbers_that_differ_in_every_call(numbers: list[Any], dtype: Any) -> None:
    def call(make: Any) -> Any:
        x, y = make(3, 4), make(3, 4)
        found = []
        for number in numbers:
            for result in (
                lambda number=number: x.add(y, alpha=number),
                lambda number=number: (x * 1).sub_(y, alpha=number),
                lambda number=number: x.clamp(-1, number),
                lambda number=number: (x * 1).clamp_(max=number),
                lambda number=number: x.clamp_min(number),
                lambda number=number: x.lerp(y, number),
                lambda number=number: (x * 1).addcdiv_(x, y, value=number),
                lambda number=number: x.remainder(number),
                lambda number=number: ng.xlogy(number, y),
                lambda number=number: x.copysign(number),
                lambda number=number: (x * 1).mul_(number),
                lambda number=number: (x * 1).pow_(number),
                lambda number=number: (x * 1).fmod_(number),
            ):
                try:
                    found.append(result())
                except (TypeError, RuntimeError) as error:
                    found.append(ng.tensor([*map(ord, str(error))]))
        return tuple(found)

    agree(call, dtype, grad=False)


@pytest.mark.parametrize("share", [lambda x: x.detach(), lambda x: x.data, lambda x: x])
def test_operands_that_share_memory_once_and_not_the_next_time(share: Any) -> None:
    for other in [share] * 3 + [lambda x: ng.tensor([[1.0, 5.0], [2.0, 0.5]])] * 2:
        x = ng.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        y = other(x)
        ((x @ y) * y[0]).sum().backward()
        expected = ng.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        z = expected if y is x else y
        with the_long_way():
            ((expected @ z) * z[0]).sum().backward()
        assert x.grad.tolist() == expected.grad.tolist()


def test_a_tensor_that_was_saved_and_written_to_is_refused_every_time() -> None:
    for _ in range(5):
        x = ng.ones(2, 2, requires_grad=True)
        y = x * 1
        z = y @ y
        y.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()


@pytest.mark.parametrize("requires_grad", [False, True])
def test_a_call_that_goes_by_a_number_in_a_tensor_is_not_remembered(requires_grad):
    x = ng.arange(6.0).reshape(2, 3).requires_grad_(requires_grad)
    for start in (0, 0, 0, 1, 0, 1):
        assert x.narrow(0, ng.tensor(start), 1).tolist() == x[start : start + 1].tolist()
    with pytest.raises(IndexError):
        x.narrow(0, ng.tensor(5), 1)
