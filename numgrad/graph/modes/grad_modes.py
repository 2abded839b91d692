"""Grad modes: no_grad, enable_grad, set_grad_enabled, inference_mode."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from numgrad.graph.modes.decorators import decorated
from numgrad.graph.modes.state import interceptors, modes, note_inference

__all__ = [
    "Mode",
    "enable_grad",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "is_multithreading_enabled",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]

Function = TypeVar("Function", bound=Callable[..., Any])


def _set_grad(value: bool) -> None:
    """Record from now on, or not; inference mode only pretends."""
    if modes.inference:
        modes.claimed = value
    elif modes.unrecorded is not None:
        modes.unrecorded.switch(value)
    else:
        modes.grad = value
    if interceptors and modes.trace is not None:
        modes.trace.set_grad(value)


def _setting() -> Any:
    """Return how this thread records now, for `_restore`: plainly, whether it does."""
    if not interceptors and modes.unrecorded is None:
        return is_grad_enabled()
    trace = modes.trace if interceptors else None
    outside = None if trace is None else trace.records_outside()
    return is_grad_enabled(), outside, modes.grad, modes.stretch


def _restore(before: Any) -> None:
    """Record as then; inference mode only pretends."""
    if before is True or before is False:
        _set_grad(before)
        return
    enabled, outside, *setting = before
    if modes.inference or modes.unrecorded is None:
        _set_grad(enabled)
    else:
        modes.unrecorded.restore(*setting)
    if interceptors and modes.trace is not None:
        modes.trace.set_grad(enabled if outside is None else outside)


def is_grad_enabled() -> bool:
    """Return whether operations on this thread record a graph.

    >>> import numgrad as ng
    >>> with ng.no_grad():
    ...     ng.is_grad_enabled()
    False
    """
    return (modes.grad and modes.stretch is None) or (modes.inference and modes.claimed)


def is_inference_mode_enabled() -> bool:
    """Return whether this thread is in inference mode."""
    return modes.inference


class Mode:
    """A context manager that also decorates functions, coroutines and generators."""

    def clone(self) -> Mode:
        """Return a fresh context manager of the same setting, one for every entry."""
        return type(self)()

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        raise NotImplementedError

    def __call__(self, function: Function) -> Function:
        return decorated(self.clone, function)


class no_grad(Mode):  # noqa: N801 - PyTorch's name
    """Do not record a graph: results of operations inside do not require grad.

    Works as a context manager and as a decorator, with or without parentheses.

    >>> import numgrad as ng
    >>> x = ng.tensor([1.0], requires_grad=True)
    >>> with ng.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    _value = False

    def __new__(cls, function: Any = None) -> Any:
        if function is None:
            return object.__new__(cls)
        return decorated(cls, function)

    def __init__(self, function: Any = None) -> None:
        self._previous: Any = True

    def __enter__(self) -> None:
        self._previous = _setting()
        _set_grad(self._value)

    def __exit__(self, *exception: object) -> None:
        _restore(self._previous)


class enable_grad(no_grad):  # noqa: N801 - PyTorch's name
    """Record a graph again inside a `no_grad` block.

    >>> import numgrad as ng
    >>> x = ng.tensor([1.0], requires_grad=True)
    >>> with ng.no_grad(), ng.enable_grad():
    ...     y = x * 2
    >>> y.requires_grad
    True
    """

    _value = True


class set_grad_enabled(Mode):  # noqa: N801 - PyTorch's name
    """Set whether a graph is recorded, at once; as a context manager, until its end.

    Parameters
    ----------
    mode : bool
        Whether to record.

    >>> import numgrad as ng
    >>> with ng.set_grad_enabled(False):
    ...     ng.is_grad_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(
                "set_grad_enabled(): argument 'enabled' (position 1) must be bool, not "
                f"{type(mode).__name__}"
            )
        self.mode = mode
        self._previous = _setting()
        _set_grad(mode)

    def __repr__(self) -> str:
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"

    def clone(self) -> set_grad_enabled:
        """Return the same setting, to be entered for one call of a decorated function."""
        return set_grad_enabled(self.mode)

    def __call__(self, function: Function) -> Function:
        _restore(self._previous)  # a decorator sets nothing until the function is called
        return super().__call__(function)

    def __enter__(self) -> None:
        _set_grad(self.mode)

    def __exit__(self, *exception: object) -> None:
        _restore(self._previous)


class inference_mode(Mode):  # noqa: N801 - PyTorch's name
    """Do not record a graph, and make inference tensors, which have no version.

    Outside of the mode those can't be written to, require grad, or be saved for the backward pass;
    see ``Tensor.is_inference``.

    Parameters
    ----------
    mode : bool
        False leaves inference mode (and records) inside the block.

    >>> import numgrad as ng
    >>> with ng.inference_mode():
    ...     ng.is_grad_enabled(), ng.is_inference_mode_enabled()
    (False, True)
    """

    def __new__(cls, mode: Any = True) -> Any:
        if isinstance(mode, bool):
            return object.__new__(cls)
        return decorated(cls, mode)

    def __init__(self, mode: Any = True) -> None:
        self.mode = mode
        self._previous = (True, False, False, None, True)

    def clone(self) -> inference_mode:
        """Return the same setting, to be entered for one call of a decorated function."""
        made: inference_mode = inference_mode(self.mode)
        return made

    def __enter__(self) -> None:
        before = modes.grad, modes.inference, modes.claimed, modes.stretch, modes.multithreading
        self._previous = before
        self._set(not self.mode, self.mode, False, None, not self.mode)

    def __exit__(self, *exception: object) -> None:
        self._set(*self._previous)

    def _set(
        self, grad: bool, inference: bool, claimed: bool, stretch: Any, multithreading: bool
    ) -> None:
        # By what changes, not by who is entered or left: that may be in any order.
        note_inference(inference)
        if modes.unrecorded is not None:
            modes.unrecorded.restore(grad, stretch)
        modes.grad, modes.inference, modes.claimed = grad, inference, claimed
        modes.multithreading = multithreading


class set_multithreading_enabled(Mode):  # noqa: N801 - PyTorch's name
    """Set whether backward passes may use other threads, at once or for a block.

    Mirrors ``torch.autograd.set_multithreading_enabled``. In PyTorch that is for the threads of
    accelerators, which numgrad does not have: every backward pass runs on the thread that calls it.
    The setting is kept, for each thread on its own, and changes nothing; inference mode switches it
    off.

    Parameters
    ----------
    mode : bool

    Raises
    ------
    TypeError
        If that is no bool.

    >>> import numgrad as ng
    >>> x = ng.tensor(2.0, requires_grad=True)
    >>> with ng.autograd.set_multithreading_enabled(False):
    ...     (x * x).backward()
    >>> x.grad
    tensor(4.)
    """

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(
                "set_multithreading_enabled(): argument 'enabled' (position 1) must be bool, not "
                f"{type(mode).__name__}"
            )
        self.mode = mode
        self.prev = modes.multithreading
        modes.multithreading = mode

    def clone(self) -> set_multithreading_enabled:
        """Return the same setting, to be entered for one call of a decorated function."""
        return set_multithreading_enabled(self.mode)

    def __enter__(self) -> None:
        """Leave it as it was set."""

    def __exit__(self, *exception: object) -> None:
        modes.multithreading = self.prev


def is_multithreading_enabled() -> bool:
    """Return what `set_multithreading_enabled` was told on this thread.

    >>> import numgrad as ng
    >>> ng.autograd.is_multithreading_enabled()
    True
    """
    return modes.multithreading
