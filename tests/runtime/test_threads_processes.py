"""Real work on several threads, through all that users do: forks, pools, Ctrl-C, the end."""

from __future__ import annotations

import os
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

from numgrad.codegen.compile.compile import compile_source
from tests.children import ended_well

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
posix = pytest.mark.skipif(os.name == "nt", reason="Ctrl-C is no signal to a process there")

PRELUDE = """
import os, signal, sys, threading, time
import numpy as np
import numgrad as ng
ng.set_num_threads(3)
VALUES = np.random.default_rng(0).standard_normal(700_000)  # several chunks for every thread

def work():
    x = ng.from_numpy(VALUES.copy()).requires_grad_()
    y = (x * x).sum()
    y.backward()
    return y.item(), x.grad.numpy()

def is_right(result):
    return result[0] == EXPECTED[0] and np.array_equal(result[1], 2 * VALUES)

def wait(pid):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    return "hung"

def child():  # what a forked child does
    try:
        os._exit(0 if is_right(work()) else 1)
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(2)

EXPECTED = work()
assert is_right(EXPECTED)
"""


def run_script(script: str, tmp_path: Path) -> str:
    """Run a script, from a file, behind what all of them begin with."""
    return ended_well(PRELUDE + textwrap.dedent(script), file=tmp_path / "script.py")


def test_eight_threads_go_forward_and_backward_at_once(tmp_path: Path) -> None:
    script = """
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda n: work(), range(16)))
    print(all(map(is_right, results)))
    """
    assert run_script(script, tmp_path) == "True\n"


@needs_fork
def test_forking_while_threads_compute_leaves_both_processes_working(tmp_path: Path) -> None:
    script = """
    stop = threading.Event()
    results = []

    def user():
        while not stop.is_set():
            results.append(is_right(work()))

    users = [threading.Thread(target=user) for _ in range(3)]
    for thread in users:
        thread.start()
    codes = []
    for _ in range(8):
        pid = os.fork()
        if pid == 0:
            child()
        codes.append(wait(pid))
    stop.set()
    for thread in users:
        thread.join(60)
    print(codes, all(results), is_right(work()))
    """
    assert run_script(script, tmp_path) == f"{[0] * 8} True True\n"


@pytest.mark.sampled(0.3)
@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_processes_of_every_start_method_compute(method: str, tmp_path: Path) -> None:
    script = f"""
    import multiprocessing

    def check(number):
        return is_right(work())

    if __name__ == "__main__":
        if {method!r} not in multiprocessing.get_all_start_methods():
            print([True] * 4)
        else:
            with multiprocessing.get_context({method!r}).Pool(2) as pool:
                print(pool.map(check, range(4)))
    """
    assert run_script(script, tmp_path) == "[True, True, True, True]\n"


def test_numbas_own_threads_and_our_tasks_may_call_us(tmp_path: Path) -> None:
    script = """
    import numba
    from numgrad.runtime.threads import parallel_for

    def in_python():
        return float(is_right(work()))

    @numba.njit(parallel=True)
    def in_numba(out):
        for i in numba.prange(out.size):
            with numba.objmode(result="float64"):
                result = in_python()
            out[i] = result

    out = np.zeros(6)
    in_numba(out)
    results = []
    parallel_for(lambda start, stop: results.append(is_right(work())), 6, 1)
    print(out.tolist(), results)
    """
    assert run_script(script, tmp_path) == f"{[1.0] * 6} {[True] * 6}\n"


@posix
@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_in_the_middle_of_work_leaves_all_working(tmp_path: Path) -> None:
    script = """
    random = np.random.default_rng(1)
    interrupts = 0
    for _ in range(30):
        timer = threading.Timer(random.random() * 0.01, os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            while True:
                work()
        except KeyboardInterrupt:
            interrupts += 1
        timer.join()
    print(interrupts, is_right(work()))
    """
    assert run_script(script, tmp_path) == "30 True\n"


@posix
@pytest.mark.usefixtures("ctrl_c")
def test_after_ctrl_c_no_thread_writes_any_more(tmp_path: Path) -> None:
    script = """
    from numgrad.runtime.threads import parallel_for
    main, inside = threading.get_ident(), []
    armed = False

    def task(start, stop):
        helps = threading.get_ident() != main
        if helps:
            inside.append(start)
        time.sleep(0.002)
        if helps:
            inside.remove(start)

    def press():  # again and again, so also while the run is being ended
        while True:
            time.sleep(random.random() * 0.004)
            if armed:
                os.kill(os.getpid(), signal.SIGINT)

    random = np.random.default_rng(2)
    threading.Thread(target=press, daemon=True).start()
    left = []
    for _ in range(100):
        try:
            armed = True
            while True:
                parallel_for(task, 12, 1)
        except KeyboardInterrupt:
            armed = False
            left += inside
    print(left)
    """
    assert run_script(script, tmp_path) == "[]\n"


@pytest.mark.parametrize("ending", ["", "sys.exit()", "ng.empty_cache()"])
def test_the_interpreter_ends_while_kernels_run(ending: str, tmp_path: Path) -> None:
    script = f"""
    import atexit
    started = threading.Semaphore(0)

    def user():
        while True:
            work()
            started.release()

    for _ in range(3):
        threading.Thread(target=user, daemon=True).start()
    for _ in range(3):
        started.acquire()
    atexit.register(work)
    print("end", flush=True)
    {ending}
    """
    assert run_script(script, tmp_path) == "end\n"


def test_kernels_release_the_gil() -> None:
    # It ends early only if another thread runs while it does.
    wait_for_python = compile_source(
        "wait_for_python",
        "def wait_for_python(flags, place):\n"
        "    turns = 0\n"
        "    while flags[1] == 0 and turns < 4_000_000_000:\n"
        "        flags[place] = turns | 1\n"  # for all that LLVM knows, this changes what is read
        "        turns += 1\n"
        "    return flags[1] != 0\n",
    )
    wait_for_python(np.ones(2, np.int64), 0)
    flags = np.zeros(2, np.int64)
    ended: list[bool] = []
    thread = threading.Thread(target=lambda: ended.append(bool(wait_for_python(flags, 0))))
    thread.start()
    while flags[0] == 0:  # the kernel has begun, and Python goes on
        pass
    flags[1] = 1
    thread.join(60)
    assert ended == [True]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this platform")
def test_the_default_is_what_the_affinity_allows() -> None:
    script = """
    import os
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    os.environ.pop("NUMGRAD_NUM_THREADS", None)
    import numgrad as ng
    print(ng.get_num_threads())
    """
    assert ended_well(script, fresh=True) == "1\n"


def test_a_bad_number_of_threads_does_not_keep_small_work_or_a_call_from_mending_it() -> None:
    script = """
    import os
    os.environ["NUMGRAD_NUM_THREADS"] = "many"
    import numgrad as ng
    print((ng.ones(4) + 1).sum().item())
    try:
        ng.ones(1_000_000).add(1)
    except ValueError as error:
        print(error)
    ng.set_num_threads(2)
    print(ng.ones(1_000_000).add(1)[-1].item())
    """
    output = ended_well(script, fresh=True)
    assert output == ("8.0\nNUMGRAD_NUM_THREADS expects a positive integer, but got 'many'\n2.0\n")


@needs_fork
def test_every_lock_that_another_thread_holds_is_free_in_a_child() -> None:
    script = """
    import os, signal, sys, threading
    made = []
    make = threading.Lock, threading.RLock

    def recording(make):
        def lock():
            found = make()
            module = sys._getframe(1).f_globals["__name__"]
            # Not those that are made for one call, nor the pool's, which a child makes anew.
            if module.startswith("numgrad.") and module not in (
                "numgrad.graph.backward.nested", "numgrad.runtime.threads"
            ):
                made.append((module, found))
            return found
        return lock

    threading.Lock, threading.RLock = map(recording, make)
    import numgrad as ng
    threading.Lock, threading.RLock = map(recording, make)

    x = ng.ones(3, requires_grad=True)
    with ng.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: t):
        y = x * x
    got = []
    ng.autograd.graph.register_multi_grad_hook((x, y), got.append)
    ng.autograd.graph.register_multi_grad_hook((x, y), got.append, mode="any")
    threading.Lock, threading.RLock = make

    def work():
        y.sum().backward(retain_graph=True)
        ng.jit(ng.func.grad(lambda x: (x.exp() * x).sum()))(x.detach())
        ng.jit(lambda x: x.softmax(0)).lower(x.detach()).dispatcher(x.detach().numpy())

    held, ended = threading.Event(), threading.Event()

    def hold():
        for _, lock in made:
            lock.acquire()
        held.set()
        ended.wait(300)
        for _, lock in made:
            lock.release()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    pid = os.fork()
    if pid == 0:
        signal.alarm(120)
        work()
        os._exit(0 if len(got) == 2 else 1)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    ended.set()
    thread.join()
    work()
    print(status, len(made) >= 5)
    """
    assert ended_well(script, fresh=True) == "0 True\n"


@needs_fork
def test_kernels_are_loaded_at_the_end_of_pythons_stack_or_not_at_all() -> None:
    """Half of one that was kept on disk ended the process: the calls before fill the cache."""
    script = """
    import os, sys
    import numgrad as ng

    def compute():
        ng.tensor([0.3, 0.4], requires_grad=True).tanh().sum().backward()

    def descend(frames):
        return descend(frames - 1) if frames else compute()

    def in_fork(frames):
        pid = os.fork()
        if pid == 0:
            limit = sys.getrecursionlimit()
            try:
                descend(frames)
            except RecursionError:
                assert limit - frames < 150
            assert sys.getrecursionlimit() == limit
            compute()
            os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    print({in_fork(0), *map(in_fork, range(sys.getrecursionlimit() - 110, 1000, 2))})
    """
    assert ended_well(script, fresh=True) == "{0}\n"


@needs_fork
def test_a_child_forked_while_operations_are_loaded_can_load_them() -> None:
    script = """
    import os, signal, threading, time
    import numgrad as ng
    from numgrad.ops.later import LATER, load_file

    def load_all():
        for place in LATER:
            load_file(place)
            time.sleep(0.005)  # for who waits to fork

    thread = threading.Thread(target=load_all)
    thread.start()
    codes = []
    while thread.is_alive():
        pid = os.fork()
        if pid == 0:
            signal.alarm(60)
            for place in list(LATER)[::-1]:
                load_file(place)
            ng.linalg.det, ng.special.entr, ng.Tensor.sinh
            os._exit(0)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    thread.join()
    print(len(codes) > 1, set(codes) <= {0})
    """
    assert ended_well(script, fresh=True) == "True True\n"


@needs_fork
def test_a_child_forked_while_a_compiled_function_is_first_called_can_call_it() -> None:
    script = """
    import os, signal, threading, time
    import numgrad as ng

    x = ng.ones(5000)
    functions = [ng.jit(lambda x, k=k: (x.exp() * k).sum() + x.sin()) for k in range(4)]
    stop = threading.Event()

    def compile_all():
        for function in functions:
            function(x)
        stop.set()

    thread = threading.Thread(target=compile_all)
    thread.start()
    codes = []
    while not stop.is_set() and len(codes) < 12:
        time.sleep(0.05)
        pid = os.fork()
        if pid == 0:
            signal.alarm(100)
            for function in functions[:2]:
                function(x)
            os._exit(0)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    thread.join()
    print(set(codes) <= {0})
    """
    assert ended_well(script) == "True\n"
