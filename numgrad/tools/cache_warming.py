"""Fill the kernel cache ahead of time, by calling every operation of the catalogue once."""

from __future__ import annotations

import multiprocessing
import signal
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing.synchronize import Event
from typing import ClassVar, NamedTuple

from numgrad.base.dtypes import DTYPES
from numgrad.codegen.compile.cache import counts
from numgrad.codegen.compile.cache_files import CacheWarning
from numgrad.ops.core.sample_calls import REFUSALS, sample_calls

__all__ = ["Job", "Warmed", "warm", "warm_one"]


class Job(NamedTuple):
    """One operation on one dtype."""

    operation: str
    dtype: str

    def __str__(self) -> str:
        return f"{self.operation} {self.dtype}"


class Warmed(NamedTuple):
    """What became of a job."""

    job: Job
    loaded: int = 0  #: kernels that were in the cache
    compiled: int = 0  #: kernels that were not
    calls: int = 0  #: that were made
    refused: int = 0  #: of them, those that the operation refused to make on this dtype
    failure: str = ""  #: what went wrong, if something did


def warm(jobs: Iterable[Job], processes: int = 1) -> Iterator[Warmed]:
    """Do jobs, and yield what became of each.

    Parameters
    ----------
    jobs : iterable of Job
        What to compile.
    processes : int
        How many processes do it; 1 is this one.
    """
    if processes == 1:
        yield from map(warm_one, jobs)
        return
    # A forked child would have all that this process has compiled, and its threads' locks.
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    pool = ProcessPoolExecutor(
        processes, mp_context=context, initializer=_begin_process, initargs=(stop,)
    )
    try:
        for future in as_completed([pool.submit(warm_one, job) for job in jobs]):
            yield future.result()
    finally:
        # After Ctrl-C this waits for the kernels that are being compiled, which are then kept.
        stop.set()
        pool.shutdown(cancel_futures=True)


class _Process:
    """What a process of the pool is told."""

    stop: ClassVar[Event | None] = None  # set when it should do no more


def _begin_process(stop: Event) -> None:
    """Leave Ctrl-C to the first process; the terminal sends it to all of them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _Process.stop = stop


def warm_one(job: Job) -> Warmed:
    """Make every sample call of an operation on a dtype, there and back.

    Examples
    --------
    >>> warm_one(Job("mul", "float32")).failure
    ''
    """
    before = counts()
    calls = refused = 0
    failure = ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # some operations warn of what they are
        warnings.simplefilter("default", CacheWarning)
        try:
            for call in sample_calls(job.operation, DTYPES[job.dtype]):
                if _Process.stop is not None and _Process.stop.is_set():
                    break
                calls += 1
                try:
                    call.run()
                except REFUSALS:
                    refused += 1
        except Exception as error:  # reported, and the other operations go on
            failure = f"{type(error).__name__}: {error}"
    loaded, compiled = (after - start for after, start in zip(counts(), before, strict=True))
    return Warmed(job, loaded, compiled, calls, refused, failure)
