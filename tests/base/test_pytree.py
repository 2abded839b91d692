from __future__ import annotations

import collections
import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numgrad.base import pytree

Pair = collections.namedtuple("Pair", "first second")


@dataclasses.dataclass(frozen=True)
class Layer:
    weight: Any
    bias: Any
    name: str = dataclasses.field(default="layer", metadata={"static": True})


scalars = st.one_of(st.integers(), st.floats(allow_nan=False), st.none(), st.text(max_size=2))
keys = st.one_of(st.integers(), st.text(max_size=2))


def containers(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(children, max_size=3),
        st.lists(children, max_size=3).map(tuple),
        st.dictionaries(keys, children, max_size=3),
        st.dictionaries(keys, children, max_size=3).map(collections.OrderedDict),
        st.builds(Pair, children, children),
        st.builds(Layer, children, children, st.text(max_size=2)),
    )


trees = st.recursive(scalars, containers, max_leaves=12)


@given(trees)
def test_a_tree_is_its_leaves_in_its_structure(tree: Any) -> None:
    leaves, spec = pytree.flatten(tree)
    assert pytree.unflatten(spec, leaves) == tree
    assert type(pytree.unflatten(spec, leaves)) is type(tree)
    assert spec.num_leaves == len(leaves)


@given(trees)
def test_structures_compare_and_hash_whatever_the_leaves_are(tree: Any) -> None:
    other = pytree.map_tree(lambda leaf: [], tree)  # an empty list is no leaf
    spec = pytree.flatten(tree)[1]
    assert spec == pytree.flatten(pytree.map_tree(lambda leaf: 0.5, tree))[1]
    assert hash(spec) == hash(pytree.flatten(pytree.map_tree(lambda leaf: 0.5, tree))[1])
    assert (spec == pytree.flatten(other)[1]) == (spec.num_leaves == 0)


@given(st.recursive(scalars, lambda c: st.lists(c) | st.dictionaries(keys, c), max_leaves=8))
def test_structures_print_as_python_with_stars_for_leaves(tree: Any) -> None:
    class Star:
        def __repr__(self) -> str:
            return "*"

    spec = pytree.flatten(tree)[1]
    assert str(spec) == repr(pytree.map_tree(lambda leaf: Star(), tree))


def test_other_containers_print_with_their_names() -> None:
    tree = (Pair(1, [2]), Layer(3, None, "l"), collections.OrderedDict(a=4))
    assert str(pytree.flatten(tree)[1]) == (
        "(Pair(first=*, second=[*]), Layer(weight=*, bias=*, name='l'), OrderedDict({'a': *}))"
    )


def test_static_fields_belong_to_the_structure() -> None:
    one, other = pytree.flatten(Layer(1, 2, "a"))[1], pytree.flatten(Layer(1, 2, "b"))[1]
    assert one != other
    assert pytree.unflatten(other, [3, 4]) == Layer(3, 4, "b")


def test_a_dataclass_is_not_initialised_again() -> None:
    @dataclasses.dataclass
    class Doubled:
        value: float

        def __post_init__(self) -> None:
            self.value *= 2

    leaves, spec = pytree.flatten(Doubled(1.0))
    assert leaves == [2.0]
    assert pytree.unflatten(spec, leaves).value == 2.0


def test_arrays_and_classes_are_leaves() -> None:
    array = np.ones(3)
    assert pytree.leaves({"a": array, "b": Pair}) == [array, Pair]


def test_default_dictionaries_keep_their_default() -> None:
    tree = collections.defaultdict(list, a=1)
    again = pytree.unflatten(pytree.flatten(tree)[1], [2])
    assert again["a"] == 2 and again["b"] == []


def test_a_class_can_be_registered_once() -> None:
    class Point:
        def __init__(self, x: Any, y: Any, unit: str) -> None:
            self.x, self.y, self.unit = x, y, unit

    def take_apart(point: Point) -> Any:
        return (point.x, point.y), point.unit

    def put_together(unit: str, children: Any) -> Point:
        return Point(*children, unit)

    pytree.register(Point, take_apart, put_together)
    moved = pytree.map_tree(lambda leaf: leaf + 1, [Point(1, 2, "m")])[0]
    assert (moved.x, moved.y, moved.unit) == (2, 3, "m")
    assert str(pytree.flatten(moved)[1]) == "Point(*, *)"
    with pytest.raises(ValueError, match="register: Point is registered already"):
        pytree.register(Point, take_apart, put_together)


@pytest.mark.parametrize("leaves", [[], [1], [1, 2, 3]])
def test_the_number_of_leaves_has_to_fit(leaves: list[int]) -> None:
    spec = pytree.flatten((0, {"a": 0}))[1]
    with pytest.raises(ValueError, match="a tree \\(\\*, {'a': \\*}\\) has 2 leaves, but "):
        pytree.unflatten(spec, leaves)


def test_pytorch_prints_structures_the_same(torch: Any) -> None:
    _pytree = torch.utils._pytree
    tree = {"b": (1, [2, {}]), "a": Pair(3, None)}
    assert repr(pytree.flatten(tree)[1]) == repr(_pytree.tree_flatten(tree)[1])
    assert str(pytree.flatten(tree)[1]) == _pytree.treespec_pprint(_pytree.tree_flatten(tree)[1])
