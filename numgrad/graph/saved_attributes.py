"""Saved tensors as attributes of nodes: ``_saved_self``, ``_raw_saved_self`` and the like."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from numgrad.graph.node import Node
from numgrad.graph.saved_tensors import (
    PackedTensor,
    PackHook,
    UnpackHook,
    pack_entry,
    saved_entries,
    saved_value,
)
from numgrad.graph.tensor import Tensor, wrap

__all__ = ["SavedTensor", "saved_properties"]


class SavedTensor:
    """A place where a node saved a tensor, or could have saved one.

    Mirrors what PyTorch's ``_raw_saved_`` attributes give.
    """

    __slots__ = ("_index", "_node")

    def __init__(self, node: Node, index: int | None) -> None:
        self._node = node
        self._index = index

    def register_hooks(self, pack_hook: PackHook, unpack_hook: UnpackHook) -> None:
        """Pack this tensor now, and unpack it when the graph is run.

        Raises
        ------
        RuntimeError
            If it was packed already, was freed, or there is none.
        TypeError
            If a hook can't be called.
        """
        for hook in (pack_hook, unpack_hook):
            if not callable(hook):
                raise TypeError(
                    f"register_hooks(): hooks must be callable, got {type(hook).__name__}"
                )
        node = self._node
        if node.saved is None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. Saved "
                "intermediate values of the graph are freed when you call .backward() or "
                "autograd.grad(). Specify retain_graph=True if you need to backward through the "
                "graph a second time or if you need to access saved variables after calling "
                "backward."
            )
        entry = self._entry()
        if isinstance(entry, PackedTensor):
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: "
                "only one pair of hooks is allowed at a time."
            )
        if entry is None or entry[1] is None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor with value None is forbidden"
            )
        self._pack((pack_hook, unpack_hook))

    def _entry(self) -> Any:
        """Return what the node keeps there."""
        return None if self._index is None else saved_entries(self._node)[self._index]

    def _pack(self, hooks: tuple[PackHook, UnpackHook]) -> None:
        """Pack what the node keeps there."""
        if self._index is not None:
            pack_entry(self._node, self._index, hooks)


def saved_properties(names: Iterable[str]) -> dict[str, property]:
    """Return the properties of a class of nodes, given PyTorch's names of what they may save.

    They stand on the class, because a ``__getattr__`` would slow every access to a node down.
    """
    found: dict[str, property] = {}
    for name in names:
        found[f"_saved_{name}"] = property(_value_of(name))
        found[f"_raw_saved_{name}"] = property(_place_of(name))
    return found


def _value_of(name: str) -> Callable[[Node], Any]:
    def value(node: Node) -> Any:
        names = list(node.saved_names())
        if name not in names:
            return None
        index = names.index(name)
        found = saved_value(node, index)
        # A number in the place of a tensor is a tensor of no dims.
        takes_number = isinstance(found, Tensor) or not node.takes_tensor(index)
        return found if takes_number else wrap(np.asarray(found))

    return value


def _place_of(name: str) -> Callable[[Node], SavedTensor]:
    def place(node: Node) -> SavedTensor:
        names = list(node.saved_names())
        return SavedTensor(node, names.index(name) if name in names else None)

    return place
