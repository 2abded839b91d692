"""Pytrees: nested containers, taken apart into their leaves and put together again.

Containers are tuples, lists, dictionaries, named tuples and dataclasses, and whatever was
registered. Anything else is a leaf, None included: tensors, NumPy arrays, numbers. What is left of
a tree without its leaves is a `TreeSpec`, which compares and hashes by value.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

__all__ = [
    "LEAF",
    "TreeSpec",
    "containers",
    "flatten",
    "leaves",
    "map_tree",
    "register",
    "unflatten",
]


class Container(NamedTuple):
    """How a type is taken apart and put together.

    Attributes
    ----------
    take_apart : callable
        Returns an instance's children, and what else it takes to make one, hashable.
    put_together : callable
        Returns an instance, given the type with that, and the children.
    name : str
        What the type is called where a structure is printed.
    """

    take_apart: Callable[[Any], tuple[Sequence[Any], Hashable]]
    put_together: Callable[[Any, Iterable[Any]], Any]
    name: str


@dataclasses.dataclass(frozen=True, repr=False, slots=True)
class TreeSpec:
    """The structure of a pytree: what is left of it without its leaves.

    Attributes
    ----------
    type : type or None
        The type of the container; None for a leaf.
    context : hashable
        What else it takes to make one, such as the keys of a dictionary.
    children : tuple of TreeSpec
        The structures of what it contains.

    Examples
    --------
    >>> spec = flatten({"w": (1.0, 2.0), "b": 3.0})[1]
    >>> print(spec)
    {'w': (*, *), 'b': *}
    >>> spec == flatten({"w": (4, 5), "b": 6})[1]
    True
    """

    type: type | None
    context: Hashable
    children: tuple[TreeSpec, ...]

    @property
    def num_leaves(self) -> int:
        """The number of leaves."""
        if self.type is None:
            return 1
        return sum([child.num_leaves for child in self.children])

    def __repr__(self) -> str:  # as PyTorch prints it, because messages quote it
        return self._represent(0)

    def _represent(self, indent: int) -> str:
        if self.type is None:
            return "*"
        indent += 2
        children = [child._represent(indent) for child in self.children]
        inside = (",\n" + " " * indent).join(children)
        name, context = _CONTAINERS[self.type].name if self.type in _CONTAINERS else "", None
        if self.type is dict or self.type is OrderedDict:
            context = list(self.context)  # type: ignore[call-overload]
        elif not name:
            name, context = "namedtuple" if _is_namedtuple(self.type) else "dataclass", self.type
        elif self.context is not None:
            context = self.context
        return f"TreeSpec({name}, {context}, [{inside}])"

    def __str__(self) -> str:
        if self.type is None:
            return "*"
        parts = [str(child) for child in self.children]
        if self.type is tuple:
            return f"({', '.join(parts)}{',' * (len(parts) == 1)})"
        if self.type is list:
            return f"[{', '.join(parts)}]"
        context: Any = self.context
        if issubclass(self.type, dict):
            keys = context[1] if self.type is defaultdict else context
            pairs = [f"{key!r}: {part}" for key, part in zip(keys, parts, strict=True)]
            inside = f"{{{', '.join(pairs)}}}"
            return inside if self.type is dict else f"{self.type.__name__}({inside})"
        names: Sequence[str] = ()
        if _is_namedtuple(self.type):
            names = self.type._fields  # type: ignore[attr-defined]
        elif self.type not in _CONTAINERS:
            names = context[0]
            parts += [repr(value) for _, value in context[1]]
            names = (*names, *(name for name, _ in context[1]))
        if names:
            parts = [f"{name}={part}" for name, part in zip(names, parts, strict=True)]
        return f"{self.type.__name__}({', '.join(parts)})"


LEAF = TreeSpec(None, None, ())


def flatten(tree: Any) -> tuple[list[Any], TreeSpec]:
    """Return the leaves of a pytree, in order, and its structure.

    Mirrors ``torch.utils._pytree.tree_flatten`` and ``jax.tree.flatten``; None is a leaf, as in
    PyTorch, and dictionaries keep their order.

    Parameters
    ----------
    tree : pytree

    Returns
    -------
    leaves : list
    spec : TreeSpec

    Examples
    --------
    >>> flatten([1, {"a": 2, "b": (3, None)}])[0]
    [1, 2, 3, None]
    """
    found: list[Any] = []
    return found, _flatten_into(found, tree)


def unflatten(spec: TreeSpec, leaves: Iterable[Any]) -> Any:
    """Return the pytree of a structure with these leaves.

    Raises
    ------
    ValueError
        If there are more or fewer leaves than the structure has places.

    Examples
    --------
    >>> unflatten(flatten({"a": 1, "b": (2,)})[1], "xy")
    {'a': 'x', 'b': ('y',)}
    """
    given = list(leaves)
    if len(given) != spec.num_leaves:
        raise ValueError(
            f"unflatten: a tree {spec} has {spec.num_leaves} leaves, but {len(given)} were given"
        )
    return _build(spec, iter(given))


def leaves(tree: Any) -> list[Any]:
    """Return the leaves of a pytree, in order.

    Examples
    --------
    >>> leaves((1, [2, 3]))
    [1, 2, 3]
    """
    return flatten(tree)[0]


def containers(tree: Any) -> list[tuple[Any, tuple[Any, ...], Hashable]]:
    """Return the containers of a pytree, each with its children and what else makes it.

    Examples
    --------
    >>> containers({"a": [1, 2]})
    [({'a': [1, 2]}, ([1, 2],), ('a',)), ([1, 2], (1, 2), None)]
    """
    kind = type(tree)
    container = _CONTAINERS.get(kind) or _container_of(kind)
    if container is None:
        return []
    children, context = container.take_apart(tree)
    found = [(tree, tuple(children), context)]
    for child in children:
        found += containers(child)
    return found


def map_tree(function: Callable[[Any], Any], tree: Any) -> Any:
    """Return the pytree of the same structure whose leaves are ``function(leaf)``.

    Examples
    --------
    >>> map_tree(lambda x: 10 * x, {"a": 1, "b": [2, 3]})
    {'a': 10, 'b': [20, 30]}
    """
    found, spec = flatten(tree)
    return _build(spec, iter([function(leaf) for leaf in found]))


def register(
    kind: type,
    take_apart: Callable[[Any], tuple[Sequence[Any], Hashable]],
    put_together: Callable[[Any, Iterable[Any]], Any],
) -> None:
    """Let instances of a class be containers.

    Mirrors ``jax.tree_util.register_pytree_node``.

    Parameters
    ----------
    kind : type
        The class itself; subclasses are not meant.
    take_apart : callable
        ``take_apart(instance)`` returns the children and a hashable rest.
    put_together : callable
        ``put_together(rest, children)`` returns an instance.

    Raises
    ------
    ValueError
        If the class is a container already.
    """
    if kind in _CONTAINERS:
        raise ValueError(f"register: {kind.__name__} is registered already")
    _CONTAINERS[kind] = Container(
        take_apart, lambda rest, children: put_together(rest[1], children), kind.__name__
    )


def _flatten_into(found: list[Any], tree: Any) -> TreeSpec:
    kind = type(tree)
    container = _CONTAINERS.get(kind) or _container_of(kind)
    if container is None:
        found.append(tree)
        return LEAF
    children, context = container.take_apart(tree)
    return TreeSpec(kind, context, tuple([_flatten_into(found, child) for child in children]))


def _build(spec: TreeSpec, given: Iterator[Any]) -> Any:
    if spec.type is None:
        return next(given)
    container: Any = _CONTAINERS.get(spec.type) or _container_of(spec.type)
    children = [_build(child, given) for child in spec.children]
    return container.put_together((spec.type, spec.context), children)


def _is_namedtuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def _container_of(kind: type) -> Container | None:
    """Return how instances of a class that nobody registered are taken apart, None for leaves."""
    if _is_namedtuple(kind):
        return _NAMEDTUPLE
    return _DATACLASS if dataclasses.is_dataclass(kind) and kind is not TreeSpec else None


def _take_dataclass(instance: Any) -> tuple[list[Any], Hashable]:
    """Return the fields' values; those whose metadata say ``static`` belong to the structure."""
    fields = dataclasses.fields(instance)
    moving = [field.name for field in fields if not field.metadata.get("static")]
    static = [field.name for field in fields if field.metadata.get("static")]
    rest = tuple(moving), tuple((name, getattr(instance, name)) for name in static)
    return [getattr(instance, name) for name in moving], rest


def _make_dataclass(context: tuple[type, Any], children: Iterable[Any]) -> Any:
    """Return an instance as it was: what ``__post_init__`` made of its fields is not made again."""
    kind, (names, static) = context
    instance: Any = object.__new__(kind)
    for name, value in [*zip(names, children, strict=True), *static]:
        object.__setattr__(instance, name, value)  # a frozen class has no setattr of its own
    return instance


def _make_defaultdict(context: tuple[type, Any], children: Iterable[Any]) -> Any:
    factory, keys = context[1]
    return defaultdict(factory, zip(keys, children, strict=True))


_NAMEDTUPLE = Container(lambda t: (t, None), lambda rest, children: rest[0](*children), "")
_DATACLASS = Container(_take_dataclass, _make_dataclass, "")
_CONTAINERS: dict[type, Container] = {
    tuple: Container(lambda t: (t, None), lambda rest, children: tuple(children), "tuple"),
    list: Container(lambda t: (t, None), lambda rest, children: list(children), "list"),
    dict: Container(
        lambda d: (list(d.values()), tuple(d)),
        lambda rest, children: dict(zip(rest[1], children, strict=True)),
        "dict",
    ),
    OrderedDict: Container(
        lambda d: (list(d.values()), tuple(d)),
        lambda rest, children: OrderedDict(zip(rest[1], children, strict=True)),
        "OrderedDict",
    ),
    defaultdict: Container(
        lambda d: (list(d.values()), (d.default_factory, tuple(d))),
        _make_defaultdict,
        "defaultdict",
    ),
}
