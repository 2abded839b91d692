"""autograd.grad with is_grads_batched: one backward pass for all entries, as vmap would."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import numgrad as ng

PREPARE = """
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
w = torch.ones(2, requires_grad=True)
y, z = x * x, x.sin()
def grad(*arguments, **options):
    return torch.autograd.grad(*arguments, is_grads_batched=True, retain_graph=True, **options)
"""

SAME = """
grad(y, x, torch.eye(3))
grad(y.sum(), x, torch.ones(4))
grad([y, z.sum()], x, [torch.ones(2, 3), torch.ones(2)])
grad(y, x, torch.eye(3, dtype=torch.float64))
grad(y, x, torch.eye(3), create_graph=True)
grad(y, [x, w], torch.eye(3), allow_unused=True)
grad(y, [x, w], torch.eye(3), materialize_grads=True)
grad(y, x, torch.eye(3).requires_grad_(), create_graph=True)
grad([y, z], [x, y], [torch.ones(2, 3), torch.eye(3)[:2]])
"""

RAISE = """
grad(y, x, torch.ones(2))
grad(y, x, None)
grad(y.sum(), x, None)
grad(y.sum(), x, torch.tensor(1.0))
grad(y, x, torch.tensor(1.0))
grad([y, z], x, [torch.ones(2, 3), torch.ones(3, 3)])
grad([y, z.sum()], x, [torch.ones(2, 3), None])
grad(y, x, torch.zeros(0, 3))
grad(y, [x, w], torch.eye(3))
grad(y[:0], x, None)
grad(y, x, 3.0)
grad([y, z], x, [torch.ones(2, 3)])
"""


def run(library: Any, line: str) -> Any:
    names = {"torch": library}
    exec(PREPARE, names)
    return eval(line, names)


def describe(results: Any) -> Any:
    return [
        None
        if result is None
        else (str(result.dtype), tuple(result.shape), result.requires_grad, result.tolist())
        for result in results
    ]


@pytest.mark.parametrize("line", [line for line in SAME.splitlines() if line])
def test_batched_gradients_are_pytorchs(torch: ModuleType, line: str) -> None:
    for ours, theirs in zip(describe(run(ng, line)), describe(run(torch, line)), strict=True):
        if theirs is None:
            assert ours is None
        else:
            assert ours[:3] == theirs[:3]
            assert np.allclose(ours[3], theirs[3])


@pytest.mark.parametrize("line", [line for line in RAISE.splitlines() if line])
def test_batched_gradients_raise_what_pytorch_raises(torch: ModuleType, line: str) -> None:
    with pytest.raises(Exception) as theirs:
        run(torch, line)
    with pytest.raises(type(theirs.value)) as ours:
        run(ng, line)
    assert str(ours.value) == str(theirs.value)


# Hooks that do what no function of a batch may. PyTorch has a vmap of its own for this, with other
# words.
REFUSED: dict[str, Any] = {
    "item": lambda lib, g: g * g.sum().item(),
    "a branch": lambda lib, g: g if g.sum() > 0 else 2 * g,
    "random numbers": lambda lib, g: g * lib.rand(3),
    "a mask": lambda lib, g: g[g > 0],
    "numbers": lambda lib, g: g.numpy(),
    "a list": lambda lib, g: g.tolist(),
    "another shape": lambda lib, g: g[:2],
}


@pytest.mark.parametrize("what", REFUSED)
def test_hooks_may_not_do_what_vmap_refuses(lib: Any, what: str) -> None:
    x = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * x
    y.register_hook(lambda g: REFUSED[what](lib, g))
    with pytest.raises(RuntimeError):
        lib.autograd.grad(y, x, lib.eye(3), is_grads_batched=True)


HOOKS: dict[str, Any] = {
    "new": lambda lib, g: g * 2,
    "in place": lambda lib, g: g.mul_(2),
    "the same for all": lambda lib, g: lib.full((3,), 2.0),
    "nothing": lambda lib, g: None,
}


@pytest.mark.parametrize("kind", HOOKS)
def test_hooks_see_one_entry_and_are_called_once(lib: Any, kind: str) -> None:
    x = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * x
    seen: list[Any] = []

    def hook(g: Any) -> Any:
        seen.append((tuple(g.shape), g.dim(), g.requires_grad))
        return HOOKS[kind](lib, g)

    y.register_hook(hook)
    (found,) = lib.autograd.grad(y, x, lib.eye(3), is_grads_batched=True)
    scale = lib.ones(3, 3) if kind == "the same for all" else lib.eye(3)
    assert found.tolist() == (2 * x * scale * (1 if kind == "nothing" else 2)).tolist()
    assert seen == [((3,), 1, False)]


@pytest.mark.parametrize("create_graph", [False, True])
def test_custom_functions_see_one_entry(lib: Any, create_graph: bool) -> None:
    calls = []

    class Cube(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            calls.append(tuple(g.shape))
            (x,) = ctx.saved_tensors
            return 3 * x * x * g

    x = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (found,) = lib.autograd.grad(
        Cube.apply(x), x, lib.eye(3), is_grads_batched=True, create_graph=create_graph
    )
    assert found.tolist() == lib.diag(3 * x**2).tolist()
    assert calls == [(3,)]
    assert found.requires_grad == create_graph
    if create_graph:
        assert lib.autograd.grad(found.sum(), x)[0].tolist() == (6 * x).tolist()


def test_batches_at_an_edge(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
    edge = lib.autograd.graph.get_gradient_edge(x * x)
    (found,) = lib.autograd.grad(edge, x, lib.eye(3), is_grads_batched=True)
    assert found.tolist() == lib.diag(2 * x).tolist()


def test_nan_of_one_entry_is_found() -> None:
    with ng.autograd.set_detect_anomaly(True):
        x = ng.tensor([1.0, 2.0], requires_grad=True)
        y = (x - 1).sqrt()
        with (
            pytest.warns(UserWarning, match="Error detected in Sqrt"),
            pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan values in its 0th"),
        ):
            ng.autograd.grad(y, x, ng.tensor([[0.0, 1.0], [1.0, 1.0]]), is_grads_batched=True)


def test_batched_gradients_can_be_differentiated() -> None:
    x = ng.tensor([1.0, 2.0, 3.0], dtype=ng.float64, requires_grad=True)
    basis = ng.eye(3, dtype=ng.float64).requires_grad_()

    def rows(x: Any, basis: Any) -> Any:
        return ng.autograd.grad(x**3, x, basis, is_grads_batched=True, create_graph=True)[0]

    assert ng.autograd.gradcheck(rows, (x, basis))


# Leaves of three dims that lie in several ways, with elements that are repeated.
LAID_OUT: dict[str, Any] = {
    "row by row": lambda t: t,
    "columns first": lambda t: t.permute(2, 0, 1).clone().permute(1, 2, 0),
    "backwards": lambda t: t.permute(2, 1, 0).clone().permute(2, 1, 0),
    "last two swapped": lambda t: t.mT.clone().mT,
    "rows repeated": lambda t: t[:1].expand(2, 3, 4),
    "columns repeated": lambda t: (
        t.permute(2, 0, 1)[:, :, :1].clone().expand(4, 2, 3).movedim(0, 2)
    ),
}


@pytest.mark.parametrize("layout", LAID_OUT)
def test_batched_gradients_of_any_layout_can_be_differentiated(layout: str) -> None:
    """With a graph of their own they are what they are without, one row after the other."""
    numbers = ng.arange(24, dtype=ng.float64).reshape(2, 3, 4) / 8
    x = LAID_OUT[layout](numbers).detach().requires_grad_()
    y = x**3
    rows = (ng.arange(72, dtype=ng.float64).reshape(3, 2, 3, 4) % 5).requires_grad_()
    single = [ng.autograd.grad(y, x, row, create_graph=True)[0] for row in rows]
    (plain,) = ng.autograd.grad(y, x, rows, is_grads_batched=True, retain_graph=True)
    (found,) = ng.autograd.grad(y, x, rows, is_grads_batched=True, create_graph=True)
    expected = ng.stack(single)
    for each in (plain, found):
        assert each.shape == expected.shape
        assert ng.equal(each, expected)
    second = ng.autograd.grad((found * rows.detach()).sum(), (x, rows), allow_unused=True)
    wanted = ng.autograd.grad((expected * rows.detach()).sum(), (x, rows), allow_unused=True)
    for one, other in zip(second, wanted, strict=True):
        assert ng.equal(one, other)


# Where a hook may hang, from the outputs to the inputs.
HOOKED: dict[str, Any] = {
    "nowhere": lambda x, y, z, hook: None,
    "output": lambda x, y, z, hook: z.register_hook(hook),
    "node of the output": lambda x, y, z, hook: z.grad_fn.register_prehook(hook),
    "between": lambda x, y, z, hook: y.register_hook(hook),
    "behind a node": lambda x, y, z, hook: y.grad_fn.register_hook(hook),
    "input": lambda x, y, z, hook: x.register_hook(hook),
}


@pytest.mark.parametrize("asked", ["x", "y", "z"])
@pytest.mark.parametrize("place", HOOKED)
def test_hooks_see_all_rows_at_once(place: str, asked: str) -> None:
    """They are called as often as by one call, and what they return for a row, counts for it."""
    x = ng.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * x
    z = y.sin()
    calls: list[Any] = []

    def hook(*found: Any) -> Any:
        parts = [each if isinstance(each, tuple) else (each,) for each in found]
        calls.append([tuple(each.shape) for part in parts for each in part])
        scaled = tuple(each * (1 + each.sum().sigmoid()) for each in parts[0])
        return scaled if isinstance(found[0], tuple) else scaled[0]

    HOOKED[place](x, y, z, hook)
    target = {"x": x, "y": y, "z": z}[asked]
    rows = ng.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 1.0], [2.0, 2.0, 2.0], [0.0, 0.0, 1.0]])
    single = [ng.autograd.grad(z, target, row, retain_graph=True)[0] for row in rows]
    once, calls[:] = calls[: len(calls) // 4], []
    (found,) = ng.autograd.grad(z, target, rows, is_grads_batched=True)
    assert ng.allclose(found, ng.stack(single))
    assert calls == once


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("size", [1, 9_000, 20_000, 30_000, 70_000])
def test_any_number_of_rows_of_any_length_is_what_a_loop_gives(size: int, count: int) -> None:
    """Rows are taken together as far as they are short, and the rest of them after that."""
    x = ng.arange(size, dtype=ng.float32).requires_grad_()
    unused = ng.ones(3, requires_grad=True)
    y = x * x
    rows = ng.arange(count * size, dtype=ng.float32).reshape(count, size) % 7
    inputs = [x, unused]
    single = [
        ng.autograd.grad(y, inputs, row, retain_graph=True, allow_unused=True) for row in rows
    ]
    found = ng.autograd.grad(y, inputs, rows, is_grads_batched=True, allow_unused=True)
    assert found[1] is None
    assert found[0].shape == (count, size)
    assert ng.equal(found[0], ng.stack([row[0] for row in single]))
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        ng.autograd.grad(y, x, rows, is_grads_batched=True)


def test_graph_is_freed_after_the_last_entry() -> None:
    x = ng.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    ng.autograd.grad(y, x, ng.eye(2), is_grads_batched=True)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        ng.autograd.grad(y, x, ng.eye(2), is_grads_batched=True)


def test_batches_of_cotangents_are_cast_to_the_dtype_of_the_output(lib: Any) -> None:
    names = ("float16", "float32", "float64")
    for name in names:
        x = lib.ones(3, requires_grad=True, dtype=getattr(lib, name))
        kinds = []
        x.register_hook(lambda gradient, kinds=kinds: kinds.append(gradient.dtype))
        for given in names:
            batch = lib.eye(3, dtype=getattr(lib, given))
            (found,) = lib.autograd.grad(x * 2, x, batch, is_grads_batched=True)
            assert found.dtype == x.dtype and found.tolist() == (lib.eye(3) * 2).tolist()
        assert kinds == [x.dtype] * 3
