"""What the page for those who know PyTorch says of differences, where no other test does."""

from __future__ import annotations

import gc
import inspect
import warnings
import weakref
from typing import Any

import pytest

import numgrad as ng


def test_a_gradient_with_a_graph_is_freed_with_its_leaf() -> None:
    x = ng.tensor([1.0, 2.0], requires_grad=True)
    (x**3).sum().backward(create_graph=True)
    gone = [weakref.ref(x), weakref.ref(x.grad.grad_fn)]
    assert x.grad.grad_fn is not None
    del x
    gc.collect()
    assert [reference() for reference in gone] == [None, None]


def test_a_function_takes_keyword_only_arguments() -> None:
    class Scale(ng.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, *, k: float) -> Any:
            ctx.k = k
            return x * k

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.k

    x = ng.tensor([1.0, 2.0], requires_grad=True)
    Scale.apply(x, k=3.0).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_an_inference_tensor_that_requires_grad_is_a_leaf() -> None:
    with ng.inference_mode():
        x = ng.tensor([1.0, 2.0]).requires_grad_()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_a_hook_that_holds_its_tensor_is_freed_with_it() -> None:
    x = ng.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.register_hook(lambda g, y=y: g * y)
    gone = weakref.ref(y)
    del y
    gc.collect()
    assert gone() is None


def test_built_in_methods_are_python_functions() -> None:
    assert inspect.isfunction(ng.Tensor.backward)
    assert ng.Tensor.backward.__qualname__ == "Tensor.backward"


def test_grids_and_lists_as_indices_do_not_warn() -> None:
    x = ng.tensor([[1.0, 2.0], [3.0, 4.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for bare, given in zip(
            ng.meshgrid(x[0], x[1]), ng.meshgrid(x[0], x[1], indexing="ij"), strict=True
        ):
            assert bare.tolist() == given.tolist()
        for key in ([[0], [1]], [slice(None), 0], [ng.tensor([0, 1]), ng.tensor([1, 1])], [[0, 1]]):
            assert x[key].tolist() == x[tuple(key)].tolist()


@pytest.mark.parametrize(
    "name", ["minimum", "maximum", "fmin", "fmax", "atan2", "hypot", "logaddexp", "logical_or"]
)
def test_a_number_is_taken_for_either_operand(name: str) -> None:
    x, function = ng.tensor([-1.0, 0.0, 3.0]), getattr(ng, name)
    for number in (2.0, 2, False):
        full = ng.full_like(x, number)
        assert function(x, number).tolist() == function(x, full).tolist()
        assert function(number, x).tolist() == function(full, x).tolist()


def test_the_gradient_of_polar_is_right_at_negative_lengths() -> None:
    length = ng.tensor([-2.0, -0.5, 2.0], dtype=ng.float64, requires_grad=True)
    angle = ng.tensor([0.3, -2.0, 1.0], dtype=ng.float64, requires_grad=True)
    assert ng.autograd.gradcheck(ng.polar, (length, angle))


@pytest.mark.parametrize("alpha", [2**63, 2**63 + 2**40, 2**64 - 1])
def test_a_factor_beyond_int64_is_subtracted(alpha: int) -> None:
    x = ng.tensor([1.0, 0.5, -3.0], dtype=ng.float64)
    assert ng.sub(x, x, alpha=alpha).tolist() == (x - x * float(alpha)).tolist()
    assert ng.rsub(x, x, alpha=alpha).tolist() == (x - x * float(alpha)).tolist()
    k = ng.tensor([1, -7, 2**62])  # integers wrap around, as all of theirs do
    wrapped = [(each - alpha * each + 2**63) % 2**64 - 2**63 for each in k.tolist()]
    assert ng.sub(k, k, alpha=alpha).tolist() == wrapped


def test_tangents_have_the_precision_of_their_tensors() -> None:
    x, t = ng.tensor([1.0, 2.0]), ng.tensor([1.0, 3.0], dtype=ng.float64)
    _, tangent = ng.func.jvp(lambda x: x * x, (x,), (t,))
    assert tangent.dtype is ng.float32
    assert tangent.tolist() == [2.0, 12.0]
    with ng.autograd.forward_ad.dual_level():
        dual = ng.autograd.forward_ad.make_dual(x, t)
        assert ng.autograd.forward_ad.unpack_dual(dual * dual).tangent.dtype is ng.float32


def test_new_data_leave_a_tensor_inference_or_not() -> None:
    usual = ng.ones(2)
    with ng.inference_mode():
        inference = ng.zeros(2)
    usual.data, inference.data = inference, usual
    assert not usual.is_inference()
    assert inference.is_inference()
    assert usual.add_(1).tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="inference tensor"):
        inference.add_(1)


def test_a_division_with_no_rounding_records_the_node_of_one() -> None:
    x = ng.ones(2, requires_grad=True)
    assert ng.div(x, 2, rounding_mode=None).grad_fn.name() == (x / 2).grad_fn.name()


def test_a_view_finds_its_history_by_itself() -> None:
    w, base = ng.ones(4, requires_grad=True), ng.ones(4)
    view = base[:2]
    base.mul_(w)
    view.retain_grad()
    view.mul_(3)
    (view * 2).sum().backward()
    assert view.grad is not None and view.grad.tolist() == [2.0, 2.0]
    assert w.grad is not None and w.grad.tolist() == [6.0, 6.0, 0.0, 0.0]
