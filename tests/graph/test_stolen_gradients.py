"""Whether ``.grad`` is the memory that a gradient came in, or a copy, where PyTorch decides so.

What nobody else holds is taken as it is. `note` notes where a gradient lies that a user's code
sees, and keeps it only if it is told to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.runtime.holders import nobody_else_holds
from numgrad.runtime.memory import empty
from tests.library_lines import evaluated

#: Backward passes of Functions of one tensor: from the context and the gradient.
FUNCTIONS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "fresh": lambda m, note, c, g: note(g * 2),
    "kept": lambda m, note, c, g: note(g * 2, keep=True),
    "marked": lambda m, note, c, g: marked(note(g * 2)),
    "passed": lambda m, note, c, g: note(g),
    "turned": lambda m, note, c, g: note((g * 2).t()),
    "expanded": lambda m, note, c, g: note((g * 2)[:1].expand(2, 2)),
    "viewed": lambda m, note, c, g: note((g * 2).view(4).view(2, 2)),
    "detached": lambda m, note, c, g: note((g * 2).detach()),
    "rows": lambda m, note, c, g: note(m.zeros(4, 2)[1:3]),
    "stepped": lambda m, note, c, g: note(m.zeros(4, 4)[::2, ::2]),
    "saved": lambda m, note, c, g: note(c.saved_tensors[0]),
    "wide": lambda m, note, c, g: note((g * 2).double()),
    "recorded": lambda m, note, c, g: recorded(m, note, g),
    "leaf": lambda m, note, c, g: note((g * 2).requires_grad_()),
}
# Statements, what is to be seen then, and what that is: `took` says whether the gradient of a
# tensor is the memory that was noted first.
LINES = r"""
fresh(x).backward(h) -> took(x) => True
fresh(x).backward(h, retain_graph=True) -> took(x) => True
fresh(x).backward(h, create_graph=True) -> (took(x), x.grad.requires_grad) => (False, False)
fresh(x).backward(h); a = x.grad; fresh(x).backward(h) -> (a is x.grad, took(x)) => (True, True)
fresh(x).backward(h); fresh(x).backward(h, create_graph=True) -> took(x) => False
kept(x).backward(h) -> (took(x), x.grad is found[0]) => (False, False)
(kept(x) + kept(x)).backward(h) -> [*map(total, found), total(x.grad)] => [24.0, 24.0, 48.0]
marked(x).backward(h) -> (took(x), hasattr(x.grad, "mark")) => (True, False)
passed(x).backward(h) -> same(x.grad, h) => False
(passed(x) * 2).backward(h) -> took(x) => True
(passed(x + 1) * 2).backward(h) -> took(x) => True
turned(x).backward(h) -> (took(x), x.grad.stride()) => (False, (2, 1))
turned(t).backward(h) -> (took(t), t.grad.stride()) => (True, (1, 2))
fresh(t).backward(h) -> (took(t), t.grad.stride()) => (False, (1, 2))
fresh(s).backward(h) -> (took(s), s.grad.stride()) => (True, (2, 1))
turned(s).backward(h) -> (took(s), s.grad.stride()) => (False, (2, 1))
expanded(x).backward(h) -> (took(x), x.grad.stride()) => (False, (2, 1))
viewed(x).backward(h) -> (took(x), x.grad._is_view(), x.grad.is_leaf) => (True, False, True)
detached(x).backward(h) -> took(x) => True
rows(x).backward(h) -> (took(x), x.grad.stride(), x.grad._is_view()) => (True, (2, 1), False)
stepped(x).backward(h) -> (took(x), x.grad.stride()) => (False, (2, 1))
saved(x).backward(h) -> (took(x), same(x.grad, x)) => (False, False)
wide(x).backward(h) -> (took(x), x.grad.dtype) => (False, torch.float32)
recorded(x).backward(h) -> (took(x), x.grad.requires_grad, x.grad.grad_fn) => (True, False, None)
leaf(x).backward(h) -> (took(x), x.grad.requires_grad) => (True, False)
x.register_hook(note); (x * 2).backward(h) -> took(x) => True
x.register_hook(lambda g: note(g, True)); (x * 2).backward(h) -> took(x) => False
x.register_hook(lambda g: note(g * 2)); (x * 2).backward(h) -> took(x) => True
x.register_hook(lambda g: note(g * 2, True)); (x * 2).backward(h) -> took(x) => False
x.register_hook(lambda g: h); (x * 2).backward(h) -> same(x.grad, h) => False
y = x * 2; y.grad_fn.register_hook(lambda i, o: noted(i)); y.backward(h) -> took(x) => True
y = x * 2; y.grad_fn.register_hook(lambda i, o: noted(i, True)); y.backward(h) -> took(x) => False
y = x + 1; y.grad_fn.register_prehook(lambda o: (note(o[0] * 2),)); y.backward(h) -> took(x) => True
y = x + 1; y.register_hook(note); (y * 2).backward(h) -> took(x) => True
y = x + 1; y.register_hook(lambda g: note(g, True)); (y * 2).backward(h) -> took(x) => False
y = x + 1; y.retain_grad(); (y * 2).backward(h) -> same(x.grad, y.grad) => False
y = x + w; y.register_hook(note); (y * 2).backward(h) -> (took(x), took(w)) => (False, True)
both(x, w).backward(h) -> (took(x), took(w)) => (False, True)
both(x, w).backward(h); both(x, w).backward(h) -> (total(x.grad), total(w.grad)) => (48.0, 48.0)
y = x * 1; y.retain_grad(); fresh(y).backward(h) -> took(y) => False
x.register_post_accumulate_grad_hook(seen); fresh(x).backward(h) -> at[0] == at[1] => True
x.register_post_accumulate_grad_hook(seen); fresh(x).backward(h) -> found[0] is x.grad => True
(x * 3 + fresh(x)).backward(h) -> took(x) => True
(kept(x) + fresh(x)).backward(h) -> (x.grad.data_ptr() in at, total(found[0])) => (True, 24.0)
(kept(x) + x * 3).backward(h) -> (x.grad.data_ptr() in at, total(found[0])) => (False, 24.0)
(fresh(x) + w * x).sum().backward() -> (total(x.grad), total(w.grad)) => (16.0, 4.0)
(fresh(x).expand(2, 2)).backward(h) -> took(x) => True
(x * w.cumsum(0) + expanded(x)).backward(h) -> x.grad.tolist() => [[12.0, 12.0], [18.0, 18.0]]
(expanded(x) + x * w.cumsum(0)).backward(h) -> x.grad.tolist() => [[12.0, 12.0], [18.0, 18.0]]
"""


def marked(tensor: Any) -> Any:
    """Return a tensor with an attribute of the user's."""
    tensor.mark = 3
    return tensor


def recorded(m: Any, note: Any, g: Any) -> Any:
    """Return a gradient that has a history."""
    with m.enable_grad():
        return note(g.detach().requires_grad_() * 2)


def names(m: Any) -> dict[str, Any]:
    """Return what the lines use, of a library."""
    at: list[int] = []
    found: list[Any] = []

    def note(tensor: Any, keep: bool = False) -> Any:
        at.append(tensor.data_ptr())
        found.extend([tensor] * keep)
        return tensor

    def noted(tensors: Any, keep: bool = False) -> None:
        note(tensors[0], keep)

    def seen(leaf: Any) -> None:
        note(leaf.grad, keep=True)

    def same(one: Any, other: Any) -> bool:
        return bool(one.data_ptr() == other.data_ptr())

    def total(tensor: Any) -> float:
        return float(tensor.sum())

    def took(tensor: Any) -> bool:
        return bool(tensor.grad.data_ptr() == at[0])

    def forward(ctx: Any, *inputs: Any) -> Any:
        ctx.save_for_backward(*inputs)
        return sum(inputs) * 1.5

    def function(backward: Callable[..., Any]) -> Any:
        members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        return type("Own", (m.autograd.Function,), members).apply

    def own(rule: Callable[..., Any]) -> Any:
        return function(lambda ctx, g: rule(m, note, ctx, g))

    def two(ctx: Any, g: Any) -> Any:
        result = note(g * 2)
        return result, result

    return {
        **{name: own(rule) for name, rule in FUNCTIONS.items()},
        **{"both": function(two), "note": note, "noted": noted, "at": at, "found": found},
        **{"seen": seen, "took": took, "same": same, "total": total},
        "x": m.ones(2, 2, requires_grad=True),
        "w": m.full((2, 2), 2.0, requires_grad=True),
        "t": m.ones(2, 2).t().requires_grad_(),
        "s": m.ones(2, 4)[:, ::2].requires_grad_(),
        "h": m.full((2, 2), 3.0),
    }


@pytest.mark.parametrize("line", LINES.strip().splitlines())
@pytest.mark.filterwarnings("ignore:Using backward:UserWarning")
def test_a_gradient_that_nobody_holds_is_taken_as_it_is(lib: Any, line: str) -> None:
    program, _, expected = line.rpartition(" => ")
    assert str(evaluated(program, names(lib))) == expected


def test_memory_that_somebody_holds_by_another_tensor_is_copied() -> None:
    """PyTorch looks at the tensor alone, and a second pass would write to what is held."""
    held = np.ones((2, 2), np.float32)
    rules: dict[str, Callable[[Any], Any]] = {
        "a detached tensor": lambda g: (g * 2, g * 2),
        "an array": lambda g: (ng.from_numpy(held), None),
    }
    for name, rule in rules.items():
        kept: list[Any] = []

        class Own(ng.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x * 1

            @staticmethod
            def backward(ctx: Any, g: Any, rule: Any = rule, kept: Any = kept) -> Any:
                result, _ = rule(g)
                kept.append(result.detach())
                return result

        x = ng.ones(2, 2, requires_grad=True)
        for _ in range(2):
            Own.apply(x).backward(ng.ones(2, 2))
        assert len({kept[0].data_ptr(), x.grad.data_ptr()}) == 2, name
        assert kept[0].tolist() != x.grad.tolist() == (kept[0] * 2).tolist(), name
    assert held.tolist() == [[1.0, 1.0]] * 2


@pytest.mark.parametrize("make", [np.ones, lambda n: empty(n, np.float64)])
@pytest.mark.parametrize("size", [4, 1_000_000])
def test_whoever_holds_memory_is_found(make: Callable[[int], Any], size: int) -> None:
    """By the array, or by another one that stands on the same memory."""
    arrays = [make(size)]
    assert nobody_else_holds(arrays, 0)
    arrays[0] = arrays[0][1:]
    assert nobody_else_holds(arrays, 0)
    arrays[0] = arrays[0].reshape(1, -1).T[::2]
    assert nobody_else_holds(arrays, 0)
    another = arrays[0][:1]
    assert not nobody_else_holds(arrays, 0)
    del another
    same = arrays[0]
    assert not nobody_else_holds(arrays, 0)
    del same
    assert nobody_else_holds(arrays, 0)
    arrays[0] = np.broadcast_to(arrays[0], arrays[0].shape)  # which may not be written to
    assert not nobody_else_holds(arrays, 0)
    arrays[0] = np.frombuffer(bytearray(8 * size))
    assert not nobody_else_holds(arrays, 0)


def test_what_lies_apart_or_backwards_is_found_too_and_what_overlaps_is_not() -> None:
    layouts: list[tuple[Callable[[Any], Any], bool]] = [
        (lambda array: array[::-1], True),
        (lambda array: array[:, None], True),
        (lambda array: array.reshape(2, 3)[::-1, ::2], True),
        (lambda array: np.ndarray((2, 3), array.dtype, array, 0, (16, 8)), False),
        (lambda array: np.ndarray((2, 2), array.dtype, array, 0, (8, 4)), False),
        (lambda array: np.ndarray((3, 2), array.dtype, array, 0, (16, 8)), True),
        (lambda array: np.ndarray((2, 0), array.dtype, array, 0, (0, 0)), False),
    ]
    for layout, expected in layouts:
        arrays = [layout(np.ones(6))]
        assert nobody_else_holds(arrays, 0) == expected, arrays[0].strides
