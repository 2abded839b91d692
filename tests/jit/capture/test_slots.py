"""Attributes in slots that are set or deleted after a function was traced that asked for them."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from tests.cases import examples

pytestmark = pytest.mark.usefixtures("traced")


class Plain:
    __slots__ = ("v", "w")


class Derived(Plain):
    __slots__ = ("w",)


class WithDict(Plain):
    pass


class Asking(Plain):
    __slots__ = ()

    def __getattr__(self, name: str) -> float:
        return 5.0


def tried(instance: Any) -> Any:
    try:
        return instance.w
    except AttributeError:
        return 1.0


KINDS = {each.__name__: each for each in (Plain, Derived, WithDict, Asking)}
READS: dict[str, Callable[[Any], Any]] = {
    "getattr": lambda s: getattr(s, "w", 1.0),
    "hasattr": lambda s: s.w if hasattr(s, "w") else 2.0,
    "try": tried,
    "names that are computed": lambda s: sum(getattr(s, name, 1.0) for name in "vw"),
}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("kind", KINDS)
@given(changes=st.lists(st.sampled_from([None, 3.0, 0.5]), min_size=2, max_size=4))
@settings(max_examples=examples(8))
def test_what_is_set_and_deleted_is_noticed(
    kind: str, read: str, changes: list[float | None]
) -> None:
    instance, x = KINDS[kind](), ng.ones(1)
    compiled = ng.jit(lambda x: x * READS[read](instance))
    for value in (None, *changes):
        if value is not None:
            instance.w = value
        elif _has(instance):
            del instance.w
        for _ in range(2):
            misses = compiled.cache_info().misses
            assert compiled(x).item() == READS[read](instance)
        assert compiled.cache_info().misses == misses


def _has(instance: Any) -> bool:
    """Whether the slot has something in it."""
    try:
        type(instance).w.__get__(instance)
    except AttributeError:
        return False
    return True


def test_an_entry_that_a_view_of_a_dict_gets_later_is_noticed() -> None:
    behind: dict[str, float] = {}
    table = types.MappingProxyType(behind)

    def scaled(x: Any) -> Any:
        try:
            return x * table["w"]
        except KeyError:
            return x

    compiled = ng.jit(scaled)
    assert compiled(ng.ones(1)).item() == 1
    behind["w"] = 3.0
    assert compiled(ng.ones(1)).item() == 3
