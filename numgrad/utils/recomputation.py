"""Recompute saved tensors during backward: how `checkpoint` works.

While a checkpointed function runs, nothing that its operations save is kept: each gets a holder,
an empty thing, in its place, and the function's arguments are kept instead. When a holder is to be
unpacked in some run of the engine, the function runs again, and what its operations save then, in
the same order, is what the holders stand for in that run.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from numgrad.base import dtypes
from numgrad.base.device import CPU
from numgrad.graph.backward.accumulate import gradient_edge
from numgrad.graph.modes.state import modes
from numgrad.graph.node import modified_message
from numgrad.graph.saved_tensors import (
    PackedTensor,
    enter_hooks,
    exit_hooks,
    pack_tensor,
    restore_tensor,
)
from numgrad.graph.size import Size
from numgrad.graph.tensor import NO_EDGE, Edge, Tensor, wrap

__all__ = ["CheckpointError", "Frame", "GraphExecGroup", "metadata_of"]

TIP = """
Tip: To see a more detailed error message, either pass `debug=True` to
`torch.utils.checkpoint.checkpoint(...)` or wrap the code block
with `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to
enable checkpoint\N{NON-BREAKING HYPHEN}debug mode globally.
"""


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function was not like the first."""

    __module__ = "numgrad.utils.checkpoint"  # where people find it


class _AllComputed(Exception):
    """Ends the second run of a function as soon as all that was saved is there."""


def metadata_of(tensor: Tensor) -> tuple[tuple[int, ...], Any]:
    """Return what has to be the same of a saved tensor in both runs: its shape and dtype."""
    return tensor._array.shape, tensor._array.dtype


def _described(metadata: tuple[tuple[int, ...], Any]) -> dict[str, Any]:
    """Return what PyTorch shows of that."""
    shape, dtype = metadata
    return {"shape": Size(shape), "dtype": dtypes.of_numpy(dtype), "device": CPU}


class GraphExecGroup:
    """A context in which several backward passes share what they compute again.

    Mirrors ``torch.utils.checkpoint.GraphExecGroup``. The passes may not need the same saved
    tensors.

    Raises
    ------
    RuntimeError
        If it is entered within another one.

    >>> import numgrad as ng
    >>> x, calls = ng.tensor([1.0, 2.0], requires_grad=True), []
    >>> def f(x):
    ...     calls.append("run")
    ...     return x.exp(), x.sin()
    >>> y, z = ng.utils.checkpoint.checkpoint(f, x, use_reentrant=False)
    >>> with ng.utils.checkpoint.GraphExecGroup():
    ...     y.sum().backward()
    ...     z.sum().backward()
    >>> calls
    ['run', 'run']
    """

    def __enter__(self) -> GraphExecGroup:
        if modes.exec_group is not None:
            raise RuntimeError(
                f"GraphExecGroup contexts cannot be nested. Already inside group {modes.exec_group}"
            )
        modes.exec_group = self
        return self

    def __exit__(self, *exception: object) -> None:
        modes.exec_group = None


class _Holder:
    """What stands for one saved tensor."""

    __slots__ = ("__weakref__", "index")

    def __init__(self, index: int) -> None:
        self.index = index


class _Recomputed:
    """What was saved in the second run, for one run of the engine.

    Attributes
    ----------
    values : dict
        By the number of the holder, the tensor with its version when it was saved; None once it
        was unpacked.
    count : int
        How many tensors were saved.
    """

    __slots__ = ("__weakref__", "count", "values")

    def __init__(self) -> None:
        self.values: dict[int, tuple[Tensor, int] | None] = {}
        self.count = 0


class Frame:
    """One call of a checkpointed function.

    Parameters
    ----------
    recompute : callable
        Runs the function again on the arguments.
    early_stop : bool
        Whether to end that as soon as everything that was saved is there.
    metadata : callable or None
        What to compare of the tensors that are saved.
    describe : callable or None
        For debugging: returns where in the user's code a tensor is saved.
    """

    def __init__(
        self,
        recompute: Callable[..., Any],
        early_stop: bool,
        metadata: Callable[[Tensor], Any] | None,
        describe: Callable[[], str] | None,
    ) -> None:
        self.recompute = recompute
        self.early_stop = early_stop
        self.metadata = metadata
        self.describe = describe
        self.arguments: list[Any] = []
        self.holders: list[weakref.ref[_Holder]] = []
        self.metadatas: list[Any] = []
        self.places: list[str] = []
        self.complete = False  # whether the first run has ended
        self.ignore_mismatch = False
        # By the run of the engine, or the group of such.
        self.recomputed: weakref.WeakKeyDictionary[Any, _Recomputed] = weakref.WeakKeyDictionary()

    def keep_arguments(self, arguments: Sequence[Any]) -> None:
        """Keep the arguments, as tensors that are saved are kept."""
        self.arguments = [_keep(a) if isinstance(a, Tensor) else a for a in arguments]

    def run(self, function: Callable[[], Any]) -> Any:
        """Call a function whose operations save holders only."""
        enter_hooks(self._pack, self._unpack)
        try:
            result = function()
        finally:
            exit_hooks()
        self.complete = True
        return result

    def _pack(self, tensor: Tensor) -> _Holder:
        holder = _Holder(len(self.holders))
        self.holders.append(weakref.ref(holder))
        if self.metadata is not None:
            self.metadatas.append(self.metadata(tensor))
        if self.describe is not None:
            self.places.append(self.describe())
        return holder

    def _unpack(self, holder: _Holder) -> Tensor:
        key: Any = modes.exec_group or modes.task
        found = None if key is None else self.recomputed.get(key)
        if found is None:
            found = self._run_again(key)
        value = found.values[holder.index]
        if value is None:
            extra = (
                "Performing two backward calls that overlap (i.e. require the same saved "
                "activation in order to compute gradients) is not allowed while under the "
                "torch.utils.checkpoint.GraphExecGroup context. "
            )
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already "
                f"unpacked once. {extra if modes.exec_group else ''}If you are calling "
                "ctx.saved_tensors in backward, make sure to do so only once. Otherwise please "
                "open an issue with details on your use case."
            )
        if key is not None:
            found.values[holder.index] = None
        tensor, version = value
        counter = tensor._counter
        if counter[0] != version:
            raise RuntimeError(modified_message((tensor._array, counter, version), NO_EDGE, None))
        return tensor

    def _run_again(self, key: Any) -> _Recomputed:
        """Run the function again, for one run of the engine, and check what it saves."""
        found = _Recomputed()
        places: list[str] = []

        def pack(tensor: Tensor) -> Tensor:
            index = found.count
            found.count += 1
            if self.describe is not None:
                places.append(self.describe())
            value = tensor
            if tensor.requires_grad:
                value = wrap(tensor._array)  # without the graph, which nobody will run
                value._counter = tensor._counter
            if index >= len(self.holders):
                if not self.complete:  # a backward pass inside of the function itself
                    self.ignore_mismatch = True
                    return value
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation than "
                    f"during the original forward pass.\n{TIP}"
                )
            if self.holders[index]() is not None:
                found.values[index] = (value, value._version)
            if self.early_stop and found.count == len(self.holders):
                raise _AllComputed
            return value

        arguments = [a.unpack() if isinstance(a, _Argument) else a for a in self.arguments]
        enter_hooks(pack, _as_it_is)
        recording = modes.grad
        modes.grad = True
        try:
            try:
                self.recompute(*arguments)
            except _AllComputed:
                pass
            finally:
                exit_hooks()
                modes.grad = recording
            self._check(found)
        except CheckpointError as error:
            if self.describe is None:
                raise
            raise CheckpointError(_explanation(self.places, places)) from error
        if key is not None:
            self.recomputed[key] = found
        return found

    def _check(self, found: _Recomputed) -> None:
        """Raise if the second run did not save what the first did."""
        if self.ignore_mismatch:
            return
        if found.count != len(self.holders):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the "
                "original forward and recomputation.\n"
                f"Number of tensors saved during forward: {len(self.holders)}\n"
                f"Number of tensors saved during recomputation: {found.count}.\n{TIP}"
            )
        if self.metadata is None:
            return
        different = ""
        for index, value in found.values.items():
            before = self.metadatas[index]
            after = before if value is None else self.metadata(value[0])
            if after != before:
                different += (
                    f"tensor at position {index}:\nsaved metadata: {_described(before)}\n"
                    f"recomputed metadata: {_described(after)}\n"
                )
        if different:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have "
                f"different metadata than during the forward pass.\n{different}.\n{TIP}"
            )


def _as_it_is(tensor: Tensor) -> Tensor:
    return tensor


class _Argument:
    """A tensor that a checkpointed function was called with.

    In a checkpointed function that was called in another one, it is computed again itself.
    """

    __slots__ = ("edge", "value", "version")

    def __init__(self, value: Tensor | PackedTensor, version: int, edge: Edge) -> None:
        self.value = value
        self.version = version
        self.edge = edge

    def unpack(self) -> Tensor:
        """Return the tensor, hanging in the graph where it hung."""
        value = self.value
        if isinstance(value, Tensor):
            counter = value._counter
            if counter[0] != self.version:
                saved = (value._array, counter, self.version)
                raise RuntimeError(modified_message(saved, value._edge or NO_EDGE, None))
            return value
        tensor = value.unpack()
        return restore_tensor((tensor._array, tensor._counter, tensor._version), self.edge)


def _keep(tensor: Tensor) -> _Argument:
    if not modes.saved_hooks:
        return _Argument(tensor, tensor._version, NO_EDGE)
    packed = pack_tensor(tensor, modes.saved_hooks[-1])
    return _Argument(packed, tensor._version, gradient_edge(tensor))


def _explanation(first: Sequence[str], second: Sequence[str]) -> str:
    """Return what was saved in both runs, and where."""

    def listed(places: Sequence[str]) -> str:
        return "\n".join([f"    {index}: {place}" for index, place in enumerate(places)])

    return (
        "An error happened while unpacking tensors. You see where tensors were saved because you "
        "passed `debug=True` to `torch.utils.checkpoint.checkpoint()`: compare the two lists to "
        "find where the second run of the function differs from the first.\n\n"
        f"Tensors saved during the original forward:\n{listed(first)}\n\n"
        f"Tensors saved during recomputation:\n{listed(second)}\n"
    )
