"""Refuse operands of 16 bits, which PyTorch has no kernels for in most of its special functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numgrad.base.halves import HALVES
from numgrad.graph.tensor import Tensor

__all__ = ["no_halves"]


def no_halves(kernel: str) -> Callable[..., None]:
    """Return a check that raises if the operands are computed with in float16 or bfloat16."""

    def check(*operands: Any) -> None:
        floating = [
            each.dtype
            for each in operands
            if isinstance(each, Tensor) and each.dtype.is_floating_point
        ]
        if floating and all(dtype.numpy in HALVES for dtype in floating):
            raise NotImplementedError(
                f"\"{kernel}\" not implemented for '{floating[0].scalar_name}'"
            )

    return check
