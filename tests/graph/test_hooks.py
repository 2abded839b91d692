"""Hooks on tensors, and gradients retained by tensors that are not leaves."""

from __future__ import annotations

from typing import Any

import pytest

import numgrad as ng


def leaf(lib: Any, *values: float) -> Any:
    return lib.tensor(list(values), requires_grad=True)


def test_hooks_run_in_order_and_may_replace_the_gradient(lib: Any) -> None:
    w, seen = leaf(lib, 1.0, 2.0), []
    y = w * 3
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: seen.append(g.tolist()))
    w.register_hook(lambda g: g + 1)
    y.sum().backward()
    assert seen == [[1.0, 1.0], [10.0, 10.0]] and w.grad.tolist() == [31.0, 31.0]


def test_a_hook_on_a_leaf_runs_once_for_each_pass_before_the_sum(lib: Any) -> None:
    w, seen = leaf(lib, 1.0), []
    y = w * 2 + w * 3
    w.register_hook(lambda g: seen.append(g.item()))
    y.backward(retain_graph=True)
    y.backward()
    assert seen == [5.0, 5.0] and w.grad.item() == 10.0


def test_hooks_run_for_grad_too(lib: Any) -> None:
    """What is asked for is taken after the hooks where the pass ends, before them on the way."""
    w, seen = leaf(lib, 1.0, 2.0), []
    y = w * 2
    w.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: g * 100)
    w.register_post_accumulate_grad_hook(lambda p: seen.append(p))
    gradients = lib.autograd.grad(y.sum(), [w, y], retain_graph=True)
    assert [g.tolist() for g in gradients] == [[2000.0, 2000.0], [1.0, 1.0]]
    (gradient,) = lib.autograd.grad(y.sum(), y)
    assert gradient.tolist() == [100.0, 100.0]
    assert w.grad is None and seen == []


def test_a_hook_registered_before_and_after_the_graph_was_built(lib: Any) -> None:
    w, seen = leaf(lib, 1.0), []
    w.register_hook(lambda g: seen.append("before"))
    y = w * 2
    w.register_hook(lambda g: seen.append("after"))
    y.backward()
    assert seen == ["before", "after"]


def test_a_handle_removes_its_hook_once_and_for_all(lib: Any) -> None:
    w, seen = leaf(lib, 1.0), []
    y = w * 2
    first = y.register_hook(lambda g: seen.append("first"))
    y.register_hook(lambda g: seen.append("second"))
    with w.register_hook(lambda g: seen.append("block")):
        y.backward(retain_graph=True)
    first.remove()
    first.remove()
    y.backward()
    assert seen == ["first", "second", "block", "second"]


def test_a_hook_may_register_and_remove_hooks(lib: Any) -> None:
    w, seen = leaf(lib, 1.0), []
    y = w * 2
    handles = []

    def once(gradient: Any) -> None:
        seen.append("once")
        handles[0].remove()
        y.register_hook(lambda g: seen.append("later"))

    handles.append(y.register_hook(once))
    y.backward(retain_graph=True)
    y.backward()
    assert seen.count("once") == 1 and seen[-1] == "later"


def test_hooks_see_a_graph_only_under_create_graph(lib: Any) -> None:
    w, seen = leaf(lib, 2.0), []
    y = w * w
    y.register_hook(lambda g: seen.append((g.requires_grad, lib.is_grad_enabled())))
    w.register_hook(lambda g: seen.append((g.requires_grad, lib.is_grad_enabled())))
    lib.autograd.grad(y, w, retain_graph=True)
    lib.autograd.grad(y, w, create_graph=True)
    assert seen == [(False, False), (False, False), (False, True), (True, True)]


def test_a_replacement_is_differentiated_under_create_graph(lib: Any) -> None:
    w = lib.tensor(2.0, dtype=lib.float64, requires_grad=True)
    y = w * w
    y.register_hook(lambda g: g * w)
    (first,) = lib.autograd.grad(y, w, create_graph=True)
    (second,) = lib.autograd.grad(first, w)
    assert first.item() == 8.0 and second.item() == 8.0  # of 2 w * w


def test_writing_to_the_gradient_in_a_hook_reaches_nothing_else(lib: Any) -> None:
    x, y = leaf(lib, 1.0), leaf(lib, 1.0)
    total, given = x + y, lib.ones(1)
    kept = []
    x.register_hook(lambda g: kept.append(g.clone().zero_()))
    total.backward(given)
    assert given.item() == 1.0 and y.grad.item() == 1.0 and kept[0].item() == 0.0


@pytest.mark.parametrize("on_leaf", [True, False])
@pytest.mark.parametrize(
    ("result", "kind", "message"),
    [
        (lambda lib, g: 3, TypeError, "expected Variable, but hook returned 'int'"),
        (lambda lib, g: lib.ones(3), RuntimeError, "hook 'hook' has changed the size of value"),
        (
            lambda lib, g: g.double(),
            RuntimeError,
            "hook 'hook' has changed the type of value (was torch.FloatTensor got "
            "torch.DoubleTensor)",
        ),
    ],
)
def test_what_a_hook_may_not_return(
    lib: Any, on_leaf: bool, result: Any, kind: Any, message: str
) -> None:
    w = leaf(lib, 1.0, 2.0)
    y = w * 2

    def hook(gradient: Any) -> Any:
        return result(lib, gradient)

    (w if on_leaf else y).register_hook(hook)
    with pytest.raises(kind) as error:
        y.sum().backward()
    assert str(error.value) == message and w.grad is None


def test_hooks_need_a_tensor_that_requires_grad(lib: Any) -> None:
    with pytest.raises(RuntimeError) as error:
        lib.ones(1).register_hook(print)
    assert str(error.value) == "cannot register a hook on a tensor that doesn't require gradient"
    with pytest.raises(RuntimeError) as error:
        (leaf(lib, 1.0) * 2).register_post_accumulate_grad_hook(print)
    assert str(error.value) == (
        "post accumulate grad hooks cannot be registered on non-leaf tensors"
    )


def test_a_post_accumulate_hook_gets_the_leaf_with_its_gradient(lib: Any) -> None:
    w, seen = leaf(lib, 1.0), []
    y = w * 2 + w * 3

    def step(parameter: Any) -> None:
        seen.append((parameter is w, parameter.grad.item()))
        parameter.grad = None

    handle = w.register_post_accumulate_grad_hook(step)
    y.backward(retain_graph=True)
    assert w.grad is None
    handle.remove()
    y.backward()
    assert seen == [(True, 5.0)] and w.grad.item() == 5.0


def test_retained_gradients_come_after_all_hooks(lib: Any) -> None:
    w = leaf(lib, 1.0, 2.0)
    y = w * 1
    y.retain_grad()
    y.register_hook(lambda g: g * 2)
    y.sum().backward()
    assert y.grad.tolist() == [2.0, 2.0] and w.grad.tolist() == [2.0, 2.0]


def test_a_gradient_is_retained_by_who_was_detached_and_written_to() -> None:
    """In PyTorch that ends in an internal error."""
    w = ng.tensor([3.0, 4.0], requires_grad=True)
    y = ng.ones(2, requires_grad=True) * 2
    y.retain_grad()
    y.detach_().mul_(w)
    (y * 5).sum().backward()
    assert y.grad is not None and y.grad.tolist() == [5, 5]
    assert w.grad is not None and w.grad.tolist() == [10, 10]


def test_retained_gradients_of_a_chain_add_up(lib: Any) -> None:
    w = leaf(lib, 1.0, 2.0)
    a = w * 2
    b = a * a
    for tensor in (w, a, b, a):
        tensor.retain_grad()
    assert [t.retains_grad for t in (w, a, b)] == [False, True, True]
    b.sum().backward(retain_graph=True)
    assert a.grad.tolist() == [4.0, 8.0] and b.grad.tolist() == [1.0, 1.0]
    b.sum().backward()
    assert a.grad.tolist() == [8.0, 16.0] and w.grad.tolist() == [16.0, 32.0]


def test_only_what_requires_grad_retains_it(lib: Any) -> None:
    with pytest.raises(RuntimeError) as error:
        lib.ones(1).retain_grad()
    assert str(error.value) == "can't retain_grad on Tensor that has requires_grad=False"


def test_a_retained_gradient_moves_with_the_tensor_and_a_hook_does_not(lib: Any) -> None:
    w, seen = leaf(lib, 1.0, 2.0), []
    y = w * 1
    y.retain_grad()
    y.register_hook(lambda g: seen.append(("before", g.tolist())))
    y.mul_(3)
    y.register_hook(lambda g: seen.append(("after", g.tolist())))
    y.sum().backward()
    assert y.retains_grad and y.grad.tolist() == [1.0, 1.0]
    assert seen == [("after", [1.0, 1.0]), ("before", [3.0, 3.0])]


def test_a_retained_gradient_moves_when_a_view_is_written_to(lib: Any) -> None:
    w = leaf(lib, 1.0, 2.0)
    y = w * 1
    view = y[1]
    y.retain_grad()
    view.mul_(3)
    (y * 5).sum().backward()
    assert y.grad.tolist() == [5.0, 5.0] and w.grad.tolist() == [5.0, 15.0]


def test_a_view_retains_its_gradient_after_a_write_to_its_base(lib: Any) -> None:
    w = leaf(lib, 1.0, 2.0)
    y = w * 1
    view = y[1]
    view.retain_grad()
    y.mul_(3)
    (view * 5).backward()
    assert view.grad.item() == 5.0 and w.grad.tolist() == [0.0, 15.0]


def test_a_retained_gradient_under_create_graph_can_be_differentiated(lib: Any) -> None:
    w = lib.tensor(2.0, dtype=lib.float64, requires_grad=True)
    y = w * 1
    y.retain_grad()
    lib.autograd.grad(y**3, w, create_graph=True)
    first = y.grad
    (second,) = lib.autograd.grad(first, w)
    assert first.item() == 12.0 and second.item() == 12.0


def test_hooks_of_each_of_several_outputs_change_their_own_gradient(lib: Any) -> None:
    for chosen in range(4):
        x = lib.arange(8.0).reshape(4, 2).requires_grad_()
        parts = x.unbind()
        parts[chosen].register_hook(lambda g: g * 10)
        sum((k + 1) * part.sum() for k, part in enumerate(parts)).backward()
        wanted = [[(k + 1.0) * (10 if k == chosen else 1)] * 2 for k in range(4)]
        assert x.grad.tolist() == wanted
