"""Locks in a forked child: free if another thread held them, held if the one that forked did."""

from __future__ import annotations

import os
import threading

import pytest

from numgrad.runtime.forks import forkable_lock


def status_of(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
def test_a_lock_that_the_forking_thread_holds_stays_its_own() -> None:
    """It may hold one twice, and release as often; one of another thread is free beside it."""
    held, other, last = (forkable_lock() for _ in range(3))
    taken, ended = threading.Event(), threading.Event()

    def hold() -> None:
        with other, last:
            taken.set()
            ended.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert taken.wait(60)
    with held, held:
        child = os.fork()
        if not child:
            code = 1
            try:
                free = [lock.acquire(blocking=False) for lock in (other, last)]
                elsewhere: list[bool] = []
                own = threading.Thread(
                    target=lambda: elsewhere.append(held.acquire(blocking=False))
                )
                own.start()
                own.join(60)
                for _ in range(2):
                    held.release()
                code = 0 if free == [True, True] and elsewhere == [False] else 2
            finally:
                os._exit(code)
    status = status_of(child)
    ended.set()
    thread.join()
    assert status == 0
