"""Custom Functions: contexts, outputs, gradients; the same here as in PyTorch."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from tests.autograd.function.functions import function, leaf, square


def test_a_function_computes_and_differentiates(lib: Any) -> None:
    x = leaf(lib, 1.0, -3.0)
    y = square(lib).apply(x)
    assert y.tolist() == [1.0, 9.0] and y.requires_grad and not y.is_leaf
    y.sum().backward()
    assert x.grad.tolist() == [2.0, -6.0]


def test_the_node_has_the_functions_name_and_the_contexts_attributes(lib: Any) -> None:
    x = leaf(lib, 1.0)

    def forward(ctx: Any, a: Any, n: int) -> Any:
        ctx.targets, ctx.saved, ctx.sequence = "any", "name", "goes"
        return a * n

    y = function(lib, forward, lambda ctx, g: (g * len(ctx.targets), None)).apply(x * 1, 2)
    node = y.grad_fn
    assert node.name() == type(node).__name__ == "FnBackward"
    assert repr(node).startswith("<torch.autograd.function.FnBackward object at 0x")
    assert repr(y) == "tensor([2.], dtype=torch.float64, grad_fn=<FnBackward>)"
    assert node.needs_input_grad == (True, False) and node.saved_tensors == ()
    assert [(n.name(), k) for n, k in node.next_functions] == [("MulBackward0", 0)]
    assert node.to_save is None and node.metadata == {}
    y.backward()
    assert x.grad.tolist() == [3.0]


def test_forward_runs_without_recording_and_knows_what_needs_a_gradient(lib: Any) -> None:
    seen = []

    def forward(ctx: Any, a: Any, b: Any, n: int) -> Any:
        seen.append((ctx.needs_input_grad, lib.is_grad_enabled(), ctx.saved_tensors))
        return a * b * n

    f = function(lib, forward, lambda ctx, g: (g, g, None))
    x, y = leaf(lib, 1.0), lib.ones(1, dtype=lib.float64)
    assert f.apply(x, y, 3).requires_grad
    with lib.no_grad():
        assert not f.apply(x, y, 3).requires_grad
    assert not f.apply(y, y, 3).requires_grad
    assert seen == [
        ((True, False, False), False, ()),
        ((True, False, False), False, ()),
        ((False, False, False), False, ()),
    ]


def test_setup_context_gets_all_arguments_and_the_output(lib: Any) -> None:
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.n = inputs[1]
        ctx.seen = (len(inputs), output.tolist())

    f = function(
        lib,
        lambda x, n=3: x * n,
        lambda ctx, g: (g * ctx.n, None),
        setup_context=staticmethod(setup_context),
    )
    x = leaf(lib, 1.0)
    first, second = f.apply(x), f.apply(x, n=4)
    assert first.grad_fn.seen == (2, [3.0]) and second.grad_fn.seen == (2, [4.0])
    (first + second).sum().backward()
    assert x.grad.tolist() == [7.0]


def test_vjp_is_another_name_for_backward(lib: Any) -> None:
    x = leaf(lib, 1.0)
    f = function(lib, lambda ctx, a: a * 2, vjp=staticmethod(lambda ctx, g: g * 7))
    f.apply(x).backward()
    assert x.grad.tolist() == [7.0]


def test_saved_tensors_are_the_tensors_themselves(lib: Any) -> None:
    x = leaf(lib, 1.0)
    z = x * 1
    other = lib.ones(1)

    def forward(ctx: Any, a: Any, b: Any) -> Any:
        y = a * b
        ctx.save_for_backward(a, None, b, y, other)
        return y

    y = function(lib, forward, lambda ctx, g: (g, g)).apply(x, z)
    saved = y.grad_fn.saved_tensors
    assert saved[0] is x and saved[1] is None and saved[2] is z and saved[4] is other
    assert saved[3] is not y and saved[3].grad_fn is y.grad_fn and saved[3].tolist() == [1.0]


def test_saved_tensors_are_freed_by_the_backward_pass(lib: Any) -> None:
    x = leaf(lib, 1.0)
    y = square(lib).apply(x)
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4.0]
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()
    with pytest.raises(RuntimeError, match="directly access saved tensors after they have already"):
        _ = y.grad_fn.saved_tensors


def test_a_saved_tensor_that_was_written_to_raises(lib: Any) -> None:
    z = leaf(lib, 1.0) * 1
    y = square(lib).apply(z)
    z.add_(1)
    with pytest.raises(RuntimeError) as error:
        y.backward()
    assert "which is output 0 of Add, is at version 1; expected version 0" in str(error.value)


def test_saved_tensors_may_be_asked_for_once_only(lib: Any) -> None:
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        with pytest.raises(RuntimeError) as error:
            _ = ctx.saved_tensors
        assert str(error.value).startswith("saved_tensors can only be accessed once when clear_")
        return g * x

    f = function(
        lib,
        lambda ctx, a: (ctx.save_for_backward(a), a * a)[1],
        backward,
        clear_saved_tensors_on_access=True,
    )
    x = leaf(lib, 3.0)
    f.apply(x).backward()
    assert x.grad.tolist() == [3.0]


def test_gradients_may_come_in_one_list(lib: Any) -> None:
    x = leaf(lib, 3.0)
    f = function(lib, lambda ctx, a: (a * 1, a * 2), boxed_grads_call=True)
    f.backward = staticmethod(lambda ctx, grads: grads.pop() * 5)
    f.apply(x)[1].backward()
    assert x.grad.tolist() == [5.0]


def test_outputs_may_be_anything(lib: Any) -> None:
    x, seen = leaf(lib, 1.0, 2.0), []

    def backward(ctx: Any, *grads: Any) -> Any:
        seen.append([None if g is None else g.tolist() for g in grads])
        return grads[0]

    def forward(ctx: Any, a: Any) -> Any:
        order = a.argsort()
        fixed = a * 3
        ctx.mark_non_differentiable(fixed)
        return a * 2, 3, None, "text", order, fixed

    outputs = function(lib, forward, backward).apply(x)
    assert [type(o).__name__ for o in outputs[1:4]] == ["int", "NoneType", "str"]
    assert [o.requires_grad for o in (outputs[0], *outputs[4:])] == [True, False, False]
    outputs[0].sum().backward()
    assert seen == [[[1.0, 1.0], None, None, None, [0, 0], [0.0, 0.0]]]


def test_a_list_is_handed_through_without_history(lib: Any) -> None:
    x = leaf(lib, 1.0)
    result = function(lib, lambda ctx, a: [a * 2], lambda ctx, g: g).apply(x)
    assert isinstance(result, list) and not result[0].requires_grad
    assert function(lib, lambda ctx, a: None, lambda ctx, g: g).apply(x) is None
    (single,) = function(lib, lambda ctx, a: (a * 2,), lambda ctx, g: g).apply(x)
    assert single.requires_grad


@pytest.mark.parametrize("materialize", [True, False])
def test_missing_gradients_are_zeros_or_none(lib: Any, materialize: bool) -> None:
    x, seen = leaf(lib, 1.0), []

    def forward(ctx: Any, a: Any) -> Any:
        ctx.set_materialize_grads(materialize)
        return a * 2, a * 3

    def backward(ctx: Any, g: Any, h: Any) -> Any:
        seen.append(None if g is None else g.tolist())
        return h

    function(lib, forward, backward).apply(x)[1].backward()
    assert seen == [[0.0] if materialize else None]


@pytest.mark.parametrize("used", [(0,), (2,), (0, 2)])
@pytest.mark.parametrize("materialize", [True, False])
@pytest.mark.parametrize("kind", ["marked", "integers", "bools"])
def test_outputs_that_are_not_differentiable_have_no_gradient(
    lib: Any, kind: str, materialize: bool, used: tuple[int, ...]
) -> None:
    x, seen = leaf(lib, 1.0, 2.0), []

    def forward(ctx: Any, a: Any) -> Any:
        ctx.set_materialize_grads(materialize)
        other = {"marked": a * 3, "integers": lib.tensor([1, 2]), "bools": a > 1}[kind]
        if kind == "marked":
            ctx.mark_non_differentiable(other)
        return a * 2, other, a * 4

    def backward(ctx: Any, *gradients: Any) -> Any:
        for gradient in gradients:
            seen.append(None if gradient is None else (gradient.dtype, gradient.tolist()))
        return sum(g for g in (gradients[0], gradients[2]) if g is not None)

    outputs = function(lib, forward, backward).apply(x)
    assert [y.requires_grad for y in outputs] == [True, False, True]
    assert outputs[1].grad_fn is None and outputs[2].output_nr == 2
    sum(outputs[i].sum() for i in used).backward()
    dtypes = [x.dtype, outputs[1].dtype, x.dtype]
    zeros = [(dtype, [0, 0]) if materialize else None for dtype in dtypes]
    expected = [(dtypes[i], [1.0, 1.0]) if i in used else zeros[i] for i in range(3)]
    assert seen == expected
    assert x.grad.tolist() == [float(len(used))] * 2


def test_gradients_are_fitted_to_the_inputs(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0], requires_grad=True)

    def gradient(rule: Any) -> Any:
        x.grad = None
        function(lib, lambda ctx, a: a * 2, rule).apply(x).sum().backward()
        return x.grad

    summed = gradient(lambda ctx, g: lib.ones(3, 2))
    assert summed.tolist() == [3.0, 3.0]
    for cast in (lambda ctx, g: g.double(), lambda ctx, g: g.long(), lambda ctx, g: (g, None)):
        found = gradient(cast)
        assert found.dtype is lib.float32 and found.tolist() == [1.0, 1.0]


def test_a_gradient_of_none_is_no_gradient(lib: Any) -> None:
    x, y = leaf(lib, 1.0), leaf(lib, 2.0)
    function(lib, lambda ctx, a, b: a * b, lambda ctx, g: (None, g)).apply(x, y).backward()
    assert x.grad is None and y.grad.tolist() == [1.0]


def test_the_gradient_a_user_keeps_is_not_written_to(lib: Any) -> None:
    x, kept = leaf(lib, 1.0), []
    f = function(lib, lambda ctx, a: a * 2, lambda ctx, g: (kept.append(g * 1), kept[-1])[1])
    y = f.apply(x)
    (y + x * 3).backward(retain_graph=True)
    y.backward()
    assert [k.tolist() for k in kept] == [[1.0], [1.0]] and x.grad.tolist() == [5.0]


def test_second_derivatives_go_through_inputs_and_outputs(lib: Any) -> None:
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        y = (a * b).exp()
        ctx.save_for_backward(a, b, y)
        return y

    def backward(ctx: Any, g: Any) -> Any:
        a, b, y = ctx.saved_tensors
        return g * y * b, g * y * a

    f = function(lib, forward, backward)
    inputs = (leaf(lib, 0.3, -0.7), leaf(lib, 1.1, 0.4))
    assert lib.autograd.gradcheck(f.apply, inputs)
    assert lib.autograd.gradgradcheck(f.apply, inputs)


def test_once_differentiable_runs_without_recording_and_raises_the_second_time(lib: Any) -> None:
    seen = []

    def backward(ctx: Any, g: Any) -> Any:
        seen.append(lib.is_grad_enabled())
        return 2 * g * ctx.saved_tensors[0]

    f = function(
        lib,
        lambda ctx, a: (ctx.save_for_backward(a), a * a)[1],
        lib.autograd.function.once_differentiable(backward),
    )
    x, w = leaf(lib, 3.0), leaf(lib, 1.0)
    (constant,) = lib.autograd.grad(f.apply(x), x, create_graph=True)
    assert not constant.requires_grad
    (gradient,) = lib.autograd.grad(f.apply(x), x, w, create_graph=True)
    assert gradient.grad_fn.name() == "torch::autograd::Error" and gradient.tolist() == [6.0]
    assert repr(gradient) == "tensor([6.], dtype=torch.float64, grad_fn=<Error>)"
    with pytest.raises(RuntimeError) as error:
        gradient.backward()
    assert str(error.value) == (
        "trying to differentiate twice a function that was marked with @once_differentiable"
    )
    assert seen == [False, False]


def test_functions_nest(lib: Any) -> None:
    f = square(lib)

    def forward(ctx: Any, a: Any) -> Any:
        ctx.save_for_backward(a)
        return f.apply(a)

    def backward(ctx: Any, g: Any) -> Any:
        (a,) = ctx.saved_tensors
        with lib.enable_grad():
            b = a.detach().requires_grad_()
            return lib.autograd.grad(f.apply(b), b, g)[0]

    x = leaf(lib, 3.0)
    function(lib, forward, backward).apply(x).backward()
    assert x.grad.tolist() == [6.0]


def test_an_error_in_the_backward_pass_leaves_everything_usable(lib: Any) -> None:
    x, fail = leaf(lib, 3.0), [True]

    def backward(ctx: Any, g: Any) -> Any:
        if fail[0]:
            raise KeyError("mine")
        return g

    y = function(lib, lambda ctx, a: a * 1, backward).apply(x)
    with pytest.raises(KeyError, match="mine"):
        y.backward()
    assert lib.is_grad_enabled() and x.grad is None
    fail[0] = False
    y.backward()
    assert x.grad.tolist() == [1.0]

    def broken(ctx: Any, a: Any) -> Any:
        raise KeyError("forward")

    with pytest.raises(KeyError, match="forward"):
        function(lib, broken).apply(x)
    assert lib.is_grad_enabled()


def test_old_kinds_of_functions_can_be_made(lib: Any) -> None:
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        made = lib.autograd.function.InplaceFunction(inplace=True)
    assert made.inplace


def test_vmap_attributes_are_accepted(lib: Any) -> None:
    f = function(
        lib,
        lambda ctx, a: a * 2,
        lambda ctx, g: g * 2,
        vmap=staticmethod(lambda info, in_dims, a: (a * 2, in_dims[0])),
    )
    f.generate_vmap_rule = True
    x = leaf(lib, 1.0)
    f.apply(x).backward()
    assert x.grad.tolist() == [2.0] and not lib.autograd.Function.generate_vmap_rule


def test_complex_functions(lib: Any) -> None:
    f = square(lib)
    f.backward = staticmethod(lambda ctx, g: 2 * g * ctx.saved_tensors[0].conj())
    z = lib.tensor([1.0 + 2.0j], dtype=lib.complex128, requires_grad=True)
    assert lib.autograd.gradcheck(f.apply, z)


@pytest.mark.parametrize("backward_first", [True, False])
def test_saving_an_output_makes_no_cycle(backward_first: bool) -> None:
    def forward(ctx: Any, a: Any) -> Any:
        y = a.exp()
        ctx.save_for_backward(a, y)
        return y

    f = function(ng, forward, lambda ctx, g: g * ctx.saved_tensors[1])
    x = leaf(ng, 1.0)
    gc.collect()
    gc.disable()
    try:
        y = f.apply(x * 1)
        node = weakref.ref(y.grad_fn)
        context = weakref.ref(y.grad_fn.ctx)
        if backward_first:
            y.backward()
        del y
        assert node() is None and context() is None
    finally:
        gc.enable()


def test_a_kernel_of_the_users_own() -> None:
    numba = pytest.importorskip("numba")

    @numba.njit
    def power_sum(x: Any, n: int) -> Any:
        total, slope = np.zeros_like(x), np.zeros_like(x)
        for k in range(n):
            total += x**k
            slope += k * x ** (k - 1.0)
        return total, slope

    def forward(ctx: Any, x: Any, n: int) -> Any:
        total, slope = power_sum(x.detach().numpy(), n)
        ctx.save_for_backward(ng.from_numpy(slope))
        return ng.from_numpy(total)

    f = function(ng, forward, lambda ctx, g: (g * ctx.saved_tensors[0], None))
    x = leaf(ng, 0.5, -1.5)
    assert ng.autograd.gradcheck(lambda x: f.apply(x, 5), x)
