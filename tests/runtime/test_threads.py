"""The thread pool: every item once, whatever users do around it."""

from __future__ import annotations

import gc
import os
import textwrap
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numgrad.runtime import threads
from numgrad.runtime.threads import get_num_threads, parallel_for, set_num_threads
from tests.children import ended_well

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")


@pytest.fixture(autouse=True)
def three_threads() -> Iterator[None]:
    before = get_num_threads()
    set_num_threads(3)
    yield
    set_num_threads(before)


def count_visits(n_items: int, grain: int = 1, block: int = 1) -> np.ndarray:
    visits = np.zeros(n_items, np.int64)

    def task(start: int, stop: int) -> None:
        visits[start:stop] += 1

    parallel_for(task, n_items, grain, block=block)
    return visits


@given(
    n_items=st.integers(0, 300),
    grain=st.integers(1, 100),
    block=st.integers(1, 20),
    n_threads=st.integers(1, 5),
)
def test_chunks_make_up_the_range_and_start_at_blocks(
    n_items: int, grain: int, block: int, n_threads: int
) -> None:
    set_num_threads(n_threads)
    chunks: list[tuple[int, int]] = []
    parallel_for(lambda *chunk: chunks.append(chunk), n_items, grain, block=block)
    chunks.sort()
    assert [item for chunk in chunks for item in range(*chunk)] == list(range(n_items))
    assert all(start < stop and start % block == 0 for start, stop in chunks)
    assert len(chunks) <= max(1, -(-n_items // grain))


def test_chunks_run_at_the_same_time() -> None:
    together = threading.Barrier(3, timeout=30)
    names = set()

    def task(start: int, stop: int) -> None:
        together.wait()
        names.add(threading.current_thread().name)

    parallel_for(task, 3, 1)
    assert len(names) == 3
    assert threading.current_thread().name in names


@pytest.mark.parametrize(("n_threads", "n_items"), [(1, 1000), (3, 10)])
def test_one_thread_or_little_work_is_one_call_in_the_calling_thread(
    n_threads: int, n_items: int
) -> None:
    set_num_threads(n_threads)
    calls: list[tuple[int, int, int]] = []
    parallel_for(lambda *chunk: calls.append((threading.get_ident(), *chunk)), n_items, 10)
    assert calls == [(threading.get_ident(), 0, n_items)]


def test_a_nested_run_stays_in_its_thread() -> None:
    together = threading.Barrier(3, timeout=30)
    inner: list[tuple[int, int, int]] = []
    outer: set[int] = set()

    def task(start: int, stop: int) -> None:
        together.wait()
        outer.add(threading.get_ident())
        parallel_for(lambda *chunk: inner.append((threading.get_ident(), *chunk)), 100, 1)

    parallel_for(task, 3, 1)
    assert len(outer) == 3
    assert sorted(inner) == sorted((ident, 0, 100) for ident in outer)


def test_all_chunks_run_and_the_first_ones_error_is_raised() -> None:
    visits = np.zeros(100, np.int64)

    def task(start: int, stop: int) -> None:
        visits[start:stop] += 1
        if start >= 10:
            raise ValueError(start)

    with pytest.raises(ValueError) as caught:
        parallel_for(task, 100, 1)
    assert (visits == 1).all()
    assert caught.value.args == (18,)  # 12 chunks of 9 items: the first that starts beyond 10
    assert (count_visits(100) == 1).all()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_ends_a_program_goes_before_errors(error: type[BaseException]) -> None:
    together = threading.Barrier(3, timeout=30)

    def task(start: int, stop: int) -> None:
        if start < 3:
            together.wait()
        raise error if start == 2 else ValueError(start)

    with pytest.raises(error):
        parallel_for(task, 3, 1)
    assert (count_visits(100) == 1).all()
    together.reset()
    assert_threads_alive(3)


def assert_threads_alive(n_threads: int) -> None:
    together = threading.Barrier(n_threads, timeout=30)
    parallel_for(lambda start, stop: together.wait(), n_threads, 1)


def test_nothing_of_a_run_stays_alive() -> None:
    class Task:
        def __call__(self, start: int, stop: int) -> None:
            if start == 0:
                raise ValueError

    gc.disable()
    try:
        for _ in range(20):
            task = Task()
            watch = weakref.ref(task)
            with pytest.raises(ValueError):
                parallel_for(task, 100, 1)
            del task
            assert watch() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("withdrawn", [False, True])
def test_a_settled_request_keeps_nothing_alive(withdrawn: bool) -> None:
    visits: list[int] = []
    request = threads._Request(threads._Run(lambda start, stop: visits.append(start), 2, 1))
    if not withdrawn:
        request.follow()
    request.settle()
    assert request.run is None
    if withdrawn:
        request.follow()
    request.settle()  # which may be done again
    assert visits == ([] if withdrawn else [0, 1])


def test_user_threads_may_call_at_once() -> None:
    failures: list[object] = []

    def user() -> None:
        for _ in range(100):
            if not (count_visits(50) == 1).all():
                failures.append("an item was missed or done twice")

    users = [threading.Thread(target=user) for _ in range(6)]
    for thread in users:
        thread.start()
    for thread in users:
        thread.join(60)
    assert not any(thread.is_alive() for thread in users)
    assert not failures


def test_without_threads_to_be_had_the_caller_does_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads._Pool, "current", threads._Pool())
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert (count_visits(100) == 1).all()


PRELUDE = """
import os, signal, sys, threading, time
from numgrad.runtime.threads import parallel_for, set_num_threads
set_num_threads(3)

def total(n=100):
    parts = []
    parallel_for(lambda start, stop: parts.append(sum(range(start, stop))), n, 1)
    return sum(parts)

def together():
    barrier = threading.Barrier(3, timeout=30)
    parallel_for(lambda start, stop: barrier.wait(), 3, 1)

def child():  # what a forked child does
    try:
        together()
        os._exit(0 if total() == 4950 else 1)
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(2)

def wait(pid):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    return "hung"
"""


@needs_fork
def test_a_forked_child_has_threads_of_its_own() -> None:
    script = """
    together()
    pid = os.fork()
    if pid == 0:
        child()
    together()
    print(wait(pid), total())
    """
    assert ended_well(PRELUDE + textwrap.dedent(script)) == "0 4950\n"


@needs_fork
def test_forking_during_another_threads_run_leaves_both_processes_working() -> None:
    script = """
    started, go_on = threading.Event(), threading.Event()

    def task(start, stop):
        started.set()
        go_on.wait(30)

    user = threading.Thread(target=parallel_for, args=(task, 3, 1))
    user.start()
    started.wait(30)
    pids = []
    for _ in range(5):
        pid = os.fork()
        if pid == 0:
            child()
        pids.append(pid)
    codes = [wait(pid) for pid in pids]
    go_on.set()
    user.join(30)
    together()
    print(codes, user.is_alive(), total())
    """
    assert ended_well(PRELUDE + textwrap.dedent(script)) == "[0, 0, 0, 0, 0] False 4950\n"


@needs_fork
def test_a_fork_inside_a_task_raises_in_the_child_instead_of_hanging() -> None:
    script = """
    caller = threading.get_ident()
    barrier = threading.Barrier(3, timeout=30)

    def task(start, stop):
        barrier.wait()
        if threading.get_ident() == caller:
            pids.append(os.fork())

    pids = []
    try:
        parallel_for(task, 3, 1)
    except RuntimeError as error:
        os._exit(0 if pids == [0] and "forked" in str(error) else 1)
    print(wait(pids[0]))
    """
    assert ended_well(PRELUDE + textwrap.dedent(script)) == "0\n"


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C is no signal to a process there")
@pytest.mark.usefixtures("ctrl_c")
def test_an_interrupted_run_leaves_the_pool_usable() -> None:
    script = """
    def task(start, stop):
        time.sleep(0.05)

    for delay in (0.0, 0.02, 0.06, 0.1):
        try:
            threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)).start()
            while True:
                parallel_for(task, 12, 1)
        except KeyboardInterrupt:
            pass
        together()
    print(total())
    """
    assert ended_well(PRELUDE + textwrap.dedent(script)) == "4950\n"


def test_the_interpreter_ends_with_threads_waiting_and_working() -> None:
    script = """
    together()
    started = threading.Event()

    def task(start, stop):
        started.set()
        time.sleep(60)

    threading.Thread(target=parallel_for, args=(task, 3, 1), daemon=True).start()
    started.wait(30)
    print("end")
    """
    assert ended_well(PRELUDE + textwrap.dedent(script)) == "end\n"


# --- how many threads ----------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, -1])
def test_set_num_threads_wants_a_positive_integer(n: int) -> None:
    with pytest.raises(RuntimeError, match=r"^set_num_threads expects a positive integer$"):
        set_num_threads(n)
    assert get_num_threads() == 3


@pytest.mark.parametrize("n", [1.5, "2", True, None])
def test_set_num_threads_wants_an_int(n: object) -> None:
    words = f"^set_num_threads expects an int, but got {type(n).__name__}$"
    with pytest.raises(RuntimeError, match=words):
        set_num_threads(n)  # type: ignore[arg-type]


def test_errors_of_set_num_threads_are_pytorchs(torch: object) -> None:
    for n in (0, -3, 1.5, "2", True, None):
        with pytest.raises(RuntimeError) as expected:
            torch.set_num_threads(n)  # type: ignore[attr-defined]
        with pytest.raises(RuntimeError) as ours:
            set_num_threads(n)  # type: ignore[arg-type]
        assert str(ours.value) == str(expected.value)


@pytest.fixture
def unset(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No number was set, by anyone."""
    monkeypatch.setattr(threads._Settings, "num_threads", None)
    monkeypatch.delenv("NUMGRAD_NUM_THREADS", raising=False)
    return monkeypatch


def test_the_variable_sets_the_default(unset: pytest.MonkeyPatch) -> None:
    unset.setenv("NUMGRAD_NUM_THREADS", " 7 ")
    assert get_num_threads() == 7


@pytest.mark.parametrize("value", ["0", "-2", "two", "1.5", "²"])
def test_a_bad_variable_is_named_in_the_error(unset: pytest.MonkeyPatch, value: str) -> None:
    unset.setenv("NUMGRAD_NUM_THREADS", value)
    with pytest.raises(ValueError, match="NUMGRAD_NUM_THREADS expects a positive integer"):
        get_num_threads()


@pytest.mark.parametrize(
    ("affinity", "quota", "expected"),
    [(8, float("inf"), 8), (8, 3.9, 3), (2, 3.9, 2), (8, 0.5, 1)],
)
def test_the_default_is_the_cores_that_may_be_used(
    unset: pytest.MonkeyPatch, affinity: int, quota: float, expected: int
) -> None:
    unset.setattr(os, "sched_getaffinity", lambda pid: set(range(affinity)), raising=False)
    unset.setattr(threads, "_cgroup_cores", lambda: quota)
    assert get_num_threads() == expected


def test_without_affinity_the_default_is_all_cores(unset: pytest.MonkeyPatch) -> None:
    unset.delattr(os, "sched_getaffinity", raising=False)
    unset.setattr(os, "cpu_count", lambda: 5)
    unset.setattr(threads, "_cgroup_cores", lambda: float("inf"))
    assert get_num_threads() == 5


@pytest.mark.parametrize(
    ("membership", "files", "expected"),
    [
        ("0::/a/b\n", {"a/b/cpu.max": "150000 100000\n"}, 1.5),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "200000 100000\n"}, 2.0),
        ("0::/\n", {"cpu.max": "400000 100000\n"}, 4.0),
        ("0::/host/path/of/a/container\n", {"cpu.max": "50000 100000\n"}, 0.5),
        ("0::/a\n", {}, float("inf")),
        ("0::/a\n", {"a/cpu.max": "nonsense\n"}, float("inf")),
        (
            "4:memory:/m\n3:cpu,cpuacct:/docker/x\n0::/\n",
            {
                "cpu,cpuacct/docker/x/cpu.cfs_quota_us": "250000\n",
                "cpu,cpuacct/docker/x/cpu.cfs_period_us": "100000\n",
            },
            2.5,
        ),
        (
            "1:cpu:/x\n",
            {"cpu/x/cpu.cfs_quota_us": "-1\n", "cpu/x/cpu.cfs_period_us": "100000\n"},
            float("inf"),
        ),
        ("3:cpuset:/x\n", {"cpuset/x/cpu.max": "100000 100000\n"}, float("inf")),
    ],
)
def test_control_groups_limit_the_cores(
    tmp_path: Path, membership: str, files: dict[str, str], expected: float
) -> None:
    (tmp_path / "membership").write_text(membership)
    mount = tmp_path / "mount"
    mount.mkdir()
    for name, content in files.items():
        (mount / name).parent.mkdir(parents=True, exist_ok=True)
        (mount / name).write_text(content)
    assert threads._cgroup_cores(tmp_path / "membership", mount) == expected


def test_without_control_groups_there_is_no_limit(tmp_path: Path) -> None:
    assert threads._cgroup_cores(tmp_path / "none", tmp_path) == float("inf")
