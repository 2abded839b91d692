"""Exceptions from every place where code of the user's runs: what is left is what was there."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad.utils.checkpoint import checkpoint, checkpoint_sequential
from tests.cases import examples
from tests.graph.test_thread_state import PLACES, state

fw = ng.autograd.forward_ad


class Stop(BaseException):
    """As Ctrl-C: no code that is prepared for errors catches it."""


class Function(ng.autograd.Function):
    """Calls a function in one of its methods."""

    generate_vmap_rule = False

    @staticmethod
    def forward(x: Any, call: Callable[[str], None]) -> Any:
        call("forward")
        return x * 1

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.call = inputs[1]
        ctx.save_for_backward(inputs[0])
        ctx.call("setup_context")

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        ctx.call("backward")
        return gradient * ctx.saved_tensors[0], None

    @staticmethod
    def jvp(ctx: Any, tangent: Any, _: Any) -> Any:
        ctx.call("jvp")
        return tangent * 1


def _x() -> Any:
    return ng.linspace(0.1, 0.5, 3, dtype=ng.float64).requires_grad_()


def _only(name: str, call: Callable[[], None]) -> Callable[[str], None]:
    return lambda where: call() if where == name else None


def _calling(call: Callable[[], None]) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        y = x.sin() * x
        call()
        return (y * x).sum()

    return function


def _method(name: str, run: Callable[[Callable[[Any], Any]], None]) -> Callable[..., None]:
    """Run a Function, one of whose methods makes the call."""

    def body(call: Callable[[], None]) -> None:
        run(lambda x: Function.apply(x, _only(name, call)).sum())

    return body


def _with_dual(function: Callable[[Any], Any]) -> None:
    with fw.dual_level():
        function(fw.make_dual(_x().detach(), ng.ones(3, dtype=ng.float64)))


def _in_hooks(call: Callable[[], None], pack: bool) -> None:
    def pack_hook(tensor: Any) -> Any:
        if pack:
            call()
        return tensor.detach()

    def unpack_hook(packed: Any) -> Any:
        if not pack:
            call()
        return packed

    with ng.autograd.graph.saved_tensors_hooks(pack_hook, unpack_hook):
        (_x().sin() * _x()).sum().backward()


def _in_modes(call: Callable[[], None]) -> None:
    with (
        ng.no_grad(),
        ng.inference_mode(),
        ng.enable_grad(),
        ng.autograd.set_multithreading_enabled(False),
        ng.autograd.set_detect_anomaly(True),
    ):
        call()


def _in_contexts(call: Callable[[], None]) -> None:
    with ng.autograd.graph.allow_mutation_on_saved_tensors():
        call()


def _in_a_generator(call: Callable[[], None]) -> None:
    @ng.no_grad()
    def numbers() -> Any:
        yield 1
        call()

    list(numbers())


def _in_a_pytree(call: Callable[[], None]) -> None:
    class Number:
        def __float__(self) -> float:
            call()
            return 1.0

    ng.tensor([Number()], dtype=ng.float64)


def _pass(place: str) -> Callable[[Callable[[], None]], None]:
    def body(call: Callable[[], None]) -> None:
        x = ng.ones(3, requires_grad=True)
        PLACES[place](x, call).sum().backward()

    return body


PHASES: dict[str, Callable[[Callable[[], None]], Any]] = {
    **{f"a pass: {place}": _pass(place) for place in PLACES},
    "a trace": lambda call: ng.jit(_calling(call))(_x()),
    "a trace of a gradient": lambda call: ng.jit(ng.func.grad(_calling(call)))(_x()),
    "lower": lambda call: ng.jit(_calling(call)).lower(_x()),
    "a trace in a trace": lambda call: ng.jit(lambda x: ng.jit(_calling(call))(x))(_x()),
    "grad": lambda call: ng.func.grad(_calling(call))(_x()),
    "vjp": lambda call: ng.func.vjp(_calling(call), _x()),
    "jvp": lambda call: ng.func.jvp(_calling(call), (_x(),), (_x(),)),
    "hessian": lambda call: ng.func.hessian(_calling(call))(_x()),
    "jacfwd": lambda call: ng.func.jacfwd(_calling(call))(_x()),
    "jacrev of a trace": lambda call: ng.func.jacrev(ng.jit(_calling(call)))(_x()),
    "grad of grad": lambda call: ng.func.grad(lambda x: ng.func.grad(_calling(call))(x).sum())(
        _x()
    ),
    "functional.hessian": lambda call: ng.autograd.functional.hessian(_calling(call), _x()),
    "functional.jvp": lambda call: ng.autograd.functional.jvp(_calling(call), _x(), _x()),
    "gradcheck": lambda call: ng.autograd.gradcheck(_calling(call), _x()),
    "a checkpoint": lambda call: checkpoint(_calling(call), _x(), use_reentrant=False),
    "a checkpoint with reentry": lambda call: checkpoint(_calling(call), _x(), use_reentrant=True),
    "checkpoints in sequence": lambda call: checkpoint_sequential(
        [lambda x: x.sin(), _calling(call)], 2, _x(), use_reentrant=False
    ),
    "forward mode": lambda call: _with_dual(_calling(call)),
    "a Function's forward": _method("forward", lambda f: f(_x())),
    "a Function's context": _method("setup_context", lambda f: f(_x())),
    "a Function's backward": _method("backward", lambda f: f(_x()).backward()),
    "a Function's tangent": _method("jvp", _with_dual),
    "a Function in a transform": _method("backward", lambda f: ng.func.grad(f)(_x())),
    "a Function in a trace": _method("forward", lambda f: ng.jit(f)(_x())),
    "a Function's backward in a trace": _method(
        "backward", lambda f: ng.jit(ng.func.grad(f))(_x())
    ),
    "packing": lambda call: _in_hooks(call, True),
    "unpacking": lambda call: _in_hooks(call, False),
    "modes": _in_modes,
    "mutation of what is saved": _in_contexts,
    "a generator": _in_a_generator,
    "a number": _in_a_pytree,
}
AROUND: dict[str, Callable[[], Any]] = {
    "nothing": contextlib.nullcontext,
    "no_grad": ng.no_grad,
    "hooks": lambda: ng.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: t),
    "a dual level": fw.dual_level,
    "anomaly mode": lambda: ng.autograd.set_detect_anomaly(True),
}


def _works() -> None:
    """Compute something in every way there is."""
    x = _x()
    (x.sin() * x).sum().backward()
    expected = np.cos(x.detach().numpy()) * x.detach().numpy() + np.sin(x.detach().numpy())
    np.testing.assert_allclose(x.grad.numpy(), expected)
    compiled = ng.jit(ng.func.grad(lambda x: (x.sin() * x).sum()))
    np.testing.assert_allclose(compiled(x.detach()).numpy(), expected)


@pytest.mark.parametrize("phase", PHASES)
def test_every_phase_calls(phase: str) -> None:
    """Else the other test would prove nothing."""
    calls: list[bool] = []
    before = state()
    PHASES[phase](lambda: calls.append(True))
    assert calls
    assert state() == before


@settings(max_examples=examples(200))
@given(
    st.sampled_from(sorted(PHASES)),
    st.sampled_from(sorted(PHASES)),
    st.sampled_from(sorted(AROUND)),
    st.sampled_from([ValueError, RuntimeError, Stop, StopIteration, RecursionError]),
)
def test_nothing_is_left_of_a_phase_that_raises(
    outer: str, inner: str, around: str, error: type[BaseException]
) -> None:
    """Also of one within another."""
    calls: list[bool] = []

    def call() -> None:
        calls.append(True)
        raise error("from within")

    left: list[bool] = []
    before = state()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Two phases may exclude each other; then something else is raised.
        with (
            contextlib.suppress(Exception, Stop),
            AROUND[around](),
        ):
            within = state()
            try:
                PHASES[outer](lambda: PHASES[inner](call))
            finally:
                left.append(state() == within)
    assert state() == before
    assert all(left)
    _works()
