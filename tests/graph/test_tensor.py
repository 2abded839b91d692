"""Attributes of tensors, sharing of memory, and promotion."""

from __future__ import annotations

import gc
import itertools
import operator
from typing import Any

import numpy as np
import pytest

import numgrad as ng

DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


def leaf(lib: Any, *values: float) -> Any:
    return lib.tensor(list(values), requires_grad=True)


# Sizes and refused calls


@pytest.mark.parametrize(
    "expression",
    [
        *(f"Size([2, 3]) * {count}" for count in ("2", "0", "-1", "True", "2.5", "'a'")),
        *(f"{count} * Size([2, 3])" for count in ("2", "0", "1.5")),
        *(f"Size([1]) + {other}" for other in ("(2,)", "Size([2])", "[2]", "(2.5,)", "3")),
        *(f"{other} + Size([1])" for other in ("(2,)", "()", "[2]", "('a',)", "3")),
        *(f"Size([4, {length}])" for length in ("1.5", "'a'", "None", "True", "tensor(2)")),
        *(f"Size({lengths})" for lengths in ("", "3", "range(3)", "[tensor(2.0)]", "[[1]]")),
        *(f"ones(2).shape * {count}" for count in ("2", "1.0")),
    ],
)
def test_sizes_are_put_together_as_in_pytorch(torch: Any, expression: str) -> None:
    def outcome(of: Any) -> str:
        names = {"Size": of.Size, "tensor": of.tensor, "ones": of.ones}
        try:
            value = eval(expression, names)
        except TypeError as error:
            # What Python says itself of the operands of + and * depends on how a class is made.
            return str(error) if "torch.Size()" in str(error) else "TypeError"
        assert type(value) is of.Size and all(type(length) is int for length in value)
        return repr(value)

    assert outcome(ng) == outcome(torch)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("x.__delitem__(0)", "Tensor does not support deleting items"),
        *(
            (
                f"x.is_set_to({given})",
                f"is_set_to(): argument 'tensor' (position 1) must be Tensor, not {kind}",
            )
            for given, kind in (("3", "int"), ("None", "NoneType"), ("[]", "list"))
        ),
        *(
            (
                f"x.{name}({side}={given})",
                f"{name}() received an invalid combination of arguments - got (",
            )
            for name, side in (
                ("clamp", "min"),
                ("clamp", "max"),
                ("clamp_min", "min"),
                ("clamp_max", "max"),
            )
            for given in ("'a'", "[1]")
        ),
        *(
            (f"x.to({given})", "to() received an invalid combination of arguments - got (" + got)
            for given, got in (
                ("x, x", "Tensor, Tensor)"),
                ("x, 0", "Tensor, int)"),
                ("x, None", "Tensor, NoneType)"),
                ("x.dtype, x", "torch.dtype, Tensor)"),
                ("'cpu', x.dtype, 1", "str, torch.dtype, int)"),
                ("x, dtype=x.dtype", "Tensor"),
            )
        ),
    ],
)
def test_what_is_no_argument_is_named(lib: Any, call: str, words: str) -> None:
    with pytest.raises(TypeError) as error:
        eval(call, {"x": lib.ones(2)})
    assert str(error.value).startswith(words)


# Flags


def test_flags_of_leaves_and_results(lib: Any) -> None:
    constant, w = lib.ones(2), leaf(lib, 1.0, 2.0)
    result, of_constant = w * 2, constant * 2
    assert [t.requires_grad for t in (constant, w, result, of_constant)] == [0, 1, 1, 0]
    assert [t.is_leaf for t in (constant, w, result, of_constant)] == [1, 1, 0, 1]
    assert [t.output_nr for t in (constant, w, result)] == [0, 0, 0]
    assert w.grad_fn is None and result.grad_fn.name() == "MulBackward0"
    assert w._base is None and w[0]._base is w and w[0:1][0]._base is w


def test_output_nr_tells_the_outputs_of_one_node_apart(lib: Any) -> None:
    first, second = leaf(lib, 1.0, 2.0).unbind(0)
    assert (first.output_nr, second.output_nr) == (0, 1)
    assert first.grad_fn is second.grad_fn


def test_requires_grad_is_set_on_leaves_only(lib: Any) -> None:
    w = lib.ones(2)
    assert w.requires_grad_() is w and w.requires_grad
    w.requires_grad = False
    assert not w.requires_grad
    result = leaf(lib, 1.0) * 2
    assert result.requires_grad_() is result  # it does already
    with pytest.raises(RuntimeError) as error:
        result.requires_grad = True
    assert str(error.value) == "you can only change requires_grad flags of leaf variables."
    with pytest.raises(RuntimeError) as error:
        result.requires_grad = False
    assert str(error.value) == (
        "you can only change requires_grad flags of leaf variables. If you want to use a computed "
        "variable in a subgraph that doesn't require differentiation use var_no_grad = "
        "var.detach()."
    )
    with pytest.raises(RuntimeError, match="^requires_grad must be a bool$"):
        w.requires_grad = "yes"


@pytest.mark.parametrize("dtype", DTYPES)
def test_only_floating_point_and_complex_tensors_can_require_grad(lib: Any, dtype: str) -> None:
    tensor = lib.ones(2, dtype=getattr(lib, dtype))
    if dtype.startswith(("float", "complex")):
        assert tensor.requires_grad_().requires_grad
        return
    with pytest.raises(RuntimeError) as error:
        tensor.requires_grad = True
    assert str(error.value) == (
        "only Tensors of floating point and complex dtype can require gradients"
    )
    with pytest.raises(RuntimeError) as error:
        tensor.requires_grad_()
    assert str(error.value) == "only Tensors of floating point dtype can require gradients"
    tensor.requires_grad = False
    with pytest.raises(RuntimeError) as error:
        lib.tensor([1], dtype=tensor.dtype, requires_grad=True)
    assert str(error.value) == (
        "Only Tensors of floating point and complex dtype can require gradients"
    )


# .grad


def test_grad_of_a_non_leaf_warns_and_is_none(lib: Any) -> None:
    result = leaf(lib, 1.0) * 2
    with pytest.warns(UserWarning, match="that is not a leaf Tensor is being accessed"):
        assert result.grad is None
    result.retain_grad()
    assert result.grad is None and result.retains_grad


def test_what_can_be_assigned_to_grad(lib: Any) -> None:
    w, gradient = leaf(lib, 1.0, 2.0), lib.tensor([5.0, 6.0])
    w.grad = gradient
    assert w.grad is gradient
    (w * 3).sum().backward()
    assert w.grad is gradient and gradient.tolist() == [8.0, 9.0]
    w.grad = None
    assert w.grad is None
    w.grad = gradient
    del w.grad
    assert w.grad is None
    constant = lib.ones(2)
    constant.grad = gradient  # no need to require grad
    assert constant.grad is gradient


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (
            lambda lib, w: 3,
            TypeError,
            "assigned grad expected to be a Tensor or None but got grad of type int",
        ),
        (lambda lib, w: w, RuntimeError, "can't assign Variable as its own grad"),
        (
            lambda lib, w: lib.ones(3),
            RuntimeError,
            "attempting to assign a gradient of size '[3]' to a tensor of size '[2]'. Please "
            "ensure that the gradient and the tensor are the same size",
        ),
        (
            lambda lib, w: lib.ones(2, dtype=lib.float64),
            RuntimeError,
            "attempting to assign a gradient with dtype 'double' to a tensor with grad_dtype "
            "'Float'. The gradient must match the tensor's grad_dtype (defaults to the tensor's "
            "dtype). You can set the tensor's grad_dtype attribute with a specific dtype, or None "
            "to allow any dtype. Set grad_dtype with caution. Diverging the dtypes of a tensor and "
            "its gradient may break downstream systems that assume they match.",
        ),
    ],
)
def test_what_cannot_be_assigned_to_grad(lib: Any, make: Any, kind: Any, message: str) -> None:
    w = leaf(lib, 1.0, 2.0)
    with pytest.raises(kind) as error:
        w.grad = make(lib, w)
    assert str(error.value) == message and w.grad is None


# data, detach, versions


def test_data_shares_memory_but_neither_history_nor_version(lib: Any) -> None:
    w = leaf(lib, 1.0, 2.0)
    data = w.data
    data.add_(1)
    assert w.tolist() == [2.0, 3.0]
    assert (w._version, data._version, data.requires_grad, data._base) == (0, 1, False, None)
    w.data.copy_(lib.tensor([7.0, 8.0]))
    assert w.tolist() == [7.0, 8.0] and w.is_leaf and w.requires_grad


def test_setting_data_replaces_the_memory_and_keeps_the_rest(lib: Any) -> None:
    w, other = leaf(lib, 1.0), lib.ones(3)
    same = id(w)
    w.data = other
    other.add_(1)
    assert w.tolist() == [2.0, 2.0, 2.0] and id(w) == same
    assert w.requires_grad and w.is_leaf and w._version == 0
    with pytest.raises(TypeError, match="^Variable data has to be a tensor, but got int$"):
        w.data = 3
    with pytest.raises(RuntimeError) as error:
        w.data = lib.ones(2, dtype=lib.int64)
    assert str(error.value) == (
        "data set to a tensor that requires gradients must be floating point or complex dtype"
    )


def test_detach_shares_memory_and_version_but_no_history(lib: Any) -> None:
    w = leaf(lib, 1.0, 2.0)
    result = w * 2
    detached = result.detach()
    assert not detached.requires_grad and detached.grad_fn is None and detached._base is None
    detached.add_(1)
    assert result.tolist() == [3.0, 5.0]
    assert (result._version, detached._version) == (1, 1)
    assert result[0].detach()._base is None


def test_detach_in_place(lib: Any) -> None:
    result = leaf(lib, 1.0, 2.0) * 2
    assert result.detach_() is result and result.grad_fn is None and not result.requires_grad
    w = leaf(lib, 1.0)
    w.detach_()
    assert not w.requires_grad
    with pytest.raises(
        RuntimeError, match="^Can't detach views in-place. Use detach\\(\\) instead."
    ):
        (leaf(lib, 1.0, 2.0) * 1)[0].detach_()


def test_every_write_counts_once_and_views_count_together(lib: Any) -> None:
    base = lib.zeros(2, 3)
    view, deeper = base[0], base[0][1:]
    versions = []
    for write in (
        lambda: base.add_(1),
        lambda: view.mul_(2),
        lambda: deeper.zero_(),
        lambda: base.fill_(3),
        lambda: base.__setitem__(0, 5.0),
        lambda: base.t().copy_(lib.ones(3, 2)),
        lambda: base.detach().neg_(),
    ):
        write()
        versions.append((base._version, view._version, deeper._version))
    assert versions == [(n, n, n) for n in range(1, 8)]
    assert (base * 2)._version == base.clone()._version == 0


# NumPy


def test_from_numpy_and_numpy_share_memory(lib: Any) -> None:
    array = np.arange(6.0).reshape(2, 3)
    tensor = lib.from_numpy(array)
    array[0, 0] = 7
    tensor[1, 2] = 9
    assert tensor[0, 0].item() == 7 and array[1, 2] == 9
    back = tensor.t().numpy()
    back[0, 1] = -1
    assert array[1, 0] == -1 and np.shares_memory(back, array)
    assert lib.tensor(array).numpy() is not array
    assert not np.shares_memory(lib.tensor(array).numpy(), array)


def test_numpy_of_a_tensor_that_requires_grad_is_refused(lib: Any) -> None:
    w = leaf(lib, 1.0, 2.0)
    for tensor in (w, w * 2, w[0]):
        with pytest.raises(RuntimeError) as error:
            tensor.numpy()
        assert str(error.value) == (
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
        )
    array = w.detach().numpy()
    array[0] = 5
    assert w[0].item() == 5


def test_the_memory_outlives_the_tensor_it_came_from() -> None:
    view = ng.ones(3)[1:]
    array = (ng.ones(4) * 3).numpy()
    gc.collect()
    assert view.tolist() == [1.0, 1.0] and array.tolist() == [3.0] * 4


# Promotion


def operands(lib: Any, dtype: str) -> dict[str, Any]:
    """Return what a dtype can come as: a tensor with dims, one without."""
    kind = getattr(lib, dtype)
    return {"1-d": lib.ones(2, dtype=kind), "0-d": lib.ones((), dtype=kind)}


NUMBERS = {"bool": True, "int": 2, "float": 2.5, "complex": 1 + 2j}


@pytest.mark.parametrize("default", ["float32", "float64"])
def test_promotion_of_every_pair_is_pytorchs(torch: Any, default: str) -> None:
    """Multiply every dtype with every dtype, as tensors of 1 and 0 dims and as Python numbers."""
    found: dict[Any, list[str]] = {}
    for lib in (ng, torch):
        lib.set_default_dtype(getattr(lib, default))
        try:
            for left, right in itertools.product(DTYPES, DTYPES):
                for (a, x), (b, y) in itertools.product(
                    operands(lib, left).items(), operands(lib, right).items()
                ):
                    found.setdefault((left, a, right, b), []).append(outcome(operator.mul, x, y))
            for left in DTYPES:
                for (a, x), (name, number) in itertools.product(
                    operands(lib, left).items(), NUMBERS.items()
                ):
                    found.setdefault((left, a, name), []).append(outcome(operator.mul, x, number))
                    found.setdefault((name, left, a), []).append(outcome(operator.mul, number, x))
                    found.setdefault(("div", left, a, name), []).append(
                        outcome(operator.truediv, x, number)
                    )
        finally:
            lib.set_default_dtype(lib.float32)
    assert len(found) == 13 * 13 * 4 + 13 * 2 * 4 * 3
    assert {key: pair for key, pair in found.items() if pair[0] != pair[1]} == {}


def outcome(operation: Any, left: Any, right: Any) -> str:
    """Return the dtype of a result, or the words of the error."""
    try:
        return str(operation(left, right).dtype)
    except (RuntimeError, TypeError) as error:
        return f"{type(error).__name__}: {error}"


def test_python_numbers_and_tensors_without_dims_are_weak(lib: Any) -> None:
    vector = lib.ones(2, dtype=lib.float32)
    wide = lib.ones((), dtype=lib.float64)
    integers = lib.ones(2, dtype=lib.uint8)
    assert (vector * wide).dtype == lib.float32
    assert (vector * 2.5).dtype == lib.float32
    assert (integers * 2).dtype == lib.uint8
    assert (integers * 2.5).dtype == lib.float32
    assert (integers * wide).dtype == lib.float64
    assert (lib.ones(1, dtype=lib.float64) * vector).dtype == lib.float64
    assert (vector * 1j).dtype == lib.complex64
    assert (lib.ones(2, dtype=lib.bool) * 3).dtype == lib.int64


def test_gradients_have_the_dtype_of_their_tensor(lib: Any) -> None:
    single = lib.tensor([1.0, 2.0], dtype=lib.float32, requires_grad=True)
    double = lib.tensor([3.0, 4.0], dtype=lib.float64, requires_grad=True)
    scalar = lib.tensor(5.0, dtype=lib.float64, requires_grad=True)
    (single * double + single * scalar).sum().backward()
    assert single.grad.dtype == lib.float32 and single.grad.tolist() == [8.0, 9.0]
    assert double.grad.dtype == lib.float64 and double.grad.tolist() == [1.0, 2.0]
    assert scalar.grad.dtype == lib.float64 and scalar.grad.tolist() == 3.0


def test_a_real_tensor_in_a_complex_product_gets_a_real_gradient(lib: Any) -> None:
    real = leaf(lib, 1.0, 2.0)
    product = real * lib.tensor([1 + 2j, 3 - 1j])
    lib.view_as_real(product * product.conj())[:, 0].sum().backward()
    assert real.grad.dtype == lib.float32
    assert real.grad.tolist() == pytest.approx([10.0, 40.0])
