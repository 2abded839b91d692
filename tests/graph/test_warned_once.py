"""What a process is warned of once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.children import ended_well

PROGRAM = """
import warnings
import LIBRARY as lib

class Inner(lib.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        inner(g)
        return g * 2

def inner(g):
    with lib.enable_grad():
        recorded(g.detach().requires_grad_())

def recorded(x):
    (x * x).sum().backward(create_graph=True)

def hooked():
    y = x * 2
    y.register_hook(inner)
    y.sum().backward()

x = lib.ones(2, requires_grad=True)
calls = {
    "refused": lambda: recorded(x.detach()),
    "no inputs": lambda: x.sum().backward(create_graph=True, inputs=[]),
    "grad": lambda: lib.autograd.grad(x.sum(), x, create_graph=True),
    "inputs": lambda: x.sum().backward(create_graph=True, inputs=[x]),
    "function": lambda: Inner.apply(x).sum().backward(),
    "hook": hooked,
    "pass": lambda: recorded(x),
    "always": lambda: lib.set_warn_always(True),
    "once": lambda: lib.set_warn_always(False),
}
for name in NAMES.split(", "):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            calls[name]()
        except RuntimeError:
            pass
    for each in caught:
        if "create a reference cycle between" in str(each.message):
            print(name, each.category.__name__)
"""


@pytest.mark.parametrize(
    ("names", "warned"),
    [
        ("refused, no inputs, grad, function, pass, always, pass, once, pass", "function pass"),
        ("inputs, hook, pass", "inputs"),
        ("hook, pass, function", "hook"),
    ],
)
def test_a_pass_that_records_warns_if_it_is_the_first(lib: Any, names: str, warned: str) -> None:
    """Also one inside of another; and not if it is refused."""
    program = PROGRAM.replace("LIBRARY", lib.__name__).replace("NAMES", repr(names))
    expected = [f"{name} UserWarning" for name in warned.split()]
    assert ended_well(program).splitlines() == expected
