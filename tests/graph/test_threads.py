"""Backward passes on several threads, and passes that are interrupted anywhere."""

from __future__ import annotations

import random
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import numgrad as ng
from numgrad.graph.modes.state import modes
from tests.graph.thread_state import state

THREADS = 4


@pytest.fixture
def hasty() -> Iterator[None]:
    """Let Python switch between threads as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def _together(work: Callable[[int], None], threads: int = THREADS) -> list[BaseException]:
    """Run a function on several threads that start as one, and return what they raised."""
    barrier = threading.Barrier(threads)
    errors: list[BaseException] = []

    def run(number: int) -> None:
        barrier.wait()
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    workers = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return errors


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("size", [3, 40_000])
@pytest.mark.parametrize("forget", [False, True])
def test_no_threads_gradient_for_a_shared_leaf_is_lost(size: int, forget: bool) -> None:
    rounds = 60 if size == 3 else 15
    x = ng.zeros(size, requires_grad=True)

    def work(number: int) -> None:
        for _ in range(rounds):
            (x * (number + 1)).sum().backward()

    if not forget:
        x.grad = ng.zeros(size)  # else the threads also race to be the first
    assert _together(work) == []
    expected = rounds * sum(range(1, THREADS + 1))
    assert set(x.grad.tolist()) == {expected}


@pytest.mark.usefixtures("hasty")
def test_many_leaves_get_their_first_gradient_from_every_thread() -> None:
    for _ in range(40):
        leaves = [ng.zeros(2, requires_grad=True) for _ in range(5)]

        def work(number: int, leaves: list[Any] = leaves) -> None:
            sum((leaf * 2).sum() for leaf in leaves).backward()  # type: ignore[union-attr]

        assert _together(work) == []
        assert [leaf.grad.tolist() for leaf in leaves] == [[2 * THREADS] * 2] * 5


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("create_graph", [False, True])
def test_threads_share_a_graph_that_is_kept(create_graph: bool) -> None:
    rounds = 15
    x = ng.tensor([0.5, 1.0, 2.0], dtype=ng.float64, requires_grad=True)
    y = x
    for _ in range(20):
        y = y * x / x + x.exp().log() * 0
    middle = y * 1
    middle.retain_grad()
    loss = middle.sum()

    def work(number: int) -> None:
        for _ in range(rounds):
            loss.backward(retain_graph=True, create_graph=create_graph)

    assert _together(work) == []
    assert x.grad.tolist() == pytest.approx([rounds * THREADS] * 3)
    assert middle.grad.tolist() == [rounds * THREADS] * 3


@pytest.mark.usefixtures("hasty")
def test_threads_get_their_own_results_from_a_shared_graph() -> None:
    x = ng.tensor([1.0, 2.0], dtype=ng.float64, requires_grad=True)
    y = (x.exp() * x).sin()
    (expected,) = ng.autograd.grad(y.sum(), x, retain_graph=True)
    results: list[Any] = []

    def work(number: int) -> None:
        for _ in range(20):
            cotangent = ng.full((2,), float(number), dtype=ng.float64)
            (found,) = ng.autograd.grad(y, x, cotangent, retain_graph=True)
            results.append((number, found))

    assert _together(work) == []
    assert len(results) == 20 * THREADS
    for number, found in results:
        assert found.tolist() == pytest.approx((expected * number).tolist(), rel=1e-12)


@pytest.mark.usefixtures("hasty")
def test_of_threads_that_share_a_graph_that_is_freed_all_but_one_are_told() -> None:
    """Each thread gets its gradient, or the error of a second pass: never a wrong number."""
    for _ in range(30):
        x = ng.tensor([1.0, 2.0], requires_grad=True)
        y = x
        for _ in range(6):
            y = y * x
        loss = y.sum()
        results: list[Any] = []

        def work(number: int, loss: Any = loss, x: Any = x, results: Any = results) -> None:
            results.append(ng.autograd.grad(loss, x)[0].tolist())

        errors = _together(work)
        assert all(result == [7, 448] for result in results)
        assert len(results) + len(errors) == THREADS
        assert all(
            isinstance(error, RuntimeError) and "a second time" in str(error) for error in errors
        )


@pytest.mark.usefixtures("hasty")
def test_hooks_of_a_shared_graph_run_once_in_every_threads_pass() -> None:
    seen: list[int] = []
    x = ng.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda gradient: seen.append(threading.get_ident()))
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append(threading.get_ident()))
    loss = y.sum()

    def work(number: int) -> None:
        for _ in range(10):
            loss.backward(retain_graph=True)

    assert _together(work) == []
    assert len(seen) == 2 * 10 * THREADS
    assert sorted(seen.count(thread) for thread in set(seen)) == [20] * len(set(seen))
    assert x.grad.tolist() == [20 * THREADS] * 2


def test_a_thread_does_not_see_another_threads_pass() -> None:
    """The mode of a pass, and the pass itself, are those of the thread that runs it."""
    inside, outside = threading.Event(), threading.Event()
    seen: list[Any] = []

    def look() -> None:
        inside.wait(10)
        seen.append((ng.is_grad_enabled(), modes.task, modes.depth))
        outside.set()

    def hook(gradient: Any) -> None:
        inside.set()
        outside.wait(10)

    watcher = threading.Thread(target=look)
    watcher.start()
    x = ng.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(hook)
    y.sum().backward()
    watcher.join()
    assert seen == [(True, None, 0)]


class Raising(ng.autograd.Function):
    """The identity; its backward pass raises what it was told to."""

    @staticmethod
    def forward(ctx: Any, x: Any, error: BaseException) -> Any:
        ctx.error = error
        return x * 1

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        raise ctx.error


def _raise(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), SystemExit(3)])
@pytest.mark.parametrize("where", ["function", "hook", "leaf hook", "node hook", "post hook"])
@pytest.mark.parametrize("create_graph", [False, True])
def test_whatever_ends_a_pass_leaves_everything_usable(
    where: str, error: BaseException, create_graph: bool
) -> None:
    x = ng.ones(3, requires_grad=True)
    w = ng.full((3,), 2.0, requires_grad=True)
    y = Raising.apply(x, error) if where == "function" else x * 1
    handle: Any = None
    if where == "hook":
        handle = y.register_hook(lambda gradient: _raise(error))
    elif where == "leaf hook":
        handle = x.register_hook(lambda gradient: _raise(error))
    elif where == "node hook":
        handle = y.grad_fn.register_hook(lambda inputs, outputs: _raise(error))
    elif where == "post hook":
        handle = x.register_post_accumulate_grad_hook(lambda leaf: _raise(error))
    loss = (y * w).sum()
    before = state()
    with pytest.raises(type(error)):
        loss.backward(retain_graph=True, create_graph=create_graph)
    assert state() == before
    assert ng.is_grad_enabled()
    x.grad = w.grad = None
    if handle is None:
        (x * w).sum().backward()
    else:
        handle.remove()
        loss.backward()  # the same graph, which was kept
    assert x.grad.tolist() == [2, 2, 2]
    assert w.grad.tolist() == [1, 1, 1]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers that interrupt here")
@pytest.mark.parametrize("hooked", [False, True])
def test_ctrl_c_at_any_moment_leaves_everything_usable(hooked: bool) -> None:
    """A leaf gets a pass's gradient whole or not at all, and the graph can be run again."""
    x = ng.ones(4, requires_grad=True)
    y = x
    for _ in range(300):
        y = y * 1.0
    if hooked:
        y.register_hook(lambda gradient: None)
        x.register_post_accumulate_grad_hook(lambda leaf: None)
    loss = y.sum()
    loss.backward(retain_graph=True)
    random_state = random.Random(4)
    before = state()
    previous = signal.signal(signal.SIGALRM, lambda number, frame: _raise(KeyboardInterrupt()))
    interrupted = passes = 0
    try:
        for _ in range(60):
            x.grad = None
            passes = 0
            try:
                signal.setitimer(signal.ITIMER_REAL, random_state.uniform(1e-4, 4e-3))
                while passes < 100:  # what a finalizer raises is swallowed by Python
                    loss.backward(retain_graph=True)
                    passes += 1
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                interrupted += 1
            assert state() == before
            counts = {0.0, 1.0} if x.grad is None else set(x.grad.tolist())
            assert counts <= {float(passes), float(passes + 1)}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert interrupted > 30
    assert not _together(lambda number: loss.backward(retain_graph=True))  # no lock is held
