"""Environment variables that a traced function reads: a change means another trace."""

from __future__ import annotations

import os
from os import environ, getenv
from random import Random
from typing import Any

import pytest

import numgrad as ng

pytestmark = pytest.mark.usefixtures("traced")

NAME = "NUMGRAD_TEST_SCALE"
_get, _whole = os.environ.get, os.environ


class _Holder:
    def __init__(self) -> None:
        self.settings = os.environ

    def scaled(self, x: Any) -> Any:
        return x * float(self.settings.get(NAME, "1"))


def _inside(x: Any) -> Any:
    import os as system

    return x * float(system.environ.get(NAME, "1"))


def _inside_by_name(x: Any) -> Any:
    from os import getenv as ask

    return x * float(ask(NAME, "1"))


def _helped(x: Any) -> Any:
    return x * _scale()


def _scale() -> float:
    return 3.0 if os.environ.get(NAME) == "2" else 5.0


READERS = {
    "entry": lambda x: x * float(os.environ[NAME]) if NAME in os.environ else x,
    "get": lambda x: x * float(os.environ.get(NAME, "1")),
    "getenv": lambda x: x * float(os.getenv(NAME, "1")),
    "imported": lambda x: x * float(environ.get(NAME, "1")),
    "imported getenv": lambda x: x * float(getenv(NAME, "1")),
    "bound method": lambda x: x * float(_get(NAME, "1")),
    "other name": lambda x: x * float(_whole.get(NAME, "1")),
    "default": lambda x, e=os.environ: x * float(e.get(NAME, "1")),
    "items": lambda x: x * float(dict(os.environ.items()).get(NAME, "1")),
    "branch": lambda x: x + 1 if os.environ.get(NAME) else x - 1,
    "length": lambda x: x * len(os.environ),
    "attribute": _Holder().scaled,
    "helper": _helped,
    "inside": _inside,
    "inside by name": _inside_by_name,
}


@pytest.mark.parametrize("name", READERS)
def test_a_change_of_the_environment_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read, random, x = READERS[name], Random(name), ng.tensor([1.0, -2.0])
    compiled = ng.jit(read)
    for _ in range(6):
        value = random.choice(["2", "3", None])
        if value is None:
            monkeypatch.delenv(NAME, raising=False)
        else:
            monkeypatch.setenv(NAME, value)
        assert compiled(x).tolist() == read(x).tolist(), value
