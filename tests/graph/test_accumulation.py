"""What ``.grad`` is after a pass: the same object or another, its strides, and whose memory."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.graph.backward.accumulate import copy_as_it_lies, private_tensor
from numgrad.graph.tensor import wrap

# Statements, and after the arrow what is to be seen.
LINES = r"""
x.backward(g) -> (x.grad.data_ptr() == g.data_ptr(), x.grad is g)
(x * 1).backward(g) -> x.grad.data_ptr() == g.data_ptr()
(x + 1).backward(g) -> x.grad.data_ptr() == g.data_ptr()
(x + w).backward(g) -> (x.grad.data_ptr() == w.grad.data_ptr(), w.grad.data_ptr() == g.data_ptr())
x.clone().backward(g) -> x.grad.data_ptr() == g.data_ptr()
(x.sum() + w.sum()).backward() -> (x.grad.data_ptr() == w.grad.data_ptr(), x.grad.stride())
x.expand(3, 2, 2).sum().backward() -> (x.grad.stride(), x.grad._is_view(), x.grad.is_leaf)
x.register_hook(lambda _: g); (x * 2).backward(w.detach()) -> (g.data_ptr() == x.grad.data_ptr())
y = x * 2; y.retain_grad(); y.backward(g) -> (y.grad.data_ptr() == g.data_ptr(), y.grad is g)
(x * 2).backward(g); a = x.grad; (x * 2).backward(g) -> (x.grad is a, x.grad._version, a, g)
(x * 2).backward(g); a = x.grad; (x * 2).backward(g, create_graph=True) -> (x.grad is a, a)
(x * 2).backward(g, create_graph=True); a = x.grad; (x * 2).backward(g) -> (x.grad is a, a)
(x * x).backward(g, create_graph=True) -> (x.grad.requires_grad, x.grad.grad_fn.name())
x.backward(g, create_graph=True) -> (x.grad.data_ptr() == g.data_ptr(), x.grad.requires_grad)
x.backward(w, create_graph=True) -> (x.grad.data_ptr() == w.data_ptr(), x.grad.grad_fn.name())
g[0] = 7; (x + 1).backward(g); g[0] = 9 -> x.grad
a = torch.zeros(4); x.grad = a.view(2, 2); (x * 2).backward(g) -> a
a = torch.zeros(2, 4); x.grad = a[:, ::2]; (x * 2).backward(g) -> (a, x.grad.stride())
a = torch.zeros(2, 2); x.grad = a; w.grad = a; (x + w).backward(g) -> a
a = torch.zeros(2, 2, requires_grad=True); x.grad = a; (x * 2).backward(g) -> (a, x.grad is a)
a = torch.zeros(2, 2, requires_grad=True) * 1; x.grad = a; (x * 2).backward(g) -> (a, x.grad is a)
x.grad = torch.zeros(2, 2).t(); (x * 2).backward(g) -> (x.grad.stride(), x.grad)
x.grad = torch.zeros(2, 2).t(); (x * 2).backward(g, create_graph=True) -> x.grad.stride()
x.backward(g.t()) -> x.grad.stride()
x.t().backward(g) -> x.grad.stride()
"""
# Leaves whose layout the gradient follows, or not, because memory is left out or repeated.
LEAVES = [
    "torch.ones(2, 3).t()",
    "torch.ones(2, 3, 4).permute(2, 0, 1)",
    "torch.ones(2, 3, 4).permute(1, 0, 2)",
    "torch.ones(2, 3, 4)[:, ::2]",
    "torch.ones(2, 3, 4)[:, :, ::2]",
    "torch.ones(2, 3, 4).transpose(0, 2)[::2]",
    "torch.ones(2, 3, 4).transpose(0, 2)[:, 1:]",
    "torch.ones(1).expand(3)",
    "torch.ones(2, 1).expand(2, 3)",
    "torch.ones(1, 3).expand(2, 3)",
    "torch.ones(6).as_strided((2, 3), (1, 2))",
    "torch.ones(6).as_strided((2, 3), (1, 1))",
    "torch.ones(6)[::2]",
    "torch.ones(2, 1, 3).transpose(0, 1)",
    "torch.ones(1, 1, 3).transpose(0, 2)",
]
PASSES = [
    "p.sum().backward()",
    "(p * 2).sum().backward()",
    "p.exp().sum().backward()",
    "(p * p).sum().backward(create_graph=True)",
    "(p * 2).backward(torch.ones(p.shape))",
    "p.backward(torch.ones(p.shape))",
    "p.grad = torch.zeros(p.shape); p.exp().sum().backward()",
]


def seen(library: Any, statements: str, expression: str) -> str:
    """Run statements with leaves `x` and `w` and a gradient `g`, and return what is to be seen."""
    names: dict[str, Any] = {"torch": library, "g": library.ones(2, 2)}
    for name in "xw":
        names[name] = library.ones(2, 2, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(statements, names)
        return str(eval(expression, names))


@pytest.mark.parametrize("line", LINES.strip().splitlines())
def test_gradients_are_kept_copied_or_added_to_as_in_pytorch(torch: Any, line: str) -> None:
    statements, _, expression = line.partition(" -> ")
    assert seen(ng, statements, expression) == seen(torch, statements, expression)


@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("way", PASSES)
def test_strides_of_the_gradient_are_pytorchs(torch: Any, leaf: str, way: str) -> None:
    statements = f"p = {leaf}.detach().requires_grad_(); {way}"
    expression = "[p.grad.stride(d) for d in range(p.ndim) if p.shape[d] > 1], p.grad.tolist()"
    assert seen(ng, statements, expression) == seen(torch, statements, expression)


def test_memory_of_a_gradient_that_the_user_gave_is_not_kept() -> None:
    """PyTorch keeps it where it gets to the leaf through a view; here it never does."""
    for line in ("x.view(4).backward(g.view(4))", "x.t().backward(g.t())", "x.backward(g)"):
        assert seen(ng, f"{line}; g.zero_()", "x.grad.tolist()") == "[[1.0, 1.0], [1.0, 1.0]]"


@pytest.mark.parametrize("dtype", [ng.float16, ng.float32, ng.complex128])
def test_what_a_result_retains_is_added_up(dtype: Any) -> None:
    y = ng.ones(3, dtype=dtype, requires_grad=True) * 2
    y.retain_grad()
    for passes in (1, 2, 3):
        (y * 3).sum().abs().backward(retain_graph=True)
        assert y.grad.dtype is dtype and y.grad.tolist() == [3 * passes] * 3


GRADIENTS: dict[str, Any] = {
    "row by row": lambda m: m.ones(2, 3),
    "by columns": lambda m: m.ones(3, 2).t(),
    "stepped": lambda m: m.ones(2, 6)[:, ::2],
    "expanded": lambda m: m.ones(1, 3).expand(2, 3),
    "a number, expanded": lambda m: m.ones(()).expand(2, 3),
    "overlapping": lambda m: m.ones(6).as_strided((2, 3), (1, 1)),
    "overlapping in part": lambda m: m.ones(9).as_strided((2, 3), (2, 1)),
}


def test_what_lies_in_grad_is_added_to_where_it_lies_or_refused(torch: Any) -> None:
    """Where elements share memory, each would be added to several times."""
    for name, make in GRADIENTS.items():
        found: list[Any] = []
        for m in (ng, torch):
            x = m.ones(2, 3, requires_grad=True)
            x.grad = make(m)
            before = x.grad
            try:
                (x * 2).sum().backward()
            except RuntimeError as error:
                found.append([str(error).split(".")[0], before.tolist()])
            else:
                found.append([x.grad is before, x.grad.stride(), x.grad.tolist()])
        if not name.startswith("overlapping"):
            assert found[0] == found[1], name
        else:  # which PyTorch adds to all the same
            assert "single memory location" in found[0][0] and set(found[0][1][0]) == {1}


def test_copies_of_gradients_lie_as_these_do() -> None:
    """What one element shows stays one, gaps stay gaps, and no memory is shared."""
    whole = np.arange(120.0).reshape(2, 3, 4, 5)
    arrays = [
        whole,
        whole.transpose(2, 0, 3, 1),
        whole[:, ::2, 1:3],
        whole[1:, :, 1, ::3].T,
        np.broadcast_to(whole[0, 0], (2, 3, 4, 5)),
        np.broadcast_to(whole[:, :1, :, :1], (2, 3, 4, 5)).transpose(3, 1, 0, 2),
        np.broadcast_to(whole[:1, :1, :1, :1], (1, 3, 1, 5)),
        np.broadcast_to(np.float64(7.0), (2, 3)),
        np.broadcast_to(whole[0, 0, :, 2:3], (4, 1)),
    ]
    for array in arrays:
        for copy in (copy_as_it_lies(array), private_tensor(wrap(array))._array):
            np.testing.assert_array_equal(copy, array)
            assert not np.may_share_memory(copy, array)
            pairs = zip(copy.strides, array.strides, array.shape, strict=True)
            steps = [(own, step) for own, step, length in pairs if length > 1]
            assert [own == 0 for own, _ in steps] == [step == 0 for _, step in steps]
            if all(step for _, step in steps):
                assert all(own == step for own, step in steps)


@pytest.mark.usefixtures("traced")
def test_a_gradient_captured_in_a_trace_lies_as_it_does_outside() -> None:
    x = ng.arange(6.0).reshape(3, 2).t().requires_grad_()
    calls = [
        lambda x: ng.autograd.grad((x * 2).sum(), x)[0],
        lambda x: ng.autograd.grad(x.sum(), x)[0],
        lambda x: ng.autograd.grad((x.t() * 2).sum(), x)[0],
        lambda x: ng.func.grad(lambda t: (t * t).sum())(x),
    ]
    for call in calls:
        for given in (x, x.contiguous().detach().requires_grad_()):
            plain, compiled = call(given), ng.jit(call)(given)
            assert plain.tolist() == compiled.tolist() and plain.stride() == compiled.stride()
