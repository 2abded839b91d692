"""Storages read, write, copy and refuse as a list of their elements does, in drawn programs."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng

OUTSIDE = (IndexError, RuntimeError)  # untyped storages raise the second where they are written to
KEYS = st.integers(-7, 7)
SLICES = st.builds(slice, st.none() | st.integers(0, 6), st.none() | st.integers(0, 6))
VALUES = st.integers(-300, 300)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("read"), KEYS),
        st.tuples(st.just("write"), KEYS | SLICES, VALUES),
        st.tuples(st.just("fill"), VALUES),
        st.tuples(st.just("copy"), st.lists(st.integers(0, 9), max_size=7)),
        st.tuples(st.just("resize"), st.integers(0, 7)),
        st.tuples(st.just("clone"), VALUES),
    ),
    max_size=12,
)


class Model:
    """What a storage is: a list, and how a number is kept in it."""

    def __init__(self, values: list[int], untyped: bool) -> None:
        self.values, self.untyped = list(values), untyped

    def kept(self, value: int) -> int:
        return value % 256 if self.untyped else value

    def allows(self, key: Any, write: bool) -> bool:
        if isinstance(key, slice):
            return True
        first = 0 if write and self.untyped else -len(self.values)  # PyTorch's differ in this
        return first <= key < len(self.values)

    def write(self, key: Any, value: int) -> None:
        places = range(len(self.values))[key]
        for place in [places] if isinstance(places, int) else places:
            self.values[place] = self.kept(value)


def step(storage: Any, model: Model, name: str, *arguments: Any) -> None:
    """Do to both what a step says; what the model can't do is refused, and changes nothing."""
    if name in ("read", "write"):
        key = arguments[0]
        if not model.allows(key, name == "write"):
            with pytest.raises(OUTSIDE):
                storage[key] if name == "read" else storage.__setitem__(key, arguments[1])
        elif name == "read":
            assert storage[key] == model.values[key]
        else:
            storage[key] = arguments[1]
            model.write(key, arguments[1])
    elif name == "fill":
        assert storage.fill_(arguments[0]) is storage
        model.write(slice(None), arguments[0])
    elif name == "copy":
        source = type(storage)(arguments[0])
        if len(source) != len(storage):
            with pytest.raises(RuntimeError, match="size does not match"):
                storage.copy_(source)
        else:
            assert storage.copy_(source) is storage
            model.values = list(arguments[0])
    elif name == "resize":
        if arguments[0] == len(model.values):
            assert storage.resize_(arguments[0]) is storage
        else:
            with pytest.raises(RuntimeError, match="not resizable"):
                storage.resize_(arguments[0])
    else:
        copy = storage.clone()
        assert type(copy) is type(storage)
        assert copy.tolist() == model.values
        copy.fill_(arguments[0])


@pytest.mark.parametrize("kind", ["UntypedStorage", "TypedStorage"])
@given(st.lists(st.integers(0, 9), max_size=6), STEPS)
def test_a_storage_does_as_a_list(kind: str, values: list[int], steps: list[Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        storage = getattr(ng, kind)(values)
        model = Model(values, kind == "UntypedStorage")
        for name, *arguments in steps:
            step(storage, model, name, *arguments)
            assert storage.tolist() == list(storage) == model.values
            assert storage.size() == len(storage) == len(values)
            assert storage.nbytes() == storage.element_size() * len(values)
            assert storage != storage.clone() or not values
            if model.untyped:
                assert storage[1:4].tolist() == model.values[1:4]


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")  # once a process, whichever test
@pytest.mark.parametrize("kind", ["UntypedStorage", "TypedStorage"])
@pytest.mark.parametrize("size", [1.0, None, "2"])
def test_a_size_is_an_int(kind: str, size: Any) -> None:
    with pytest.raises(RuntimeError, match="resize_ expects an int, but got"):
        getattr(ng, kind)([1, 2]).resize_(size)
