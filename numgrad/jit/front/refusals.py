"""What is said when a traced function asks for numbers, which there are none of."""

from __future__ import annotations

from numgrad.base.dtypes import dtype as Dtype
from numgrad.jit.advice.advice import advice_for
from numgrad.jit.ir.graph import Value
from numgrad.runtime.frames import user_frame

__all__ = ["depends_on_arguments", "words_of_refusal"]

_WAYS = {
    "a truth value": "branch with where(condition, a, b), or on values that are not "
    "traced (shapes, or arguments named in static_argnames)",
    "its numbers": "where it is an index, take a list or a tensor from outside; where it "
    "is a mask, where(mask, a, b); and else compute with tensors",
}


def words_of_refusal(what: str, constant: bool, asked: Dtype | None = None) -> str:
    """Return what is wrong with asking a tensor for something; a constant is of no argument.

    `asked` is the dtype of the tensor.
    """
    if what == "its address":
        return (
            "this asks a traced tensor for its address, but while a function is traced tensors are "
            "not in memory: ask outside, and pass what follows from it as a static argument"
        )
    if constant:
        return (
            f"this asks a traced tensor for {what}. No argument goes into it, but while a "
            "function is traced nothing is computed, so that it has no numbers: compute it "
            "outside, and pass it as an argument, or compute with the numbers of what is from "
            "outside (c.tolist(), c.numpy().sum())"
        )
    asks = what in ("a truth value", "a Python number")
    advice = advice_for(user_frame(), asked, what == "a truth value") if asks else ""
    return (
        f"this asks a traced tensor for {what}, but while a function is traced tensors have no "
        f"numbers: {_WAYS.get(what, 'compute with tensors, and ask for numbers outside')}"
        f"{advice}"
    )


def depends_on_arguments(value: Value) -> bool:
    """Return whether an argument goes into a value."""
    seen: set[Value] = set()
    todo = [value]
    while todo:
        each = todo.pop()
        if each.operation == "input":
            return True
        if each not in seen:
            seen.add(each)
            todo += each.operands
    return False
