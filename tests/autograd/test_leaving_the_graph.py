"""What tensors are asked outside of the graph, and what old programs ask; the same in PyTorch."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from tests.autograd.function.functions import leaf


def variable(lib: Any) -> Any:
    return lib.autograd.Variable


def test_numpy_takes_tensors_that_require_grad_where_nothing_is_recorded(lib: Any) -> None:
    x = leaf(lib, 1.0, 2.0)
    with pytest.raises(RuntimeError, match="Can't call numpy\\(\\) on Tensor that requires grad"):
        x.numpy()
    with lib.no_grad():
        assert x.numpy().tolist() == [1.0, 2.0]
        assert np.asarray(x).tolist() == [1.0, 2.0]


def test_a_functions_forward_pass_may_call_numpy_on_its_arguments(lib: Any) -> None:
    class Exp(lib.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = lib.from_numpy(np.exp(x.numpy()))
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return lib.from_numpy(g.numpy() * ctx.saved_tensors[0].numpy())

    x = leaf(lib, 0.0, 1.0)
    Exp.apply(x).sum().backward()
    assert x.grad.tolist() == pytest.approx([1.0, np.e])


def test_a_function_that_writes_to_its_argument_with_numpy_is_noticed(lib: Any) -> None:
    class Increase(lib.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            array = x.numpy()
            array += 1
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    a = leaf(lib, 1.0).clone()
    square = a * a
    assert Increase.apply(a) is a
    assert a.tolist() == [2.0]
    with pytest.raises(RuntimeError, match="is at version 1; expected version 0 instead"):
        square.sum().backward()


def test_numbers_are_converted_without_warning_where_nothing_is_recorded(lib: Any) -> None:
    x = leaf(lib, 2.5)
    with lib.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert float(x) == 2.5


def test_programs_for_several_devices_find_tensors_on_the_cpu(lib: Any) -> None:
    x = leaf(lib, 1.0)
    assert x.is_cpu is True
    assert x.cpu() is x
    others = ("is_cuda", "is_meta", "is_mps", "is_quantized", "is_sparse", "is_xpu")
    assert [getattr(x, name) for name in others] == [False] * len(others)


def test_transposing_other_than_matrices_by_an_attribute_warns(lib: Any) -> None:
    lib.set_warn_always(True)  # PyTorch warns once in a process otherwise
    try:
        with pytest.warns(UserWarning, match="The use of `x.T` on tensors of dimension other than"):
            assert lib.ones(2, 3, 4).T.shape == (4, 3, 2)
        with pytest.warns(UserWarning, match="Tensor.T is deprecated on 0-D tensors"):
            assert lib.tensor(1.0).T.shape == ()
    finally:
        lib.set_warn_always(False)


def test_inverting_floats_is_refused(lib: Any) -> None:
    with pytest.raises(TypeError) as info:
        ~leaf(lib, 1.0)
    assert str(info.value) == (
        "~ (operator.invert) is only implemented on integer and Boolean-type tensors"
    )


def test_methods_errors_name_the_method(lib: Any) -> None:
    with pytest.raises(TypeError, match=r"^Tensor\.backward\(\) got an unexpected keyword"):
        leaf(lib, 1.0).backward(only_inputs=True)


def test_set_grad_enabled_prints_its_mode(lib: Any) -> None:
    with lib.set_grad_enabled(False) as nothing:
        assert nothing is None
    mode = lib.set_grad_enabled(True)
    assert repr(mode) == str(mode) == "torch.autograd.grad_mode.set_grad_enabled(mode=True)"


def test_a_variable_is_a_leaf_over_the_memory_of_a_tensor(lib: Any) -> None:
    x = lib.ones(2)
    v = variable(lib)(x, requires_grad=True)
    assert type(v) is lib.Tensor
    assert v.is_leaf and v.requires_grad and not x.requires_grad
    with lib.no_grad():
        v.add_(1)
    assert x.tolist() == [2.0, 2.0]
    assert not variable(lib)(v * 2).requires_grad
    assert variable(lib)().shape == (0,)


def test_tensors_are_instances_of_variable(lib: Any) -> None:
    assert isinstance(lib.ones(2), variable(lib))
    assert not isinstance(3.0, variable(lib))


def test_what_is_wrong_with_a_variable_is_said(lib: Any) -> None:
    with pytest.raises(TypeError, match="^Variable data has to be a tensor, but got int$"):
        variable(lib)(3)
    with pytest.warns(UserWarning, match="^volatile was removed and now has no effect"):
        variable(lib)(lib.ones(2), volatile=True)
    with (
        pytest.warns(UserWarning, match="^volatile was removed"),
        pytest.raises(ValueError, match="volatile and require_grad at the same time!"),
    ):
        variable(lib)(lib.ones(2), True, True)


def test_increment_version_passes_over_inference_tensors(lib: Any) -> None:
    with lib.inference_mode():
        x = lib.ones(2)
    y = lib.ones(2)
    lib.autograd.graph.increment_version([x, y])
    assert x.is_inference()
    assert y._version == 1


def test_a_leaf_that_a_hook_packed_is_unpacked_as_a_leaf(lib: Any) -> None:
    x = leaf(lib, 2.0, 3.0)
    with lib.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), lib.tensor):
        y = x * x
    saved = y.grad_fn._saved_self
    assert saved.is_leaf and saved.requires_grad and saved.grad_fn is None
    assert repr(saved) == "tensor([2., 3.], requires_grad=True)"
    (slope,) = lib.autograd.grad((y * saved.double()).sum(), x)
    assert slope.tolist() == [12.0, 27.0]


def test_what_is_no_tensor_is_not_differentiated(lib: Any) -> None:
    x = leaf(lib, 1.0)
    for outputs in ([x.sum(), 3], [3]):
        with pytest.raises(AssertionError, match="^Expected output to be a torch.Tensor$"):
            lib.autograd.grad(outputs, x)


@pytest.mark.parametrize("value", [None, 1, "no"])
def test_whether_gradients_are_materialized_is_a_bool(lib: Any, value: Any) -> None:
    class Double(lib.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(value)
            return x * 2

    with pytest.raises(TypeError, match="set_materialize_grads received an invalid combination"):
        Double.apply(leaf(lib, 1.0))


def test_a_detached_view_is_refused_with_every_word(lib: Any) -> None:
    with pytest.raises(RuntimeError, match="optimizer.py as the solution.$"):
        lib.ones(3)[:2].detach_()
