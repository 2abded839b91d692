"""Which steps of a program compiled code does by itself, without the interpreter."""

from __future__ import annotations

from math import prod

from numgrad.base.tuning import (
    INLINED_ELEMENTS,
    LOOP_PRODUCT_TERMS,
)
from numgrad.jit.emit.native_calls import native_call
from numgrad.jit.emit.native_draws import native_draw
from numgrad.jit.emit.program_source import Emitted
from numgrad.jit.ir.graph import Value
from numgrad.jit.lowering.draws import Drawing
from numgrad.jit.lowering.loops import Loop
from numgrad.jit.lowering.opaque_calls import Whole
from numgrad.jit.lowering.unit_vectors import Rows
from numgrad.jit.schedule.nests import Nest

__all__ = [
    "IN_REGISTERS",
    "calls_natively",
    "is_matrix_product",
    "is_native",
    "is_native_loop",
    "is_small",
    "is_small_product",
    "is_small_step",
    "is_written_down",
]


IN_REGISTERS = 64  # elements of an argument or result that is copied


INLINED_PRODUCT_TERMS = 256  # multiplications up to which a matrix product is written out


SEQUENTIAL_TERMS = 7  # terms up to which sums in it are added one after the other


def is_small(emitted: Emitted) -> bool:
    """Whether a call takes less than what LLVM would need to know to take it apart.

    Then the nests stand in the function itself, where it can.
    """
    is_all = all(isinstance(step, Nest) for step in emitted.plan.steps)
    return is_all and emitted.has_few(emitted.nests)


def is_matrix_product(value: Value) -> bool:
    """Whether a step multiplies matrices, one pair or a batch of them."""
    if value.operation != "call":
        return value.operation == "matmul"
    whole = value.attributes["primitive"]
    is_batch = isinstance(whole, Whole) and whole.name == "bmm"
    return is_batch and value.operands[0].dtype.kind in "fc"


def is_small_product(value: Value) -> bool:
    """Whether a matrix product takes less than a call.

    Of short sums there is one order, so those of `product` have the same bits.
    """
    is_product = value.operation == "matmul" and value.operands[0].shape[1] <= SEQUENTIAL_TERMS
    return is_product and 0 < _terms(value) <= INLINED_PRODUCT_TERMS


def is_small_step(value: Value) -> bool:
    """Whether a step is written out among the nests."""
    found = native_call(value)
    return is_small_product(value) or (found is not None and prod(found.batch) == 1)


def is_native_loop(emitted: Emitted) -> bool:
    """Whether a program is loops with bodies, and little around them that compiled code can't do.

    A dispatcher does all of that without the interpreter, in one call.
    """
    steps = [each for each in emitted.plan.steps if not isinstance(each, Nest)]
    primitives = [step.value.attributes.get("primitive") for step in steps]
    return any(isinstance(each, Loop) for each in primitives) and _is_native_program(emitted)


def calls_natively(emitted: Emitted) -> bool:
    """Whether a program calls primitives that have little to do, and compiled code does them all.

    They have the same bits there. Matrix products need not: BLAS rounds otherwise.
    """
    steps = [each for each in emitted.plan.steps if not isinstance(each, Nest)]
    is_product = any(is_matrix_product(step.value) for step in steps)
    return bool(steps) and not is_product and _is_native_program(emitted)


def _is_native_program(emitted: Emitted) -> bool:
    """Whether all that a program does is small, but for loops, and needs no interpreter."""
    graph = emitted.plan.graph
    steps = [each.value for each in emitted.plan.steps if not isinstance(each, Nest)]
    return (
        all(is_small_step(each) or _is_small_call(each) for each in steps)
        and all(
            is_written_down(value) and value not in graph.outputs
            if value.operation == "array"
            else is_native(value)
            for value in graph.values()
        )
        and emitted.has_few(emitted.nests)
    )


def is_written_down(value: Value) -> bool:
    """Whether an array is of few numbers that the function made: they are written down."""
    return bool(value.attributes["made"]) and 0 < prod(value.shape) <= IN_REGISTERS


def _is_small_call(value: Value) -> bool:
    """Whether a step is a loop, or draws few numbers, or has few matrices to do with."""
    primitive = value.attributes.get("primitive")
    if isinstance(primitive, Drawing):
        return prod(primitive.shape) <= INLINED_ELEMENTS
    found = native_call(value)
    return isinstance(primitive, Loop) or (
        found is not None and prod(found.batch) <= INLINED_ELEMENTS
    )


def is_native(value: Value) -> bool:
    """Whether compiled code computes a value without the interpreter."""
    if value.operation == "array":
        return False
    if is_matrix_product(value):
        left, right = (operand.shape for operand in value.operands)
        return 0 not in (*left, *right) and prod((*left[-2:], right[-1])) <= LOOP_PRODUCT_TERMS
    if value.operation != "call" or native_call(value) is not None:
        return True
    loop = value.attributes["primitive"]
    if isinstance(loop, Drawing):
        return native_draw(loop) is not None
    return isinstance(loop, Loop | Rows) and all(map(is_native, loop.graph.values()))


def _terms(product: Value) -> int:
    """Return how many multiplications a matrix product takes."""
    return prod(product.shape) * product.operands[0].shape[1]
