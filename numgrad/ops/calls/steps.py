"""What a call came to: the primitives that were applied, in order, noted while it runs.

A public function reads its arguments, checks them, and applies primitives. Which ones, with which
parameters, follows from what its tensors are and from the arguments as they were written, so the
next call of that kind can begin with the primitives. Rules of derivatives are such functions, too.

An index or a mask is no operand of its primitive, which gets an array of positions that were
checked, among its parameters. What makes such an array of a tensor's is a step as well
(`read_array`), so that the next call does it with the numbers that are there then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from numgrad.graph.modes.state import intercept, interceptors, modes, stop_intercepting
from numgrad.graph.saved_tensors import pack_saved
from numgrad.graph.tensor import Tensor

__all__ = [
    "READING",
    "Step",
    "Steps",
    "Write",
    "arrays_in",
    "forget_steps",
    "made_array",
    "note_steps",
    "read_array",
    "step_of",
]


class _Reading:
    """Stands for the primitive of a step that reads an array, or makes one: there is none."""

    view = False
    writes = named = None


READING = _Reading()


class Step(NamedTuple):
    """One application of a primitive, or what was made of an array or of nothing (`READING`).

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
    numbers : tuple of str
        The parameters that hold arrays which were read; `run` takes them by name.
    held : tuple of Tensor
        The indices and masks that these came from, which a node saves, too.
    """

    primitive: Any
    operands: tuple[Any, ...]
    parameters: dict[str, Any]
    outputs: tuple[Tensor, ...]
    run: Callable[..., Any]
    several: bool
    read: tuple[Any, ...]
    written: tuple[Any, ...]
    numbers: tuple[str, ...] = ()
    held: tuple[Tensor, ...] = ()


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

    Parameters
    ----------
    known : sequence of array
        Arrays in parameters that the steps begin with.
    counted : sequence of array
        Of all that they begin with, what has a shape that follows from numbers, or gives results
        of such shapes.

    Attributes
    ----------
    steps : list of Step
    write : Write or None
        What the call wrote into its first argument.
    constants : list of Tensor
        What was made on the way, whatever the tensors hold.
    counted : dict
        By their ids, the arrays whose shapes follow from numbers.
    packing : list
        Nodes and what they saved, which hooks are still to be handed.
    failed : bool
        Whether something was done that no step tells of.
    """

    __slots__ = (
        "_known",
        "_versions",
        "constants",
        "counted",
        "failed",
        "packing",
        "steps",
        "write",
    )

    def __init__(self, known: Sequence[Any] = (), counted: Sequence[Any] = ()) -> None:
        self.steps: list[Step] = []
        self.write: Write | None = None
        self._known = {id(array): array for array in known}  # which keeps them, and their ids
        self.counted = {id(array): array for array in counted}
        self.constants: list[Tensor] = []
        self.failed = False
        self.packing: list[tuple[Any, Any]] = []
        self._versions: list[tuple[Any, Any]] = []

    def note(
        self,
        primitive: Any,
        operands: Sequence[Any],
        parameters: dict[str, Any],
        outputs: Sequence[Tensor],
        run: Callable[..., Any],
        several: bool = False,
        held: Sequence[Tensor] = (),
    ) -> None:
        """Note that a primitive was applied."""
        operands, outputs = tuple(operands), tuple(outputs)
        numbers = self.numbers_in(parameters)
        step = step_of(primitive, operands, parameters, outputs, run, several)
        self.steps.append(step._replace(numbers=numbers, held=tuple(held)))
        if self.counted:
            self._count(step, numbers)
        for tensor in (*operands, *outputs):
            if isinstance(tensor, Tensor):
                self._versions.append((tensor._counter, _version_of(tensor._counter)))

    def pack(self) -> None:
        """Hand what was saved on the way to hooks, now that programs are made of it."""
        for node, tensors in self.packing:
            pack_saved(node, tensors)

    def note_write(
        self, stand_in: Tensor, result: Tensor, enter: Callable[[Tensor, Any], None]
    ) -> None:
        """Note that a result is about to be written; see `Write`."""
        if self.write is not None:
            self.failed = True
        self.write = Write(stand_in, result, enter, len(self.steps))

    def numbers_in(self, parameters: dict[str, Any]) -> tuple[str, ...]:
        """Return the names of parameters that hold arrays which were read."""
        found = []
        for name, value in parameters.items():
            arrays = arrays_in(value)
            if any(id(each) in self._known for each in arrays):
                found.append(name)
            elif any(each.ndim for each in arrays):  # of which nobody knows where it comes from
                self.failed = True
        return tuple(found)

    def _count(self, step: Step, numbers: tuple[str, ...]) -> None:
        """Note whose shapes follow from numbers."""
        if not numbers and any(id(each) in self.counted for each in step.read):
            self.failed = True  # what runs it may be made for a shape
        arrays = [each for name in numbers for each in arrays_in(step.parameters[name])]
        if step.primitive.counts and any(id(each) in self.counted for each in arrays):
            self.counted |= {id(each): each for each in step.written}

    def read(self, step: Step, counts: bool) -> None:
        """Note that an array was made of the numbers in another one."""
        self.steps.append(step)
        self._known |= {id(each): each for each in (*step.read, *step.written)}
        if counts or any(id(each) in self.counted for each in step.read):
            self.counted |= {id(each): each for each in step.written}

    def run(self, function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        """Call a function while its steps are noted, and return its result."""
        before = modes.steps
        try:  # what comes first, too: Ctrl-C may come anywhere
            modes.steps = self
            intercept(self)
            return function(*arguments, **keywords)
        finally:
            modes.steps = before
            stop_intercepting(self)

    def is_complete(self, written: Any = None) -> bool:
        """Return whether the steps are all that was done: nothing was written to since.

        `written` counts the writes to what the call wrote to, once.
        """
        return not self.failed and all(
            _version_of(counter) == version + (counter is written)
            for counter, version in self._versions
        )


def _version_of(counter: list[Any]) -> Any:
    """Return how often memory was written to; an inference tensor's, too, which has no version."""
    return list.__getitem__(counter, 0)


def arrays_in(value: Any) -> list[Any]:
    """Return the arrays that a parameter is, or holds."""
    values = value if isinstance(value, (tuple, list)) else (value,)
    return [each for each in values if isinstance(each, np.ndarray)]


def read_array(
    function: Callable[..., Any],
    array: Any,
    *,
    counts: bool = False,
    quick: Callable[..., Any] | None = None,
    **parameters: Any,
) -> Any:
    """Return what a function makes of the numbers in an array: such as an index that was checked.

    Parameters
    ----------
    function : callable
        ``function(array, **parameters)`` returns an array, or a tuple of arrays.
    array : array
    counts : bool
        Whether it follows from the numbers what shape the result has, or what is made with it.
    quick : callable, optional
        ``quick(function, **parameters)`` returns what does the same of an array alone; or None.
    """
    result = function(array, **parameters)
    if interceptors and modes.steps is not None and type(array) is np.ndarray:
        several = type(result) is tuple
        run = None if quick is None else quick(function, **parameters)
        if run is None:
            run = partial(function, **parameters) if parameters else function
        written = result if several else (result,)
        modes.steps.read(Step(READING, (), parameters, (), run, several, (array,), written), counts)
    return result


def made_array(function: Callable[[], Any]) -> Any:
    """Return the array that a function makes of nothing: others in each call, as drawn numbers."""
    result = function()
    if interceptors and modes.steps is not None:
        modes.steps.read(Step(READING, (), {}, (), function, False, (), (result,)), False)
    return result


def forget_steps() -> None:
    """Say that a call does what no step tells of, such as to warn: it is not to be remembered."""
    if modes.steps is not None:
        modes.steps.failed = True


def note_steps(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> tuple[Any, Steps]:
    """Call a function, and return its result and the steps that it took."""
    steps = Steps()
    return steps.run(function, *arguments, **keywords), steps
