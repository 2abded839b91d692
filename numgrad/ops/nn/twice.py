"""Functions declared of others: of torch itself, of those of nn.functional; in place, of others."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numgrad.ops.signatures.declared import declare

__all__ = ["declare_again", "declare_in_place", "rule_of"]


def rule_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what a declared function hands its arguments to."""
    rule: Callable[..., Any] = function.__wrapped__  # type: ignore[attr-defined]
    return rule


def declare_again(
    function: Callable[..., Any],
    *signatures: str,
    rule: Callable[..., Any] | None = None,
    example: str,
    dispatched: bool = True,
    docstring: str | None = None,
) -> Callable[..., Any]:
    """Declare the function of torch itself that has the name of one of nn.functional.

    Its docstring is the other's, but for the example and for parameters that it has not.

    Parameters
    ----------
    function : callable
        That of nn.functional.
    *signatures : str
    rule : callable, optional
        What is computed, if that is not the same; its parameters that the signatures have not are
        None.
    example : str
        Lines that go on after the import.
    dispatched : bool
        As of `declare`.
    docstring : str, optional
        In place of the other's.
    """
    computed = rule or rule_of(function)

    @functools.wraps(computed)
    def own(*arguments: Any) -> Any:
        return computed(*arguments)

    text = (docstring or rule_of(function).__doc__ or "").partition("    >>> ")[0]
    own.__name__ = own.__qualname__ = f"_{function.__name__}"
    own.__doc__ = f"{text}    >>> import numgrad as ng{example}\n    "
    return declare(*signatures, method=False, dispatched=dispatched)(own)


def declare_in_place(
    function: Callable[..., Any], signature: str, example: str, *, public: bool = False
) -> Callable[..., Any]:
    """Declare what a function of nn.functional does with ``inplace``, under its name with a ``_``.

    Parameters
    ----------
    function : callable
    signature : str
    example : str
        Lines that go on after the import.
    public : bool
        Whether torch itself has it.
    """
    rule = rule_of(function)
    at = rule.__code__.co_varnames.index("inplace")

    @functools.wraps(rule)
    def own(*arguments: Any) -> Any:
        return rule(*arguments[:at], True, *arguments[at + 1 :])

    name = function.__name__
    own.__name__ = own.__qualname__ = f"_{name}_" if public else f"{name}_"
    own.__doc__ = (
        f"Write `{name}` of the input into it, and return it.\n\n"
        f"    >>> import numgrad as ng{example}\n    "
    )
    return declare(signature, function=public, method=False)(own)
