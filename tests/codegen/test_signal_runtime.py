"""What the handler of a signal raises ends compiled loops and is raised, whoever called them."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numba import njit

import numgrad as ng
from numgrad.func import grad, while_loop


class Late(Exception):
    """An exception with something in it."""


def _late(number: int, frame: Any) -> None:
    raise Late("after", number)


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    """Have the alarm raise; Ctrl-C does nothing meanwhile."""
    before = [
        (each, signal.signal(each, handler))
        for each, handler in ((signal.SIGALRM, _late), (signal.SIGINT, signal.SIG_IGN))
    ]
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    for each, handler in before:
        signal.signal(each, handler)


def _endless(x: Any) -> Any:
    return while_loop(lambda c: c.max() < 10, lambda c: (c * 0.5 + 1).sin(), x)


def _in_jit() -> Callable[[Any], Any]:
    compiled = ng.jit(_endless)
    return lambda array: compiled(ng.from_numpy(array)).numpy()


def _gradient() -> Callable[[Any], Any]:
    compiled = ng.jit(grad(lambda x: _endless(x).sum()))
    return lambda array: compiled(ng.from_numpy(array)).numpy()


def _dispatcher() -> Any:
    return ng.jit(_endless).lower(ng.ones(2, dtype=ng.float64)).dispatcher


def _in_own_loop() -> Any:
    dispatcher = _dispatcher()

    @njit
    def again(array: Any) -> Any:
        while True:
            (array,) = dispatcher(array)
            if array[0] > 10:
                return array

    return again


CALLS: dict[str, Callable[[], Callable[[Any], Any]]] = {
    "jit": _in_jit,
    "gradient": _gradient,
    "dispatcher": lambda: lambda array: _dispatcher()(array)[0],
    "own loop": _in_own_loop,
}


@pytest.mark.parametrize("name", CALLS)
def test_what_a_handler_raises_ends_a_loop_and_is_raised(name: str) -> None:
    call, far, near = CALLS[name](), np.array([20.0, 0.0]), np.array([1.0, 0.5])
    expected = call(far)  # compiled
    for _ in range(3):
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(Late) as found:
            call(near)
        assert found.value.args == ("after", signal.SIGALRM)
        np.testing.assert_array_equal(call(far), expected)  # nothing of it is left


def test_what_was_raised_is_kept_by_nobody() -> None:
    dispatcher = _dispatcher()
    dispatcher(np.array([20.0, 0.0]))
    counts = []
    for _ in range(6):
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(Late):
            dispatcher(np.ones(2))
        counts.append(sys.getrefcount(Late))
    assert counts[-1] <= counts[1]
