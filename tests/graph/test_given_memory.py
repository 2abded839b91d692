"""Tensors that are given other memory, by `data =` or `set_`: their views, copies and storages."""

from __future__ import annotations

import copy
import io
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad
from tests.cases import examples

VIEWS: dict[str, Callable[[Any], Any]] = {
    "all of it": lambda t: t[...],
    "from the second on": lambda t: t[1:],
    "every other": lambda t: t[::2],
    "columns": lambda t: t[:, 1:] if t.dim() > 1 else t[:2],
    "last": lambda t: t[-1] if t.dim() > 1 else t[-1:],
    "transposed": lambda t: t.t() if t.dim() <= 2 else t,
    "detached": lambda t: t.detach(),
    "data": lambda t: t.data,
}
GIFTS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "new": lambda m, t, other: m.arange(100.0, 107.0),
    "new rows": lambda m, t, other: m.arange(50.0, 62.0).reshape(3, 4),
    "another": lambda m, t, other: other,
    "part of another": lambda m, t, other: other[1:],
    "part of its own": lambda m, t, other: t[1:],
    "part of its own data": lambda m, t, other: t.data[:1],
    "another dtype": lambda m, t, other: other.double(),
}


def give_memory(t: Any, source: Any) -> None:
    t.data = source


def set_memory(t: Any, source: Any) -> None:
    t.set_(source)


WAYS: dict[str, Callable[[Any, Any], None]] = {"data =": give_memory, "set_": set_memory}


def facts(m: Any, tensors: list[Any]) -> list[Any]:
    """Return where tensors lie, and what of other memory can be seen from them."""
    found = []
    for t in tensors:
        size = t.untyped_storage().nbytes() // t.element_size()
        whole = t.as_strided((size,), (1,), 0)
        found.append([t.shape, t.tolist(), size, whole.tolist()])
        if t.numel():  # NumPy has no place for what is empty, and no steps between nothing
            start = t.data_ptr() - t.untyped_storage().data_ptr()
            found[-1] += [t.stride(), t.storage_offset(), start]
            found[-1].append([t.is_set_to(each) for each in tensors])
    return found


def copies(m: Any, tensors: list[Any]) -> list[list[Any]]:
    file = io.BytesIO()
    m.save(tensors, file)
    file.seek(0)
    return [copy.deepcopy(tensors), m.load(file)]


def outcome(m: Any, program: list[tuple[str, Any]]) -> list[Any]:
    tensors = [m.arange(12.0).reshape(3, 4), m.arange(20.0, 26.0)]
    found: list[Any] = []
    for step, (what, at, other) in program:
        t, source = tensors[at % len(tensors)], tensors[other % len(tensors)]
        try:
            if step == "view":
                tensors.append(VIEWS[what](t))
            elif step == "write":
                t.add_(1)
            else:
                WAYS[step](t, GIFTS[what](m, t, source))
        except (RuntimeError, IndexError) as error:
            found.append(type(error).__name__)
        found.append(facts(m, tensors))
    return found


AT = st.integers(0, 5)
STEPS = st.one_of(
    st.tuples(st.just("view"), st.tuples(st.sampled_from(sorted(VIEWS)), AT, AT)),
    st.tuples(st.sampled_from(sorted(WAYS)), st.tuples(st.sampled_from(sorted(GIFTS)), AT, AT)),
    st.tuples(st.just("write"), st.tuples(st.just(""), AT, AT)),
)


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(STEPS, min_size=2, max_size=6))
def test_views_lie_where_pytorchs_lie(torch: Any, program: list[tuple[str, Any]]) -> None:
    assert outcome(numgrad, program) == outcome(torch, program)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(VIEWS)), AT), min_size=1, max_size=4))
def test_copies_lie_in_one_memory_where_the_originals_do(
    torch: Any, views: list[tuple[str, int]]
) -> None:
    def copied(m: Any) -> Any:
        tensors = [m.arange(12.0).reshape(3, 4)]
        for what, at in views:
            tensors.append(VIEWS[what](tensors[at % len(tensors)]))
        found = []
        for made in copies(m, tensors):
            made[0].add_(1)
            found.append(facts(m, made))
        return found

    assert copied(numgrad) == copied(torch)


def test_views_without_elements_stay_in_their_own_memory() -> None:
    """Whichever of the two memories lies behind the other."""
    memories = [numgrad.arange(float(size)) for size in (3, 4, 5, 6)]
    for first, second in itertools.permutations(range(4), 2):
        t = memories[first].detach().clone()
        for memory in (memories[second].data, t.data[1:], t.data[:0]):
            size = t.untyped_storage().nbytes()
            for view in (t[:0], t[1:1], t[2:2]):
                before = t.data
                t.data = memory
                assert view.untyped_storage().nbytes() == size
                assert view.detach().untyped_storage().nbytes() == size
                t.data = before
                assert view.untyped_storage().nbytes() == size


def test_views_without_elements_stay_where_they_are_while_others_leave() -> None:
    """In the part of an array that was given, at its start, amid it and at its end."""
    for first in range(8):  # whatever bits the address has
        t = numgrad.from_numpy(np.arange(15.0)[first : first + 4])
        # NumPy has no slice of nothing begin behind what it is a slice of.
        views = [t[:0], t[1:], t[1:][:0], t[3:][:0], t.as_strided((0,), (1,), 4)]
        t[1:3].data = numgrad.ones(2, dtype=numgrad.float64)
        for view in views:
            storage = view.untyped_storage()
            assert (storage.data_ptr(), storage.nbytes()) == (t.data_ptr(), 32)
