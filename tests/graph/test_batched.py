"""autograd.grad with is_grads_batched: one backward pass for each entry, stacked."""

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
def test_hooks_see_one_row_at_a_time(place: str, asked: str) -> None:
    """What they see, and what is returned, is what one call for each row gives."""
    x = ng.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * x
    z = y.sin()
    seen: list[Any] = []
    HOOKED[place](x, y, z, lambda *found: seen.append(str(found)))
    target = {"x": x, "y": y, "z": z}[asked]
    rows = ng.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 1.0], [2.0, 2.0, 2.0], [0.0, 0.0, 1.0]])
    single = [ng.autograd.grad(z, target, row, retain_graph=True)[0] for row in rows]
    expected, seen[:] = seen[:], []
    (found,) = ng.autograd.grad(z, target, rows, is_grads_batched=True)
    assert found.tolist() == [row.tolist() for row in single]
    assert seen == expected


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
