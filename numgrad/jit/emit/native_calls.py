"""Calls of primitives that compiled code does without the interpreter: small matrices, written out.

What is done is declared with the primitive (`native` of `numgrad.ops.core.primitive.Primitive`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from numgrad.codegen.loops import (
    ZERO,
    Do,
    Expression,
    For,
    If,
    Load,
    Name,
    Number,
    Statement,
    call,
    combine,
    names,
    plus,
    times,
)
from numgrad.jit.ir.graph import Value
from numgrad.jit.lowering.opaque_calls import Whole
from numgrad.kernels.matrices.failures import WORDS
from numgrad.kernels.matrices.unrolled import Place, UnrolledCall

__all__ = ["native_call", "native_statements"]

(_RAISE_FAILED,) = names("numgrad.kernels.matrices.failures", "raise_failed")


def native_call(value: Value) -> UnrolledCall | None:
    """Return what compiled code does for a call; None if the interpreter does it."""
    whole = value.attributes.get("primitive")
    if not isinstance(whole, Whole) or whole.primitive.native is None or whole.order is not None:
        return None
    if len(value.operands) != whole.count:  # arrays among the parameters
        return None
    shapes = [operand.shape for operand in value.operands]
    return whole.primitive.native.call(
        shapes, [operand.dtype for operand in value.operands], whole.template
    )


def native_statements(
    found: UnrolledCall,
    operands: Sequence[tuple[str, int, Sequence[int]]],
    results: Mapping[int, str],
    prefix: str,
) -> list[Statement]:
    """Return what does a call for all matrices of a batch, and raises for those that fail.

    Parameters
    ----------
    found : UnrolledCall
    operands : sequence of tuple
        Of each the array that it is in, the position of its first element, and all its strides.
    results : mapping
        The arrays of the results that are wanted; that of what failed is, where it is looked at.
    prefix : str
        What names begin with.
    """
    indices = [f"{prefix}at{dim}" for dim in range(len(found.batch))]
    one: Expression = ZERO
    for index, length in zip(indices, found.batch, strict=True):
        one = plus(times(one, length), index) if one != ZERO else Name(index)
    places = [
        Place(
            array,
            plus(
                start, *[times(i, step) for i, step in zip(indices, strides, strict=False) if step]
            ),
            tuple(strides[len(indices) :]),
        )
        for array, start, strides in operands
    ]
    targets = {}
    for k, array in results.items():
        core = found.results[k].shape
        at = times(one, prod(core)) if one != ZERO else ZERO
        targets[k] = Place(array, at, tuple([prod(core[d + 1 :]) for d in range(len(core))]))
    body = found.one(places, targets, prefix)
    for index, length in reversed(list(zip(indices, found.batch, strict=True))):
        body = [For(index, ZERO, Number(length), body)]
    if found.checked is None or found.failed is None:
        return body
    which = list(WORDS).index(found.checked)
    failed = results[found.failed]
    if not found.batch:
        error = Do(call(_RAISE_FAILED, failed, -1, which))
        return [*body, If(combine("!=", Load(Name(failed), ZERO), ZERO), [error])]
    return [*body, Do(call(_RAISE_FAILED, failed, prod(found.batch), which))]
