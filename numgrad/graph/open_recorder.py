"""What is asked of the recorder that is open: a trace, or a function mapped over a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NoReturn, Protocol

import numpy as np

from numgrad.graph.recorder import Traced, TraceError
from numgrad.graph.tensor import Tensor

__all__ = ["LoopRecorder", "Recorder"]

Array = np.ndarray[Any, Any]


class Recorder(Protocol):
    """What is open while a function is traced, or mapped over a batch (`numgrad.batching`)."""

    transforms: bool  # whether what is run is what `numgrad.func` transforms

    @property
    def has_numbers(self) -> bool:
        """Whether what it records is computed at once."""

    def operands(self, operands: Sequence[Any]) -> Sequence[Any]:
        """Return the operands of a primitive as those of the function that is being run.

        What a tensor from outside is to the world outside, nodes that are recorded inside don't
        see.
        """

    def joined(self) -> AbstractContextManager[None]:
        """Let nodes that are recorded inside lead to those that tensors from outside hang on.

        For what a node of the graph outside runs again to go back through it.
        """

    def elementwise(
        self, primitive: Any, shape: tuple[int, ...], arrays: Sequence[Any], dtype: np.dtype[Any]
    ) -> Any:
        """Return the result of an elementwise primitive; operands have its dtype already."""

    def fused(self, node: Any, gradient: Tensor) -> list[Any] | None:
        """Return what the fused kernel of an elementwise node gives for a gradient.

        None where the node's rules have to run.
        """

    def call(self, primitive: Any, arrays: Sequence[Any], parameters: dict[str, Any]) -> Any:
        """Return what the forward function of any other primitive would."""

    def constant(self, array: Array) -> Any:
        """Return an array that was made in the traced function, and depends on nothing."""

    def cast(self, array: Traced, dtype: np.dtype[Any], order: str) -> Traced:
        """Return a copy in another dtype, or the same one, in one of NumPy's orders."""

    def reshape(self, array: Traced, shape: tuple[int, ...]) -> Traced:
        """Return a copy of the elements, in row-major order, in another shape."""

    def write(self, target: Traced, value: Any) -> None:
        """Put what `value` holds now, broadcast and cast, in the place of `target`."""

    def each_row(
        self,
        function: Callable[[Tensor], Sequence[Tensor | None]],
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
    ) -> list[Tensor | None] | None:
        """Return what a linear function gives for each unit vector, stacked along a first dim.

        The vectors have the shape and dtype given, and are taken in row-major order. None if the
        results are to be differentiated in turn.
        """

    def backward_loops(
        self, roots: Sequence[Any], needed: set[Any] | None, captures: dict[Any, Any]
    ) -> Any:
        """Return the loops among the nodes of a backward pass; None if it records none.

        `needed` are the nodes that run, if not all that the roots lead to.

        Their ``run(node, pending, leaves, keep_graph)`` runs the loop that a node begins, if any.
        """

    def writable(self, tensor: Tensor) -> Any:
        """Return the array to write to of a tensor that was there before the trace, or raise."""

    def check_reshaping(self, name: str, tensor: Tensor) -> None:
        """Raise if a tensor may not be made a view of itself in place."""

    def detached(self, array: Any) -> Any:
        """Return the array of what is detached from the tensor of an array."""

    def set_grad(self, value: bool) -> None:
        """Note that the user switched recording on or off."""

    def records_outside(self) -> bool:
        """Return what `set_grad` has come to; it can be given back to that."""

    def draw(self, draw: Any, generator: Any, shape: tuple[int, ...], beside: Sequence[Any]) -> Any:
        """Return random numbers; see `numgrad.ops.creation.generator.drawn`."""

    def random_state(self, generator: Any) -> Any:
        """Return where a generator of random numbers is."""

    def set_random_state(self, generator: Any, state: Any) -> None:
        """Have a generator go on where it, or another one, was."""

    def check(self, primitive: Any, array: Traced, parameters: dict[str, Any]) -> Any:
        """Record a primitive whose result has the array's shape and dtype, and which may raise."""

    def known(self, array: Traced) -> Array | None:
        """Return the numbers of an array that was made of numbers in the traced function."""

    def has_nan(self, array: Traced) -> bool:
        """Return whether there is a nan in an array, as far as its numbers are there."""

    def captured(self, array: Array) -> Any:
        """Return a traced array for one that was there before the trace: read in every call."""

    def bake(self, array: Array) -> None:
        """Note that the trace depends on the numbers in an array that was there before it."""

    def copies(self, array: Array) -> None:
        """Note that the function copies an array, which may have been there before it."""

    def takes(self, value: Any) -> None:
        """Note an array or a number of NumPy's that the function gives to an operation."""

    def laid_out(self, array: Traced, place: Array, *sources: Any) -> Traced:
        """Return a copy that lies as `place` does, which follows from how `sources` lie."""

    def depend_on_strides(self, arguments: frozenset[int]) -> None:
        """Note that the trace depends on how these arguments lie in memory."""

    def fails(self, error: TraceError) -> None:
        """Note that the function can't be traced, which an ``except`` in it does not change."""

    def refuse_shape(self, what: str) -> NoReturn:
        """Raise the `TraceError` for an operation whose result's shape depends on numbers."""

    def numbers(self, what: str, array: Traced) -> Array:
        """Return the numbers in an array for who asks for them, or raise as `refuse` does."""

    def refuse(self, what: str, array: Traced | None = None) -> NoReturn:
        """Raise the `TraceError` that says what was asked for, and what to do instead."""

    def describe(self, tensor: Tensor) -> str:
        """Return how a tensor is printed."""


class LoopRecorder(Protocol):
    """What a recorder has besides if it records loops and branches, as `numgrad.func` has them.

    Without it Python's own loops run, over what is recorded.
    """

    def scan(
        self,
        step: Callable[[list[Any], list[Any]], tuple[list[Any], list[Any]]],
        carry: list[Any],
        columns: list[Any],
        length: int,
        reverse: bool,
        divided: bool = False,
    ) -> tuple[list[Any], list[Any]]:
        """Return the last carry of a loop over rows, and what its steps gave, stacked.

        ``step(carry, row)`` returns the next carry, and what is stacked: lists of tensors and None.
        `divided` says that it is several steps of a loop that keeps few carries for its gradient.
        """

    def while_loop(
        self,
        predicate: Callable[[list[Any]], Any],
        step: Callable[[list[Any]], list[Any]],
        carry: list[Any],
    ) -> list[Any]:
        """Return the first carry for which ``predicate(carry)`` does not hold."""

    def switch(
        self,
        index: Tensor,
        branches: Sequence[Callable[[list[Any]], list[Any]]],
        operands: list[Any],
    ) -> list[Any]:
        """Return what a branch gives: that at an index, or for a truth value the first or second.

        The first is for False. All give alike tensors.
        """
