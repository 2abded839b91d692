"""A captured zero that gets another sign is another number, wherever it stands."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import numgrad as ng

Way = tuple[Callable[[], float], Callable[[], Any]]  # how it is read, and how it changes


def _object() -> Way:
    held = SimpleNamespace(zero=0.0)
    return lambda: held.zero, lambda: setattr(held, "zero", -0.0)


def _entry() -> Way:
    held = {"zero": 0.0}
    return lambda: held["zero"], lambda: held.update(zero=-0.0)


def _variable() -> Way:
    held = ContextVar("held", default=0.0)
    held.set(0.0)
    return lambda: held.get(), lambda: held.set(-0.0)


def _array() -> Way:
    held = np.zeros((2, 3), "f").T  # not row by row
    return lambda: float(held[1:].max()), lambda: held.fill(-0.0)


def _complex_array() -> Way:
    held = np.array([complex(0.0, -0.0)])
    return lambda: complex(held.conj()[0]).imag, lambda: held.__setitem__(0, complex(0.0, 0.0))


def _objects() -> Way:
    held = np.array([0.0], object)
    return lambda: held[0], lambda: held.__setitem__(0, -0.0)


def _tensor() -> Way:
    held = ng.zeros(2)
    return lambda: float(held.numpy()[0]), lambda: held.neg_()


@pytest.mark.parametrize(
    "make", [_object, _entry, _variable, _array, _complex_array, _objects, _tensor]
)
def test_the_sign_of_a_zero_is_seen(make: Callable[[], Way]) -> None:
    read, change = make()
    scaled = ng.jit(lambda x: x * math.copysign(2.0, read()))
    assert scaled(ng.ones(1)).tolist() == [2.0]
    change()
    assert scaled(ng.ones(1)).tolist() == [-2.0]
