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
from numgrad.graph.saved_tensors import pack_saved
from numgrad.graph.tensor import Tensor

__all__ = ["Step", "Steps", "forget_steps", "note_steps", "step_of"]


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
    """The steps of a call, as primitives note them."""

    __slots__ = ("_versions", "constants", "failed", "packing", "steps")

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.constants: list[Tensor] = []  # made on the way, whatever the tensors hold
        self.packing: list[tuple[Any, Any]] = []  # nodes and what they saved, for hooks
        self.failed = False  # whether something was done that no step tells of
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
                self._versions.append((tensor._counter, _version_of(tensor._counter)))

    def pack(self) -> None:
        """Hand what was saved on the way to hooks, now that programs are made of it."""
        for node, tensors in self.packing:
            pack_saved(node, tensors)

    def is_complete(self) -> bool:
        """Return whether the steps are all that was done: nothing was written to since."""
        return not self.failed and all(
            _version_of(counter) == version for counter, version in self._versions
        )


def _version_of(counter: list[Any]) -> Any:
    """Return how often memory was written to; an inference tensor's, too, which has no version."""
    return list.__getitem__(counter, 0)


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
