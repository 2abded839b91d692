"""Grad modes: no_grad, enable_grad, inference_mode; what each thread records and intercepts."""

from __future__ import annotations

import functools
import inspect
import threading
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

__all__ = [
    "Mode",
    "call_interceptors",
    "enable_grad",
    "inference_mode",
    "intercept",
    "interceptors",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "is_multithreading_enabled",
    "is_transformed",
    "modes",
    "no_grad",
    "recording",
    "restore",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "stop_intercepting",
    "stop_watching",
    "watch",
]

Function = TypeVar("Function", bound=Callable[..., Any])


class _Modes(threading.local):
    """The modes of one thread; the class attributes are what a new thread starts with."""

    grad = True  # whether operations record
    inference = False
    claimed = False  # in inference mode: what `is_grad_enabled` says although nothing records
    steps: Any = None  # while a call is found out: what notes its steps (numgrad.ops.calls.steps)
    trace: Any = None  # while a function is traced: what records it (numgrad.graph.recorder)
    # The level of forward mode that is open (numgrad.autograd.forward.duals), set on the class, for
    # all threads; a thread that computes tangents hides it from itself.
    dual: Any = None
    covered = False  # whether `numgrad.func` differentiates a function within inference mode
    multithreading = True  # what `set_multithreading_enabled` was told
    running: Any = None  # in anomaly mode: the node that the engine runs
    level: Any = None  # the innermost function that `numgrad.func` is differentiating (a Level)
    saved_hooks: tuple[Any, ...] = ()  # pairs (numgrad.graph.saved_tensors)
    keeper: Any = None  # who keeps what tensors hold before a write (numgrad.autograd.saving)
    hooks_disabled: str | None = None  # the words of the error for who enters such a pair
    exec_group: Any = None  # backward passes that share what they compute again
    depth = 0  # how many backward passes that call the user's code run inside of each other
    worker: Any = None  # on a thread for the innermost of these: who it is (graph.nested_backward)
    task: Any = None  # in a hook: the run of the engine that called it (numgrad.graph.engine)
    watching: tuple[Any, ...] = ()  # what this thread has put into the lists below


modes = _Modes()
# What is open on any thread and changes what operations do: recorders, levels of forward mode,
# hooks on saved tensors, inference modes, anomaly mode. While there is one, hot functions look at
# what it changes: which counter a result has, whether a node packs what it saves.
interceptors: list[Any] = []
# Of these the ones that must see every call: traces, levels of forward mode, anomaly mode. While
# there is one, no call takes the straight-line code that there is for ordinary ones.
call_interceptors: list[Any] = []


def intercept(interceptor: Any) -> None:
    """Have hot functions take no straight-line code, so that `interceptor` sees every operation."""
    call_interceptors.append(interceptor)
    interceptors.append(interceptor)


def stop_intercepting(interceptor: Any) -> None:
    """Take back an `intercept`."""
    interceptors.remove(interceptor)
    call_interceptors.remove(interceptor)


class _Watched:
    """What stands for a mode of a thread in the lists above: equal to nothing but itself."""

    __slots__ = ("mode", "sees_calls")

    def __init__(self, mode: Any, sees_calls: bool) -> None:
        self.mode = mode
        self.sees_calls = sees_calls


def watch(mode: Any, *, sees_calls: bool) -> None:
    """Enter a mode of this thread in the lists above, in the second if it must see every call.

    `restore` takes it back.
    """
    watched = _Watched(mode, sees_calls)
    modes.watching = (*modes.watching, watched)
    _enter(watched)


def stop_watching(mode: Any) -> None:
    """Take back the last `watch`, of this mode, if the thread is not rid of it already."""
    watching = modes.watching
    if watching and watching[-1].mode is mode:
        modes.watching = watching[:-1]
        _forget(watching[-1])


def is_transformed() -> bool:
    """Return whether this thread runs a function that `numgrad.func` transforms."""
    return modes.level is not None or (modes.trace is not None and modes.trace.transforms)


def _enter(watched: _Watched) -> None:
    if watched.sees_calls:
        call_interceptors.append(watched)
    interceptors.append(watched)


def _forget(watched: _Watched) -> None:
    interceptors.remove(watched)
    if watched.sees_calls:
        call_interceptors.remove(watched)


def _note_inference(inference: bool) -> None:
    """Let hot functions know that inference mode is on from now on, on this thread, or off."""
    if inference is not modes.inference:
        if inference:
            interceptors.append(inference_mode)
        else:
            interceptors.remove(inference_mode)


def restore(state: dict[str, Any]) -> None:
    """Make the modes of this thread what they were, whatever was entered or left since.

    Parameters
    ----------
    state : dict
        A copy of ``modes.__dict__``.
    """
    now = modes.__dict__
    before, after = state.get("watching", ()), modes.watching
    if before is not after:
        for watched in after:
            if not any(watched is other for other in before):
                _forget(watched)
        for watched in before:
            if not any(watched is other for other in after):
                _enter(watched)
    _note_inference(state.get("inference", False))
    now.update(state)
    for name in now.keys() - state.keys():
        del now[name]


def _set_grad(value: bool) -> None:
    """Record from now on, or not; inference mode only pretends."""
    if modes.inference:
        modes.claimed = value
    else:
        modes.grad = value
    if interceptors and modes.trace is not None:
        modes.trace.set_grad(value)


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
        return _decorate(self.clone, function)


def _decorate(make_mode: Callable[[], Mode], function: Function) -> Function:
    """Run every call of `function` inside a mode; generators have it set while they run."""
    wrapper: Any
    if inspect.isclass(function):
        warnings.warn(
            "Decorating classes is deprecated and will be disabled in future versions. You should "
            "only decorate functions or methods. To preserve the current behavior of class "
            "decoration, you can directly decorate the `__init__` method and nothing else.",
            FutureWarning,
            stacklevel=3,
        )
    if inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return _drive_async_generator(make_mode, function(*args, **kwargs))

    elif inspect.isgeneratorfunction(function):

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


def _drive_generator(make_mode: Callable[[], Mode], generator: Any) -> Any:
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

    def __init__(self, make_mode: Callable[[], Mode], coroutine: Any) -> None:
        self._make_mode = make_mode
        self._coroutine = coroutine

    def __await__(self) -> Any:
        return _drive_generator(self._make_mode, self._coroutine)


async def _drive_async_generator(make_mode: Callable[[], Mode], generator: Any) -> Any:
    """Do for an asynchronous generator what `_drive_generator` does."""
    try:
        value = await _Drive(make_mode, generator.__anext__())
        while True:
            try:
                sent = yield value
            except GeneratorExit:
                await _Drive(make_mode, generator.aclose())
                raise
            except BaseException as error:
                value = await _Drive(make_mode, generator.athrow(error))
            else:
                value = await _Drive(make_mode, generator.asend(sent))
    except StopAsyncIteration:
        return


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


class recording:  # noqa: N801 - as the modes above
    """Have this thread's operations recorded, or not, where that is nothing that a user asked for.

    What a user asks for counts in the world outside of a mapped function, too.
    """

    __slots__ = ("_previous", "_value")

    def __init__(self, value: bool) -> None:
        self._value = value
        self._previous = value

    def __enter__(self) -> None:
        self._previous = modes.grad
        if not modes.inference:
            modes.grad = self._value

    def __exit__(self, *exception: object) -> None:
        modes.grad = self._previous


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
        self._previous = is_grad_enabled()
        _set_grad(mode)

    def __repr__(self) -> str:
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"

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
        self._set(not self.mode, self.mode, False)

    def __exit__(self, *exception: object) -> None:
        self._set(*self._previous)

    def _set(self, grad: bool, inference: bool, claimed: bool) -> None:
        # By what changes, not by who is entered or left: that may be in any order.
        _note_inference(inference)
        modes.grad, modes.inference, modes.claimed = grad, inference, claimed


class set_multithreading_enabled(Mode):  # noqa: N801 - PyTorch's name
    """Set whether backward passes may use other threads, at once or for a block.

    Mirrors ``torch.autograd.set_multithreading_enabled``. In PyTorch that is for the threads of
    accelerators, which numgrad does not have: every backward pass runs on the thread that calls it.
    The setting is kept, for each thread on its own, and changes nothing.

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
