"""Hooks on nodes, and on several tensors at once; the same here as in PyTorch."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import numgrad as ng


def leaf(lib: Any, *values: float) -> Any:
    return lib.tensor(list(values), requires_grad=True)


def lists(gradients: Any) -> Any:
    return tuple(None if g is None else g.tolist() for g in gradients)


def test_hooks_run_around_their_node_in_order(lib: Any) -> None:
    x, y, seen = leaf(lib, 1.0, 2.0), leaf(lib, 3.0, 4.0), []
    z = x * y
    node = z.grad_fn
    after = node.register_hook(lambda gi, go: seen.append(("after", lists(gi), lists(go))))
    before = node.register_prehook(lambda go: seen.append(("before", lists(go))))
    z.register_hook(lambda g: seen.append(("tensor", g.tolist())))
    z.sum().backward(retain_graph=True)
    assert seen == [
        ("tensor", [1.0, 1.0]),
        ("before", ([1.0, 1.0],)),
        ("after", ([3.0, 4.0], [1.0, 2.0]), ([1.0, 1.0],)),
    ]
    before.remove()
    after.remove()
    z.sum().backward()
    assert len(seen) == 4


@pytest.mark.parametrize("create_graph", [False, True])
def test_hooks_replace_gradients(lib: Any, create_graph: bool) -> None:
    x, y = leaf(lib, 1.0, 2.0), leaf(lib, 3.0, 4.0)
    z = x * y
    z.grad_fn.register_prehook(lambda go: (go[0] * 10,))
    z.grad_fn.register_hook(lambda gi, go: (gi[0] + go[0], None))
    z.grad_fn.register_hook(lambda gi, go: (gi[0] * 2, None))
    found, nothing = lib.autograd.grad(
        z.sum(), [x, y], create_graph=create_graph, allow_unused=True
    )
    assert found.tolist() == [80.0, 100.0] and nothing is None


def test_a_prehook_may_take_a_gradient_away(lib: Any) -> None:
    x = leaf(lib, 1.0)
    z = x * 2
    z.grad_fn.register_prehook(lambda go: (None,))
    z.backward()
    assert x.grad is None


@pytest.mark.parametrize(
    ("result", "kind", "message"),
    [
        (lambda g: [g, g], TypeError, "expected tuple, but hook returned 'list'"),
        (lambda g: g, TypeError, "expected tuple, but hook returned 'Tensor'"),
        (
            lambda g: (g, g, g),
            RuntimeError,
            "hook 'hook' has returned an incorrect number of values (got 3, but expected {})",
        ),
        (
            lambda g: (),
            RuntimeError,
            "hook 'hook' has returned an incorrect number of values (got 0, but expected {})",
        ),
        (lambda g: (3,), TypeError, "expected Variable, but hook returned 'int'"),
        (lambda g: (g.sum(),), RuntimeError, "hook 'hook' has changed the size of value"),
        (
            lambda g: (g.double(),),
            RuntimeError,
            "hook 'hook' has changed the type of value (was torch.FloatTensor got "
            "torch.DoubleTensor)",
        ),
    ],
)
@pytest.mark.parametrize("before", [True, False])
def test_what_hooks_may_not_return(
    lib: Any, result: Any, kind: Any, message: str, before: bool
) -> None:
    x = leaf(lib, 1.0, 2.0)
    z = x.exp()

    def hook(gradients: Any, *_: Any) -> Any:
        return result(gradients[0])

    if before:
        z.grad_fn.register_prehook(hook)
    else:
        z.grad_fn.register_hook(hook)
    with pytest.raises(kind) as error:
        z.sum().backward()
    assert str(error.value) == message.format(1) and x.grad is None


def test_hooks_of_a_leafs_node(lib: Any) -> None:
    x, seen = leaf(lib, 1.0, 2.0), []
    w = x * 2
    node = w.grad_fn.next_functions[0][0]
    node.register_hook(lambda gi, go: seen.append(("after", gi, lists(go), x.grad.tolist())))
    node.register_prehook(lambda go: seen.append(("before", lists(go), x.grad)))
    x.register_hook(lambda g: seen.append("tensor"))
    x.register_post_accumulate_grad_hook(lambda t: seen.append("accumulated"))
    w.sum().backward(retain_graph=True)
    assert seen == [
        "tensor",
        ("before", ([2.0, 2.0],), None),
        "accumulated",
        ("after", (), ([2.0, 2.0],), [2.0, 2.0]),
    ]
    seen.clear()
    lib.autograd.grad(w.sum(), x, retain_graph=True)
    assert seen == ["tensor"]
    seen.clear()
    w.sum().backward(inputs=[x])
    assert len(seen) == 4


def test_hooks_run_only_where_the_node_does(lib: Any) -> None:
    x, y, seen = leaf(lib, 1.0), leaf(lib, 2.0), []
    z = x * y
    z.grad_fn.register_prehook(lambda go: seen.append("before"))
    z.grad_fn.register_hook(lambda gi, go: seen.append("after"))
    z.register_hook(lambda g: seen.append("tensor"))
    lib.autograd.grad(z.sum(), z, retain_graph=True)
    assert seen == ["tensor"]
    seen.clear()
    lib.autograd.grad(z.sum(), [z, y])
    assert seen == ["tensor", "before", "after"]


def test_outputs_without_gradient_are_none(lib: Any) -> None:
    x, seen = leaf(lib, 1.0, 2.0), []
    first, second = (x * 1).unbind()
    first.grad_fn.register_prehook(lambda go: seen.append(lists(go)))
    first.grad_fn.register_hook(lambda gi, go: seen.append((lists(gi), lists(go))))
    second.backward()
    assert seen == [(None, 1.0), (([0.0, 1.0],), (None, 1.0))]


def test_the_node_of_a_custom_function_has_hooks_too(lib: Any) -> None:
    class Double(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = leaf(lib, 1.0)
    y = Double.apply(x)
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * go[0] * 5,))
    y.backward(lib.tensor([3.0]))
    assert x.grad.tolist() == [90.0]


def test_gradients_that_a_hook_keeps_stay_as_they_are(lib: Any) -> None:
    x, kept = leaf(lib, 1.0), []
    y = x * 2
    y.grad_fn.register_prehook(lambda go: kept.append(go[0]))
    y.grad_fn.register_hook(lambda gi, go: kept.append(gi[0]))
    (y + x * 5 + x * 7).backward()
    assert lists(kept) == ([1.0], [2.0]) and x.grad.tolist() == [14.0]


def test_a_hook_that_raises_leaves_everything_usable(lib: Any) -> None:
    x, fail = leaf(lib, 1.0), [True]

    def hook(*_: Any) -> None:
        if fail[0]:
            raise KeyError("mine")

    for register in ("register_hook", "register_prehook"):
        y = x * 2
        getattr(y.grad_fn, register)(hook)
        fail[0] = True
        with pytest.raises(KeyError, match="mine"):
            y.backward(retain_graph=True)
        assert lib.is_grad_enabled() and x.grad is None
        fail[0] = False
        y.backward()
        assert x.grad.tolist() == [2.0]
        x.grad = None


def test_a_post_accumulate_hook_returns_nothing(lib: Any) -> None:
    x = leaf(lib, 1.0)
    x.register_post_accumulate_grad_hook(lambda t: 3)
    with pytest.raises(TypeError, match="^expected Variable, but hook returned 'int'$"):
        (x * 2).backward()
    x = leaf(lib, 1.0)
    x.register_post_accumulate_grad_hook(lambda t: t.grad)
    with pytest.raises(RuntimeError, match="^Tensor post accumulate grad hooks should return None"):
        (x * 2).backward()
    assert x.grad.tolist() == [2.0]  # it was added before


@pytest.mark.parametrize("asked", [("a",), ("b",), ("c",), ("a", "c"), ("a", "b")])
@pytest.mark.parametrize("accumulate", [False, True])
def test_hooks_see_the_gradients_that_somebody_asked_for(
    lib: Any, asked: tuple[str, ...], accumulate: bool
) -> None:
    a, b = leaf(lib, 2.0), leaf(lib, 3.0)
    c = a * b
    y = c * a
    tensors = {"a": a, "b": b, "c": c}
    seen = {}
    c.grad_fn.register_hook(lambda inputs, _: seen.update(c=[g is not None for g in inputs]))
    y.grad_fn.register_hook(lambda inputs, _: seen.update(y=[g is not None for g in inputs]))
    inputs = [tensors[name] for name in asked]
    if accumulate:
        y.backward(inputs=inputs)
    else:
        lib.autograd.grad(y, inputs)
    below = "a" in asked or "b" in asked
    expected = {"y": [below or "c" in asked, "a" in asked]}
    if below or accumulate:
        expected["c"] = ["a" in asked, "b" in asked]
    assert seen == expected


def test_a_hook_on_several_tensors_waits_for_all_that_take_part(lib: Any) -> None:
    a, b, seen = leaf(lib, 1.0), leaf(lib, 2.0), []
    c, d = a * b, a * b
    handle = lib.autograd.graph.register_multi_grad_hook(
        (a, b, c, d), lambda gs: seen.append(lists(gs))
    )
    c.sum().backward(retain_graph=True)
    c.sum().backward(inputs=(a,), retain_graph=True)
    (c + d).sum().backward(retain_graph=True)
    assert seen == [
        ([2.0], [1.0], [1.0], None),
        ([2.0], None, [1.0], None),
        ([4.0], [2.0], [1.0], [1.0]),
    ]
    handle.remove()
    c.sum().backward()
    assert len(seen) == 3


def test_a_hook_on_several_tensors_runs_for_grad_too() -> None:
    """PyTorch refuses leaves here."""
    a, b, seen = leaf(ng, 1.0), leaf(ng, 2.0), []
    c = a * b
    ng.autograd.graph.register_multi_grad_hook((a, b, c), lambda gs: seen.append(lists(gs)))
    ng.autograd.grad(c, b)
    assert seen == [(None, [1.0], [1.0])]


def test_a_hook_on_several_tensors_may_take_the_first(lib: Any) -> None:
    a, b, seen = leaf(lib, 1.0), leaf(lib, 2.0), []
    c = a * b
    tensors = (lib.ones(1), a, b, c)
    with lib.autograd.graph.register_multi_grad_hook(
        tensors, lambda g: seen.append(g.tolist()), mode="any"
    ):
        c.sum().backward(retain_graph=True)
        lib.autograd.grad((c * 3).sum(), [a, b], retain_graph=True)
    c.sum().backward()
    assert seen == [[1.0], [3.0]]


def test_a_hook_on_leaves_that_are_roots(lib: Any) -> None:
    a, b, seen = leaf(lib, 1.0), leaf(lib, 2.0), []
    lib.autograd.graph.register_multi_grad_hook((a, b), lambda gs: seen.append(lists(gs)))
    lib.autograd.backward([a, b], [lib.ones(1), lib.ones(1)])
    assert seen == [([1.0], [1.0])]


def test_a_pass_within_a_hook_is_another_pass(lib: Any) -> None:
    a, b, seen = leaf(lib, 1.0), leaf(lib, 2.0), []
    c, d = a * b, a * b * 2
    lib.autograd.graph.register_multi_grad_hook((a, b), lambda gs: seen.append(lists(gs)))
    inner = c.register_hook(lambda g: (inner.remove(), d.backward())[0])
    c.backward()
    assert seen == [([4.0], [2.0]), ([2.0], [1.0])]


def test_a_pass_that_fails_does_not_spoil_the_next(lib: Any) -> None:
    a, b, seen, fail = leaf(lib, 1.0), leaf(lib, 2.0), [], [True]
    c = a * 3
    d = c * b
    lib.autograd.graph.register_multi_grad_hook((a, c), lambda gs: seen.append(lists(gs)))

    def hook(gradient: Any) -> None:
        if fail[0]:
            raise KeyError("mine")

    c.register_hook(hook)
    with pytest.raises(KeyError, match="mine"):
        d.backward(retain_graph=True)
    fail[0] = False
    d.backward()
    assert seen == [([6.0], [2.0])]


def test_what_a_hook_on_several_tensors_cannot_take(lib: Any) -> None:
    register = lib.autograd.graph.register_multi_grad_hook
    with pytest.raises(ValueError, match=r"^Expects mode to be one of \('all', 'any'\) but got x$"):
        register((leaf(lib, 1.0),), print, mode="x")
    with pytest.raises(AssertionError, match="^Expected gradient function to be set$"):
        register((lib.ones(1),), print)


def test_handles_are_of_the_class_that_utils_names(lib: Any) -> None:
    handle = (leaf(lib, 1.0) * 2).register_hook(print)
    assert isinstance(handle, lib.utils.hooks.RemovableHandle)


def test_hooks_do_not_outlive_their_tensor() -> None:
    gc.collect()
    gc.disable()
    try:
        x = leaf(ng, 1.0)
        y = x * 2

        def hook(*_: Any) -> None: ...

        alive = weakref.ref(hook)
        handles = [
            y.register_hook(hook),
            y.grad_fn.register_hook(hook),
            y.grad_fn.register_prehook(hook),
            ng.autograd.graph.register_multi_grad_hook((y,), hook, mode="all"),
            ng.autograd.graph.register_multi_grad_hook((x, y), hook, mode="any"),
        ]
        handles.pop().remove()  # that on the leaf, which stays
        del hook, y
        assert alive() is None and len(handles) == 4
    finally:
        gc.enable()


def test_results_without_a_derivative_require_grad_whether_or_not_operands_are_broadcast() -> None:
    x = leaf(ng, 1.0, -1.0)
    for values in (ng.ones(2), ng.ones(1)):
        y = ng.heaviside(x, values)
        assert y.grad_fn.name() == "torch::autograd::NotImplemented"
        with pytest.raises(RuntimeError, match="derivative for aten::heaviside is not implemented"):
            y.sum().backward()


@pytest.mark.parametrize("roots", [1, 2])
def test_hooks_of_a_root_run_though_it_leads_to_nothing_that_was_asked_for(
    lib: Any, roots: int
) -> None:
    a, b = leaf(lib, 2.0), leaf(lib, 3.0)
    outputs = [a * 2, a.exp()][:roots]
    seen: list[int] = []
    for at, each in enumerate(outputs):
        each.register_hook(lambda g, at=at: seen.append(at))
    grads = [lib.ones_like(each) for each in outputs]
    assert lib.autograd.grad(outputs, [b], grads, allow_unused=True) == (None,)
    assert sorted(seen) == ([0] if roots == 1 else [])


def test_a_leaf_is_done_as_soon_as_nothing_leads_to_it_any_more(lib: Any) -> None:
    """Not when the whole pass is over: of optimisers that step in a hook, memory depends on it."""
    tensors = [leaf(lib, float(k + 1)) for k in range(5)]
    seen: list[str] = []
    y = leaf(lib, 1.0)
    for k, each in enumerate(tensors):
        each.register_post_accumulate_grad_hook(lambda t, k=k: seen.append(f"leaf {k}"))
        y = y * each
        y.register_hook(lambda g, k=k: seen.append(f"product {k}"))
    y.backward()
    for k in range(1, 5):
        assert seen.index(f"leaf {k}") < seen.index(f"product {k - 1}")
