"""Bad input: what is wrong, with both structures, and whose function it is."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import numgrad as ng
from numgrad import func

x = ng.ones(3)
xs = ng.ones(4, 3)


def wider(c: Any, row: Any = None) -> Any:
    return ng.cat([c, c]), None


def cast(c: Any, row: Any = None) -> Any:
    return c.double(), None


def nested(c: Any, row: Any = None) -> Any:
    return {"a": c}, None


def sometimes(c: Any, row: Any) -> Any:
    return c + 1, c[: 2 if c[0] > 2 else 3]


def no_pair(c: Any, row: Any) -> Any:
    return c


def fractional(c: Any, row: Any) -> Any:
    return 0.5, None


def to_tuple(x: Any) -> Any:
    return (x,)


def shorter(x: Any) -> Any:
    return x[:2]


def doubled(x: Any) -> Any:
    return x.double()


BODIES: list[tuple[Callable[..., Any], Callable[[], Any], str]] = [
    (wider, lambda: func.scan(wider, x, xs), r"init: float32\[3\]\ncarry: float32\[6\]"),
    (cast, lambda: func.scan(cast, x, xs), r"init: float32\[3\]\ncarry: float64\[3\]"),
    (nested, lambda: func.scan(nested, x, xs), r"init: float32\[3\]\ncarry: \{'a': float32\[3\]\}"),
    (no_pair, lambda: func.scan(no_pair, x, xs), r"return a tuple \(next_carry, y\)"),
    (sometimes, lambda: func.scan(sometimes, x, xs), r"first y: float32\[3\]\ny: float32\[2\]"),
    (fractional, lambda: func.scan(fractional, 1, xs), r"init: int64\[\]\ncarry: float32\[\]"),
    (
        wider,
        lambda: func.while_loop(lambda c, n: c.sum() < 9, wider, (x, None)),
        r"carry: \(float32\[3\], None\)\nbody_fn_output: \(float32\[6\], None\)",
    ),
    (
        to_tuple,
        lambda: func.while_loop(lambda c: c.sum() < 9, to_tuple, x),
        r"carry: float32\[3\]\nbody_fn_output: \(float32\[3\],\)",
    ),
    (
        shorter,
        lambda: func.fori_loop(0, 3, lambda i, c: shorter(c), x),
        r"init: float32\[3\]\nvalue: float32\[2\]",
    ),
    (shorter, lambda: func.map(sometimes, x), "leaves|tuple|index"),
]


@pytest.mark.parametrize(("body", "call", "words"), BODIES[:8])
@pytest.mark.parametrize("policy", [None, 2])
def test_what_a_body_returns(body, call, words, policy):
    with pytest.raises(RuntimeError, match=words) as caught:
        call()
    code = body.__code__
    assert f"{body.__name__} ({code.co_filename}:{code.co_firstlineno})" in str(caught.value)


@pytest.mark.parametrize("other", [shorter, doubled, to_tuple])
@pytest.mark.parametrize("branch", [func.cond, ng.cond])
def test_branches_that_differ(branch, other):
    def same(x: Any) -> Any:
        return x + 1

    given = (x,) if branch is func.cond else ((x,),)
    for flag in (True, False, True):
        with pytest.raises(RuntimeError, match="merging the branches' output") as caught:
            branch(ng.tensor(flag), same, other, *given)
        for function in (same, other):
            assert f":{function.__code__.co_firstlineno})" in str(caught.value)


@pytest.mark.parametrize("kind", [ng.tensor, int])
def test_branches_of_a_switch_that_differ(kind):
    branches = [lambda x: x, lambda x: x + 1, lambda x: x.sum()]

    def taken() -> None:
        if kind is int:  # of a choice that Python knows others are known once they were taken
            func.switch(1, branches, x)
        func.switch(kind(2), branches, x)

    with pytest.raises(RuntimeError, match="merging the branches' output"):
        taken()


def test_a_branch_that_goes_by_numbers_is_not_compared():
    """Without numbers it can't run: what is not taken may be anything then, without end, too."""

    def repeated(n: Any) -> Any:
        return func.cond(n > 0, lambda n: repeated(n - 1) + 1, lambda n: n * 0, n)

    assert repeated(ng.tensor(4)).item() == 4
    assert func.cond(ng.tensor(True), lambda x: x, lambda x: x[: int(x.sum())], x) is x


def test_what_a_branch_draws_that_is_not_taken_is_not_drawn():
    """Nor does it write to anything."""
    drawn = []
    total = ng.zeros(3)
    for flag in (True, False):
        ng.manual_seed(0)
        func.cond(ng.tensor(flag), lambda x: x, lambda x: total.add_(x), x)
        func.cond(ng.tensor(flag), lambda x: x, lambda x: x + ng.rand(3), x)
        drawn.append(ng.rand(2))
    ng.manual_seed(0)
    assert drawn[0].equal(ng.rand(2))
    assert total.tolist() == [1, 1, 1]


def test_branches_that_are_alike_at_each_call_are_not_refused():
    """Whatever they close over: only what both give for the same operands counts."""
    length = 3

    def first(x: Any) -> Any:
        return x[:length]

    def second(x: Any) -> Any:
        return x[-length:]

    for length in (3, 2, 1):
        for flag in (True, False):
            for pred in (flag, ng.tensor(flag)):
                assert func.cond(pred, first, second, x).shape == (length,)


def test_branches_of_one_code_are_told_apart_by_what_they_hold():
    """By what they close over, by defaults, and by what a partial function gives them."""

    def closed(length: int) -> Any:
        return lambda x: x[:length]

    def with_default(length: int) -> Any:
        return lambda x, length=length: x[:length]

    def given(length: int) -> Any:
        return functools.partial(lambda length, x: x[:length], length)

    for make in (closed, with_default, given):
        for flag in (True, False):
            pred = ng.tensor(flag)
            assert func.cond(pred, make(2), make(2), x).shape == (2,)
            with pytest.raises(RuntimeError, match="merging the branches' output"):
                func.cond(pred, make(2), make(1), x)
            assert func.cond(pred, make(1), make(1), x).shape == (1,)


ONE_ELEMENT = "scalar|single-element tensor"
CALLS = {
    "pred of two": (lambda: func.cond(x > 0, ng.sin, ng.cos, x), ONE_ELEMENT),
    "pred of floats": (lambda: func.cond(x.sum(), ng.sin, ng.cos, x), "dtype torch.float32"),
    "pred is text": (lambda: func.cond("a", ng.sin, ng.cos, x), "pred to be bool or"),
    "pred is a number": (lambda: func.cond(1, ng.sin, ng.cos, x), "pred to be bool or"),
    "branch is none": (lambda: func.cond(True, ng.sin, 1, x), "false_fn must be a callable"),
    "operands": (lambda: ng.cond(True, ng.sin, ng.cos, x), "Expect operands to be a tuple"),
    "text operand": (lambda: func.cond(True, ng.sin, ng.cos, "a"), "leaves must be a Tensor"),
    "no branches": (lambda: func.switch(0, [], x), "at least one branch"),
    "index": (lambda: func.switch(0.5, [ng.sin], x), "index to be int"),
    "index of floats": (lambda: func.switch(x.sum(), [ng.sin], x), "index to be int"),
    "condition of three": (
        lambda: func.while_loop(lambda x: x > 0, lambda x: x, x),
        "return a scalar tensor of dtype bool or a bool",
    ),
    "condition of floats": (lambda: func.while_loop(lambda x: x.sum(), ng.sin, x), "float32"),
    "condition is none": (lambda: func.while_loop(None, ng.sin, x), "cond_fn must be a callable"),
    "bounds": (lambda: func.fori_loop(0.5, 2, lambda i, c: c, x), "lower to be int"),
    "lengths": (
        lambda: func.scan(lambda c, r: (c, r), x, (xs, ng.ones(5, 3))),
        r"same number of rows, but got \[4, 5\]",
    ),
    "length": (
        lambda: func.scan(lambda c, r: (c, r), x, xs, length=3),
        "got length 3 and 4 rows",
    ),
    "no length": (lambda: func.scan(lambda c, r: (c, r), x), "length to be given"),
    "length zero": (lambda: func.scan(lambda c, r: (c, r), x, length=0), "at least 1"),
    "length is text": (lambda: func.scan(lambda c, r: (c, r), x, length="a"), "must be an int"),
    "no rows": (lambda: func.scan(lambda c, r: (c, r), x, xs[:0]), "scan dimension > 0"),
    "no dims": (lambda: func.scan(lambda c, r: (c, r), x, xs.sum()), "number of dimensions"),
    "text": (lambda: func.scan(lambda c, r: (c, r), "a", xs), "All init leaves must be a Tensor"),
    "text rows": (lambda: func.scan(lambda c, r: (c, r), x, "a"), "All xs leaves must be"),
    "reverse": (lambda: func.scan(lambda c, r: (c, r), x, xs, reverse=1), "Reverse must be a bool"),
    "dim": (lambda: func.scan(lambda c, r: (c, r), x, xs, dim=1.0), "Dim must be an int"),
    "unroll": (
        lambda: func.scan(lambda c, r: (c, r), x, xs, unroll=0),
        "Unroll must be at least 1",
    ),
    "f": (lambda: func.scan(3, x, xs), "f must be a callable"),
    "map of none": (lambda: func.map(ng.sin, None), "length to be given"),
    "combined shape": (lambda: func.associative_scan(lambda a, b: a[:1], xs), r"float32\[1\]"),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    call, words = CALLS[name]
    with pytest.raises(RuntimeError, match=words):
        call()


def test_values_that_are_none():
    for policy in (0, True, "cube", 1.5, func.Binomial):
        with pytest.raises(ValueError, match="checkpoint must be"):
            func.scan(lambda c, r: (c, r), x, xs, checkpoint=policy)
    for carries in (0, 2.5, True):
        with pytest.raises(ValueError, match="carries must be an int of at least 1"):
            func.Binomial(carries)
    for words, call in {
        "at least 1 xs leaf": lambda: func.associative_scan(ng.add, ()),
        "scan dimension > 0": lambda: func.associative_scan(ng.add, xs[:0]),
        "Combine_mode must": lambda: func.associative_scan(ng.add, xs, combine_mode="a"),
        "must be a callable": lambda: func.associative_scan(1, xs),
        "Dim must be an int": lambda: func.associative_scan(ng.add, xs, "a"),
    }.items():
        with pytest.raises(ValueError, match=words):
            call()


def test_errors_of_a_body_are_the_bodys_own():
    def step(c: Any, row: Any) -> Any:
        return c + ng.ones(5), None

    with pytest.raises(RuntimeError, match=re.escape("must match the size")) as caught:
        func.scan(step, x, xs)
    assert any(entry.name == "step" for entry in caught.traceback)


def test_a_star_import_leaves_pythons_map_alone() -> None:
    names: dict[str, object] = {}
    exec("from numgrad.func import *", names)
    assert "map" not in names
    assert names["scan"] is func.scan
    assert dir(func) == sorted({*names, "map"} - {"__builtins__"})
    assert all(callable(getattr(func, name)) for name in dir(func))


def test_the_compiler_is_loaded_when_branches_are_first_compared():
    """Importing the package is quicker without it."""
    program = (
        "import sys, numgrad as ng\n"
        "tracer = 'numgrad.jit.front.tracer'\n"
        "before = tracer in sys.modules\n"
        "ng.func.cond(ng.tensor(True), lambda x: x, ng.sin, ng.ones(2))\n"
        "print(before, tracer in sys.modules)"
    )
    command = [sys.executable, "-c", program]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert output.split() == ["False", "True"]


def test_branches_that_are_objects_are_compared():
    class Part:
        def __init__(self, length: int) -> None:
            self.length = length

        def __call__(self, x: Any) -> Any:
            return x[: self.length]

    with pytest.raises(RuntimeError, match="merging the branches' output"):
        func.cond(ng.tensor(True), Part(3), Part(2), x)
