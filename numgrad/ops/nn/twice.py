"""Functions of torch itself that nn.functional has with other arguments: declared of the latter."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numgrad.ops.signatures.declared import declare

__all__ = ["declare_again", "rule_of"]


def rule_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what a declared function hands its arguments to."""
    rule: Callable[..., Any] = function.__wrapped__  # type: ignore[attr-defined]
    return rule


def declare_again(
    function: Callable[..., Any],
    *signatures: str,
    rule: Callable[..., Any],
    example: str,
    dispatched: bool = True,
    docstring: str | None = None,
) -> None:
    """Declare the function of torch itself that has the name of one of nn.functional.

    Its docstring is the other's, but for the example and for parameters that it has not.

    Parameters
    ----------
    function : callable
        That of nn.functional.
    *signatures : str
    rule : callable
        What is computed; its parameters that the signatures have not are None.
    example : str
        Lines that go on after the import.
    dispatched : bool
        As of `declare`.
    docstring : str, optional
        In place of the other's.
    """

    @functools.wraps(rule)
    def own(*arguments: Any) -> Any:
        return rule(*arguments)

    text = (docstring or rule_of(function).__doc__ or "").partition("    >>> ")[0]
    own.__name__ = own.__qualname__ = f"_{function.__name__}"
    own.__doc__ = f"{text}    >>> import numgrad as ng{example}\n    "
    declare(*signatures, method=False, dispatched=dispatched)(own)
