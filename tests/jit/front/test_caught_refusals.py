"""A function that can't be traced is refused, whatever it does with the error."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.graph.modes.state import modes

outside = ng.tensor([1.0, 2.0])

# What can't be traced, of a tensor that is positive.
ASKS: dict[str, Callable[[Any], Any]] = {
    "number": lambda x: float(x.sum()),
    "branch": lambda x: 1 if x.sum() > 0 else 2,
    "list": lambda x: x.tolist(),
    "array": lambda x: np.sin(x.detach().numpy()),
    "mask": lambda x: x[x > 0],
    "write": lambda x: outside.add_(x.sum()),
    "argument": lambda x: x.view(ng.int64) if x.is_leaf else x.item(),
}


def _except(ask: Callable[[], Any]) -> None:
    try:
        ask()
    except Exception:
        return None


def _bare(ask: Callable[[], Any]) -> None:
    try:
        ask()
    except:  # noqa: E722
        return None


def _runtime_error(ask: Callable[[], Any]) -> None:
    with contextlib.suppress(RuntimeError):
        ask()


def _own_error(ask: Callable[[], Any]) -> None:
    try:
        ask()
    except RuntimeError as error:
        raise ValueError("my own words") from error


def _returns(ask: Callable[[], Any]) -> Any:
    try:
        ask()
    finally:
        return None  # noqa: B012


def _generator(ask: Callable[[], Any]) -> None:
    def numbers() -> Any:
        try:
            yield ask()
        except RuntimeError:
            yield 0

    list(numbers())


CAUGHT = (_except, _bare, _runtime_error, _own_error, _returns, _generator)


class _Function(ng.autograd.Function):
    """The identity, whose backward asks."""

    @staticmethod
    def forward(ctx: Any, x: Any, ask: Any) -> Any:
        ctx.ask = ask
        return x * 1

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        ctx.ask(g.exp())
        return g, None


func = ng.func
# Where it is asked: `ask(tensor)` in a function of x.
PLACES: dict[str, Callable[[Callable[[Any], None], Any], Any]] = {
    "body": lambda ask, x: (ask(x), x * 2)[1],
    "grad": lambda ask, x: func.grad(lambda y: (ask(y), (y * y).sum())[1])(x),
    "jvp": lambda ask, x: func.jvp(lambda y: (ask(y), y * y)[1], (x,), (x,)),
    "vmap": lambda ask, x: func.vmap(lambda y: (ask(x), y * y)[1])(x),
    "scan": lambda ask, x: func.scan(lambda c, y: ((ask(y), c + y)[1], c), x.sum(), x),
    "cond": lambda ask, x: func.cond(x.sum() > 0, lambda: (ask(x), x)[1], lambda: -x),
    "while": lambda ask, x: func.while_loop(
        lambda y: y.sum() < 9, lambda y: (ask(y), y * 2)[1], (x,)
    ),
    "jit": lambda ask, x: ng.jit(lambda y: (ask(y), y * 2)[1])(x),
    "hook": lambda ask, x: func.grad(lambda y: _hooked(ask, y * 2).exp().sum())(x),
    "Function": lambda ask, x: func.grad(lambda y: _Function.apply(y, ask).sum())(x),
}


def _hooked(ask: Callable[[Any], None], y: Any) -> Any:
    y.register_hook(ask)
    return y


def _drawn() -> list[Any]:
    draw = random.Random(11)
    cases = []
    for place in PLACES:
        for caught in CAUGHT:
            asked = [name for name in ASKS if place == "body" or name not in ("argument", "write")]
            ask = draw.choice(asked)
            compiled = draw.choice((ng.jit, lambda f: lambda x: ng.jit(f).lower(x).dispatcher(x)))
            cases.append(pytest.param(place, caught, ask, compiled, id=f"{place}{caught.__name__}"))
    return cases


@pytest.mark.parametrize(("place", "caught", "ask", "compiled"), _drawn())
def test_a_refusal_that_is_caught_is_one(place: Any, caught: Any, ask: str, compiled: Any) -> None:
    x = ng.tensor([0.5, 1.0])

    def function(x: Any) -> Any:
        return PLACES[place](lambda asked: caught(lambda: ASKS[ask](asked)), x)

    with pytest.raises(ng.TraceError, match=r"test_caught_refusals\.py:\d+: "):
        compiled(function)(x)
    assert modes.trace is None
    assert ng.jit(lambda x: x * 2)(x).tolist() == [1, 2]


def test_the_first_refusal_is_what_is_raised() -> None:
    def function(x: Any) -> Any:
        try:
            return x * float(x.sum())
        except RuntimeError:
            return x[x > 0]

    with pytest.raises(ng.TraceError, match="asks a traced tensor for a Python number"):
        ng.jit(function)(ng.ones(2))


def test_errors_that_come_without_a_trace_may_be_caught() -> None:
    def function(x: Any) -> Any:
        try:
            return x.reshape(5)
        except RuntimeError:
            return x * 3

    assert ng.jit(function)(ng.ones(2)).tolist() == [3, 3]

    def each(x: Any) -> Any:
        try:
            return x * x.item()
        except RuntimeError:  # as PyTorch's vmap refuses it
            return x * 4

    for mapped in (func.vmap(each), ng.jit(func.vmap(each)), func.vmap(ng.jit(each))):
        assert mapped(ng.ones(2)).tolist() == [4, 4]


def test_a_refusal_of_an_inner_call_may_be_caught_outside_of_any_trace() -> None:
    inner = ng.jit(lambda x: x * float(x.sum()))

    def function(x: Any) -> Any:
        try:
            return inner(x)
        except ng.TraceError:
            return x * 5

    assert function(ng.ones(2)).tolist() == [5, 5]
    with pytest.raises(ng.TraceError):
        ng.jit(function)(ng.ones(2))


def test_a_compiled_function_that_reads_what_is_mapped_is_traced_with_it() -> None:
    def each(x: Any) -> Any:
        y = x.sin()
        return ng.jit(lambda z: z * y)(x)

    x = ng.tensor([[0.5, 1.0], [2.0, 3.0]])
    wanted = (x * x.sin()).tolist()
    assert func.vmap(each)(x).tolist() == wanted
    assert ng.jit(func.vmap(each))(x).tolist() == wanted
