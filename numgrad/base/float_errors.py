"""Silence NumPy's floating point warnings while kernels run.

An overflow, or nan from infinities, is a result, as in PyTorch: nobody asked NumPy for a word about
it. What our kernels compute never gives one. Where NumPy itself computes (a product of matrices, a
cast), that happens between `silence` and `restore`, or in a function that is `silent`: the user's
own settings (``numpy.seterr``) neither change nor matter.

This is what ``numpy.errstate(all="ignore")`` does, for a fifth of its price. The settings are in a
context variable (from NumPy 2 on), and which one it is shows when they change.
"""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

__all__ = ["restore", "silence", "silent"]

F = TypeVar("F", bound=Callable[..., Any])


def _ways() -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    """Return what ignores all errors, and what takes its result and makes that undone."""
    before = contextvars.copy_context()
    with np.errstate(all="ignore"):
        inside = contextvars.copy_context()
    changed = [
        variable
        for variable in inside
        if variable not in before or before[variable] is not inside[variable]
    ]
    if len(changed) != 1:  # NumPy 1 keeps the settings elsewhere
        return (lambda: np.seterr(all="ignore")), (lambda settings: np.seterr(**settings))
    (variable,) = changed
    return functools.partial(variable.set, inside[variable]), variable.reset


silence, restore = _ways()


def silent(function: F) -> F:
    """Make a function of arrays one in which NumPy has nothing to say; a decorator.

    Examples
    --------
    >>> silent(np.multiply)(np.float64(1e308), 10.0)
    np.float64(inf)
    """

    @functools.wraps(function)
    def run(*arrays: Any, **parameters: Any) -> Any:
        before = silence()
        try:
            return function(*arrays, **parameters)
        finally:
            restore(before)

    return run  # type: ignore[return-value]
