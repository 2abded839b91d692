"""`view(dtype)`: the same bits as elements of another dtype, without a history of its own."""

from __future__ import annotations

import itertools
import warnings
from random import Random
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng
from numgrad.graph.recorder import TraceError
from tests.ops.layouts import LAYOUTS, Layout, layouts, place

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64"]
DTYPES += ["float16", "float32", "float64", "complex64", "complex128"]
SHAPES = [(2, 3, 4), (4, 2), (3,), (8,), (2, 1, 8), (1, 1), (), (0, 4), (2, 3)]
PAIRS = list(itertools.product(DTYPES, DTYPES))
DRAWS = 6


def viewed(library: Any, kinds: tuple[str, str], layout: Layout, shape: Any, offset: int) -> Any:
    """Return a tensor of some layout, in memory of small integers, and the call of its view."""
    strides, room = place(layout, shape)
    numbers = np.arange(room + offset) % 2
    memory = library.from_numpy(numbers.astype(kinds[0]))
    return memory.as_strided(shape, strides, offset)


def seen(library: Any, kinds: tuple[str, str], layout: Layout, shape: Any, offset: int) -> Any:
    """Return all that can be seen of a view, or the words of the error."""
    x = viewed(library, kinds, layout, shape, offset)
    try:
        y = x.view(getattr(library, kinds[1]))
    except RuntimeError as error:
        return str(error).split("\n")[0]
    before = y._version
    shown = [str(y.dtype), tuple(y.shape), y._is_view(), y.data_ptr() == x.data_ptr()]
    if y.numel():
        steps = zip(y.stride(), y.shape, strict=True)
        shown += [[step for step, length in steps if length > 1], repr(y.tolist())]
        y.zero_()
        shown += [x.tolist(), x._version - before]
    return shown


@pytest.mark.sampled(0.14)
@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_a_view_shows_what_pytorchs_does(torch: ModuleType, kinds: tuple[str, str]) -> None:
    random = Random(str(kinds))
    plain = [layout for layout in LAYOUTS.values() if not layout.expanded]
    for _ in range(DRAWS):
        shape = random.choice(SHAPES)
        layout = random.choice(plain) if 0 not in shape else Layout()
        case = (layout, shape, random.choice([0, 0, 1, 2]))
        assert seen(ng, kinds, *case) == seen(torch, kinds, *case), case


@pytest.mark.sampled(0.14)
@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_bits_are_numpys(kinds: tuple[str, str]) -> None:
    array = (np.arange(32).reshape(2, 16) % 2).astype(kinds[0])
    x = ng.tensor(array)
    found = x.view(getattr(ng, kinds[1]))
    np.testing.assert_array_equal(found.numpy(), array.view(kinds[1]))
    found.zero_()
    assert not x.numpy().any()


# Lines that end in what is compared: `x` of four float32 requires grad, `z` is twice that.
PROGRAMS = """
z.view({0}).requires_grad
z.view({0}).grad_fn is None and z.view({0}).is_leaf
z.view({0})._base is None
x.view({0}).zero_(); (x.tolist(), x._version)
y = z.view({0}); y.zero_(); (z.tolist(), z._version, y._version, z.grad_fn.name())
y = z[:2].view({0}); y.zero_(); (z.tolist(), z._version, z.grad_fn.name())
w = z * z; z.view({0}).zero_(); w.sum().backward()
w = z + z; z.view({0}).zero_(); w.sum().backward(); x.grad.tolist()
y = z.view({0}); z.mul_(2); (y.tolist(), y._version)
y = z.view({0}); y.add_(y.detach().clone().requires_grad_()); (y.grad_fn.name(), z.grad_fn.name())
y = z.detach().view({0}); y.add_(y.clone().requires_grad_()).sum().backward()
y = z.view({0}).requires_grad_(); (y * y).abs().sum().backward(); (y.is_leaf, x.grad)
y = z.view({0}); y.detach_(); y.requires_grad
y = z.view({0})[:1]; y.zero_(); (z.tolist(), z._version, y._base is z)
torch.func.grad(lambda x: (x.view({0}).sum().to(torch.float32) + x).sum().abs())(x.detach())
torch.func.jvp(lambda x: x.view({0}), (x.detach(),), (x.detach(),))[1].abs().sum().tolist()
torch.func.grad(lambda x: (x * 1).view({0}).zero_().sum().abs().to(torch.float32))(x.detach())
z.view({0}, 1)
z.view(dtype={0}).dtype
z.view({0}).view(torch.float32).tolist()
"""
LINES = PROGRAMS.strip().splitlines()


def outcome(library: Any, line: str, kind: str) -> Any:
    x = library.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    names = {"torch": library, "x": x, "z": x * 2}
    *before, last = line.format(f"torch.{kind}").split("; ")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for part in before:
                exec(part, names)
            found = eval(last, names)
    except (RuntimeError, TypeError) as error:
        return type(error).__name__, *([str(error)[:60]] * isinstance(error, RuntimeError))
    return repr(found).replace("numgrad.", "torch.")


@pytest.mark.sampled(0.14)
@pytest.mark.parametrize("kind", ["float32", "int32", "float64", "complex64", "uint8"])
@pytest.mark.parametrize("line", LINES)
def test_programs_with_views_do_what_they_do_in_pytorch(
    torch: ModuleType, line: str, kind: str
) -> None:
    assert outcome(ng, line, kind) == outcome(torch, line, kind)


@pytest.mark.usefixtures("traced")
@given(layout=layouts, pair=st.sampled_from([("complex64", "float32"), ("float32", "complex64")]))
def test_parts_of_complex_numbers_are_seen_under_jit_too(
    layout: Layout, pair: tuple[str, str]
) -> None:
    x = viewed(ng, pair, layout, (2, 3, 4), 0)
    wanted = getattr(ng, pair[1])

    def f(x: Any) -> Any:
        y = (x * 2).contiguous()
        y.view(wanted)[..., 0] = 5
        return y, x.view(wanted) + 1

    def outcome(function: Any) -> Any:
        try:
            return [each.tolist() for each in function(x)]
        except RuntimeError as error:
            return str(error)

    assert outcome(ng.jit(f)) == outcome(f)


@pytest.mark.sampled(0.072)
@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_a_traced_function_says_that_it_has_no_bits(kinds: tuple[str, str]) -> None:
    of_parts = {("complex64", "float32"), ("complex128", "float64")}
    if kinds[0] == kinds[1] or {kinds, kinds[::-1]} & of_parts or kinds[0] == "float16":
        return
    wanted = getattr(ng, kinds[1])
    x = ng.tensor(np.ones((2, 16), kinds[0]))
    with pytest.raises(TraceError, match="pass the viewed tensor in as an argument"):
        ng.jit(lambda x: x.view(wanted))(x)
