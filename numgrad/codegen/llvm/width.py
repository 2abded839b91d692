"""Vector width and interleaving: let LLVM use the widest registers, in one function.

For processors with AVX-512, LLVM by default stays with half of a register, because early ones
lowered their clock for the whole. Loops that compute much with each number run up to twice as fast
with all of it.

In such a loop most instructions wait for the one before: a polynomial is a chain. A processor looks
ahead, but not as far as the next round. With the instructions of several rounds in turns it finds
work meanwhile, and loops run up to 1.8 times as fast; by itself LLVM does so for short ones only.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from numgrad.base.tuning import INTERLEAVED_ROUNDS

__all__ = ["interleave", "use_wide_vectors"]

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


def interleave(module: ir.Module) -> None:
    """Ask LLVM to compute several rounds in turns, in each loop of functions that use wide vectors.

    Parameters
    ----------
    module : llvmlite.ir.Module
        Changed in place: a jump back is where LLVM looks for wishes that concern a loop.
    """
    hint = None
    for function in module.functions:
        if _ATTRIBUTE not in function.attributes:
            continue
        positions = {id(block): position for position, block in enumerate(function.blocks)}
        for position, block in enumerate(function.blocks):
            jump = block.terminator
            if not isinstance(jump, ir.Branch) or positions[id(jump.operands[0])] > position:
                continue
            if hint is None:
                count = ir.Constant(ir.IntType(32), INTERLEAVED_ROUNDS)
                hint = module.add_metadata(["llvm.loop.interleave.count", count])
            # The first operand, the node itself, tells loops apart; the number lets llvmlite do so.
            number = ir.Constant(ir.IntType(32), len(module.metadata))
            loop = module.add_metadata([hint, number])
            loop.operands = (loop, hint)
            jump.set_metadata("llvm.loop", loop)
