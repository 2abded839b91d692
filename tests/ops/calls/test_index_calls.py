"""Calls with an index or a mask are remembered by what these are, and go by the numbers in them.

Each call is drawn several times in a row, with things changed in between: the numbers, some of them
out of range; which tensor is which; what requires grad; writes between forward and backward. What
it gives, raises and hands back is what the same call gives on the long way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad.graph.modes.state import intercept, stop_intercepting
from numgrad.ops.calls import dispatch
from numgrad.ops.calls.dispatch import _TABLES, _go_the_long_way
from numgrad.ops.indexing import assignment
from tests.cases import examples

CALLS: dict[str, Callable[..., Any]] = {
    "x[i]": lambda x, y, i, j, m: x[i],
    "x[:, i]": lambda x, y, i, j, m: x[:, i],
    "x[i, j]": lambda x, y, i, j, m: x[i, j],
    "x[m]": lambda x, y, i, j, m: x[m],
    "x[m, i]": lambda x, y, i, j, m: x[m[:, 0], 1:],
    "x[1:, None, i]": lambda x, y, i, j, m: x[1:, None, i],
    "x[m] * y[m]": lambda x, y, i, j, m: x[m] * y[m],
    "gather": lambda x, y, i, j, m: x.gather(1, i[:, None]),
    "scatter": lambda x, y, i, j, m: x.scatter(1, i[:, None], y),
    "scatter of a number": lambda x, y, i, j, m: x.scatter(0, i[None], -0.0),
    "scatter_add": lambda x, y, i, j, m: x.scatter_add(0, i[None], y),
    "take": lambda x, y, i, j, m: x.take(i * j),
    "take_along_dim": lambda x, y, i, j, m: x.take_along_dim(i[:, None], 1),
    "index_select": lambda x, y, i, j, m: x.index_select(1, i),
    "index_add": lambda x, y, i, j, m: x.index_add(0, i, y),
    "index_copy": lambda x, y, i, j, m: x.index_copy(1, i, y),
    "index_fill": lambda x, y, i, j, m: x.index_fill(0, i, 0.0),
    "masked_select": lambda x, y, i, j, m: x.masked_select(m),
    "masked_fill": lambda x, y, i, j, m: x.masked_fill(m, 0.0),
    "masked_fill by a tensor": lambda x, y, i, j, m: x.masked_fill(m, y[0, 0]),
    "masked_scatter": lambda x, y, i, j, m: x.masked_scatter(m, y),
    "scatter_": lambda x, y, i, j, m: (x * 2).scatter_(1, i[:, None], y),
    "scatter_add_": lambda x, y, i, j, m: (x * 2).scatter_add_(0, i[None], y),
    "index_add_": lambda x, y, i, j, m: (x * 2).index_add_(1, i, y),
    "index_copy_": lambda x, y, i, j, m: (x * 2)[:, :].index_copy_(0, i, y),
    "index_fill_": lambda x, y, i, j, m: (x * 2).index_fill_(0, i, 2),
    "masked_fill_": lambda x, y, i, j, m: (x * 2).masked_fill_(m, -0.0),
    "masked_fill_ by itself": lambda x, y, i, j, m: by_itself((x * 2).detach()),
    "masked_scatter_": lambda x, y, i, j, m: (x * 2).masked_scatter_(m, y),
    "x[list]": lambda x, y, i, j, m: x[[0, 2]] @ x[:, [-1, 0]],
    "x[array, list of bools]": lambda x, y, i, j, m: x[np.arange(1), [True, False, False]],
    "x[i] = y": lambda x, y, i, j, m: written(x * 2, i, y),
    "x[i] = 0": lambda x, y, i, j, m: written(x * 2, i, 0),
    "x[i, j] = y": lambda x, y, i, j, m: written(x * 2, (i, j), y[0]),
    "x[:, i] = y": lambda x, y, i, j, m: written((x * 2)[:, :], (slice(None), i), y[:1]),
    "x[0, i] = y": lambda x, y, i, j, m: written(x * 2, (0, i), y[1]),
    "x[None, 1:, ..., i] = y": lambda x, y, i, j, m: written(
        x * 2, (None, slice(1, None), ..., i), y[1:]
    ),
    "x[1:, m] = 2": lambda x, y, i, j, m: written(x * 2, (slice(1, None), m[0]), 2),
    "x[m] = y": lambda x, y, i, j, m: written(x * 2, m, y[0, 0]),
    "x[m] = -0.0": lambda x, y, i, j, m: written(x * 3, m, -0.0),
    "x[m] = float32": lambda x, y, i, j, m: written(x * 2, m, y[0, 0].float()),
    "x[list] = y": lambda x, y, i, j, m: written(x * 2, [0, 2], y[:2]),
    "x[x > 0] = 1": lambda x, y, i, j, m: written(x.detach() * 2, x > 0, 1),
    "i[j] = 0": lambda x, y, i, j, m: written(i, j, 0) * x,
    "m[m] = False": lambda x, y, i, j, m: written(m, m, False) * x,
    "index_put": lambda x, y, i, j, m: x.index_put((i, j), y[0]),
    "index_put added": lambda x, y, i, j, m: x.index_put((None, i), y, accumulate=True),
    "index_put by a mask": lambda x, y, i, j, m: x.index_put((m,), y[0, 0]),
    "index_put_": lambda x, y, i, j, m: (x * 2).index_put_((i,), y),
    "index_put_ added": lambda x, y, i, j, m: (x * 2)[:].index_put_([i, j], y[1], True),
}


def written(x: Any, key: Any, value: Any) -> Any:
    x[key] = value
    return x


def by_itself(x: Any) -> Any:
    mask = x > 0
    return mask.masked_fill_(mask, False) | mask


CHANGES = ["numbers", "out of range", "the same index", "an index of itself", "int32", "part"]
CHANGES += ["no grad", "written to", "same operand", "constant"]


def tensors(change: str, seed: int) -> tuple[Any, ...]:
    generator = np.random.default_rng(seed)
    x, y = (ng.from_numpy(generator.normal(size=(3, 3))).requires_grad_() for _ in "xy")
    low, high = (-5, 6) if change == "out of range" else (0, 3)
    i, j = (ng.from_numpy(generator.integers(low, high, 3)) for _ in "ij")
    m = ng.from_numpy(generator.uniform(size=(3, 3)) > generator.uniform())
    if change == "the same index":
        j = i
    elif change == "an index of itself":
        j = i.detach()
    elif change == "int32":
        i = i.to(ng.int32)
    elif change == "part":
        i = i.repeat_interleave(2)[::2]
    elif change == "same operand":
        y = x
    elif change == "constant":
        x = x.detach()
    return x, y, i, j, m


def seen(name: str, change: str, seed: int) -> Any:
    """Return all there is to see of a call."""
    x, y, i, j, m = tensors(change, seed)
    with ng.set_grad_enabled(change != "no grad"):
        try:
            result = CALLS[name](x, y, i, j, m)
        except (IndexError, RuntimeError) as error:
            return type(error), str(error)
    if change == "written to":
        i.zero_()
        m.logical_not_()
    found = [result.detach().numpy().tobytes(), result.shape, result.stride(), result.requires_grad]
    if not result.requires_grad:
        return found
    node, leaves = result.grad_fn, [each for each in (x, y) if each.requires_grad]
    kept = {each: getattr(node, each, None) for each in ("_saved_index", "_saved_mask")}
    found += [node.name(), {k: v is not None and v.tolist() for k, v in kept.items()}]
    weights = ng.from_numpy(np.cos(np.arange(result.numel()))).reshape(result.shape)
    both = (weights, ng.ones((), dtype=ng.float64).expand(result.shape))
    for weight in both:
        try:
            gradients = ng.autograd.grad(
                result, leaves, weight, allow_unused=True, retain_graph=True
            )
        except RuntimeError as error:
            assert change == "written to"
            return [*found, str(error)]
        for each in gradients:
            found += [None] if each is None else [each.numpy().tobytes(), each.stride()]
    again = ng.autograd.grad(result, leaves, weights, allow_unused=True, create_graph=True)
    found.append([None if each is None else each.tolist() for each in again])
    return found


def seen_the_long_way(*call: Any) -> Any:
    interceptor = object()
    intercept(interceptor)
    try:
        return seen(*call)
    finally:
        stop_intercepting(interceptor)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let calls with floats be remembered as soon as others."""
    monkeypatch.setattr(dispatch, "_OFTEN", 2)


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_calls_give_what_they_give_on_the_long_way(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(CALLS)), min_size=1, max_size=2))
    changes = data.draw(st.lists(st.sampled_from(CHANGES), min_size=2, max_size=6))
    drawn = [("numbers", 3), ("numbers", 4), ("numbers", 5)]
    drawn += [(each, seed) for seed, each in enumerate(changes)]
    for change, seed in drawn:
        for name in names:
            assert seen(name, change, seed) == seen_the_long_way(name, change, seed), (name, change)


@pytest.mark.parametrize("name", sorted(CALLS))
def test_calls_are_remembered(name: str) -> None:
    """The third call finds a program, whatever numbers the calls had."""
    tables = {id(calls): calls for calls in _TABLES}
    for calls in tables.values():
        calls.programs.clear()
        calls.seen.clear()
    for seed in range(3):
        CALLS[name](*tensors("numbers", seed))
    found = [program for calls in tables.values() for program in calls.programs.values()]
    assert found
    assert _go_the_long_way not in found


@pytest.mark.parametrize("name", [each for each in CALLS if "] = " in each])
def test_assignments_go_by_their_program(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fifth does not go the long way, but what may overlap with its own key does."""
    for seed in range(4):
        CALLS[name](*tensors("numbers", seed))
    taken: list[Any] = []
    long_way = assignment._put
    monkeypatch.setattr(assignment, "_put", lambda *call: (taken.append(call), long_way(*call))[1])
    CALLS[name](*tensors("numbers", 9))
    assert bool(taken) == (name == "m[m] = False")
