"""Branches: `cond` and `switch`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.base import pytree
from numgrad.base.pytree import TreeSpec
from numgrad.func.control.alike import Returned, compare_without_numbers
from numgrad.func.control.arguments import (
    Leaves,
    check_callable,
    check_same,
    name_of,
    read_leaves,
)
from numgrad.func.control.tracing import is_traced, is_true, read_predicate, recorder_of
from numgrad.graph.modes.state import modes
from numgrad.graph.recorder import TraceError, note_numbers
from numgrad.graph.tensor import Tensor
from numgrad.runtime.frames import where_user_is

__all__ = ["cond", "cond_of_operands", "switch"]


def cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any
) -> Any:
    """Return ``true_fn(*operands)`` if a condition holds, ``false_fn(*operands)`` otherwise.

    Mirrors ``jax.lax.cond``; `numgrad.cond` takes the operands as a tuple, as ``torch.cond`` does.
    Only the branch that is taken computes, so that a derivative is that of this branch.

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
        structures, shapes or dtypes. For a tensor `pred` the branch that is not taken runs, too,
        without numbers, once for operands and functions of a kind; where it asks for numbers, what
        it would return is not known. For a bool this is found out when both have been taken.

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
    words = "to be bool or single-element tensor of dtype bool"
    pred = read_predicate(pred, "cond", "pred", words)
    branches = _Branches("cond", (false_fn, true_fn), operands)
    recorded = recorder_of("switch")
    if recorded is not None and isinstance(pred, Tensor):
        return branches.recorded(recorded, pred)
    is_known = isinstance(pred, bool)
    return branches.run(int(is_true(pred, "cond", "pred")), is_known=is_known)


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
    whole = isinstance(index, (int, np.integer)) and not isinstance(index, bool)
    if not whole and not (
        isinstance(index, Tensor) and index._array.size == 1 and index._array.dtype.kind in "iu"
    ):
        raise RuntimeError(
            "switch: Expected index to be int or single-element tensor of integers, but got "
            f"{index!r}."
        )
    run = _Branches("switch", branches, operands)
    recorded = recorder_of("switch")
    if recorded is not None and not whole:
        return run.recorded(recorded, index)
    position = int(index) if whole else _position(index)
    return run.run(min(max(position, 0), len(branches) - 1), is_known=whole)


def _position(index: Tensor) -> int:
    if is_traced(index):
        if modes.dual is None:  # one of a batch, of which each has its own: that says so
            return int(index)
        raise TraceError(
            f"{where_user_is()}switch goes by a traced index, which has no numbers while a "
            "function is traced, and is not compiled where forward-mode tangents are computed: use "
            "numgrad.func.jvp, or compute all branches, stack them, and take one by its index"
        )
    note_numbers(index._array)
    return int(index._array.reshape(-1)[0])


class _Branches:
    """The branches of one call, with their operands."""

    def __init__(
        self, api: str, branches: Sequence[Callable[..., Any]], operands: Sequence[Any]
    ) -> None:
        self._api = api
        self._branches = branches
        self._operands = operands
        self._leaves, self._spec = read_leaves(tuple(operands), "operand")
        self._words = f"When merging the branches' output in {api}, they have to be alike."

    def run(self, position: int, *, is_known: bool) -> Any:
        """Run a branch, and see if the others would return the same.

        By a choice that `is_known` to Python, as an int is, PyTorch takes a branch and looks at no
        other: so only one that returned something else before is looked at.
        """
        branch = self._branches[position]
        result = branch(*self._operands)
        own = read_leaves(result, "result")
        if modes.trace is not None:  # which may be without numbers itself
            return result
        returned = Returned(self._branches, self._leaves, self._spec)
        found = returned.note(position, own)
        for other, function in enumerate(self._branches):
            before = found if other == position else returned.before(other)
            if before == found or (before is None and is_known):
                continue
            compare = functools.partial(self._compare, branch, own, function)
            compare_without_numbers(function, self._leaves, self._spec, compare)
            returned.note(other, own)
        return result

    def recorded(self, recorder: Callable[..., Any], index: Any) -> Any:
        """Have a recorder record all branches."""
        first: list[Any] = []

        def flat(branch: Callable[..., Any]) -> Callable[[Leaves], Leaves]:
            def run(leaves: Leaves) -> Leaves:
                result = branch(*pytree.unflatten(self._spec, leaves))
                own = read_leaves(result, "result")
                if first:
                    self._compare(first[0], first[1], branch, own)
                else:
                    first.extend((branch, own))
                return own[0]

            return run

        leaves = recorder(index, [flat(branch) for branch in self._branches], self._leaves)
        return pytree.unflatten(first[1][1], leaves)

    def _compare(
        self,
        branch: Callable[..., Any],
        own: tuple[Leaves, TreeSpec],
        other: Callable[..., Any],
        others: tuple[Leaves, TreeSpec],
    ) -> None:
        names = f"the result of {name_of(branch)}", f"the result of {name_of(other)}"
        check_same(self._api, names, own, others, self._words)
