"""Pooling with norms: (sum of x^p)^(1/p) over windows, of one, two or three dims."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.ops.pointwise.activation import relu
from numgrad.ops.signatures.declared import declare
from numgrad.ops.spatial.pooling import POOLS

__all__ = ["NORM_POOLS"]

NORM_POOLS: dict[str, Callable[..., Any]] = {}


def _make(dims: int) -> None:
    name = f"lp_pool{dims}d"
    average, maximum = POOLS[f"avg_pool{dims}d"], POOLS[f"max_pool{dims}d"]
    size = ", ".join(["1", *["2"] * dims])

    def rule(
        input: Tensor, norm_type: Any, kernel_size: Any, stride: Any, ceil_mode: bool
    ) -> Tensor:
        kernel = (kernel_size,) * dims if isinstance(kernel_size, int) else tuple(kernel_size)
        if norm_type == math.inf:
            greatest: Tensor = maximum(abs(input), kernel, stride, 0, 1, ceil_mode)
            return greatest
        means = average(input**norm_type, kernel, stride, 0, ceil_mode)
        sums = (means.sign() * relu(abs(means))) * math.prod(kernel)
        result: Tensor = sums ** (1.0 / norm_type)
        return result

    rule.__name__ = rule.__qualname__ = name
    rule.__doc__ = f"""Return the p-norms of windows, signs kept: (sum of x^p)^(1/p).

    Windows that reach over the end count as if what they lack were the mean of what they have.
    The gradient follows from the powers and the means that it is made of.

    Parameters
    ----------
    input : tensor with {dims} dims behind the channels
    norm_type : float
        The p.
    kernel_size : int or tuple of int
        How large a window is.
    stride : int or tuple of int, optional
        How far windows are apart; if not given, they touch.
    ceil_mode
        Whether windows that reach over the end count, as long as they begin before it.

    >>> import numgrad as ng
    >>> ng.nn.functional.{name}(ng.ones({size}), 1.0, 2).flatten()
    tensor([{2**dims}.])
    """
    NORM_POOLS[name] = globals()[name] = declare(
        f"{name}(Tensor input, float norm_type, object kernel_size, object stride=None, "
        "bool ceil_mode=False)",
        function=False,
        method=False,
    )(rule)


for _dims in (1, 2, 3):
    _make(_dims)
