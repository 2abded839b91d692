"""What LLVM is asked to do with loops: use the widest registers, interleave, leave the rest short.

For processors with AVX-512, LLVM by default stays with half of a register, because early ones
lowered their clock for the whole. Loops that compute much with each number run up to twice as fast
with all of it.

In such a loop most instructions wait for the one before: a polynomial is a chain. A processor looks
ahead, but not as far as the next round. With the instructions of several rounds in turns it finds
work meanwhile, and loops run up to 1.8 times as fast; by itself LLVM does so for short ones only.

Of a vectorised loop a rest is left, of fewer elements than a vector has, which LLVM would write out
eight times over: that took it as long as the loop, and nothing was faster for it.

Where each turn of a loop waits for the one before, two or three numbers are not worth a vector:
what it takes to put them together and apart again is added to each turn. LLVM counts instructions,
not how long they wait for each other, and would do it: leaps of a sampler took 1.15 times as long.
Four numbers are worth it: a Kalman filter takes .65 of the time.

A loop over rows of up to eight numbers may load all rows of its turns at once, and take each column
out of that. What LLVM 22 makes of three registers of 512 bits so is wrong for AVX-512: of
``x @ x.T`` of 4 rows of 6 floats of 64 bits one element was another one. So it loads no more than
four columns at once, which fit into two; in others' code of the process, too, as it has no wish for
a single loop.
"""

from __future__ import annotations

import os
from typing import Any

from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from numgrad.base.tuning import INTERLEAVED_ROUNDS

__all__ = ["VECTORISES_STRAIGHT_CODE", "advise", "use_no_vectors", "use_wide_vectors"]

#: Whether straight-line code becomes vector instructions.
VECTORISES_STRAIGHT_CODE = os.environ.get("NUMBA_SLP_VECTORIZE") != "0"


def _limit_columns() -> None:
    """Have no more than four columns loaded at once; LLVM ends a process that says so twice."""
    if not hasattr(binding, "numgrad_limits_columns"):
        binding.set_option("numgrad", "-max-interleave-group-factor=4")
        binding.numgrad_limits_columns = True


_limit_columns()

_ATTRIBUTE = '"prefer-vector-width"="512"'
_INTEGER = ir.IntType(32)


def _use_wide_vectors(typing_context: Any) -> Any:
    """Make the loops of the function that calls this use the widest vectors there are."""

    def lower(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        # llvmlite checks names against LLVM's own attributes; those of a target are free strings.
        attributes: ir.AttributeSet = builder.function.attributes
        set.add(attributes, _ATTRIBUTE)
        return context.get_dummy_value()

    return types.void(), lower


use_wide_vectors: Any = intrinsic(_use_wide_vectors)


def _use_no_vectors(typing_context: Any) -> Any:
    """Leave the numbers of the function that calls this alone, each in a register of its own."""

    def lower(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        # The first keeps LLVM from vectors; what a function is built into would take it over.
        for attribute in ("noimplicitfloat", "noinline"):
            builder.function.attributes.add(attribute)
        return context.get_dummy_value()

    return types.void(), lower


use_no_vectors: Any = intrinsic(_use_no_vectors)


def advise(module: ir.Module) -> None:
    """Tell LLVM what to do with each loop.

    In functions that use wide vectors it computes several rounds in turns. What is left when a loop
    was vectorised is not unrolled.

    Parameters
    ----------
    module : llvmlite.ir.Module
        Changed in place: a jump back is where LLVM looks for wishes that concern a loop.
    """
    interleaved = rolled = None
    for function in module.functions:
        is_wide = _ATTRIBUTE in function.attributes
        positions = {id(block): position for position, block in enumerate(function.blocks)}
        for position, block in enumerate(function.blocks):
            jump = block.terminator
            if not isinstance(jump, ir.Branch) or positions[id(jump.operands[0])] > position:
                continue
            if rolled is None:
                rest = [
                    module.add_metadata(["llvm.loop.isvectorized", ir.Constant(_INTEGER, 1)]),
                    module.add_metadata(["llvm.loop.unroll.disable"]),
                ]
                rolled = module.add_metadata(["llvm.loop.vectorize.followup_epilogue", *rest])
            wishes = [rolled]
            if is_wide:
                if interleaved is None:
                    count = ir.Constant(_INTEGER, INTERLEAVED_ROUNDS)
                    interleaved = module.add_metadata(["llvm.loop.interleave.count", count])
                wishes.append(interleaved)
            # The first operand, the node itself, tells loops apart; the number lets llvmlite do so.
            loop = module.add_metadata([*wishes, ir.Constant(_INTEGER, len(module.metadata))])
            loop.operands = (loop, *wishes)
            jump.set_metadata("llvm.loop", loop)
