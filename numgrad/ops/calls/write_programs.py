"""Straight-line Python for in-place calls: compute, record, write, count the write, go on from it.

The steps are those of the function on a tensor that stands in for the one that is written to
(`numgrad.ops.mutation.inplace`). Nodes are made before the write, while versions are those of what
they save; what they save of the tensor itself is a copy, or what it will hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from numgrad.base.float_errors import silent
from numgrad.graph.tensor import Tensor, move_retained
from numgrad.ops.calls.node_source import define_lines, pack_lines
from numgrad.ops.calls.programs import CallWriter, Value, default_dtype_lines
from numgrad.ops.calls.steps import Step, Steps

__all__ = ["compile_write"]


class _WriteWriter(CallWriter):
    """Writes the source of a call that puts its result in the place of its first argument."""

    def __init__(
        self, arguments: Sequence[Any], steps: Steps, result: Tensor, itself: Sequence[str]
    ) -> None:
        super().__init__(arguments, steps, ())
        self.itself = itself  # the names of arguments that are what is written to
        self.written = arguments[0]
        self.stand_in = self.values[id(arguments[0])]
        written = arguments[0]._array
        same = [each for each in arguments if isinstance(each, Tensor) and each._array is written]
        if len(same) == 1 + len(itself):  # what was read of these was read of what is written to
            self.holders[id(written)] = self.stand_in
        self.result = result
        self.dtype = arguments[0]._array.dtype
        self.copied = False  # whether what the tensor held is
        self.write = ""  # what writes the result
        # Only the step that the result comes from takes what is written to.
        taking = [any(each is arguments[0] for each in step.operands) for step in steps.steps]
        self.alone = sum(taking) == 1 and taking[-1]

    def places(self, node: Any) -> Any:
        """Return what a node saves, without what is kept beside: that may be overwritten."""
        return node.call.saved_places[: len(node.saved_edges())]

    def _detached(self, tensor: Tensor, array: str) -> Value | None:
        """Return what a tensor is that shares memory; not of what is about to be overwritten."""
        if tensor._counter is self.written._counter:
            return None
        return super()._detached(tensor, array)

    def given(self, value: Value) -> str:
        is_written = value is self.stand_in or value.tensor in self.itself
        return "" if is_written else super().given(value)

    def _compute(self, number: int, step: Step, arguments: Sequence[str]) -> None:
        writes = step.primitive.writes
        if writes is not None and self.alone and step.outputs[0] is self.result:
            fixed = {k: v for k, v in step.parameters.items() if k not in step.numbers}
            self.namespace["writes"] = partial(writes, **fixed) if fixed else writes
            self.write = f"writes({', '.join(arguments)})"
            return
        super()._compute(number, step, arguments)
        for index, output in enumerate(step.outputs):
            if output is self.result:
                self.assign(f"x{number}_{index}")

    def assign(self, array: str) -> None:
        """Note that an array is what is written."""
        self.write = f"array_t0[...] = {array}"
        if self.result._array.dtype is not self.dtype:
            self.namespace["assign"] = _assign
            self.write = f"assign(array_t0, {array})"

    def _saved(self, value: Value) -> str:
        if value is self.stand_in:
            if not self.copied:
                self.lines.append("copied = array_t0.copy('K')")
            self.copied = True
            return "copied, [0], 0"
        if value is self.values.get(id(self.result)):
            counter = self.part(self.stand_in, "counter")
            return f"array_t0, {counter}, {counter}[0] + 1"
        return super()._saved(value)


def compile_write(
    arguments: Sequence[Any],
    steps: Steps,
    in_order: Sequence[int] | None,
    default_dtype: bool = False,
) -> Callable[..., Any] | None:
    """Return a function of the arguments that does what a call in place did; None if there is none.

    Parameters
    ----------
    arguments : sequence
        The tensor that was written to, and what else the call was given.
    steps : Steps
        What was applied to these, and what was written.
    in_order, default_dtype
        As of `compile_call`.
    """
    write = steps.write
    if write is None or write.after != len(steps.steps):
        return None
    if not steps.is_complete(arguments[0]._counter):
        return None
    enter = None if arguments[0]._base is None else write.enter
    others = [f"t{at}" for at, each in enumerate(arguments) if at and each is arguments[0]]
    arguments, result = (write.stand_in, *arguments[1:]), write.result
    if any(step.primitive.view for step in steps.steps):
        return None
    taken = {id(each) for step in steps.steps for each in (*step.operands, *step.read)}
    tensors = [each for each in arguments[1:] if isinstance(each, Tensor)]
    if any(id(each) not in taken and id(each._array) not in taken for each in tensors):
        return None  # it went into parameters
    writer = _WriteWriter(arguments, steps, result, others)
    names = writer.take_in_order(arguments, in_order)
    if names is not None:
        writer.values[-1] = writer.stand_in
    writer.part(writer.stand_in, "array")
    for number, step in enumerate(steps.steps):
        if not writer.step(number, step, names):
            return None
    value = writer.values.get(id(result)) or writer.made(result)
    if value is None or value.is_argument:
        return None
    if not writer.write:  # it was made of no tensor
        writer.assign(value.array)
    counter = writer.part(writer.stand_in, "counter")
    writer.lines += [writer.write, f"{counter}[0] += 1"]
    if value.edge is not None:
        node, output = value.edge
        if enter is not None:
            writer.namespace["enter"] = enter
            writer.lines.append(f"enter(t0, {node})")
        else:
            writer.namespace["move_retained"] = move_retained
            made: Any = result._edge
            writer.namespace["written"] = [made[0].operation_name()]
            writer.lines += [
                f"edge = ({node}, {output})",
                "if t0._retains_grad: move_retained(t0, t0._edge, edge)",
                "t0._edge = edge",
                f"{counter}[1:2] = written",
            ]
    lines = default_dtype_lines(writer.namespace) if default_dtype else []
    lines += [*writer.lines, *pack_lines(writer.saved), "return t0"]
    parameters = ", ".join([f"t{position}" for position in range(len(arguments))])
    return define_lines("write", parameters, lines, writer.namespace)


@silent
def _assign(target: Any, values: Any) -> None:
    """Write values of another dtype."""
    target[...] = values
