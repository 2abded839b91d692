"""Recycled memory: an array like any other, never two arrays in one place, within the limit."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numgrad.base.tuning import RECYCLED_BYTES
from numgrad.runtime import memory
from numgrad.runtime.memory import empty, empty_cache, memory_stats, set_memory_limit
from tests.children import ended_well

DTYPES = [np.bool_, np.int8, np.uint8, np.int16, np.int32, np.int64]
DTYPES += [np.float32, np.float64, np.complex64, np.complex128]


@pytest.fixture(autouse=True)
def empty_pool() -> Iterator[None]:
    limit = memory_stats().limit
    set_memory_limit(64 * RECYCLED_BYTES)
    empty_cache()
    yield
    set_memory_limit(limit)
    empty_cache()


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


@pytest.mark.sampled(0.14)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape",
    [
        (),
        0,
        5,
        (0,),
        (2, 3),
        (0, 10**9),
        RECYCLED_BYTES,
        (RECYCLED_BYTES, 1),
        (3, RECYCLED_BYTES // 3 + 1),
        (2, 1, RECYCLED_BYTES),
    ],
)
def test_an_array_is_one_of_numpys(shape: int | tuple[int, ...], dtype: type) -> None:
    for _ in range(2):  # the second is on a recycled buffer, if it is large
        array = empty(shape, np.dtype(dtype))
        expected: np.ndarray = np.empty(shape, dtype)
        assert type(array) is np.ndarray
        assert array.shape == expected.shape
        assert array.dtype == expected.dtype
        assert array.strides == expected.strides
        assert array.flags.writeable
        assert array.flags.c_contiguous
        assert array.flags.aligned
        assert array.nbytes < RECYCLED_BYTES or address(array) % 64 == 0
        array[...] = 1
        assert (array == 1).all()
        del array


def test_impossible_shapes_are_numpys_errors() -> None:
    for shape in [(-1,), (-RECYCLED_BYTES, -1), (-1, 2)]:
        with pytest.raises(ValueError, match="negative dimensions"):
            empty(shape, np.dtype(np.float64))
    with pytest.raises((MemoryError, ValueError)):
        empty((2**61,), np.dtype(np.float64))


def test_objects_are_not_put_on_recycled_memory() -> None:
    assert empty(RECYCLED_BYTES, np.dtype(object))[0] is None


def test_a_freed_buffer_is_used_again() -> None:
    array = empty(RECYCLED_BYTES, np.float32)
    place = address(array)
    del array
    assert memory_stats().cached_buffers == 1
    hits = memory_stats().hits
    array = empty((2, RECYCLED_BYTES // 2), np.int32)
    assert address(array) == place
    assert memory_stats().hits == hits + 1
    assert memory_stats().cached_bytes == 0


@pytest.mark.parametrize(
    "keep",
    [
        lambda a: a[10:20],
        lambda a: a.view(np.uint8)[::-3],
        lambda a: a.reshape(2, -1).T,
        memoryview,
        lambda a: np.asarray(memoryview(a)),
        lambda a: np.lib.stride_tricks.as_strided(a, (3,), (8,)),
        lambda a: a.ctypes,
        lambda a: a.base,
    ],
)
def test_a_buffer_is_not_free_while_anything_looks_at_it(keep: object) -> None:
    array = empty(RECYCLED_BYTES, np.float64)
    view = keep(array)  # type: ignore[operator]
    del array
    assert memory_stats().cached_buffers == 0
    del view
    assert memory_stats().cached_buffers == 1


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(1, 40)), max_size=40))
def test_live_arrays_never_share_memory(steps: list[tuple[int, int]]) -> None:
    live: dict[int, np.ndarray] = {}
    for slot, size in steps:  # frees what was in the slot
        live.pop(slot, None)
        live[slot] = empty(size * RECYCLED_BYTES // 64, np.float64)
        live[slot].fill(slot)
        assert all((array == number).all() for number, array in live.items())


@given(st.integers(RECYCLED_BYTES, 2**45))
def test_a_size_class_holds_the_size_and_wastes_at_most_a_quarter(nbytes: int) -> None:
    size_class = memory._size_class(nbytes)
    size = memory._size(size_class)
    assert nbytes <= size <= nbytes * 1.25
    assert size_class == 0 or memory._size(size_class - 1) < nbytes


def test_the_longest_unused_goes_first_when_the_limit_is_reached() -> None:
    set_memory_limit(3 * RECYCLED_BYTES)
    arrays = [empty(RECYCLED_BYTES, np.uint8) for _ in range(4)]
    places = [address(array) for array in arrays]
    while arrays:
        del arrays[0]
    assert memory_stats().cached_bytes == 3 * RECYCLED_BYTES
    again = [empty(RECYCLED_BYTES, np.uint8) for _ in range(3)]
    assert [address(array) for array in again] == places[:0:-1]


def test_the_longest_unused_goes_first_whatever_its_size() -> None:
    set_memory_limit(6 * RECYCLED_BYTES)
    sizes = [3 * RECYCLED_BYTES, RECYCLED_BYTES, 2 * RECYCLED_BYTES, 2 * RECYCLED_BYTES]
    arrays = [empty(size, np.uint8) for size in sizes]
    while arrays:
        del arrays[0]
    assert memory_stats().cached_bytes == 5 * RECYCLED_BYTES
    hits = memory_stats().hits
    kept = [empty(size, np.uint8) for size in sizes[1:]]
    assert len(kept) == memory_stats().hits - hits == 3


def test_what_exceeds_the_limit_by_itself_pushes_nothing_out() -> None:
    set_memory_limit(3 * RECYCLED_BYTES)
    small, large = empty(RECYCLED_BYTES, np.uint8), empty(4 * RECYCLED_BYTES, np.uint8)
    del small, large
    assert memory_stats().cached_bytes == RECYCLED_BYTES


def test_a_lower_limit_holds_at_once() -> None:
    arrays = [empty(RECYCLED_BYTES, np.uint8) for _ in range(8)]
    arrays.clear()
    assert memory_stats().cached_buffers == 8
    set_memory_limit(2 * RECYCLED_BYTES)
    assert memory_stats().cached_buffers == 2
    set_memory_limit(0)
    assert memory_stats()[:3] == (0, 0, 0)


def test_a_negative_limit_is_an_error() -> None:
    with pytest.raises(ValueError, match="-1"):
        set_memory_limit(-1)


def test_threads_never_get_the_same_buffer() -> None:
    failures: list[int] = []

    def user(number: int) -> None:
        for _ in range(200):
            array = empty(RECYCLED_BYTES // 8, np.int64)
            array.fill(number)
            if not (array == number).all():
                failures.append(number)

    users = [threading.Thread(target=user, args=(number,)) for number in range(6)]
    for thread in users:
        thread.start()
    for thread in users:
        thread.join(60)
    assert not any(thread.is_alive() for thread in users)
    assert not failures
    assert memory_stats().cached_buffers <= 12  # a thread frees the last when it has the next


def test_arrays_in_garbage_come_back_when_it_is_collected() -> None:
    class Cycle:
        def __init__(self) -> None:
            self.array = empty(RECYCLED_BYTES, np.uint8)
            self.me = self

    gc.disable()
    try:
        for made in range(1, 31):
            Cycle()
            if made % 10 == 0:
                assert memory_stats().cached_buffers == 0
                gc.collect()
                assert memory_stats().cached_buffers == 10
    finally:
        gc.enable()


@pytest.mark.skipif(sys.platform != "linux", reason="needs page faults by thread")
def test_a_recycled_buffer_costs_no_page_faults() -> None:
    # In a process of its own: what others freed here, glibc may keep and give again.
    script = """
    import resource
    import numpy as np
    from numgrad.runtime.memory import empty, set_memory_limit

    set_memory_limit(1 << 27)

    def faults():
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
        empty(1 << 26, np.uint8).fill(1)
        return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before

    # The system may take a page back meanwhile.
    print(faults() > 0, min(faults() for _ in range(5)))
    """
    assert ended_well(script).split() == ["True", "0"]


def test_arrays_may_outlive_the_module() -> None:
    script = """
    import ctypes, sys, types
    early = sys.modules["early"] = types.ModuleType("early")
    import numpy as np
    import numgrad.runtime.memory
    from numgrad.runtime.memory import RECYCLED_BYTES, empty

    class Cycle:
        pass

    cycle = Cycle()
    cycle.me, cycle.array = cycle, empty(RECYCLED_BYTES, np.float64)
    array = empty(RECYCLED_BYTES, np.float64)
    # Modules that something still holds are emptied at the very end, the last imported first.
    early.array = empty(RECYCLED_BYTES, np.float64)
    for module in (early, numgrad.runtime.memory):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(module))
    print("end")
    """
    assert ended_well(script, fresh=True) == "end\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
def test_a_forked_child_uses_and_frees_memory() -> None:
    script = """
    import os, threading
    import numpy as np
    from numgrad.runtime.memory import RECYCLED_BYTES, empty

    stop = False
    def churn():
        while not stop:
            empty(RECYCLED_BYTES, np.uint8)
    thread = threading.Thread(target=churn)
    thread.start()
    mine = empty(RECYCLED_BYTES, np.uint8)
    mine.fill(3)
    codes = []
    for _ in range(10):
        pid = os.fork()
        if pid == 0:
            other = empty(RECYCLED_BYTES, np.uint8)
            other.fill(4)
            os._exit(0 if (mine == 3).all() and (other == 4).all() else 1)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    stop = True
    thread.join()
    print(codes, (mine == 3).all())
    """
    assert ended_well(script) == f"{[0] * 10} True\n"
