"""What is not there while a function is traced, and may be in a later call; shapes that change."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng


def _tried(holder: Any) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        try:
            return x * holder.gain
        except AttributeError:
            return x

    return function


class _Plain:
    def method(self) -> None:
        """Do nothing."""


HOLDERS: dict[str, Callable[[], Any]] = {
    "a tensor": lambda: ng.ones(2),
    "an object": _Plain,
    "a class": lambda: type("Own", (), {}),
    "a function": lambda: lambda: None,
    "a partial": lambda: functools.partial(min),
    "a module": lambda: types.ModuleType("made"),
}
WAYS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "getattr": lambda holder: lambda x: x * getattr(holder, "gain", 1.0),
    "hasattr": lambda holder: lambda x: x * (5.0 if hasattr(holder, "gain") else 1.0),
    "try": _tried,
    "in a dict": lambda holder: _in_a_dict({"holder": holder}),
}


def _in_a_dict(table: dict[str, Any]) -> Callable[[Any], Any]:
    return lambda x: x * getattr(table["holder"], "gain", 1.0)


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("holder", HOLDERS)
def test_an_attribute_that_is_set_later_is_noticed(holder: str, way: str) -> None:
    thing = HOLDERS[holder]()
    compiled = ng.jit(WAYS[way](thing))
    x = ng.ones(2)
    assert compiled(x).tolist() == [1, 1]
    thing.gain = 5.0
    assert compiled(x).tolist() == [5, 5]
    del thing.gain
    assert compiled(x).tolist() == [1, 1]


def test_so_it_is_in_the_dict_of_a_tensor() -> None:
    w, x = ng.ones(2), ng.ones(2)
    for function in (
        lambda x: x * vars(w).get("gain", 1.0),
        lambda x: x * w.__dict__.get("gain", 1.0),
    ):
        compiled = ng.jit(function)
        assert compiled(x).tolist() == [1, 1]
        w.gain = 5.0  # type: ignore[attr-defined]
        assert compiled(x).tolist() == [5, 5]
        del w.gain  # type: ignore[attr-defined]


@pytest.mark.parametrize("way", ["getattr", "hasattr", "try"])
def test_so_it_is_in_the_class_of_an_object(way: str) -> None:
    kind = type("Own", (), {})
    compiled = ng.jit(WAYS[way](kind()))
    x = ng.ones(2)
    assert compiled(x).tolist() == [1, 1]
    kind.gain = 5.0  # type: ignore[attr-defined]
    assert compiled(x).tolist() == [5, 5]


def test_a_variable_of_an_enclosing_function_may_be_bound_later() -> None:
    def outer() -> Any:
        def function(x: Any) -> Any:
            try:
                return x * late
            except NameError:
                return x

        def bind() -> None:
            nonlocal late
            late = 3.0

        if False:
            late = 1.0
        return function, bind

    function, bind = outer()
    compiled, x = ng.jit(function), ng.ones(2)
    assert compiled(x).tolist() == [1, 1]
    bind()
    assert compiled(x).tolist() == [3, 3]


def _reshaped(array: Any) -> None:
    array.shape = (3, 2)


def _retyped(array: Any) -> None:
    array.dtype = np.int32


def _frozen(array: Any) -> None:
    array.flags.writeable = False


CHANGES: dict[str, tuple[Callable[[Any], Callable[[Any], Any]], Callable[[Any], Any]]] = {
    "shape": (lambda a: lambda x: x * a.shape[0], _reshaped),
    "strides": (lambda a: lambda x: x * a.strides[0], _reshaped),
    "size": (lambda a: lambda x: x * a.size, lambda a: a.resize(8, refcheck=False)),
    "ndim": (lambda a: lambda x: x * a.ndim, lambda a: a.resize(8, refcheck=False)),
    "nbytes": (lambda a: lambda x: x * a.nbytes, lambda a: a.resize(8, refcheck=False)),
    "itemsize": (lambda a: lambda x: x * a.itemsize, _retyped),
    "dtype": (lambda a: lambda x: x * (2 if a.dtype == np.int32 else 3), _retyped),
    "flags": (lambda a: lambda x: x * (2 if a.flags.writeable else 3), _frozen),
    "shape and numbers": (lambda a: lambda x: (a * x.sum()).sum() * a.shape[0] + x, _reshaped),
}


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("read", CHANGES)
def test_an_array_that_is_given_another_shape_is_noticed(read: str) -> None:
    make, change = CHANGES[read]
    array, x = np.ones((2, 3)), ng.ones(2)
    function = make(array)
    compiled = ng.jit(function)
    before = compiled(x).tolist()
    assert before == function(x).tolist()
    change(array)
    assert compiled(x).tolist() == function(x).tolist() != before
