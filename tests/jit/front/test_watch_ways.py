"""Ways in which Python code comes by a value, each with changes of it; eager mode is the judge."""

from __future__ import annotations

import abc
import array
import collections
import contextlib
import contextvars
import copy
import dataclasses
import enum
import functools
import operator
import pickle
import threading
import types
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad.base import pytree
from tests.cases import examples

pytestmark = pytest.mark.usefixtures("traced")

NO = contextlib.nullcontext()
CALLED_OFTEN = 105  # by then a call has its conditions built in

Read = Callable[[], Any]
Way = tuple[Read, Callable[[Any], Any]]  # how a value is read, and how another is put there

GLOBAL: Any = None


def _set_global(value: Any) -> None:
    globals()["GLOBAL"] = value


class Free:
    """An object with any attributes."""

    def __init__(self, **found: Any) -> None:
        self.__dict__.update(found)


class Doubling:
    """A descriptor that is no data descriptor, and asks its owner."""

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return owner.w if instance is None else instance.w


class Both(Doubling):
    def __set__(self, instance: Any, value: Any) -> None:
        instance.w = value


def of_metaclass(value: Any) -> Way:
    class Meta(type):
        w = value

    class Class(metaclass=Meta):
        pass

    return (lambda: Class.w), lambda v: setattr(Meta, "w", v)


def property_of_metaclass(value: Any) -> Way:
    class Meta(type):
        v = value

        @property
        def w(cls) -> Any:
            return cls.v

    class Class(metaclass=Meta):
        pass

    return (lambda: Class.w), lambda v: setattr(Meta, "v", v)


def entry_of_metaclass(value: Any) -> Way:
    table = {"w": value}

    class Meta(type):
        def __getattr__(cls, name: str) -> Any:
            return table[name]

        def __getitem__(cls, name: str) -> Any:
            return table[name]

    class Class(metaclass=Meta):
        pass

    return (lambda: Class.w if Class["w"] is None else Class["w"]), lambda v: table.update(w=v)


def call_of_metaclass(value: Any) -> Way:
    table = {"w": value}

    class Meta(type):
        def __call__(cls) -> Any:
            made = super().__call__()
            made.w = table["w"]
            return made

    class Class(metaclass=Meta):
        w: Any

    return (lambda: Class().w), lambda v: table.update(w=v)


def class_item(value: Any) -> Way:
    table = {"w": value}

    class Class:
        def __class_getitem__(cls, name: str) -> Any:
            return table[name]

    return (lambda: Class["w"]), lambda v: table.update(w=v)  # type: ignore[misc]


def new(value: Any) -> Way:
    table = {"w": value}

    class Class:
        w: Any

        def __new__(cls) -> Any:
            made = object.__new__(cls)
            made.w = table["w"]
            return made

    return (lambda: Class().w), lambda v: table.update(w=v)


def subclass_hook(value: Any) -> Way:
    table = {"w": value}

    class Base:
        w: Any

        def __init_subclass__(cls) -> None:
            cls.w = table["w"]

    def read() -> Any:
        class Derived(Base):
            pass

        return Derived.w

    return read, lambda v: table.update(w=v)


def descriptor(value: Any) -> Way:
    class Class:
        found = Doubling()

    made: Any = Class()
    made.w = value
    return (lambda: made.found), lambda v: setattr(made, "w", v)


def descriptor_of_class(value: Any) -> Way:
    class Class:
        found, w = Doubling(), value

    return (lambda: Class.found), lambda v: setattr(Class, "w", v)


def descriptor_inside(value: Any) -> Way:
    class Class:
        found, w = Both(), value

    return (lambda: Class().found), lambda v: setattr(Class, "w", v)


def cached_inside(value: Any) -> Way:
    table = {"w": value}

    class Class:
        @functools.cached_property
        def w(self) -> Any:
            return table["w"]

    return (lambda: Class().w), lambda v: table.update(w=v)


def shadowed_below(value: Any) -> Way:
    class Base:
        w = value

        @property
        def p(self) -> Any:
            return Base.w

    class Class(Base):
        pass

    return (lambda: Class().p if Class().w is None else Class().w), lambda v: setattr(Class, "w", v)


def property_below(value: Any) -> Way:
    class Base:
        @property
        def w(self) -> Any:
            return value

    class Class(Base):
        pass

    made = Class()
    return (lambda: made.w), lambda v: setattr(Class, "w", property(lambda self: v))


def method_below(value: Any) -> Way:
    class Base:
        def w(self) -> Any:
            return value

    class Class(Base):
        pass

    made = Class()
    return (lambda: made.w()), lambda v: setattr(Class, "w", lambda self: v)


def operator_of_class(value: Any) -> Way:
    class Class:
        def __call__(self) -> Any:
            return value

    made = Class()
    return (lambda: made()), lambda v: setattr(Class, "__call__", lambda self: v)


def callable_in_class(value: Any) -> Way:
    class Calling:
        w: Any

        def __call__(self) -> Any:
            return self.w

    class Class:
        w = Calling()

    Class.w.w = value
    return (lambda: Class.w()), lambda v: setattr(Class.w, "w", v)


def missing(value: Any) -> Way:
    class Table(dict[str, Any]):
        w: Any

        def __missing__(self, key: str) -> Any:
            return self.w

    table = Table()
    table.w = value
    return (lambda: table["w"]), lambda v: setattr(table, "w", v)


def number(value: Any) -> Way:
    class Number(float):
        w: Any

        def __call__(self) -> Any:
            return self.w

    made = Number(2.0)
    made.w = value
    return (lambda: made()), lambda v: setattr(made, "w", v)


def operator_of_number(value: Any) -> Way:
    table = {"w": value}

    class Number(int):
        def __neg__(self) -> Any:
            return table["w"]

    made = Number(2)
    return (lambda: -made), lambda v: table.update(w=v)


def chain_map(value: Any) -> Way:
    table = {"w": value}
    chain: Any = collections.ChainMap({}, table)
    return (lambda: chain["w"]), lambda v: table.update(w=v)


def user_dict(value: Any) -> Way:
    table: Any = collections.UserDict(w=value)
    return (lambda: table["w"]), lambda v: table.update(w=v)


def user_list(value: Any) -> Way:
    items: Any = collections.UserList([value])
    return (lambda: items[0]), lambda v: items.__setitem__(0, v)


def default_dict(value: Any) -> Way:
    table = {"w": value}
    made: Any = collections.defaultdict(lambda: table["w"])
    return (lambda: made.default_factory()), lambda v: table.update(w=v)


def proxy(value: Any) -> Way:
    table = {"w": value}
    made = types.MappingProxyType(table)
    return (lambda: made["w"]), lambda v: table.update(w=v)


def values_of_dict(value: Any) -> Way:
    table = {"w": value}
    found = table.values()
    return (lambda: [*found][0]), lambda v: table.update(w=v)  # noqa: RUF015


def bound_builtin(value: Any) -> Way:
    table = {"w": value}
    get = table.get
    return (lambda: get("w")), lambda v: table.update(w=v)


def objects(value: Any) -> Way:
    held = np.empty(1, object)
    held[0] = value
    return (lambda: held[0]), lambda v: held.__setitem__(0, v)


def context(value: Any) -> Way:
    variable = contextvars.ContextVar[Any]("w")
    variable.set(value)
    return (lambda: variable.get()), variable.set


def reference(value: Any) -> Way:
    made = Free(w=value)
    found = weakref.ref(made)
    return (lambda: found().w), functools.partial(setattr, made, "w")  # type: ignore[union-attr]


def weak_proxy(value: Any) -> Way:
    made = Free(w=value)
    found = weakref.proxy(made)
    return (lambda: found.w), functools.partial(setattr, made, "w")


def weak_callable(value: Any) -> Way:
    def give() -> Any:
        return give.w  # type: ignore[attr-defined]

    give.w = value  # type: ignore[attr-defined]
    found = weakref.proxy(give)
    return (lambda: found()), lambda v: setattr(give, "w", v)


def weak_values(value: Any) -> Way:
    made = Free(w=value)
    found = weakref.WeakValueDictionary({"a": made})
    return (lambda: found["a"].w), functools.partial(setattr, made, "w")


def of_thread(value: Any) -> Way:
    local = threading.local()
    local.w = value
    return (lambda: local.w), lambda v: setattr(local, "w", v)


def attribute_getter(value: Any) -> Way:
    made, get = Free(w=value), operator.attrgetter("w")
    return (lambda: get(made)), lambda v: setattr(made, "w", v)


def method_caller(value: Any) -> Way:
    class Class:
        w: Any

        def method(self) -> Any:
            return self.w

    made, call = Class(), operator.methodcaller("method")
    made.w = value
    return (lambda: call(made)), lambda v: setattr(made, "w", v)


def named(value: Any) -> Way:
    made, names = Free(w=value), ["w"]
    return (lambda: getattr(made, names[0])), lambda v: setattr(made, "w", v)


def answers_everything(value: Any) -> Way:
    table = {"w": value}

    class Class:
        def __getattribute__(self, name: str) -> Any:
            return table["w"]

    made = Class()
    return (lambda: made.w), lambda v: table.update(w=v)


def answers_what_is_missing(value: Any) -> Way:
    table = {"w": value}

    class Class:
        def __getattr__(self, name: str) -> Any:
            return table["w"] if name == "w" else self

        def __call__(self, *_: Any) -> Any:
            return self

    made = Class()
    return (lambda: made.w), lambda v: table.update(w=v)


def member(value: Any) -> Way:
    class Member(enum.Enum):
        A = types.SimpleNamespace()

    Member.A.value.w = value
    return (lambda: Member.A.value.w), lambda v: setattr(Member.A.value, "w", v)


def dispatched(value: Any) -> Way:
    table = {"w": value}

    @functools.singledispatch
    def found(x: Any) -> Any:
        return table["w"]

    return (lambda: found(1)), lambda v: table.update(w=v)


def managed(value: Any) -> Way:
    table = {"w": value}

    @contextlib.contextmanager
    def manager() -> Any:
        yield table["w"]

    def read() -> Any:
        with manager() as found:
            return found

    return read, lambda v: table.update(w=v)


def of_function(value: Any) -> Way:
    def function() -> Any:
        return function.w  # type: ignore[attr-defined]

    function.w = value  # type: ignore[attr-defined]
    return function, lambda v: setattr(function, "w", v)


def by_globals(value: Any) -> Way:
    _set_global(value)
    return (lambda: globals()["GLOBAL"]), _set_global


def by_eval(value: Any) -> Way:
    _set_global(value)
    return (lambda: eval("GLOBAL")), _set_global


WAYS = [
    of_metaclass, property_of_metaclass, entry_of_metaclass, call_of_metaclass, class_item, new,
    subclass_hook, descriptor, descriptor_of_class, descriptor_inside, cached_inside,
    shadowed_below, property_below, method_below, operator_of_class, callable_in_class, missing,
    number, operator_of_number, chain_map, user_dict, user_list, default_dict, proxy,
    values_of_dict, bound_builtin, objects, context, reference, weak_proxy, weak_callable,
    weak_values, of_thread, attribute_getter, method_caller, named, answers_everything,
    answers_what_is_missing, member, dispatched, managed, of_function, by_globals, by_eval,
]  # fmt: skip


def _copied(value: Any) -> Any:
    return copy.deepcopy(value) * copy.copy(value)


def _made_anew(value: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # clone() is better
        return ng.tensor(value) + value


def _pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value)) - 0.5 * value


# What a value is, what is computed with it, and how it is changed where it is.
KINDS: dict[str, Any] = {
    "number": (float, lambda w: w, None),
    "list": (lambda v: [v, 1.0], lambda w: w[0], lambda w, v: w.__setitem__(0, v)),
    "bytes": (lambda v: bytearray([int(v)]), sum, lambda w, v: w.__setitem__(0, int(v))),
    "numbers": (lambda v: array.array("d", [v]), sum, lambda w, v: w.__setitem__(0, v)),
    "tensor": (lambda v: ng.tensor([v, 1.0]), lambda w: w, lambda w, v: w.fill_(v)),
    "copied": (lambda v: ng.tensor([v, 1.0]), _copied, lambda w, v: w.fill_(v)),
    "pickled": (lambda v: ng.tensor([v, 1.0]), _pickled, lambda w, v: w.fill_(v)),
    "of a tensor": (lambda v: ng.tensor([v, 1.0]), _made_anew, lambda w, v: w.fill_(v)),
    "array": (lambda v: np.array([v, 1.0]), lambda w: w, lambda w, v: w.fill(v)),
    "of an array": (lambda v: np.array([v, 1.0]), _made_anew, lambda w, v: w.fill(v)),
    "cast": (
        lambda v: np.array([v, 1.0]),
        lambda w: ng.as_tensor(w, dtype=ng.float32) + ng.asarray(w, copy=True) * w,
        lambda w, v: w.fill(v),
    ),
    "numbers of it": (
        lambda v: np.array([v, 1.0]),
        lambda w: w[0] * ng.tensor(w) + w.sum() * w + w.tolist()[1],
        lambda w, v: w.fill(v),
    ),
}


def check(
    way: Callable[[Any], Way], kind: str, values: list[float], often: int, places: Any
) -> None:
    make, use, change = KINDS[kind]
    value = make(3.0)
    read, put = way(value)

    def function(x: Any) -> Any:
        return x * use(read())

    compiled = ng.jit(function)
    x = ng.tensor([1.0, -2.0], dtype=ng.float64)
    for _ in range(often):
        compiled(x)
    for v, in_place in zip(values, places, strict=True):
        if in_place and change is not None:
            change(value, v)
        else:
            value = make(v)
            put(value)
        np.testing.assert_allclose(compiled(x).numpy(), function(x).numpy(), rtol=1e-6)
    before = compiled.cache_info().misses
    compiled(x)
    assert compiled.cache_info().misses == before


@given(st.data())
@settings(max_examples=examples(20))
def test_any_change_is_noticed(data: st.DataObject) -> None:
    way = data.draw(st.sampled_from(WAYS))
    kind = data.draw(st.sampled_from(sorted(KINDS)))
    values = data.draw(st.lists(st.sampled_from([2.0, 5.0, 7.0]), min_size=2, max_size=4))
    places = data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    check(way, kind, values, data.draw(st.sampled_from([1, 2, 2, CALLED_OFTEN])), places)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_another_number_is_noticed(way: Callable[[Any], Way]) -> None:
    check(way, "number", [5.0, 7.0], 2, [False, False])


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"number"}))
def test_a_change_in_place_is_noticed(kind: str) -> None:
    check(lambda w: ((lambda: w), lambda v: None), kind, [5.0, 7.0], 2, [True, True])


# --- what can't be noticed ------------------------------------------------------------------------


def test_what_may_read_anything_is_refused() -> None:
    table, text, execute = {"w": 2.0}, "w + 0", exec
    for blind in (
        lambda x: x * eval(text, table),
        lambda x: x * globals().get("GLOBAL"),
        lambda x: execute(text, table) or x,
        lambda x: sum(map(eval, ["1.0"])) * x,
    ):
        with pytest.raises(ng.TraceError, match="use names in the place of it"):
            ng.jit(blind)(ng.ones(2))


@dataclasses.dataclass
class Fields:
    a: Any
    b: Any = 1.0


# What NumPy and Python compute of an array that a tensor is computed with, too.
COMPUTED: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "function": lambda a: lambda x: x * a + np.sin(a)[0],
    "second argument": lambda a: lambda x: x * a + np.outer(2.0, a)[0, 1],
    "method": lambda a: lambda x: x * a + a.sum(),
    "element": lambda a: lambda x: x * a + a[0] * x,
    "operator": lambda a: lambda x: x * a + (2 * a)[0] + (a - 1)[1],
    "comparison": lambda a: lambda x: x * a + (a > 4).sum(),
    "sign": lambda a: lambda x: x * a + (-a)[0],
    "loop": lambda a: lambda x: x * a + sum([v for v in a]),  # noqa: C416
    "unpacked": lambda a: lambda x: x * a + (lambda: (lambda p, q: p - q)(*list(a)))(),
    "Python": lambda a: lambda x: x * a + max(a) + sorted(a)[0],
    "constant of a module": lambda a: lambda x: x * a + (np.pi * a)[0],
    "part of a module": lambda a: lambda x: x * a + np.linalg.norm(a),
    "converted": lambda a: lambda x: x * a + ng.tensor([[a[0], a[1]]]),
    "nested": lambda a: lambda x: x * a + ng.tensor([a, a]),
}


def _renamed(compute: Callable[[Any, Any], Any]) -> Callable[[Any], Callable[[Any], Any]]:
    """Return a function that reads an array under two names, of which NumPy knows one."""

    def make(a: Any) -> Callable[[Any], Any]:
        def function(x: Any) -> Any:
            b = a
            return compute(x * a, b)

        return function

    return make


def _written(y: Any, b: Any) -> Any:
    y = y.clone()
    y[0] = b[1] + b.mean()
    y[1:].fill_(b.max() - b[0])
    return y


COMPUTED |= {
    "sum": _renamed(lambda y, b: y + b.sum()),
    "in a helper": _renamed(lambda y, b: y + (lambda q: np.sin(q))(b)),
    "of two": lambda a: lambda x: x * a + (a * a),
    "tensor of what is computed": _renamed(lambda y, b: y + ng.tensor(np.cos(b))),
    "shared with what is computed": _renamed(lambda y, b: ng.stack([y, ng.from_numpy(b + 1)])),
    "divided": _renamed(lambda y, b: y / (b.max() + b.min())),
    "operand of NumPy": _renamed(lambda y, b: np.multiply(y, b * 2)),
    "chosen": _renamed(lambda y, b: ng.where(y > b.mean(), y, b.mean())),
    "clamped": _renamed(lambda y, b: y.clamp(max=b.mean())),
    "power": _renamed(lambda y, b: (y * y) ** b.mean()),
    "written": _renamed(_written),
    "filled": _renamed(lambda y, b: y + ng.full((2,), b.sum())),
    "index": _renamed(lambda y, b: y + y[int(b.argmax()) * 0 + np.int64(b[0] > 4)]),
    "indices": _renamed(lambda y, b: y[np.argsort(-b * (b[0] - 4))]),
    "joined": _renamed(lambda y, b: ng.cat([y, ng.asarray(b[::-1].copy())])),
}


@pytest.mark.sampled(0.14)
@pytest.mark.parametrize("way", COMPUTED)
def test_an_array_that_is_computed_with_is_compared(way: str) -> None:
    held = np.array([2.0, 3.0])
    function = COMPUTED[way](held)
    compiled = ng.jit(function)
    x = ng.tensor([1.0, -2.0], dtype=ng.float64)
    for v in (2.0, 5.0, 7.0):
        held[...] = [v, v + 1]
        np.testing.assert_allclose(compiled(x).numpy(), function(x).numpy(), rtol=1e-6)


def test_an_array_that_only_tensors_are_computed_with_is_read_anew() -> None:
    held, other = np.array([2.0, 3.0]), np.array([1.0, 2.0])
    compiled = ng.jit(lambda x: (x * held + (x - held) / other).sum() + x[0] * other.shape[0])
    for v in (2.0, 5.0, 7.0):
        held[...] = v
        compiled(ng.ones(2))
    assert compiled.cache_info().misses == 1


# Containers, each with ways to change them.
CONTAINERS: dict[str, Any] = {
    "list": (
        lambda x: [x, 1.0],
        [
            lambda c, y: c.append(y),
            lambda c, y: c.__setitem__(0, y),
            lambda c, y: c.pop(),
            lambda c, y: c.reverse(),
            lambda c, y: c.clear(),
        ],
    ),
    "dict": (
        lambda x: {"x": x, "n": 1.0},
        [
            lambda c, y: c.__setitem__("y", y),
            lambda c, y: c.update(x=y),
            lambda c, y: c.pop("n"),
            lambda c, y: c.setdefault("m", 3),
            lambda c, y: c.__setitem__("x", c.pop("x")),  # the order
        ],
    ),
    "ordered": (
        lambda x: collections.OrderedDict(x=x, n=1.0),
        [lambda c, y: c.move_to_end("x"), lambda c, y: c.popitem()],
    ),
    "default": (
        lambda x: collections.defaultdict(list, x=[x]),
        [lambda c, y: c["y"], lambda c, y: c["x"].append(y)],
    ),
    "dataclass": (
        lambda x: Fields(x),
        [
            lambda c, y: setattr(c, "a", y),
            lambda c, y: setattr(c, "more", y),
            lambda c, y: delattr(c, "a"),
        ],
    ),
}
WRITES = [(name, k) for name, (_, ways) in CONTAINERS.items() for k in range(len(ways))]


@pytest.mark.parametrize("nested", [False, True], ids=["", "nested"])
@pytest.mark.parametrize(("name", "which"), WRITES)
def test_a_change_of_a_container_among_the_arguments_is_refused(
    name: str, which: int, nested: bool
) -> None:
    make, ways = CONTAINERS[name]
    write = ways[which]

    def function(x: Any, given: Any) -> Any:
        write(given["inside"] if nested else given, x * 2)
        return x + 1

    x = ng.ones(2)
    argument = {"inside": make(x)} if nested else make(x)
    with pytest.raises(ng.TraceError, match="changes a .* among its arguments"):
        ng.jit(function)(x, argument)
    assert (
        pytree.flatten(argument)[1] == pytree.flatten({"inside": make(x)} if nested else make(x))[1]
    )


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_copy_of_a_container_may_be_changed(name: str) -> None:
    make, ways = CONTAINERS[name]

    def function(x: Any, given: Any) -> Any:
        for write in ways:
            write(copy.deepcopy(given), x * 2)
        return x + sum([leaf for leaf in pytree.flatten(given)[0] if leaf is not list])

    x = ng.tensor([1.0, 2.0])
    np.testing.assert_array_equal(
        ng.jit(function)(x, make(x)).numpy(), function(x, make(x)).numpy()
    )


# --- copies of arguments --------------------------------------------------------------------------

COPIES: dict[str, Callable[[Any], Any]] = {
    "deepcopy": lambda x: copy.deepcopy(x),
    "deepcopy of a list": lambda x: copy.deepcopy([x, 1.0])[0],
    "copy": lambda x: copy.copy(x),
    "asdict": lambda x: dataclasses.asdict(Fields(x))["a"],
    "astuple": lambda x: dataclasses.astuple(Fields(x))[0],
    "replace": lambda x: dataclasses.replace(Fields(x), b=2).a,
    "tensor": lambda x: ng.tensor(x),
    "tensor of a dtype": lambda x: ng.tensor(x, dtype=ng.float32),
    "new_tensor": lambda x: x.new_tensor(x),
    "as_tensor": lambda x: ng.as_tensor(x, dtype=ng.float32),
    "asarray": lambda x: ng.asarray(x, copy=True, requires_grad=False),
}


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("way", COPIES)
def test_copies_of_arguments(way: str, requires_grad: bool) -> None:
    def function(x: Any) -> Any:
        made = COPIES[way](x)
        written = made.detach().clone() if way in ("copy", "replace") else made
        if not written.requires_grad:
            written.mul_(3)  # which x does not see
        return x * 2 + made, written.detach()

    x = ng.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=ng.float64).t().requires_grad_(requires_grad)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # clone() is better
        found, wanted = ng.jit(function)(x), function(x)
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype is other.dtype and one.stride() == other.stride()
        assert one.requires_grad == other.requires_grad
        np.testing.assert_array_equal(one.numpy(force=True), other.numpy(force=True))


def test_a_tensor_of_a_tensor_warns_as_in_eager_mode() -> None:
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        assert ng.jit(lambda x: ng.tensor(x) * 2)(ng.ones(2)).tolist() == [2.0, 2.0]


# --- what is no change ----------------------------------------------------------------------------


def _recursive(factor: float) -> Callable[[Any], Any]:
    def function(x: Any, n: int = 2) -> Any:
        return x if n == 0 else function(factor * x, n - 1)

    return function


# Functions of a number, made anew by each call.
FUNCTIONS: dict[str, Callable[[float], Callable[[Any], Any]]] = {
    "variable": lambda v: lambda x: x * v,
    "default": lambda v: lambda x, w=v: x * w,
    "keyword": lambda v: lambda x, *, w=v: x * w,
    "inner": lambda v: (lambda inner: lambda x: inner(x) + 1)(lambda x: x * v),
    "partial": lambda v: functools.partial(operator.mul, v),
    "partial of a function": lambda v: functools.partial(lambda w, x: w * x, v),
    "partial with a name": lambda v: functools.partial(lambda x, w: w * x, w=v),
    "recursive": _recursive,
    "decorated": lambda v: functools.wraps(operator.mul)(lambda x: x * v),
}


@pytest.mark.parametrize("place", ["argument", "static", "attribute", "list"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_made_anew_mean_no_other_trace(name: str, place: str) -> None:
    make, holder = FUNCTIONS[name], Free(items=[None])
    x = ng.tensor([1.0, 2.0])

    def apply(x: Any, function: Any = None) -> Any:
        if place == "attribute":
            return holder.function(x)
        return (holder.items[0] if place == "list" else function)(x)

    compiled = ng.jit(apply, static_argnames="function" if place == "static" else ())
    for v, misses in ((2.0, 1), (2.0, 1), (3.0, 2), (3.0, 2)):
        holder.function = holder.items[0] = make(v)
        given = (make(v),) if place in ("argument", "static") else ()
        for _ in range(CALLED_OFTEN if v == 3.0 else 1):
            assert compiled(x, *given).tolist() == make(v)(x).tolist()
        assert compiled.cache_info().misses == misses


@pytest.mark.parametrize("ask", ["attribute", "getattr", "in a list"])
def test_the_version_of_a_captured_tensor_is_noticed(ask: str) -> None:
    c = ng.ones(2)
    ways: dict[str, Read] = {
        "attribute": lambda: c._version,
        "getattr": lambda: getattr(c, "_version"),  # noqa: B009
        "in a list": lambda: next(each._version for each in [c]),
    }
    compiled = ng.jit(lambda x: x * ways[ask]())
    for _ in range(3):
        assert compiled(ng.ones(1)).item() == c._version
        c.add_(1)


@pytest.mark.parametrize(
    "ask", ["isinstance", "one of two", "case", "issubclass", "singledispatch"]
)
def test_what_is_registered_with_an_abstract_class_is_noticed(ask: str) -> None:
    class Abstract(abc.ABC):  # noqa: B024
        pass

    class Below(Abstract):
        pass

    class Other:
        pass

    @functools.singledispatch
    def dispatched(value: Any) -> bool:
        return False

    dispatched.register(Abstract, lambda value: True)
    other = Other()

    def matches() -> bool:
        match other:
            case Abstract():
                return True
        return False

    ways: dict[str, Callable[[], bool]] = {
        "isinstance": lambda: isinstance(other, Abstract),
        "one of two": lambda: isinstance(other, (int, Abstract)),
        "case": matches,
        "issubclass": lambda: issubclass(Other, Abstract),
        "singledispatch": lambda: dispatched(other),
    }
    asked = ways[ask]
    compiled = ng.jit(lambda x: x * (3.0 if asked() else 2.0))
    assert [compiled(ng.ones(1)).item() for _ in range(2)] == [2.0, 2.0]
    Below.register(Other)
    assert compiled(ng.ones(1)).item() == 3.0


def test_of_a_length_only_the_length_counts() -> None:
    items, holder = list(range(1000)), Free(found={"a": {}})
    compiled = ng.jit(lambda x: x * len(items) + len(holder.found["a"]))
    x = ng.ones(1)
    for step in range(3):
        items[step] = -1
        assert compiled(x).item() == 1000
    assert compiled.cache_info().misses == 1
    items.append(1)
    assert compiled(x).item() == 1001
    holder.found["a"]["b"] = 2
    assert compiled(x).item() == 1002


def test_numbers_with_attributes_are_arguments_of_their_own() -> None:
    class Number(float):
        w: float

        def __mul__(self, other: Any) -> Any:
            return other * self.w

    compiled = ng.jit(lambda x, n: n * x)
    for w in (2.0, 3.0):
        number = Number(1.0)
        number.w = w
        assert compiled(ng.ones(1), number).item() == w


def test_what_is_counted_in_an_attribute_is_counted_in_every_call() -> None:
    holder = Free(calls=0)

    def function(x: Any) -> Any:
        holder.calls += 1
        return x * 2

    compiled = ng.jit(function)
    for calls in range(1, 6):
        warned = pytest.warns(UserWarning, match="calls is read .* changed by it")
        with warned if calls == 3 else NO:
            compiled(ng.ones(2))
        assert holder.calls == calls


class _Scaled:
    """What a container of one's own has besides what it contains."""

    scale = 1.0

    def total(self) -> Any:
        return self.scale * len(self)  # type: ignore[arg-type]

    @property
    def doubled(self) -> Any:
        return 2 * self.scale


OWN_CONTAINERS: dict[str, Any] = {
    kind.__name__: type(f"Own{kind.__name__}", (_Scaled, kind), {})
    for kind in (list, dict, set, collections.deque, collections.OrderedDict, collections.Counter)
}


@pytest.mark.parametrize("kind", OWN_CONTAINERS)
@pytest.mark.parametrize("read", ["total", "doubled"])
def test_methods_of_containers_are_followed(kind: str, read: str) -> None:
    held = OWN_CONTAINERS[kind]([("a", 1.0), ("b", 2.0)] if kind.lower().endswith("dict") else "ab")
    functions = {"total": lambda x: x * held.total(), "doubled": lambda x: x * held.doubled}
    compiled, x = ng.jit(functions[read]), ng.ones(2)
    for scale in (1.0, 5.0, 7.0):
        held.scale = scale
        assert compiled(x).tolist() == functions[read](x).tolist()
    misses = compiled.cache_info().misses
    compiled(x)
    assert compiled.cache_info().misses == misses


@pytest.mark.parametrize("change", ["move_to_end", "update", "pop", "popitem"])
def test_the_order_of_an_ordered_dict_is_its_own(change: str) -> None:
    held = collections.OrderedDict(a=1.0, b=2.0, c=3.0)
    held.move_to_end("a")

    def function(x: Any) -> Any:
        for key in held:
            x = x * held[key] + 1
        return x + sum(held.values())

    compiled, x = ng.jit(function), ng.ones(2)
    changes: list[Callable[[], Any]] = [
        lambda: held.__setitem__("a", 9.0),
        {
            "move_to_end": lambda: held.move_to_end("b"),
            "update": lambda: held.update(b=7.0),
            "pop": lambda: held.pop("b"),
            "popitem": lambda: held.popitem(last=False),
        }[change],
    ]
    assert compiled(x).tolist() == function(x).tolist()
    for apply in changes:
        apply()
        assert compiled(x).tolist() == function(x).tolist()
