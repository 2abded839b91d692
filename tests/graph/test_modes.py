"""Grad modes, as context managers and decorators, on one thread and on several."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad.graph.modes.state import call_interceptors, interceptors, modes, stop_watching, watch


@pytest.fixture(autouse=True)
def _back_to_the_default() -> Iterator[None]:
    yield
    for library in (ng, sys.modules.get("torch")):
        if library is not None:
            library.set_grad_enabled(True)


def test_nested_blocks_restore_what_was_before(lib: Any) -> None:
    seen = [lib.is_grad_enabled()]
    with lib.no_grad():
        seen.append(lib.is_grad_enabled())
        with lib.enable_grad():
            seen.append(lib.is_grad_enabled())
            with lib.set_grad_enabled(False):
                seen.append(lib.is_grad_enabled())
            seen.append(lib.is_grad_enabled())
        seen.append(lib.is_grad_enabled())
    seen.append(lib.is_grad_enabled())
    assert seen == [True, False, True, False, True, False, True]


@pytest.mark.parametrize("mode", ["no_grad", "inference_mode"])
def test_results_inside_do_not_require_grad(lib: Any, mode: str) -> None:
    w = lib.tensor([1.0, 2.0], requires_grad=True)
    with getattr(lib, mode)():
        result = w * 2
        created = lib.ones(2, requires_grad=True)
    assert not result.requires_grad and result.is_leaf and result.grad_fn is None
    assert created.requires_grad and w.requires_grad


def test_an_exception_restores_the_mode(lib: Any) -> None:
    for make in (lib.no_grad, lib.inference_mode, lambda: lib.set_grad_enabled(False)):
        with pytest.raises(ZeroDivisionError), make():
            _ = 1 / 0
        assert lib.is_grad_enabled() and not lib.is_inference_mode_enabled()


def test_decorators_with_and_without_parentheses(lib: Any) -> None:
    @lib.no_grad
    def bare(value: int, *, more: int) -> tuple[int, bool]:
        """Keep its words."""
        return value + more, lib.is_grad_enabled()

    @lib.no_grad()
    def called() -> bool:
        return bool(lib.is_grad_enabled())

    @lib.enable_grad
    def enabled() -> bool:
        return bool(lib.is_grad_enabled())

    @lib.set_grad_enabled(False)
    def given() -> bool:
        return bool(lib.is_grad_enabled())

    @lib.inference_mode
    def inference() -> tuple[bool, bool]:
        return lib.is_grad_enabled(), lib.is_inference_mode_enabled()

    @lib.inference_mode()
    def inference_called() -> tuple[bool, bool]:
        return lib.is_grad_enabled(), lib.is_inference_mode_enabled()

    @lib.inference_mode(False)
    def no_inference() -> tuple[bool, bool]:
        return lib.is_grad_enabled(), lib.is_inference_mode_enabled()

    assert lib.is_grad_enabled()  # decorating alone changes nothing
    assert bare(1, more=2) == (3, False) and called() is False and given() is False
    assert (bare.__name__, bare.__doc__) == ("bare", "Keep its words.")
    with lib.no_grad():
        assert enabled() is True and no_inference() == (True, False)
        assert not lib.is_grad_enabled()
    assert inference() == inference_called() == (False, True)
    assert lib.is_grad_enabled() and not lib.is_inference_mode_enabled()


def test_a_decorated_method_gets_its_object(lib: Any) -> None:
    class Holder:
        @lib.no_grad()
        def mode(self) -> tuple[Any, bool]:
            return self, lib.is_grad_enabled()

    holder = Holder()
    assert holder.mode() == (holder, False)


def test_a_decorated_function_may_call_itself(lib: Any) -> None:
    @lib.no_grad()
    def count(n: int) -> list[bool]:
        return [lib.is_grad_enabled()] + (count(n - 1) if n else [])

    assert count(3) == [False] * 4 and lib.is_grad_enabled()


def test_a_decorated_generator_has_the_mode_only_while_it_runs(lib: Any) -> None:
    seen = []

    @lib.no_grad()
    def numbers() -> Any:
        try:
            got = yield 1, lib.is_grad_enabled()
            seen.append((got, lib.is_grad_enabled()))
            try:
                yield 2, lib.is_grad_enabled()
            except KeyError:
                seen.append(("thrown", lib.is_grad_enabled()))
            with lib.enable_grad():
                seen.append(("inside", lib.is_grad_enabled()))
            yield 3, lib.is_grad_enabled()
        finally:
            seen.append(("closed", lib.is_grad_enabled()))
        return "never"

    generator = numbers()
    assert next(generator) == (1, False) and lib.is_grad_enabled()
    assert generator.send("sent") == (2, False) and lib.is_grad_enabled()
    assert generator.throw(KeyError()) == (3, False) and lib.is_grad_enabled()
    generator.close()
    assert seen == [("sent", False), ("thrown", False), ("inside", True), ("closed", False)]
    assert lib.is_grad_enabled()


def test_a_decorated_generator_returns_its_value(lib: Any) -> None:
    @lib.no_grad()
    def inner() -> Any:
        yield 1
        return lib.is_grad_enabled()

    def outer() -> Any:
        result = yield from inner()
        yield result, lib.is_grad_enabled()

    assert list(outer()) == [1, (False, True)]


def test_a_decorated_coroutine_has_the_mode_only_while_it_runs() -> None:
    """Where a coroutine waits, others run: they must not find its mode."""
    seen = []

    @ng.no_grad()
    async def waits() -> str:
        seen.append(("in", ng.is_grad_enabled()))
        await asyncio.sleep(0)
        seen.append(("in again", ng.is_grad_enabled()))
        return "done"

    async def other() -> None:
        seen.append(("other", ng.is_grad_enabled()))

    async def main() -> list[Any]:
        return await asyncio.gather(waits(), other())

    assert asyncio.run(main()) == ["done", None]
    assert seen == [("in", False), ("other", True), ("in again", False)]
    assert ng.is_grad_enabled()


def test_a_decorated_coroutine_gets_exceptions_and_cancellation() -> None:
    seen = []

    @ng.no_grad()
    async def waits() -> None:
        try:
            await asyncio.sleep(10)
        finally:
            seen.append(ng.is_grad_enabled())

    async def main() -> None:
        task = asyncio.ensure_future(waits())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert seen == [False] and ng.is_grad_enabled()


def test_set_grad_enabled_as_a_function_and_as_a_block(lib: Any) -> None:
    lib.set_grad_enabled(False)
    assert not lib.is_grad_enabled()
    with lib.set_grad_enabled(True):
        assert lib.is_grad_enabled()
    assert not lib.is_grad_enabled()
    lib.set_grad_enabled(mode=True)
    assert lib.is_grad_enabled()
    for wrong in (1, "yes", None):
        with pytest.raises(TypeError) as error:
            lib.set_grad_enabled(wrong)
        name = type(wrong).__name__
        assert str(error.value) == (
            f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {name}"
        )
    assert lib.is_grad_enabled()


def test_inference_mode_takes_its_setting(lib: Any) -> None:
    with lib.inference_mode():
        assert (lib.is_grad_enabled(), lib.is_inference_mode_enabled()) == (False, True)
        with lib.inference_mode(False):
            assert (lib.is_grad_enabled(), lib.is_inference_mode_enabled()) == (True, False)
            assert (lib.tensor(1.0, requires_grad=True) * 2).requires_grad
        assert (lib.is_grad_enabled(), lib.is_inference_mode_enabled()) == (False, True)
    with lib.no_grad(), lib.inference_mode(False):
        assert lib.is_grad_enabled()


def test_enable_grad_does_not_leave_inference_mode(lib: Any) -> None:
    w = lib.tensor(1.0, requires_grad=True)
    with lib.inference_mode(), lib.enable_grad():
        assert lib.is_grad_enabled() and lib.is_inference_mode_enabled()
        assert not (w * 2).requires_grad


def test_every_thread_has_its_own_mode(lib: Any) -> None:
    inside, leave = threading.Event(), threading.Event()
    seen: dict[str, bool] = {}

    def work() -> None:
        seen["start"] = lib.is_grad_enabled()
        with lib.no_grad():
            inside.set()
            leave.wait(10)
            seen["inside"] = lib.is_grad_enabled()

    with lib.no_grad():
        thread = threading.Thread(target=work)
        thread.start()
        inside.wait(10)
        with lib.enable_grad():
            leave.set()
            thread.join(10)
        seen["main"] = lib.is_grad_enabled()
    assert seen == {"start": True, "inside": False, "main": False}


def test_backward_runs_in_any_mode(lib: Any) -> None:
    w = lib.tensor(3.0, requires_grad=True)
    y = w * w
    with lib.no_grad():
        y.backward(retain_graph=True)
        assert not lib.is_grad_enabled()
        (gradient,) = lib.autograd.grad(y, w, create_graph=True)
        assert not lib.is_grad_enabled()
    assert w.grad.item() == 6.0 and gradient.requires_grad


def test_an_error_in_the_backward_pass_restores_the_mode(lib: Any) -> None:
    w = lib.tensor(3.0, requires_grad=True)
    y = w * w

    def fail(gradient: Any) -> None:
        raise KeyError("hook")

    y.register_hook(fail)
    with pytest.raises(KeyError):
        y.backward()
    assert lib.is_grad_enabled()
    with lib.no_grad(), pytest.raises(KeyError):
        lib.autograd.grad(y, w, create_graph=True)
    assert lib.is_grad_enabled()


def test_asynchronous_generators_run_inside_the_mode_and_wait_outside() -> None:
    seen = []

    @ng.no_grad()
    async def numbers() -> Any:
        try:
            got = yield ng.is_grad_enabled()
            seen.append((got, ng.is_grad_enabled()))
            await asyncio.sleep(0)
            yield ng.is_grad_enabled()
        except KeyError:
            yield ng.is_grad_enabled()
        finally:
            seen.append(("end", ng.is_grad_enabled()))

    async def consume() -> None:
        generator = numbers()
        seen.append(("first", await generator.__anext__()))
        seen.append(("caller", ng.is_grad_enabled()))
        seen.append(("second", await generator.asend("sent")))
        seen.append(("thrown", await generator.athrow(KeyError())))
        await generator.aclose()
        seen.append(("all", [value async for value in numbers()]))

    asyncio.run(consume())
    assert seen == [
        ("first", False),
        ("caller", True),
        ("sent", False),
        ("second", False),
        ("thrown", False),
        ("end", False),
        (None, False),
        ("end", False),
        ("all", [False, False]),
    ]
    assert ng.is_grad_enabled()


@pytest.mark.parametrize("mode", ["no_grad", "enable_grad", "inference_mode"])
def test_decorated_class_warns(lib: Any, mode: str) -> None:
    class Decorated:
        def __init__(self) -> None:
            self.seen = lib.is_inference_mode_enabled(), lib.is_grad_enabled()

    with pytest.warns(FutureWarning, match="Decorating classes is deprecated") as caught:
        made = getattr(lib, mode)()(Decorated)
    assert caught[0].filename == __file__
    assert made().seen[1] is (mode == "enable_grad")


def test_multithreading_is_a_setting_of_each_thread(lib: Any) -> None:
    setting = lib.autograd.set_multithreading_enabled
    x = lib.ones(2, requires_grad=True)
    assert lib.autograd.is_multithreading_enabled()
    with setting(False) as entered:
        (x * x).sum().backward()
        assert entered is None and not lib.autograd.is_multithreading_enabled()
    assert lib.autograd.is_multithreading_enabled()
    assert x.grad.tolist() == [2, 2]
    with pytest.raises(TypeError, match=r"argument 'enabled' \(position 1\) must be bool, not int"):
        setting(3)
    assert setting(True)(lambda: 3)() == 3
    assert lib.autograd.grad_mode.set_multithreading_enabled is setting


# The fixture puts back what this test does not touch.
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.booleans(), min_size=1, max_size=5), st.booleans(), st.randoms())
def test_modes_are_left_in_any_order(sees_calls: list[bool], again: bool, random: Any) -> None:
    """What is open stays open, and nothing of what was left stays in the way of calls."""
    entered = [object() for _ in sees_calls]
    if again:  # the first one, whose last entry is left first
        entered[-1] = entered[0]
    left = list(entered)
    random.shuffle(left)  # which may end the example, so nothing is entered before
    before = modes.watching, list(interceptors), list(call_interceptors)
    for mode, sees in zip(entered, sees_calls, strict=True):
        watch(mode, sees_calls=sees)
    still = list(zip(entered, sees_calls, strict=True))
    for mode in left:
        stop_watching(mode)
        del still[max(k for k, each in enumerate(still) if each[0] is mode)]
        open_now = [each for each in modes.watching if each not in before[0]]
        assert [(each.mode, each.sees_calls) for each in open_now] == still
        assert len(interceptors) == len(before[1]) + len(still)
        assert len(call_interceptors) == len(before[2]) + sum(sees for _, sees in still)
        if all(each[0] is not mode for each in still):
            stop_watching(mode)  # it is left already
    assert (modes.watching, interceptors, call_interceptors) == before
