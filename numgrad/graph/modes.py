"""Grad modes: whether operations record a graph, for each thread on its own."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

__all__ = [
    "enable_grad",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "modes",
    "no_grad",
    "set_grad_enabled",
    "traces",
]

Function = TypeVar("Function", bound=Callable[..., Any])


class _Modes(threading.local):
    """The modes of one thread; the class attributes are what a new thread starts with."""

    grad = True  # whether operations record
    inference = False
    claimed = False  # in inference mode: what `is_grad_enabled` says although nothing records
    trace: Any = None  # while a function is traced: what records it (numgrad.graph.tracing)
    level: Any = None  # the innermost function that `numgrad.func` is differentiating (a Level)
    saved_hooks: tuple[Any, ...] = ()  # pairs of hooks on saved tensors (numgrad.graph.saved)
    keeper: Any = None  # who keeps what tensors hold before a write (numgrad.autograd.saving)
    hooks_disabled: str | None = None  # the words of the error for who enters such a pair
    exec_group: Any = None  # backward passes that share what they compute again
    task: Any = None  # in a hook: the run of the engine that called it (numgrad.graph.engine)


modes = _Modes()
# The recorders and the hooks on saved tensors that are active on any thread. While there is one,
# hot functions take no short ways.
traces: list[Any] = []


def _set_grad(value: bool) -> None:
    """Record from now on, or not; inference mode only pretends."""
    if modes.inference:
        modes.claimed = value
    else:
        modes.grad = value


def is_grad_enabled() -> bool:
    """Return whether operations on this thread record a graph.

    >>> import numgrad as ng
    >>> with ng.no_grad():
    ...     ng.is_grad_enabled()
    False
    """
    return modes.grad or (modes.inference and modes.claimed)


def is_inference_mode_enabled() -> bool:
    """Return whether this thread is in inference mode."""
    return modes.inference


class _Mode:
    """A context manager that also decorates functions, coroutines and generators."""

    def clone(self) -> _Mode:
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
        return _decorate(self.clone, function)


def _decorate(make_mode: Callable[[], _Mode], function: Function) -> Function:
    """Run every call of `function` inside a mode; generators have it set while they run."""
    wrapper: Any
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return _drive_generator(make_mode, function(*args, **kwargs))

    elif inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            return await _Drive(make_mode, function(*args, **kwargs))

    else:

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with make_mode():
                return function(*args, **kwargs)

    return wrapper


def _drive_generator(make_mode: Callable[[], _Mode], generator: Any) -> Any:
    """Resume a generator or coroutine inside the mode; be outside whenever the caller runs."""
    try:
        with make_mode():
            value = generator.send(None)
        while True:
            try:
                sent = yield value
            except GeneratorExit:
                with make_mode():
                    generator.close()
                raise
            except BaseException as error:
                with make_mode():
                    value = generator.throw(error)
            else:
                with make_mode():
                    value = generator.send(sent)
    except StopIteration as stop:
        return stop.value


class _Drive:
    """What a decorated coroutine awaits: it resumes the coroutine inside the mode.

    While the coroutine waits, others run on the same thread, and they are outside of the mode.
    """

    def __init__(self, make_mode: Callable[[], _Mode], coroutine: Any) -> None:
        self._make_mode = make_mode
        self._coroutine = coroutine

    def __await__(self) -> Any:
        return _drive_generator(self._make_mode, self._coroutine)


class no_grad(_Mode):  # noqa: N801 - PyTorch's name
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
        return _decorate(cls, function)

    def __init__(self, function: Any = None) -> None:
        self._previous = True

    def __enter__(self) -> None:
        self._previous = is_grad_enabled()
        _set_grad(self._value)

    def __exit__(self, *exception: object) -> None:
        _set_grad(self._previous)


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


class set_grad_enabled(_Mode):  # noqa: N801 - PyTorch's name
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
        self._previous = is_grad_enabled()
        _set_grad(mode)

    def clone(self) -> set_grad_enabled:
        """Return the same setting, to be entered for one call of a decorated function."""
        return set_grad_enabled(self.mode)

    def __call__(self, function: Function) -> Function:
        _set_grad(self._previous)  # a decorator sets nothing until the function is called
        return super().__call__(function)

    def __enter__(self) -> None:
        _set_grad(self.mode)

    def __exit__(self, *exception: object) -> None:
        _set_grad(self._previous)


class inference_mode(_Mode):  # noqa: N801 - PyTorch's name
    """Do not record a graph, and mark the thread as being in inference mode.

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
        return _decorate(cls, mode)

    def __init__(self, mode: Any = True) -> None:
        self.mode = mode
        self._previous = (True, False, False)

    def clone(self) -> inference_mode:
        """Return the same setting, to be entered for one call of a decorated function."""
        made: inference_mode = inference_mode(self.mode)
        return made

    def __enter__(self) -> None:
        self._previous = (modes.grad, modes.inference, modes.claimed)
        modes.grad, modes.inference, modes.claimed = not self.mode, self.mode, False

    def __exit__(self, *exception: object) -> None:
        modes.grad, modes.inference, modes.claimed = self._previous
