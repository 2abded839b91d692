"""Functions that are replaced, registered or given other code after they were traced."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from tests.cases import examples

pytestmark = pytest.mark.usefixtures("traced")

CALLED_OFTEN = 105  # by then a call has its conditions built in


class State:
    """What the functions below call, made anew for each test."""

    def __init__(self) -> None:
        def helper(x: Any, k: float = 2.0, *, more: float = 1.0) -> Any:
            return x * k + more

        class Inner:
            w = 3.0

        class Meta(type):
            def __getattr__(cls, name: str) -> Any:
                return self.table[name]

        class Class(metaclass=Meta):
            inner = Inner()

        class Model:
            def __init__(self) -> None:
                self.w, self.found = 2.0, {"a": 4.0}

            @functools.singledispatchmethod
            def scaled(self, kind: Any, x: Any) -> Any:
                return x * self.w

            @scaled.register
            def _(self, kind: int, x: Any) -> Any:
                return x + self.found["a"]

            def method(self, x: Any) -> Any:
                return x * 3.0

            @property
            def number(self) -> float:
                return 4.0

            def __getattr__(self, name: str) -> Any:
                return self.__dict__["found"][name]

        @functools.singledispatch
        def general(kind: Any, x: Any) -> Any:
            return x * 5.0

        self.table, self.helper, self.Class, self.Model = {"w": 2.0}, helper, Class, Model
        self.model, self.general, self.inner = Model(), general, Inner


READS: dict[str, Callable[[State], Callable[[Any], Any]]] = {
    "function": lambda s: lambda x: s.helper(x),
    "function itself": lambda s: s.helper,
    "partial": lambda s: functools.partial(s.helper, k=3.0),
    "gradient": lambda s: ng.func.grad(lambda x: s.helper(x * x).sum()),
    "method": lambda s: lambda x: s.model.method(x),
    "bound method": lambda s: s.model.method,
    "property": lambda s: lambda x: x * s.model.number,
    "list": lambda s: lambda x: sum([f(x) for f in (s.helper, s.model.method)]),
    "dispatch": lambda s: lambda x: s.general(1, x) + s.general("a", x),
    "dispatched method": lambda s: lambda x: s.model.scaled(1, x) - s.model.scaled("a", x),
    "metaclass": lambda s: lambda x: x * s.Class.w,
    "attribute of a metaclass's": lambda s: lambda x: x * s.Class.inner.w,
    "dynamic attribute": lambda s: lambda x: x * s.model.a,
}

OTHERS: list[Callable[..., Any]] = [
    lambda self, x=1.0, *more, **named: self * 7.0 if isinstance(x, float) else x * 8.0,
    lambda self, x=1.0, *more, **named: self * 9.0 if isinstance(x, float) else x * 6.0,
]
CHANGES: dict[str, Callable[[State, float], Any]] = {
    "code": lambda s, v: setattr(s.helper, "__code__", OTHERS[int(v) % 2].__code__),
    "code of a method": lambda s, v: setattr(
        s.Model.method, "__code__", OTHERS[int(v) % 2].__code__
    ),
    "code of a property": lambda s, v: setattr(
        s.Model.__dict__["number"].fget, "__code__", (lambda self: 11.0).__code__
    ),
    "defaults": lambda s, v: setattr(s.helper, "__defaults__", (v,)),
    "named defaults": lambda s, v: setattr(s.helper, "__kwdefaults__", {"more": v}),
    "registered": lambda s, v: s.general.register(int, lambda kind, x: x * v),
    "registered for all": lambda s, v: s.general.register(object, lambda kind, x: x - v),
    "registered method": lambda s, v: s.Model.scaled.register(str, lambda self, kind, x: x * v),
    "attribute": lambda s, v: setattr(s.model, "w", v),
    "entry": lambda s, v: s.model.found.__setitem__("a", v),
    "table": lambda s, v: s.table.__setitem__("w", v),
    "class": lambda s, v: setattr(s.Class, "w", v),
    "inner": lambda s, v: setattr(s.inner, "w", v),
    "own attribute": lambda s, v: setattr(s.model, "a", v),
}


@pytest.mark.parametrize("read", READS)
@given(st.data())
@settings(max_examples=examples(8))
def test_any_change_is_noticed(read: str, data: st.DataObject) -> None:
    state = State()
    function = READS[read](state)
    compiled, x = ng.jit(function), ng.tensor([1.0, -2.0])
    for _ in range(data.draw(st.sampled_from([1, 2, CALLED_OFTEN]))):
        compiled(x)
    for _ in range(4):
        change = data.draw(st.sampled_from(sorted(CHANGES)))
        CHANGES[change](state, data.draw(st.sampled_from([2.0, 3, 0.5, -1.0])))
        # Another code may return a default, which is a number.
        found, wanted = (ng.as_tensor(each(x)).numpy() for each in (compiled, function))
        np.testing.assert_allclose(found, wanted, rtol=1e-6, err_msg=change)
    before = compiled.cache_info().misses
    compiled(x)
    assert compiled.cache_info().misses == before


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_noticed(change: str) -> None:
    matters = False
    for read in READS.values():
        state = State()
        function, x = read(state), ng.tensor([1.0, -2.0])
        compiled = ng.jit(function)
        before = compiled(x).numpy()
        CHANGES[change](state, 7.0)
        wanted = function(x).numpy()
        np.testing.assert_allclose(compiled(x).numpy(), wanted, rtol=1e-6)
        matters |= not np.array_equal(before, wanted)
    assert matters


ASKS: dict[str, Callable[[Any], Any]] = {
    "float": lambda c: float(c.sum()),
    "item": lambda c: (c * 2).sum().item(),
    "branch": lambda c: 1.0 if c.max() > 0 else 2.0,
    "list": lambda c: (c + 1).tolist()[0],
    "array": lambda c: np.asarray(c.exp())[0],
}


@pytest.mark.parametrize("ask", ASKS)
def test_numbers_of_what_is_computed_from_captured_tensors_are_refused(ask: str) -> None:
    captured = ng.ones(2)
    with pytest.raises(ng.TraceError, match="No argument goes into it.*compute it outside"):
        ng.jit(lambda x: x * ASKS[ask](captured))(ng.ones(2))
    with pytest.raises(ng.TraceError, match=r"asks a traced tensor for .*, but while"):
        ng.jit(lambda x: x * ASKS[ask](captured + x))(ng.ones(2))


NUMBERS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "int": int,
    "bool": bool,
    "complex": lambda c: complex(c).real,
    "index": operator.index,
    "position": lambda c: [3.0, 5.0, 7.0, 9.0, 11.0][c],
    "item": lambda c: c.item(),
    "list": lambda c: c.tolist(),
    "array": lambda c: float(c.numpy()),
    "as an array": lambda c: float(np.asarray(c)),
    "range": lambda c: sum(range(c)),
    "floor": lambda c: math.floor(c),
    "words": lambda c: float(f"{c.item():.1f}"),
    "buffer": lambda c: ng.frombuffer(c.numpy().data, dtype=ng.int64).sum(),
}


@pytest.mark.parametrize("way", NUMBERS)
def test_numbers_of_a_captured_tensor_are_those_of_each_call(way: str) -> None:
    """Alone and beside the tensor itself, however they are asked for."""
    captured = ng.tensor(1)
    compiled = ng.jit(lambda x: x * NUMBERS[way](captured) + captured)
    alone = ng.jit(lambda x: x * NUMBERS[way](captured))
    for number in (1, 4, 0, 3, 1):
        captured.fill_(number)
        wanted = 2.0 * float(NUMBERS[way](captured))
        assert compiled(ng.tensor([2.0])).tolist() == [wanted + number]
        assert alone(ng.tensor([2.0])).tolist() == [wanted]


def test_the_numbers_of_a_captured_buffer_are_those_of_each_call() -> None:
    memory = bytearray(np.array([1.0, 2.0]))
    compiled = ng.jit(lambda x: x * ng.frombuffer(memory, dtype=ng.float64))
    for numbers in ([1.0, 2.0], [3.0, 5.0], [0.0, -1.0]):
        memory[:] = np.array(numbers).tobytes()
        assert compiled(ng.ones(2, dtype=ng.float64)).tolist() == numbers
