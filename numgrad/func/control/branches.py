"""Branches: `cond` and `switch`."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from numgrad.base import pytree
from numgrad.base.pytree import TreeSpec
from numgrad.func.control.arguments import (
    Leaves,
    check_callable,
    check_same,
    name_of,
    read_leaves,
)
from numgrad.func.control.tracing import (
    check_flag,
    is_traced,
    is_true,
    recorded_branches,
    recorder,
)
from numgrad.graph.frames import where_user_is
from numgrad.graph.modes import no_grad
from numgrad.graph.recorder import TraceError, note_numbers
from numgrad.graph.tensor import Tensor
from numgrad.ops.creation.generator import default_generator

__all__ = ["cond", "cond_of_operands", "switch"]


def cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any
) -> Any:
    """Return ``true_fn(*operands)`` if a condition holds, ``false_fn(*operands)`` otherwise.

    Mirrors ``jax.lax.cond``; `numgrad.cond` takes the operands as a tuple, as ``torch.cond`` does.
    Only the branch that is taken runs, so that a derivative is that of this branch.

    Parameters
    ----------
    pred : bool or Tensor
        A tensor has one element and dtype bool.
    true_fn, false_fn : callable
        Return pytrees of tensors of the same structure, shapes and dtypes. They may close over
        tensors, through which gradients flow, too.
    *operands : pytrees of tensors
        What the branch is called with.

    Returns
    -------
    What the branch returns.

    Raises
    ------
    RuntimeError
        If `pred` is neither, or a branch is no function, or the branches return different
        structures, shapes or dtypes. The other branch runs only if it returned something else
        before: so this is found out when both branches have been taken.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor(-2.0, requires_grad=True)
    >>> y = ng.func.cond(x > 0, lambda x: x**2, lambda x: -3 * x, x)
    >>> y.backward()
    >>> y, x.grad
    (tensor(6., grad_fn=<MulBackward0>), tensor(-3.))
    """
    check_callable("cond", true_fn=true_fn, false_fn=false_fn)
    read_leaves(operands, "operand")
    words = "cond", "pred", "to be bool or single-element tensor of dtype bool"
    trace = recorder()
    if trace is not None and isinstance(pred, Tensor):
        flag = check_flag(pred, *words)
        return _recorded(trace, (true_fn, false_fn), (flag, flag.logical_not()), operands, "cond")
    taken = is_true(pred, *words)
    return _run((false_fn, true_fn), int(taken), operands, "cond")


def cond_of_operands(
    pred: Any,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    operands: Sequence[Any] = (),
) -> Any:
    """Return ``true_fn(*operands)`` if a condition holds, ``false_fn(*operands)`` otherwise.

    Mirrors ``torch.cond``. `numgrad.func.cond` is the same with the operands one by one.

    Parameters
    ----------
    pred, true_fn, false_fn
        As of `numgrad.func.cond`.
    operands : tuple or list of pytrees of tensors
        What the branch is called with.

    Returns
    -------
    What the branch returns.

    Raises
    ------
    RuntimeError
        As `numgrad.func.cond`; also if `operands` is neither a tuple nor a list.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([1.0, 2.0])
    >>> ng.cond(x.sum() > 2, lambda x: x + 1, lambda x: x - 1, (x,))
    tensor([2., 3.])
    """
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(
            "Expect operands to be a tuple of possibly nested dict/list/tuple that only consists "
            f"of tensor leaves, but got {operands}."
        )
    return cond(pred, true_fn, false_fn, *operands)


cond_of_operands.__name__ = cond_of_operands.__qualname__ = "cond"  # where people find it


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """Return what one of several functions gives: ``branches[index](*operands)``.

    Mirrors ``jax.lax.switch``: an index that is out of range means the first or the last one.

    Parameters
    ----------
    index : int or Tensor
        A tensor has one element and an integer dtype.
    branches : sequence of callable
        Return pytrees of tensors of the same structure, shapes and dtypes.
    *operands : pytrees of tensors
        What the branch is called with.

    Returns
    -------
    What the branch returns.

    Raises
    ------
    RuntimeError
        If `index` is no integer, there are no branches, or these return different structures,
        shapes or dtypes (see `cond`).

    Examples
    --------
    >>> import numgrad as ng
    >>> branches = [ng.sin, ng.cos, lambda x: x * x]
    >>> [ng.func.switch(i, branches, ng.tensor(3.0)).item() for i in (-1, 2, 7)]
    [0.14112000167369843, 9.0, 9.0]
    """
    branches = tuple(branches)
    if not branches:
        raise RuntimeError("switch: Expected at least one branch")
    for number, branch in enumerate(branches):
        check_callable("switch", **{f"branch {number}": branch})
    read_leaves(operands, "operand")
    trace = recorder()
    if trace is not None and isinstance(index, Tensor):
        _check_index(index)
        within = index.reshape(()).clamp(0, len(branches) - 1)
        flags: Any = [within == k for k in range(len(branches))]
        return _recorded(trace, branches, flags, operands, "switch")
    position = _position(index)
    return _run(branches, min(max(position, 0), len(branches) - 1), operands, "switch")


def _position(index: Any) -> int:
    if isinstance(index, (int, np.integer)) and not isinstance(index, bool):
        return int(index)
    _check_index(index)
    if is_traced(index):
        raise TraceError(
            f"{where_user_is()}switch goes by a traced index, which has no numbers while a "
            "function is traced, and is not compiled where forward-mode tangents are computed: use "
            "numgrad.func.jvp, or compute all branches, stack them, and take one by its index"
        )
    note_numbers(index._array)
    return int(index._array.reshape(-1)[0])


def _check_index(index: Any) -> None:
    if (
        not isinstance(index, Tensor)
        or index._array.size != 1
        or index._array.dtype.kind not in "iu"
    ):
        raise RuntimeError(
            "switch: Expected index to be int or single-element tensor of integers, but got "
            f"{index!r}."
        )


def _leaves_of(branch: Callable[..., Any], operands: Sequence[Any]) -> Leaves:
    return read_leaves(branch(*operands), "result")[0]


def _recorded(
    trace: Any,
    branches: Sequence[Callable[..., Any]],
    flags: Sequence[Tensor],
    operands: Sequence[Any],
    api: str,
) -> Any:
    """Record branches; what they return is found out first, from a run that is not kept."""
    with trace.body(), no_grad():
        found = [read_leaves(branch(*operands), "result") for branch in branches]
    for branch, other in zip(branches[1:], found[1:], strict=True):
        _check_alike(api, (branches[0], branch), found[0], other)
    leaves, spec = found[0]
    results = recorded_branches(
        trace,
        flags,
        [partial(_leaves_of, branch, operands) for branch in branches],
        leaves,
    )
    return pytree.unflatten(spec, results)


# What functions returned when they were branches: dtypes and shapes, and the structure.
_returned: weakref.WeakKeyDictionary[Any, tuple[Any, TreeSpec]] = weakref.WeakKeyDictionary()


def _run(
    branches: Sequence[Callable[..., Any]], position: int, operands: Sequence[Any], api: str
) -> Any:
    """Run a branch; where another one returned something else before, see whether it still does."""
    branch = branches[position]
    result = branch(*operands)
    leaves, spec = own = read_leaves(result, "result")
    found = (
        [None if each is None else (each._array.dtype, each._array.shape) for each in leaves],
        spec,
    )
    for other in branches:
        known = other is not branch and isinstance(other, FunctionType)
        if known and _returned.get(other, found) != found:
            _compare(api, (branch, other), own, operands)
    if isinstance(branch, FunctionType):
        _returned[branch] = found
    return result


def _compare(
    api: str,
    branches: tuple[Callable[..., Any], Callable[..., Any]],
    own: tuple[Leaves, TreeSpec],
    operands: Sequence[Any],
) -> None:
    """Raise if the branch that was not taken returns something else on the same operands."""
    other = branches[1]
    random = default_generator.snapshot()
    try:
        with no_grad():
            result = other(*operands)
    finally:
        default_generator.restore(random)
    _check_alike(api, branches, own, read_leaves(result, "result"))


def _check_alike(
    api: str,
    branches: tuple[Callable[..., Any], Callable[..., Any]],
    first: tuple[Leaves, TreeSpec],
    second: tuple[Leaves, TreeSpec],
) -> None:
    names = f"the result of {name_of(branches[0])}", f"the result of {name_of(branches[1])}"
    words = f"When merging the branches' output in {api}, they have to be alike."
    check_same(api, names, first, second, words)
