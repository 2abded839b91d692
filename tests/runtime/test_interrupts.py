"""Work that signals must not tear, and what becomes of those that come meanwhile."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numgrad.runtime.interrupts import raise_in, undisturbed
from tests.runtime.pressing import press

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals to oneself are of POSIX")

SIGNALS = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def _note_into(seen: list[int], error: type[BaseException] | None) -> Callable[[int, Any], None]:
    def handler(number: int, frame: Any) -> None:
        seen.append(number)
        if error is not None:
            raise error(number)

    return handler


class Stop(BaseException):
    """What a handler may raise."""


@given(
    st.lists(st.sampled_from(SIGNALS), max_size=5),
    st.dictionaries(st.sampled_from(SIGNALS), st.sampled_from([None, Stop, KeyboardInterrupt])),
    st.sampled_from([None, ValueError]),
    st.integers(0, 3),
)
def test_every_signal_is_delivered_once_afterwards_and_all_handlers_are_back(
    sent: list[int],
    raising: dict[int, type[BaseException] | None],
    failure: type[BaseException] | None,
    depth: int,
) -> None:
    seen: list[int] = []
    during: list[int] = []
    handlers = {number: _note_into(seen, raising.get(number)) for number in SIGNALS}
    for number, handler in handlers.items():
        signal.signal(number, handler)

    def work(depth: int) -> str:
        if depth:
            return undisturbed(work, depth - 1)
        for number in sent:
            signal.raise_signal(number)
        during.extend(seen)
        if failure is not None:
            raise failure("of the work itself")
        return "done"

    came = list(dict.fromkeys(sent))
    raised = [kind for number in came if (kind := raising.get(number)) is not None]
    ended: type[BaseException] | None = None
    try:
        assert undisturbed(work, depth) == "done"
    except BaseException as error:
        ended = type(error)
    assert ended in (raised or [failure])
    assert during == []
    assert seen == came
    assert {number: signal.getsignal(number) for number in SIGNALS} == handlers


@pytest.mark.parametrize("disposition", [signal.SIG_IGN, signal.SIG_DFL])
def test_what_is_no_handler_of_pythons_is_left_alone(disposition: signal.Handlers) -> None:
    signal.signal(signal.SIGUSR1, disposition)
    found = undisturbed(signal.getsignal, signal.SIGUSR1)
    assert found is disposition
    assert signal.getsignal(signal.SIGUSR1) is disposition


def test_a_handler_that_the_work_installs_stays() -> None:
    seen: list[int] = []
    handler = _note_into(seen, None)
    signal.signal(signal.SIGUSR1, _note_into([], None))
    undisturbed(signal.signal, signal.SIGUSR1, handler)
    signal.raise_signal(signal.SIGUSR1)
    assert seen == [signal.SIGUSR1]


def test_what_is_raised_in_a_thread_waits_for_the_work_there() -> None:
    inside, sent = threading.Event(), threading.Event()
    steps: list[str] = []

    def work() -> None:
        inside.set()
        sent.wait(60)
        steps.append("worked")

    def run() -> None:
        try:
            undisturbed(work)
            steps.append("went on")
        except Stop:
            steps.append("stopped")

    thread = threading.Thread(target=run)
    thread.start()
    inside.wait(60)
    raise_in(thread.ident or 0, Stop)
    sent.set()
    thread.join(60)
    assert steps == ["worked", "stopped"]


def test_a_thread_that_does_no_such_work_is_interrupted_at_once() -> None:
    inside, ended = threading.Event(), threading.Event()

    def run() -> None:
        try:
            while True:
                inside.set()
        except Stop:
            ended.set()

    thread = threading.Thread(target=run)
    thread.start()
    inside.wait(60)
    raise_in(thread.ident or 0, Stop)
    assert ended.wait(60)
    thread.join(60)


def test_signals_reach_the_main_thread_while_another_one_compiles() -> None:
    signal.signal(signal.SIGUSR1, _note_into([], Stop))
    inside, seen = threading.Event(), threading.Event()

    def work() -> None:
        inside.set()
        seen.wait(60)

    thread = threading.Thread(target=undisturbed, args=(work,))
    thread.start()
    inside.wait(60)
    with pytest.raises(Stop):
        signal.raise_signal(signal.SIGUSR1)
    seen.set()
    thread.join(60)


def test_ctrl_c_while_kernels_are_compiled_costs_calls_and_nothing_else(tmp_path: Path) -> None:
    """`tests.runtime.pressing` does it for as long as one likes."""
    directory = str(tmp_path / "cache")
    came, found = press(1, 0.15, 4.0, directory)
    assert came > 3
    assert (0, found) == press(1, 1.0, 0.0, directory)
