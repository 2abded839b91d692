"""Helpers of the tests of custom Functions."""

from __future__ import annotations

from typing import Any

__all__ = ["function", "leaf", "square"]


def function(lib: Any, forward: Any, backward: Any = None, **attributes: Any) -> Any:
    """Return a Function called Fn of these static methods."""
    methods = {"forward": staticmethod(forward)}
    if backward is not None:
        methods["backward"] = staticmethod(backward)
    return type("Fn", (lib.autograd.Function,), {**methods, **attributes})


def leaf(lib: Any, *values: float) -> Any:
    """Return a vector of float64 that requires grad."""
    return lib.tensor(list(values), dtype=lib.float64, requires_grad=True)


def square(lib: Any) -> Any:
    """Return the Function of x * x."""

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * g * x

    return function(lib, forward, backward)
