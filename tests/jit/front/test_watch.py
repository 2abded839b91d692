"""Whatever a traced function takes from outside may change between calls."""

from __future__ import annotations

import collections
import dataclasses
import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from tests.cases import examples

pytestmark = pytest.mark.usefixtures("traced")

Pair = collections.namedtuple("Pair", "items number")
CALLED_OFTEN = 105  # by then a call has its conditions built in


@dataclasses.dataclass
class Settings:
    rate: float
    weights: list[Any]


class Positive:
    """A descriptor with a number of its own."""

    def __init__(self, number: float) -> None:
        self.number = number

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else self.number * instance.scale


class Slotted:
    __slots__ = ("number",)

    def __init__(self, number: float) -> None:
        self.number = number


class Dynamic:
    def __init__(self, **found: Any) -> None:
        self._found = found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._found[name]


class Scaling:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, x: Any) -> Any:
        return x * self.factor


class State:
    """Everything that the functions below read, in one place, made anew for each test."""

    def __init__(self) -> None:
        class Base:
            shared = 2.5

            def __init__(self) -> None:
                self.weight = ng.tensor(2.0)
                self.scale = 1.5
                self.table = {"w": ng.tensor([1.0, 3.0]), "n": 2.0, "deep": {"c": [1.0, 2.0]}}
                self.steps = 0

            def times(self, x: Any) -> Any:
                return x * self.scale

        class Model(Base):
            limited = Positive(3.0)

            @property
            def double(self) -> Any:
                return self.scale * 2 + self.table["n"]

            def times(self, x: Any) -> Any:
                return super().times(x) + self.shared

            @classmethod
            def by_class(cls, x: Any) -> Any:
                return x * cls.shared

        self.model, self.Base, self.Model = Model(), Base, Model
        self.table: dict[str, Any] = {"w": ng.tensor(2.0), "n": 3, "on": True, "l": [1.0, 2.0]}
        self.items: list[Any] = [1.0, 2.0, ng.tensor(3.0)]
        self.numbers = {1.5, 2.5}
        self.queue = collections.deque([1.0, 2.0])
        self.pair = Pair([1.0, 2.0], 3.0)
        self.settings = Settings(0.5, [1.0, ng.tensor(2.0)])
        self.config = types.ModuleType("config_of_a_user")
        self.config.rate = 0.25  # type: ignore[attr-defined]
        self.config.weights = [2.0, 3.0]  # type: ignore[attr-defined]
        self.namespace = types.SimpleNamespace(a=types.SimpleNamespace(b={"c": [4.0, 5.0]}))
        self.slotted, self.dynamic = Slotted(2.0), Dynamic(w=2.0, l=[1.0])
        self.called = Scaling(2.0)
        self.array = np.array([1.0, 2.0])
        self.leaf = ng.tensor([1.0, 2.0], requires_grad=True)
        self.leaf.grad = ng.tensor([3.0, 4.0])
        self.helper: Callable[..., Any] = self._helper()

    def _helper(self) -> Callable[..., Any]:
        factors = [2.0]

        def helper(x: Any, model: Any, extra: list[float] = [0.5], *, more: float = 1.0) -> Any:  # noqa: B006
            return x * model.scale * factors[0] + extra[0] + more

        return helper


def by_entries(s: State) -> Callable[..., Any]:
    table = s.table
    return lambda x: x * table["w"] + table["n"] if table["on"] else x - table["l"][1]


def by_alias(s: State) -> Callable[..., Any]:
    def function(x: Any) -> Any:
        model = s.model
        table = model.table
        key = "n"
        return x * table[key] + table["w"].sum()

    return function


def by_iteration(s: State) -> Callable[..., Any]:
    def function(x: Any) -> Any:
        for item in s.items:
            x = x * item
        for number in sorted(s.numbers):
            x = x + number
        return x * len(s.items) + sum(s.queue)

    return function


def by_numpy(s: State) -> Callable[..., Any]:
    array = s.array
    return lambda x: x * float(array.sum()) + float(array[0])


def by_cell(s: State) -> Callable[..., Any]:
    number = 2.0

    def rebind(value: float) -> None:
        nonlocal number
        number = value

    s.rebind = rebind  # type: ignore[attr-defined]
    return lambda x: (lambda: x * number)()


def by_default(s: State) -> Callable[..., Any]:
    def function(x: Any, items: Any = s.items, *, table: Any = s.table) -> Any:
        return x * items[0] + table["n"]

    return function


def by_getattr(s: State) -> Callable[..., Any]:
    return lambda x: x * getattr(s.model, "sca" + "le") + sum(vars(s.settings)["weights"])


def by_hasattr(s: State) -> Callable[..., Any]:
    return lambda x: x * s.model.bias if hasattr(s.model, "bias") else x + 1


def by_get(s: State) -> Callable[..., Any]:
    return lambda x: x * s.table.get("more", 1.0) + ("more" in s.model.table)


def by_mapping(s: State) -> Callable[..., Any]:
    def total(**found: Any) -> Any:
        return found["n"] + sum(found["l"])

    return lambda x: x * total(**s.table)


READS: dict[str, Callable[[State], Callable[..., Any]]] = {
    "entries": by_entries,
    "an alias": by_alias,
    "iteration and length": by_iteration,
    "numpy": by_numpy,
    "a variable of a function": by_cell,
    "defaults": by_default,
    "getattr": by_getattr,
    "hasattr": by_hasattr,
    "get": by_get,
    "mapping": by_mapping,
    "attribute": lambda s: lambda x: x * s.model.weight + s.model.scale,
    "attribute of a bound object": lambda s: s.model.times,
    "method": lambda s: lambda x: s.model.times(x),
    "class method": lambda s: lambda x: s.model.by_class(x) + s.Model.shared,
    "property": lambda s: lambda x: x * s.model.double,
    "descriptor": lambda s: lambda x: x * s.model.limited,
    "nested": lambda s: lambda x: x * s.namespace.a.b["c"][0] + s.model.table["deep"]["c"][1],
    "named tuple": lambda s: lambda x: x * s.pair.items[1] + s.pair.number,
    "dataclass": lambda s: lambda x: x * s.settings.rate + s.settings.weights[1],
    "whole dataclass": lambda s: lambda x: x * sum(dataclasses.astuple(s.settings)[1]),
    "module": lambda s: lambda x: x * s.config.rate + s.config.weights[0],
    "slots": lambda s: lambda x: x * s.slotted.number,
    "dynamic": lambda s: lambda x: x * s.dynamic.w + s.dynamic.l[0],
    "callable object": lambda s: lambda x: s.called(x),
    "callable object itself": lambda s: s.called,
    "helper": lambda s: lambda x: s.helper(x, s.model),
    "partial": lambda s: functools.partial(s.helper, model=s.model),
    "wrapped": lambda s: functools.lru_cache(lambda x: x * s.model.scale).__wrapped__,
    "jitted inside": lambda s: lambda x: ng.jit(lambda y: y * s.model.scale)(x),
    "gradient": lambda s: ng.func.grad(lambda x: (x * x * s.model.scale).sum()),
    "grad of a tensor": lambda s: lambda x: x * s.leaf.grad,
    "a branch": lambda s: lambda x: x if s.model.scale > 2 else -x,
    "comprehension": lambda s: lambda x: x * sum([v * s.model.scale for v in s.items[:2]]),
}

Change = Callable[[State, float], Any]


def _set_helper(s: State, v: float) -> None:
    s.helper = lambda x, model: x * v


def _rebind(s: State, v: float) -> None:
    getattr(s, "rebind", lambda value: None)(v)


def _patch(s: State, v: float) -> None:
    s.Base.times = lambda self, x: x - v  # type: ignore[method-assign]


CHANGES: dict[str, Change] = {
    "weight": lambda s, v: setattr(s.model, "weight", ng.tensor(v)),
    "scale": lambda s, v: setattr(s.model, "scale", v),
    "bias": lambda s, v: setattr(s.model, "bias", v),
    "no bias": lambda s, v: s.model.__dict__.pop("bias", None),
    "shared": lambda s, v: setattr(s.Base, "shared", v),
    "shared below": lambda s, v: setattr(s.Model, "shared", v),
    "own shared": lambda s, v: setattr(s.model, "shared", v),
    "limited": lambda s, v: setattr(s.Model.__dict__["limited"], "number", v),
    "method": _patch,
    "own method": lambda s, v: setattr(s.model, "times", lambda x: x / v),
    "model's table": lambda s, v: s.model.table.__setitem__("n", v),
    "model's tensor": lambda s, v: s.model.table.__setitem__("w", ng.tensor([v, v])),
    "new table": lambda s, v: setattr(
        s.model, "table", {"w": ng.ones(2), "n": v, "deep": {"c": [v, v]}}
    ),
    "deep": lambda s, v: s.model.table["deep"]["c"].__setitem__(1, v),
    "more": lambda s, v: (s.table.__setitem__("more", v), s.model.table.__setitem__("more", v)),
    "no more": lambda s, v: (s.table.pop("more", None), s.model.table.pop("more", None)),
    "entry": lambda s, v: s.table.__setitem__("w", ng.tensor(v)),
    "number": lambda s, v: s.table.__setitem__("n", v),
    "switch": lambda s, v: s.table.__setitem__("on", not s.table["on"]),
    "list in a dict": lambda s, v: s.table["l"].__setitem__(1, v),
    "item": lambda s, v: s.items.__setitem__(0, v),
    "append": lambda s, v: s.items.append(v),
    "tensor in a list": lambda s, v: s.items.__setitem__(2, ng.tensor(v)),
    "numbers of a tensor": lambda s, v: s.model.weight.fill_(v),
    "set": lambda s, v: s.numbers.add(v),
    "queue": lambda s, v: s.queue.append(v),
    "pair": lambda s, v: s.pair.items.__setitem__(1, v),
    "new pair": lambda s, v: setattr(s, "pair", Pair([v, v], v)),
    "rate": lambda s, v: setattr(s.settings, "rate", v),
    "setting": lambda s, v: s.settings.weights.__setitem__(1, v),
    "config": lambda s, v: setattr(s.config, "rate", v),
    "config's list": lambda s, v: s.config.weights.__setitem__(0, v),
    "namespace": lambda s, v: s.namespace.a.b["c"].__setitem__(0, v),
    "new namespace": lambda s, v: setattr(s.namespace, "a", types.SimpleNamespace(b={"c": [v]})),
    "slot": lambda s, v: setattr(s.slotted, "number", v),
    "dynamic": lambda s, v: s.dynamic._found.__setitem__("w", v),
    "dynamic list": lambda s, v: s.dynamic.l.__setitem__(0, v),
    "called": lambda s, v: setattr(s.called, "factor", v),
    "helper": _set_helper,
    "default": lambda s, v: (s.helper.__defaults__ or ([0],))[0].__setitem__(0, v),
    "keyword default": lambda s, v: setattr(s.helper, "__kwdefaults__", {"more": v}),
    "variable": _rebind,
    "array": lambda s, v: s.array.__setitem__(0, v),
    "grad": lambda s, v: setattr(s.leaf, "grad", ng.tensor([1.0, v])),
    "nothing": lambda s, v: s.model.__dict__.__setitem__("steps", s.model.steps + 1),
}


@pytest.mark.parametrize("read", READS)
@given(st.data())
@settings(max_examples=examples(2))
def test_any_change_is_noticed(read: str, data: st.DataObject) -> None:
    state = State()
    function = READS[read](state)
    compiled = ng.jit(function)
    x = ng.tensor([1.0, -2.0])
    if data.draw(st.booleans()):
        x.requires_grad_()
    for _ in range(data.draw(st.sampled_from([1, 2, CALLED_OFTEN]))):
        compiled(x)
    for _ in range(4):
        change = data.draw(st.sampled_from(sorted(CHANGES)))
        CHANGES[change](state, data.draw(st.sampled_from([2.0, 3, 0.5, -1.0])))
        np.testing.assert_allclose(
            compiled(x).numpy(force=True), function(x).numpy(force=True), rtol=1e-6, err_msg=change
        )
    before = compiled.cache_info().misses
    compiled(x)
    assert compiled.cache_info().misses == before


@pytest.mark.sampled(0.18)
@pytest.mark.parametrize("read", READS)
def test_every_change_is_noticed(read: str) -> None:
    state = State()
    function = READS[read](state)
    compiled = ng.jit(function)
    x = np.array([1.0, -2.0])
    compiled(x)
    for number, change in enumerate(CHANGES.values()):
        change(state, 7.0 + number)
        found, wanted = compiled(x).numpy(), function(ng.from_numpy(x)).numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-6, err_msg=list(CHANGES)[number])


@pytest.mark.parametrize("change", sorted(set(CHANGES) - {"no bias", "no more", "nothing"}))
def test_every_change_matters(change: str) -> None:
    for read in READS.values():
        state = State()
        function, x = read(state), ng.tensor([1.0, -2.0])
        before = function(x).numpy()
        CHANGES[change](state, 7.0)
        if not np.array_equal(before, function(x).numpy()):
            return
    raise AssertionError("it changes the result of no function")


# Functions that compute with a captured tensor in another dtype than its own.
CASTS: dict[str, Callable[[Any, Any], Any]] = {
    "mul": lambda x, w: x * w,
    "div": lambda x, w: w / x,
    "where": lambda x, w: ng.where(x > 0, x, w),
    "comparison": lambda x, w: (x == w) * 1.0,
    "clamp": lambda x, w: x.clamp(max=w),
    "addcmul": lambda x, w: ng.addcmul(x, x, w),
    "cat": lambda x, w: ng.cat([x, w]),
    "in place": lambda x, w: x.clone().mul_(w),
    "copy": lambda x, w: x.clone().copy_(w),
    "masked": lambda x, w: x.masked_fill(w > 2, 0.0) + w,
    "gradient": lambda x, w: ng.func.grad(lambda y: (y * w * y).sum())(x),
    "tangent": lambda x, w: ng.func.jvp(lambda y: y * w, (x,), (x,))[1],
    "numbers of it": lambda x, w: x * float(w.numpy()[0]) + w.tolist()[1],
}


@pytest.mark.sampled(0.11)
@pytest.mark.parametrize("dtype", [ng.float32, ng.int64, ng.bool])
@pytest.mark.parametrize("way", CASTS)
def test_a_captured_tensor_of_another_dtype_is_read_in_every_call(way: str, dtype: Any) -> None:
    weight = ng.tensor([1, 0]).to(dtype)
    x = ng.tensor([1.0, -2.0], dtype=ng.float64)
    compiled = ng.jit(lambda x: CASTS[way](x, weight))
    for numbers in ([1, 0], [0, 1], [5, 7]):
        weight.copy_(ng.tensor(numbers))
        np.testing.assert_array_equal(compiled(x).numpy(), CASTS[way](x, weight).numpy())


def test_a_change_of_what_is_not_read_means_no_other_trace() -> None:
    state = State()

    def function(x: Any) -> Any:
        return x * state.model.weight * state.table["n"]

    compiled = ng.jit(function)
    for steps in range(5):
        state.model.steps = steps
        state.table["w"] = ng.tensor(float(steps))
        state.table["n"] = float("3")  # equal, and another object
        compiled(ng.ones(2))
    assert compiled.cache_info()[:2] == (4, 1)


def test_an_instance_of_its_own_for_each_trace() -> None:
    class Layer:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        @ng.jit
        def forward(self, x: Any) -> Any:
            return x * self.factor

    layers = [Layer(float(k)) for k in range(3)]
    x = ng.ones(2)
    assert [layer.forward(x)[0].item() for layer in layers] == [0.0, 1.0, 2.0]
    layers[1].factor = 5.0
    assert [layer.forward(x)[0].item() for layer in layers] == [0.0, 5.0, 2.0]
    assert Layer.__dict__["forward"].cache_info()[:2] == (2, 4)


def test_the_gradient_is_that_of_the_call_or_an_error() -> None:
    state = State()
    compiled = ng.jit(lambda x: (x * x * state.model.scale).sum())
    x = ng.tensor([1.0, 2.0], requires_grad=True)
    total = compiled(x)
    (slope,) = ng.autograd.grad(total, x, retain_graph=True)
    assert slope.tolist() == [3.0, 6.0]
    state.model.scale = 4.0
    with pytest.raises(RuntimeError, match="scale is not what it was in the call"):
        ng.autograd.grad(total, x, create_graph=True)
    (slope,) = ng.autograd.grad(compiled(x), x)
    assert slope.tolist() == [8.0, 16.0]


def test_the_reason_names_what_changed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("NUMGRAD_LOG", "recompiles")
    state = State()
    compiled = ng.jit(lambda x: x * state.model.table["deep"]["c"][1] + state.pair.items[0])
    compiled(ng.ones(2))
    state.model.table["deep"]["c"][1] = 5.0
    compiled(ng.ones(2))
    state.pair.items[0] = 5.0
    compiled(ng.ones(2))
    assert [record.message.partition(": ")[2] for record in caplog.records[1:]] == [
        "state.model.table['deep']['c'][1] is not what it was",
        "state.pair.items[0] is not what it was",
    ]


COUNTED = 0


def test_what_is_only_counted_or_noted_is_not_read() -> None:
    noted: list[Any] = []
    traces = 0

    def function(x: Any) -> Any:
        global COUNTED
        nonlocal traces
        COUNTED += 1
        traces += 1
        noted.append(x.shape)
        return x * 2

    compiled = ng.jit(function)
    for _ in range(3):
        compiled(ng.ones(2))
    assert (traces, len(noted)) == (1, 1)


def test_what_a_function_changes_itself_is_read_anew() -> None:
    state = State()

    def function(x: Any) -> Any:
        state.model.steps = state.model.steps + 1
        return x * state.model.steps

    compiled = ng.jit(function)
    with pytest.warns(UserWarning, match="state.model.steps is read .* changed by it") as found:
        assert [compiled(ng.ones(1)).item() for _ in range(5)] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert len(found) == 1


def test_what_a_function_keeps_for_later_calls() -> None:
    kept: dict[int, Any] = {}

    class Model:
        @functools.cached_property
        def factor(self) -> float:
            return 2.0

    model = Model()

    def function(x: Any) -> Any:
        n = len(x)
        if n not in kept:
            kept[n] = np.arange(1.0, n + 1)
        return (x * kept[n] * model.factor).sum()

    compiled = ng.jit(function)
    x = ng.ones(3, dtype=ng.float64, requires_grad=True)
    for _ in range(3):
        (slope,) = ng.autograd.grad(compiled(x), x)
        assert slope.tolist() == [2.0, 4.0, 6.0]
    assert compiled.cache_info().misses == 2


@pytest.mark.parametrize(
    "source",
    [iter([1.0, 2.0]), (v for v in [1.0, 2.0]), np.random.default_rng(1), np.random.RandomState(1)],
    ids=["iterator", "generator", "Generator", "RandomState"],
)
def test_what_gives_something_else_every_time_is_refused(source: Any) -> None:
    holder = types.SimpleNamespace(source=source)

    def function(x: Any) -> Any:
        found = holder.source
        return x * (next(found) if hasattr(found, "__next__") else found.normal())

    with pytest.raises(ng.TraceError, match="holder.source .*pass what it gives as an argument"):
        ng.jit(function)(ng.ones(2))


def test_random_numbers_of_numpy_and_python_are_refused() -> None:
    import random

    for draw in (lambda: np.random.rand(), lambda: random.random(), random.gauss):
        with pytest.raises(ng.TraceError, match="draw from it outside"):
            ng.jit(lambda x: x * draw())(ng.ones(2))
