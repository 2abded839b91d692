"""Numbers and decisions of an array from outside that is an operand, too, by another name."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import dis
import enum
import functools
import itertools
import math
import operator
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numba import njit

import numgrad as ng
from numgrad.jit.capture.meaning import Lost, Tokens, Value
from numgrad.jit.capture.origins import Libraries
from numgrad.jit.capture.stack import Run
from numgrad.jit.capture.values import Values

pytestmark = pytest.mark.usefixtures("traced")

Pair = collections.namedtuple("Pair", "a b")


class Size(enum.Enum):
    SMALL = 0
    LARGE = 1


@dataclasses.dataclass(frozen=True)
class Frozen:
    c: Any

    @property
    def top(self) -> float:
        return float(self.c.max())


class Holder:
    z: Any

    def __init__(self, c: Any) -> None:
        self.c = c

    def first(self) -> Any:
        return self.c[0]


@contextlib.contextmanager
def managed(c: Any) -> Iterator[Any]:
    yield c


def numbers(c: Any) -> Iterator[float]:
    for v in c:
        yield float(v)


def numbers_of_another(c: Any) -> Iterator[float]:
    yield from numbers(c)


def by_match(x: Any, c: Any) -> Any:
    match c[0]:
        case 1.0:
            return x * c
        case _:
            return x + c


def by_match_of_a_sequence(x: Any, c: Any) -> Any:
    match c.tolist():
        case [1.0, _]:
            return x * c
        case [_, *rest]:
            return x * c * len(rest) * rest[0]


def by_while(x: Any, c: Any) -> Any:
    k, y = 0, x * c
    while k < c[1]:
        y, k = y + 1, k + 1
    return y


def by_assert(x: Any, c: Any) -> Any:
    try:
        assert c[0] < 2
        return x * c
    except AssertionError:
        return x + c


def by_exception(x: Any, c: Any) -> Any:
    try:
        return x * c * [1.0, 2.0, 3.0][int(c[1])]
    except IndexError:
        return x - c


def by_raise(x: Any, c: Any) -> Any:
    try:
        raise ValueError(c)
    except ValueError as error:
        return x * c * float(error.args[0][1])


def by_class(x: Any, c: Any) -> Any:
    class Inner:
        def __init__(self, a: Any) -> None:
            self.a = a

        def number(self) -> float:
            return float(self.a[1])

    return x * c * Inner(c).number()


def by_named_tuple(x: Any, c: Any) -> Any:
    p = Pair(c, 1)
    return x * p.a * float(p.a[1])


def by_with(x: Any, c: Any) -> Any:
    with managed(c) as q:
        return x * q * float(q[1])


def by_nonlocal(x: Any, c: Any) -> Any:
    s = 0.0

    def put() -> None:
        nonlocal s
        s = c[1]

    put()
    return x * c * float(s)


def by_setattr(x: Any, c: Any) -> Any:
    made = Holder(1)
    made.z = c
    return x * c * float(made.z[1])


def by_update(x: Any, c: Any) -> Any:
    d: dict[str, Any] = {}
    d.update(a=c)
    return x * c * float(d.copy()["a"][1])


def by_addition(x: Any, c: Any) -> Any:
    items: list[Any] = []
    items += [c]
    items.append(c)
    return x * c * float(items[-1][1])


def by_recursion(x: Any, c: Any, n: int = 2) -> Any:
    return x * c * float(c[1]) if n == 0 else by_recursion(x, c, n - 1)


# What makes a number of Python's, or a decision, of an array `c`, which is an operand, too.
USES: dict[str, Callable[[Any, Any], Any]] = {
    "result of NumPy": lambda x, c: (x * c, c.max(), c * 2),
    "result": lambda x, c: (x * c, float(c.max())),
    "clamp": lambda x, c: (x * c).clamp(max=c.max()),
    "full": lambda x, c: x * c + ng.full((2,), c.max()),
    "size": lambda x, c: (x * c).sum() + ng.ones(c.argmax() + 1).sum(),
    "index": lambda x, c: (x * c)[c.argmax()],
    "slice": lambda x, c: (x * c)[c.argmax() :].sum(),
    "dim": lambda x, c: (x * c).sum(dim=c.argmax()).sum(),
    "dims": lambda x, c: (x * c).roll(c.argmax(), 0) + (x * c).cumsum(c.argmax()),
    "power": lambda x, c: (x * c) ** c.max(),
    "arange": lambda x, c: ng.arange(c.max()).sum() + (x * c).sum(),
    "masked_fill": lambda x, c: (x * c).masked_fill(x > 2, c.max()),
    "pairs": lambda x, c: sum((v * (k == "a") for k, v in {"a": x * c, "b": c}.items()), c.max()),
    "alpha": lambda x, c: ng.add(x * c, x, alpha=c.max()) + ng.lerp(x * c, x, c.max()),
    "tensor": lambda x, c: x * c + ng.tensor([c.max(), 1.0]),
    "reshape": lambda x, c: (x * c).reshape(c.argmax() * 2 + 1, -1).sum(),
    "narrow": lambda x, c: (x * c).narrow(0, c.argmax(), 1).select(1, c.argmax()).sum(),
    "norm": lambda x, c: (x * c).norm(c.max()),
    "isclose": lambda x, c: ng.isclose(x * c, x, atol=c.max()) * 1.0,
    "division": lambda x, c: c.max() / (x * c),
    "allclose": lambda x, c: x * c + np.allclose(c, [1.0, 2.0]) + np.count_nonzero(c > 1.5),
    "round": lambda x, c: x * c * round(c.max()),
    "text": lambda x, c: x * c * len(str(c.max())) * len(f"{c.min()}") * len("%r" % c.max()),  # noqa: UP031
    "repeated list": lambda x, c: x * c * len([1] * c.argmax()),
    "repeated tuple": lambda x, c: x * c * len((x,) * c.argmax()) + len("ab" * c.argmax()),
    "range": lambda x, c: sum([x * c for _ in range(c.argmax() + 1)]),
    "sorted": lambda x, c: x * c * ng.tensor([float(v) for v in sorted(c)]),
    "iteration": lambda x, c: sum([x * c * v for v in c]),
    "unpacking": lambda x, c: (lambda a, b: x * c * a - b)(*c),
    "max and sum": lambda x, c: x * c * max(c) + sum(c),
    "tolist": lambda x, c: x * c * c.tolist()[1] + c[1].item(),
    "int": lambda x, c: x * c * int(c[1]),
    "bool": lambda x, c: x * c if bool((c > 1.5).all()) else x + c,
    "and": lambda x, c: (c[0] > 1.5 and x * c) or x + c,
    "not": lambda x, c: x * c if not c[0] > 1.5 else x + c,
    "chain": lambda x, c: x * c if 0 < c[1] < 3 else x + c,
    "in": lambda x, c: x * c if 2.0 in c else x + c,
    "lists": lambda x, c: x * c if [c[0]] == [1.0] else x + c,
    "key": lambda x, c: x * c * {1.0: 2.0, 5.0: 3.0}.get(c[0], 7.0),
    "member": lambda x, c: x * c * (3.0 if c[0] in {1.0} else 4.0),
    "match": by_match,
    "match of a sequence": by_match_of_a_sequence,
    "while": by_while,
    "assert": by_assert,
    "try": by_exception,
    "raise": by_raise,
    "math": lambda x, c: x * c * math.exp(c[1]),
    "operator": lambda x, c: x * c if operator.gt(c[0], 1.5) else x + c,
    "nditer": lambda x, c: sum([x * c * float(v) for v in np.nditer(c)]),
    "vectorize": lambda x, c: x * c * np.vectorize(lambda t: 1.0 if t > 1.5 else 2.0)(c),
    "walrus": lambda x, c: x * c if (m := c.max()) > 3 else x * m,
    "map": lambda x, c: x * c * sum(map(float, c)),
    "any": lambda x, c: x * c if any(v > 3 for v in c) else x + c,
    "shape of a selection": lambda x, c: x * c * c[c > 1.5].shape[0],
    "length of a selection": lambda x, c: x * c * len(np.unique(c)) * len(c[c > 1.5]),
    "nonzero": lambda x, c: x * c * c.nonzero()[0].shape[0],
    "hash": lambda x, c: x * c * (hash(c[1]) % 7),
    "set": lambda x, c: x * c * len({v for v in c if v > 0}) * len(set(c)),
    "is_integer": lambda x, c: x * c if c[1].is_integer() else x + c,
    "bytes": lambda x, c: x * c * len(c.tobytes().strip(b"\0")),
    "view": lambda x, c: x * c * (c.view(np.int64)[0] % 7),
    "item of a list": lambda x, c: x * c * [1.0, 2.0, 3.0][c.argmax()],
    "join": lambda x, c: x * c * len(",".join(str(v) for v in c)),
    "copy": lambda x, c: x * c * c.copy()[1] + c.astype(np.float32)[1] + np.asarray(c)[0],
    "next": lambda x, c: x * c * next((v for v in c if v > 1.5), 0.5),
    "star": lambda x, c: x * c * [*c][1],
    "dict": lambda x, c: x * c * dict(enumerate(c))[1],
    "index of": lambda x, c: x * c * [1.0, 2.0, 5.0, 7.0, 0.5, 3.0].index(c[1]),
    "key function": lambda x, c: x * c * min([0, 1], key=lambda k: c[k]),
    "key of a sort": lambda x, c: x * c * sorted([0, 1], key=lambda k: -c[k])[0],
    "reduce": lambda x, c: x * c * functools.reduce(lambda a, b: a + float(b), c, 0.0),
    "accumulate": lambda x, c: x * c * list(itertools.accumulate(c))[-1],
    "partial": lambda x, c: x * c * functools.partial(float, c[1])(),
    "class": by_class,
    "named tuple": by_named_tuple,
    "with": by_with,
    "nonlocal": by_nonlocal,
    "setattr": by_setattr,
    "update": by_update,
    "in place": by_addition,
    "getattr": lambda x, c: x * c * float(getattr(c, "max")()),  # noqa: B009
    "setdefault": lambda x, c: x * c * float({}.setdefault("a", c)[1]),
    "zip": lambda x, c: x * c * sum(float(v) for v, _ in zip(c, [1, 2], strict=True)),
    "enumerate": lambda x, c: x * c * sum(float(v) for _, v in enumerate(c)),
    "generator": lambda x, c: x * c * sum(numbers(c)),
    "yield from": lambda x, c: x * c * sum(numbers_of_another(c)),
    "recursion": by_recursion,
    "default": lambda x, c: (lambda y, k=float(c[1]): y * k)(x * c),
    "method of a number": lambda x, c: x * c * c[1].__float__(),
    "bound method": lambda x, c: x * c * (lambda m: float(m()))(c.max),
    "property": lambda x, c: x * c * Frozen(c).top,
    "object": lambda x, c: x * c * float(Holder(c).first()),
    "enum": lambda x, c: x * c * Size(int(c[1] > 1.5)).value,
    "of a tensor's kind": lambda x, c: x * c * ng.tensor(c).shape[0] * float(c[0]),
}

# Ways in which an array comes under two names.
Use = Callable[[Any, Any], Any]


def by_variable(use: Use, w: Any) -> Callable[[Any], Any]:
    space = types.SimpleNamespace(w=w)

    def function(x: Any) -> Any:
        c = space.w
        return use(x, c)

    return function


def by_parameter(use: Use, w: Any) -> Callable[[Any], Any]:
    return lambda x: use(x, w)


def by_method(use: Use, w: Any) -> Callable[[Any], Any]:
    class Model:
        def __init__(self) -> None:
            self.weights = {"w": [w]}

        def run(self, x: Any) -> Any:
            for each in self.weights["w"]:
                return use(x, each)
            return None

    return Model().run


def by_partial(use: Use, w: Any) -> Callable[[Any], Any]:
    return functools.partial(lambda c, x: use(x, c), w)


def by_inner(use: Use, w: Any) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        return next((lambda: use(x, c))() for c in (w,))

    return function


WAYS = [by_variable, by_parameter, by_method, by_partial, by_inner]


def leaves(found: Any) -> list[Any]:
    if isinstance(found, type):
        return [found]
    flat = found if isinstance(found, tuple) else (found,)
    return [np.asarray(each, np.float64) for each in flat]


def outcome(function: Callable[[Any], Any], x: Any) -> Any:
    try:
        return function(x)
    except (ArithmeticError, IndexError, RuntimeError, ValueError) as error:
        return type(error)


@pytest.mark.sampled(0.072, by="use")
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("use", USES)
def test_numbers_and_decisions_are_those_of_each_call(use: str, way: Any) -> None:
    w = np.array([1.0, 2.0])
    function = way(USES[use], w)
    compiled = ng.jit(function)
    x = ng.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], dtype=ng.float64)
    for given in ([1.0, 2.0], [5.0, 7.0], [1.0, 0.5], [3.0, 3.0]):
        w[:] = given
        with np.errstate(all="ignore"):
            found, wanted = leaves(outcome(compiled, x)), leaves(outcome(function, x))
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            if isinstance(other, type):
                assert one is other
            else:
                assert one.shape == other.shape
                np.testing.assert_allclose(one, other, rtol=1e-12)


# --- what is only an operand ----------------------------------------------------------------------


def layer(x: Any, w: Any, on: bool = True) -> Any:
    h = x * w
    if h.shape[0] > 1 and h.dim() > 0 and on:
        h = h + 1
    return h.relu() if h.is_floating_point() else h


class Network:
    def __init__(self, w: Any) -> None:
        self.weights, self.on, self.scale = [w, w], True, 2

    def __call__(self, x: Any) -> Any:
        for k, w in enumerate(self.weights):
            x = x * w
            if k < len(self.weights) - 1:
                x = ng.relu(x)
        if self.on:
            x = x * self.scale
        with ng.enable_grad():
            x = x + 1
        for v, w in zip(self.weights, self.weights, strict=True):
            x = x * v + w
        return layer(x, self.weights[0])


def in_a_list(x: Any, w: Any) -> Any:
    found = []
    for _ in range(2):
        x = x * w
        found.append(x)
    return ng.stack(found).sum(0)


OPERANDS: dict[str, Callable[[Any, Any], Any]] = {
    "product": lambda x, w: x * w,
    "sum": lambda x, w: (x * w).sum(),
    "function": lambda x, w: ng.exp(x * w + w),
    "function of NumPy": lambda x, w: np.sin(x * w),
    "helper": lambda x, w: layer(x, w).sum(),
    "gradient": lambda x, w: ng.func.grad(lambda x: layer(x, w).sum())(x),
    "object": lambda x, w: Network(w)(x),
    "sum of a list": lambda x, w: sum([x * v for v in [w, w]]),
    "sum of a generator": lambda x, w: sum(x * v for v in [w, w]),
    "dict": lambda x, w: (lambda p: x * p["w"] if "w" in p else x)({"w": w}),
    "list": in_a_list,
    "branch": lambda x, w: x * w if w is not None and w.shape[0] == len(w) else x,
}


@pytest.mark.parametrize("use", OPERANDS)
def test_an_operand_is_not_compared(use: str) -> None:
    w = np.array([1.0, 2.0])
    apply = OPERANDS[use]
    for function in (lambda x: apply(x, w), functools.partial(apply, w=w)):
        compiled = ng.jit(function)
        x = ng.tensor([1.0, -2.0], dtype=ng.float64)
        for given in ([1.0, 2.0], [5.0, 7.0]):
            w[:] = given
            np.testing.assert_allclose(compiled(x).numpy(), function(x).numpy(), rtol=1e-12)
        assert compiled.cache_info().misses == 1


def test_an_object_from_outside_keeps_its_operands() -> None:
    w = np.array([1.0, 2.0])
    network = Network(w)
    for function in (network, lambda x: network(x), ng.func.grad(lambda x: network(x).sum())):
        compiled = ng.jit(function)
        for given in ([1.0, 2.0], [5.0, 7.0]):
            w[:] = given
            x = ng.tensor([1.0, -2.0], dtype=ng.float64)
            np.testing.assert_allclose(compiled(x).numpy(), function(x).numpy(), rtol=1e-12)
        assert compiled.cache_info().misses == 1


@pytest.mark.parametrize("name", ["relu", "add", "sum", "cat", "Tensor.mul_"])
def test_what_is_remembered_of_calls_is_not_looked_into(name: str) -> None:
    """Nor what was compiled: both grow while a program runs."""
    values = Values(Libraries(None))
    arrays, functions = values.reach(operator.attrgetter(name)(ng))
    assert not arrays and len(functions) < 100

    @njit
    def triple(x: float) -> float:
        return 3 * x

    assert triple(2.0) == 6.0
    assert values.reach(triple) == ([], [triple.py_func])


# --- the stack ------------------------------------------------------------------------------------


class Everything:
    """A meaning in which any value may be anything that was loaded before."""

    def load(self, kind: str, name: str) -> Tokens:
        return frozenset((name,))

    def store(self, kind: str, name: str, value: Tokens) -> None:
        assert isinstance(value, frozenset)

    def attribute(self, value: Tokens, name: str) -> Tokens:
        return value | {name}

    def set_attribute(self, value: Tokens, name: str, given: Tokens) -> None:
        assert isinstance(name, str)

    def inherited(self, value: Tokens, name: str) -> Tokens:
        return value

    def entry(self, value: Tokens, key: Value) -> Tokens:
        return value | key.tokens

    def look_up(self, key: Tokens) -> None:
        assert isinstance(key, frozenset)

    def put(self, value: Tokens, given: Tokens) -> None:
        assert isinstance(given, frozenset)

    def items(self, value: Tokens) -> Tokens:
        return value

    def unpack(self, value: Tokens, count: int) -> Sequence[Tokens]:
        return [value] * count

    def make(self, at: int, given: Tokens) -> Tokens:
        return given

    def function(self, at: int, code: types.CodeType, defaults: Tokens) -> Tokens:
        assert isinstance(code, types.CodeType)
        return defaults

    def call(
        self,
        function: Value,
        given: Sequence[Value],
        named: Mapping[str, Value],
        spread: Tokens,
        at: int,
    ) -> Tokens:
        assert not function.is_null and not any(each.is_null for each in given)
        return function.tokens.union(spread, *[each.tokens for each in given])

    def entered(self, value: Tokens) -> Tokens:
        return value

    def of(self, value: Any) -> Tokens:
        return frozenset()

    def computed(self, *values: Tokens) -> Tokens:
        return frozenset().union(*values)

    def measure(self, value: Tokens) -> None: ...

    def decide(self, value: Tokens) -> None: ...

    def find(self, value: Value, container: Tokens) -> None: ...

    def unknown(self, value: Tokens) -> Tokens:
        return value

    def leave(self, value: Tokens) -> None: ...


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield from codes(each)


@pytest.mark.parametrize("module", ["argparse", "collections", "dataclasses", "inspect", "typing"])
def test_the_stack_of_pythons_own_code(module: str) -> None:
    file = __import__(module).__file__
    assert file is not None
    with open(file, encoding="utf-8") as source:
        code = compile(source.read(), file, "exec")
    followed = 0
    for each in codes(code):
        try:
            run = Run(each, Everything())
            while run.todo:
                run.advance()
            followed += 1
        except Lost:  # of coroutines, and of ``yield from``
            names = {instruction.opname for instruction in dis.get_instructions(each)}
            assert any(name.startswith(("GET_", "SEND", "IMPORT_STAR")) for name in names)
    assert followed > 20


def _chain(depth: int, factors: Any) -> Any:
    def around(function: Any) -> Any:
        return lambda x: function(x) * 2

    function: Any = lambda x: x * ng.from_numpy(factors)  # noqa: E731
    for _ in range(depth):
        function = around(function)
    return function


def _fan(count: int, factors: Any) -> Any:
    helpers = [lambda x, k=k: x * ng.from_numpy(factors) + k for k in range(count)]

    def run(x: Any) -> Any:
        for helper in helpers:
            x = helper(x)
        return x

    return run


def _state(count: int, factors: Any) -> Any:
    holder = Holder(factors)
    found: list[Any] = []

    def put(x: Any) -> Any:
        found.append(holder.c)
        return x * ng.from_numpy(found[-1])

    def run(x: Any) -> Any:
        for _ in range(count):
            x = put(x)
        found.clear()
        return x

    return run


@pytest.mark.parametrize("shape", [_chain, _fan, _state])
@pytest.mark.parametrize("size", [1, 3, 30])
def test_instructions_are_done_again_only_where_something_new_was_found(
    shape: Any, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[Any, int]] = []
    advance = Run.advance

    def counted(run: Run) -> None:
        done.append((run, run.todo[0]))
        advance(run)

    monkeypatch.setattr(Run, "advance", counted)
    ng.jit(shape(size, np.array([1.0, 2.0])))(np.ones(2))
    assert done
    assert len(done) <= 3 * len(set(done))  # and not as often as there are functions
