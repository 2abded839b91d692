"""The docstrings of elementwise operations: each has an example, and the example runs."""

from __future__ import annotations

import doctest
import inspect

import pytest

from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.core.primitive import CATALOGUE
from tests.rows import function_of

NAMES = sorted(
    {
        primitive.function_name
        for primitive in CATALOGUE.values()
        # threshold_backward is the rule of relu, no function of its own.
        if isinstance(primitive, ElementwisePrimitive) and primitive.name != "threshold_backward"
    }
)


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("name", NAMES)
def test_public_function_has_an_example_that_runs(name):
    text = inspect.getdoc(function_of(name))
    assert text, f"{name} has no docstring"
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    assert test.examples, f"{name} has no example"
    report: list[str] = []
    doctest.DocTestRunner().run(test, out=report.append)
    assert not report, "".join(report)


def test_docstrings_tell_derivatives():
    words = "Derivative: ", "No gradient flows", "gradient", "cotangent", "not differentiable"
    texts = {name: inspect.getdoc(function_of(name)) or "" for name in NAMES}
    assert [name for name, text in texts.items() if not any(word in text for word in words)] == []
