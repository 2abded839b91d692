"""Loops: `while_loop` and `fori_loop`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.base import pytree
from numgrad.func.control.arguments import (
    Leaves,
    builder_of,
    check_callable,
    check_same,
    name_of,
    read_leaves,
    read_returned,
)
from numgrad.func.control.checkpoints import Policy, depth_of, read_policy
from numgrad.func.control.ranges import keeps, replay
from numgrad.func.control.scans import scan
from numgrad.func.control.tracing import is_traced, is_true, read_predicate, recorder_of
from numgrad.graph.modes.state import modes
from numgrad.graph.recorder import note_numbers
from numgrad.graph.tensor import Tensor
from numgrad.ops.creation.ranges import arange

__all__ = ["fori_loop", "while_loop"]


def while_loop(
    cond_fn: Callable[..., Any],
    body_fn: Callable[..., Any],
    carry: Any,
    *,
    checkpoint: Policy | int | str | None = None,
) -> Any:
    """Repeat ``carry = body_fn(*carry)`` while ``cond_fn(*carry)`` holds; return the last carry.

    Mirrors PyTorch's ``while_loop``. A carry that is neither a tuple nor a list, such as a tensor
    or a dictionary, is handed over as one argument, as in ``jax.lax.while_loop``. Gradients flow
    through all the steps that were made, in reverse mode, too.

    Parameters
    ----------
    cond_fn : callable
        Returns a truth value, or a tensor of one element and of dtype bool.
    body_fn : callable
        Returns the next carry: of the same structure, with the same shapes and dtypes.
    carry : pytree of tensors
        Where to begin. Plain numbers become tensors.
    checkpoint : int, "sqrt", "log" or Binomial, optional
        Which carries are kept for derivatives; see `scan`. How many steps there will be need not
        be known.

    Returns
    -------
    pytree of tensors
        The first carry for which the condition does not hold; a tuple if `carry` is a list.

    Raises
    ------
    RuntimeError
        If the condition is no truth value, or the carry changes its structure, shapes or dtypes.

    Examples
    --------
    Newton's method, differentiated through its steps:

    >>> import numgrad as ng
    >>> def root(a):
    ...     def far(x):
    ...         return (x * x - a).abs() > 1e-5
    ...     def step(x):
    ...         return (x + a / x) / 2
    ...     return ng.func.while_loop(far, step, a)
    >>> ng.func.value_and_grad(root)(ng.tensor(2.0))
    (tensor(1.4142), tensor(0.3536))
    """
    check_callable("while_loop", cond_fn=cond_fn, body_fn=body_fn)
    policy = read_policy("while_loop", checkpoint)
    spread = type(carry) in (tuple, list)
    init, spec = read_leaves(tuple(carry) if spread else carry, "carry")
    leaves, tree_of = init, builder_of(spec)

    def arguments(current: Leaves) -> Any:
        tree = tree_of(current)
        return tree if spread else (tree,)

    what = f"cond_fn {name_of(cond_fn)}"

    asked: list[Any] = []  # the answer for the first carry, until it is used: it may have drawn

    def predicate(current: Leaves) -> Any:
        if asked and current is init:
            return asked.pop()
        words = "to return a scalar tensor of dtype bool or a bool"
        return read_predicate(cond_fn(*arguments(current)), "while_loop", what, words)

    def is_recorded() -> bool:
        found = predicate(init)
        asked.append(found)
        return isinstance(found, Tensor)

    def goes_on(current: Leaves) -> bool:
        return is_true(predicate(current), "while_loop", what)

    def step(current: Leaves, rows: Leaves) -> tuple[Leaves, Leaves]:
        result = body_fn(*arguments(current))
        if spread and type(result) is list:
            result = tuple(result)
        after = read_returned(result, current, "body_fn_output")
        names = "carry", "body_fn_output"
        where = f"Where: body_fn {name_of(body_fn)}"
        check_same("while_loop", names, (init, spec), after, where)
        return after[0], []

    recorded = recorder_of("while_loop")
    if recorded is not None and is_recorded():
        depth, turns = (1, None) if modes.trace.has_numbers else depth_of(policy)
        leaves = _recorded(predicate, lambda current: step(current, [])[0], leaves, depth, turns)
    elif policy is not None and keeps():
        leaves, _ = replay(step, leaves, [], policy, goes_on)
    else:
        while goes_on(leaves):
            leaves, _ = step(leaves, [])
    return pytree.unflatten(spec, leaves)


def _recorded(
    predicate: Callable[[Leaves], Any],
    step: Callable[[Leaves], Leaves],
    leaves: Leaves,
    depth: int,
    turns: int | None,
) -> Leaves:
    """Record a loop, or loops within loops, of which only the outermost keeps all its carries.

    Within it there are so many `turns` of the next one. If that is None, each loop is of one turn
    at first, and of one more each time: n steps in d loops take about (d! n)^(1/d) turns of the
    outermost one, and no more of any other.
    """
    record: Any = recorder_of("while_loop")
    if depth == 1:
        found: Leaves = record(predicate, step, leaves)
        return found

    def with_flag(current: Leaves) -> Leaves:
        """Ask whether there is another step, once for each."""
        (flag,), _ = read_leaves((predicate(current),), "cond_fn")
        return [flag.reshape(()), *current]

    def run(levels: int, limit: Any, state: Leaves) -> Leaves:
        if levels == 0:
            return with_flag(step(state[1:]))

        def goes_on(current: Leaves) -> Any:
            count, flag = current[:2]
            return flag if limit is None else flag & (count < limit)

        def turn(current: Leaves) -> Leaves:
            count = current[0] + 1
            return [count, *run(levels - 1, turns or count, current[1:])]

        inner: Any = recorder_of("while_loop")
        _, *after = inner(goes_on, turn, [arange(1)[0], *state])
        return after

    return run(depth, None, with_flag(leaves))[1:]


def fori_loop(
    lower: Any,
    upper: Any,
    body_fn: Callable[[Any, Any], Any],
    init: Any,
    *,
    checkpoint: Policy | int | str | None = None,
) -> Any:
    """Repeat ``value = body_fn(i, value)`` for i from `lower` below `upper`; return the value.

    Mirrors ``jax.lax.fori_loop``.

    Parameters
    ----------
    lower, upper : int or Tensor
        Tensors have one element and an integer dtype.
    body_fn : callable
        Gets ``i``, a tensor of no dimensions and dtype int64, and the value; returns the next one,
        of the same structure, with the same shapes and dtypes.
    init : pytree of tensors
        The first value.
    checkpoint : int, "sqrt", "log" or Binomial, optional
        See `scan`.

    Returns
    -------
    pytree of tensors
        The last value; `init` if there is nothing to do.

    Raises
    ------
    RuntimeError
        If the bounds are no integers, or the value changes its structure, shapes or dtypes.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.func.fori_loop(1, 6, lambda i, product: product * i, ng.tensor(1.0))
    tensor(120.)
    """
    check_callable("fori_loop", body_fn=body_fn)
    first, last = _bound(lower, "lower"), _bound(upper, "upper")
    if isinstance(first, Tensor) or isinstance(last, Tensor):  # traced

        def below(i: Any, value: Any) -> Any:
            return i < last

        def step(i: Any, value: Any) -> Any:
            return i + 1, body_fn(i, value)

        start = first if isinstance(first, Tensor) else arange(first, first + 1)[0]
        return while_loop(below, step, (start, init), checkpoint=checkpoint)[1]
    if first >= last:
        leaves, spec = read_leaves(init, "init")
        return pytree.unflatten(spec, leaves)

    def carried(value: Any, i: Any) -> tuple[Any, None]:
        return body_fn(i, value), None

    carried.__wrapped__ = body_fn  # type: ignore[attr-defined] # whom errors name, and in which
    carried.words = "fori_loop", "value", "body_fn"  # type: ignore[attr-defined] # words
    result, _ = scan(carried, init, arange(first, last), checkpoint=checkpoint)
    return result


def _bound(value: Any, name: str) -> Any:
    """Return a bound as an int, or as it is if it is traced."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    if (
        not isinstance(value, Tensor)
        or value._array.size != 1
        or value._array.dtype.kind not in "iu"
    ):
        raise RuntimeError(
            f"fori_loop: Expected {name} to be int or single-element tensor of integers, but got "
            f"{value!r}."
        )
    if is_traced(value):
        return value
    note_numbers(value._array)
    return int(value._array.reshape(-1)[0])
