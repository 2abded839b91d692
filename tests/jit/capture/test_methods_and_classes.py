"""What is asked of a bound method, and of a class by `vars`: changes of it are noticed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import numgrad as ng


def _made() -> Any:
    class Scaled:
        scale = 2.0

        def apply(self) -> float:
            return 1.0

    return Scaled


def _vars_of_parameter(kind: Any) -> float:
    found: float = vars(kind).get("gain", 1.0)
    return found


READS: dict[str, Callable[[Any, Any], Callable[[Any], Any]]] = {
    "method": lambda kind, own: lambda x: x * getattr(own.apply, "gain", 1.0),
    "method asked": lambda kind, own: (
        lambda x: x * (own.apply.gain if hasattr(own.apply, "gain") else 1.0)
    ),
    "bound": lambda kind, own: (lambda apply: lambda x: x * getattr(apply, "gain", 1.0))(own.apply),
    "function": lambda kind, own: lambda x: x * getattr(own.apply.__func__, "gain", 1.0),
    "vars": lambda kind, own: lambda x: x * vars(kind).get("gain", 1.0),
    "vars of a parameter": lambda kind, own: lambda x: x * _vars_of_parameter(kind),
    "in vars": lambda kind, own: lambda x: x * (3.0 if "gain" in vars(kind) else 1.0),
    "in __dict__": lambda kind, own: lambda x: x * (3.0 if "gain" in kind.__dict__ else 1.0),
    "dir": lambda kind, own: lambda x: x * (3.0 if "gain" in dir(kind) else 1.0),
}


@pytest.mark.parametrize("read", READS)
def test_what_was_not_there_is_noticed(read: str) -> None:
    kind = _made()
    function = READS[read](kind, kind())
    compiled, x = ng.jit(function), ng.ones(2)
    assert compiled(x).tolist() == [1, 1]
    (kind.apply if "method" in read or read in ("bound", "function") else kind).gain = 3.0
    assert compiled(x).tolist() == function(x).tolist() == [3, 3]


def test_the_object_of_a_bound_method_is_followed() -> None:
    own = _made()()
    own.gain, apply = 2.0, own.apply
    compiled, x = ng.jit(lambda x: x * apply.__self__.gain), ng.ones(2)
    assert compiled(x).tolist() == [2, 2]
    own.gain = 3.0
    assert compiled(x).tolist() == [3, 3]
