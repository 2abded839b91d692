"""Inside and outside of a mapped function: the switch between them, and tensors in both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from numgrad.batching.memory import Memory, Part, Stacked
from numgrad.batching.selection import Selected
from numgrad.graph.backward.accumulate import gradient_edge
from numgrad.graph.modes.state import modes, restore, watch
from numgrad.graph.recorder import Traced
from numgrad.graph.tensor import Tensor, wrap

__all__ = ["Worlds"]

# The modes that are one thing inside and another outside.
_MODES = ("trace", "grad", "level", "saved_hooks")


class Outside:
    """Switches a thread to the world outside of a mapped function, and back."""

    __slots__ = ("_inside", "grad", "level", "saved_hooks", "trace")

    def __init__(self) -> None:
        self.trace, self.grad = modes.trace, modes.grad
        self.level, self.saved_hooks = modes.level, modes.saved_hooks
        self._inside: list[tuple[Any, ...]] = []

    def __enter__(self) -> None:
        self._inside.append((modes.trace, modes.grad, modes.level, modes.saved_hooks))
        modes.trace, modes.grad = self.trace, self.grad
        modes.level, modes.saved_hooks = self.level, self.saved_hooks

    def __exit__(self, *exception: object) -> None:
        modes.trace, modes.grad, modes.level, modes.saved_hooks = self._inside.pop()

    @contextmanager
    def left(self) -> Iterator[None]:
        """Be inside again for a while."""
        inside = self._inside[-1]
        self.__exit__()
        try:
            yield
        finally:
            self._inside.append(inside)
            modes.trace, modes.grad = self.trace, self.grad
            modes.level, modes.saved_hooks = self.level, self.saved_hooks


class Worlds:
    """The worlds that a mapped function is between: see `Batcher`, which it is a part of."""

    def __init__(self, size: int, randomness: str = "error") -> None:
        self.size = size
        self.randomness = randomness
        self._outside = Outside()
        self._joins = False
        self._may_record = modes.grad
        self._has_tangents = modes.unrecorded is not None  # outside, where they go on in no_grad
        self.made = 0  # how many pieces of memory there are inside
        self.selections: list[Selected] = []  # what runs for some of the examples
        self.run = self.runs = 0  # which run this is of a body that is recorded outside
        self._has_stacks = False
        self.unrecorded = False  # whether the user switched recording off

    @contextmanager
    def open(self) -> Iterator[None]:
        """Have this thread's operations come here."""
        names = (*_MODES, "watching")
        before = {name: getattr(modes, name) for name in names}
        # It may be opened again: by the backward pass of a custom Function, or by the body of a
        # loop outside.
        state = self._outside, self._may_record, self._has_tangents
        self._outside, self._may_record = Outside(), modes.grad
        self._has_tangents = modes.unrecorded is not None
        modes.trace, modes.saved_hooks = self, ()
        watch(self, sees_calls=True)
        try:
            yield
        finally:
            restore({**modes.__dict__, **before})
            self._outside, self._may_record, self._has_tangents = state

    def reopening(self) -> Callable[[], Any]:
        """Return what opens it again, for a body that is recorded outside, as it is now."""
        level, grad, selections = modes.level, modes.grad, list(self.selections)

        @contextmanager
        def opened() -> Iterator[None]:
            before = self.selections
            with self._own_run(), self.open():
                modes.level, modes.grad = level, grad or modes.grad
                self.selections = list(selections)
                try:
                    yield
                finally:
                    self.selections = before

        return opened

    @property
    def computes_at_once(self) -> bool:
        """Whether what is done outside is done for all examples, and nobody sees it there."""
        outside = self._outside
        return (
            outside.trace is None
            and not (outside.grad or self._has_tangents or self._has_stacks or self.selections)
            and modes.dual is None
        )

    def outside(self) -> Outside:
        """Return the context manager to be in the world outside of the mapped function."""
        return self._outside

    def inside(self, tensor: Tensor, batched: bool) -> Tensor:
        """Return the tensor inside of one outside."""
        return wrap(self._array(tensor, batched))

    def inside_stacked(self, tensor: Tensor) -> Tensor:
        """Return the tensor inside of one whose second dim is the examples'."""
        self._has_stacks = True
        array: Any = Memory(self, Stacked(tensor, True)).array()
        return wrap(array)

    def part(self, tensor: Tensor) -> Part:
        """Return what a tensor inside is outside."""
        return self.part_of(self._own(tensor)._array)

    def _array(self, tensor: Tensor, batched: bool, made: bool = False) -> Any:
        return Memory(self, Part(tensor, batched), made).array()

    def part_of(self, array: Any) -> Part:
        """Return what an array inside is outside; one that is not from inside is itself."""
        this: object = self
        if type(array) is Traced and array.storage.recorder is this:
            storage: Any = array.storage
            if self.selections and self.selections[-1].is_older(storage):
                with nullcontext() if modes.trace is self else self._outside.left():
                    own: Any = array
                    array = self._selected(wrap(own))._array
                storage = array.storage
            if array.place is storage.whole:
                return storage.value
            with self.outside():
                return storage.part(array.place)
        return Part(wrap(array), False)

    def _own(self, tensor: Tensor) -> Tensor:
        array: Any = tensor._array
        this: object = self
        if type(array) is Traced and array.storage.recorder is this:
            return tensor
        own = wrap(self._array(tensor, False))
        own._counter = tensor._counter
        if self._joins:
            own._edge = gradient_edge(tensor)
        return own

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Have tensors from outside hang inside where they hang outside, as in `Recorder`."""
        before, self._joins = self._joins, True
        try:
            yield
        finally:
            self._joins = before

    def _selected(self, tensor: Tensor) -> Tensor:
        """Return what stands for a tensor inside in bodies that are for some of the examples."""
        array: Any = tensor._array
        for selected in self.selections:
            if selected.is_older(array.storage):
                tensor = selected.read(tensor)
        return tensor

    @contextmanager
    def _own_run(self) -> Iterator[None]:
        """Run a body, so that what is found out there of what is outside of it stays there."""
        before = self.run
        self.runs += 1
        self.run = self.runs
        try:
            yield
        finally:
            self.run = before
