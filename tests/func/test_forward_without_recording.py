"""Forward mode in `no_grad` and its like: tangents go on, what reverse mode sees does not."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng
from numgrad import func
from numgrad.graph.modes.state import modes
from numgrad.graph.modes.unrecorded import Unrecorded

Step = tuple[Any, ...]
MODES = ("no_grad", "enable_grad", "set_grad_enabled(False)", "set_grad_enabled(True)", "none")
LEAVES = ("square", "twice", "detach", "mul_", "captured")
TRANSFORMS = ("jit", "jvp", "grad", "vjp", "primal", "jacfwd", "vmap")
steps = st.recursive(
    st.tuples(st.sampled_from(LEAVES)),
    lambda inner: st.tuples(
        st.sampled_from(MODES + TRANSFORMS), st.lists(inner, min_size=1, max_size=3)
    ),
    max_leaves=6,
)


def _mode(lib: Any, name: str) -> Any:
    if name == "none":
        return contextlib.nullcontext()
    if name.startswith("set"):
        return lib.set_grad_enabled(name.endswith("(True)"))
    return getattr(lib, name)()


def _transformed(lib: Any, name: str, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def one(x: Any) -> Any:
        return lib.ones_like(x)

    table: dict[str, Callable[[Any], Any]] = {
        "jit": lambda x: (ng.jit(f) if lib is ng else f)(x),
        "jvp": lambda x: lib.func.jvp(f, (x,), (one(x),))[1],
        "grad": lambda x: lib.func.grad(f)(x),
        "vjp": lambda x: lib.func.vjp(f, x)[1](one(x))[0],
        "primal": lambda x: lib.func.jvp(f, (x,), (one(x),))[0] * 1,
        "jacfwd": lambda x: lib.func.jacfwd(f)(x),
        "vmap": lambda x: lib.func.vmap(f)(x.expand(2)).sum(),
    }
    return table[name]


def _run(lib: Any, program: Step, w: Any, x: Any) -> Any:
    """Return what a program makes of a number."""
    name = program[0]
    if name in MODES:
        with _mode(lib, name):
            return _run_all(lib, program[1], w, x)
    if name in TRANSFORMS:
        return _transformed(lib, name, lambda x: _run_all(lib, program[1], w, x * x))(x)
    if name == "square":
        return x * x + x
    if name == "twice":
        return x * 2
    if name == "detach":
        return x.detach() * 3 + x
    if name == "mul_":
        return (x * x).mul_(3)
    return x * w


def _run_all(lib: Any, programs: list[Step], w: Any, x: Any) -> Any:
    total = x * 1
    for program in programs:
        total = total * 0.5 + _run(lib, program, w, total)
    return total


def _outcome(lib: Any, program: Step, outer: str, grad: bool) -> Any:
    """Return the value of a transformed program, and the gradient of what it captured."""
    w = lib.tensor(1.5, dtype=lib.float64, requires_grad=True)
    x = lib.tensor(0.75, dtype=lib.float64)
    with _mode(lib, "none" if grad else "no_grad"):
        value = _transformed(lib, outer, lambda x: _run_all(lib, [program, ("square",)], w, x))(x)
    if value.requires_grad:
        value.backward()
    return value.item(), 0.0 if w.grad is None else w.grad.item()


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
@pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr Node")
@given(steps, st.sampled_from(TRANSFORMS[:-1]), st.booleans())
def test_programs(torch: Any, program: Step, outer: str, grad: bool) -> None:
    found = _outcome(ng, program, outer, grad)
    assert np.allclose(found, _outcome(torch, program, outer, grad), 1e-9)
    assert modes.unrecorded is None and modes.stretch is None and ng.is_grad_enabled()


def in_no_grad(x: Any) -> Any:
    with ng.no_grad():
        assert not ng.is_grad_enabled()
        constant = x**2
    assert ng.is_grad_enabled()
    return x**3 - constant


def jvp(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: func.jvp(f, (x,), (ng.ones_like(x),))[1]


@pytest.mark.parametrize(
    ("expected", "derivative"),
    [
        (8, jvp(in_no_grad)),
        (8, func.jacfwd(in_no_grad)),
        (8, lambda x: func.linearize(in_no_grad, x)[1](ng.ones_like(x))),
        (8, lambda x: func.vmap(jvp(in_no_grad))(x.expand(3))[0]),
        (8, jvp(lambda x: func.vmap(in_no_grad)(x.expand(3))[0])),
        (12, func.grad(in_no_grad)),
        (12, func.grad(jvp(in_no_grad))),
        (12, jvp(func.grad(in_no_grad))),
        (10, jvp(jvp(in_no_grad))),
        (12, func.grad(lambda x: func.jvp(in_no_grad, (x,), (x,))[0])),
        (12, func.grad(lambda x: func.vmap(jvp(in_no_grad))(x.expand(3))[0])),
        (8, jvp(ng.jit(in_no_grad))),
        (8, ng.jit(jvp(ng.jit(in_no_grad)))),
        (8, jvp(lambda x: func.vmap(ng.jit(in_no_grad))(x.expand(3))[0])),
        (8, lambda x: func.vmap(jvp(ng.jit(in_no_grad)))(x.expand(3))[0]),
        (8, jvp(ng.jit(lambda x: func.vmap(in_no_grad)(x.expand(3))[0]))),
        (12, func.grad(jvp(ng.jit(in_no_grad)))),
    ],
)
def test_orders(expected: float, derivative: Callable[[Any], Any]) -> None:
    assert derivative(ng.tensor(2.0)).item() == expected


def test_a_stretch_in_another_ends_with_it() -> None:
    def twice(x: Any) -> Any:
        with ng.no_grad(), ng.no_grad():
            constant = x**2
        return x**3 - constant

    assert func.grad(jvp(twice))(ng.tensor(2.0)).item() == 12


def test_a_level_that_begins_in_a_stretch_records() -> None:
    def within(x: Any) -> Any:
        with ng.no_grad():
            return func.grad(lambda y: y**3)(x)

    assert jvp(within)(ng.tensor(2.0)).item() == 12


class Twice(ng.autograd.Function):
    """A Function; its forward is for others to write."""

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2

    @staticmethod
    def jvp(ctx: Any, tangent: Any) -> Any:
        return tangent * 2


def test_modes_in_what_records_nothing_end_as_they_began() -> None:
    """The forward of a Function records nothing, in a stretch and outside; `enable_grad` does."""
    seen: list[bool] = []

    class Asking(Twice):
        @staticmethod
        def forward(x: Any) -> Any:
            with ng.enable_grad():
                seen.append(ng.is_grad_enabled())
            seen.append(ng.is_grad_enabled())
            with ng.no_grad():
                seen.append(ng.is_grad_enabled())
            return x * 2

    def f(x: Any) -> Any:
        y = Asking.apply(x)
        seen.append(ng.is_grad_enabled())
        with ng.no_grad():
            z = Asking.apply(x)
            seen.append(ng.is_grad_enabled())
        return y * z

    assert jvp(f)(ng.tensor(2.0)).item() == 16
    assert seen == [True, False, False, True, True, False, False, False]


def test_a_mode_that_a_forward_leaves_open_ends_with_it() -> None:
    class Left(Twice):
        @staticmethod
        def forward(x: Any) -> Any:
            ng.set_grad_enabled(False)
            return x * 2

    def f(x: Any) -> Any:
        y = Left.apply(x)
        assert ng.is_grad_enabled()
        return y * x

    assert func.grad(jvp(f))(ng.tensor(2.0)).item() == 4


def test_what_leads_to_a_stretch_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many ways there are to it."""
    asked: list[Any] = []
    covers = Unrecorded.covers

    def noted(self: Unrecorded, node: Any, since: int = 0) -> bool:
        asked.append(node)
        return covers(self, node, since)

    monkeypatch.setattr(Unrecorded, "covers", noted)

    def f(x: Any) -> Any:
        with ng.no_grad():
            y = x * 2
        for _ in range(9):
            y = y.sin() + y.cos()
        return y

    value, _ = func.jvp(f, (ng.tensor(2.0),), (ng.tensor(1.0),))
    assert not value.requires_grad
    assert len(asked) < 200


def test_many_columns_at_once() -> None:
    x = ng.arange(12.0)
    assert func.jacfwd(in_no_grad)(x).diagonal().tolist() == (3 * x * x - 2 * x).tolist()


def test_what_was_captured_gets_no_gradient() -> None:
    w = ng.tensor(3.0, requires_grad=True)

    def f(x: Any) -> Any:
        with ng.no_grad():
            constant = w * x
        return constant * x * w

    value, tangent = func.jvp(f, (ng.tensor(2.0),), (ng.tensor(1.0),))
    assert (value.item(), tangent.item()) == (36, 36)
    (of_value,) = ng.autograd.grad(value, w, retain_graph=True)
    (of_tangent,) = ng.autograd.grad(tangent, w)
    assert (of_value.item(), of_tangent.item()) == (12, 12)


def test_inference_mode_ends_tangents_and_leaves_the_mode_as_it_was() -> None:
    def f(x: Any) -> Any:
        with ng.no_grad():
            with ng.inference_mode(False):
                assert ng.is_grad_enabled()
                y = x * x
            assert not ng.is_grad_enabled()
            z = x * x
        return y + z

    assert func.grad(lambda x: jvp(f)(x))(ng.tensor(2.0)).item() == 2
    assert jvp(f)(ng.tensor(2.0)).item() == 8


def test_a_mode_that_the_function_leaves_open_ends_with_it() -> None:
    def f(x: Any) -> Any:
        ng.set_grad_enabled(False)
        return x * x

    assert jvp(jvp(f))(ng.tensor(2.0)).item() == 2
    assert ng.is_grad_enabled() and modes.stretch is None
