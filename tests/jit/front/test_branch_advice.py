"""The error for a branch on a traced value shows what to write: and that computes the same."""

from __future__ import annotations

import importlib.util
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng

# What is before a statement, the statement, and what is behind.
PROGRAMS = {
    "return": ("", "if x.sum() > 0:\n    return x + 1\nelse:\n    return -x", ""),
    "early return": ("", "if x.sum() > 0:\n    return x + 1\nreturn -x", ""),
    "assignment": ("", "if x.max() > 1:\n    y = x * 2\nelse:\n    y = x", "return y"),
    "no else": ("y = x", "if x.max() > 1:\n    y = x * 2", "return y"),
    "augmented": ("y = x * 1", "if x.max() > 1:\n    y *= x\nelse:\n    y -= 1", "return y"),
    "several": (
        "z = x + 1",
        "if 0 < x.sum() < 3 and not x.max() > 1.5:\n    y = x * z\n    z = y + z\nelse:\n    y = z",
        "return y * z",
    ),
    "nested": (
        "z = x + 1",
        "if x.sum() > 0:\n    for _ in range(3):\n        w = z * 2\n        z = w + 1",
        "return z",
    ),
    "elements": ("x = x.clone()", "if x.sum() > 0:\n    x = x.clone()\n    x[0] = 7", "return x"),
    "not": (
        "flag = False",
        "if not flag and x.sum() > 0:\n    x = x + 1",
        "return x",
    ),
    "for": (
        "n = (x.abs().sum() * 0 + 3).long()",
        "for i in range(int(n)):\n    x = x * 0.5 + i",
        "return x",
    ),
    "for several": (
        "n = (x.abs().sum() * 0 + 3).long()\ny = x",
        "for i in range(1, n.item()):\n    x = x * i + y\n    y = x - 1",
        "return x + y",
    ),
    "while": ("x = x * 1", "while x.abs().max() > 1:\n    x = x / 2", "return x"),
    "of a name": (
        "is_big = x.max() > 1",
        "if is_big:\n    x = x * 2\n    x = x + 1",
        "return x",
    ),
    "of names": (
        "is_big, is_small = x.max() > 1, x.min() < 0",
        "if is_big and not is_small:\n    x = x * 2",
        "return x",
    ),
    "of a call": (
        "def is_big(x):\n    return x.max() > 1",
        "if is_big(x):\n    x = x * 2",
        "return x",
    ),
    "while of a call": (
        "x = x * 1\ndef is_big(x):\n    return x.abs().max() > 1",
        "while is_big(x):\n    half = x / 2\n    x = half",
        "return x",
    ),
    "while of what is named": (
        "x = x * 1",
        "while (largest := x.abs().max()) > 1:\n    x = x / largest / 2",
        "return x",
    ),
    "while several": (
        "n = 0\nx = x * 1",
        "while (x.abs().max() >\n       0.5) and n < 5:\n    half = x / 2\n    x, n = half, n + 1",
        "return x + n",
    ),
}


def load(tmp_path, name, source):
    path = tmp_path / f"{name}.py"
    path.write_text("import numgrad as library\n\n\n" + source)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.program


def function_of(*parts):
    body = "\n".join(part for part in parts if part)
    return "def program(x):\n" + textwrap.indent(body, "    ") + "\n"


@pytest.fixture(scope="module", params=PROGRAMS)
def pair(request, tmp_path_factory):
    """Return a program, and the same with the statement as the error shows it."""
    before, statement, behind = PROGRAMS[request.param]
    folder = tmp_path_factory.mktemp("programs")
    original = load(folder, "original", function_of(before, statement, behind))
    with pytest.raises(ng.TraceError, match=r"where\(condition, a, b\)|a Python number") as caught:
        ng.jit(original)(ng.tensor([0.5, 2.0]))
    words, _, advice = str(caught.value).partition("as a function:\n")
    line = 5 + (before.count("\n") + 1 if before else 0)
    assert f"original.py:{line}:" in words
    assert "library.func." in advice
    return original, load(folder, "advised", function_of(before, textwrap.dedent(advice), behind))


@given(values=st.lists(st.floats(-4, 4), min_size=2, max_size=2))
def test_the_advice_computes_what_the_statement_does(pair, values):
    original, advised = pair
    x = ng.tensor(values, dtype=ng.float64)
    assert ng.equal(original(x), advised(x))


def conditional_expression(x):
    return x if x.sum() > 0 else -x


def conditional_by_name(x):
    is_big = x.sum() > 0
    return x if is_big else -x


def breaks(x):
    n = 0
    while n < 5:
        x = x * 2
        if x.sum() > 5:
            break
        n = n + 1
    return x


def raises(x):
    if x.sum() > 5:
        raise ValueError
    return x


def asserts(x):
    assert x.sum() > 5
    return x


def in_a_comprehension(x):
    return [k for k in range(2) if x.sum() > k]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (conditional_expression, "    ng.func.cond(x.sum() > 0, lambda: x, lambda: -x)"),
        (conditional_by_name, "    ng.func.cond(is_big, lambda: x, lambda: -x)"),
        (
            breaks,
            "    def body_fn(x, n):\n        ...  # one step, without the break\n    x, n = "
            "ng.func.while_loop(lambda x, n: (n < 5) & ~(x.sum() > 5), body_fn, (x, n))",
        ),
        (raises, None),
        (asserts, None),
        (in_a_comprehension, None),
    ],
)
def test_what_can_only_be_outlined(function, words):
    with pytest.raises(ng.TraceError) as caught:
        ng.jit(function)(ng.tensor([1.0, 1.0]))
    _, _, advice = str(caught.value).partition("as a function:\n")
    assert advice == (words or "")


def test_without_source_there_is_no_advice():
    names = {}
    exec("def program(x):\n    return x if x.sum() > 0 else -x", names)
    with pytest.raises(ng.TraceError, match="truth value") as caught:
        ng.jit(names["program"])(ng.tensor([1.0, 1.0]))
    assert "as a function" not in str(caught.value)
