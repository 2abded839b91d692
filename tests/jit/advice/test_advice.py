"""What an error for a branch or loop on a traced value shows runs, and gives the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

import numgrad as ng
from numgrad.base import pytree
from tests.jit.advice.pasting import Pasted, load
from tests.jit.advice.programs import SAID, SHOWN

VALUES = [[0.5, 2.0], [-1.0, -3.0], [3.0, 4.0], [0.1, 0.2], [-2.0, 5.0], [0.0, 0.0], [1.0, -1.0]]
TOLERANCES = {ng.float64: 1e-12, ng.float32: 1e-5}


def numbers_of(result):
    leaves = pytree.flatten(result)[0]
    return [ng.as_tensor(leaf, dtype=ng.float64).numpy() for leaf in leaves]


def assert_same(result, expected, dtype):
    one, other = numbers_of(result), numbers_of(expected)
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, TOLERANCES[dtype], TOLERANCES[dtype])


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("name", SHOWN)
def test_what_is_shown_gives_the_same_numbers(traced, tmp_path, name, dtype):
    pasted = Pasted(tmp_path, SHOWN[name], ng.tensor(VALUES[0], dtype=dtype))
    assert len(pasted.versions) > 1
    assert not pasted.words
    original, *others = pasted.versions
    compiled = ng.jit(others[-1])
    for values in VALUES:
        x = ng.tensor(values, dtype=dtype)
        expected = original(x.clone())
        for version in (*others, compiled):
            assert_same(version(x.clone()), expected, dtype)


@pytest.mark.parametrize("name", SAID)
def test_where_nothing_is_shown_it_says_why(traced, tmp_path, name):
    words, source = SAID[name]
    pasted = Pasted(tmp_path, source, ng.tensor(VALUES[0]))
    assert len(pasted.versions) == 1
    assert words in pasted.words


@pytest.mark.parametrize("name", ["augmented", "break in the middle", "elif", "conditional"])
def test_a_dispatcher_shows_the_same(tmp_path, name):
    x = ng.tensor(VALUES[0])
    messages = []
    for number, transform in enumerate((ng.jit, lambda f: lambda x: ng.jit(f).lower(x))):
        program = load(tmp_path, f"program_{number}", SHOWN[name])
        with pytest.raises(ng.TraceError) as caught:
            transform(program)(x)
        messages.append(str(caught.value).partition(": ")[2])
    assert messages[0] == messages[1]


def conditional(x):
    return x if x.sum() > 0 else -x


def several_lines(x):
    if x.sum() > 0:
        return x
    return -x


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (
            conditional,
            "; or write `x if x.sum() > 0 else -x` as a function:\n"
            "    ng.func.cond(x.sum() > 0, lambda: x, lambda: -x)",
        ),
        (
            several_lines,
            " as a function:\n    return ng.func.cond(x.sum() > 0, lambda: x, lambda: -x)",
        ),
    ],
)
def test_it_names_what_to_replace(function, words):
    with pytest.raises(ng.TraceError) as caught:
        ng.jit(function)(ng.tensor([1.0, 1.0]))
    assert str(caught.value).endswith(words)
    if function is several_lines:
        first = function.__code__.co_firstlineno + 1
        assert f"; or write lines {first} to {first + 2} as a function:" in str(caught.value)


def test_without_source_there_is_no_advice():
    names = {}
    exec("def program(x):\n    return x if x.sum() > 0 else -x", names)
    with pytest.raises(ng.TraceError, match="truth value") as caught:
        ng.jit(names["program"])(ng.tensor([1.0, 1.0]))
    assert "as a function" not in str(caught.value)
