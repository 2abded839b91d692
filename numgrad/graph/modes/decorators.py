"""Modes as decorators: functions, coroutines and generators that run in a mode, each in its way."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["decorated"]

Function = TypeVar("Function", bound=Callable[..., Any])


def decorated(make_mode: Callable[[], Any], function: Function) -> Function:
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


def _drive_generator(make_mode: Callable[[], Any], generator: Any) -> Any:
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

    def __init__(self, make_mode: Callable[[], Any], coroutine: Any) -> None:
        self._make_mode = make_mode
        self._coroutine = coroutine

    def __await__(self) -> Any:
        return _drive_generator(self._make_mode, self._coroutine)


async def _drive_async_generator(make_mode: Callable[[], Any], generator: Any) -> Any:
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
