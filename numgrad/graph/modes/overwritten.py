"""What nodes saved in a function that forward mode differentiates, though it is overwritten there.

Reverse mode can't go through a node whose saved tensor was written to. PyTorch's forward mode goes
along with the function, and needs nothing that was saved. Here it follows the nodes, once the
function has run. So while that runs, it is noted which nodes save something, and when something is
written to that they saved, forward mode gets a copy of the node, and that a copy of what there was.
The node itself stays as it is, for reverse mode to refuse.
"""

from __future__ import annotations

import weakref
from collections.abc import MutableMapping
from copy import copy
from typing import Any

from numgrad.graph.modes.state import modes
from numgrad.graph.node import Node
from numgrad.graph.tensor import Tensor

__all__ = ["Overwritten", "copy_saved", "saved_entries", "with_saved"]


class Overwritten:
    """Knows the nodes of a function, and all that it calls, of which something was overwritten.

    Attributes
    ----------
    nodes : mapping
        For such a node the one that takes its place.
    savers : list
        Weak references to nodes that have saved something since the last write.
    """

    __slots__ = ("_by_counter", "nodes", "savers")

    def __init__(self) -> None:
        self.nodes: MutableMapping[Node, Node] = weakref.WeakKeyDictionary()
        self.savers: list[weakref.ref[Node]] = []
        # By the id of the version counter of what they saved; another one may have that by now.
        self._by_counter: dict[int, list[weakref.ref[Node]]] = {}

    def before_write(self, tensor: Tensor) -> None:
        """Copy what was saved of the memory of a tensor."""
        self._sort()
        counter = tensor._counter
        copies: dict[int, Any] = {}
        for reference in self._by_counter.pop(id(counter), ()):
            node = reference()
            if node is not None:
                stands_in = self.nodes.get(node)
                entries = saved_entries(node if stands_in is None else stands_in)
                if copy_saved(entries, counter, copies):
                    if stands_in is None:
                        stands_in = self.nodes[node] = copy(node)
                    with_saved(stands_in, entries)

    def _sort(self) -> None:
        """Enter the new nodes under what they saved."""
        for reference in self.savers:
            node = reference()
            if node is not None:
                for counter in saved_entries(node)[1::3]:
                    if counter is not None:
                        self._by_counter.setdefault(id(counter), []).append(reference)
        self.savers.clear()


def saved_entries(node: Node) -> list[Any]:
    """Return what a node saved, without what stands behind: that may be about to be overwritten."""
    saved = node.saved
    return list(saved)[: 3 * len(node.saved_edges())] if type(saved) is tuple else []


def copy_saved(entries: list[Any], counter: Any, copies: dict[int, Any]) -> bool:
    """Put copies of what was saved with a version counter, as it is now, in the place of that.

    Parameters
    ----------
    entries : list
        Of `saved_entries`.
    counter : list
    copies : dict
        By the id of an array its copy; new ones are added.

    Returns
    -------
    bool
        Whether there is any.
    """
    found = False
    for at in range(0, len(entries), 3):
        array = entries[at]
        if entries[at + 1] is counter and entries[at + 2] == counter[0]:
            if id(array) not in copies:
                copies[id(array)] = array.copy("K")
                if modes.dual is not None:
                    modes.dual.copy_tangent(array, copies[id(array)])
            entries[at : at + 3] = (copies[id(array)], [0], 0)
            found = True
    return found


def with_saved(node: Node, entries: list[Any]) -> None:
    """Change what a node saved, which need no longer lie as in other calls of its kind."""
    node.saved = tuple(entries)
    call = getattr(node, "call", None)  # which nodes of operations have, on a floor above
    if call is not None:
        node.call = call.forgotten()  # type: ignore[attr-defined]
