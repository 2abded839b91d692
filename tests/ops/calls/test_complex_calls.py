"""Every operation that is not elementwise, called on complex tensors: the same as PyTorch's.

Values, dtypes, nodes, warnings, first and second derivatives; and where PyTorch refuses complex
numbers, the class and the words of its error.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.core.primitive import CATALOGUE
from tests.ops.torch_comparison import compare
from tests.rows import rows_of

_RANDOM = np.random.default_rng(11)


def _draw(*shape: int) -> np.ndarray:
    return np.asarray(_RANDOM.normal(size=shape) + 1j * _RANDOM.normal(size=shape))


ARRAYS = {
    "x": _draw(2, 3, 4),
    "y": _draw(2, 4, 3),
    "m": _draw(3, 4),
    "n": _draw(4, 3),
    "s": _draw(3, 3),
    "v": _draw(4),
    "w": _draw(4),
    "u": _draw(3),
    "p": _draw(),
    "r": _RANDOM.normal(size=(3, 4)),
    "q": _RANDOM.normal(size=(3, 4)) + 3,
    "e": _draw(0, 3),
    "z": np.array([[1 + 2j, 0, 3], [0, 0, 1j], [2, -1j, 0.5]]),
    "g": _draw(2, 3, 3) + 4 * np.eye(3),
    "b": _draw(3, 2),
}
ARRAYS["h"] = np.matmul(ARRAYS["g"], ARRAYS["g"].conj().swapaxes(-2, -1))  # positive definite
NAMES = re.compile(r"\b[a-z]\b(?!\()")

# For each operation of the catalogue, calls; none where it is only a part of others' derivatives.
CALLS: dict[str, list[str]] = {
    "take_along": ["torch.take_along_dim(m, torch.tensor([[0], [2], [1]]), 1)"],
    "place_along": [],
    "to_copy": [
        "m.to(torch.complex64)",
        "r.to(torch.complex128)",
        "m.to(torch.float64)",
        "m.to(torch.complex128, copy=True)",
        "m.double()",
        "r.cdouble()",
        "r.cfloat()",
        "m.to(torch.int64)",
        "m.bool()",
    ],
    "sum_to_size": ["m.sum_to_size(1, 4)", "m + v", "v * m", "m / v", "r * v", "p * r"],
    "expand": ["v.expand(3, 4)", "p.expand(2)", "torch.broadcast_to(v, (2, 4))"],
    "clone": ["m.clone()", "m.t().clone()"],
    "complex": ["torch.complex(r, q)", "torch.complex(m, m)", "torch.complex(r, r.float())"],
    "polar": ["torch.polar(q, r)", "torch.polar(m, m)"],
    "view": ["x.view(6, 4)", "x.reshape(-1)"],
    "unsafe_view": ["x.transpose(0, 1).reshape(-1)", "torch.matmul(x, n)"],
    "squeeze_all": ["m[None].squeeze()"],
    "squeeze_dim": ["m[None].squeeze(0)"],
    "squeeze_dims": ["m[None, :, None].squeeze((0, 2))"],
    "unsqueeze": ["m.unsqueeze(1)"],
    "diagonal": ["torch.diagonal(s)", "torch.diagonal(x, -1, 2, 1)"],
    "diagonal_copy": ["torch.diag(s, 1)"],
    "diagonal_backward": [],
    "diag_embed": ["torch.diag_embed(m)", "torch.diag(v)"],
    "diagonal_scatter": ["torch.diagonal_scatter(s, u)"],
    "tril": ["torch.tril(s)", "torch.tril(x, 1)"],
    "triu": ["torch.triu(s)", "torch.triu(x, -1)"],
    "permute": ["x.permute(2, 0, 1)", "x.mT", "x.mH", "s.H", "torch.adjoint(x)"],
    "transpose": ["x.transpose(0, 2)", "torch.swapaxes(x, 0, 1)"],
    "t": ["m.t()", "m.T"],
    "dot": ["torch.dot(v, w)", "torch.dot(v, w.real)", "torch.inner(m, v)"],
    "vdot": ["torch.vdot(v, w)", "torch.vdot(v.real, w.real)"],
    "mv": ["torch.mv(m, v)", "torch.matmul(m, v)", "torch.mv(r, v)"],
    "mm": ["torch.mm(m, n)", "m @ n", "m.conj() @ n", "torch.mm(r, n)", "torch.mm(n.t(), m.t())"],
    "bmm": ["torch.bmm(x, y)", "x @ y", "torch.einsum('bij,bjk->bk', x, y)"],
    "spread": [],
    # With a complex dtype for a real tensor, PyTorch's own backward pass fails in its C++.
    "sum": ["m.sum()", "m.sum(dtype=torch.complex64)", "e.sum()"],
    "sum_over_dims": ["x.sum(1)", "x.sum((0, 2), keepdim=True)", "x.sum(-1)"],
    "mean": ["m.mean()", "m.nanmean()"],
    "mean_over_dims": ["x.mean(1)", "x.mean((0, 2), keepdim=True)"],
    "amax": ["m.amax()", "m.amax(1)"],
    "amin": ["m.amin()", "m.amin(1)"],
    "max": ["m.max()", "torch.max(m, m)", "torch.maximum(m, m)", "torch.fmax(m, m)"],
    "min": ["m.min()", "torch.min(m, m)", "torch.minimum(m, m)", "torch.fmin(m, m)"],
    "max_along_dim": ["m.max(1)"],
    "min_along_dim": ["m.min(1)"],
    "aminmax": ["torch.aminmax(m)", "torch.aminmax(m, dim=0)"],
    "copy": ["m.clone().copy_(v)", "m.clone().copy_(r)", "r.clone().copy_(m)"],
    "fill_number": ["torch.fill(m, 1j)"],
    "fill_tensor": ["torch.fill(m, p)"],
    "fill_number_in_place": ["m.clone().fill_(2 + 1j)", "r.clone().fill_(1j)"],
    "fill_tensor_in_place": ["m.clone().fill_(p)"],
    "zero": ["m.clone().zero_()"],
    "masked_fill_number": [
        "m.masked_fill(r > 0, 1j)",
        "r.masked_fill(r > 0, 1j)",
        "m.masked_fill(r > 0, 2)",
    ],
    "masked_fill_tensor": ["m.masked_fill(r > 0, p)", "r.masked_fill(r > 0, p)"],
    "pad_behind": [],
    "corner": [],
    "gather": ["torch.gather(m, 1, torch.tensor([[0, 0], [2, 1]]))"],
    "gather_backward": [],
    "scatter": [
        "m.scatter(1, torch.tensor([[0], [2]]), x[0, :2, :1])",
        "m.scatter(1, torch.tensor([[1]]), r[:1, :1])",
    ],
    "scatter_number": ["m.scatter(1, torch.tensor([[0], [2]]), 1j)"],
    "scatter_add": ["m.scatter_add(1, torch.tensor([[0, 0], [2, 2]]), x[0, :2, :2])"],
    "take": ["torch.take(m, torch.tensor([0, 5, 5]))"],
    "take_backward": [],
    "index_select": ["torch.index_select(m, 1, torch.tensor([2, 0, 2]))"],
    "index_add": ["m.index_add(0, torch.tensor([1, 1]), x[:, 0], alpha=1.5)"],
    "index_copy": ["m.index_copy(0, torch.tensor([2, 1]), x[:, 0])"],
    "index_fill_tensor": ["m.index_fill(0, torch.tensor([2]), p)"],
    "index_fill_number": ["m.index_fill(0, torch.tensor([2]), 1j)"],
    "alias": ["m[...]"],
    "select": ["m[1]", "m[:, -1]", "m.select(0, 1)"],
    "select_backward": [],
    "slice": ["m[:, 1:4:2]", "torch.narrow(m, 0, 1, 2)"],
    "slice_backward": [],
    "select_scatter": ["torch.select_scatter(m, v, 0, 1)"],
    "slice_scatter": ["torch.slice_scatter(m, v[None], 0, 1, 2)"],
    "index": ["m[[0, 2, 0]]", "m[r > 0]", "x[[0, 1], :, [1, 1]]"],
    "index_backward": [],
    "index_put": ["m.index_put((torch.tensor([0, 2]),), v)"],
    "index_put_accumulate": ["m.index_put((torch.tensor([0, 0]),), v, accumulate=True)"],
    "cat": [
        "torch.cat([m, m.conj()])",
        "torch.cat([m, r], 1)",
        "torch.cat([r, m.to(torch.complex64)])",
    ],
    "stack": ["torch.stack([m, m * 2], 1)", "torch.stack([m, r])", "torch.hstack([v, w])"],
    "drop_first_dim": ["torch.matmul(v, n)", "torch.matmul(v, y)"],
    "trace": ["torch.trace(s)"],
    "masked_select": ["torch.masked_select(m, r > 0)"],
    "masked_select_backward": [],
    "masked_scatter_backward": [],
    "masked_scatter": ["m.masked_scatter(r > 0, x)"],
    "var": ["m.var()", "m.var(1)", "x.var((0, 2), correction=0, keepdim=True)"],
    "std": ["m.std()", "m.std(1)", "x.std((0, 2), correction=0, keepdim=True)"],
    "var_mean": ["torch.var_mean(m)", "torch.var_mean(m, 1)"],
    "std_mean": ["torch.std_mean(m)", "torch.std_mean(m, 1)"],
    "nansum": ["torch.nansum(m)"],
    "vector_norm": [
        *(f"torch.norm(m, {p})" for p in ("", "0", "1", "2", "3", "1.5", "-2", "float('inf')")),
        "torch.norm(m, 2, 1)",
        "torch.norm(m, 3, 0, keepdim=True)",
        "torch.norm(m, float('-inf'), 1)",
        "torch.norm(z, 2, 1)",
    ],
    "logsumexp_backward": [],
    "logsumexp": ["torch.logsumexp(m, 1)", "torch.logsumexp(x, (0, 2), keepdim=True)"],
    "argmax": ["torch.argmax(m)"],
    "argmin": ["torch.argmin(m, 1)"],
    "cummax": ["torch.cummax(m, 0)"],
    "cummin": ["torch.cummin(m, 0)"],
    "cumsum": ["torch.cumsum(m, 1)", "torch.cumsum(r, 0, dtype=torch.complex128)"],
    "shift": [],
    "linear_recurrence": [],
    "cumprod": ["torch.cumprod(m, 1)", "torch.cumprod(z, 0)", "torch.cumprod(z, 1)"],
    "logcumsumexp": ["torch.logcumsumexp(m, 1)", "torch.logcumsumexp(m * 10, 0)"],
    "prod": [
        "torch.prod(m)",
        "torch.prod(z)",
        "torch.prod(z[:2, 1:])",
    ],
    "prod_over_dim": ["torch.prod(m, 1)", "torch.prod(z, 0)", "torch.prod(z, 1, keepdim=True)"],
    "addmm": [
        "torch.addmm(s, m, n)",
        "torch.addmm(s, m, n, beta=0.5 + 1j, alpha=2j)",
        "torch.addmm(u, m, n, beta=0)",
    ],
    "addmv": ["torch.addmv(u, m, v, beta=0.5 + 1j, alpha=2j)"],
    "addr": ["torch.addr(m, u, v, beta=0.5 + 1j, alpha=2j)"],
    "baddbmm": ["torch.baddbmm(s, x, y, beta=0.5 + 1j, alpha=2j)"],
    "addbmm": ["torch.addbmm(s, x, y, beta=0.5 + 1j, alpha=2j)"],
    "as_strided": ["torch.as_strided(m, (2, 3), (1, 1))"],
    "as_strided_backward": [],
    # PyTorch gives the input the wrong gradient (see the docstring of as_strided_scatter).
    "as_strided_scatter": ["torch.as_strided_scatter(m.detach(), v, (4,), (2,))"],
    "view_as_real": [
        *("torch.view_as_real(m)", "torch.view_as_real(r)", "torch.view_as_real(m.t())"),
        *("torch.real(m)", "m.real", "torch.real(r)", "x.transpose(0, 2).real", "p.real"),
        *("torch.imag(m)", "m.imag", "torch.imag(r)", "x.transpose(0, 2).imag", "p.imag"),
    ],
    "view_as_complex": [
        "torch.view_as_complex(r.reshape(3, 2, 2))",
        "torch.view_as_complex(m)",
        "torch.view_as_complex(r)",
    ],
    "flip": ["torch.flip(m, (0, 1))", "torch.fliplr(m)"],
    "roll": ["torch.roll(m, (1, -2), (0, 1))"],
    "rot90": ["torch.rot90(m)"],
    "repeat": ["m.repeat(2, 1)", "torch.tile(m, (2,))", "torch.repeat_interleave(m, 2, 0)"],
    "softmax_backward": [],
    "log_softmax_backward": [],
    "softmax": ["torch.softmax(m, 1)", "torch.softmax(m, 0)"],
    "log_softmax": ["torch.log_softmax(m, 1)", "torch.log_softmax(m, 0)"],
    "sort": ["torch.sort(m)", "torch.argsort(m)", "torch.msort(m)"],
    "sort_stable": ["torch.sort(m, stable=True)"],
    "topk": ["torch.topk(m, 2)"],
    "kthvalue": ["torch.kthvalue(m, 2)"],
    "split": ["torch.split(m, 2, 1)", "torch.chunk(m, 2)"],
    "split_with_sizes": ["torch.split(m, [1, 3], 1)"],
    "unbind": ["torch.unbind(m, 1)"],
    "all": ["torch.all(m)", "torch.all(z, 1)"],
    "any": ["torch.any(m)", "torch.any(z, 1)"],
    "count_nonzero": ["torch.count_nonzero(z)", "torch.count_nonzero(z, 0)"],
    "unfold": ["m.unfold(1, 3, 1)"],
    "alias_in_shape": ["m.reshape(4, 3)"],
    "constant_pad_nd": ["torch.constant_pad_nd(m, (1, 2, -1, 0), 2j)"],
    "put": ["m.put(torch.tensor([0, 2]), v[:2])", "m.put(torch.tensor([1, 1]), v[:2], True)"],
    **rows_of("COMPLEX"),
}
LINES = [pytest.param(line, id=f"{name}: {line}") for name, ls in CALLS.items() for line in ls]


def test_every_operation_that_is_not_elementwise_is_here():
    arrays = {n for n, p in CATALOGUE.items() if not isinstance(p, ElementwisePrimitive)}
    assert arrays == set(CALLS)


# PyTorch says so once a process, in whichever test comes first.
@pytest.mark.sampled(0.18)
@pytest.mark.filterwarnings("ignore:Casting complex values to real")
@pytest.mark.parametrize("line", LINES)
def test_complex_call_is_pytorchs(torch, line):
    names = sorted(set(NAMES.findall(line)) & ARRAYS.keys())

    def call(module: Any, *tensors: Any) -> Any:
        return eval(line, {"torch": module, **dict(zip(names, tensors, strict=True))})

    compare(torch, call, *[ARRAYS[name] for name in names])
