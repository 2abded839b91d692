"""Backward passes that start inside of backward passes, from every place where users' code runs."""

from __future__ import annotations

import contextvars
import signal
import threading
import time
import types
from collections.abc import Callable
from typing import Any

import pytest

import numgrad as ng
from numgrad.base.tuning import NESTED_PASSES
from numgrad.graph.backward import nested
from numgrad.graph.backward.nested import elsewhere
from numgrad.graph.modes.state import modes
from tests.graph.thread_state import state


class Calling(ng.autograd.Function):
    """The identity; its backward pass calls a function."""

    @staticmethod
    def forward(ctx: Any, x: Any, function: Callable[[], None]) -> Any:
        ctx.function = function
        return x * 1

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        with ng.enable_grad():
            ctx.function()
        return gradient, None


def _by_function(x: Any, go_on: Callable[[], None]) -> Any:
    return Calling.apply(x, go_on)


def _by_tensor_hook(x: Any, go_on: Callable[[], None]) -> Any:
    y = x * 1
    y.register_hook(lambda gradient: go_on())
    return y


def _by_leaf_hook(x: Any, go_on: Callable[[], None]) -> Any:
    x.register_hook(lambda gradient: go_on())
    return x * 1


def _by_node_hook(x: Any, go_on: Callable[[], None]) -> Any:
    y = x * 1
    y.grad_fn.register_hook(lambda inputs, outputs: go_on())
    return y


def _by_node_prehook(x: Any, go_on: Callable[[], None]) -> Any:
    y = x * 1
    y.grad_fn.register_prehook(lambda outputs: go_on())
    return y


def _by_post_accumulate_hook(x: Any, go_on: Callable[[], None]) -> Any:
    x.register_post_accumulate_grad_hook(lambda leaf: go_on())
    return x * 1


def _by_unpacking(x: Any, go_on: Callable[[], None]) -> Any:
    def unpack(packed: Any) -> Any:
        go_on()
        return packed

    with ng.autograd.graph.saved_tensors_hooks(lambda tensor: tensor.detach(), unpack):
        return x.exp().log()


PLACES = {
    function.__name__[1:]: function
    for function in (
        _by_function,
        _by_tensor_hook,
        _by_leaf_hook,
        _by_node_hook,
        _by_node_prehook,
        _by_post_accumulate_hook,
        _by_unpacking,
    )
}


def _descend(lib: Any, place: Callable[..., Any], depth: int, bottom: Callable[[], None]) -> Any:
    """Run passes inside of each other and return the leaf of the outermost one."""
    leaves = []

    def go_down(remaining: int) -> None:
        x = lib.ones(2, requires_grad=True)
        leaves.append(x)
        with lib.enable_grad():
            y = place(x, (lambda: go_down(remaining - 1)) if remaining else bottom).sum()
        y.backward()

    go_down(depth)
    assert len(leaves) >= depth
    return leaves


@pytest.mark.parametrize("place", PLACES)
def test_passes_start_inside_of_passes_to_any_depth(place: str) -> None:
    reached = []
    # One operation unpacks twice, so that way the passes double with every level.
    depth = 5 if place == "by_unpacking" else 1000
    leaves = _descend(ng, PLACES[place], depth, lambda: reached.append(ng.is_grad_enabled()))
    assert set(reached) == {place == "by_function"}
    assert all((leaf.grad - 1).abs().max().item() < 1e-6 for leaf in leaves)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("depth", [0, 1, 4])
def test_passes_that_are_not_deep_run_on_the_thread_that_calls_them(place: str, depth: int) -> None:
    """What belongs to a thread, such as a lock or a connection, is at hand in the user's code."""
    threads: list[Any] = []

    def note(x: Any, go_on: Callable[[], None]) -> Any:
        return PLACES[place](x, lambda: (threads.append(threading.current_thread()), go_on())[1])

    _descend(ng, note, depth, lambda: threads.append(threading.current_thread()))
    assert len(threads) > depth and set(threads) == {threading.current_thread()}


def test_all_that_a_pass_calls_goes_to_another_thread_at_the_same_depth() -> None:
    found: dict[str, int] = {}
    for name in PLACES.keys() - {"by_unpacking"}:
        threads: list[Any] = []

        def note(
            x: Any, go_on: Callable[[], None], name: str = name, threads: Any = threads
        ) -> Any:
            return PLACES[name](x, lambda: (threads.append(threading.current_thread()), go_on())[1])

        _descend(ng, note, NESTED_PASSES + 5, lambda: None)
        own = [thread is threading.current_thread() for thread in threads]
        found[name] = own.index(False)
        assert not any(own[found[name] :])
    assert set(found.values()) == {NESTED_PASSES}


@pytest.mark.parametrize("depth", [30, 100])
def test_a_thread_takes_many_passes_inside_of_each_other(depth: int) -> None:
    threads: list[Any] = []

    def note(x: Any, go_on: Callable[[], None]) -> Any:
        threads.append(threading.current_thread())
        return _by_leaf_hook(x, go_on)

    _descend(ng, note, depth, lambda: None)
    assert 1 < len(set(threads)) <= depth // 10


def test_places_may_alternate_on_the_way_down() -> None:
    ways = [PLACES[name] for name in PLACES if name != "by_unpacking"]
    count = [0]

    def alternate(x: Any, go_on: Callable[[], None]) -> Any:
        count[0] += 1
        return ways[count[0] % len(ways)](x, go_on)

    leaves = _descend(ng, alternate, 300, lambda: None)
    assert [leaf.grad.tolist() for leaf in leaves] == [[1, 1]] * 301


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("depth", [0, 2, 60])
def test_an_error_comes_up_from_any_depth_and_all_goes_on(place: str, depth: int) -> None:
    def fail() -> None:
        raise KeyError("deep")

    depth = min(depth, 3) if place == "by_unpacking" else depth
    before = state()
    with pytest.raises(KeyError, match="deep"):
        _descend(ng, PLACES[place], depth, fail)
    assert state() == before
    x = ng.ones(2, requires_grad=True)
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals to one thread here")
@pytest.mark.parametrize("place", ["by_function", "by_tensor_hook", "by_post_accumulate_hook"])
@pytest.mark.parametrize("depth", [0, 10, 60])
@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_the_innermost_pass_and_with_it_all_others(place: str, depth: int) -> None:
    threads = []
    went_on = []

    def wait_for_ctrl_c() -> None:
        threads.append(threading.current_thread())
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        for _ in range(1000):
            time.sleep(0.01)
        went_on.append(True)

    with pytest.raises(KeyboardInterrupt):
        _descend(ng, PLACES[place], depth, wait_for_ctrl_c)
    assert not went_on
    assert (threads[0] is threading.main_thread()) == (depth < 25)
    assert ng.is_grad_enabled()
    x = ng.ones(2, requires_grad=True)
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_a_deep_pass_sees_the_modes_and_the_context_of_its_caller() -> None:
    seen = []
    setting = contextvars.ContextVar("setting", default="default")

    def look() -> None:
        seen.append((ng.is_grad_enabled(), ng.is_anomaly_enabled(), setting.get()))

    token = setting.set("the caller's")
    try:
        _descend(ng, PLACES["by_tensor_hook"], 60, look)
    finally:
        setting.reset(token)
    assert seen == [(False, False, "the caller's")]


@pytest.mark.parametrize("place", ["by_function", "by_tensor_hook", "by_node_hook"])
def test_inner_passes_do_what_they_do_in_pytorch(lib: Any, place: str) -> None:
    """Shallow, with PyTorch: the gradients of a pass inside of another one add up."""

    class Passing(lib.autograd.Function):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, function: Any) -> Any:
            ctx.function = function
            return x * 1

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            ctx.function()
            return gradient, None

    places = {**PLACES, "by_function": lambda x, go_on: Passing.apply(x, go_on)}
    x = lib.ones(2, requires_grad=True)

    def inner() -> None:
        with lib.enable_grad():
            loss = (x * 5).sum()
        loss.backward()

    places[place](x * 2, inner).sum().backward()
    assert x.grad.tolist() == [7, 7]


def test_an_interruption_goes_to_the_innermost_thread_that_works(monkeypatch: Any) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(nested, "raise_in", lambda *given: sent.append(given))
    workers: list[Any] = []

    def inside(depth: int) -> int:
        workers.append(modes.worker)
        assert modes.worker.active and not modes.worker.done and modes.depth == 0
        if depth:
            return 1 + elsewhere(inside, depth - 1)
        for worker in workers:  # the first waits for the second, which waits for the third
            worker._interrupt(KeyboardInterrupt)
        return 0

    assert elsewhere(inside, 2) == 2 and modes.worker is None
    assert sent == [(workers[2].thread.ident, KeyboardInterrupt)] * 3
    assert len({worker.thread.ident for worker in workers} | {threading.get_ident()}) == 4
    for worker in workers:  # those that have ended are left alone
        assert worker.inner is None and worker.done and not worker.active
        worker._interrupt(KeyboardInterrupt)
    assert len(sent) == 3

    def fail() -> None:
        raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        elsewhere(fail)


@pytest.mark.parametrize(("started", "begun"), [(False, False), (True, False), (True, True)])
def test_an_interruption_while_the_thread_starts_leaves_nobody_behind(
    started: bool, begun: bool
) -> None:
    """Nothing is called after it; a call that had begun is interrupted, and waited for."""
    called: list[str] = []
    running = threading.Event()

    def inside() -> None:
        called.append("begun")
        running.set()
        for _ in range(1000):
            time.sleep(0.01)
        called.append("went on")

    class Interrupted(threading.Thread):
        def start(self) -> None:
            if started:
                super().start()
            if begun:
                running.wait()
            raise KeyboardInterrupt("early")

    def work(*given: Any) -> None:
        if not begun:
            late.wait()
        target(*given)

    late = threading.Event()
    worker: Any = nested._Worker(inside, ())
    target = worker.thread._target
    worker.thread = Interrupted(target=work, args=worker.thread._args)
    with pytest.raises(KeyboardInterrupt, match="early"):
        worker.result()
    late.set()
    if started:
        worker.thread.join()
        assert worker.done and not worker.active
    assert called == (["begun"] if begun else []) and not worker.waiting


def test_an_interruption_is_sent_again_until_somebody_works_whom_it_reaches(
    monkeypatch: Any,
) -> None:
    """Between two workers nobody does: one is about to begin, or has ended."""
    beginning: Any = types.SimpleNamespace(inner=None, lock=threading.Lock(), active=False)
    beginning.thread = types.SimpleNamespace(ident=1234)
    sent: list[Any] = []
    monkeypatch.setattr(nested, "raise_in", lambda *given: sent.append(given))

    def inside() -> None:
        modes.worker.inner = beginning
        time.sleep(0.2)
        assert not sent
        beginning.active = True
        while not sent:
            time.sleep(0.01)
        time.sleep(0.2)
        modes.worker.inner = None

    worker: Any = nested._Worker(inside, ())
    worker.finished = Interrupting(worker.finished)
    with pytest.raises(KeyboardInterrupt, match="while one waits"):
        worker.result()
    assert sent == [(1234, KeyboardInterrupt)] and worker.done


class Interrupting:
    """A lock; the second wait for it is interrupted. No wait is long.

    A signal that comes between Python's last look and the wait is noticed when that ends.
    """

    def __init__(self, lock: Any) -> None:
        self.lock = lock
        self.release = lock.release
        self.waits = 0

    def acquire(self, timeout: float = 1e9) -> bool:
        assert timeout <= 0.1
        self.waits += 1
        if self.waits == 2:
            raise KeyboardInterrupt("while one waits")
        return bool(self.lock.acquire(timeout=timeout))


class Closed:
    """A lock that an interruption comes to the first time it is taken."""

    def __init__(self) -> None:
        self.taken = 0

    def __enter__(self) -> None:
        self.taken += 1
        if self.taken == 1:
            raise KeyboardInterrupt("late")

    def __exit__(self, *exception: object) -> None:
        pass


def test_an_interruption_that_comes_when_all_is_done_is_raised_all_the_same() -> None:
    done: list[int] = []
    worker: Any = nested._Worker(done.append, (1,))
    worker.lock = Closed()
    grad = modes.grad
    with pytest.raises(KeyboardInterrupt, match="late"):
        worker.result()
    assert done == [1] and worker.lock.taken == 1
    assert worker.done and not worker.active and worker.error is None and not worker.waiting
    worker._interrupt(KeyboardInterrupt)  # which would be raised in another thread
    assert worker.lock.taken == 2 and not worker.thread.is_alive()
    assert modes.worker is None and modes.grad is grad


def test_a_thread_of_its_own_has_the_modes_and_the_context_of_the_caller() -> None:
    variable = contextvars.ContextVar("variable", default=0)
    token = variable.set(3)

    def inside(*given: int) -> Any:
        assert threading.current_thread().name == "numgrad backward"
        return given, modes.grad, modes.depth, variable.get(), modes.worker.inner

    try:
        for grad in (False, True):
            with ng.set_grad_enabled(grad):
                assert elsewhere(inside, 1, 2) == ((1, 2), grad, 0, 3, None)
        assert elsewhere(elsewhere, elsewhere, inside) == ((), True, 0, 3, None)
    finally:
        variable.reset(token)
