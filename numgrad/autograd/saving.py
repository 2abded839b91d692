"""Contexts for saved tensors: saved_tensors_hooks, save_on_cpu, allow_mutation_on_saved_tensors."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, MutableMapping
from typing import Any

import numpy as np

from numgrad.graph.modes.state import modes
from numgrad.graph.saved_tensors import enter_hooks, exit_hooks
from numgrad.graph.tensor import Tensor
from numgrad.kernels.move.strides import holder_behind

__all__ = [
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "save_on_cpu",
    "saved_tensors_hooks",
]


class saved_tensors_hooks:  # noqa: N801 - PyTorch's name
    """Pack the tensors that operations inside save, and unpack them when the graph is run.

    Mirrors ``torch.autograd.graph.saved_tensors_hooks``. Of nested contexts the innermost applies.
    A compiled function saves its arguments; what it computes inside, no hook sees.

    Parameters
    ----------
    pack_hook : callable
        ``pack_hook(tensor)`` returns anything, which is kept in the tensor's place. It may not
        write to the tensor, and should not keep it: an output would keep its own graph.
    unpack_hook : callable
        ``unpack_hook(packed)`` returns a tensor with the same numbers.

    Raises
    ------
    RuntimeError
        On entering, inside of `disable_saved_tensors_hooks`.

    >>> import numgrad as ng
    >>> x = ng.tensor([1.0, 2.0], requires_grad=True)
    >>> hooks = ng.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), ng.tensor)
    >>> with hooks:
    ...     y = (x**2).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 4.])
    """

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        enter_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *exception: object) -> None:
        exit_hooks()


class save_on_cpu(saved_tensors_hooks):  # noqa: N801 - PyTorch's name
    """Keep saved tensors in the memory of the CPU, where they are already.

    Mirrors ``torch.autograd.graph.save_on_cpu``, for code that was written for other devices.

    Parameters
    ----------
    pin_memory : bool
        Accepted; there is no device to copy to.
    device_type : str
        Accepted.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(_detached, _as_it_is)


def _detached(tensor: Tensor) -> Tensor:
    detached: Tensor = tensor.detach()
    return detached


def _as_it_is(tensor: Tensor) -> Tensor:
    return tensor


# These are no generators: one that is abandoned, not left, is closed when its memory is needed, and
# would take back what somebody else has set by then.


class disable_saved_tensors_hooks(contextlib.ContextDecorator):  # noqa: N801 - PyTorch's name
    """Refuse hooks on saved tensors inside.

    Mirrors ``torch.autograd.graph.disable_saved_tensors_hooks``.

    Parameters
    ----------
    error_message : str
        What the RuntimeError says.

    >>> import numgrad as ng
    >>> with ng.autograd.graph.disable_saved_tensors_hooks("not here"):
    ...     with ng.autograd.graph.save_on_cpu():
    ...         pass
    Traceback (most recent call last):
    RuntimeError: not here
    """

    def __init__(self, error_message: str) -> None:
        self.error_message = error_message
        self._previous: list[str | None] = []  # as a decorator it is entered by every call

    def __enter__(self) -> None:
        if modes.saved_hooks:
            raise RuntimeError(self.error_message)
        self._previous.append(modes.hooks_disabled)
        modes.hooks_disabled = self.error_message

    def __exit__(self, *exception: object) -> None:
        modes.hooks_disabled = self._previous.pop()


class _Handle:
    """What a node keeps in place of a tensor that may be written to."""

    __slots__ = ("__weakref__",)


class _Keeper:
    """Knows what was saved, and makes a copy before it is written to.

    Attributes
    ----------
    original : mapping
        For the handles of tensors that were not written to since they were saved, the tensors.
    cloned : mapping
        For the others the copies.
    """

    def __init__(self) -> None:
        self.original: MutableMapping[_Handle, Tensor] = weakref.WeakKeyDictionary()
        self.cloned: MutableMapping[_Handle, Tensor] = weakref.WeakKeyDictionary()
        self._by_tensor: MutableMapping[tuple[int, int], _Handle] = weakref.WeakValueDictionary()
        # By the id of the memory, which the originals keep alive.
        self._by_memory: dict[int, weakref.WeakSet[_Handle]] = {}

    def pack(self, tensor: Tensor) -> _Handle:
        """Return the handle of a tensor as it is now."""
        key = (id(tensor), tensor._version)
        handle = self._by_tensor.get(key)
        if handle is None or self.original.get(handle) is not tensor:
            handle = self._by_tensor[key] = _Handle()
            self.original[handle] = tensor
            memory = id(_memory_of(tensor))
            self._by_memory.setdefault(memory, weakref.WeakSet()).add(handle)
        return handle

    def unpack(self, handle: _Handle) -> Tensor:
        """Return the tensor of a handle, or the copy."""
        found = None
        if modes.keeper is self:
            found = self.cloned.get(handle)
            if found is None:
                found = self.original.get(handle)
        if found is None:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in "
                "which the graph was originally recorded."
            )
        return found

    def before_write(self, tensor: Tensor) -> None:
        """Copy what was saved of the memory of a tensor."""
        for handle in list(self._by_memory.pop(id(_memory_of(tensor)), ())):
            original = self.original.pop(handle, None)
            if original is not None:
                self.cloned[handle] = original.detach().clone()

    def clear(self) -> None:
        """Forget everything."""
        self.original.clear()
        self.cloned.clear()
        self._by_tensor.clear()
        self._by_memory.clear()


def _memory_of(tensor: Tensor) -> Any:
    """Return the array, or whatever it is, that owns the memory of a tensor."""
    array: Any = tensor._array
    if type(array) is np.ndarray:
        array = holder_behind(array)
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    return array


class allow_mutation_on_saved_tensors(contextlib.ContextDecorator):  # noqa: N801 - PyTorch's name
    """Allow writes to tensors that were saved: they are copied before.

    Mirrors ``torch.autograd.graph.allow_mutation_on_saved_tensors``. Forward and backward pass have
    to run inside of the same context.

    Raises
    ------
    RuntimeError
        If it is entered within itself.

    >>> import numgrad as ng
    >>> with ng.autograd.graph.allow_mutation_on_saved_tensors():
    ...     x = ng.ones(2, requires_grad=True)
    ...     y = x.clone()
    ...     z = (y**2).sum()
    ...     _ = y.sin_()
    ...     z.backward()
    >>> x.grad
    tensor([2., 2.])
    """

    def __enter__(self) -> _Keeper:
        if modes.keeper is not None:
            raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
        self._keeper = _Keeper()
        enter_hooks(self._keeper.pack, self._keeper.unpack)
        modes.keeper = self._keeper
        return self._keeper

    def __exit__(self, *exception: object) -> None:
        modes.keeper = None
        self._keeper.clear()
        exit_hooks()
