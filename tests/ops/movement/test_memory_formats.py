# ruff: noqa: E501 - a line of a table is a line of code
"""channels_last and channels_last_3d: where the elements lie, and that nothing else changes."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng
from tests.ops.lines import answer

SETUP = """
x3, x4, x5 = torch.ones(2, 3, 4), torch.ones(2, 3, 4, 5), torch.ones(2, 2, 3, 4, 5)
cl, c3 = torch.channels_last, torch.channels_last_3d
keep, rows = torch.preserve_format, torch.contiguous_format
y = x4.to(memory_format=cl)
"""
LINES = r"""
cl, c3, isinstance(cl, torch.memory_format)
x4.clone(memory_format=cl).stride(), x5.clone(memory_format=c3).stride()
x4.contiguous(memory_format=cl).stride()
y.contiguous(memory_format=cl) is y, x4.contiguous(memory_format=rows) is x4
y.stride(), y.is_contiguous(memory_format=cl), x4.is_contiguous(memory_format=cl), y.is_contiguous()
torch.empty(2, 3, 4, 5, memory_format=cl).stride(), torch.zeros_like(x4, memory_format=cl).stride()
torch.empty_like(y).stride(), y.clone().stride(), (y + 1).stride(), torch.rand_like(y).stride()
x3.contiguous(memory_format=cl)
x5.contiguous(memory_format=cl)
x4.contiguous(memory_format=c3)
x3.is_contiguous(memory_format=cl), x5.is_contiguous(memory_format=cl)
x3.clone(memory_format=cl)
x3.to(memory_format=cl)
x4.type(torch.float64, memory_format=cl).stride(), x4.type(torch.float32).stride()
torch.empty(2, 3, memory_format=cl)
torch.empty(2, 3, memory_format=keep)
torch.ones(2, 1, 4, 5).is_contiguous(memory_format=cl)
torch.ones(2, 1, 4, 5).contiguous(memory_format=cl).stride()
torch.ones(2, 1, 4, 5).clone(memory_format=cl).stride()
torch.ones(2, 3, 1, 1).clone(memory_format=cl).stride()
x4.to(torch.float64, memory_format=cl).stride(), y.to(torch.float64).stride()
y.to(torch.float64, memory_format=rows).stride(), y.to(memory_format=rows).stride()
y.to(memory_format=cl) is y, x4.to(memory_format=cl) is x4, x4.to(memory_format=keep) is x4
x3.transpose(0, 1).to(memory_format=rows).stride()
y.float() is y, x4.double(memory_format=cl).stride(), x4.cpu(memory_format=cl).stride()
torch.ones(2, 0, 4, 5).is_contiguous(memory_format=cl)
x4.is_contiguous(memory_format=keep)
x4.clone().resize_(2, 3, 2, 5, memory_format=cl).stride()
x4.clone().resize_(2, 3, 4, 5, memory_format=cl).stride()
x4.clone().resize_(2, memory_format=cl)
x4.clone().resize_as_(y, memory_format=keep).stride()
x4.to(x4, memory_format=cl).stride(), x4.to(memory_format=cl, copy=True).stride()
x4.is_contiguous(memory_format='a')
x4.clone(memory_format='a')
y._is_view(), y._base
z = torch.ones(2, 3, 4, 5, requires_grad=True); w = z.clone(memory_format=cl); (w * w).sum().backward() -> w.grad_fn.name(), float(z.grad.sum())
"""
CODES = list(filter(None, LINES.split("\n")))


@pytest.mark.parametrize("code", CODES, ids=CODES)
def test_memory_formats(torch: ModuleType, code: str) -> None:
    assert answer(ng, code, SETUP) == answer(torch, code, SETUP)


_LAYOUTS = st.sampled_from(["plain", "permuted", "stepped", "expanded", "already"])
_CALLS = st.sampled_from(["clone", "contiguous", "to", "zeros_like", "cast"])


def _laid_out(library: Any, shape: list[int], how: str, order: list[int], fmt: Any) -> Any:
    size = int(np.prod(shape))
    x = library.from_numpy(np.arange(size, dtype=np.float32)).reshape(shape)
    if how == "permuted":
        return x.permute(order)
    if how == "stepped":
        return library.stack([x, x + 1], -1)[..., 0]
    if how == "expanded":
        return x[:1].expand(shape)
    return x.clone(memory_format=fmt) if how == "already" else x


def _call(library: Any, x: Any, call: str, fmt: Any) -> Any:
    if call == "zeros_like":
        return library.zeros_like(x, memory_format=fmt) + x
    if call == "cast":
        return x.to(library.float64, memory_format=fmt)
    return getattr(x, call)(memory_format=fmt)


def _draw(data: st.DataObject) -> tuple[list[int], str, list[int], str, str]:
    ndim = data.draw(st.sampled_from([4, 5]))
    shape = data.draw(st.lists(st.integers(1, 3), min_size=ndim, max_size=ndim))
    order = data.draw(st.permutations(range(ndim)))
    fmt = "channels_last" if ndim == 4 else "channels_last_3d"
    return shape, data.draw(_LAYOUTS), order, data.draw(_CALLS), fmt


@given(st.data())
def test_the_second_dim_lies_innermost(data: st.DataObject) -> None:
    shape, how, order, call, name = _draw(data)
    fmt = getattr(ng, name)
    x = _laid_out(ng, shape, how, order, fmt)
    found = _call(ng, x, call, fmt)
    assert found.tolist() == x.tolist()
    if call in ("clone", "contiguous"):
        assert found.is_contiguous(memory_format=fmt)
    if call == "clone":
        last = list(range(found.dim()))
        last.append(last.pop(1))  # the dims as they lie in memory
        assert found.permute(last).stride() == ng.empty([found.shape[d] for d in last]).stride()


@given(st.data())
def test_strides_are_pytorchs(torch: ModuleType, data: st.DataObject) -> None:
    shape, how, order, call, name = _draw(data)
    ours, theirs = (
        _call(library, _laid_out(library, shape, how, order, fmt), call, fmt)
        for library, fmt in [(ng, getattr(ng, name)), (torch, getattr(torch, name))]
    )
    wide = [dim for dim, length in enumerate(theirs.shape) if length > 1]
    assert [ours.stride(dim) for dim in wide] == [theirs.stride(dim) for dim in wide]
    assert ours.tolist() == theirs.tolist()


@pytest.mark.usefixtures("traced")
def test_a_format_changes_no_number_under_jit() -> None:
    x = ng.arange(24.0).reshape(1, 2, 3, 4)

    @ng.jit
    def f(x: ng.Tensor) -> ng.Tensor:
        return x.to(memory_format=ng.channels_last).clone(memory_format=ng.channels_last) * 2

    assert f(x).tolist() == (x * 2).tolist()
