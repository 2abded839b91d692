"""Samples: calls at which tests differentiate a primitive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.graph.tensor import Tensor, wrap
from numgrad.ops.core.primitive import CATALOGUE
from numgrad.ops.core.registry import FUNCTIONS

__all__ = ["operation", "sample"]


def sample(
    function: str | Callable[..., Any],
    size: tuple[int, ...],
    /,
    *,
    low: float = -3,
    high: float = 3,
    distinct: bool = False,
    zeros: Sequence[int] = (),
    **keywords: Any,
) -> Callable[..., Any]:
    """Return the sample that calls a function with a tensor of a size and keyword arguments.

    Parameters
    ----------
    function : str or callable
        The name of a public function or of a primitive, which may be defined later; or a function.
    size : tuple of int
        The shape of its tensor.
    low, high, distinct
        Where the numbers come from, and whether all of them differ by some margin.
    zeros : sequence of int
        Which elements, in C order, to multiply by 0.
    **keywords
        Arguments of the function.
    """
    mask = np.ones(size)
    mask.reshape(-1)[list(zeros)] = 0

    def called(input: Tensor, **arguments: Any) -> Any:
        return operation(function)(
            operation("mul")(input, wrap(mask)) if zeros else input, **arguments
        )

    def make_sample(
        make: Callable[..., Any],
    ) -> tuple[Callable[..., Any], list[Any], dict[str, Any]]:
        return called, [make(*size, low=low, high=high, distinct=distinct)], keywords

    return make_sample


def operation(function: str | Callable[..., Any]) -> Callable[..., Any]:
    """Return a public function or what applies a primitive, of its name; a function as it is."""
    if not isinstance(function, str):
        return function
    found: Callable[..., Any] = FUNCTIONS.find(function) or CATALOGUE[function].apply
    return found
