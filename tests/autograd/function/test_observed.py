"""Custom Functions and hooks on saved tensors, where forward mode or anomaly mode looks on."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.autograd import forward_ad
from numgrad.autograd.graph import saved_tensors_hooks


class Cube(ng.autograd.Function):
    """The cube; its tangents are ten times too large, so that one sees whose they are."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad

    @staticmethod
    def jvp(ctx: Any, tangent: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 30 * x**2 * tangent


class Same(ng.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad

    @staticmethod
    def jvp(ctx: Any, tangent: Any) -> Any:
        return tangent.view_as(tangent)


class Doubled(ng.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return 2 * grad

    @staticmethod
    def jvp(ctx: Any, tangent: Any) -> Any:
        return tangent.mul_(2)


class WithoutJvp(ng.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 2


class NanBackward(ng.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * float("nan")


@pytest.mark.parametrize("requires_grad", [False, True])
def test_jvp_gives_the_tangent_of_a_dual_tensor(requires_grad: bool) -> None:
    x = ng.tensor([1.0, 2.0], requires_grad=requires_grad)
    with forward_ad.dual_level():
        y = Cube.apply(forward_ad.make_dual(x, ng.tensor([1.0, 10.0])))
        primal, tangent = forward_ad.unpack_dual(y)
    assert y.requires_grad is requires_grad
    assert primal.tolist() == [1.0, 8.0]
    assert tangent.tolist() == [30.0, 1200.0]


def test_a_tangent_that_jvp_gives_can_be_differentiated() -> None:
    x = ng.tensor([1.0, 2.0], requires_grad=True)
    with forward_ad.dual_level():
        y = Cube.apply(forward_ad.make_dual(x, ng.ones(2)))
        tangent = forward_ad.unpack_dual(y).tangent
    assert ng.autograd.grad(tangent.sum(), x)[0].tolist() == [60.0, 120.0]


def test_gradients_of_a_function_have_tangents() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(ng.tensor([1.0, 2.0], requires_grad=True), ng.ones(2))
        (gradient,) = ng.autograd.grad(Cube.apply(x).sum(), x)
        tangent = forward_ad.unpack_dual(gradient).tangent
    assert tangent.tolist() == [6.0, 12.0]


def test_an_argument_that_is_returned_keeps_its_own_tangent() -> None:
    with forward_ad.dual_level():
        given = ng.ones(2)
        x = forward_ad.make_dual(ng.ones(2), given)
        y = Same.apply(x)
        tangents = [forward_ad.unpack_dual(each).tangent for each in (x, y)]
    assert tangents[0] is given and tangents[1]._base is given


def test_the_tangent_of_an_argument_that_was_written_to_is_what_jvp_says() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(ng.ones(2), ng.ones(2))
        y = Doubled.apply(x)
        tangent = forward_ad.unpack_dual(x).tangent
    assert y is x
    assert x.tolist() == [2.0, 2.0]
    assert tangent.tolist() == [2.0, 2.0]


def test_a_function_without_jvp_refuses_tangents() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(ng.ones(2), ng.ones(2))
        with pytest.raises(NotImplementedError, match="You must implement the jvp function"):
            WithoutJvp.apply(x)
        assert WithoutJvp.apply(ng.ones(2)).tolist() == [2.0, 2.0]


def test_tangents_are_computed_without_calling_hooks_on_saved_tensors() -> None:
    packed: list[Any] = []

    def pack(tensor: Any) -> Any:
        packed.append(tensor)
        return tensor

    x = ng.tensor([1.0, 2.0], dtype=ng.float64)
    with forward_ad.dual_level(), saved_tensors_hooks(pack, lambda tensor: tensor):
        y = forward_ad.make_dual(x, ng.ones(2)).exp() * 3
        y = Cube.apply(y)
        tangent = forward_ad.unpack_dual(y).tangent
    assert packed == []
    np.testing.assert_allclose(tangent, 30 * 9 * np.exp(x.numpy()) ** 2 * 3 * np.exp(x.numpy()))


def test_gradients_of_dual_tensors_go_through_hooks_on_saved_tensors() -> None:
    unpacked = []

    def unpack(tensor: Any) -> Any:
        unpacked.append(tensor)
        return tensor

    x = ng.tensor([1.0, 2.0], requires_grad=True)
    with forward_ad.dual_level():
        with saved_tensors_hooks(lambda tensor: tensor, unpack):
            y = forward_ad.make_dual(x, ng.ones(2)) ** 3
        (gradient,) = ng.autograd.grad(y.sum(), x)
        tangent = forward_ad.unpack_dual(gradient).tangent
    assert unpacked
    assert tangent.tolist() == [6.0, 12.0]


@pytest.mark.parametrize("vectorize", [False, True])
def test_jacobians_go_through_hooks_on_saved_tensors(vectorize: bool) -> None:
    x = ng.tensor([0.5, 1.0, 2.0])
    with saved_tensors_hooks(lambda tensor: tensor * 2, lambda tensor: tensor / 2):
        found = ng.autograd.functional.jacobian(lambda x: x * x * 3, x, vectorize=vectorize)
    assert found.tolist() == np.diag([3.0, 6.0, 12.0]).tolist()


def test_batched_gradients_run_the_backward_pass_of_a_function_for_each() -> None:
    x = ng.tensor([1.0, 2.0], requires_grad=True)
    y = Cube.apply(x)
    (found,) = ng.autograd.grad(y, x, ng.eye(2), is_grads_batched=True)
    assert found.tolist() == [[3.0, 0.0], [0.0, 12.0]]


def test_anomaly_mode_names_the_function_that_gave_nan_and_where_it_was_called() -> None:
    x = ng.tensor([1.0], requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with ng.autograd.set_detect_anomaly(True):
            y = NanBackward.apply(x)  # the line
            with pytest.raises(RuntimeError, match="Function 'NanBackwardBackward' returned nan"):
                y.sum().backward()
    (told,) = [str(each.message) for each in caught if "Error detected" in str(each.message)]
    assert "NanBackward.apply(x)  # the line" in told


def test_anomaly_mode_knows_the_place_of_nodes_whose_operands_need_no_broadcast() -> None:
    x = ng.tensor([-1.0, 2.0], requires_grad=True)
    with ng.autograd.set_detect_anomaly(True):
        nodes = [(x * x).grad_fn, (x * 2).grad_fn, x.exp().grad_fn, (x + ng.ones(1)).grad_fn]
    for node in nodes:
        assert "nodes = [(x * x)" in "".join(node.metadata["traceback_"])


def test_anomaly_mode_names_the_write_to_a_tensor_that_a_function_saved() -> None:
    x = ng.tensor([1.0], requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with ng.autograd.set_detect_anomaly(True):
            y = x * 1
            z = Cube.apply(y)
            y.mul_(2)  # the write
            with pytest.raises(RuntimeError, match=r"y\.mul_\(2\)  # the write"):
                z.sum().backward()


def test_hooks_run_in_anomaly_mode() -> None:
    x = ng.tensor([1.0], requires_grad=True)
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with ng.autograd.set_detect_anomaly(True):
            y = x * 2
            y.register_hook(lambda gradient: gradient * 5)
            y.grad_fn.register_hook(lambda inputs, outputs: seen.append(outputs[0].item()))
            y.sum().backward()
    assert seen == [5.0]
    assert x.grad.tolist() == [10.0]


def test_writes_to_inference_tensors_are_refused_where_they_are_marked() -> None:
    with ng.inference_mode():
        x = ng.ones(2)
        assert Doubled.apply(x).tolist() == [2.0, 2.0]

    class Marks(ng.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x

    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        Marks.apply(x)


def test_functions_of_inference_tensors_run_but_do_not_save_them() -> None:
    with ng.inference_mode():
        x = ng.ones(2)
    assert Cube.apply(x).tolist() == [1.0, 1.0]

    class Product(ng.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            x, y = ctx.saved_tensors
            return grad * y, grad * x

    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        Product.apply(x, ng.ones(2, requires_grad=True))
