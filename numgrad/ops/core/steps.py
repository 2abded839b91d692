"""What a call came to: the primitives that were applied, in order, noted while it runs.

A public function reads its arguments, checks them, and applies primitives. Which ones, with which
parameters, follows from what its tensors are and from the arguments as they were written, so the
next call of that kind can begin with the primitives. Rules of derivatives are such functions, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from numgrad.graph.modes import intercept, modes, stop_intercepting
from numgrad.graph.tensor import Tensor

__all__ = ["Step", "Steps", "Write", "forget_steps", "note_steps", "step_of"]


class Step(NamedTuple):
    """One application of a primitive.

    Attributes
    ----------
    primitive : Primitive
    operands : tuple
        Tensors, and numbers where the primitive takes some.
    parameters : dict
    outputs : tuple of Tensor
    run : callable
        What computed the arrays of the outputs from those of the operands.
    several : bool
        Whether that returns a sequence of arrays.
    read, written : tuple
        The arrays of the operands and of the outputs then: a rule may give a tensor another one.
    """

    primitive: Any
    operands: tuple[Any, ...]
    parameters: dict[str, Any]
    outputs: tuple[Tensor, ...]
    run: Callable[..., Any]
    several: bool
    read: tuple[Any, ...]
    written: tuple[Any, ...]


class Write(NamedTuple):
    """A result that was written into the first argument of a call.

    Attributes
    ----------
    stand_in : Tensor
        What stood for that argument in the steps: a tensor on its memory.
    result : Tensor
        What was written.
    enter : callable
        ``enter(view, node)`` makes a node the history of what a view is a view of.
    after : int
        How many steps came before. If others follow, the history is not that of the last one.
    """

    stand_in: Tensor
    result: Tensor
    enter: Callable[[Tensor, Any], None]
    after: int


def step_of(
    primitive: Any,
    operands: Sequence[Any],
    parameters: dict[str, Any],
    outputs: Sequence[Tensor],
    run: Callable[..., Any],
    several: bool = False,
) -> Step:
    """Return a step, with the arrays that tensors have now."""
    read = [each._array if isinstance(each, Tensor) else None for each in operands]
    written = [each._array for each in outputs]
    facts = (primitive, tuple(operands), parameters, tuple(outputs), run, several)
    return Step(*facts, tuple(read), tuple(written))


class Steps:
    """The steps of a call, as primitives note them.

    Attributes
    ----------
    steps : list of Step
    write : Write or None
        What the call wrote into its first argument.
    constants : list of Tensor
        What was made on the way, whatever the tensors hold.
    failed : bool
        Whether something was done that no step tells of.
    """

    __slots__ = ("_versions", "constants", "failed", "steps", "write")

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.write: Write | None = None
        self.constants: list[Tensor] = []
        self.failed = False
        self._versions: list[tuple[Any, Any]] = []

    def note(
        self,
        primitive: Any,
        operands: Sequence[Any],
        parameters: dict[str, Any],
        outputs: Sequence[Tensor],
        run: Callable[..., Any],
        several: bool = False,
    ) -> None:
        """Note that a primitive was applied."""
        operands, outputs = tuple(operands), tuple(outputs)
        if _holds_numbers(tuple(parameters.values())):  # others the next time
            self.failed = True
            return
        self.steps.append(step_of(primitive, operands, parameters, outputs, run, several))
        for tensor in (*operands, *outputs):
            if isinstance(tensor, Tensor):
                if type(tensor._counter) is not list:
                    self.failed = True  # memory without a version
                    return
                self._versions.append((tensor._counter, tensor._counter[0]))

    def note_write(
        self, stand_in: Tensor, result: Tensor, enter: Callable[[Tensor, Any], None]
    ) -> None:
        """Note that a result is about to be written; see `Write`."""
        if self.write is not None:
            self.failed = True
        self.write = Write(stand_in, result, enter, len(self.steps))

    def is_complete(self) -> bool:
        """Return whether the steps are all that was done: nothing was written to since."""
        return not self.failed and all(counter[0] == version for counter, version in self._versions)


def _holds_numbers(value: Any) -> bool:
    """Whether a parameter holds an array with dims, such as an index or a mask."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, (tuple, list)) and any(map(_holds_numbers, value))


def forget_steps() -> None:
    """Say that a call does what no step tells of, such as to warn: it is not to be remembered."""
    if modes.steps is not None:
        modes.steps.failed = True


def note_steps(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> tuple[Any, Steps]:
    """Call a function, and return its result and the steps that it took."""
    steps = Steps()
    before = modes.steps
    modes.steps = steps
    intercept(steps)
    try:
        return function(*arguments, **keywords), steps
    finally:
        stop_intercepting(steps)
        modes.steps = before
