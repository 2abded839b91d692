"""In-place forms of views: shape, strides, node and history are PyTorch's, and so are refusals."""

from __future__ import annotations

from typing import Any

import pytest

import numgrad as ng

# Statements on x (a leaf that requires grad), y (computed), z and w; what is to be seen.
LINES = r"""
y.transpose_(0, 1) -> (y, y.stride())
y.t_() -> (y, y._version, y._is_view())
y.swapaxes_(0, 1) -> y
y.swapdims_(0, -1) -> y
y.unsqueeze_(0) -> y
y.unsqueeze_(-1).squeeze_() -> y
y.unsqueeze_(-1).squeeze_(-1) -> y
y.unsqueeze_(-1).squeeze_((1, 2)) -> y
y.squeeze_() -> (y, y._version)
z.t_() -> (z, z._version, z.stride(), z.t_() is z)
with torch.no_grad(): x.t_() -> (x, x.is_leaf, x._version)
(y.t_() * w).sum().backward() -> x.grad
v = y[0]; y.t_(); (v * torch.tensor([1., 2., 3.])).sum().backward() -> (x.grad, v._version)
v = y[0]; y.t_(); v.mul_(3); y.sum().backward() -> (x.grad, y)
v = y[0]; v.unsqueeze_(0); (v * torch.tensor([1., 2., 3.])).sum().backward() -> (v.shape, x.grad)
v = y[0]; v.unsqueeze_(0); v.mul_(3); y.sum().backward() -> (v, y, x.grad)
v = z[0]; v.unsqueeze_(0); v.mul_(3) -> (v, z)
v = z[0]; z.t_(); v.mul_(3) -> (v, z)
h = []; y.register_hook(lambda g: h.append(g.shape)); y.t_(); (y * w).sum().backward() -> h
s = (y * 2).sum(); y.t_(); s.backward() -> x.grad
y.t_().t_().mul_(2).sum().backward() -> x.grad
torch.autograd.grad((y.t_() ** 3).sum(), x, create_graph=True)[0].sum().backward() -> x.grad
"""
ERRORS = r"""
x.t_()
x.transpose_(0, 1)
x.unsqueeze_(0)
x.squeeze_()
x[0].unsqueeze_(0)
y.unbind()[0].unsqueeze_(0)
z.transpose_(0, 5)
z.unsqueeze_(7)
i.t_()
"""


def run(library: Any, statements: str, expression: str) -> str:
    """Return what is to be seen after some statements, or the error."""
    x = library.arange(6.0).reshape(2, 3).requires_grad_()
    names: dict[str, Any] = {"torch": library, "x": x, "y": x * 1}
    names |= {"z": x.detach().clone(), "w": library.arange(6.0).reshape(3, 2)}
    with library.inference_mode():
        names["i"] = library.ones(3, 2)
    try:
        exec(statements, names)
        return str(eval(expression, names))
    except (RuntimeError, IndexError) as error:
        return f"{type(error).__name__}: {error}".split("\n")[0]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("line", LINES.strip().splitlines())
def test_tensors_are_reshaped_as_in_pytorch(torch: Any, line: str) -> None:
    statements, _, expression = line.partition(" -> ")
    found = run(ng, statements, expression)
    assert found == run(torch, statements, expression)
    assert "Error" not in found


@pytest.mark.parametrize("statements", ERRORS.strip().splitlines())
def test_what_is_refused_is_refused_in_pytorchs_words(torch: Any, statements: str) -> None:
    found = run(ng, statements, "0")
    assert found == run(torch, statements, "0")
    assert "Error" in found


def test_the_gradient_that_is_retained_has_the_present_shape() -> None:
    """PyTorch keeps the gradient of the former shape."""
    found = run(ng, "y.retain_grad(); y.t_(); (y * w).sum().backward()", "y.grad.shape, x.grad")
    assert found.startswith("(torch.Size([3, 2]), tensor([[0., 2., 4.],")


def test_what_was_saved_before_is_noticed() -> None:
    found = run(ng, "s = (y * y).sum(); y.t_(); s.backward()", "0")
    assert found.startswith("RuntimeError: one of the variables needed for gradient computation")


def test_a_traced_function_does_not_reshape_in_place() -> None:
    with pytest.raises(ng.TraceError):
        ng.jit(lambda x: x.t_())(ng.ones(2, 3))
