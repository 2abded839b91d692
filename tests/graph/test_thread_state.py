"""The modes of a thread after a pass, whatever was entered, left or raised in it."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import FrameType, ModuleType
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad.graph.modes.state import call_interceptors, interceptors, modes, restore
from numgrad.ops.calls.steps import Steps
from numgrad.utils.checkpoint import checkpoint
from tests.cases import examples
from tests.graph.thread_state import state

hooks_on_saved = ng.autograd.graph.saved_tensors_hooks


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    before = state()
    yield
    assert state() == before


# --- what is entered and left inside of a pass ---------------------------------------------------


def _enter_hooks(kept: list[Any]) -> None:
    kept.append(hooks_on_saved(lambda t: t, lambda t: t))
    kept[-1].__enter__()


def _enter(make: Callable[[], Any]) -> Callable[[list[Any]], None]:
    def enter(kept: list[Any]) -> None:
        kept.append(make())
        kept[-1].__enter__()

    return enter


ENTERED: dict[str, Callable[[list[Any]], Any]] = {
    "set_grad_enabled(True)": lambda kept: ng.set_grad_enabled(True),
    "set_grad_enabled(False)": lambda kept: ng.set_grad_enabled(False),
    "no_grad": _enter(ng.no_grad),
    "enable_grad": _enter(ng.enable_grad),
    "inference_mode": _enter(ng.inference_mode),
    "no inference_mode": _enter(lambda: ng.inference_mode(False)),
    "set_multithreading_enabled": lambda kept: ng.autograd.set_multithreading_enabled(False),
    "hooks": _enter_hooks,
    "save_on_cpu": _enter(ng.autograd.graph.save_on_cpu),
    "disable_hooks": _enter(lambda: ng.autograd.graph.disable_saved_tensors_hooks("no")),
    "allow_mutation": _enter(ng.autograd.graph.allow_mutation_on_saved_tensors),
    "exec_group": _enter(ng.utils.checkpoint.GraphExecGroup),
}


class Calling(ng.autograd.Function):
    """The identity; its backward pass calls a function."""

    @staticmethod
    def forward(ctx: Any, x: Any, function: Callable[[], None]) -> Any:
        ctx.function = function
        return x * 1

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        ctx.function()
        return gradient, None


def _by_unpacking(x: Any, call: Callable[[], None]) -> Any:
    def unpack(packed: Any) -> Any:
        call()
        return packed

    with hooks_on_saved(lambda t: t.detach(), unpack):
        return x * x


def _by_packing(x: Any, call: Callable[[], None]) -> Any:
    """Pack within the pass: what is checkpointed is run again there."""

    def again(x: Any) -> Any:
        call()
        return x.sin()

    return checkpoint(again, x, use_reentrant=False)


def _by_reentrance(x: Any, call: Callable[[], None]) -> Any:
    def again(x: Any) -> Any:
        call()
        return x.sin()

    return checkpoint(again, x, use_reentrant=True)


def _hooked(register: Callable[[Any, Any, Callable[..., None]], Any]) -> Any:
    def build(x: Any, call: Callable[[], None]) -> Any:
        y = x * 1
        register(x, y, lambda *_: call())
        return y

    return build


PLACES: dict[str, Callable[[Any, Callable[[], None]], Any]] = {
    "a Function": lambda x, call: Calling.apply(x, call),
    "a tensor's hook": _hooked(lambda x, y, f: y.register_hook(f)),
    "a leaf's hook": _hooked(lambda x, y, f: x.register_hook(f)),
    "a pre-hook": _hooked(lambda x, y, f: y.grad_fn.register_prehook(f)),
    "a node's hook": _hooked(lambda x, y, f: y.grad_fn.register_hook(f)),
    "a hook after accumulating": _hooked(lambda x, y, f: x.register_post_accumulate_grad_hook(f)),
    "a hook on several": _hooked(
        lambda x, y, f: ng.autograd.graph.register_multi_grad_hook((x, y), f)
    ),
    "an unpack hook": _by_unpacking,
    "a checkpoint": _by_packing,
    "a checkpoint with reentry": _by_reentrance,
}


def _run(loss: Any, x: Any, how: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a graph that refers to itself
        if how == "grad":
            ng.autograd.grad(loss, x, retain_graph=True)
        elif how == "anomaly":
            with ng.autograd.set_detect_anomaly(True):
                loss.backward(retain_graph=True)
        else:
            loss.backward(retain_graph=True, create_graph=how == "create_graph")


def _within(deep: int, function: Callable[[], None]) -> None:
    """Call a function in a pass, in a pass ...; each some of these have a thread of their own."""
    if not deep:
        function()
        return
    inner = ng.ones(1, requires_grad=True)
    with ng.enable_grad():
        root = Calling.apply(inner, lambda: _within(deep - 1, function)).sum()
    root.backward()


@settings(max_examples=examples(150))
@given(
    st.sampled_from(sorted(PLACES)),
    st.lists(st.sampled_from(sorted(ENTERED)), min_size=1, max_size=3),
    st.sampled_from(["backward", "grad", "create_graph", "anomaly"]),
    st.sampled_from(["nothing", "no_grad", "hooks"]),
    st.sampled_from([None, ValueError]),
    st.sampled_from([0, 0, 0, 1, 30]),
)
def test_a_pass_ends_in_the_modes_it_began_with(
    place: str,
    entered: list[str],
    how: str,
    around: str,
    error: type[Exception] | None,
    depth: int,
) -> None:
    if how == "grad" and place == "a checkpoint with reentry":
        return  # refused
    kept: list[Any] = []
    calls = []
    running: list[bool] = []

    def call() -> None:
        if not running:  # it is the forward pass
            return
        calls.append(modes.grad)
        for name in entered:
            with contextlib.suppress(RuntimeError):  # two that exclude each other
                ENTERED[name](kept)
        if error is not None:
            raise error("from within")

    x = ng.ones(3, requires_grad=True)
    y = PLACES[place](x, call)
    seen: list[Any] = []
    if y.grad_fn is not None:  # an older node, whose modes are the pass's again
        w = ng.ones(3, requires_grad=True)
        w.register_hook(lambda gradient: seen.append(state()))
    loss = y.sum() + (0 if y.grad_fn is None else w.sum())
    outer = {"nothing": contextlib.nullcontext, "no_grad": ng.no_grad, "hooks": _idle_hooks}

    def passing() -> None:
        before = state()
        # Of the second: what is run again in other modes than before saves other tensors.
        with contextlib.suppress(ValueError, RuntimeError):
            _run(loss, x, how)
        assert state() == before

    running.append(True)
    with outer[around]():
        _within(depth, passing)
    assert calls or how == "grad"  # which accumulates nothing
    assert len({repr(each) for each in seen}) <= 1


def _idle_hooks() -> Any:
    return hooks_on_saved(lambda t: t, lambda t: t)


@pytest.mark.parametrize("place", PLACES)
def test_hooks_that_are_left_within_a_pass_are_there_after_it(place: str) -> None:
    packed: list[Any] = []
    hooks = hooks_on_saved(lambda t: packed.append(t) or t, lambda t: t)
    x = ng.ones(3, requires_grad=True)
    to_leave: list[Any] = []

    def leave() -> None:
        if to_leave:  # it is the pass, and the first time
            to_leave.pop().__exit__(None, None, None)

    loss = PLACES[place](x, leave).sum()
    with hooks:
        to_leave.append(hooks)
        with contextlib.suppress(RuntimeError):  # a checkpoint finds its own ones gone
            loss.backward()
        packed.clear()
        _ = x * x
        assert packed
    packed.clear()
    _ = x * x
    assert not packed


def test_hooks_that_ended_with_their_pass_can_not_be_left_again() -> None:
    hooks = _idle_hooks()
    x = ng.ones(3, requires_grad=True)
    y = x * 1
    y.register_hook(lambda gradient: hooks.__enter__())
    y.sum().backward()
    with pytest.raises(RuntimeError, match="no hooks on saved tensors to leave"):
        hooks.__exit__(None, None, None)


# --- modes that are left in another order than they were entered ---------------------------------

MAKERS: dict[str, Callable[[Any], Any]] = {
    "no_grad": lambda lib: lib.no_grad(),
    "enable_grad": lambda lib: lib.enable_grad(),
    "set_grad_enabled(False)": lambda lib: lib.set_grad_enabled(False),
    "set_grad_enabled(True)": lambda lib: lib.set_grad_enabled(True),
    "inference_mode": lambda lib: lib.inference_mode(),
    "no inference_mode": lambda lib: lib.inference_mode(False),
    "one thread": lambda lib: lib.autograd.set_multithreading_enabled(False),
    "threads": lambda lib: lib.autograd.set_multithreading_enabled(True),
}


def _elsewhere(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function on a thread of its own, and with it in modes of its own."""
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(function, *arguments).result()
        pool.submit(restore, {}).result()  # it may have ended in inference mode
        return result


def _follow(lib: Any, script: list[tuple[str, int]]) -> list[Any]:
    """Enter and leave modes, and tell after each step what operations do."""
    open_modes: list[Any] = []
    told: list[Any] = []
    x = lib.ones(2, requires_grad=True)
    for name, place in script:
        if name == "leave":
            if open_modes:
                open_modes.pop(place % len(open_modes)).__exit__(None, None, None)
        else:
            mode = MAKERS[name](lib)
            mode.__enter__()
            open_modes.append(mode)
        y = x * 2
        told.append(
            (
                lib.is_grad_enabled(),
                lib.is_inference_mode_enabled(),
                lib.autograd.is_multithreading_enabled(),
                y.requires_grad,
                y.is_inference(),
                lib.ones(1).is_inference(),
            )
        )
    while open_modes:
        open_modes.pop().__exit__(None, None, None)
    return told


SCRIPTS = st.lists(
    st.tuples(st.sampled_from([*MAKERS, "leave", "leave", "leave"]), st.integers(0, 5)), max_size=12
)


def _model(script: list[tuple[str, int]]) -> list[tuple[bool, bool, bool]]:
    now = (True, False, True)  # whether operations record, or would; inference mode; threads
    open_modes: list[tuple[str, Any]] = []
    told = []
    for name, place in script:
        records, infers, threads = now
        if name == "leave":
            if open_modes:
                kind, (records, was_inference, were_threads) = open_modes.pop(
                    place % len(open_modes)
                )
                if kind == "inference":
                    now = (records, was_inference, were_threads)
                elif kind == "threads":
                    now = (now[0], infers, were_threads)
                else:
                    now = (records, infers, threads)
        elif "inference" in name:
            open_modes.append(("inference", now))
            leaves = name.startswith("no ")
            now = (leaves, not leaves, leaves)
        elif "thread" in name:
            open_modes.append(("threads", now))
            now = (records, infers, name == "threads")
        else:
            open_modes.append(("grad", now))
            now = (name in ("enable_grad", "set_grad_enabled(True)"), infers, threads)
        told.append(now)
    return told


@settings(max_examples=examples(400))
@given(SCRIPTS)
@example([("inference_mode", 0), ("enable_grad", 0), ("inference_mode", 0), ("leave", 2)])
def test_modes_left_in_any_order_put_back_what_they_found(script: list[tuple[str, int]]) -> None:
    before = state()
    told = _elsewhere(_follow, ng, script)
    assert [each[:3] for each in told] == _model(script)
    for is_recording, is_inference, _, requires, made, made_new in told:
        assert requires == (is_recording and not is_inference)
        assert made == made_new == is_inference
    assert state() == before


@settings(max_examples=examples(400))
@given(SCRIPTS)
def test_modes_left_in_any_order_within_forward_mode(script: list[tuple[str, int]]) -> None:
    """Where `no_grad` leaves recording on, for tangents, it says what it does elsewhere."""
    told: list[Any] = []

    def function(x: Any) -> Any:
        told.extend(_follow(ng, script))
        return x * 2

    before = state()
    _elsewhere(ng.func.jvp, function, (ng.ones(2),), (ng.ones(2),))
    assert [each[:3] for each in told] == _model(script)
    assert state() == before


@settings(max_examples=examples(60))
@given(script=SCRIPTS)
def test_modes_left_in_any_order_are_pytorchs(
    torch: ModuleType, script: list[tuple[str, int]]
) -> None:
    assert _elsewhere(_follow, ng, script) == _elsewhere(_follow, torch, script)


@given(st.lists(st.integers(0, 3), min_size=2, max_size=8))
def test_hooks_left_in_any_order_are_left_from_the_inside(order: list[int]) -> None:
    calls: list[int] = []
    entered: list[Any] = []
    for number in order:
        hooks = hooks_on_saved(lambda t, n=number: calls.append(n) or t, lambda t: t)
        hooks.__enter__()
        entered.append(hooks)
    x = ng.ones(2, requires_grad=True)
    for left in range(len(order)):
        calls.clear()
        _ = x * x
        assert set(calls) == {order[-1 - left]}
        entered.pop(order[left] % len(entered)).__exit__(None, None, None)
    calls.clear()
    _ = x * x
    assert not calls


@pytest.mark.parametrize("left", [0, 1, 2])
@pytest.mark.parametrize("around", [0, 2])
@pytest.mark.parametrize("error", [None, ValueError])
def test_hooks_that_a_traced_function_enters_end_with_it(
    left: int, around: int, error: type[Exception] | None
) -> None:
    kept: list[Any] = []

    def function(x: Any) -> Any:
        for _ in range(2):
            _enter_hooks(kept)
        for _ in range(left):
            kept.pop().__exit__(None, None, None)
        if error is not None:
            raise error("from within")
        return x * 2

    with contextlib.ExitStack() as stack:
        for _ in range(around):
            stack.enter_context(hooks_on_saved(lambda t: t, lambda t: t))
        before = state()
        with contextlib.nullcontext() if error is None else pytest.raises(error):
            ng.jit(function)(ng.ones(2, requires_grad=True))
        assert state() == before


# --- Ctrl-C anywhere -----------------------------------------------------------------------------


def interrupt(function: Callable[[], Any], line: int) -> bool:
    """Call a function; interrupt it at the given one of the lines that run where modes are kept."""
    left = line

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if frame.f_code.co_filename != restore.__code__.co_filename:
            return None
        if event == "line":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def entered_and_left() -> None:
    with ng.autograd.forward_ad.dual_level():
        pass


@pytest.mark.parametrize(
    "function",
    [lambda: Steps(()).run(ng.ones, 2), entered_and_left],
    ids=["the steps of a call", "forward mode"],
)
def test_an_interrupt_leaves_no_mode_behind(function: Callable[[], Any]) -> None:
    lines, before = 0, state()[0]
    while interrupt(function, lines + 1):
        lines += 1
        assert modes.dual is None
        assert state()[0] == before
        interceptors.clear()  # of one that was told in the middle of leaving, the rest stays there
        call_interceptors.clear()
        entered_and_left()
        gradient = ng.jit(ng.func.grad(lambda x: x.sin().sum()))(ng.zeros(3))
        assert gradient.tolist() == [1.0, 1.0, 1.0]
    assert lines > 5
