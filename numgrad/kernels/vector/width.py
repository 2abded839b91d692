"""Let LLVM use the widest vectors that the processor has, in one function.

For processors with AVX-512, LLVM by default stays with half of a register, because early ones
lowered their clock for the whole. Loops that compute much with each number run up to twice as fast
with all of it.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

__all__ = ["use_wide_vectors"]

_ATTRIBUTE = '"prefer-vector-width"="512"'


def _use_wide_vectors(typing_context: Any) -> Any:
    """Make the loops of the function that calls this use the widest vectors there are."""

    def lower(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        # llvmlite checks names against LLVM's own attributes; those of a target are free strings.
        attributes: ir.AttributeSet = builder.function.attributes
        set.add(attributes, _ATTRIBUTE)
        return context.get_dummy_value()

    return types.void(), lower


use_wide_vectors: Any = intrinsic(_use_wide_vectors)
