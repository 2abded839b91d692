"""The `jit` decorator."""

from __future__ import annotations

import functools
import gc
import inspect
import sys
from collections.abc import Callable, Iterable
from typing import Any

from numgrad.ops.core.catalogue import replaced

__all__ = ["jit"]


def jit(
    function: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
) -> Any:
    """Return a function that does the same, compiled.

    The function is run once on tensors without numbers, which records what it computes; that is
    simplified, fused into few loops, and compiled by Numba. It is traced again for arguments of
    other shapes or dtypes (which takes milliseconds), and compiled again where the structure of the
    computation differs. Mirrors ``jax.jit``.

    Parameters
    ----------
    function : callable
        Of tensors, NumPy arrays and numbers in any nesting of tuples, lists, dicts, named tuples
        and dataclasses. Arrays and floats enter without their numbers; anything else is static: a
        part of what the function is compiled for.
    static_argnums, static_argnames : ints, strs
        Arguments that are static in any case.

    Returns
    -------
    Jitted
        It gives tensors where the function gives tensors. If arguments require grad, so do results,
        and their derivatives, of any order, are compiled too.

    Raises
    ------
    TraceError
        If the function asks a traced tensor for its numbers (branches on it, say), or writes to a
        tensor that it did not make. The message tells where.
    TypeError
        If `function` is none, or is an async one.
    ValueError
        If there are no such static arguments.

    Examples
    --------
    >>> import numgrad as ng
    >>> @ng.jit
    ... def energy(x):
    ...     return (x.sin() * x).sum()
    >>> x = ng.tensor([1.0, 2.0], requires_grad=True)
    >>> energy(x).backward()
    >>> x.grad
    tensor([1.3818, 0.0770])
    """
    if function is None:
        return functools.partial(
            jit, static_argnums=static_argnums, static_argnames=static_argnames
        )
    if not callable(function):
        raise TypeError(f"jit: expected a function, but got {type(function).__name__}")
    if _is_asynchronous(function):
        raise TypeError(
            "jit: expected a function that returns its result, but got an async one, whose code "
            "does not run when it is called: compile the functions that it calls"
        )
    # The compiler is an eighth of all there is to import: who compiles nothing does without.
    from numgrad.jit.front.api import Jitted

    return Jitted(function, static_argnums, static_argnames)


def _is_asynchronous(function: Any) -> bool:
    """Whether a call gives a coroutine or an asynchronous generator."""
    while isinstance(function, functools.partial):
        function = function.func
    # Not whether there is a `__call__` is asked, but what it is.
    called = (function, getattr(type(function), "__call__", None))  # noqa: B004
    kinds = (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    return any(is_kind(each) for is_kind in kinds for each in called)


def _forget_traces() -> None:
    """Let every compiled function be traced anew: an operation was declared anew.

    That happens in notebooks, once in a while, so what there is is found then, and no list is kept.
    """
    api = sys.modules.get("numgrad.jit.front.api")  # if anything was compiled
    if api is not None:
        for found in gc.get_objects():
            if issubclass(type(found), api.Jitted):
                found.cache_clear()


replaced.append(_forget_traces)
