"""State of Python's that the bodies of loops and branches read and change: numbers or an error.

Each kind of state is changed by a step that is drawn into each function for control flow. What a
traced function gives is what it gives without `jit`, or an error that names what is changed.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import types
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import numgrad as ng
from numgrad import func

COUNT = 0


class Counter:
    total = 0

    def __init__(self) -> None:
        self.n = 0

    def step(self) -> int:
        self.n += 1
        return self.n

    @functools.cached_property
    def kept(self) -> int:
        return 3

    def __call__(self) -> int:
        return self.step()


@dataclasses.dataclass
class Flag:
    is_set: bool = False


State = tuple[Callable[[], Any], Callable[[], Any]]  # what changes it and tells, what only tells


def _variable() -> State:
    n = 0

    def change() -> int:
        nonlocal n
        n += 1
        return n

    return change, lambda: n


def _global() -> State:
    global COUNT
    COUNT = 0

    def change() -> int:
        global COUNT
        COUNT = COUNT + 1
        return COUNT

    return change, lambda: COUNT


def _attribute() -> State:
    counter = Counter()
    return counter.step, lambda: counter.n


def _callable() -> State:
    counter = Counter()
    return counter, lambda: counter.n


def _of_class() -> State:
    class Own:
        total = 0

    def change() -> int:
        Own.total += 1
        return Own.total

    return change, lambda: Own.total


def _list() -> State:
    found: list[int] = []

    def change() -> int:
        found.append(1)
        return len(found)

    return change, lambda: len(found)


def _item() -> State:
    found = [0]

    def change() -> int:
        found[0] += 1
        return found[0]

    return change, lambda: found[0]


def _dict() -> State:
    found: dict[str, int] = {}

    def change() -> int:
        found["n"] = found.get("n", 0) + 1
        return found["n"]

    return change, lambda: found.get("n", 0)


def _set() -> State:
    found: set[int] = set()

    def change() -> int:
        found.add(len(found))
        return len(found)

    return change, lambda: len(found)


def _deque() -> State:
    found = deque([1, 2, 3, 4, 5, 6, 7, 8])

    def change() -> int:
        found.rotate(1)
        return found[0]

    return change, lambda: found[0]


def _iterator() -> State:
    found = iter(range(1, 50))
    return (lambda: next(found)), (lambda: next(found))


def _generator() -> State:
    found = (k for k in itertools.count(1))
    return (lambda: next(found)), (lambda: next(found))


def _namespace() -> State:
    found = types.SimpleNamespace(n=0)

    def change() -> int:
        found.n = found.n + 1
        return found.n

    return change, lambda: found.n


def _flag() -> State:
    flag = Flag()

    def change() -> int:
        if flag.is_set:
            return 2
        flag.is_set = True
        return 1

    return change, lambda: 2 if flag.is_set else 1


def _default() -> State:
    def change(found: list[int] = []) -> int:  # noqa: B006 # it is what is tested
        found.append(1)
        return len(found)

    return change, lambda: len(change.__defaults__[0])  # type: ignore[index, arg-type]


def _partial() -> State:
    found = [0]

    def add(found: list[int]) -> int:
        found[0] += 1
        return found[0]

    return functools.partial(add, found), lambda: found[0]


def _of_function() -> State:
    def change() -> int:
        change.n = getattr(change, "n", 0) + 1  # type: ignore[attr-defined]
        return change.n  # type: ignore[attr-defined, no-any-return]

    return change, lambda: getattr(change, "n", 0)


STATES = {each.__name__[1:]: each for each in (
    _variable, _global, _attribute, _callable, _of_class, _list, _item, _dict, _set, _deque,
    _iterator, _generator, _namespace, _flag, _default, _partial, _of_function,
)}  # fmt: skip
Step = Callable[[Any], Any]
# Each calls a step several times, or one of two once; it is a function of one tensor.
FLOWS: dict[str, Callable[[Step, Any], Any]] = {
    "scan": lambda step, x: func.scan(lambda c, _: (step(c), None), x, length=3)[0],
    "log": lambda step, x: func.scan(
        lambda c, _: (step(c), None), x, length=7, checkpoint="log"
    )[0],
    "stacked": lambda step, x: func.scan(lambda c, _: (c, step(c)), x, length=3)[1].sum(),
    "map": lambda step, x: func.map(step, ng.stack([x, x + 1, x + 2])).sum(),
    "fori_loop": lambda step, x: func.fori_loop(0, 3, lambda i, c: step(c), x),
    "while_loop": lambda step, x: func.while_loop(
        lambda c, n: n < 3, lambda c, n: (step(c), n + 1), (x, ng.tensor(0))
    )[0],
    "condition": lambda step, x: func.while_loop(
        lambda c, n: n + 0 * step(c) < 3, lambda c, n: (c * 2, n + 1), (x, ng.tensor(0))
    )[0],
    "cond": lambda step, x: func.cond(x > 100, step, lambda x: x * 1.5, x),
    "taken": lambda step, x: ng.cond(x < 100, step, lambda x: x * 1.5, (x,)),
    "switch": lambda step, x: func.switch((x > 0) * 1, [lambda x: x, step], x),
    "inner": lambda step, x: func.scan(
        lambda c, _: (func.scan(lambda d, _: (step(d), None), c, length=2)[0], None), x, length=2
    )[0],
    "associative_scan": lambda step, x: func.associative_scan(
        lambda a, b: step(a) + b, ng.stack([x, x + 1, x + 2]), combine_mode="generic"
    ).sum(),
}  # fmt: skip


def _programs(state: str, flow: Any, where: str) -> Callable[[Any], Any]:
    """Return a function that makes its state, and reads it in the body or behind it."""

    def program(x: Any) -> Any:
        change, tell = STATES[state]()

        def step(c: Any) -> Any:
            n = change()
            return c.sin() * n if where == "body" else c.sin()

        found = flow(step, x)
        return found * tell() if where == "behind" else found

    return program


@pytest.mark.sampled(0.5)
@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("state", list(STATES))
def test_what_a_body_changes_is_refused_or_as_often_as_without_jit(state: str) -> None:
    x = ng.tensor(0.7, dtype=ng.float64)
    refused = 0
    for (name, flow), where in itertools.product(FLOWS.items(), ("body", "behind")):
        program = _programs(state, flow, where)
        for made in (program, func.grad(program)):
            try:
                found = ng.jit(made)(x)
            except ng.TraceError as error:
                found, refused = None, refused + ("test_body_state.py:" in str(error))
            if found is not None:
                assert ng.allclose(found, made(x)), (name, where, made)
    assert refused >= 40  # all but what is a loop of Python's still


def test_what_nobody_reads_may_change() -> None:
    seen: list[str] = []
    counter = 0

    def program(x: Any, flow: Any) -> Any:
        def step(c: Any) -> Any:
            nonlocal counter
            counter += 1
            seen.append(f"{c.shape}")
            return c.sin()

        return flow(step, x)

    for flow in FLOWS.values():
        ng.jit(lambda x, flow=flow: program(x, flow)).lower(ng.tensor(0.7))
    assert counter == len(seen) > len(FLOWS)


@pytest.mark.usefixtures("traced")
def test_what_a_property_keeps_is_computed_once_in_any_case() -> None:
    def program(x: Any) -> Any:
        counter = Counter()
        return func.scan(lambda c, _: (c * counter.kept, None), x, length=3)[0]

    assert ng.jit(func.grad(program))(ng.tensor(0.5)).item() == 27


@pytest.mark.usefixtures("traced")
def test_a_variable_that_moves_on_is_for_the_gradient_what_it_was() -> None:
    def program(x: Any) -> Any:
        scale, k = [1.0, 2.0, 3.0], 0

        def flows() -> Iterator[Callable[[Any], Any]]:
            for flow in ("scan", "while_loop", "taken"):
                yield functools.partial(FLOWS[flow], lambda c: c.sin() * scale[k])

        for k, flow in enumerate(flows()):  # noqa: B007 # the step goes by it
            x = flow(x)
        k = 1
        return x

    x = ng.tensor(0.7, dtype=ng.float64)
    for made in (func.grad(program), func.grad(func.grad(program))):
        assert ng.allclose(ng.jit(made)(x), made(x))
    y = x.clone().requires_grad_()
    ng.jit(program)(y).backward()
    assert ng.allclose(y.grad, func.grad(program)(x))


@pytest.mark.usefixtures("traced")
def test_an_object_that_changes_before_the_gradient_is_refused() -> None:
    def program(x: Any) -> Any:
        scale = [2.0]
        y = func.scan(lambda c, _: (c * scale[0], None), x, length=3)[0]
        scale[0] = 3.0
        return y

    assert ng.jit(program)(ng.tensor(0.5)).item() == 4
    with pytest.raises(ng.TraceError, match=r"scale\[0\] is not what it was when this loop"):
        ng.jit(func.grad(program))(ng.tensor(0.5))


@pytest.mark.usefixtures("traced")
def test_a_tensor_that_a_body_leaves_outside_is_refused_where_it_is_used() -> None:
    def program(x: Any) -> Any:
        box = Counter()

        def step(c: Any, _: Any) -> Any:
            box.last = c * 2  # type: ignore[attr-defined]
            return c + 1, None

        return func.scan(step, x, length=3)[0] + box.last  # type: ignore[attr-defined]

    with pytest.raises(ng.TraceError, match=r"changes box\.last, which is read"):
        ng.jit(program)(ng.tensor(0.5))
