"""A thread pool for large kernels: blocks of a range, `set_num_threads`.

Kernels release the GIL, so Python threads are enough, and unlike Numba's own threading layers they
survive what users do: fork, call from threads of their own, nest. The calling thread always works
too and never depends on the others: it takes chunks until none is left, withdraws its requests for
help that nobody has followed yet, and waits for those that somebody has.
"""

from __future__ import annotations

import math
import os
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import ClassVar

__all__ = ["get_num_threads", "parallel_for", "set_num_threads"]

Task = Callable[[int, int], object]

# More chunks than threads, so that a thread that lost its core for a while holds up less.
CHUNKS_PER_THREAD = 4


def set_num_threads(n: int) -> None:
    """Set how many threads a large kernel uses, the calling one included.

    Mirrors ``torch.set_num_threads``. The default is ``NUMGRAD_NUM_THREADS``, else the cores that
    this process may use. Results do not depend on it.

    Parameters
    ----------
    n : int
        At least 1.

    Raises
    ------
    RuntimeError
        If `n` is not an int, or not positive.

    Examples
    --------
    >>> before = get_num_threads()
    >>> set_num_threads(2)
    >>> get_num_threads()
    2
    >>> set_num_threads(before)
    """
    if not isinstance(n, int) or isinstance(n, bool):
        raise RuntimeError(f"set_num_threads expects an int, but got {type(n).__name__}")
    if n <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")
    _Settings.num_threads = n


def get_num_threads() -> int:
    """Return how many threads a large kernel uses, the calling one included.

    Mirrors ``torch.get_num_threads``.

    Raises
    ------
    ValueError
        If ``NUMGRAD_NUM_THREADS`` is needed and is no positive integer.

    Examples
    --------
    >>> get_num_threads() >= 1
    True
    """
    if _Settings.num_threads is None:
        _Settings.num_threads = _default_num_threads()
    return _Settings.num_threads


def parallel_for(task: Task, n_items: int, grain: int, *, block: int = 1) -> None:
    """Run ``task(start, stop)`` over chunks that together make ``range(n_items)``.

    Parameters
    ----------
    task : callable
        Called with the bounds of each chunk, from several threads at once and in no fixed order;
        it should hand the work to a kernel, which runs without the GIL.
    n_items : int
        The length of the range.
    grain : int
        The least number of items worth handing to a thread (some 100 us of work). Up to this many
        run in the calling thread, as one chunk.
    block : int
        Chunks start at multiples of it. A kernel whose result depends on where its input is cut
        must take this as the size of its blocks, and never look at the chunk's own size.

    Raises
    ------
    Exception
        Whatever a task raised, after all chunks have finished; with several, that of the first
        chunk. A `KeyboardInterrupt` ends the run early, after the chunks that are under way.

    Notes
    -----
    A task that calls `parallel_for` runs that inner range itself.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.zeros(10)
    >>> def fill(start, stop):
    ...     x[start:stop] = np.arange(start, stop)
    >>> parallel_for(fill, 10, grain=2)
    >>> x
    array([0., 1., 2., 3., 4., 5., 6., 7., 8., 9.])
    """
    if n_items <= grain or _here.busy:
        if n_items > 0:
            task(0, n_items)
        return
    threads = get_num_threads()
    chunks = min(-(-n_items // grain), threads * CHUNKS_PER_THREAD)
    size = -(-n_items // chunks)
    size = -(-size // block) * block
    chunks = -(-n_items // size)
    helpers = min(threads, chunks) - 1
    if helpers < 1:
        task(0, n_items)
        return
    _Run(task, n_items, size).finish(helpers)


class _Settings:
    """What users may change."""

    num_threads: ClassVar[int | None] = None


class _Here(threading.local):
    """What the current thread is doing."""

    busy = False  # in a task already: what it calls runs in this thread


_here = _Here()


class _Request:
    """One thread's invitation to help with a run; the first to write to `fate` decides on it."""

    __slots__ = ("done", "fate", "finished", "run")

    def __init__(self, run: _Run) -> None:
        self.run: _Run | None = run
        self.fate: dict[str, str] = {}
        self.done = False
        self.finished = threading.Lock()
        self.finished.acquire()

    def follow(self) -> None:
        """Work on the run, in a thread of the pool, unless the request was withdrawn."""
        if self.fate.setdefault("fate", "followed") == "followed":
            try:
                if self.run is not None:
                    self.run.work()
            finally:
                self.run = None  # from now on, this thread keeps no array alive
                self.done = True
                self.finished.release()

    def settle(self) -> None:
        """Withdraw the request, or wait for the thread that follows it.

        Ctrl-C may end this at any point, and then it can be done again: every step gives the same
        answer the second time.
        """
        if self.fate.setdefault("fate", "withdrawn") == "withdrawn":
            self.run = None
            return
        while not self.done:
            self.finished.acquire()


class _Run:
    """One call of `parallel_for`."""

    __slots__ = ("errors", "n_items", "pool", "size", "starts", "task")

    def __init__(self, task: Task, n_items: int, size: int) -> None:
        self.task = task
        self.n_items = n_items
        self.size = size
        # A deque's operations are atomic, so threads take chunks from it without a lock.
        self.starts = deque(range(0, n_items, size))
        self.errors: list[tuple[int, BaseException]] = []
        self.pool = _Pool.current

    def work(self) -> None:
        """Take chunks until none is left. Exceptions are kept for the calling thread."""
        _here.busy = True
        try:
            while True:
                try:
                    start = self.starts.popleft()
                except IndexError:
                    return
                try:
                    self.task(start, min(start + self.size, self.n_items))
                except BaseException as error:
                    self.errors.append((start, error))
                    if not isinstance(error, Exception):  # KeyboardInterrupt, SystemExit
                        self.starts.clear()
        finally:
            _here.busy = False

    def finish(self, helpers: int) -> None:
        """Do the whole run with this many threads besides the calling one."""
        requests = [_Request(self) for _ in range(helpers)]
        try:
            try:
                self.pool.post(requests)
                self.work()
            finally:
                self.settle(requests)
        except KeyboardInterrupt:
            # Wherever it came: nobody may write to an array after this.
            self.settle(requests)
            raise
        if self.errors:
            try:
                raise min(self.errors, key=_urgency)[1]
            finally:
                self.errors.clear()  # breaks the cycle error -> traceback -> run -> error

    def settle(self, requests: list[_Request]) -> None:
        """See to it that nobody works on this run any more; the second time there is no wait.

        Ctrl-C does not end the wait, which is for the chunks under way, but is raised after it.
        """
        self.starts.clear()  # something is left only if Ctrl-C came between two chunks
        if self.pool is not _Pool.current:
            raise RuntimeError("a task of parallel_for forked: the child has lost its threads")
        interrupt = None
        settled = False
        while not settled:
            try:
                for request in requests:
                    request.settle()
                settled = True
            except KeyboardInterrupt as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt


def _urgency(entry: tuple[int, BaseException]) -> tuple[bool, int]:
    """Order what tasks raised: what should end the program first, then by chunk."""
    start, error = entry
    return isinstance(error, Exception), start


class _Pool:
    """Daemon threads that follow requests. They start when first needed and then stay."""

    current: ClassVar[_Pool]

    def __init__(self) -> None:
        self.requests: SimpleQueue[_Request] = SimpleQueue()
        self.lock = threading.Lock()
        self.threads = 0

    def post(self, requests: list[_Request]) -> None:
        """Ask for help."""
        if self.threads < len(requests):
            self.grow(len(requests))
        for request in requests:
            self.requests.put(request)

    def grow(self, threads: int) -> None:
        """Have this many threads, or as many as the system grants."""
        with self.lock:
            while self.threads < threads:
                name = f"numgrad-{self.threads + 1}"
                thread = threading.Thread(target=self.serve, name=name, daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # at the limit of threads, or the interpreter is ending
                    return
                self.threads += 1

    def serve(self) -> None:
        """Run as a thread of the pool, for ever."""
        requests = self.requests
        while True:
            requests.get().follow()


def _new_pool() -> None:
    """Start afresh: the threads of the parent process do not exist in a forked child."""
    _Pool.current = _Pool()


_new_pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_pool)


# --- how many threads ----------------------------------------------------------------------------


def _default_num_threads() -> int:
    """Return what the environment says, else the cores that this process may use."""
    setting = os.environ.get("NUMGRAD_NUM_THREADS", "").strip()
    if setting:
        if not setting.isascii() or not setting.isdigit() or int(setting) == 0:
            raise ValueError(f"NUMGRAD_NUM_THREADS expects a positive integer, but got {setting!r}")
        return int(setting)
    try:
        cores = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):  # macOS and Windows have no such call
        cores = os.cpu_count() or 1
    # Rounded down, because a thread beyond the quota makes the kernel stop all of them at times.
    return max(1, math.floor(min(cores, _cgroup_cores())))


def _cgroup_cores(
    membership: Path = Path("/proc/self/cgroup"), mount: Path = Path("/sys/fs/cgroup")
) -> float:
    """Return how many cores the control groups give to this process; inf without a limit."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return math.inf
    cores = math.inf
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        root = mount / controllers if controllers else mount
        group = root / path.lstrip("/")
        # A limit on a group holds for the groups in it. In a container, the path may be the
        # host's, of which only the upper end of this walk exists.
        for directory in (group, *group.parents):
            cores = min(cores, _quota(directory))
            if directory == root:
                break
    return cores


def _quota(group: Path) -> float:
    """Return one control group's limit, as version 2 or 1 states it."""
    try:
        if (group / "cpu.max").exists():
            quota, period = (group / "cpu.max").read_text().split()
        else:
            quota = (group / "cpu.cfs_quota_us").read_text().strip()
            period = (group / "cpu.cfs_period_us").read_text().strip()
        return math.inf if quota in ("max", "-1") else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return math.inf
