"""Custom Functions: operations whose derivative the user writes."""

from numgrad.autograd.function.function import (
    Function,
    FunctionCtx,
    InplaceFunction,
    once_differentiable,
)

__all__ = ["Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]
