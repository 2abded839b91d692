"""Evaluate an expression in both libraries, and compare what comes out of it, errors included."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np

import numgrad as ng

# Here PyTorch goes on with all of its signatures; ours says in one sentence what is taken.
PARSER = "received an invalid combination of arguments"


def outcome(module: Any, expression: str, **others: Any) -> tuple[Any, list[str]]:
    """Return what `expression` gives with `torch` as `module`, or its error; and the warnings."""
    names = {"torch": module, "np": np, "inf": np.inf, "nan": np.nan, **others}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = described(eval(expression, names), module)
        except Exception as error:
            text = str(error)
            if PARSER in text:
                text = PARSER
            # PyTorch words a missing argument in its own way; ours is Python's.
            text = re.sub(r"positional arguments?: [\"'](\w+)[\"']", r"\1", text)
            result = (type(error).__name__, text)
    # What PyTorch adds to a warning is where in its source it comes from.
    said = [re.sub(r" \(Triggered internally.*", "", str(warning.message)) for warning in caught]
    return result, said


def described(value: Any, module: Any) -> Any:
    """Return all that can be compared of a result."""
    if isinstance(value, module.Tensor):
        detached = value.detach()
        numbers = detached.resolve_conj() if hasattr(detached, "resolve_conj") else detached
        return (
            repr(value.dtype),
            tuple(value.shape),
            repr(numbers.numpy().tolist()),
            value.requires_grad,
            value.grad_fn.name() if value.grad_fn is not None else None,
        )
    if isinstance(value, (tuple, list)):
        return [described(part, module) for part in value]
    return repr(value)


def check_same(torch: Any, expression: str) -> None:
    """Assert that an expression has the same outcome in both libraries, warnings included."""
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        theirs = outcome(torch, expression)
    finally:
        torch.set_warn_always(always)
    ours = outcome(ng, expression)
    assert ours == theirs, f"\nours:    {ours}\nPyTorch: {theirs}"
