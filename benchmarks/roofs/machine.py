"""What the machine can do: bytes and floating-point operations in a second, by loops of Numba."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from numgrad.codegen.llvm.width import use_wide_vectors
from numgrad.math.real.bits import fma
from numgrad.runtime.threads import get_num_threads, parallel_for

__all__ = ["best_time", "copy_bandwidth", "peak", "read_bandwidth"]

Array = np.ndarray[Any, Any]

ELEMENTS = 1 << 24  # of float64: several times what the caches of most machines hold
CACHED = (8, 256)  # the shape of what stays in the nearest cache
CHAIN = 32  # multiplications and additions of an element while it is in a register
ROUNDS = 1 << 11


def best_time(call: Callable[[], object], seconds: float = 0.3, repeats: int = 7) -> float:
    """Return the least time of several calls: whatever else the machine does adds to it."""
    times: list[float] = []
    while len(times) < repeats or sum(times) < seconds:
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


@njit(nogil=True, fastmath={"reassoc"})
def _read(x: Array) -> Any:
    use_wide_vectors()
    total = 0.0
    for i in range(x.size):
        total += x[i]
    return total


@njit(nogil=True)
def _copy(x: Array, out: Array) -> None:
    for i in range(x.size):
        out[i] = x[i]


@njit(nogil=True, error_model="numpy", fastmath={"reassoc"})
def spin(x: Array, rounds: int) -> Any:
    """Multiply and add in registers: eight chains beside each other, for each lane of a vector.

    In a chain a step waits for the one before it. Eight keep the processor busy meanwhile.
    """
    use_wide_vectors()
    total, factor, summand = x.dtype.type(0), x.dtype.type(0.999), x.dtype.type(0.001)
    for _ in range(rounds):
        for i in range(x.shape[1]):
            a, b, c, d = x[0, i], x[1, i], x[2, i], x[3, i]
            e, f, g, h = x[4, i], x[5, i], x[6, i], x[7, i]
            for _ in range(CHAIN):
                a, b = fma(a, factor, summand), fma(b, factor, summand)
                c, d = fma(c, factor, summand), fma(d, factor, summand)
                e, f = fma(e, factor, summand), fma(f, factor, summand)
                g, h = fma(g, factor, summand), fma(h, factor, summand)
            total += ((a + b) + (c + d)) + ((e + f) + (g + h))
    return total


def read_bandwidth() -> float:
    """Return the bytes a second that the threads read."""
    x = np.ones(ELEMENTS)
    call = lambda: parallel_for(lambda start, stop: _read(x[start:stop]), x.size, 1)  # noqa: E731
    call()
    return x.nbytes / best_time(call)


def copy_bandwidth() -> float:
    """Return the bytes a second that the threads read and write when they copy."""
    x, out = np.ones(ELEMENTS), np.ones(ELEMENTS)

    def call() -> None:
        parallel_for(lambda start, stop: _copy(x[start:stop], out[start:stop]), x.size, 1)

    call()
    return 2 * x.nbytes / best_time(call)


def peak(dtype: str) -> float:
    """Return the operations a second of the threads, on numbers that stay where they are."""
    threads = get_num_threads()
    buffers = [np.ones(CACHED, dtype) for _ in range(threads)]

    def task(start: int, stop: int) -> None:
        for buffer in buffers[start:stop]:
            spin(buffer, ROUNDS)

    def call() -> None:
        parallel_for(task, threads, 1)

    call()
    return (2 * CHAIN + 1) * buffers[0].size * ROUNDS * threads / best_time(call)
