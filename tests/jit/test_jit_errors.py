"""What can't be traced says so, in the user's terms, and where."""

from __future__ import annotations

import dataclasses
import functools
import statistics
from collections import deque
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import numgrad as ng

outside = ng.tensor([1.0, 2.0])


def branches(x):
    if x.sum() > 0:
        return x
    return -x


def as_number(x):
    return x * float(x.sum())


def as_array(x):
    return ng.from_numpy(np.sin(x.numpy()))


def numpy_function(x):
    return np.asarray(x)


def lists(x):
    return sum(x.tolist())


def loops(x):
    while x.max() > 1:
        x = x / 2
    return x


def seeds(x):
    return x + ng.initial_seed()


def counts(x):
    return x[x > 0]


def finds(x):
    return x.nonzero()


def compares(x):
    return x if ng.equal(x, outside) else -x


def writes_outside(x):
    outside.add_(x)
    return x


def fills_outside(x):
    outside[0] = 1
    return x


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (branches, r"truth value.*where\(condition, a, b\)"),
        (as_number, "Python number"),
        (as_array, "NumPy array"),
        (numpy_function, "NumPy array"),
        (lists, "Python numbers"),
        (loops, "truth value"),
        (seeds, "asks a generator of random numbers for its seed"),
        (counts, r"shape of what indexing with a mask.*where\(mask, input, 0\)"),
        (finds, "numbers"),
        (compares, "truth value"),
        (writes_outside, "may not write to a tensor that it did not make"),
        (fills_outside, "may not write to a tensor that it did not make"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_message_says_why_and_where(function: Any, words: str) -> None:
    before = outside.tolist()
    with pytest.raises(ng.TraceError, match=words) as caught:
        ng.jit(function)(ng.tensor([1.0, 2.0]))
    assert "test_jit_errors.py:" in str(caught.value)
    line = int(str(caught.value).split("test_jit_errors.py:")[1].split(":")[0])
    first = function.__code__.co_firstlineno
    assert first < line <= first + 3
    assert outside.tolist() == before


def test_printing_shows_that_a_tensor_is_traced(capsys):
    ng.jit(lambda x: print(x, str(x), repr(x), sep="\n"))(ng.ones(2))
    assert capsys.readouterr().out == "tensor(traced, size=(2,), dtype=torch.float32)\n" * 3


def test_a_written_argument_is_refused():
    x = ng.ones(2)
    with pytest.raises(ng.TraceError, match="writes to one of its arguments.*clone"):
        ng.jit(lambda x: x.add_(1))(x)
    assert x.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("name", "dims"), [("t", ()), ("transpose", (0, 1)), ("unsqueeze", (0,)), ("squeeze", ())]
)
def test_views_in_place_are_refused_by_name(name: str, dims: tuple[int, ...]) -> None:
    words = rf"{name}_\(\) gives a tensor another shape in place"
    with pytest.raises(ng.TraceError, match=words):
        ng.jit(lambda x: getattr(x * 2, f"{name}_")(*dims))(ng.ones(2, 3))


def test_an_accumulated_gradient_is_refused():
    x = ng.ones(2, requires_grad=True)

    def function(x):
        (x * x).sum().backward()
        return x.grad

    with pytest.raises(ng.TraceError, match=r"accumulates into the \.grad"):
        ng.jit(function)(x)
    assert x.grad is None


def test_a_tensor_that_left_its_trace_is_refused():
    kept = []
    ng.jit(lambda x: kept.append(x * 2) or x)(ng.ones(2))
    with pytest.raises(ng.TraceError):
        ng.jit(lambda x: x + kept[0])(ng.ones(2))
    with pytest.raises(ng.TraceError):
        kept[0].numpy()


def test_an_argument_that_is_neither_array_nor_hashable_is_refused():
    class Odd:
        __hash__ = None

    with pytest.raises(ng.TraceError, match="argument of type Odd"):
        ng.jit(lambda x: x)(Odd())


def test_errors_of_the_function_are_the_functions_own():
    with pytest.raises(RuntimeError, match="must match the size"):
        ng.jit(lambda x: x + ng.ones(3))(ng.ones(2))
    # Nothing is left open.
    assert (ng.ones(2) + 1).tolist() == [2, 2]


@dataclasses.dataclass
class Box:
    value: Any


def through_a_dataclass(x):
    return Box(x.sum()) == Box(x.amax())


def through_numpy(x):
    return np.vectorize(lambda value: value + 1)(x)


def through_a_callback_of_numpy(x):
    return np.apply_along_axis(lambda row: float(x.sum()), 0, np.ones(2))


def through_the_standard_library(x):
    return statistics.median([x.sum(), x.amax()])


def writes_to_an_argument(x):
    x.add_(1)
    return x


def writes_to_a_view_of_an_argument(x):
    x[0] = 1
    return x


def accumulates(x):
    w = x.requires_grad_()
    (w * w).sum().backward()
    return w.grad


@pytest.mark.parametrize(
    "function",
    [
        through_a_dataclass,
        through_numpy,
        through_a_callback_of_numpy,
        through_the_standard_library,
        writes_to_an_argument,
        writes_to_a_view_of_an_argument,
        accumulates,
    ],
    ids=lambda function: function.__name__,
)
def test_the_place_is_the_users(function):
    with pytest.raises(ng.TraceError, match=r"^\S*test_jit_errors\.py:\d+: ") as caught:
        ng.jit(function)(ng.tensor([1.0, 2.0]))
    line = int(str(caught.value).split("test_jit_errors.py:")[1].split(":")[0])
    first = function.__code__.co_firstlineno
    assert first <= line <= first + 3


def test_without_a_function_of_the_users_the_place_is_the_call():
    with pytest.raises(ng.TraceError, match=r"^\S*test_jit_errors\.py:\d+: "):
        ng.jit(np.asarray)(ng.ones(2))


def test_a_tensor_that_left_a_traced_function_is_of_no_use():
    left = []

    def function(x):
        left.append(x * 2)
        return x

    ng.jit(function)(1.0)
    assert "traced" in repr(left[0])
    for use in (lambda x: x + 1, lambda x: x.sin(), lambda x: ng.ones(2) * x, lambda x: x.item()):
        with pytest.raises(ng.TraceError, match="a traced function has left it"):
            use(left[0])


class _Holder:
    def __init__(self, content):
        self.content = content

    def method(self):
        return self.content


HIDING = {
    "set": lambda x: {2 * x},
    "frozenset": lambda x: [1, frozenset([2 * x])],
    "deque": lambda x: deque([2 * x]),
    "dict_values": lambda x: {"a": 2 * x}.values(),
    "_Holder": lambda x: {"a": _Holder((2 * x,))},
    "SimpleNamespace": lambda x: SimpleNamespace(a=[_Holder({"b": 2 * x})]),
    "function": lambda x: (lambda y: lambda: y)(2 * x),
    "partial": lambda x: functools.partial(ng.add, 2 * x),
    "method": lambda x: _Holder(2 * x).method,
    "generator": lambda x: (y for y in [2 * x]),
    "map": lambda x: (map(abs, [1]), x),
    "list_iterator": lambda x: iter([2 * x]),
}


@pytest.mark.parametrize("kind", list(HIDING))
def test_tensors_in_results_are_found_or_refused(kind):
    with pytest.raises(ng.TraceError, match=f"the function returns a {kind}[ ,]"):
        ng.jit(HIDING[kind])(ng.ones(2))


def test_results_without_tensors_are_returned_as_they_are():
    held = _Holder({1, "a"})
    for result in (held, {3}, _Holder, held.method, ng):
        assert ng.jit(lambda x, result=result: (result, x))(ng.ones(2))[0] is result


def test_static_arguments_that_are_not_there():
    with pytest.raises(ValueError, match="static_argnames has 'scael', but .* are x, scale"):
        ng.jit(lambda x, scale: x, static_argnames="scael")
    with pytest.raises(ValueError, match="static_argnums has 5, but the function has 2 parameters"):
        ng.jit(lambda x, scale: x, static_argnums=5)
    ng.jit(lambda *x, **names: x, static_argnums=5, static_argnames="more")
    with pytest.raises(TypeError, match="expected a function, but got int"):
        ng.jit(3)
    with pytest.raises(ng.TraceError, match="an argument of type list"):
        ng.jit(lambda x, n: x, static_argnames="n")(1.0, [1])
